//! Log-structured runs as a whole: against an independent simulation, against themselves, and
//! refused where they cannot be.

mod simulated;

use serde_json::{Value, json};
use simulated::simulate;

/// The live data is no whole number of segments: else flushes of four blocks stay in step with the
/// segments until the first of them holds the same block twice, which is a matter of luck.
fn random_update(utilization: f64, collect: &str) -> Value {
    json!({
        "workload": { "kind": "random-update", "utilization": utilization, "blocks": 79_990 },
        "host": { "sync_every": 4 },
        "layout": {
            "kind": "lfs", "segment_size": "256 KiB", "block_size": "8 KiB", "collect": collect,
            "join_holes": false,
        },
        "device": { "kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s" },
    })
}

fn metric(config: &Value, name: &str) -> f64 {
    simulate(config).unwrap()["metrics"][name].as_f64().unwrap()
}

/// Overall write costs that another simulator gave for the same choices (256 KB segments of 8 KB,
/// sync after every fourth write, 15 ms and 5 MB/s, greedy), by utilization: cleaning, plugging.
const INDEPENDENT: [(f64, f64, f64); 8] = [
    (0.50, 5.4, 6.3),
    (0.70, 6.9, 8.1),
    (0.80, 8.7, 9.2),
    (0.85, 10.5, 9.9),
    (0.90, 13.9, 10.8),
    (0.95, 22.5, 11.9),
    (0.98, 40.5, 12.9),
    (0.99, 60.7, 13.5),
];

#[test]
fn random_update_costs_what_an_independent_simulation_says() {
    for (utilization, clean, plug) in INDEPENDENT {
        for (collect, theirs) in [("clean", clean), ("plug", plug)] {
            let ours = metric(&random_update(utilization, collect), "overall_write_cost");
            let off = ours / theirs - 1.0;
            assert!(off.abs() < 0.05, "{collect} at {utilization}: {ours} against {theirs}");
        }
    }
}

#[test]
fn new_data_in_partial_segments_of_four_blocks_costs_3_54() {
    let cost = metric(&random_update(0.7, "plug"), "new_data_cost");
    assert!((cost - 3.54).abs() < 0.06, "{cost}");
}

/// Ours is a quarter and more below what the paper has, on a disk whose rotation is known.
#[test]
fn threading_beats_the_better_of_cleaning_and_plugging_by_a_quarter() {
    for utilization in [0.95, 0.97, 0.98, 0.99] {
        let cost = |collect: &str| {
            let mut config = random_update(utilization, collect);
            config["layout"]["join_holes"] = json!(true);
            config["device"] = json!({
                "kind": "simple", "seek_time": "9.5 ms", "rotation_time": "11 ms",
                "bandwidth": "5 MB/s",
            });
            metric(&config, "overall_write_cost")
        };
        let [clean, plug, thread] = ["clean", "plug", "thread"].map(cost);
        let adaptive = cost("adaptive");
        assert!(adaptive < 0.75 * clean.min(plug), "{utilization}: {adaptive}");
        assert!(adaptive < 1.02 * clean.min(plug).min(thread), "{utilization}: {adaptive}");
    }
}

