//! An experiment, read strictly: one table a box of the flow, every default visible in
//! [`Experiment::resolved`].

mod remap;
mod table;

use std::path::{Path, PathBuf};

use agewell_core::{DailyWindow, DailyWindowError, SECTOR_BYTES, SimDuration};
use agewell_disk::queue::Discipline;
use serde_json::{Map, Value, json};

pub use remap::RemapSetup;
pub use table::Table;

/// Most disks in one run; chosen by us: more are surely a device column misread.
pub const DISKS_MAX: u32 = 4096;

/// Why an experiment cannot be run: one line that names the table, the key and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// A whole experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Where requests come from.
    pub workload: Workload,
    /// What happens to their addresses.
    pub remap: RemapSetup,
    /// In which order a busy disk takes them.
    pub queue: Discipline,
    /// The disk.
    pub device: DeviceChoice,
    /// Seed, comparison and series.
    pub run: RunOptions,
}

/// Where requests come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// A trace taken below the file system.
    Trace(TraceWorkload),
    /// Requests at random instants, open: see [`crate::synthetic`].
    Poisson(PoissonWorkload),
}

/// A trace and how it is replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceWorkload {
    /// Path as the experiment gives it, relative to the experiment's own folder.
    pub path: String,
    /// Format by name, or detected.
    pub format: Option<String>,
    /// Filters in order, as `agewell trace filter` takes them.
    pub filters: Vec<String>,
    /// Count and skip bad records rather than fail.
    pub skip_bad: bool,
    /// Which clock issues requests.
    pub replay: Replay,
    /// What to do with addresses beyond the device.
    pub beyond_capacity: BeyondCapacity,
}

/// Which clock issues requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// Requests arrive at their traced times, however fast the device is (Ruemmler & Wilkes 1991,
    /// §4.3).
    Open,
    /// A request that in the trace was enqueued after its predecessor completed is issued its think
    /// time after the *simulated* completion; one that overlapped its predecessor keeps its
    /// distance from the predecessor's arrival.
    Closed,
}

/// What to do with a request that reaches beyond the modelled device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeyondCapacity {
    /// Refuse the run.
    Error,
    /// Leave the request out and count it.
    Skip,
    /// Take the address modulo the capacity.
    Wrap,
}

/// A synthetic open load.
#[derive(Debug, Clone, PartialEq)]
pub struct PoissonWorkload {
    /// Requests to issue.
    pub requests: u64,
    /// Mean rate over all disks.
    pub rate_per_s: f64,
    /// Share of reads, 0 to 1.
    pub read_fraction: f64,
    /// Share of requests that continue where the one before on the same disk ended, 0 to 1.
    pub sequential_fraction: f64,
    /// Bytes in every request, a multiple of 512.
    pub request_bytes: u64,
    /// Disks, addressed with equal probability.
    pub disks: u32,
}

/// Which disk: a catalogue name or file, or parameters in place.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceChoice {
    /// A name of the catalogue, or the path of a device file.
    Model(String),
    /// Access time and bandwidth, said in place.
    Simple(SimpleDevice),
    /// The table of a device file, in place.
    Inline(Value),
}

impl DeviceChoice {
    /// Reads `[device]`.
    ///
    /// # Errors
    /// If a key is not known or its value does not do.
    pub fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[device]", value.clone())?;
        match table.string("kind")?.as_deref() {
            None => {
                let model = table.string("model")?.ok_or_else(|| table.missing("model"))?;
                table.finish()?;
                Ok(Self::Model(model))
            }
            // A device file has its own checks; a simple disk said in place is shorter.
            Some("simple") if value.get("simple").is_none() => read_simple(table),
            Some(_) => Ok(Self::Inline(value)),
        }
    }

    /// The choice as it could be written in an experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        match self {
            Self::Model(name) => json!({ "model": name }),
            Self::Simple(simple) => json!({
                "kind": "simple",
                "capacity": format!("{} B", simple.capacity_bytes),
                "access_time": format!("{} ns", simple.access_time.0),
                "bandwidth": format!("{} B/s", simple.bandwidth_bytes_per_s),
            }),
            Self::Inline(table) => table.clone(),
        }
    }

    /// The name in the catalogue, or the path, if it is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Model(name) => Some(name),
            Self::Simple(_) | Self::Inline(_) => None,
        }
    }
}

/// The disk of Matthews 1999, ch. 5, said in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimpleDevice {
    /// Addressable size, a multiple of 512.
    pub capacity_bytes: u64,
    /// Paid by every transfer.
    pub access_time: SimDuration,
    /// Transfer rate.
    pub bandwidth_bytes_per_s: u64,
}

