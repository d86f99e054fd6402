//! Recording a live system from Python.

use std::collections::BTreeMap;
use std::path::PathBuf;

use agewell_core::{parse_bytes, parse_duration_ns};
use agewell_record::{RecordError, RecordOptions};
use pyo3::prelude::*;
use serde_json::json;

use crate::quantities::quantity;
use crate::{error, interpreter};

fn to_python(problem: &RecordError) -> PyErr {
    if problem.is_input_error() { error::input(problem) } else { error::run(problem) }
}

/// Records the block requests of the disk that `target` is or is on into the trace `output`; returns
/// what was recorded as JSON text.
///
/// `time`, `size` and `buffer` are quantities such as `1 h`, `2 GB` and `4 MiB`; `notes` a JSON object
/// of texts that the trace keeps. `progress` is called several times a second, first when recording
/// has begun, with JSON text; it returns whether to go on. An exception from it gives the recording
/// up: what of it is in finished row groups can be recovered.
#[pyfunction]
#[pyo3(signature = (
    target, output, progress, time=None, size=None, buffer=None, anonymous=false, files=false,
    notes="{}", group_seconds=None
))]
#[expect(clippy::too_many_arguments, reason = "the parameters of one command")]
pub(crate) fn record(
    py: Python<'_>,
    target: PathBuf,
    output: PathBuf,
    progress: Py<PyAny>,
    time: Option<&str>,
    size: Option<&str>,
    buffer: Option<&str>,
    anonymous: bool,
    files: bool,
    notes: &str,
    group_seconds: Option<f64>,
) -> PyResult<String> {
    let notes: BTreeMap<String, String> = serde_json::from_str(notes)
        .map_err(|why| error::input(format!("notes must be a JSON object of texts: {why}")))?;
    let options = RecordOptions {
        target,
        output,
        time_ns: quantity("--for", time, parse_duration_ns)?,
        size_bytes: quantity("--size", size, parse_bytes)?,
        buffer_bytes: quantity("--buffer", buffer, parse_bytes)?,
        anonymous,
        files,
        group_ns: group_seconds.map(|seconds| (seconds * 1e9) as u64),
        notes,
    };
    let work = |raised: &mut Option<PyErr>| {
        agewell_record::record(&options, &mut |told| {
            let mut going_on = true;
            let called = interpreter::call(raised, |py| {
                going_on = progress.call1(py, (json!(told).to_string(),))?.extract(py)?;
                Ok(())
            });
            if called { Ok(going_on) } else { Err(RecordError::Stopped) }
        })
    };
    let recording = interpreter::detached(py, work, |why| to_python(&why))?;
    Ok(json!(recording).to_string())
}

/// Makes a whole trace of what a killed recording left of `output`; returns `rows` and `bytes` as JSON
/// text.
#[pyfunction]
pub(crate) fn record_recover(py: Python<'_>, output: PathBuf) -> PyResult<String> {
    let written = py
        .detach(|| agewell_trace::recover(&output))
        .map_err(|why| to_python(&RecordError::Trace(why)))?;
    Ok(json!({"rows": written.rows, "bytes": written.bytes}).to_string())
}
