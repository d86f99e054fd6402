//! Traces carried out by a store of blocks, or in place, from Python.

#![allow(clippy::disallowed_methods, reason = "how often signals are heeded is of no result")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agewell_config::{Form, choice, count, flag, keys, natural, read_table, text, whole};
use agewell_disk::DeviceParameters;
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::{Collect, Mechanism, PlugCandidate};
use agewell_log::{CostMeter, Counts, Purpose};
use agewell_store::device::{Disk, MemoryDisk, ModelledDisk, Spent};
use agewell_store::replay::{ReplayError, Steps, Versions, in_place, through_store};
use agewell_store::{
    FormatOptions, Geometry, Means, MediumCounts, OpenOptions, Placement, Store, StoreError,
};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::{error, interpreter};

/// Signals are heeded this often at most.
const HEEDED_EVERY: Duration = Duration::from_millis(50);

/// Who carries a trace out.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Carrier {
    Store(Means),
    InPlace,
}

const CARRIERS: &[(&str, Carrier)] = &[
    ("clean", Carrier::Store(Means::Fixed(Collect::Always(Mechanism::Clean)))),
    ("plug", Carrier::Store(Means::Fixed(Collect::Always(Mechanism::Plug)))),
    ("thread", Carrier::Store(Means::Fixed(Collect::Always(Mechanism::Thread)))),
    (
        "matthews-1999",
        Carrier::Store(Means::Fixed(Collect::Matthews1999(PlugCandidate::LeastUtilized))),
    ),
    ("adaptive", Carrier::Store(Means::Adaptive)),
    ("in-place", Carrier::InPlace),
];

keys! {
    /// How a trace is carried out.
    struct Options {
        /// by a store that makes room so, or in place
        by: Carrier = "by" choice(CARRIERS).required();
        /// segments of the store
        segments: Option<u32> = "segments" count().optional();
        /// or as many as make the blocks of the trace this share of what it says that it holds
        full_percent: Option<u32> = "full_percent" count().optional();
        /// blocks of a segment
        segment_blocks: u32 = "segment_blocks" count().or(64);
        /// bytes of a block
        block_bytes: u32 = "block_bytes" count().or(4096);
        /// segments that it keeps from users; as usual, if that is not said
        reserve_segments: Option<u32> = "reserve_segments" natural().optional();
        /// device of the catalogue, or file of one; memory without a clock if there is none
        device: Option<String> = "device" text().optional();
        /// what a transfer elsewhere is taken to cost beside its bytes
        access_ns: u64 = "access_ns" whole().or(OpenOptions::default().prices.access_ns);
        /// what one to the same segment is
        further_ns: u64 = "further_ns" whole().or(OpenOptions::default().prices.further_ns);
        /// what bytes are
        bandwidth_bytes_per_s: u64 = "bandwidth_bytes_per_s"
            whole().from(1).or(OpenOptions::default().prices.bandwidth_bytes_per_s);
        /// prices are learnt from the device
        learns_prices: bool = "learns_prices" flag().or(true);
        /// syncs are placed a rotational delay apart, which is learnt; what is simulated leaves no gaps
        leaves_gaps: bool = "leaves_gaps" flag().or(false);
        /// logs that what is collected is divided among by expected lifetime; 0: it goes behind new data
        collected_logs: u32 = "collected_logs" natural().or(0);
        /// every block is read afterwards and held against what was written
        reads_back: bool = "reads_back" flag().or(true);
    }
}

/// Carries out the reads, writes and syncs of the file-operation trace at `trace`, which are of one file,
/// by a new store or in place; what that took until the first directory that the trace makes, and to its
/// end, as JSON text.
///
/// `options` is a JSON object (`Options`). `progress` is called with the share that is done; an exception
/// from it, or Ctrl-C, stops the work.
#[pyfunction]
#[pyo3(signature = (trace, options, catalogue_dir, progress=None))]
pub(crate) fn store_replay(
    py: Python<'_>,
    trace: PathBuf,
    options: &str,
    catalogue_dir: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = serde_json::from_str::<Value>(options)
        .map_err(|why| error::input(format!("the options are not JSON: {why}")))?;
    let options = read_table::<Options>("options", options).map_err(error::input)?;
    let work =
        |raised: &mut Option<PyErr>| replay(&trace, &options, &catalogue_dir, progress, raised);
    Ok(interpreter::detached(py, work, |why: PyErr| why)?.to_string())
}