/// Options of the run as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// Seed of every random stream.
    pub seed: u64,
    /// Whether the same requests also run without remapping, for comparison.
    pub baseline: bool,
    /// Length of an interval of the series.
    pub series_interval: SimDuration,
    /// Daily windows left out of every metric and of the series (the papers' nightly back-ups);
    /// requests in them are still served.
    pub exclude_daily: Vec<DailyWindow>,
    /// Leave out of the metrics what comes before the first rearrangement, in both lanes.
    pub after_first_rearrangement: bool,
}

impl Experiment {
    /// An experiment from `value` (the TOML file as JSON).
    ///
    /// # Errors
    /// Names the table and key: unknown tables and keys, missing ones, values of the wrong kind or
    /// range.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        let mut root = Table::new("experiment", value)?;
        let mut section = |name: &'static str| root.value(name);
        let workload = section("workload").ok_or_else(|| {
            ConfigError(
                "experiment: table [workload] is missing; \
                 say for example kind = \"trace\" and path"
                    .into(),
            )
        })?;
        let device = section("device").ok_or_else(|| {
            ConfigError(
                "experiment: table [device] is missing; say for example model = \"hp-97560\""
                    .into(),
            )
        })?;
        let (remap, queue, run) = (section("remap"), section("queue"), section("run"));
        root.finish()?;
        let workload = read_workload(workload)?;
        let remap = RemapSetup::read(&remap.unwrap_or_else(|| json!({})))?;
        let queue = read_queue(queue.unwrap_or_else(|| json!({})))?;
        let device = DeviceChoice::read(device)?;
        let run = read_run(run.unwrap_or_else(|| json!({})), &remap)?;
        Ok(Self { workload, remap, queue, device, run })
    }

    /// The experiment with every default filled in; reading it again gives the same experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        json!({
            "workload": self.workload.resolved(),
            "remap": self.remap.resolved(),
            "queue": { "discipline": self.queue.name() },
            "device": self.device.resolved(),
            "run": self.run.resolved(),
        })
    }
}

impl Workload {
    fn resolved(&self) -> Value {
        match self {
            Workload::Trace(trace) => {
                let mut table = Map::new();
                table.insert("kind".into(), json!("trace"));
                table.insert("path".into(), json!(trace.path));
                if let Some(format) = &trace.format {
                    table.insert("format".into(), json!(format));
                }
                table.insert("filters".into(), json!(trace.filters));
                table.insert("skip_bad".into(), json!(trace.skip_bad));
                table.insert("replay".into(), json!(name_of(REPLAYS, trace.replay)));
                let beyond = name_of(BEYOND_CAPACITY, trace.beyond_capacity);
                table.insert("beyond_capacity".into(), json!(beyond));
                Value::Object(table)
            }
            Workload::Poisson(load) => json!({
                "kind": "poisson",
                "requests": load.requests,
                "rate_per_s": load.rate_per_s,
                "read_fraction": load.read_fraction,
                "sequential_fraction": load.sequential_fraction,
                "request_size": format!("{} B", load.request_bytes),
                "disks": load.disks,
            }),
        }
    }
}

impl RunOptions {
    fn resolved(&self) -> Value {
        let windows: Vec<String> = self.exclude_daily.iter().map(ToString::to_string).collect();
        json!({
            "seed": self.seed,
            "baseline": self.baseline,
            "series_interval": format!("{} ns", self.series_interval.0),
            "exclude_daily": windows,
            "after_first_rearrangement": self.after_first_rearrangement,
        })
    }
}

const REPLAYS: &[(&str, Replay)] = &[("open", Replay::Open), ("closed", Replay::Closed)];
const BEYOND_CAPACITY: &[(&str, BeyondCapacity)] = &[
    ("error", BeyondCapacity::Error),
    ("skip", BeyondCapacity::Skip),
    ("wrap", BeyondCapacity::Wrap),
];

