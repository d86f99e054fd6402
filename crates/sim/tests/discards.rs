//! Layouts on a flash drive that they fill, with and without discards.

#[path = "../../disk/tests/documented/mod.rs"]
mod documented;
mod simulated;

use std::path::Path;

use documented::documented;
use serde_json::{Value, json};
use simulated::simulate;

/// The metrics of an example with another layout, with discards or without.
fn metrics(example: &str, layout: &Value, discards: bool) -> Value {
    let base = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/discards"));
    let text = std::fs::read_to_string(base.join(example)).expect("an example");
    let table: toml::Table = text.parse().expect("TOML");
    let mut value = serde_json::to_value(table).expect("TOML is JSON");
    value["host"]["discards"] = json!(discards);
    value["layout"] = layout.clone();
    value["run"] = json!({ "lower_bound": false });
    let device = value["device"]["model"].as_str().expect("a file beside it");
    value["device"]["model"] = json!(base.join(device));
    simulate(&value).expect("the run ends")["metrics"].clone()
}

fn amplification(metrics: &Value) -> f64 {
    metrics["flash_write_amplification"].as_f64().expect("something was written")
}

fn disk_s(metrics: &Value) -> f64 {
    metrics["disk_seconds"].as_f64().expect("a number")
}

fn log(segment: &str, reserve: u32) -> Value {
    json!({ "kind": "lfs", "collect": "clean", "segment_size": segment,
        "reserve_segments": reserve })
}

/// The load, in words, and the layout.
fn cases() -> Vec<(&'static str, &'static str, Value)> {
    let plain = |kind: &str| json!({ "kind": kind });
    vec![
        ("update.toml", "log, segments of 64 KiB", log("64 KiB", 1)),
        ("update.toml", "log, 512 KiB", log("512 KiB", 1)),
        ("update.toml", "log, 512 KiB, a tenth kept free", log("512 KiB", 100)),
        ("update.toml", "log, 8 MiB: an erase block of every die", log("8 MiB", 1)),
        ("update.toml", "write-anywhere", plain("write-anywhere")),
        ("update.toml", "in place", plain("sequential")),
        (
            "develop.toml",
            "`ffs`",
            json!({ "kind": "ffs", "minfree_pct": 0, "bytes_per_inode": 4096 }),
        ),
        ("develop.toml", "in place", plain("sequential")),
        ("develop.toml", "write-anywhere", plain("write-anywhere")),
        ("develop.toml", "log, adaptive", plain("lfs")),
    ]
}

#[test]
fn telling_what_is_dead_saves_the_drive_copying_it() {
    let mut table = String::from(
        "| load | layout | drive writes, untold | told | disk s, untold | told |\n\
         |---|---|---|---|---|---|\n",
    );
    for (example, what, layout) in cases() {
        let [untold, told] = [false, true].map(|discards| metrics(example, &layout, discards));
        let (without, with) = (amplification(&untold), amplification(&told));
        assert!(with <= without * 1.005, "{what}: {without} untold, {with} told");
        // Each discard changes when a die collects, and with it the time by a few per cent either
        // way; discards may cost no more.
        assert!(disk_s(&told) < 1.08 * disk_s(&untold), "{what}");
        assert!(untold["discard_seconds"].is_null(), "{what}");
        let is_all_live = what == "in place" && example == "update.toml";
        assert_eq!(told["discard_seconds"].is_null(), is_all_live, "{what}");
        let line = format!(
            "| `{}` | {what} | {without:.2} | {with:.2} | {:.1} | {:.1} |\n",
            example.trim_end_matches(".toml"),
            disk_s(&untold),
            disk_s(&told)
        );
        table.push_str(&line);
    }
    documented("docs/concepts/drives-of-today.md", "discards", &table);
}

#[test]
fn a_drive_with_an_arm_is_told_nothing() {
    let experiment = |discards: bool| {
        let value = json!({
            "workload": { "kind": "random-update", "blocks": 2000, "updates_per_block": 3,
                "utilization": 0.7 },
            "host": { "discards": discards },
            "layout": { "kind": "write-anywhere" },
            "device": { "model": "hp-97560" },
        });
        simulate(&value).expect("the run ends")["metrics"].clone()
    };
    assert_eq!(experiment(true), experiment(false));
}
