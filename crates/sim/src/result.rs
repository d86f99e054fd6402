//! The result of a run: one JSON document and Parquet tables, the same bytes for the same
//! configuration and inputs.
//!
//! Nothing here knows how long a run took or on which machine it ran: that goes to standard error
//! and a side file.

mod tables;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::config::resolve_path;
use crate::error::RunError;
use crate::metrics::{Interval, Metrics, Sums};
use crate::run::Places;

pub(crate) use tables::write_table;
pub use tables::write_tables;

/// Version of the layout of `result.json` and of the tables beside it.
pub const SCHEMA_VERSION: u32 = 1;

/// What remapping did, over all disks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemapSummary {
    /// Rearrangements carried out.
    pub rearrangements: u64,
    /// Quanta that a rearrangement moved, summed over rearrangements.
    pub moved_quanta: u64,
    /// Quanta that a rearrangement could have moved, summed over rearrangements.
    pub movable_quanta: u64,
    /// Moves dropped because the next rearrangement came first.
    pub dropped_steps: u64,
    /// Moves decided on but not yet carried out when the trace ended.
    pub moves_left: u64,
    /// Disk I/Os done for moves.
    pub move_ios: u64,
    /// Sectors read or written for moves.
    pub move_sectors: u64,
    /// Disk time that moves took, ns.
    pub move_ns: u128,
}

impl RemapSummary {
    /// Both together, as of two disks.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            rearrangements: self.rearrangements + other.rearrangements,
            moved_quanta: self.moved_quanta + other.moved_quanta,
            movable_quanta: self.movable_quanta + other.movable_quanta,
            dropped_steps: self.dropped_steps + other.dropped_steps,
            moves_left: self.moves_left + other.moves_left,
            move_ios: self.move_ios + other.move_ios,
            move_sectors: self.move_sectors + other.move_sectors,
            move_ns: self.move_ns + other.move_ns,
        }
    }
}

