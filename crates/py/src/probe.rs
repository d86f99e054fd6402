//! Probes from Python.

#![allow(clippy::disallowed_methods, reason = "how often progress is shown is of no result")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agewell_core::SimDuration;
use agewell_disk::{DeviceKind, DeviceParameters, Medium};
use agewell_probe::{
    Difference, Disturbance, Extent, ModelledDisk, Probe, ProbeError, ProbeOptions, ProbedDisk,
    probe,
};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::{error, interpreter};

/// Progress is shown, and signals are heeded, this often at most.
const SHOWN_EVERY: Duration = Duration::from_millis(50);

/// Measures a disk by reading it: its device file and what is known of how good it is, as JSON text.
///
/// `target` is the path of a block device or file, or with `catalogue_dir` the name of a modelled
/// device, which is measured on a virtual clock with the late answers of a virtual machine and a
/// spindle that wanders by 0.1 %. `write_area` names a file that may be overwritten; of a modelled
/// device its last sixteenth is, if it is given at all. `progress` is called with the share of the time that
/// is used and what is being done; an exception from it, or Ctrl-C, stops the work.
#[pyfunction]
#[pyo3(signature = (target, time, seed=1, name=None, write_area=None, catalogue_dir=None, despite_others=false, progress=None))]
#[expect(clippy::too_many_arguments, reason = "the parameters of one command")]
pub(crate) fn probe_disk(
    py: Python<'_>,
    target: PathBuf,
    time: &str,
    seed: u64,
    name: Option<String>,
    write_area: Option<PathBuf>,
    catalogue_dir: Option<PathBuf>,
    despite_others: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let time_ns = agewell_core::parse_duration_ns(time)
        .map_err(|why| error::input(format!("--for {time}: {why}")))?;
    let options = ProbeOptions { time: SimDuration(time_ns), seed, despite_others };
    let work = |raised: &mut Option<PyErr>| {
        let mut disk: Box<dyn ProbedDisk> = match &catalogue_dir {
            None => real(&target, write_area.as_deref())?,
            Some(catalogue) => {
                let parameters = DeviceParameters::find(&target.display().to_string(), catalogue)
                    .map_err(error::input)?;
                Box::new(modelled(&parameters, seed, write_area.is_some()))
            }
        };
        let mut shown = Instant::now();
        let mut show = |share: f64, step: &str| {
            if shown.elapsed() < SHOWN_EVERY {
                return true;
            }
            shown = Instant::now();
            interpreter::call(raised, |py| {
                if let Some(progress) = &progress {
                    progress.call1(py, (share, step))?;
                }
                Ok(())
            })
        };
        let mut found = probe(&mut *disk, options, &mut show).map_err(to_python)?;
        if let Some(name) = name {
            found.parameters.name = name;
        }
        Ok(document(&found))
    };
    Ok(interpreter::detached(py, work, |why: PyErr| why)?.to_string())
}

#[cfg(target_os = "linux")]
fn real(target: &Path, write_area: Option<&Path>) -> PyResult<Box<dyn ProbedDisk>> {
    let disk = agewell_probe::RealDisk::open(target).map_err(to_python)?;
    Ok(Box::new(match write_area {
        Some(area) => disk.with_write_area(area).map_err(to_python)?,
        None => disk,
    }))
}

#[cfg(not(target_os = "linux"))]
fn real(target: &Path, _: Option<&Path>) -> PyResult<Box<dyn ProbedDisk>> {
    Err(error::input(format!(
        "{}: probing a real disk needs Linux, and this is {}; run it there",
        target.display(),
        std::env::consts::OS
    )))
}

fn modelled(parameters: &DeviceParameters, seed: u64, may_write: bool) -> ModelledDisk {
    let disturbance = Disturbance { late_answers: true, wander: 0.001, seed };
    let disk = ModelledDisk::new(parameters, disturbance);
    if !may_write {
        return disk;
    }
    let part = disk.facts().sectors / 16 / 8 * 8;
    let first = (disk.facts().sectors - part) / 8 * 8;
    disk.with_write_area(Extent { first, sectors: part })
}

#[allow(clippy::needless_pass_by_value)] // the shape that `map_err` takes
fn to_python(problem: ProbeError) -> PyErr {
    match problem {
        ProbeError::Open { .. } | ProbeError::Unsuitable { .. } => error::input(problem),
        _ => error::run(problem),
    }
}

fn difference(of: &Difference) -> Value {
    json!({
        "disk_ms": of.disk_ms,
        "model_ms": of.model_ms,
        "error_pct": of.error_pct(),
        "reads": of.reads,
    })
}

fn document(found: &Probe) -> Value {
    let rpm = match &found.parameters.kind {
        DeviceKind::Mechanical(_) => match found.parameters.kind.medium() {
            Medium::Mechanical(drive) => Some(60e12 / drive.rotation_period_ps as f64),
            Medium::Simple(_) => None,
        },
        _ => None,
    };
    json!({
        "class": found.class.name(),
        "device_file": found.parameters.to_toml(),
        "capacity_bytes": found.parameters.capacity_sectors * agewell_core::SECTOR_BYTES,
        "rpm": rpm,
        "fallback": found.fallback,
        "random": difference(&found.differences[0]),
        "sequential": difference(&found.differences[1]),
        "requests": found.requests,
        "seconds": found.spent.as_seconds(),
        "requests_of_others": found.others.map(|(others, _)| others),
        "sources": found.parameters.sources,
    })
}
