//! Whole experiments on small hand-made traces, with results worked out by hand.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use agewell_sim::Experiment;
use agewell_sim::{Outcome, Places, RunError, run};
use serde_json::{Value, json};

/// Three requests: two that meet, one alone. `R/W buffer lbn blocks response_us think_us`: see the
/// format's page.
const MEASURED: &str = "R Hit 100 2 5000 1000\nW Hit 5000 4 7000 2500\nR Hit 102 2 4000 0\n";

/// The same kind of requests with arrival times: `ms device block blocks flags`, flag bit 0 = read.
const ARRIVALS: &str = "0.0 0 100 2 1\n1.0 0 5000 4 0\n100.0 0 102 2 1\n";

fn simple_device() -> Value {
    json!({
        "kind": "simple", "capacity": "9999872 B", "access_time": "10 ms", "bandwidth": "1 MB/s",
    })
}

fn simulate(directory: &Path, config: &Value) -> Result<Outcome, RunError> {
    let experiment = Experiment::from_value(config.clone())?;
    let again = Experiment::from_value(experiment.resolved())?;
    assert_eq!(again, experiment, "the resolved configuration is the experiment");
    run(&experiment, Places { base: directory, catalogue: directory }, &mut |_| true)
}

fn directory_with(name: &str, text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(name), text).unwrap();
    directory
}

fn arrivals_config() -> Value {
    json!({
        "workload": { "kind": "trace", "path": "arrivals.trace", "format": "disksim-ascii" },
        "device": simple_device(),
    })
}

#[test]
fn open_replay_gives_the_times_worked_out_by_hand() {
    let directory = directory_with("arrivals.trace", ARRIVALS);
    let outcome = simulate(directory.path(), &arrivals_config()).unwrap();
    // Service: 10 ms + 1.024, 2.048, 1.024 ms. The second waits from 1.0 until 11.024 ms.
    let metrics = &outcome.document["metrics"];
    let service_ms = (11.024 + 12.048 + 11.024) / 3.0;
    let response_ms = (11.024 + (11.024 + 12.048 - 1.0) + 11.024) / 3.0;
    assert_eq!(metrics["requests"], 3);
    assert!((metrics["mean_service_ms"].as_f64().unwrap() - service_ms).abs() < 1e-9);
    assert!((metrics["mean_response_ms"].as_f64().unwrap() - response_ms).abs() < 1e-9);
    assert_eq!(metrics["disk_seconds"], 0.034_096);
}

#[test]
fn closed_replay_issues_after_the_simulated_completion() {
    let directory = directory_with("measured.trace", MEASURED);
    let mut config = arrivals_config();
    config["workload"] = json!({
        "kind": "trace", "path": "measured.trace", "format": "disksim-validate", "replay": "closed",
    });
    let outcome = simulate(directory.path(), &config).unwrap();
    // 11.024 + think 1.0 + 12.048 + think 2.5 + 11.024: nothing ever waits.
    assert_eq!(outcome.block_metrics().unwrap().0.last_finish.0, 37_596_000);
    let all = outcome.block_metrics().unwrap().0.all();
    assert_eq!(all.response_ns, all.service_ns);
}

#[test]
fn closed_replay_of_a_trace_without_completions_is_refused() {
    let directory = directory_with("arrivals.trace", ARRIVALS);
    let mut config = arrivals_config();
    config["workload"]["replay"] = json!("closed");
    let error = simulate(directory.path(), &config).unwrap_err();
    assert!(error.is_input());
    assert!(error.to_string().contains("replay = \"open\""), "{error}");
}

#[test]
fn an_address_beyond_the_device_is_refused_skipped_or_wrapped_as_asked() {
    let directory = directory_with("arrivals.trace", "0.0 0 100 2 1\n1.0 0 19530 4 0\n");
    let mut config = arrivals_config();
    let error = simulate(directory.path(), &config).unwrap_err();
    assert!(error.is_input());
    assert!(error.to_string().contains("request 2 reaches from sector 19530"), "{error}");
    config["workload"]["beyond_capacity"] = json!("skip");
    let outcome = simulate(directory.path(), &config).unwrap();
    assert_eq!(outcome.document["metrics"]["requests"], 1);
    assert_eq!(outcome.document["warnings"][0], "1 requests beyond the device left out");
    config["workload"]["beyond_capacity"] = json!("wrap");
    let outcome = simulate(directory.path(), &config).unwrap();
    assert_eq!(outcome.document["metrics"]["requests"], 2);
}