/// The metrics of one lane under their fixed names; a metric without a meaning (a mean over
/// nothing) is null.
#[must_use]
pub fn metrics_value(metrics: &Metrics, remap: Option<&RemapSummary>) -> Map<String, Value> {
    let all = metrics.all();
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    put("requests", json!(all.requests));
    put("read_requests", json!(metrics.reads.requests));
    put("write_requests", json!(metrics.writes.requests));
    put("split_requests", json!(metrics.split_requests));
    put("mean_response_ms", json!(all.mean_response_ms()));
    put("mean_service_ms", json!(all.mean_service_ms()));
    put("mean_read_service_ms", json!(metrics.reads.mean_service_ms()));
    put("mean_write_service_ms", json!(metrics.writes.mean_service_ms()));
    for (name, per_mille) in [("p50", 500), ("p95", 950), ("p99", 990)] {
        let response = metrics.response.percentile(per_mille).map(ms);
        put(&format!("{name}_response_ms"), json!(response));
    }
    put("mean_seek_cylinders", json!(metrics.mean_seek_cylinders()));
    put("zero_seek_fraction", json!(share(metrics.zero_seeks, metrics.physical)));
    put("buffer_hit_fraction", json!(share(metrics.buffer_hits, metrics.physical)));
    let names = ["mean_seek_ms", "mean_rotation_ms", "mean_transfer_ms", "mean_overhead_ms"];
    for (name, sum) in names.into_iter().zip(metrics.parts_ns) {
        put(name, json!(crate::metrics::mean_ms(sum, metrics.physical)));
    }
    put("disk_seconds", json!(all.service_ns as f64 / 1e9));
    put("read_mb_per_s", json!(megabytes_per_second(&metrics.reads)));
    put("write_mb_per_s", json!(megabytes_per_second(&metrics.writes)));
    if let Some(remap) = remap {
        put("rearrangements", json!(remap.rearrangements));
        put("moved_fraction", json!(share(remap.moved_quanta, remap.movable_quanta)));
        put("moved_quanta", json!(remap.moved_quanta));
        put("moves_left", json!(remap.moves_left));
        put("moves_dropped", json!(remap.dropped_steps));
        put("move_ios", json!(remap.move_ios));
        put("move_bytes", json!(remap.move_sectors * agewell_core::SECTOR_BYTES));
        put("move_disk_seconds", json!(remap.move_ns as f64 / 1e9));
    }
    map
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Rate at which the disk moved data while it served these requests, in 10^6 bytes per second of
/// service time.
fn megabytes_per_second(sums: &Sums) -> Option<f64> {
    let bytes = sums.sectors as f64 * agewell_core::SECTOR_BYTES as f64;
    (sums.service_ns > 0).then(|| bytes / 1e6 / (sums.service_ns as f64 / 1e9))
}

/// Whether both lanes saw the same requests in the same intervals. They do unless the replay is
/// closed: then a faster lane issues its requests earlier.
#[must_use]
pub fn share_intervals(run: &Metrics, baseline: &Metrics) -> bool {
    let key = |row: &Interval| (row.index, row.requests);
    run.series.rows().iter().map(key).eq(baseline.series.rows().iter().map(key))
}

/// The report's figure of merit (Ruemmler & Wilkes 1991, §5.1): the improvement of the mean service
/// time of each interval in per cent, weighted by the interval's share of requests, over the
/// intervals that begin at or after `from_ns`. `None` if no interval counts, or the lanes do not
/// share their intervals.
#[must_use]
pub fn weighted_improvement_pct(run: &Metrics, baseline: &Metrics, from_ns: u64) -> Option<f64> {
    if !share_intervals(run, baseline) {
        return None;
    }
    let interval_ns = run.series.interval().0;
    let (mut weighted, mut requests) = (0.0, 0_u64);
    for (ours, theirs) in run.series.rows().iter().zip(baseline.series.rows()) {
        let begins_ns = ours.index * interval_ns;
        if begins_ns < from_ns || theirs.service_ns == 0 {
            continue;
        }
        let improvement = 1.0 - ours.service_ns as f64 / theirs.service_ns as f64;
        weighted += improvement * ours.requests as f64;
        requests += ours.requests;
    }
    (requests > 0).then(|| 100.0 * weighted / requests as f64)
}

/// The files that a result depends on, a trace and a device by the names that the experiment gives
/// them, with their hashes.
///
/// # Errors
/// If one of them cannot be read.
pub fn inputs(files: (Option<&str>, Option<&str>), places: Places) -> Result<Value, RunError> {
    inputs_unless(&AtomicBool::new(false), files, places)
}

/// The same while something else is done: an error as soon as `stopped`.
pub(crate) fn inputs_unless(
    stopped: &AtomicBool,
    (trace, device): (Option<&str>, Option<&str>),
    places: Places,
) -> Result<Value, RunError> {
    let trace = trace.map(|name| (name, resolve_path(places.base, name)));
    let device = device.map(|name| {
        let beside = resolve_path(places.base, name);
        let catalogued = || places.catalogue.join(format!("{name}.toml"));
        (name, if beside.is_file() { beside } else { catalogued() })
    });
    trace
        .into_iter()
        .chain(device)
        .map(|(name, path)| {
            let sha256 = sha256_unless(stopped, &path)
                .map_err(|source| RunError::Io { path: path.clone(), source })?;
            Ok(json!({ "name": name, "sha256": sha256 }))
        })
        .collect()
}

/// The SHA-256 of a file, in hexadecimal.
///
/// # Errors
/// If the file cannot be read.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    sha256_unless(&AtomicBool::new(false), path)
}

fn sha256_unless(stopped: &AtomicBool, path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        if stopped.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        hasher.update(&buffer[..read]);
    }
    Ok(hexadecimal(hasher))
}

/// The SHA-256 of `bytes`, in hexadecimal.
#[must_use]
pub fn sha256_of(bytes: &[u8]) -> String {
    hexadecimal(Sha256::new_with_prefix(bytes))
}

fn hexadecimal(hasher: Sha256) -> String {
    let mut text = String::new();
    for byte in hasher.finalize() {
        write!(text, "{byte:02x}").expect("a string takes any text");
    }
    text
}

/// Writes `bytes` as `directory/name` so that the name never stands for half a file.
///
/// # Errors
/// If the directory cannot be written to.
pub fn write_whole(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    agewell_trace::write_whole(&directory.join(name), bytes)
}