#[test]
fn every_choice_runs_and_reads_its_own_configuration_again() {
    let small = |change: &dyn Fn(&mut Value)| {
        let mut config = random_update(0.7, "clean");
        config["workload"]["blocks"] = json!(8_000);
        config["workload"]["updates_per_block"] = json!(2);
        config["layout"]["segment_size"] = json!("64 KiB");
        change(&mut config);
        let document = simulate(&config).unwrap();
        let cost = document["metrics"]["overall_write_cost"].as_f64().unwrap();
        assert!(cost > 1.0 && cost < 100.0, "{cost}: {config}");
        document
    };
    for victim in [
        "greedy",
        "cost-age",
        "cost-age-cache",
        "benefit-root-age",
        "renewal",
        "fifo",
        "random-greedy",
        "windowed-greedy",
    ] {
        small(&|config| config["layout"]["victim"] = json!(victim));
    }
    for placement in [
        "none",
        "user-collected",
        "multi-log",
        "dac",
        "sfs",
        "fadac",
        "sepbit",
        "life-table",
        "collected-life-table",
        "oracle",
    ] {
        small(&|config| config["layout"]["placement"] = json!(placement));
    }
    for header in ["none", "block", "segment"] {
        small(&|config| {
            config["layout"]["header"] = json!(header);
            config["layout"]["collect"] = json!("plug");
        });
    }
    for eviction in ["fifo", "lru", "arc", "sieve", "s3-fifo"] {
        small(&|config| {
            config["host"]["eviction"] = json!(eviction);
            config["layout"]["victim"] = json!("cost-age-cache");
        });
    }
    small(&|config| config["layout"]["collect"] = json!("matthews-1999"));
    small(&|config| {
        config["layout"]["placement"] = json!("user-collected");
        config["layout"]["collected_segment_size"] = json!("256 KiB");
    });
    small(&|config| config["layout"]["zones"] = json!(["0.6 128 KiB", "0.4 64 KiB"]));
    small(&|config| {
        config["layout"]["trigger"] = json!("garbage");
        config["host"]["buffer_size"] = json!("block");
    });
    let document = small(&|config| config["run"] = json!({ "lower_bound": true }));
    let metrics = &document["metrics"];
    let (ours, oracle) =
        (&metrics["write_amplification"], &metrics["lower_bound_write_amplification"]);
    assert!(oracle.as_f64().unwrap() < ours.as_f64().unwrap(), "{oracle} against {ours}");
    let drive = small(&|config| config["device"] = json!({ "model": "hp-97560" }));
    assert!(drive["disk_estimate"]["bandwidth_mb_per_s"].as_f64().unwrap() > 1.5);
}

#[test]
fn the_lower_bound_costs_two_runs_more_and_is_made_if_asked_for() {
    let mut config = random_update(0.7, "clean");
    config["workload"]["blocks"] = json!(2_000);
    let names = ["lower_bound_write_amplification", "lower_bound_overall_write_cost"];
    let plain = simulate(&config).unwrap();
    config["run"] = json!({ "lower_bound": true });
    let bounded = simulate(&config).unwrap();
    for name in names {
        assert!(plain["metrics"].get(name).is_none(), "{name} was not asked for");
        assert!(bounded["metrics"][name].is_number(), "{name} was asked for");
    }
}

#[test]
fn cleaning_in_idle_time_hides_it() {
    let mut config = random_update(0.7, "clean");
    config["workload"]["blocks"] = json!(8_000);
    config["workload"]["interval"] = json!("200 ms");
    let busy = simulate(&config).unwrap();
    config["host"]["idle_cleaning"] = json!("clean");
    let idle = simulate(&config).unwrap();
    let of = |document: &Value, name: &str| document["metrics"][name].as_f64().unwrap();
    assert_eq!(of(&busy, "hidden_seconds").to_bits(), 0.0_f64.to_bits());
    assert!(of(&idle, "hidden_seconds") > 0.0);
    let foreground =
        |document: &Value| of(document, "foreground_write_cost") - of(document, "new_data_cost");
    let (hidden, all) = (foreground(&idle), foreground(&busy));
    assert!(hidden < 0.5 * all, "{hidden} of {all} is left in the foreground");
}