#[test]
fn the_same_experiment_gives_the_same_bytes() {
    let config = json!({
        "workload": { "kind": "poisson", "requests": 5000, "rate_per_s": 60.0, "disks": 2 },
        "remap": { "kind": "shuffle", "quantum": "block", "interval": "10 s", "links": true },
        "queue": { "discipline": "c-scan" },
        "device": {
            "kind": "simple", "capacity": "64 MiB", "access_time": "10 ms", "bandwidth": "1 MB/s",
        },
        "run": { "seed": 7, "series_interval": "10 s" },
    });
    let written = |_: usize| {
        let directory = tempfile::tempdir().unwrap();
        let outcome = simulate(directory.path(), &config).unwrap();
        outcome.write(directory.path()).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
            .iter()
            .map(|path| (path.file_name().unwrap().to_owned(), fs::read(path).unwrap()))
            .collect::<Vec<_>>()
    };
    let (first, second) = (written(1), written(2));
    assert_eq!(first.len(), 3);
    assert!(first == second, "two runs differ");
}

#[test]
fn shuffling_loses_no_request_and_serves_the_pieces_of_split_ones() {
    let config = json!({
        "workload": {
            "kind": "poisson", "requests": 4000, "rate_per_s": 40.0, "request_size": "24 KiB",
        },
        "remap": { "kind": "shuffle", "quantum": "block", "interval": "20 s" },
        "device": {
            "kind": "simple", "capacity": "16 MiB", "access_time": "1 ms", "bandwidth": "10 MB/s",
        },
        "run": { "series_interval": "10 s" },
    });
    let directory = tempfile::tempdir().unwrap();
    let outcome = simulate(directory.path(), &config).unwrap();
    let baseline = outcome.block_metrics().unwrap().1.expect("a comparison by default");
    assert_eq!(outcome.block_metrics().unwrap().0.all().requests, baseline.all().requests);
    assert_eq!(outcome.block_metrics().unwrap().0.all().sectors, baseline.all().sectors);
    assert!(outcome.block_metrics().unwrap().0.split_requests > 0);
    assert!(outcome.block_metrics().unwrap().0.physical > baseline.physical);
    assert_eq!(baseline.physical, 4000);
    // On a device without an arm every split costs an access more, so shuffling can only lose.
    assert!(outcome.document["metrics"]["weighted_improvement_pct"].as_f64().unwrap() < 0.0);
}

