//! Experiments and device files with absurd values: a result or one line, never a panic.
//!
//! Every key that the configuration declares is found in what it resolves to, and gets each extreme
//! value of its kind in turn; then several at once, drawn at random. What only says how much work
//! there is (requests, blocks) stays small, because a run that takes a year is not wrong.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_sim::{Experiment, Places, run};
use serde_json::{Value, json};

mod layout_tables;

/// Values tried in place of a number.
const NUMBERS: [&str; 9] = [
    "0",
    "1",
    "-1",
    "0.5",
    "1e300",
    "65536",
    "4294967295",
    "9223372036854775807",
    "18446744073709551615",
];
/// Values tried in place of a time: up to the 292 years that are read.
const TIMES: [&str; 4] = ["0 s", "1 ns", "50000 d", "9220000000 s"];
/// Values tried in place of a size or a rate.
const SIZES: [&str; 6] = ["0 B", "1 B", "512 B", "3 KiB", "1 TiB", "9220000 TB"];
/// Keys that say how much work there is, or name something.
const WORK: [&str; 14] = [
    "blocks",
    "requests",
    "updates_per_block",
    "repeat",
    "reads",
    "warm_up",
    "kind",
    "model",
    "path",
    "format",
    "files",
    "transactions",
    "clients",
    "accounts",
];

/// A trace with arrival times: `ms device block blocks flags`.
const ARRIVALS: &str = "0.0 0 100 2 1\n1.0 0 5000 4 0\n2.0 0 5004 4 0\n100.0 0 102 2 1\n";

fn catalogue() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices")
}

fn bases() -> Vec<Value> {
    let simple = json!({
        "kind": "simple", "capacity": "9999872 B", "access_time": "10 ms", "bandwidth": "1 MB/s",
    });
    let trace = json!({ "kind": "trace", "path": "arrivals.trace", "format": "disksim-ascii" });
    let mut bases = vec![
        json!({ "workload": trace, "device": simple }),
        json!({ "workload": trace, "device": { "model": "hp-97560" },
            "remap": { "kind": "shuffle", "quantum": "block", "interval": "1 s", "links": true } }),
        json!({ "workload": trace, "device": simple, "queue": { "discipline": "c-look" } }),
        json!({ "workload": { "kind": "poisson", "requests": 200, "rate_per_s": 60.0 },
            "device": { "model": "seagate-st2000dm006" } }),
    ];
    let mut layouts = layout_tables::layouts();
    layouts.push(json!({ "kind": "lfs", "zones": ["0.5 128 KiB", "0.5 256 KiB"] }));
    layouts.push(json!({ "kind": "lfs", "placement": "user-collected",
        "segment_size": "64 KiB", "collected_segment_size": "128 KiB" }));
    layouts.push(json!({ "kind": "lfs", "placement": "life-table", "logs": 4 }));
    layouts.push(json!({ "kind": "lfs", "placement": "collected-life-table", "logs": 256 }));
    for layout in layouts {
        bases.push(json!({
            "workload": {
                "kind": "microbenchmark", "blocks": 120, "write": "random", "read": "sequential",
                "reads": 1, "utilization": 0.7, "preallocated": 0.2,
            },
            "layout": layout,
            "device": { "kind": "simple", "seek_time": "5 ms", "rotation_time": "4 ms",
                "bandwidth": "5 MB/s" },
        }));
        bases.push(json!({
            "workload": { "kind": "random-update", "blocks": 100, "updates_per_block": 2,
                "utilization": 0.8 },
            "host": { "sync_every": 8 },
            "layout": layout,
            "device": { "model": "hp-97560" },
            "run": { "lower_bound": false },
        }));
    }
    bases
}

/// Every place of a document that holds no other, as a JSON pointer.
fn leaves(value: &Value, place: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                leaves(value, &format!("{place}/{key}"), into);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                leaves(value, &format!("{place}/{index}"), into);
            }
        }
        _ => into.push(place.to_owned()),
    }
}

