//! Reorganising a mounted file system from Python.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agewell_age::AgeError;
use agewell_age::score::{ScoreOptions, score};
use agewell_config::{Form, flag, keys, rate, read_table, size, text, time};
use agewell_core::{Operation, SimDuration};
use agewell_disk::DeviceParameters;
use agewell_reorganise::{
    ChosenOrder, FileReads, FileSystem, Limits, Order, Pace, Part, Plan, PlanOptions, Progress,
    RecordedRead, Volume, by_recording, carry_out, plan, read_order, read_plan, write_plan,
};
use agewell_snapshot::Snapshot;
use agewell_trace::{ReadOptions, open_block_trace};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::age::{call_python, detached};
use crate::error;
use crate::options::options_given;

keys! {
    /// What a caller may ask for.
    struct OptionTable {
        /// the order in which the files are to lie
        by: String = "by" text().or("names".to_owned());
        /// the disk that the saving is estimated for: a name of the catalogue, or a device file
        device: Option<String> = "device" text().optional();
        /// no more bytes are moved
        budget: Option<u64> = "budget" size().optional();
        /// no more bytes are moved in a second
        rate: Option<u64> = "rate" rate().optional();
        /// it ends after so long
        time: Option<SimDuration> = "time" time().optional();
        /// nothing is moved
        dry_run: bool = "dry_run" flag().or(false);
        /// files are moved also where it does not pay
        anyway: bool = "anyway" flag().or(false);
        /// with a recording, no file is laid in parts
        whole_files: bool = "whole_files" flag().or(false);
        /// where the plan is written to, or read from
        plan: Option<String> = "plan" text().optional();
    }
}

/// What was asked for.
struct Asked {
    options: OptionTable,
    device: Option<DeviceParameters>,
}

impl Asked {
    fn read(options: &str, catalogue: &Path) -> PyResult<Self> {
        let entries = options_given(options)?;
        let options = read_table::<OptionTable>("options", Value::Object(entries));
        let options = options.map_err(error::input)?;
        let device = options.device.as_ref().map(|name| DeviceParameters::find(name, catalogue));
        let device = device.transpose().map_err(error::input)?;
        Ok(Self { options, device })
    }

    fn pace(&self) -> Pace {
        Pace {
            bytes_per_s: self.options.rate,
            at_most: self.options.time.map(|time| Duration::from_nanos(time.0)),
        }
    }
}

/// Lays the files of the mounted tree at `path` one behind another; what was planned and done as JSON
/// text.
///
/// `options` is a JSON object with the keys of [`OptionTable`]. `now_ns` is the time now, nanoseconds
/// since 1970. `progress` is called with a word for the phase (`look`, `move`), what is done, what
/// there is to do (files; bytes) or `None`, and the seconds since the phase began.
#[pyfunction]
#[pyo3(signature = (path, catalogue_dir, now_ns, options="{}", progress=None))]
pub(crate) fn reorganise_path(
    py: Python<'_>,
    path: PathBuf,
    catalogue_dir: PathBuf,
    now_ns: i64,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let asked = Asked::read(options, &catalogue_dir)?;
    let document = detached(py, |raised| {
        let mut report = |phase: &'static str, done: u64, of: Option<u64>, seconds: f64| {
            call_python(raised, |py| {
                if let Some(progress) = &progress {
                    progress.call1(py, (phase, done, of, seconds))?;
                }
                Ok(())
            })
        };
        reorganise(&path, now_ns, &asked, &mut report)
    })?;
    Ok(document.to_string())
}

/// Called with a phase, what is done, what there is to do, and seconds.
type Report<'a> = dyn FnMut(&'static str, u64, Option<u64>, f64) -> Result<(), AgeError> + 'a;

