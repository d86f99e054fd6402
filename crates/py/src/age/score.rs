//! Layout metrics from Python.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use agewell_age::score::{ScoreOptions, reorganising, score};
use agewell_age::source::{self, TakeOptions};
use agewell_age::{AgeError, Snapshot};
use agewell_core::{parse_bytes_per_second, parse_duration_ns};
use agewell_disk::parameters::SimpleParameters;
use agewell_disk::{DeviceKind, DeviceParameters};
use agewell_snapshot::columns;
use pyo3::prelude::*;
use serde_json::{Value, json};

use super::{call_python, detached};
use crate::error;

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

/// What the caller asked for.
struct Asked {
    options: ScoreOptions,
    sync: bool,
    device: Option<DeviceParameters>,
}

impl Asked {
    fn read(options: &str, catalogue: &Path) -> PyResult<Self> {
        let Ok(Value::Object(entries)) = serde_json::from_str::<Value>(options) else {
            return Err(error::input("the options are not a JSON object"));
        };
        let mut asked = Self { options: ScoreOptions::default(), sync: false, device: None };
        let (mut access_time, mut bandwidth) = (None, None);
        for (key, value) in entries {
            match (key.as_str(), value) {
                (_, Value::Null) => {}
                ("strict_holes", Value::Bool(strict)) => asked.options.strict_holes = strict,
                ("count_tails", Value::Bool(count)) => asked.options.count_tails = count,
                ("sync", Value::Bool(sync)) => asked.sync = sync,
                ("hot", Value::String(text)) => {
                    let period = parse_duration_ns(&text)
                        .map_err(|why| error::input(format!("hot: {why}")))?;
                    asked.options.hot_period_ns = Some(period);
                }
                ("map_cells", Value::Number(number)) => {
                    let cells = number.as_u64().and_then(|cells| u32::try_from(cells).ok());
                    asked.options.map_cells =
                        cells.filter(|cells| *cells > 0).ok_or_else(|| {
                            error::input(format!("map_cells is {number}, not a number of cells"))
                        })?;
                }
                ("device", Value::String(name)) => {
                    let found = DeviceParameters::find(&name, catalogue).map_err(error::input)?;
                    asked.device = Some(found);
                }
                ("access_time", Value::String(text)) => access_time = Some(text),
                ("bandwidth", Value::String(text)) => bandwidth = Some(text),
                (key, value) => {
                    let known = [
                        "strict_holes",
                        "count_tails",
                        "sync",
                        "hot",
                        "map_cells",
                        "device",
                        "access_time",
                        "bandwidth",
                    ];
                    return Err(error::input(if known.contains(&key) {
                        format!("option '{key}' cannot be {value}")
                    } else {
                        agewell_core::unknown_key_message("options", key, &known)
                    }));
                }
            }
        }
        match (access_time, bandwidth, &asked.device) {
            (None, None, _) => {}
            (Some(access_time), Some(bandwidth), None) => {
                asked.device = Some(simple(&access_time, &bandwidth)?);
            }
            (_, _, Some(_)) => {
                return Err(error::input(
                    "say a device, or an access time with a bandwidth, not both",
                ));
            }
            _ => return Err(error::input("an access time and a bandwidth go together; one lacks")),
        }
        Ok(asked)
    }
}

/// A disk of an access time and a bandwidth, with no end.
fn simple(access_time: &str, bandwidth: &str) -> PyResult<DeviceParameters> {
    let access_time_ns = parse_duration_ns(access_time)
        .map_err(|why| error::input(format!("access time: {why}")))?;
    let bandwidth_bytes_per_s = parse_bytes_per_second(bandwidth)
        .map_err(|why| error::input(format!("bandwidth: {why}")))?;
    if bandwidth_bytes_per_s == 0 {
        return Err(error::input("the bandwidth is zero: nothing would ever be read"));
    }
    Ok(DeviceParameters {
        name: "simple".to_owned(),
        title: format!("access time {access_time}, {bandwidth}"),
        capacity_sectors: UNBOUNDED_SECTORS,
        kind: DeviceKind::Simple(SimpleParameters { access_time_ns, bandwidth_bytes_per_s }),
        sources: std::collections::BTreeMap::new(),
    })
}
