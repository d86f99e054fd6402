//! Drives that report writes early, with and without flushes.

mod simulated;

use serde_json::{Value, json};
use simulated::simulate;

fn metrics(layout: &Value, device: &str, flushes: bool) -> Value {
    let value = json!({
        "workload": { "kind": "random-update", "blocks": 3000, "updates_per_block": 3,
            "utilization": 0.6 },
        "host": { "sync_every": 4, "flushes": flushes },
        "layout": layout,
        "device": { "model": device },
        "run": { "lower_bound": false },
    });
    simulate(&value).expect("the run ends")["metrics"].clone()
}

fn seconds(metrics: &Value, name: &str) -> f64 {
    metrics[format!("{name}_seconds")].as_f64().unwrap_or(0.0)
}

#[test]
fn a_sync_that_is_flushed_waits_for_the_medium() {
    let layouts = [
        json!({ "kind": "lfs", "collect": "clean" }),
        json!({ "kind": "sequential" }),
        json!({ "kind": "write-anywhere" }),
    ];
    // A page of cells with three bits is programmed in 1.1 ms; 9000 updates are synced by fours.
    let syncs = 9000.0 / 4.0;
    for layout in layouts {
        let [early, flushed] =
            [false, true].map(|flushes| metrics(&layout, "flash-sata-tlc", flushes));
        assert!(early["flush_seconds"].is_null(), "{layout}");
        assert!(seconds(&flushed, "flush") > syncs * 0.5e-3, "{layout} {flushed:#}");
        assert!(seconds(&flushed, "elapsed") > seconds(&early, "elapsed"), "{layout}");
        let parts = ["new_data", "collect_read", "collect_write", "flush", "discard"];
        let parts_s: f64 = parts.iter().map(|part| seconds(&flushed, part)).sum();
        assert!((parts_s - seconds(&flushed, "disk")).abs() < 1e-6, "{layout} {flushed:#}");
        // With its write cache on, the arm of a drive of today has only begun to move.
        let [early, flushed] =
            [false, true].map(|flushes| metrics(&layout, "hgst-hus728t8tale6l4", flushes));
        assert!(seconds(&flushed, "flush") > 0.0, "{layout}");
        assert!(seconds(&flushed, "elapsed") > 0.99 * seconds(&early, "elapsed"), "{layout}");
    }
}

#[test]
fn a_drive_that_reports_when_it_is_done_has_nothing_to_flush() {
    let layout = json!({ "kind": "sequential" });
    let [plain, flushed] = [false, true].map(|flushes| metrics(&layout, "hp-c3323a", flushes));
    assert!(seconds(&flushed, "flush") < 0.001 * seconds(&flushed, "disk"), "{flushed:#}");
    let ratio = seconds(&flushed, "elapsed") / seconds(&plain, "elapsed");
    assert!((0.999..1.001).contains(&ratio), "{ratio}");
}

#[test]
fn a_journal_on_its_own_disk_is_flushed_without_waiting_for_the_other() {
    let layout = json!({ "kind": "write-ahead", "inner": "sequential", "journal": "full",
        "journal_place": "own-disk", "journal_size": "4 MiB" });
    let own = metrics(&layout, "hgst-hus728t8tale6l4", true);
    let (busy, elapsed) = (seconds(&own, "disk"), seconds(&own, "elapsed"));
    assert!(elapsed < busy - 0.5 * seconds(&own, "propagate"), "{elapsed} of {busy} s");
}