fn reorganise(
    path: &Path,
    now_ns: i64,
    asked: &Asked,
    report: &mut Report<'_>,
) -> Result<Value, AgeError> {
    let (volume, snapshot) =
        Volume::open(path, now_ns, &mut |told| report("look", told.files, told.files_in_all, 0.0))?;
    let given = asked.options.plan.as_ref().map(Path::new);
    let applied = given.filter(|_| asked.options.by == "plan");
    let (plan, order) = match applied {
        Some(file) => (read_plan(file)?, None),
        None => make_plan(&volume, &snapshot, asked)?,
    };
    if let (Some(file), None) = (given, applied) {
        write_plan(&plan, file)?;
    }
    let pays = plan.saving.as_ref().is_none_or(|saving| saving.pays);
    let goes_on = !asked.options.dry_run && (pays || asked.options.anyway);
    let mut document = json!({
        "file_system": plan.file_system,
        "order": order,
        "work": plan.work,
        "parted": plan.parted,
        "saving": plan.saving,
        "left_out": left_out(&plan.skipped),
        "layout": layout(&snapshot)?,
        "carried_out": goes_on,
    });
    if goes_on {
        let done = carry_out(&volume, &plan, asked.pace(), &mut |told: &Progress| {
            let seconds = told.elapsed.as_secs_f64();
            report("move", told.moved_bytes, Some(told.planned_bytes), seconds)
        })?;
        drop(volume);
        let (_, after) = Volume::open(path, now_ns, &mut |told| {
            report("look", told.files, told.files_in_all, 0.0)
        })?;
        document["done"] = json!({
            "files": done.files,
            "moved_bytes": done.moved_bytes,
            "evacuated_bytes": done.evacuated_bytes,
            "left": left_out(&done.left),
            "remaining": done.remaining,
            "out_of_time": done.out_of_time,
            "seconds": done.seconds,
        });
        document["layout_after"] = layout(&after)?;
    }
    Ok(document)
}

/// The plan, and if it is by a recording, which order of its files was taken.
fn make_plan(
    volume: &Volume,
    snapshot: &Snapshot,
    asked: &Asked,
) -> Result<(Plan, Option<ChosenOrder>), AgeError> {
    let device = asked.device.as_ref();
    let limits = Limits::default();
    let walk = |order| read_order(snapshot, order).into_iter().map(Part::whole).collect();
    let (parts, recorded): (Vec<Part>, _) = match asked.options.by.as_str() {
        "names" => (walk(Order::Names), None),
        "directory" => (walk(Order::Directory), None),
        file => {
            // An extent of btrfs lasts until nothing refers to any part of it: what is not read and
            // stays would hold the place of what is moved.
            let divides = !asked.options.whole_files && volume.file_system() != FileSystem::Btrfs;
            let reads = recorded_reads(snapshot, Path::new(file))?;
            let mut chosen = reads.choose(device, limits.longest_bytes, divides);
            (std::mem::take(&mut chosen.parts), Some(chosen))
        }
    };
    let walk = recorded.is_none();
    let options = PlanOptions { limits, budget_bytes: asked.options.budget, walk };
    let room = volume.room(snapshot)?;
    let plan = plan(snapshot, volume.file_system(), &parts, &room, device, &options)?;
    Ok((plan, recorded))
}

/// What the recording `path` reads of the files of `snapshot`.
fn recorded_reads(snapshot: &Snapshot, path: &Path) -> Result<FileReads, AgeError> {
    let wrong = |why: agewell_trace::TraceError| {
        AgeError::Input(format!(
            "{why}; --by takes names, directory or a recording of block requests"
        ))
    };
    let mut trace = open_block_trace(path, &ReadOptions::default()).map_err(wrong)?;
    let mut batch = agewell_trace::BlockBatch::default();
    let mut reads = Vec::new();
    while trace.next_batch(&mut batch).map_err(wrong)? {
        for row in 0..batch.enqueue_ns.len() {
            if Operation::from_code(batch.operation[row]) == Some(Operation::Read) {
                reads.push(RecordedRead {
                    sector: batch.sector[row],
                    sectors: u64::from(batch.sectors[row]),
                    client: batch.client[row],
                });
            }
        }
    }
    let found = by_recording(snapshot, reads.into_iter());
    if found.order.is_empty() {
        return Err(AgeError::Input(format!(
            "{}: reads no file of this tree; record the device that it is on, and reorganise \
             before its files move",
            path.display()
        )));
    }
    Ok(found)
}

/// Counts by reason, in words.
fn left_out(counts: &agewell_reorganise::SkipCounts) -> Value {
    let row = |(why, (files, bytes)): (&agewell_reorganise::Skip, &(u64, u64))| {
        let words = why.words();
        json!({ "reason": why, "words": words, "files": files, "bytes": bytes })
    };
    counts.iter().map(row).collect()
}

/// How the files of a snapshot lie, in few numbers.
fn layout(snapshot: &Snapshot) -> Result<Value, AgeError> {
    let report = score(snapshot, &ScoreOptions::default())?;
    Ok(json!({
        "layout_score": report.layout.all.layout_score,
        "by_name": report.neighbours.by_name,
        "by_readdir": report.neighbours.by_readdir,
        "free_extents": report.free_space,
    }))
}