/// Values tried in place of `value`.
fn extremes(place: &str, value: &Value) -> Vec<Value> {
    let key = place.rsplit('/').find(|part| part.parse::<usize>().is_err()).unwrap_or_default();
    let work = WORK.contains(&key);
    let numbers = || NUMBERS.iter().map(|text| serde_json::from_str(text).expect("a number"));
    let texts = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect::<Vec<_>>();
    match value {
        Value::Number(_) if work => vec![json!(0), json!(1), json!(-1), json!(0.5)],
        Value::Number(_) => numbers().collect(),
        Value::String(_) if work => Vec::new(),
        Value::String(text) if agewell_core::parse_duration(text).is_ok() => texts(&TIMES),
        Value::String(text) if agewell_core::parse_bytes(text).is_ok() => texts(&SIZES),
        Value::String(text) if text.ends_with("/s") => {
            vec![json!("0 B/s"), json!("1 B/s"), json!("9220000 TB/s")]
        }
        Value::Null => [numbers().collect(), texts(&TIMES), texts(&SIZES)].concat(),
        _ => Vec::new(),
    }
}

/// The configuration that the process is to try, and the folder of its trace.
const CONFIG: &str = "AGEWELL_EXTREME_CONFIG";
const FOLDER: &str = "AGEWELL_EXTREME_FOLDER";

/// Output of a child whose run ended with a result.
const RAN: &str = "it ran";

/// The child process: it reads one configuration and runs it for as long as a test may.
#[test]
#[expect(clippy::print_stdout, reason = "it tells its parent")]
fn child() {
    let (Ok(config), Ok(folder)) = (std::env::var(CONFIG), std::env::var(FOLDER)) else { return };
    let config = serde_json::from_str(&config).expect("the parent wrote it");
    let Ok(experiment) = Experiment::from_value(config) else { return };
    let catalogue = catalogue();
    let mut told = 0;
    let places = Places { base: Path::new(&folder), catalogue: &catalogue };
    let result_or_one_line = run(&experiment, places, &mut |_| {
        told += 1;
        told < 4
    });
    if result_or_one_line.is_ok() {
        println!("{RAN}");
    }
}

enum Outcome {
    Ran,
    Refused,
    /// Longer than 2 s of the processor: an experiment may be large.
    Long,
    /// A panic, or more than 1 GiB of memory for so little work.
    Wrong(String),
}

/// The outcome of `config` in a process of its own.
fn outcome(config: &Value, folder: &Path) -> Outcome {
    let own = std::env::current_exe().expect("a test runs from a file");
    let child = Command::new("sh")
        .args(["-c", "ulimit -v 1048576; ulimit -t 2; exec \"$0\" --exact child --nocapture"])
        .arg(own)
        .env(CONFIG, config.to_string())
        .env(FOLDER, folder)
        .output()
        .expect("a shell");
    match child.status.signal() {
        // SIGKILL, SIGXCPU.
        Some(9 | 24) => Outcome::Long,
        None if child.status.success() => {
            let ran = String::from_utf8_lossy(&child.stdout).contains(RAN);
            if ran { Outcome::Ran } else { Outcome::Refused }
        }
        _ => {
            let text = String::from_utf8_lossy(&child.stderr).into_owned();
            Outcome::Wrong(text.lines().take(2).collect::<Vec<_>>().join(" "))
        }
    }
}

