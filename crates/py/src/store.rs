//! Stores that are looked into, checked and salvaged, from Python.

#![allow(clippy::disallowed_methods, reason = "how often progress is shown is of no result")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agewell_check::{
    BlockStatus, Blocks, CheckError, CheckOptions, Checked, FileImage, Finding, SalvageError,
    Severity, check, salvage_to_files, summary,
};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::{error, interpreter};

/// Progress is shown, and signals are heeded, this often at most.
const SHOWN_EVERY: Duration = Duration::from_millis(50);

/// Reads the store in the file or on the device at `path`: its figures and what is wrong, as JSON text.
///
/// With `data` the data of every block is read as well. `progress` is called with the share that is done;
/// an exception from it, or Ctrl-C, stops the work. A store without a superblock has findings and no figures.
#[pyfunction]
#[pyo3(signature = (path, data=false, progress=None))]
pub(crate) fn store_check(
    py: Python<'_>,
    path: PathBuf,
    data: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let work = |raised: &mut Option<PyErr>| {
        let image = open(&path)?;
        let mut shown = Shown::new(progress.as_ref(), raised);
        let mut go_on = |done: u64, of: u64| shown.share(done as f64 / of.max(1) as f64);
        match check(&image, CheckOptions { data }, &mut go_on) {
            Ok(checked) => Ok(document(&checked)),
            Err(CheckError::NoSuperblock(findings)) => Ok(json!({
                "clean": false,
                "store": null,
                "metrics": null,
                "findings": findings.iter().map(finding).collect::<Vec<_>>(),
                "affected_blocks": null,
            })),
            Err(why) => Err(not_read(&path, &why)),
        }
    };
    Ok(interpreter::detached(py, work, |why: PyErr| why)?.to_string())
}

/// Copies out of the store at `path` every block that is intact, into the file `blocks`, each at its number
/// times the length of a block, with a row each in `table`; what was salvaged, as JSON text.
#[pyfunction]
#[pyo3(signature = (path, blocks, table, progress=None))]
pub(crate) fn store_salvage(
    py: Python<'_>,
    path: PathBuf,
    blocks: PathBuf,
    table: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let work = |raised: &mut Option<PyErr>| {
        let image = open(&path)?;
        let mut shown = Shown::new(progress.as_ref(), raised);
        let done = salvage_to_files(&image, &blocks, &table, &mut |share| shown.share(share));
        let salvaged = done.map_err(|why| match why {
            SalvageError::Check(why) => not_read(&path, &why),
            SalvageError::Write { .. } => error::run(why),
        })?;
        let mut counts = serde_json::Map::new();
        let mut numbers = serde_json::Map::new();
        for status in BlockStatus::ALL {
            counts.insert(status.name().to_owned(), json!(salvaged.count(status)));
            if status != BlockStatus::Intact {
                let of_status = ranges(&salvaged.blocks_with(status));
                numbers.insert(status.name().to_owned(), of_status);
            }
        }
        Ok(json!({
            "whole": salvaged.is_whole(),
            "counts": counts,
            "blocks": numbers,
            "unknown": ranges(&salvaged.unknown),
            "unknown_blocks": salvaged.unknown.count(),
            "findings": salvaged.findings.iter().map(finding).collect::<Vec<_>>(),
        }))
    };
    Ok(interpreter::detached(py, work, |why: PyErr| why)?.to_string())
}

/// How far work has come, as Python is given it.
struct Shown<'a> {
    progress: Option<&'a Py<PyAny>>,
    raised: &'a mut Option<PyErr>,
    last: Instant,
}

impl<'a> Shown<'a> {
    fn new(progress: Option<&'a Py<PyAny>>, raised: &'a mut Option<PyErr>) -> Self {
        Self { progress, raised, last: Instant::now() }
    }

    /// Whether to go on.
    fn share(&mut self, share: f64) -> bool {
        if self.last.elapsed() < SHOWN_EVERY {
            return true;
        }
        self.last = Instant::now();
        let progress = self.progress;
        interpreter::call(self.raised, |py| {
            if let Some(progress) = progress {
                progress.call1(py, (share,))?;
            }
            Ok(())
        })
    }
}

fn open(path: &Path) -> PyResult<FileImage> {
    FileImage::open(path)
        .and_then(|image| {
            if path.is_dir() { Err(std::io::ErrorKind::IsADirectory.into()) } else { Ok(image) }
        })
        .map_err(|why| error::input(format!("{}: cannot be read: {why}", path.display())))
}

fn not_read(path: &Path, why: &CheckError) -> PyErr {
    let message = format!("{}: {why}", path.display());
    match why {
        CheckError::NotAStore | CheckError::Unsupported(_) => error::input(message),
        CheckError::NoSuperblock(_) | CheckError::Stopped => error::run(message),
    }
}

fn ranges(blocks: &Blocks) -> Value {
    blocks.ranges().iter().map(|&(first, last)| json!([first, last])).collect()
}

fn finding(found: &Finding) -> Value {
    json!({
        "text": found.to_string(),
        "severity": match found.severity {
            Severity::Note => "note",
            Severity::Damage => "damage",
        },
        "structure": found.structure.to_string(),
        "address": found.address,
        "problem": found.problem,
        "blocks": ranges(&found.blocks),
    })
}

fn document(checked: &Checked) -> Value {
    let geometry = &checked.geometry;
    let figures = summary(checked);
    let mut uuid = String::new();
    for (index, byte) in geometry.uuid.iter().enumerate() {
        uuid.push_str(if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" });
        write!(uuid, "{byte:02x}").expect("a string takes any text");
    }
    json!({
        "clean": checked.is_clean(),
        "store": {
            "version": format!("1.{}", geometry.minor_version),
            "uuid": uuid,
            "generation": geometry.generation,
            "block_bytes": geometry.block_bytes,
            "segment_blocks": geometry.segment_blocks,
            "segments": geometry.segments,
            "reserve_segments": geometry.reserve_segments,
            "blocks": geometry.blocks,
            "used_blocks": geometry.used_blocks,
            "has_root": checked.has_root,
            "root_generation": checked.root_generation,
            "incarnation": checked.incarnation,
            "sequence": checked.sequence,
            "closed_in_order": checked.closed_in_order,
            "dropped_groups": checked.dropped_groups,
            "ring_records": checked.ring_records,
        },
        "metrics": {
            "utilization": figures.utilization,
            "capacity_blocks": figures.capacity_blocks,
            "usable_blocks": figures.usable_blocks,
            "usable_share": figures.usable_share,
            "live_blocks": figures.live_blocks,
            "damaged_blocks": figures.damaged_blocks,
            "segments": figures.segments,
            "free_segments": figures.free_segments,
            "open_segments": figures.open_segments,
            "mean_segment_utilization": figures.mean_segment_utilization,
            "metadata_blocks": figures.metadata_blocks,
            "ring_utilization": checked.ring_blocks as f64 / f64::from(geometry.ring_blocks),
        },
        "findings": checked.findings.iter().map(finding).collect::<Vec<_>>(),
        "affected_blocks": checked.affected().count(),
    })
}
