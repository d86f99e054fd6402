//! An experiment of block requests that go straight to a disk.

use agewell_config::{
    ConfigError, Form, Keyed, KindOfTable, Parsed, Table, TableOfKeys, choice, count, flag, keys,
    list, number, parsed, read_table, sectors, text, time, whole,
};
use agewell_core::{DailyWindow, SimDuration};
use agewell_disk::queue::Discipline;
use serde_json::{Value, json};

use super::device::{self, DeviceChoice};
use super::remap::RemapSetup;
use super::tables::Tables;

/// Most disks in one run; chosen by us: more are surely a device column misread.
pub const DISKS_MAX: u32 = 4096;

/// An experiment of block requests that go straight to a disk.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestExperiment {
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
    /// Requests at random instants, open: see [`crate::open_loop::synthetic`].
    Poisson(PoissonWorkload),
}

const REPLAYS: &[(&str, Replay)] = &[("open", Replay::Open), ("closed", Replay::Closed)];

const BEYOND_CAPACITY: &[(&str, BeyondCapacity)] = &[
    ("error", BeyondCapacity::Error),
    ("skip", BeyondCapacity::Skip),
    ("wrap", BeyondCapacity::Wrap),
];

keys! {
    /// A block trace as a file.
    pub struct TraceFile {
        /// the file; `-` is standard input
        path: String = "path" text().required();
        /// a format by name, when it is not to be detected
        format: Option<String> = "format" text().or_else("detected");
        /// applied in order, as `agewell trace filter` takes them: `["device=0", "op=read"]`
        filters: Vec<String> = "filters" list(text()).or(Vec::new());
        /// count and skip bad records instead of failing
        skip_bad: bool = "skip_bad" flag().or(false);
    }
}

keys! {
    /// How a trace is replayed.
    pub struct TraceReplay {
        /// `"open"`: traced arrival times; `"closed"`: think time after the simulated completion
        /// (needs traced completion times)
        replay: Replay = "replay" choice(REPLAYS).or(Replay::Open);
        /// what to do with requests that reach beyond the device
        beyond_capacity: BeyondCapacity = "beyond_capacity"
            choice(BEYOND_CAPACITY).or(BeyondCapacity::Error);
    }
}

/// A trace and how it is replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceWorkload {
    /// The trace.
    pub file: TraceFile,
    /// How it is replayed.
    pub replay: TraceReplay,
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

keys! {
    /// A synthetic open load.
    pub struct PoissonWorkload {
        /// how many
        requests: u64 = "requests" whole().required();
        // Below one a year a gap no longer fits the clock; above one a nanosecond there is no gap.
        /// mean rate over all disks
        rate_per_s: f64 = "rate_per_s" number(1e-7, 1e9).required();
        /// share of reads
        read_fraction: f64 = "read_fraction" number(0.0, 1.0).or(0.66);
        /// share that continues where the one before on the same disk ended
        sequential_fraction: f64 = "sequential_fraction" number(0.0, 1.0).or(0.0);
        /// size of every request
        request_bytes: u64 = "request_size" sectors().or(8192);
        /// disks, addressed with equal probability
        disks: u32 = "disks" count().to(DISKS_MAX).or(1);
    }
}

keys! {
    /// In which order a busy disk takes what waits.
    pub struct QueueTable {
        /// the order
        discipline: Discipline = "discipline"
            choice(&Discipline::ALL.map(|each| (each.name(), each))).or(Discipline::Fcfs);
    }
}

fn window() -> Parsed<DailyWindow> {
    parsed("`\"03:00..06:00\"`")
}