fn name_of<T: Copy + PartialEq>(choices: &[(&'static str, T)], value: T) -> &'static str {
    let found = choices.iter().find(|(_, choice)| *choice == value);
    found.expect("every variant stands in its table of names").0
}

fn read_workload(value: Value) -> Result<Workload, ConfigError> {
    #[derive(Clone, Copy)]
    enum Kind {
        Trace,
        Poisson,
    }
    let mut table = Table::new("[workload]", value)?;
    let kinds = [("trace", Kind::Trace), ("poisson", Kind::Poisson)];
    let workload = match table.choice("kind", &kinds, None)? {
        Kind::Trace => Workload::Trace(TraceWorkload {
            path: table.string("path")?.ok_or_else(|| table.missing("path"))?,
            format: table.string("format")?,
            filters: table.strings("filters")?.unwrap_or_default(),
            skip_bad: table.boolean("skip_bad")?.unwrap_or(false),
            replay: table.choice("replay", REPLAYS, Some(Replay::Open))?,
            beyond_capacity: table.choice(
                "beyond_capacity",
                BEYOND_CAPACITY,
                Some(BeyondCapacity::Error),
            )?,
        }),
        Kind::Poisson => Workload::Poisson(read_poisson(&mut table)?),
    };
    table.finish()?;
    Ok(workload)
}

fn read_poisson(table: &mut Table) -> Result<PoissonWorkload, ConfigError> {
    let request_bytes = table.bytes("request_size")?.unwrap_or(8192);
    if request_bytes == 0 || !request_bytes.is_multiple_of(SECTOR_BYTES) {
        return Err(table.invalid("request_size", "must be a whole number of 512-byte sectors"));
    }
    let load = PoissonWorkload {
        requests: table.whole("requests")?.ok_or_else(|| table.missing("requests"))?,
        // Below one a year a gap no longer fits the clock; above one a nanosecond there is no gap.
        rate_per_s: table
            .number("rate_per_s", 1e-7, 1e9)?
            .ok_or_else(|| table.missing("rate_per_s"))?,
        read_fraction: table.number("read_fraction", 0.0, 1.0)?.unwrap_or(0.66),
        sequential_fraction: table.number("sequential_fraction", 0.0, 1.0)?.unwrap_or(0.0),
        request_bytes,
        disks: u32::try_from(table.whole("disks")?.unwrap_or(1)).unwrap_or(u32::MAX),
    };
    if !(1..=DISKS_MAX).contains(&load.disks) {
        return Err(table.invalid("disks", format_args!("must be from 1 to {DISKS_MAX}")));
    }
    Ok(load)
}

fn read_queue(value: Value) -> Result<Discipline, ConfigError> {
    let mut table = Table::new("[queue]", value)?;
    let choices: Vec<(&str, Discipline)> =
        Discipline::ALL.iter().map(|discipline| (discipline.name(), *discipline)).collect();
    let discipline = table.choice("discipline", &choices, Some(Discipline::Fcfs))?;
    table.finish()?;
    Ok(discipline)
}

fn read_simple(mut table: Table) -> Result<DeviceChoice, ConfigError> {
    let capacity_bytes = table.bytes("capacity")?.ok_or_else(|| table.missing("capacity"))?;
    if capacity_bytes == 0 || !capacity_bytes.is_multiple_of(SECTOR_BYTES) {
        return Err(table.invalid("capacity", "must be a whole number of 512-byte sectors"));
    }
    let bandwidth_bytes_per_s =
        table.bytes_per_second("bandwidth")?.ok_or_else(|| table.missing("bandwidth"))?;
    if bandwidth_bytes_per_s == 0 {
        return Err(table.invalid("bandwidth", "must be more than nothing"));
    }
    let access_time = table.duration("access_time")?.ok_or_else(|| table.missing("access_time"))?;
    table.finish()?;
    Ok(DeviceChoice::Simple(SimpleDevice { capacity_bytes, access_time, bandwidth_bytes_per_s }))
}

fn read_run(value: Value, remap: &RemapSetup) -> Result<RunOptions, ConfigError> {
    let mut table = Table::new("[run]", value)?;
    let windows = table.strings("exclude_daily")?.unwrap_or_default();
    let run = RunOptions {
        seed: table.whole("seed")?.unwrap_or(1),
        baseline: table.boolean("baseline")?.unwrap_or(!remap.is_identity()),
        series_interval: table
            .duration("series_interval")?
            .unwrap_or(SimDuration(3_600_000_000_000)),
        exclude_daily: windows
            .iter()
            .map(|text| text.parse())
            .collect::<Result<_, _>>()
            .map_err(|why: DailyWindowError| table.invalid("exclude_daily", why))?,
        after_first_rearrangement: table.boolean("after_first_rearrangement")?.unwrap_or(false),
    };
    if run.series_interval.0 == 0 {
        return Err(table.invalid("series_interval", "must be longer than nothing"));
    }
    table.finish()?;
    Ok(run)
}

/// Where a path of the experiment points: relative ones are relative to `base`.
#[must_use]
pub fn resolve_path(base: &Path, given: &str) -> PathBuf {
    let path = Path::new(given);
    if path.is_absolute() || given == "-" { path.to_owned() } else { base.join(path) }
}