#[test]
fn moves_in_idle_time_cost_the_disk_time_and_arrive_in_the_end() {
    let mut config = json!({
        "workload": { "kind": "poisson", "requests": 3000, "rate_per_s": 2.0 },
        "remap": {
            "kind": "shuffle", "quantum": "block", "interval": "once", "first_after": "60 s",
        },
        "device": {
            "kind": "simple", "capacity": "16 MiB", "access_time": "1 ms", "bandwidth": "10 MB/s",
        },
    });
    let directory = tempfile::tempdir().unwrap();
    let instant = simulate(directory.path(), &config).unwrap();
    config["remap"]["moves"] = json!("idle");
    let idle = simulate(directory.path(), &config).unwrap();
    assert_eq!(instant.document["metrics"]["move_ios"], 0);
    assert!(idle.document["metrics"]["move_ios"].as_u64().unwrap() > 0);
    assert!(idle.document["metrics"]["move_disk_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(idle.document["metrics"]["moves_left"], 0);
    let moved = |outcome: &Outcome| outcome.document["metrics"]["moved_quanta"].clone();
    assert_eq!(moved(&idle), moved(&instant));
}

#[test]
fn a_window_of_the_day_needs_to_know_the_time_of_day() {
    let directory = directory_with("arrivals.trace", ARRIVALS);
    let mut config = arrivals_config();
    config["run"] = json!({ "exclude_daily": ["03:00..06:00"] });
    let error = simulate(directory.path(), &config).unwrap_err();
    assert!(error.to_string().contains("time of day"), "{error}");
}

#[test]
fn mistakes_in_the_configuration_are_one_helpful_line() {
    let wrong = |table: &str, value: Value| {
        let mut config = arrivals_config();
        config[table] = value;
        Experiment::from_value(config).unwrap_err().to_string()
    };
    assert_eq!(
        wrong("queue", json!({ "dicipline": "fcfs" })),
        "[queue]: unknown key 'dicipline'; did you mean 'discipline'?"
    );
    assert_eq!(wrong("qeue", json!({})), "experiment: unknown key 'qeue'; did you mean 'queue'?");
    assert!(wrong("remap", json!({ "kind": "shufle" })).contains("shuffle"));
    assert!(wrong("remap", json!({ "kind": "shuffle", "interval": 3 })).starts_with("[remap]: "));
    assert!(wrong("workload", json!({ "kind": "trace" })).contains("'path' is missing"));
    for message in [wrong("run", json!({ "seed": -1 })), wrong("device", json!({}))] {
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn a_run_stops_when_asked_to() {
    let directory = directory_with("arrivals.trace", ARRIVALS);
    let experiment = Experiment::from_value(arrivals_config()).unwrap();
    let places = Places { base: directory.path(), catalogue: directory.path() };
    assert!(matches!(run(&experiment, places, &mut |_| false), Err(RunError::Interrupted)));
}

/// Four zones of 1 MiB, the first conventional, on a disk of 10 ms and 1 MB/s.
fn zoned_device(management: &str) -> Value {
    let mut zones = json!({ "size": "1 MiB", "management": management });
    match management {
        "host" => zones["conventional_zones"] = json!(1),
        _ => zones["cache"] = json!("1 MiB"),
    }
    json!({
        "name": "zones", "kind": "zoned", "drive": "simple", "capacity_sectors": 8192,
        "simple": { "access_time_ms": 10.0, "bandwidth": "1 MB/s" }, "write_zones": zones,
    })
}

fn log_of_writes(lines: &[(&str, u64, u64)]) -> tempfile::TempDir {
    let mut text = "fio version 3 iolog\n0 /d add\n0 /d open\n".to_owned();
    for (number, (action, offset, bytes)) in lines.iter().enumerate() {
        let time_ms = 1000 * (number + 1);
        writeln!(text, "{time_ms} /d {action} {offset} {bytes}").expect("a text takes it");
    }
    directory_with("written.log", &text)
}

fn zoned_config(management: &str) -> Value {
    json!({
        "workload": { "kind": "trace", "path": "written.log", "format": "fio-iolog" },
        "device": zoned_device(management),
    })
}

const MIB: u64 = 1 << 20;

#[test]
fn a_trace_that_writes_in_zones_runs_on_a_host_managed_drive() {
    let directory = log_of_writes(&[
        ("write", MIB, 4096),
        ("write", MIB + 4096, 4096),
        ("write", 4096, 4096),
        ("read", MIB + 4096, 4096),
        ("trim", MIB, MIB),
        ("write", MIB, 8192),
    ]);
    let outcome = simulate(directory.path(), &zoned_config("host")).unwrap();
    let metrics = &outcome.document["metrics"];
    // The reset of the zone takes its turn, and is no request of the metrics.
    assert_eq!(metrics["requests"], 5);
    assert_eq!(metrics["requests_without_transfer"], 0);
    assert_eq!(metrics["disk_seconds"], 0.05 + 6.0 * 4096.0 / 1e6);
}

#[test]
fn a_trace_that_writes_out_of_order_is_refused_by_a_host_managed_drive_only() {
    let directory = log_of_writes(&[
        ("write", MIB, 4096),
        ("read", 2 * MIB, 4096),
        ("write", MIB + 8192, 4096),
    ]);
    let error = simulate(directory.path(), &zoned_config("host")).unwrap_err();
    assert!(error.is_input());
    let text = error.to_string();
    assert!(text.contains("zone 1 is written in order and continues at sector 2056"), "{text}");
    assert!(text.contains("management = \"drive\"") && !text.contains('\n'), "{text}");
    let outcome = simulate(directory.path(), &zoned_config("drive")).unwrap();
    assert_eq!(outcome.document["metrics"]["requests"], 3);
}

#[test]
fn what_writes_anywhere_does_not_go_onto_a_host_managed_drive() {
    let directory = log_of_writes(&[("write", MIB, 4096)]);
    let mut config = zoned_config("host");
    config["remap"] = json!({ "kind": "shuffle", "quantum": "cylinder", "interval": "1 h" });
    let text = simulate(directory.path(), &config).unwrap_err().to_string();
    assert!(text.contains("[remap]") && text.contains("zone by zone"), "{text}");
}

#[test]
fn flash_hears_of_discards_and_serves_what_is_left() {
    let directory = log_of_writes(&[
        ("write", 0, 65_536),
        ("trim", 0, 65_536),
        ("read", 0, 65_536),
        ("read", MIB, 65_536),
    ]);
    let config = json!({
        "workload": { "kind": "trace", "path": "written.log", "format": "fio-iolog" },
        "device": {
            "name": "flash", "kind": "flash", "capacity_sectors": 131_072,
            "flash": {
                "channels": 2, "dies_per_channel": 2, "page": "16 KiB", "pages_per_block": 16,
                "over_provisioning": 0.1, "placement": "write-order",
                "read_ms": 0.05, "program_ms": 0.4, "erase_ms": 3.0,
                "channel_rate": "16384 MB/s", "link_rate": "65536 MB/s", "queue_depth": 32,
                "write_buffer": "64 KiB",
            },
        },
    });
    let outcome = simulate(directory.path(), &config).unwrap();
    assert_eq!(outcome.document["metrics"]["requests"], 3);
    // The write and the read of what was discarded cross the link only, 1 us each; the last read
    // senses a page on each of four dies; each channel carries two, 1 us each, the link the last two.
    let (write, discarded, sensed) = (1.0, 1.0, 50.0 + 2.0 + 2.0 * 0.25);
    let expected = (write + discarded + sensed) / 1e6;
    let disk_seconds = outcome.document["metrics"]["disk_seconds"].as_f64().unwrap();
    assert!((disk_seconds - expected).abs() < 1e-12, "{disk_seconds}, {expected}");
}