keys! {
    /// Options of the run as a whole.
    pub struct RunOptions {
        /// of every random stream
        seed: u64 = "seed" whole().or(1);
        /// also run the same requests without remapping
        baseline: Option<bool> = "baseline" flag().or_else("`true` with a remapping, else `false`");
        /// length of an interval of `series.parquet`
        series_interval: SimDuration = "series_interval"
            time().positive().or(SimDuration(3_600_000_000_000));
        /// daily windows left out of every metric and of the series (the papers' nightly back-ups);
        /// requests in them are still served. They need a trace that carries the date it began
        exclude_daily: Vec<DailyWindow> = "exclude_daily" list(window()).or(Vec::new());
        /// leave out of the metrics what comes before the first rearrangement, in both lanes
        after_first_rearrangement: bool = "after_first_rearrangement" flag().or(false);
    }
}

impl RunOptions {
    /// Whether the same requests also run without remapping, for comparison.
    #[must_use]
    pub fn has_baseline(&self) -> bool {
        self.baseline.unwrap_or(false)
    }
}

impl RequestExperiment {
    /// An experiment from `value` (the TOML file as JSON).
    ///
    /// # Errors
    /// Names the table and key: unknown tables and keys, missing ones, values of the wrong kind or
    /// range.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        let mut tables = Tables::of(value, &["workload", "remap", "queue", "device", "run"])?;
        let workload = tables.needed("workload", "kind = \"trace\" and path")?;
        let device = tables.needed("device", "model = \"hp-97560\"")?;
        let workload = Workload::read(workload)?;
        let remap = RemapSetup::read(tables.take("remap"))?;
        let queue = read_table::<QueueTable>("[queue]", tables.take("queue"))?.discipline;
        let device = DeviceChoice::read(device)?;
        device.check_takes_requests()?;
        let mut run = read_table::<RunOptions>("[run]", tables.take("run"))?;
        run.baseline = Some(run.baseline.unwrap_or(!remap.is_identity()));
        Ok(Self { workload, remap, queue, device, run })
    }

    /// The experiment with every default filled in; reading it again gives the same experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        json!({
            "workload": self.workload.resolved(),
            "remap": self.remap.resolved(),
            "queue": QueueTable::resolved(&QueueTable { discipline: self.queue }),
            "device": self.device.resolved(),
            "run": RunOptions::resolved(&self.run),
        })
    }

    /// Its tables, for the documentation and for editors.
    #[must_use]
    pub fn tables() -> Vec<TableOfKeys> {
        let trace = [TraceFile::keys(), TraceReplay::keys()].concat();
        let kinds = vec![
            KindOfTable { name: "trace", keys: trace },
            KindOfTable { name: "poisson", keys: PoissonWorkload::keys() },
        ];
        let workload = TableOfKeys { name: "workload", is_required: true, kinds, is_open: false };
        vec![
            workload,
            TableOfKeys::plain("remap", RemapSetup::keys()),
            TableOfKeys::plain("queue", QueueTable::keys()),
            device::table(),
            TableOfKeys::plain("run", RunOptions::keys()),
        ]
    }
}

impl Workload {
    /// Names of kinds.
    pub const KINDS: [&str; 2] = ["trace", "poisson"];

    fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[workload]", value)?;
        let kinds = choice(&[("trace", true), ("poisson", false)]).required();
        let workload = if table.key("kind", &kinds)? {
            let file = TraceFile::read(&mut table)?;
            Self::Trace(TraceWorkload { file, replay: TraceReplay::read(&mut table)? })
        } else {
            Self::Poisson(PoissonWorkload::read(&mut table)?)
        };
        table.finish()?;
        Ok(workload)
    }

    fn resolved(&self) -> Value {
        let mut table = serde_json::Map::new();
        match self {
            Workload::Trace(trace) => {
                table.insert("kind".into(), json!("trace"));
                TraceFile::resolve(&trace.file, &mut table);
                TraceReplay::resolve(&trace.replay, &mut table);
            }
            Workload::Poisson(load) => {
                table.insert("kind".into(), json!("poisson"));
                PoissonWorkload::resolve(load, &mut table);
            }
        }
        Value::Object(table)
    }
}
