//! Recordings replayed on modelled devices, from Python.

#![allow(clippy::disallowed_methods, reason = "how often signals are heeded is of no result")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agewell_config::{Form, keys, read_table, whole};
use agewell_disk::DeviceParameters;
use agewell_sim::RunError;
use agewell_sim::waiting_replay::{Cost, ReplayOptions, Replayed, replay};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::{error, interpreter};

/// Signals are heeded this often at most.
const HEEDED_EVERY: Duration = Duration::from_millis(50);

keys! {
    /// Where a recorded device lies on a modelled one.
    struct Options {
        /// the sector of the modelled device at which the recorded one begins
        first_sector: u64 = "first_sector" whole().or(0);
        /// sectors of the recorded device
        sectors: u64 = "sectors" whole().from(1).required();
        /// bytes of the drive's cache of writes; 0: none
        write_cache_bytes: u64 = "write_cache_bytes" whole().or(0);
    }
}

/// Replays the recording at `trace` on `device`, of the catalogue or a file; what that took, as JSON text.
///
/// `options` is a JSON object (`Options`). `progress` is called with the requests that are done; an
/// exception from it, or Ctrl-C, stops the work.
#[pyfunction]
#[pyo3(signature = (trace, device, catalogue_dir, options="{}", progress=None))]
pub(crate) fn replay_recording(
    py: Python<'_>,
    trace: PathBuf,
    device: &str,
    catalogue_dir: PathBuf,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = serde_json::from_str::<Value>(options)
        .map_err(|why| error::input(format!("the options are not JSON: {why}")))?;
    let options = read_table::<Options>("options", options).map_err(error::input)?;
    let options = ReplayOptions {
        first_sector: options.first_sector,
        sectors: options.sectors,
        write_cache_bytes: options.write_cache_bytes,
    };
    let parameters = DeviceParameters::find(device, &catalogue_dir).map_err(error::input)?;
    let work = |raised: &mut Option<PyErr>| {
        replayed(&trace, &parameters, &options, progress.as_ref(), raised)
    };
    let found = interpreter::detached(py, work, |why: RunError| {
        if why.is_input() { error::input(why) } else { error::run(why) }
    })?;
    Ok(document(&found).to_string())
}

fn replayed(
    trace: &Path,
    parameters: &DeviceParameters,
    options: &ReplayOptions,
    progress: Option<&Py<PyAny>>,
    raised: &mut Option<PyErr>,
) -> Result<Replayed, RunError> {
    let mut last = Instant::now();
    replay(trace, parameters, options, &mut |done| {
        if last.elapsed() < HEEDED_EVERY {
            return true;
        }
        last = Instant::now();
        interpreter::call(raised, |py| {
            if let Some(progress) = progress {
                progress.call1(py, (done,))?;
            }
            Ok(())
        })
    })
}

fn document(replayed: &Replayed) -> Value {
    let cost = |cost: &Cost| {
        json!({
            "requests": cost.requests,
            "sectors": cost.sectors,
            "commands": cost.commands,
            "command_sectors": cost.command_sectors,
            "seconds": cost.time.0 as f64 / 1e9,
        })
    };
    json!({
        "seconds": replayed.time().0 as f64 / 1e9,
        "reads": cost(&replayed.reads),
        "writes": cost(&replayed.writes),
        "flushes": cost(&replayed.flushes),
        "discards": cost(&replayed.discards),
        "never_made": replayed.never_made,
    })
}
