//! What is served many at a time is what is served one by one: documents, series and progress, byte
//! for byte.

use std::fmt::Write;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::log_run;
use super::policies::Policies;
use super::prepared::Prepared;
use crate::config::LayoutExperiment;
use crate::config::layout::Layout;
use crate::places::Places;

/// The document and the tables of a run, or why there is none.
fn outcome(config: &Value, one_by_one: bool) -> Result<Vec<(String, Vec<u8>)>, String> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let experiment = LayoutExperiment::from_value(config.clone()).expect("it is well formed");
    let places = Places { base: root, catalogue: &root.join("devices") };
    let policies = Policies::default();
    let mut prepared =
        Prepared::new(&experiment, places, &policies).map_err(|why| why.to_string())?;
    prepared.one_by_one = one_by_one;
    let Layout::Log(layout) = &experiment.layout else { panic!("a log was asked for") };
    let mut told = Vec::new();
    let mut progress = |requests| {
        told.push(requests);
        true
    };
    let outcome = log_run::run(&prepared, layout, &mut progress);
    let directory = tempfile::tempdir().expect("a folder");
    outcome.map_err(|why| why.to_string())?.write(directory.path()).expect("it is written");
    let entries = directory.path().read_dir().expect("it is read");
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("it is read").path();
            let bytes = std::fs::read(&path).expect("it is read");
            (path.file_name().expect("a name").to_string_lossy().into_owned(), bytes)
        })
        .collect();
    files.push(("progress".into(), format!("{told:?}").into_bytes()));
    files.sort();
    Ok(files)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn updates_served_many_at_a_time_are_those_served_one_by_one(
        (kind, fill) in (
            prop::sample::select(vec!["random-update", "hot-cold", "zipf", "sequential"]),
            prop::sample::select(vec!["before", "measured"]),
        ),
        blocks in 300_u32..4_000,
        updates_per_block in 1_u32..6,
        (utilization, preallocated) in (0.3..0.8, prop::sample::select(vec![0.0, 0.0, 0.1])),
        segment in prop::sample::select(vec!["28 KiB", "64 KiB", "128 KiB"]),
        buffer in prop::sample::select(vec!["segment", "segment", "20 KiB", "block", "1 MiB"]),
        (sync_every, flush, interval) in (
            prop::sample::select(vec![0, 0, 1, 2, 5, 100]),
            prop::sample::select(vec!["0 s", "30 s", "1 ns"]),
            prop::sample::select(vec!["0 s", "0 s", "3 ms"]),
        ),
        collect in prop::sample::select(vec!["clean", "clean", "plug", "thread", "adaptive"]),
        (victim, placement) in (
            prop::sample::select(vec!["greedy", "greedy", "cost-age", "cost-age-cache", "fifo"]),
            prop::sample::select(vec!["none", "none", "user-collected", "sepbit"]),
        ),
        (trigger, record) in (
            prop::sample::select(vec!["no-free-segment", "no-free-segment", "garbage"]),
            any::<bool>(),
        ),
        seed in 0_u32..100,
    ) {
        let config = json!({
            "workload": {
                "kind": kind, "blocks": blocks, "updates_per_block": updates_per_block,
                "utilization": utilization, "fill": fill, "interval": interval,
                "preallocated": preallocated,
            },
            "host": { "buffer_size": buffer, "sync_every": sync_every, "flush_interval": flush },
            "layout": {
                "kind": "lfs", "block_size": "4 KiB", "segment_size": segment, "victim": victim,
                "collect": collect, "placement": placement, "trigger": trigger,
            },
            "device": { "kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s" },
            "run": { "seed": seed, "record": record },
        });
        prop_assert!(outcome(&config, false) == outcome(&config, true), "{}", config);
    }

    #[test]
    fn reads_of_one_block_are_those_served_one_by_one(
        requests in prop::collection::vec(
            (0_u32..3, 0_u64..400, 1_u32..20, 0_u8..5, 0_u8..8), 1..600
        ),
        (client, server) in (
            prop::sample::select(vec!["0 B", "0 B", "64 KiB"]),
            prop::sample::select(vec!["0 B", "128 KiB", "1 MiB", "8 MiB"]),
        ),
        eviction in prop::sample::select(vec!["lru", "fifo", "arc", "sieve", "s3-fifo"]),
        (buffer, flush, sync_every) in (
            prop::sample::select(vec!["segment", "block"]),
            prop::sample::select(vec!["0 s", "3 s", "30 s"]),
            prop::sample::select(vec![0, 0, 3]),
        ),
        (idle, prefetch, overhead) in (
            prop::sample::select(vec!["none", "none", "none", "clean"]),
            prop::sample::select(vec!["none", "none", "none", "sequential"]),
            prop::sample::select(vec!["0 s", "0 s", "1 ms"]),
        ),
        (collect, victim) in (
            prop::sample::select(vec!["clean", "thread", "adaptive"]),
            prop::sample::select(vec!["greedy", "cost-age-cache"]),
        ),
        // One that has no mechanics, one that takes a command at a time, one that holds several.
        (drive, record) in (
            prop::sample::select(vec!["simple", "simple", "hp-97560", "hgst-hus728t8tale6l4"]),
            prop::sample::select(vec![false, false, true]),
        ),
    ) {
        let (mut trace, mut time_s) = (String::new(), 0);
        for (step, block, sectors, write, device) in requests {
            // Mostly single blocks, read one after another.
            time_s += step / 2;
            let sectors = if sectors > 8 { 8 } else { sectors };
            let (write, device) = (u8::from(write == 0), u8::from(device == 0));
            writeln!(trace, "{time_s},{},{sectors},{write},{device}", block * 8).expect("text");
        }
        let directory = tempfile::tempdir().expect("a folder");
        let path = directory.path().join("requests.csv");
        std::fs::write(&path, trace).expect("it is written");
        let device = match drive {
            "simple" => json!({ "kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s" }),
            model => json!({ "model": model }),
        };
        let server = if prefetch == "none" { server } else { "1 MiB" };
        let config = json!({
            "workload": {
                "kind": "trace", "path": path, "format": "tencent", "utilization": 0.3,
            },
            "host": {
                "client_cache": client, "server_cache": server, "eviction": eviction,
                "buffer_size": buffer, "flush_interval": flush, "sync_every": sync_every,
                "idle_cleaning": idle, "prefetch": prefetch, "read_overhead": overhead,
                "write_overhead": overhead,
            },
            "layout": {
                "kind": "lfs", "block_size": "4 KiB", "segment_size": "32 KiB",
                "collect": collect, "victim": victim,
            },
            "device": device,
            "run": { "record": record },
        });
        prop_assert!(outcome(&config, false) == outcome(&config, true), "{}", config);
    }
}
