//! Requests per second through the whole event loop: source, queue, device, accounting.
//!
//! `synthetic` is the load of DiskSim 4.0's `synthopen` experiment in outline (three disks, open
//! arrivals, two thirds reads), for which DiskSim itself reaches about 50,000 requests a second of
//! processor time (gcc -O2). Bound: the mechanical model (address translation, seek table,
//! rotation), then the queue.

use std::hint::black_box;
use std::path::Path;

use agewell_sim::AnyExperiment;
use agewell_sim::{Outcome, Places, run};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Value, json};

const REQUESTS: u64 = 100_000;

fn synthetic(remap: &Value) -> Value {
    json!({
        "workload": {
            "kind": "poisson", "requests": REQUESTS, "rate_per_s": 120.0, "read_fraction": 0.66,
            "sequential_fraction": 0.2, "request_size": "8 KiB", "disks": 3,
        },
        "remap": remap,
        "queue": { "discipline": "c-scan" },
        "device": { "model": "hp-c2249a" },
        "run": { "baseline": false },
    })
}

fn simulate(config: &Value) -> Outcome {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let experiment = AnyExperiment::from_value(config.clone()).expect("a well-formed experiment");
    let places = Places { base: root, catalogue: &root.join("devices") };
    run(&experiment, places, &mut |_| true).expect("the run succeeds")
}

fn event_loop(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sim");
    group.sample_size(20);
    group.throughput(Throughput::Elements(REQUESTS));
    let plain = synthetic(&json!({ "kind": "none" }));
    group.bench_function("synthetic/as it lies", |bencher| {
        bencher.iter(|| black_box(simulate(&plain)));
    });
    let shuffled = synthetic(&json!({ "kind": "shuffle", "interval": "5 min" }));
    group.bench_function("synthetic/shuffled", |bencher| {
        bencher.iter(|| black_box(simulate(&shuffled)));
    });
    group.finish();
}

criterion_group!(benches, event_loop);
criterion_main!(benches);
