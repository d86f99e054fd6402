//! Layout metrics from Python.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use agewell_age::score::{ScoreOptions, reorganising, score};
use agewell_age::source::{self, TakeOptions};
use agewell_age::{AgeError, Snapshot};
use agewell_config::{Form, count, flag, keys, rate, read_table, text, time};
use agewell_core::SimDuration;
use agewell_disk::parameters::SimpleParameters;
use agewell_disk::{DeviceKind, DeviceParameters};
use agewell_snapshot::columns;
use pyo3::prelude::*;
use serde_json::{Value, json};

use super::{call_python, detached};
use crate::error;
use crate::options::options_given;

/// How every Parquet file begins.
const PARQUET_MAGIC: [u8; 4] = *b"PAR1";

/// Sectors of a disk that is given by two numbers only: larger than any file system, so that nothing
/// is scaled.
const UNBOUNDED_SECTORS: u64 = 1 << 53;

/// Measures the snapshot file, image or mounted tree at `path`; the metrics as JSON text.
///
/// `options` is a JSON object: `strict_holes`, `count_tails`, `hot` (a duration such as `30 d`), `map_cells`,
/// `sync`, and a device for the expected times of reading: `device` (a name of the catalogue or a
/// file), or `access_time` with `bandwidth`. `now_ns` is the time now, nanoseconds since 1970.
/// `progress` is called with the files seen so far and, if known, how many there are.
#[pyfunction]
#[pyo3(signature = (path, catalogue_dir, now_ns, options="{}", progress=None))]
pub(crate) fn score_path(
    py: Python<'_>,
    path: PathBuf,
    catalogue_dir: PathBuf,
    now_ns: i64,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let asked = Asked::read(options, &catalogue_dir)?;
    let document = detached(py, |raised| {
        let snapshot = if is_parquet(&path) {
            columns::read(&path)?
        } else {
            let take = TakeOptions { names: true, sync: asked.sync, now_ns, ..Default::default() };
            source::take(&path, &take, &mut |told| {
                call_python(raised, |py| {
                    if let Some(progress) = &progress {
                        progress.call1(py, (told.files, told.files_in_all))?;
                    }
                    Ok(())
                })
            })?
        };
        describe(&snapshot, &asked).map_err(|why| match why {
            AgeError::Input(message) => AgeError::Input(format!("{}: {message}", path.display())),
            other => other,
        })
    })?;
    Ok(document.to_string())
}

fn describe(snapshot: &Snapshot, asked: &Asked) -> Result<Value, AgeError> {
    let report = score(snapshot, &asked.options)?;
    let reading = asked.device.as_ref().map(|device| reorganising(snapshot, device)).transpose()?;
    Ok(json!({
        "parameters": snapshot.facts.parameters,
        "report": report,
        "reorganising": reading,
    }))
}

/// Whether `path` is a regular file that begins as Parquet does.
fn is_parquet(path: &Path) -> bool {
    let regular = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut start = [0; 4];
    regular
        && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == PARQUET_MAGIC
}

keys! {
    /// What a caller may ask for.
    struct OptionTable {
        /// a block behind a hole counts as badly placed wherever it lies
        strict_holes: bool = "strict_holes" flag().or(ScoreOptions::default().strict_holes);
        /// a tail is a block of its file
        count_tails: bool = "count_tails" flag().or(ScoreOptions::default().count_tails);
        /// what hot files were modified within
        hot: Option<SimDuration> = "hot" time().optional();
        /// cells of the map
        map_cells: u32 = "map_cells" count().or(ScoreOptions::default().map_cells);
        /// the file system is synced first
        sync: bool = "sync" flag().or(false);
        /// a name of the catalogue, or a device file
        device: Option<String> = "device" text().optional();
        /// of a disk of two numbers
        access_time: Option<SimDuration> = "access_time" time().optional();
        /// of a disk of two numbers
        bandwidth: Option<u64> = "bandwidth" rate().optional();
    }
}

/// What the caller asked for.
struct Asked {
    options: ScoreOptions,
    sync: bool,
    device: Option<DeviceParameters>,
}

impl Asked {
    fn read(options: &str, catalogue: &Path) -> PyResult<Self> {
        let entries = options_given(options)?;
        let given = |key| entries.get(key).and_then(Value::as_str).unwrap_or_default();
        let title = format!("access time {}, {}", given("access_time"), given("bandwidth"));
        let keys = read_table::<OptionTable>("options", Value::Object(entries));
        let keys = keys.map_err(error::input)?;
        let options = ScoreOptions {
            strict_holes: keys.strict_holes,
            count_tails: keys.count_tails,
            hot_period_ns: keys.hot.map(|period| period.0),
            map_cells: keys.map_cells,
        };
        let device = match (keys.device, keys.access_time, keys.bandwidth) {
            (None, None, None) => None,
            (Some(name), None, None) => {
                Some(DeviceParameters::find(&name, catalogue).map_err(error::input)?)
            }
            (None, Some(access_time), Some(bandwidth_bytes_per_s)) => {
                let access_time_ns = access_time.0;
                let simple = SimpleParameters { access_time_ns, bandwidth_bytes_per_s };
                Some(unbounded(title, simple))
            }
            (Some(_), ..) => {
                let why = "say a device, or an access time with a bandwidth, not both";
                return Err(error::input(why));
            }
            _ => return Err(error::input("an access time and a bandwidth go together; one lacks")),
        };
        Ok(Self { options, sync: keys.sync, device })
    }
}

/// A disk of an access time and a bandwidth, with no end.
fn unbounded(title: String, simple: SimpleParameters) -> DeviceParameters {
    DeviceParameters {
        name: "simple".to_owned(),
        title,
        capacity_sectors: UNBOUNDED_SECTORS,
        kind: DeviceKind::Simple(simple),
        sources: std::collections::BTreeMap::new(),
        uncertainty: None,
    }
}
