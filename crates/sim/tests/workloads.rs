//! Every kind of generated workload, read from a configuration and run over a log.

mod simulated;

use agewell_sim::RunError;
use serde_json::{Value, json};
use simulated::simulate;

fn finished(workload: &Value) -> Result<Value, RunError> {
    let config = json!({
        "workload": workload,
        "host": { "client_cache": "0 B", "server_cache": "1 MiB" },
        "layout": { "kind": "lfs", "segment_size": "128 KiB", "block_size": "8 KiB" },
        "device": { "kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s" },
        "run": { "lower_bound": false },
    });
    simulate(&config)
}

/// A small one of each family: its table, and clients and reads that it must have.
fn families() -> Vec<Value> {
    vec![
        json!({ "kind": "multimedia", "films": 6, "film_blocks_min": 16, "film_blocks_max": 64,
            "plays": 40, "recordings": 3, "block_time": "10 ms" }),
        json!({ "kind": "software-development", "developers": 2, "projects": 3, "sources": 12,
            "headers": 10, "includes": 3, "cycles": 30, "think": "10 s" }),
        json!({ "kind": "transaction-processing", "accounts": 20_000, "log_blocks": 32,
            "transactions": 2_000, "terminals": 3 }),
        json!({ "kind": "decision-support", "table_blocks": 400, "queries": 20,
            "query_entries": 300, "load_every": 5 }),
        json!({ "kind": "scientific-simulation", "inputs": 5, "input_blocks_min": 16,
            "experiments": 12, "output_blocks_min": 8 }),
        json!({ "kind": "long-term", "machines": 3, "weeks": 2, "programs": 20, "libraries": 6,
            "runs": 200 }),
    ]
}

#[test]
fn every_family_runs_and_reads_what_is_there() {
    for workload in families() {
        let document = finished(&workload).unwrap();
        let metrics = &document["metrics"];
        assert!(metrics["requests"].as_u64().unwrap() > 100, "{workload}");
        assert!(metrics["disk_reads"].as_u64().unwrap() > 100, "{workload}");
        assert!(metrics["new_blocks"].as_u64().unwrap() > 50, "{workload}");
        assert_eq!(document, finished(&workload).unwrap(), "the same again: {workload}");
    }
}

#[test]
fn what_is_wrong_with_a_family_is_one_line() {
    let told = |workload: Value| finished(&workload).unwrap_err().to_string();
    let zero = told(json!({ "kind": "multimedia", "films": 0 }));
    assert_eq!(zero, "[workload]: workload multimedia: films is 0; it must be at least 1");
    let stranger = told(json!({ "kind": "long-term", "machine": 3 }));
    assert!(stranger.contains("did you mean 'machines'?"), "{stranger}");
    let share = told(json!({ "kind": "decision-support", "scan_share": 1.5 }));
    assert!(share.contains("scan_share must be a number from 0 to 1"), "{share}");
}
