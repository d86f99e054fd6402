//! Requests per second through the whole event loop: source, queue, device, accounting; and through
//! whole runs of a log, from the configuration to the result document.
//!
//! `log/...` is user writes a second as `agewell run` does them, the start of Python left out: drawing
//! the updates, the host, the log with its cleaning, the disk, the series. `cache/lru` is references
//! to the host's cache, the trace's reading and hashing in them. Bound: misses of the processor's
//! second cache in the map of the log, and in the index and the list of the cache.
//!
//! `synthetic` is the load of DiskSim 4.0's `synthopen` experiment in outline (three disks, open
//! arrivals, two thirds reads), for which DiskSim itself reaches about 50,000 requests a second of
//! processor time (gcc -O2). Bound: the mechanical model (address translation, seek table,
//! rotation), then the queue.

use std::hint::black_box;
use std::path::Path;

use agewell_core::{RandomStreams, uniform_below};
use agewell_sim::Experiment;
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
    let experiment = Experiment::from_value(config.clone()).expect("a well-formed experiment");
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

/// Blocks of the log, and updates of each.
const LOG_BLOCKS: u32 = 1 << 18;
const UPDATES_PER_BLOCK: u32 = 20;

fn greedy_log(utilization: f64, buffer: &str) -> Value {
    json!({
        "workload": {
            "kind": "random-update", "blocks": LOG_BLOCKS, "updates_per_block": UPDATES_PER_BLOCK,
            "utilization": utilization,
        },
        "host": { "buffer_size": buffer },
        "layout": {
            "kind": "lfs", "segment_size": "2 MiB", "block_size": "4 KiB", "victim": "greedy",
            "collect": "clean",
        },
        "device": { "kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s" },
    })
}

fn whole_runs_of_a_log(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sim");
    group.sample_size(10);
    group.throughput(Throughput::Elements(u64::from(LOG_BLOCKS) * u64::from(UPDATES_PER_BLOCK)));
    for (name, utilization, buffer) in [
        ("log/greedy_85", 0.85, "segment"),
        ("log/greedy_50", 0.5, "segment"),
        ("log/greedy_85_unbuffered", 0.85, "block"),
    ] {
        let config = greedy_log(utilization, buffer);
        group.bench_function(name, |bencher| bencher.iter(|| black_box(simulate(&config))));
    }
    group.finish();
}

/// References of the trace, and the blocks that they go to.
const REFERENCES: u64 = 1_000_000;
const REFERENCED_BLOCKS: u64 = 200_000;

/// A trace of references in libCacheSim's oracleGeneral: most go to few blocks.
fn references() -> Vec<u8> {
    let mut stream = RandomStreams::new(1).stream("references");
    let mut bytes = Vec::new();
    for number in 0..REFERENCES {
        let within = uniform_below(&mut stream, REFERENCED_BLOCKS) + 1;
        let sector = uniform_below(&mut stream, within) * 8;
        bytes.extend_from_slice(&((number / 1000) as u32).to_le_bytes());
        bytes.extend_from_slice(&sector.to_le_bytes());
        bytes.extend_from_slice(&4096_u32.to_le_bytes());
        bytes.extend_from_slice(&(-1_i64).to_le_bytes());
    }
    bytes
}

fn whole_run_of_a_cache(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a folder for the trace");
    let path = directory.path().join("references.bin");
    std::fs::write(&path, references()).expect("the trace is written");
    let config = json!({
        "workload": {
            "kind": "trace", "path": path, "format": "oracle-general", "utilization": 0.5,
        },
        "host": { "client_cache": "0 B", "server_cache": "256 MiB" },
        "layout": { "kind": "lfs", "block_size": "4 KiB", "collect": "clean" },
        "device": { "kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s" },
    });
    let mut group = criterion.benchmark_group("sim");
    group.sample_size(10);
    group.throughput(Throughput::Elements(REFERENCES));
    group.bench_function("cache/lru", |bencher| bencher.iter(|| black_box(simulate(&config))));
    group.finish();
}

criterion_group!(benches, event_loop, whole_runs_of_a_log, whole_run_of_a_cache);
criterion_main!(benches);
