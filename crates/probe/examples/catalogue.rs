//! The promises of the probe, over every drive of a catalogue: each is probed on a virtual clock, with the late
//! answers of a virtual machine and a spindle that wanders by 0.1 %, and the file that comes out is held against
//! the drive. Ends with an error if a promise is broken.
//!
//! `cargo run --release -p agewell-probe --example catalogue -- [--seed N] [--only NAME,...] [--write-area]
//! [--keep DIR] [FILE.toml ...]`; with `--write-area` the last sixteenth of each drive may be written, with `--keep DIR` the
//! probed files stay in a folder.

use std::error::Error;
use std::path::{Path, PathBuf};

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimTime, mix};
use agewell_disk::parameters::Management;
use agewell_disk::{
    Device, DeviceKind, DeviceModel, DeviceParameters, Medium, WriteRule, catalogue_names,
};
use agewell_probe::{
    Class, Disturbance, Extent, ModelledDisk, Probe, ProbeOptions, ProbedDisk, probe,
};
use agewell_trace::{BlockBatch, ReadOptions, open_block_trace};

const TRACES: [&str; 3] = ["build", "mail", "pgbench"];

/// Promised: share of a turn; per cent of the mean of random reads, in the middle and at worst; the same of each
/// trace; seconds on the drive.
const TURN: f64 = 0.001;
const RANDOM_PCT: (f64, f64) = (2.0, 7.0);
const TRACE_PCT: (f64, f64) = (5.0, 30.0);
const SECONDS: f64 = 300.0;

/// One drive's errors, %.
struct Row {
    turn_off: f64,
    random_pct: f64,
    traces_pct: Vec<Option<f64>>,
    seconds: f64,
    /// A cache on its medium takes writes, which reads cannot show.
    hides_writes: bool,
}

#[allow(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut seed, mut only, mut writes, mut keep) = (3, None, false, None::<PathBuf>);
    let mut files = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seed" => seed = arguments.next().ok_or("--seed needs a number")?.parse()?,
            "--only" => only = arguments.next(),
            "--write-area" => writes = true,
            "--keep" => keep = arguments.next().map(PathBuf::from),
            _ => files.push(PathBuf::from(argument)),
        }
    }
    if files.is_empty() {
        let catalogue = root.join("devices");
        let names = catalogue_names(&catalogue)?;
        let is_asked = |name: &&String| {
            only.as_ref().is_none_or(|only| only.split(',').any(|one| one == name.as_str()))
        };
        let paths =
            names.iter().filter(is_asked).map(|name| catalogue.join(format!("{name}.toml")));
        files.extend(paths);
    }
    let mut traces = Vec::new();
    for name in TRACES {
        traces.push(requests(&root.join(format!("examples/traces/{name}.parquet")))?);
    }
    println!(
        "{:26} {:>8} {:>8} {:>7} {:>7} {:>9} {:>9} {:>9} {:>10}",
        "error of the probed file",
        "turn",
        "random",
        "near",
        "long",
        TRACES[0],
        TRACES[1],
        TRACES[2],
        "probed in"
    );
    let mut rows = Vec::new();
    for file in files {
        let truth = DeviceParameters::load(&file)?;
        let Medium::Mechanical(_) = truth.kind.medium() else { continue };
        let disturbance = Disturbance { late_answers: true, wander: 0.001, seed };
        let mut disk = ModelledDisk::new(&truth, disturbance);
        let takes_writes =
            DeviceModel::new(&truth).layout_advice().write_rule == WriteRule::Anywhere;
        if writes && takes_writes {
            let part = truth.capacity_sectors / 16 / 8 * 8;
            let first = truth.capacity_sectors / 8 * 8 - part;
            disk = disk.with_write_area(Extent { first, sectors: part });
        }
        let found = probe(&mut disk, ProbeOptions::default(), &mut |_, _| true)?;
        if let Some(folder) = &keep {
            let file = folder.join(format!("{}.toml", truth.name));
            std::fs::write(file, found.parameters.to_toml())?;
        }
        if found.class != Class::Armed {
            return Err(format!("{}: not seen as an arm: {:?}", truth.name, found.fallback).into());
        }
        rows.push(row(&truth, &found, &traces));
    }
    verdict(&rows)
}