#[test]
fn what_cannot_run_is_refused_with_its_reason() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut config = random_update(0.7, "clean");
        config["workload"]["blocks"] = json!(1_000);
        change(&mut config);
        let error = simulate(&config).unwrap_err();
        assert!(error.is_input(), "{error}");
        let text = error.to_string();
        assert!(!text.contains('\n'), "{text}");
        text
    };
    let utilization =
        |value: f64| refused(&move |config| config["workload"]["utilization"] = json!(value));
    assert!(utilization(1.0).starts_with("[workload]: utilization"), "{}", utilization(1.0));
    assert!(utilization(0.0).starts_with("[workload]: utilization"));
    assert!(utilization(0.999).contains("lower the utilization"), "{}", utilization(0.999));
    let text = refused(&|config| config["workload"]["blocks"] = json!(0));
    assert!(text.starts_with("[workload]: blocks"), "{text}");
    let text = refused(&|config| config["layout"]["segment_size"] = json!("1 GiB"));
    assert!(text.starts_with("[layout]"), "{text}");
    let text = refused(&|config| config["layout"]["segment_size"] = json!("100 KB"));
    assert!(text.starts_with("[layout]: segment_size"), "{text}");
    let text = refused(&|config| config["layout"]["victim"] = json!("gredy"));
    assert!(text.contains("greedy"), "{text}");
    let text = refused(&|config| {
        config["workload"]["blocks"] = json!(1_000_000);
        config["device"] = json!({ "model": "hp-97560" });
    });
    assert!(text.starts_with("[device]") && text.contains("sectors"), "{text}");
    for size in ["4 KiB", "12 KiB", "30 TB"] {
        let text = refused(&|config| config["host"]["buffer_size"] = json!(size));
        assert!(text.starts_with("[host]: buffer_size"), "{text}");
    }
    for zones in [json!(["0.5 64 KiB"]), json!(["half 64 KiB"]), json!(["0.5 64 KiB", "0.5 1 KB"])]
    {
        let text = refused(&|config| config["layout"]["zones"] = zones.clone());
        assert!(text.starts_with("[layout]: zones"), "{text}");
    }
    for mechanisms in [json!([]), json!(["plough"]), json!(["clean", "plug", "clean"])] {
        let text = refused(&|config| {
            config["layout"]["collect"] = json!("adaptive");
            config["layout"]["mechanisms"] = mechanisms.clone();
        });
        assert!(text.starts_with("[layout]: mechanisms"), "{text}");
    }
    let text = refused(&|config| {
        config["layout"]["placement"] = json!("oracle");
        config["layout"]["collect"] = json!("adaptive");
    });
    assert!(text.starts_with("[layout]: placement"), "{text}");
    let text = refused(&|config| {
        config["layout"]["reorganise"] = json!("blocks");
        config["layout"]["collected_order"] = json!("age");
    });
    assert!(text.starts_with("[layout]: collected_order"), "{text}");
}

/// With greedy victims both estimates of eqs. 7 and 8 are for the least utilized segment, whatever
/// `plug_candidate` says; with cost-age they are not.
#[test]
fn the_candidate_for_plugging_matters_where_victims_are_not_the_least_utilized() {
    let cost = |victim: &str, candidate: &str| {
        let mut config = random_update(0.9, "matthews-1999");
        config["workload"] = json!({
            "kind": "hot-cold", "utilization": 0.9, "blocks": 20_000, "updates_per_block": 4,
        });
        config["layout"]["victim"] = json!(victim);
        config["layout"]["plug_candidate"] = json!(candidate);
        config["run"] = json!({ "lower_bound": false });
        let result = simulate(&config).unwrap();
        assert_eq!(result["config"]["layout"]["plug_candidate"], json!(candidate));
        result["metrics"]["overall_write_cost"].as_f64().unwrap()
    };
    let greedy = cost("greedy", "least-utilized");
    assert_eq!(greedy.to_bits(), cost("greedy", "policy").to_bits());
    let (least, policy) = (cost("cost-age", "least-utilized"), cost("cost-age", "policy"));
    assert!((policy / least - 1.0).abs() > 0.001, "{policy} and {least}");
}

/// Where segments differ in size a reserve of one of the smallest could not take in a victim of the
/// largest, and zones of their own for new and collected data filled up one beside the other.
#[test]
fn regression_segments_of_several_sizes_leave_no_log_full() {
    let several: [&dyn Fn(&mut Value); 4] = [
        &|config| config["layout"]["zones"] = json!(["0.5 512 KiB", "0.5 256 KiB"]),
        &|config| config["layout"]["zones"] = json!(["0.3 64 KiB", "0.3 96 KiB", "0.4 1 MiB"]),
        &|config| {
            config["layout"]["placement"] = json!("user-collected");
            config["layout"]["collected_segment_size"] = json!("1 MiB");
            config["layout"]["collected_share"] = json!(0.3);
        },
        &|config| {
            config["layout"]["placement"] = json!("user-collected");
            config["layout"]["collected_segment_size"] = json!("1 MiB");
            config["workload"]["fill"] = json!("measured");
        },
    ];
    let cost = |collect: &str, change: &dyn Fn(&mut Value)| {
        let mut config = random_update(0.85, collect);
        config["workload"]["blocks"] = json!(20_000);
        config["workload"]["updates_per_block"] = json!(2);
        config["run"]["lower_bound"] = json!(false);
        change(&mut config);
        metric(&config, "overall_write_cost")
    };
    for collect in ["clean", "plug", "thread", "matthews-1999"] {
        let plain = cost(collect, &|_| {});
        for change in several {
            // Other sizes cost something else, but not another kind of cost.
            let several = cost(collect, change);
            assert!((0.5 * plain..2.0 * plain).contains(&several), "{collect}: {several}, {plain}");
        }
    }
}

