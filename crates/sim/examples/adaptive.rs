//! The adaptive log against the best single mechanism, on loads and devices drawn at random.
//!
//! `cargo run --release --example adaptive -- SET [FIXED [PART]]` runs a set of points and prints at
//! each the write cost of the three mechanisms alone, that of the choice, and its ratio to the best of
//! them; then how many miss a mark. Costs of the single mechanisms, which do not depend on the rule,
//! are kept in the file FIXED, if one is named; PART leaves points out whose names do not contain it.
//! The sets are
//!
//! * `a` to `f`, or any other word, which is then a seed: loads, `simple` disks, utilizations and
//!   segments drawn at random, and drives of the catalogue of every kind; rules were compared on `a` to
//!   `d`, and `e` and `f` have been looked at once;
//! * the same with `large-` before it: loads of eight times as many blocks;
//! * `studied`: uniform, hot-and-cold, Zipf and sequential updates of one, three and ten passes;
//!   `long`: of 20, 40 and 80;
//! * `recorded:FOLDER`: every block trace there, as Parquet, on twelve devices.
//!
//! A load is drawn from a seed: one to three phases, each a mixture of uniform, skewed and
//! sequential writes, moving working sets, rounds and permutations, in runs of every length, with
//! syncs, pauses and reads; or a generator with deletions; or a recorded trace. Points where all
//! mechanisms cost the same within a thousandth are left out: no room was short.

#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use agewell_core::{RandomStreams, Stream, chance, uniform_below};
use agewell_sim::{Experiment, Places, run};
use agewell_trace::record::{BlockBatch, BlockRow};
use agewell_trace::write_requests;
use serde_json::{Value, json};

/// Of each single mechanism, and of the choice.
type Costs = ([f64; 3], f64);

type Failure = Box<dyn std::error::Error + Send + Sync>;

const BLOCK_SECTORS: u64 = 16;
const DRAWN_LOADS: u32 = 16;
const MECHANISMS: [&str; 3] = ["clean", "plug", "thread"];

/// One experiment but its mechanism.
struct Point {
    name: String,
    class: &'static str,
    config: Value,
}

fn draw(stream: &mut Stream, bound: u32) -> u32 {
    uniform_below(stream, u64::from(bound.max(1))) as u32
}

/// From 0 to 1.
fn unit(stream: &mut Stream) -> f64 {
    f64::from(draw(stream, 1 << 24)) / f64::from(1 << 24)
}

/// Where the next run of a component begins.
#[derive(Clone, Copy)]
enum Choice {
    Uniform,
    /// Close to Zipf's of exponent 1 at power 1, flatter above.
    Skewed(f64),
    HotCold {
        hot: f64,
        share: f64,
    },
    /// Round after round in order.
    Rounds,
    /// Round after round in an order of its own.
    Scattered(u32),
    /// Uniform in a window that moves on.
    Moving {
        window: f64,
        speed: f64,
    },
}

struct Component {
    choice: Choice,
    run: u32,
    base: u32,
    size: u32,
    written: u32,
}

impl Component {
    fn drawn(stream: &mut Stream, blocks: u32) -> Self {
        let choice = match draw(stream, 7) {
            0 | 1 => Choice::Uniform,
            2 => Choice::Skewed(1.0 + unit(stream)),
            3 => {
                Choice::HotCold { hot: 0.02 + unit(stream) * 0.3, share: 0.5 + unit(stream) * 0.48 }
            }
            4 => Choice::Rounds,
            5 => Choice::Scattered(draw(stream, 1 << 20)),
            _ => Choice::Moving { window: 0.02 + unit(stream) * 0.3, speed: unit(stream) },
        };
        let size = (f64::from(blocks) * (0.2 + 0.8 * unit(stream))) as u32;
        let size = if chance(stream, 0.6) { blocks } else { size };
        let base = draw(stream, blocks - size + 1);
        let run = 1 << draw(stream, 6);
        Self { choice, run: if chance(stream, 0.5) { 1 } else { run }, base, size, written: 0 }
    }