#[allow(clippy::print_stdout, reason = "an example")]
fn row(truth: &DeviceParameters, found: &Probe, traces: &[Vec<BlockRequest>]) -> Row {
    let made = &found.parameters;
    let sectors = truth.capacity_sectors.min(made.capacity_sectors);
    let random = |number: u64| Extent { first: mix(number) % (sectors / 8) * 8, sectors: 8 };
    let near = |number: u64| Extent {
        first: sectors / 3 / 8 * 8 + mix(number) % (sectors / 20 / 8) * 8,
        sectors: 8,
    };
    // Sequential over half of the disk at most.
    let long = |number: u64| Extent {
        first: sectors / 3 / 128 * 128 + number % (sectors / 2 / 128) * 128,
        sectors: 128,
    };
    let random_pct = compare(truth, made, random);
    let (near_pct, long_pct) = (compare(truth, made, near), compare(truth, made, long));
    let traces_pct: Vec<Option<f64>> = traces
        .iter()
        .map(|requests| Some(pct(replay(made, requests)?, replay(truth, requests)?)))
        .collect();
    let turn_off = period_ps(made) / period_ps(truth) - 1.0;
    let hides_writes = matches!(&truth.kind, DeviceKind::Zoned(zoned)
        if matches!(zoned.management, Management::Drive { .. }));
    let shown = |each: &Option<f64>| each.map_or("too small".into(), |pct| format!("{pct:+.1} %"));
    println!(
        "{:26} {:>4.0} ppm {:>8} {:>7} {:>7} {:>9} {:>9} {:>9} {:>8.0} s{}",
        truth.name,
        1e6 * turn_off,
        shown(&Some(random_pct)),
        shown(&Some(near_pct)),
        shown(&Some(long_pct)),
        shown(&traces_pct[0]),
        shown(&traces_pct[1]),
        shown(&traces_pct[2]),
        found.spent.as_seconds(),
        if hides_writes { "  (hides writes; not judged by traces)" } else { "" },
    );
    Row { turn_off, random_pct, traces_pct, seconds: found.spent.as_seconds(), hides_writes }
}

fn period_ps(parameters: &DeviceParameters) -> f64 {
    match parameters.kind.medium() {
        Medium::Mechanical(drive) => drive.rotation_period_ps as f64,
        Medium::Simple(_) => f64::NAN,
    }
}

fn pct(made: f64, truth: f64) -> f64 {
    100.0 * (made / truth - 1.0)
}

/// By how much more 4000 reads take on `made` than on `truth`, %.
fn compare(
    truth: &DeviceParameters,
    made: &DeviceParameters,
    place: impl Fn(u64) -> Extent,
) -> f64 {
    let sum = |parameters: &DeviceParameters| -> f64 {
        let mut disk = ModelledDisk::new(parameters, Disturbance::default());
        (0..4000)
            .map(|number| disk.read(place(number)).expect("within both disks").taken_ns())
            .sum()
    };
    pct(sum(made), sum(truth))
}

/// The time that `requests` are served in, one after another; `None` if the disk is too small.
fn replay(parameters: &DeviceParameters, requests: &[BlockRequest]) -> Option<f64> {
    let mut device = DeviceModel::new(parameters);
    let (mut now, capacity) = (SimTime::ZERO, device.capacity().0);
    let mut sum = 0.0;
    for request in requests {
        if (request.sector + request.sectors).0 > capacity || device.check(request).is_err() {
            return None;
        }
        let finish = device.serve(now, request).finish;
        sum += (finish - now).0 as f64;
        now = finish;
    }
    Some(sum)
}

fn requests(path: &Path) -> Result<Vec<BlockRequest>, Box<dyn Error>> {
    let mut trace = open_block_trace(path, &ReadOptions::default())?;
    let (mut batch, mut all) = (BlockBatch::default(), Vec::new());
    while trace.next_batch(&mut batch)? {
        for row in 0..batch.sector.len() {
            let operation = Operation::from_code(batch.operation[row]).ok_or("an operation")?;
            if operation.transfers_data() && batch.sectors[row] > 0 {
                all.push(BlockRequest {
                    enqueue: SimTime::ZERO,
                    sector: Sector(batch.sector[row]),
                    sectors: SectorCount(u64::from(batch.sectors[row])),
                    operation,
                    synchronous: true,
                });
            }
        }
    }
    Ok(all)
}

/// The middle and the largest of `values`, without signs.
fn middle_and_worst(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut sorted: Vec<f64> = values.map(f64::abs).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    (middle, sorted.last().copied().unwrap_or(0.0))
}

#[allow(clippy::print_stdout, reason = "an example")]
fn verdict(rows: &[Row]) -> Result<(), Box<dyn Error>> {
    let mut broken = Vec::new();
    let mut judge = |what: String, keeps: bool| {
        println!("{what}: {}", if keeps { "holds" } else { "BROKEN" });
        if !keeps {
            broken.push(what);
        }
    };
    println!();
    let (_, turn) = middle_and_worst(rows.iter().map(|row| row.turn_off));
    judge(format!("rotation, worst {:.3} %, at most 0.1 %", 100.0 * turn), turn <= TURN);
    let (middle, worst) = middle_and_worst(rows.iter().map(|row| row.random_pct));
    judge(
        format!(
            "random reads, {middle:.1} % in the middle and {worst:.1} % at worst, at most 2 and 7 %"
        ),
        middle <= RANDOM_PCT.0 && worst <= RANDOM_PCT.1,
    );
    for (number, name) in TRACES.iter().enumerate() {
        let judged = rows.iter().filter(|row| !row.hides_writes);
        let (middle, worst) = middle_and_worst(judged.filter_map(|row| row.traces_pct[number]));
        judge(
            format!(
                "trace {name}, {middle:.1} % in the middle and {worst:.1} % at worst, at most 5 and 30 %"
            ),
            middle <= TRACE_PCT.0 && worst <= TRACE_PCT.1,
        );
    }
    let (_, slowest) = middle_and_worst(rows.iter().map(|row| row.seconds));
    judge(format!("time on the drive, {slowest:.0} s at most, at most 300 s"), slowest <= SECONDS);
    if broken.is_empty() { Ok(()) } else { Err(format!("broken: {}", broken.join("; ")).into()) }
}