#[test]
fn a_microbenchmark_reads_its_file_as_often_as_it_is_told() {
    let config = |write: &str, read: &str| {
        json!({
            "workload": {
                "kind": "microbenchmark", "utilization": 0.5, "blocks": 4_000, "write": write,
                "read": read, "reads": 3, "pattern": "strided", "stride_requests": 64,
            },
            "host": { "client_cache": "0 B", "server_cache": "0 B" },
            "layout": { "kind": "lfs", "segment_size": "256 KiB", "block_size": "8 KiB" },
            "device": { "kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s" },
            "run": { "lower_bound": false },
        })
    };
    for (write, read) in [("sequential", "sequential"), ("random", "pattern")] {
        let metrics = &simulate(&config(write, read)).unwrap()["metrics"];
        assert_eq!(metrics["requests"], json!(5 * 4_000));
        assert_eq!(metrics["peak_live_blocks"], json!(4_000));
        assert_eq!(metrics["read_blocks"], json!(3 * 4_000));
        // All but what still waits in the write buffer of one segment, at every pass.
        let disk_reads = metrics["disk_reads"].as_u64().unwrap();
        assert!((3 * (4_000 - 32)..=3 * 4_000).contains(&disk_reads), "{disk_reads}");
    }
}

/// The adaptive choice costs at most two per cent more than the best mechanism on `drive`.
fn assert_near_the_best_mechanism(drive: &str, config: impl Fn(&str) -> Value) {
    let cost = |collect: &str| metric(&config(collect), "overall_write_cost");
    let [clean, plug, thread] = ["clean", "plug", "thread"].map(cost);
    let adaptive = cost("adaptive");
    let best = clean.min(plug).min(thread);
    assert!(adaptive < 1.02 * best, "{drive}: {adaptive} against {clean}, {plug}, {thread}");
}

/// A drive that reports writes early takes less for holes than its mean access time says, one that
/// does not takes what its platter takes: prices are calibrated in advance and learnt.
#[test]
fn on_a_drive_the_choice_costs_at_most_two_percent_more_than_the_best_mechanism() {
    for (drive, utilization) in [("hp-97560", 0.7), ("hp-c3323a", 0.7), ("hp-c2249a", 0.9)] {
        assert_near_the_best_mechanism(drive, |collect| {
            json!({
                "workload": {
                    "kind": "microbenchmark", "blocks": 40_000, "write": "random",
                    "read": "sequential", "reads": 0, "utilization": utilization,
                },
                "host": {
                    "sync_every": 0, "buffer_size": "256 KiB", "client_cache": "0 MB",
                    "server_cache": "8 MB",
                },
                "layout": {
                    "kind": "lfs", "segment_size": "1 MiB", "block_size": "8 KiB",
                    "collect": collect,
                },
                "device": { "model": drive },
                "run": { "lower_bound": false },
            })
        });
    }
}

/// The time to fill a hole on a drive depends on the other writes there. Priced by one table for
/// all mechanisms, of a trial whose drive rested in between, these cost 23 and 53 % more than the
/// best.
#[test]
fn each_mechanism_is_priced_by_a_trial_of_it_alone() {
    for (trace, drive, utilization) in
        [("mail", "flash-sata-tlc", 0.8), ("build", "samsung-970-pro", 0.98)]
    {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces");
        let path = format!("{path}/{trace}.parquet");
        assert_near_the_best_mechanism(drive, |collect| {
            json!({
                "workload": { "kind": "trace", "path": path, "utilization": utilization },
                "host": { "sync_every": 0, "flush_interval": "30 s" },
                "layout": {
                    "kind": "lfs", "segment_size": "128 KiB", "header": "block",
                    "collect": collect,
                },
                "device": { "model": drive },
                "run": { "lower_bound": false },
            })
        });
    }
}