    fn first(&mut self, stream: &mut Stream) -> u32 {
        let runs = (self.size / self.run).max(1);
        let step = self.written / self.run;
        self.written += self.run;
        let scatter = |rank: u32, salt: u32| {
            // A permutation of the runs: multiplication by a number prime to them.
            let mut factor = (salt % runs) | 1;
            while gcd(factor, runs) != 1 {
                factor += 2;
            }
            (u64::from(rank) * u64::from(factor) % u64::from(runs)) as u32
        };
        let run = match self.choice {
            Choice::Uniform => draw(stream, runs),
            Choice::Skewed(power) => {
                let rank = f64::from(runs).powf(unit(stream).powf(1.0 / power)) as u32 - 1;
                scatter(rank.min(runs - 1), 7_919)
            }
            Choice::HotCold { hot, share } => {
                let bound = if chance(stream, share) { f64::from(runs) * hot } else { runs.into() };
                scatter(draw(stream, bound as u32), 104_729)
            }
            Choice::Rounds => step % runs,
            Choice::Scattered(salt) => scatter(step % runs, salt.wrapping_add(step / runs * 2)),
            Choice::Moving { window, speed } => {
                let window = (f64::from(runs) * window) as u32;
                let at = (f64::from(step) * speed * 0.5) as u32;
                (at + draw(stream, window)) % runs
            }
        };
        self.base + run * self.run
    }
}