fn replay(
    trace: &Path,
    options: &Options,
    catalogue_dir: &Path,
    progress: Option<Py<PyAny>>,
    raised: &mut Option<PyErr>,
) -> PyResult<Value> {
    let steps = Steps::read(trace, options.block_bytes).map_err(to_python)?;
    let total = steps.steps.len().max(1) as f64;
    let mut last = Instant::now();
    let mut go_on = |done: u64| {
        if last.elapsed() < HEEDED_EVERY {
            return true;
        }
        last = Instant::now();
        interpreter::call(raised, |py| {
            if let Some(progress) = &progress {
                progress.call1(py, (done as f64 / total,))?;
            }
            Ok(())
        })
    };
    let run = Run { steps: &steps, options };
    match &options.device {
        None => run.on(MemoryDisk::new, &|_| Value::Null, &mut go_on),
        Some(name) => {
            let parameters = DeviceParameters::find(name, catalogue_dir).map_err(error::input)?;
            let made = |bytes| ModelledDisk::new(&parameters).with_size(bytes);
            run.on(made, &spent, &mut go_on)
        }
    }
}

struct Run<'a> {
    steps: &'a Steps,
    options: &'a Options,
}

impl Run<'_> {
    /// How many segments the store has.
    fn segments(&self, format: &FormatOptions) -> PyResult<u32> {
        match (self.options.segments, self.options.full_percent) {
            (Some(segments), None) => Ok(segments),
            (None, Some(percent @ 1..=100)) => {
                let held = (u64::from(self.steps.blocks) * 100).div_ceil(u64::from(percent));
                let held = u32::try_from(held).ok();
                held.and_then(|held| Geometry::segments_for(format, held)).ok_or_else(|| {
                    error::input(format!("{} blocks are too many for a store", self.steps.blocks))
                })
            }
            _ => Err(error::input(
                "a store has `segments`, or `full_percent` from 1 to 100".to_owned(),
            )),
        }
    }

    /// Carries it out on the disk that `made` makes of that many bytes; `spent` says what one has taken.
    fn on<D: Disk>(
        &self,
        made: impl Fn(u64) -> D,
        spent: &dyn Fn(&D) -> Value,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> PyResult<Value> {
        let (before, after) = self.steps.steps.split_at(self.steps.before_mark);
        let mut versions = Versions::new(self.steps.blocks, self.options.block_bytes);
        let Carrier::Store(means) = self.options.by else {
            let bytes = u64::from(self.steps.blocks) * u64::from(self.options.block_bytes);
            let disk = made(bytes);
            check_size(&disk, bytes)?;
            in_place(&disk, before, &mut versions, go_on).map_err(to_python)?;
            let at_mark = json!({ "disk": spent(&disk) });
            let mut behind = |done| go_on(done + before.len() as u64);
            in_place(&disk, after, &mut versions, &mut behind).map_err(to_python)?;
            let at_end = json!({ "disk": spent(&disk) });
            if self.options.reads_back {
                versions.check_disk(&disk).map_err(to_python)?;
            }
            return Ok(json!({ "at_mark": at_mark, "at_end": at_end }));
        };
        let format = FormatOptions {
            block_bytes: self.options.block_bytes,
            segment_blocks: self.options.segment_blocks,
            reserve_segments: self.options.reserve_segments,
            // Only one store is made, and it is gone afterwards.
            ..FormatOptions::new(*b"agewell replayed")
        };
        let segments = self.segments(&format)?;
        let bytes = Geometry::device_bytes(&format, segments)
            .ok_or_else(|| error::input(format!("{segments} segments are too many for a store")))?;
        let disk = made(bytes);
        check_size(&disk, bytes)?;
        let geometry = Store::format(&disk, &format).map_err(of_store)?;
        let prices = CostModel {
            access_ns: self.options.access_ns,
            further_ns: self.options.further_ns,
            bandwidth_bytes_per_s: self.options.bandwidth_bytes_per_s,
            block_bytes: u64::from(self.options.block_bytes),
        };
        let open = OpenOptions {
            means,
            placement: if self.options.collected_logs > 0 {
                Placement::Lifetime
            } else {
                Placement::None
            },
            collected_logs: Some(self.options.collected_logs),
            // As a simulated log does.
            begins_by: (!self.options.leaves_gaps).then_some(Mechanism::Clean),
            prices,
            learns_prices: self.options.learns_prices,
            rotational_delay_ns: if self.options.leaves_gaps { None } else { Some(0) },
            lost_turn_ns: 0,
        };
        let store = Store::open(disk, &open).map_err(of_store)?;
        through_store(&store, before, &mut versions, go_on).map_err(to_python)?;
        let at_mark = state(&store, spent);
        let mut behind = |done| go_on(done + before.len() as u64);
        through_store(&store, after, &mut versions, &mut behind).map_err(to_python)?;
        let at_end = state(&store, spent);
        if self.options.reads_back {
            versions.check_store(&store).map_err(to_python)?;
        }
        Ok(json!({
            "segments": geometry.segments,
            "capacity_blocks": geometry.capacity_blocks(),
            "at_mark": at_mark,
            "at_end": at_end,
        }))
    }
}

