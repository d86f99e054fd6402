//! Every layout under the same host: what is promised of all of them.

mod layout_tables;

use std::path::Path;

use agewell_sim::{Experiment, Outcome, Places, run};
use agewell_trace::record::BlockBatch;
use agewell_trace::{ReadOptions, open_block_trace};
use layout_tables::layouts;
use serde_json::{Value, json};

/// Loads that read, write, delete and sync.
fn workloads() -> Vec<Value> {
    vec![
        json!({ "kind": "microbenchmark", "blocks": 3000, "write": "random",
            "read": "sequential", "reads": 2, "utilization": 0.7 }),
        json!({ "kind": "microbenchmark", "blocks": 3000, "write": "pattern",
            "read": "pattern", "utilization": 0.9, "preallocated": 0.4 }),
        json!({ "kind": "random-update", "blocks": 2000, "updates_per_block": 3,
            "utilization": 0.8 }),
        json!({ "kind": "tpcb", "transactions": 600, "account_blocks": 2000, "accounts": 20_000,
            "cache_blocks": 100, "utilization": 0.85 }),
    ]
}

fn devices() -> Vec<Value> {
    vec![
        json!({ "kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s" }),
        json!({ "model": "hp-c3323a" }),
        // These hold several commands: one nearest first, one all at once.
        json!({ "model": "hgst-hus728t8tale6l4" }),
        json!({ "model": "samsung-970-pro" }),
    ]
}

fn experiment(layout: &Value, workload: &Value, device: &Value) -> Experiment {
    let value = json!({
        "workload": workload,
        "host": { "client_cache": "1 MB", "server_cache": "2 MB", "sync_every": 16 },
        "layout": layout,
        "device": device,
        "run": { "record": true, "lower_bound": false },
    });
    Experiment::from_value(value).expect("the experiment is well formed")
}

fn finished(experiment: &Experiment) -> Outcome {
    let catalogue = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices"));
    let places = Places { base: Path::new("."), catalogue };
    run(experiment, places, &mut |_| true).expect("the run ends")
}

fn written(outcome: &Outcome) -> (tempfile::TempDir, BlockBatch) {
    let directory = tempfile::tempdir().expect("a folder");
    outcome.write(directory.path()).expect("the result is written");
    let path = directory.path().join("requests.parquet");
    let mut trace =
        open_block_trace(&path, &ReadOptions::default()).expect("a trace like any other");
    let (mut requests, mut batch) = (BlockBatch::default(), BlockBatch::default());
    while trace.next_batch(&mut batch).expect("it is whole") {
        for row in 0..batch.len() {
            requests.push(batch.row(row));
        }
    }
    (directory, requests)
}

/// Device, beginning and end of each request, in this order.
fn spans(requests: &BlockBatch) -> Vec<(u32, u64, u64)> {
    let mut spans: Vec<_> = (0..requests.len())
        .map(|row| requests.row(row))
        .map(|row| (row.device, row.start_ns, row.finish_ns))
        .collect();
    spans.sort_unstable();
    spans
}

/// Time in which the device had at least one of its requests under way, ns; each device by itself.
fn busy_ns(requests: &BlockBatch) -> u64 {
    let (mut busy_ns, mut until) = (0, (0, 0));
    for (device, start_ns, finish_ns) in spans(requests) {
        if device != until.0 {
            until = (device, 0);
        }
        busy_ns += finish_ns.saturating_sub(start_ns.max(until.1));
        until.1 = until.1.max(finish_ns);
    }
    busy_ns
}

/// Whether each device begins a batch only when all that was issued before is done.
fn begins_when_done(requests: &BlockBatch) -> bool {
    let (mut device, mut began_ns, mut before_ns, mut done_ns) = (u32::MAX, 0, 0, 0);
    spans(requests).into_iter().all(|(on, start_ns, finish_ns)| {
        if on != device {
            (device, began_ns, before_ns, done_ns) = (on, start_ns, 0, 0);
        } else if start_ns != began_ns {
            (began_ns, before_ns) = (start_ns, done_ns);
        }
        done_ns = done_ns.max(finish_ns);
        start_ns >= before_ns
    })
}

#[test]
fn the_disk_was_busy_for_as_long_as_its_requests_took() {
    for layout in layouts() {
        for workload in workloads() {
            for device in devices() {
                let outcome = finished(&experiment(&layout, &workload, &device));
                let (_folder, requests) = written(&outcome);
                let busy_ns = busy_ns(&requests);
                let taken = requests.finish_ns.iter().zip(&requests.start_ns);
                let taken_ns: u64 = taken.map(|(finish, start)| finish - start).sum();
                let metrics = &outcome.document["metrics"];
                let disk_s = metrics["disk_seconds"].as_f64().expect("a number");
                let case = format!("{layout} {workload} {device}");
                assert!((busy_ns as f64 / 1e9 - disk_s).abs() < 1e-6, "{case}");
                assert!(begins_when_done(&requests), "{case}");
                // Only where several commands are held does any of it overlap.
                assert!(busy_ns <= taken_ns, "{case}");
                assert!(busy_ns == taken_ns || device["model"] != "hp-c3323a", "{case}");
                assert!(requests.enqueue_ns.windows(2).all(|pair| pair[0] <= pair[1]), "{case}");
                let asked = requests.enqueue_ns.iter().zip(&requests.start_ns);
                assert!(asked.clone().all(|(asked, start)| asked <= start), "{case}");
                // Only a journal's own disk works while another is waited for.
                let is_waited_for = asked.clone().all(|(asked, start)| asked == start);
                assert!(is_waited_for || layout["journal_place"] == "own-disk", "{case}");
            }
        }
    }
}

#[test]
fn the_same_operations_give_the_same_requests_byte_for_byte() {
    let devices = devices();
    for layout in layouts() {
        for (number, workload) in workloads().iter().enumerate() {
            let device = &devices[1 + number % (devices.len() - 1)];
            let experiment = experiment(&layout, workload, device);
            let (one, _) = written(&finished(&experiment));
            let (other, _) = written(&finished(&experiment));
            for name in ["requests.parquet", "throughput.parquet", "result.json"] {
                let read = |folder: &Path| std::fs::read(folder.join(name)).expect("written");
                assert_eq!(read(one.path()), read(other.path()), "{name}: {layout} {workload}");
            }
        }
    }
}

#[test]
fn a_result_says_its_configuration_in_full() {
    for layout in layouts() {
        let asked = experiment(&layout, &workloads()[0], &devices()[0]);
        let again = Experiment::from_value(asked.resolved()).expect("what was resolved is read");
        assert_eq!(asked, again, "{layout}");
    }
}
