//! Every layout of blocks under the same requests on the same disk, as a whole.

use std::path::Path;

use agewell_sim::{AnyExperiment, Places, RunError, run};
use serde_json::{Value, json};

fn simulate(config: &Value) -> Result<Value, RunError> {
    let experiment = AnyExperiment::from_value(config.clone())?;
    let again = AnyExperiment::from_value(experiment.resolved())?;
    assert_eq!(again, experiment, "the resolved configuration is the experiment");
    let catalogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices");
    let places = Places { base: Path::new("."), catalogue: &catalogue };
    run(&experiment, places, &mut |_| true).map(|outcome| outcome.document)
}

/// A small file, written, written again and read, on the drive of Matthews 1999, §6.2.2.
fn microbenchmark(write: &str, preallocated: f64, layout: Value) -> Value {
    json!({
        "workload": {
            "kind": "microbenchmark", "blocks": 6000, "write": write, "read": "sequential",
            "reads": 1, "utilization": 0.5 + preallocated, "preallocated": preallocated,
        },
        "host": {
            "flush_interval": "0 s", "client_cache": "0 MB", "server_cache": "0 MB",
        },
        "layout": layout,
        "device": { "model": "hp-97560" },
        "run": { "lower_bound": false },
    })
}

fn layouts() -> Vec<Value> {
    vec![
        json!({ "kind": "lfs" }),
        json!({ "kind": "sequential" }),
        json!({ "kind": "write-anywhere" }),
        json!({ "kind": "write-anywhere", "search": "nearest", "recovery": "snapshot" }),
        json!({ "kind": "write-anywhere", "search": "stripe", "recovery": "checkpoint" }),
        json!({ "kind": "ffs", "metadata": false }),
        json!({ "kind": "ffs+realloc" }),
        json!({ "kind": "early-unix", "ordered": false }),
        json!({ "kind": "early-unix", "system_block_size": "8 KiB", "metadata": false }),
    ]
}

#[test]
fn every_layout_runs_a_microbenchmark_at_half_and_at_nine_tenths() {
    for layout in layouts() {
        for preallocated in [0.0, 0.4] {
            let config = microbenchmark("random", preallocated, layout.clone());
            let document = simulate(&config).unwrap_or_else(|why| panic!("{layout}: {why}"));
            let metrics = &document["metrics"];
            let number = |name: &str| metrics[name].as_f64().expect("a number");
            assert_eq!(number("user_blocks"), 12_000.0, "{layout}");
            // All but what a write buffer may still hold.
            let read = number("disk_read_blocks");
            assert!(read > 6000.0 - 32.0 && read <= 6000.0, "{layout}: {read} blocks read");
            assert!(number("disk_seconds") > 25.0, "{layout}: 94 MB written, 47 read, at 2.1 MB/s");
            assert!(number("recovery_seconds") > 0.0, "{layout}");
        }
    }
}

/// Matthews 1999, §6.3.2: updates at random cost little where they go anywhere and much in place;
/// a file that stayed in its places is read faster than one that is scattered.
#[test]
fn writing_anywhere_wins_the_random_write_and_loses_the_sequential_read() {
    let seconds = |layout: Value, name: &str| {
        let document = simulate(&microbenchmark("random", 0.0, layout)).expect("it runs");
        document["metrics"][name].as_f64().expect("a number")
    };
    for in_place in [json!({ "kind": "sequential" }), json!({ "kind": "ffs", "metadata": false })] {
        let anywhere = json!({ "kind": "write-anywhere" });
        let written = |layout: &Value| seconds(layout.clone(), "write_seconds");
        let read = |layout: &Value| seconds(layout.clone(), "read_seconds");
        assert!(written(&anywhere) * 1.2 < written(&in_place), "{in_place}");
        assert!(read(&anywhere) > 2.0 * read(&in_place), "{in_place}");
    }
}