fn check_size(disk: &impl Disk, bytes: u64) -> PyResult<()> {
    if disk.size_bytes() >= bytes {
        return Ok(());
    }
    let size = disk.size_bytes();
    Err(error::input(format!("the device has {size} bytes; {bytes} are needed")))
}

#[allow(clippy::needless_pass_by_value, reason = "the shape that `map_err` takes")]
fn of_store(why: StoreError) -> PyErr {
    match why {
        StoreError::Options(_) | StoreError::NoRoom { .. } | StoreError::Transaction(_) => {
            error::input(why)
        }
        _ => error::run(why),
    }
}

fn to_python(why: ReplayError) -> PyErr {
    match why {
        ReplayError::Store(why) => of_store(why),
        ReplayError::Asked(_) => error::input(why),
        ReplayError::Trace(ref trace) if trace.is_input_error() => error::input(why),
        _ => error::run(why),
    }
}

/// What a store has done so far.
fn state<D: Disk>(store: &Store<D>, spent: &dyn Fn(&D) -> Value) -> Value {
    json!({
        "log": counts(&store.log_counts()),
        "transfers": transfers(&store.log_transfers()),
        "collect": format!("{:?}", store.collect_rule()),
        "medium": medium(&store.medium_counts()),
        "disk": spent(store.disk()),
    })
}

fn counts(counts: &Counts) -> Value {
    json!({
        "user_blocks": counts.user_blocks,
        "absorbed_blocks": counts.absorbed_blocks,
        "new_blocks": counts.new_blocks,
        "read_blocks": counts.read_blocks,
        "cleaned_blocks": counts.cleaned_blocks,
        "plugged_blocks": counts.plugged_blocks,
        "threaded_blocks": counts.threaded_blocks,
        "segments_cleaned": counts.segments_cleaned,
        "segments_plugged": counts.segments_plugged,
        "segments_threaded": counts.segments_threaded,
    })
}

/// What the log has had transferred, by purpose, at the prices given.
fn transfers(meter: &CostMeter) -> Value {
    let mut purposes = Map::new();
    for purpose in Purpose::ALL {
        let spent = meter.spent(purpose);
        if spent.transfers > 0 {
            let account = json!({
                "transfers": spent.transfers,
                "blocks": spent.blocks,
                "seconds": spent.time_ns as f64 / 1e9,
            });
            purposes.insert(purpose.name().to_owned(), account);
        }
    }
    Value::Object(purposes)
}

fn medium(counts: &MediumCounts) -> Value {
    json!({
        "new_blocks": counts.new_blocks,
        "moved_blocks": counts.moved_blocks,
        "inline_blocks": counts.inline_blocks,
        "ring_blocks": counts.ring_blocks,
        "map_blocks": counts.map_blocks,
        "flushes": counts.flushes,
        "checkpoints": counts.checkpoints,
        "maps_written": counts.maps_written,
        "groups": counts.groups,
    })
}

/// What a modelled disk was asked, and how long that took.
fn spent(disk: &ModelledDisk) -> Value {
    let spent = disk.spent();
    let account = |of: &Spent| {
        json!({
            "requests": of.requests,
            "bytes": of.bytes,
            "seconds": of.time.0 as f64 / 1e9,
        })
    };
    json!({
        "seconds": spent.time().0 as f64 / 1e9,
        "reads": account(&spent.reads),
        "writes": account(&spent.writes),
        "discards": account(&spent.discards),
        "flushes": account(&spent.flushes),
    })
}
