//! A host that issues several transfers at once, to drives that hold several commands and to drives
//! that do not.

#[path = "../../disk/tests/documented/mod.rs"]
mod documented;
mod simulated;

use documented::documented;
use serde_json::{Value, json};
use simulated::simulate;

/// A file of 64 MiB whose blocks lie in no order on the disk, read in order in pieces of 16 blocks.
fn scattered(device: &str, prefetch: Option<u32>) -> Value {
    let mut host = json!({ "client_cache": "0 MB", "server_cache": "4 MiB", "prefetch": "none" });
    if let Some(blocks) = prefetch {
        host["prefetch"] = json!("sequential");
        host["prefetch_blocks"] = json!(blocks);
    }
    let value = json!({
        "workload": { "kind": "microbenchmark", "blocks": 8192, "write": "random",
            "read": "sequential", "utilization": 0.5 },
        "host": host,
        "layout": { "kind": "lfs", "collect": "clean" },
        "device": { "model": device },
        "run": { "lower_bound": false },
    });
    simulate(&value).expect("the run ends")["metrics"].clone()
}

fn reading_s(metrics: &Value) -> f64 {
    let seconds = |name: &str| metrics[name].as_f64().unwrap_or(0.0);
    seconds("read_seconds") + seconds("prefetch_seconds")
}

#[test]
fn reading_ahead_what_is_scattered_pays_where_the_drive_does_it_at_once() {
    let [plain, ahead] = [None, Some(16)].map(|blocks| scattered("samsung-970-pro", blocks));
    // A block at a time costs an access each; sixteen dies sense sixteen blocks in little more.
    assert!(reading_s(&ahead) < 0.4 * reading_s(&plain), "{ahead:#} {plain:#}");
    assert!(ahead["elapsed_seconds"].as_f64() < plain["elapsed_seconds"].as_f64());
    let response_ms = |metrics: &Value| metrics["mean_response_ms"].as_f64().expect("a number");
    assert!(response_ms(&ahead) < 0.7 * response_ms(&plain), "{ahead:#} {plain:#}");
}

#[test]
fn reading_ahead_what_is_scattered_saves_nothing_where_one_command_is_held() {
    // A drive of 1994 does one after another: what was read ahead is only read earlier.
    let [plain, ahead] = [None, Some(16)].map(|blocks| scattered("hp-c3323a", blocks));
    let ratio = reading_s(&ahead) / reading_s(&plain);
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

#[test]
fn an_arm_with_a_queue_is_between_the_two() {
    let [plain, ahead] = [None, Some(16)].map(|blocks| scattered("hgst-hus728t8tale6l4", blocks));
    let ratio = reading_s(&ahead) / reading_s(&plain);
    assert!((0.3..0.9).contains(&ratio), "{ratio}");
}

#[test]
fn the_documentation_says_what_reading_ahead_saves() {
    let mut table = String::from(
        "| drive | commands held | reading, s | reading ahead, s | response, ms | reading ahead, ms |\n\
         |---|---|---|---|---|---|\n",
    );
    for (device, held) in [
        ("hp-c3323a", 1),
        ("hgst-hus728t8tale6l4", 32),
        ("flash-sata-tlc", 32),
        ("samsung-970-pro", 128),
    ] {
        let [plain, ahead] = [None, Some(16)].map(|blocks| scattered(device, blocks));
        let [[plain_s, plain_ms], [ahead_s, ahead_ms]] = [&plain, &ahead].map(|metrics| {
            [reading_s(metrics), metrics["mean_response_ms"].as_f64().expect("a number")]
        });
        let line = format!(
            "| `{device}` | {held} | {plain_s:.2} | {ahead_s:.2} | {plain_ms:.3} | {ahead_ms:.3} |\n"
        );
        table.push_str(&line);
    }
    documented("docs/concepts/drives-of-today.md", "several", &table);
}