fn gcd(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Writes the trace of a drawn load and gives its host and workload.
fn drawn_load(half: &str, number: u32, folder: &Path) -> Result<(String, Value, Value), Failure> {
    let mut stream = RandomStreams::new(u64::from(number)).stream(&format!("load.{half}"));
    let stream = &mut stream;
    let least = if half.starts_with("large-") { 65_536.0 } else { 8_192.0 };
    let blocks = (least * 4.0_f64.powf(unit(stream))) as u32;
    let passes = 0.4 * 15.0_f64.powf(unit(stream));
    let filled_by_itself = chance(stream, 0.25);
    let phases = 1 + draw(stream, 3);
    let gap_ns = if chance(stream, 0.5) { 0 } else { u64::from(draw(stream, 40_000_000)) };
    let reads = if chance(stream, 0.3) { unit(stream) * 0.5 } else { 0.0 };
    let mut batch = BlockBatch::default();
    let mut time_ns = 0;
    let mut push = |time_ns: u64, block: u32, blocks: u32, operation: u8| {
        batch.push(BlockRow {
            enqueue_ns: time_ns,
            sector: u64::from(block) * BLOCK_SECTORS,
            sectors: blocks * BLOCK_SECTORS as u32,
            operation,
            ..BlockRow::default()
        });
    };
    for first in (0..blocks).step_by(256) {
        push(0, first, 256.min(blocks - first), u8::from(filled_by_itself));
    }
    for _ in 0..phases {
        let mut parts: Vec<Component> =
            (0..=draw(stream, 3)).map(|_| Component::drawn(stream, blocks)).collect();
        let writes = (f64::from(blocks) * passes / f64::from(phases)) as u32;
        let mut written = 0;
        while written < writes {
            let which = draw(stream, parts.len() as u32) as usize;
            let part = &mut parts[which];
            let first = part.first(stream).min(blocks - 1);
            let run = part.run.min(blocks - first);
            if chance(stream, reads) {
                push(time_ns, draw(stream, blocks), 1, 0);
            }
            push(time_ns, first, run, 1);
            written += run;
            // Bursts with rests between them.
            time_ns += if chance(stream, 0.02) { gap_ns * 40 } else { gap_ns / 5 };
        }
    }
    let name = format!("{half}{number}");
    let path = folder.join(format!("{name}.parquet"));
    write_requests(&path, &mut batch)?;
    let sync_every = [0, 0, 1, 4, 16, 64][draw(stream, 6) as usize];
    let host = json!({ "sync_every": sync_every, "flush_interval": "30 s" });
    Ok((name, json!({ "kind": "trace", "path": path }), host))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Loads that are made or recorded elsewhere: with deletions, and with the order of real ones.
fn known_loads(half: &str) -> Vec<(String, Value, Value)> {
    let timed = json!({ "sync_every": 0, "flush_interval": "30 s" });
    let trace = |name: &str| {
        let path = root().join("examples/traces").join(format!("{name}.parquet"));
        path.is_file()
            .then(|| (name.to_owned(), json!({ "kind": "trace", "path": path }), timed.clone()))
    };
    let made = |name: &str, table: Value| Some((name.to_owned(), table, timed.clone()));
    let micro = |order: &str| json!({ "kind": "microbenchmark", "blocks": 20_000, "write": order, "reads": 1 });
    let loads = if half == "a" {
        vec![
            trace("mail"),
            trace("build"),
            made(
                "software",
                json!({ "kind": "software-development", "cycles": 60, "projects": 4 }),
            ),
            made("micro-random", micro("random")),
        ]
    } else {
        vec![
            trace("pgbench"),
            made("long-term", json!({ "kind": "long-term", "weeks": 3, "programs": 120 })),
            made(
                "accounts",
                json!({
                    "kind": "transaction-processing", "accounts": 60_000, "transactions": 20_000,
                }),
            ),
            made("micro-order", micro("sequential")),
        ]
    };
    loads.into_iter().flatten().collect()
}

/// Devices: the sets that rules are chosen on and the held-out sets share none.
fn devices(half: &str) -> Vec<(String, &'static str, Value)> {
    let mut stream = RandomStreams::new(7).stream(&format!("devices.{half}"));
    let stream = &mut stream;
    let mut devices = Vec::new();
    for number in 0..3 {
        let access_us = (1_000.0 * 30.0_f64.powf(unit(stream))) as u32;
        let bandwidth = (2.0 * 60.0_f64.powf(unit(stream))) as u32;
        let rate = format!("{bandwidth} MB/s");
        let disk = if number == 0 {
            let seek = format!("{} us", access_us / 2);
            let rotation = format!("{access_us} us");
            json!({ "kind": "simple", "seek_time": seek, "rotation_time": rotation, "bandwidth": rate })
        } else {
            json!({ "kind": "simple", "access_time": format!("{access_us} us"), "bandwidth": rate })
        };
        devices.push((format!("simple{number}"), "simple", disk));
    }
    let catalogue = [
        ("hp-97560", "early disk"),
        ("hp-c2249a", "early disk"),
        ("hp-c3323a", "early disk"),
        ("seagate-st32171w", "early disk"),
        ("seagate-st34501n", "early disk"),
        ("seagate-st41601n", "early disk"),
        ("seagate-st3450857ss", "disk of today"),
        ("seagate-st2000dm006", "disk of today"),
        ("hgst-hus728t8tale6l4", "disk of today"),
        ("flash-sata-tlc", "flash"),
        ("samsung-970-pro", "flash"),
    ];
    let models: Vec<(&str, &'static str)> = match half {
        "a" => [0, 3, 8, 9].map(|number| catalogue[number]).to_vec(),
        "b" => [1, 6, 7, 10].map(|number| catalogue[number]).to_vec(),
        _ => (0..4)
            .map(|kind| catalogue[[0, 3, 6, 9][kind] + draw(stream, [3, 3, 3, 2][kind]) as usize])
            .collect(),
    };
    let shingled = ("seagate-st8000as0002", "shingled");
    let models = models.into_iter().chain([shingled]);
    for (name, class) in models {
        devices.push((name.to_owned(), class, json!({ "model": name })));
    }
    devices
}

/// The loads of the study on its disks, of every length.
fn studied(lengths: [(u32, &'static str); 3]) -> Vec<Point> {
    let shared_seek = json!({ "kind": "simple", "seek_time": "9.5 ms", "rotation_time": "11 ms", "bandwidth": "5 MB/s" });
    let whole_access = json!({ "kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s" });
    let loads = [
        ("random", json!({ "kind": "random-update" })),
        ("hot", json!({ "kind": "hot-cold" })),
        ("zipf", json!({ "kind": "zipf", "alpha": 1.0 })),
        ("sequential", json!({ "kind": "sequential" })),
    ];
    let mut points = Vec::new();
    for (disk, table) in [("shared-seek", shared_seek), ("15ms", whole_access)] {
        for ((updates, class), (name, load)) in
            lengths.iter().flat_map(|length| loads.iter().map(move |load| (length, load)))
        {
            for utilization in [0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97] {
                let mut workload = load.clone();
                workload["utilization"] = json!(utilization);
                workload["blocks"] = json!(20_000);
                workload["updates_per_block"] = json!(updates);
                workload["fill"] = json!("before");
                let host = json!({ "sync_every": 4 });
                points.push(Point {
                    name: format!("{name}{updates} {disk} {utilization} 256KiB"),
                    class,
                    config: experiment(&workload, &host, &table, "256 KiB"),
                });
            }
        }
    }
    points
}

/// The traces of a folder on drives of every kind.
fn recorded(folder: &str) -> Result<Vec<Point>, Failure> {
    let host = json!({ "sync_every": 0, "flush_interval": "30 s" });
    let mut stream = RandomStreams::new(13).stream("recorded");
    let stream = &mut stream;
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "parquet"));
    paths.sort();
    let models = [
        ("hp-97560", "early disk"),
        ("hp-c2249a", "early disk"),
        ("hp-c3323a", "early disk"),
        ("seagate-st34501n", "early disk"),
        ("seagate-st3450857ss", "disk of today"),
        ("seagate-st2000dm006", "disk of today"),
        ("hgst-hus728t8tale6l4", "disk of today"),
        ("seagate-st8000as0002", "shingled"),
        ("flash-sata-tlc", "flash"),
        ("samsung-970-pro", "flash"),
    ];
    let mut devices: Vec<(&str, &'static str, Value)> =
        models.into_iter().map(|(name, class)| (name, class, json!({ "model": name }))).collect();
    let simple = json!({ "kind": "simple", "seek_time": "9.5 ms", "rotation_time": "11 ms", "bandwidth": "5 MB/s" });
    devices.push(("matthews", "simple", simple));
    let fast = json!({ "kind": "simple", "access_time": "8 ms", "bandwidth": "40 MB/s" });
    devices.push(("fast", "simple", fast));
    let mut points = Vec::new();
    for path in paths {
        let load = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (device, class, table) in &devices {
            for segment in ["128 KiB", "256 KiB", "1 MiB"] {
                let utilization = [0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98][draw(stream, 7) as usize];
                let workload = json!({ "kind": "trace", "path": path, "utilization": utilization });
                points.push(Point {
                    name: format!("{load} {device} {utilization} {}", segment.replace(' ', "")),
                    class,
                    config: experiment(&workload, &host, table, segment),
                });
            }
        }
    }
    Ok(points)
}

fn experiment(workload: &Value, host: &Value, device: &Value, segment: &str) -> Value {
    json!({
        "workload": workload, "host": host, "device": device,
        "layout": { "kind": "lfs", "segment_size": segment, "header": "block" },
        "run": { "lower_bound": false },
    })
}

fn points(half: &str, folder: &Path) -> Result<Vec<Point>, Failure> {
    match half {
        "studied" => {
            return Ok(studied([(1, "one pass"), (3, "three passes"), (10, "ten passes")]));
        }
        "long" => return Ok(studied([(20, "20 passes"), (40, "40 passes"), (80, "80 passes")])),
        _ => {}
    }
    if let Some(path) = half.strip_prefix("recorded:") {
        return recorded(path);
    }
    let mut loads = Vec::new();
    for number in 0..DRAWN_LOADS {
        loads.push(drawn_load(half, number, folder)?);
    }
    loads.extend(known_loads(half));
    let mut stream = RandomStreams::new(11).stream(&format!("points.{half}"));
    let mut points = Vec::new();
    for (load, workload, host) in &loads {
        for (device, class, table) in devices(half) {
            let utilization =
                [0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98][draw(&mut stream, 8) as usize];
            let segment = ["128 KiB", "256 KiB", "512 KiB", "1 MiB"][draw(&mut stream, 4) as usize];
            let mut workload = workload.clone();
            workload["utilization"] = json!(utilization);
            points.push(Point {
                name: format!("{load} {device} {utilization} {}", segment.replace(' ', "")),
                class,
                config: experiment(&workload, host, &table, segment),
            });
        }
    }
    Ok(points)
}

/// The write cost with `collect`; none where the log does not fit.
fn cost(config: &Value, collect: &str) -> Option<f64> {
    let mut config = config.clone();
    config["layout"]["collect"] = json!(collect);
    let experiment = Experiment::from_value(config).ok()?;
    let catalogue = root().join("devices");
    let places = Places { base: Path::new("."), catalogue: &catalogue };
    match run(&experiment, places, &mut |_| true) {
        Ok(outcome) => outcome.document["metrics"]["overall_write_cost"].as_f64(),
        // A log too full for its segments is no point of the comparison.
        Err(_) => None,
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let half = arguments.first().map_or("a", String::as_str);
    let kept = arguments.get(1).map(PathBuf::from);
    let only = arguments.get(2).cloned().unwrap_or_default();
    let folder = tempfile::tempdir()?;
    let mut points = points(half, folder.path())?;
    points.retain(|point| point.name.contains(&only));
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    if let Some(path) = &kept
        && let Ok(text) = std::fs::read_to_string(path)
    {
        known.extend(text.lines().filter_map(|line| {
            line.split_once('\t').map(|(key, costs)| (key.to_owned(), costs.to_owned()))
        }));
    }
    let known = Mutex::new(known);
    let results: Vec<Mutex<Option<Costs>>> = points.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(point) = points.get(number) else { break };
                    let found = known.lock().ok().and_then(|known| known.get(&point.name).cloned());
                    let text = found.unwrap_or_else(|| {
                        let alone = MECHANISMS.map(|name| cost(&point.config, name));
                        let mut text = String::new();
                        for cost in alone {
                            let _ = write!(text, "{} ", cost.unwrap_or(f64::NAN));
                        }
                        text
                    });
                    let costs: Vec<f64> =
                        text.split_whitespace().filter_map(|cost| cost.parse().ok()).collect();
                    if let Ok(mut known) = known.lock() {
                        known.insert(point.name.clone(), text);
                    }
                    let [clean, plug, thread] = costs[..] else { continue };
                    let most = clean.max(plug).max(thread);
                    let least = clean.min(plug).min(thread);
                    if least.is_nan() || most < least * 1.001 {
                        continue;
                    }
                    let ours = cost(&point.config, "adaptive").unwrap_or(f64::INFINITY);
                    if let Ok(mut result) = results[number].lock() {
                        *result = Some(([clean, plug, thread], ours));
                    }
                }
            });
        }
    });
    if let (Some(path), Ok(known)) = (&kept, known.lock()) {
        let mut file = std::fs::File::create(path)?;
        for (key, costs) in &*known {
            writeln!(file, "{key}\t{costs}")?;
        }
    }
    let mut classes: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (point, result) in points.iter().zip(&results) {
        let Some((alone, ours)) = *result.lock().map_err(|_| "a run failed")? else { continue };
        let ratio = ours / alone.into_iter().fold(f64::INFINITY, f64::min);
        println!(
            "{:<50} {:8.3} {:8.3} {:8.3} {ours:8.3} {ratio:7.3}",
            point.name, alone[0], alone[1], alone[2]
        );
        classes.entry(point.class).or_default().push(ratio);
        classes.entry("all").or_default().push(ratio);
    }
    for (class, ratios) in classes {
        let above = |mark: f64| ratios.iter().filter(|ratio| **ratio > mark).count();
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        println!(
            "{class:<14} {:4} points, above 1.02: {:3}, above 1.10: {:3}, worst {worst:.3}, mean {:.4}",
            ratios.len(),
            above(1.02),
            above(1.10),
            mean.exp()
        );
    }
    Ok(())
}