/// Tries `configs`, two at a time: none may be wrong, and a tenth must run to its end.
fn none_is_wrong(configs: &[(String, Value)], folder: &Path) {
    let (next, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found = Mutex::new(Vec::new());
    let work = || {
        while let Some((what, config)) = configs.get(next.fetch_add(1, Ordering::Relaxed)) {
            match outcome(config, folder) {
                Outcome::Ran => _ = ran.fetch_add(1, Ordering::Relaxed),
                Outcome::Refused | Outcome::Long => {}
                Outcome::Wrong(why) => {
                    found.lock().expect("no panic").push(format!("{what}: {why} in {config}"));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let found = found.into_inner().expect("no panic");
    assert!(found.is_empty(), "{} are wrong:\n{}", found.len(), found.join("\n"));
    let (ran, all) = (ran.into_inner(), configs.len());
    assert!(ran * 10 >= all, "only {ran} of {all} ran");
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a place for files");
    std::fs::write(folder.path().join("arrivals.trace"), ARRIVALS).expect("room");
    folder
}

/// The documents of `bases` with every default filled in.
fn resolved() -> Vec<Value> {
    let read = |base| Experiment::from_value(base).map(|experiment| experiment.resolved());
    let all = bases().into_iter().map(|base| (base.clone(), read(base)));
    all.map(|(base, read)| read.unwrap_or_else(|why| panic!("{base}: {why}"))).collect()
}

#[test]
fn no_key_panics_at_an_extreme_value() {
    let folder = folder();
    let mut configs = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for base in resolved() {
        let kind = (base["workload"]["kind"].clone(), base["layout"]["kind"].clone());
        let mut places = Vec::new();
        leaves(&base, "", &mut places);
        for place in places {
            let value = base.pointer(&place).expect("a leaf").clone();
            // The same key with the same value under the same kinds was tried before. A device and
            // its queue do not know what asks.
            let alone = ["/device", "/queue"].iter().any(|table| place.starts_with(table));
            let under = (!alone).then_some(&kind);
            if !seen.insert(format!("{under:?} {place} {value}")) {
                continue;
            }
            for extreme in extremes(&place, &value) {
                let mut config = base.clone();
                *config.pointer_mut(&place).expect("a leaf") = extreme.clone();
                configs.push((format!("{place} = {extreme}"), config));
            }
        }
    }
    none_is_wrong(&configs, folder.path());
}

fn one_of<T: Clone>(random: &mut Stream, of: &[T]) -> T {
    of[uniform_below(random, of.len() as u64) as usize].clone()
}

#[test]
fn no_experiment_panics_with_several_extreme_values() {
    let folder = folder();
    let bases = resolved();
    let mut random = RandomStreams::new(7).stream("extreme-values");
    let mut configs = Vec::new();
    for _ in 0..300 {
        let mut config = one_of(&mut random, &bases);
        let mut places = Vec::new();
        leaves(&config, "", &mut places);
        for _ in 0..uniform_below(&mut random, 3) + 2 {
            let place = one_of(&mut random, &places);
            let choices = extremes(&place, config.pointer(&place).expect("a leaf"));
            if !choices.is_empty() {
                *config.pointer_mut(&place).expect("a leaf") = one_of(&mut random, &choices);
            }
        }
        configs.push(("drawn".to_owned(), config));
    }
    none_is_wrong(&configs, folder.path());
}

/// A trace and a log on the device of a file.
fn device_runs(path: &str) -> [Value; 2] {
    [
        json!({
            "workload": { "kind": "trace", "path": "arrivals.trace", "format": "disksim-ascii" },
            "device": { "model": path },
        }),
        json!({
            "workload": { "kind": "random-update", "blocks": 300, "updates_per_block": 2,
                "utilization": 0.8 },
            "layout": { "kind": "lfs" },
            "device": { "model": path },
            "run": { "lower_bound": false },
        }),
    ]
}

#[test]
fn no_device_file_panics_at_an_extreme_value() {
    let folder = folder();
    let names = [
        "hp-97560",
        "seagate-st2000dm006",
        "seagate-st8000as0002",
        "flash-sata-tlc",
        "matthews-baseline",
        "hgst-hsh721415ale6m0",
    ];
    let mut configs = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(catalogue().join(format!("{name}.toml")));
        let text = text.expect("a device of the catalogue");
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some((key, value)) = line.split_once(" = ") else { continue };
            if !value.starts_with(|first: char| first.is_ascii_digit() || first == '[') {
                continue;
            }
            for extreme in NUMBERS {
                let extreme = match value.strip_prefix('[') {
                    Some(rest) => match rest.split_once(',') {
                        Some((_, rest)) => format!("[{extreme},{rest}"),
                        None => format!("[{extreme}]"),
                    },
                    None => extreme.to_owned(),
                };
                let changed = format!("{key} = {extreme}");
                let mut lines = lines.clone();
                lines[at] = &changed;
                let path = folder.path().join(format!("{name}-{}.toml", configs.len()));
                std::fs::write(&path, lines.join("\n")).expect("room");
                let what = format!("{name}: {changed}");
                let path = path.to_str().expect("a plain name");
                // A trace and a log in turn.
                let [trace, log] = device_runs(path);
                configs.push((what, if configs.len() % 2 == 0 { trace } else { log }));
            }
        }
    }
    none_is_wrong(&configs, folder.path());
}
