//! A log on a drive that is written zone by zone, and what such a drive refuses.

use std::path::Path;

use agewell_sim::{Experiment, Outcome, Places, RunError, run};
use serde_json::{Value, json};

/// A host-managed drive of 64 zones of 1 MiB, the first two of which are written anywhere.
const DRIVE: &str = r#"
name = "zoned-test"
title = "A small drive that is written zone by zone"
kind = "zoned"
drive = "simple"
capacity_sectors = 131072

[sources]
capacity_sectors = "made up"
simple = "made up"
write_zones = "made up"

[simple]
access_time_ms = 10.0
bandwidth = "100 MB/s"

[write_zones]
size = "1 MiB"
management = "host"
conventional_zones = 2
"#;

fn finished(layout: &Value, read: &str) -> Result<Outcome, RunError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zoned-test.toml");
    std::fs::write(&path, DRIVE).unwrap();
    let value = json!({
        "workload": { "kind": "microbenchmark", "blocks": 6000, "write": "random", "read": read,
            "utilization": 0.8 },
        "host": { "buffer_size": "64 KiB", "sync_every": 5, "server_cache": "1 MB" },
        "layout": layout,
        "device": { "model": path },
        "run": { "record": true, "lower_bound": false },
    });
    let experiment = Experiment::from_value(value)?;
    let catalogue = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices"));
    run(&experiment, Places { base: Path::new("."), catalogue }, &mut |_| true)
}

#[test]
fn a_log_of_whole_zones_is_cleaned_on_it() {
    let layout = json!({ "kind": "lfs", "segment_size": "1 MiB", "collect": "clean" });
    // The device asserts that every write goes to its zone's pointer.
    let outcome = finished(&layout, "sequential").unwrap();
    let metrics = &outcome.document["metrics"];
    assert!(metrics["segments_cleaned"].as_u64().unwrap() > 10, "{metrics}");
    let disk_s = metrics["disk_seconds"].as_f64().unwrap();
    let transfers_s =
        ["new_data_seconds", "collect_read_seconds", "collect_write_seconds", "read_seconds"]
            .map(|name| metrics[name].as_f64().unwrap())
            .iter()
            .sum::<f64>();
    assert!((disk_s - transfers_s).abs() < 1e-6);
}

#[test]
fn whoever_writes_anywhere_is_refused_before_anything_runs() {
    for layout in [
        json!({ "kind": "sequential" }),
        json!({ "kind": "write-anywhere" }),
        json!({ "kind": "lfs", "segment_size": "1 MiB" }),
        json!({ "kind": "lfs", "segment_size": "1 MiB", "collect": "plug" }),
        json!({ "kind": "lfs", "segment_size": "512 KiB", "collect": "clean" }),
    ] {
        let refused = finished(&layout, "sequential").unwrap_err().to_string();
        assert!(refused.contains("zone by zone"), "{layout}: {refused}");
        assert!(refused.contains("segment_size = \"1048576 B\""), "{layout}: {refused}");
    }
}
