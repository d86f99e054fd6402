//! Keeping a mounted file system in shape, from Python.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agewell_config::{Form, flag, keys, read_table, size, text, time};
use agewell_core::SimDuration;
use agewell_disk::DeviceParameters;
use agewell_reorganise::{WatchOptions, watch};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::age::to_python;
use crate::error;
use crate::interpreter;
use crate::options::options_given;

keys! {
    /// What a caller may ask for.
    struct OptionTable {
        /// no more bytes are moved in any hour
        budget: Option<u64> = "budget" size().optional();
        /// a round lasts at least so long
        every: SimDuration = "every" time().required();
        /// it ends after so long
        time: Option<SimDuration> = "time" time().optional();
        /// the disk whose times count: a name of the catalogue, or a device file
        device: Option<String> = "device" text().optional();
        /// what a disk is like of which nothing is known yet
        usual: String = "usual" text().required();
        /// where the history is kept
        state: String = "state" text().required();
        /// nothing is moved
        dry_run: bool = "dry_run" flag().or(false);
    }
}

/// Keeps the mounted tree at `path` in shape until the time is over or `report` says no.
///
/// `options` is a JSON object with the keys of [`OptionTable`]. `report` is called several times a second
/// with JSON text, an object with its `kind`; it returns whether to go on.
#[pyfunction]
pub(crate) fn watch_path(
    py: Python<'_>,
    path: PathBuf,
    catalogue_dir: PathBuf,
    options: &str,
    report: Py<PyAny>,
) -> PyResult<()> {
    let entries = options_given(options)?;
    let asked = read_table::<OptionTable>("options", Value::Object(entries));
    let asked = asked.map_err(error::input)?;
    let find = |name: &String| {
        DeviceParameters::find(name, Path::new(&catalogue_dir)).map_err(error::input)
    };
    let options = WatchOptions {
        path,
        budget_bytes_per_hour: asked.budget,
        every: Duration::from_nanos(asked.every.0),
        at_most: asked.time.map(|time| Duration::from_nanos(time.0)),
        device: asked.device.as_ref().map(find).transpose()?,
        usual: find(&asked.usual)?,
        state: PathBuf::from(&asked.state),
        dry_run: asked.dry_run,
    };
    let work = |raised: &mut Option<PyErr>| {
        watch(&options, &mut |told| {
            let mut going_on = true;
            let called = interpreter::call(raised, |py| {
                going_on = report.call1(py, (json!(told).to_string(),))?.extract(py)?;
                Ok(())
            });
            called && going_on
        })
    };
    interpreter::detached(py, work, |why| to_python(&why))
}
