//! Making and reading aging workloads from Python.

use std::path::PathBuf;

use agewell_age::workload::{WorkloadReader, WorkloadRequest};
use pyo3::prelude::*;
use serde_json::json;

use super::{call_python, detached};

/// Makes the workload that `request` (JSON, `source` and what it needs) asks for and writes it to
/// `output`; returns its facts and the length of the file as JSON text.
///
/// `progress` is called now and then with the operations made so far; an exception from it, or
/// Ctrl-C, stops the work, and nothing stands under `output` then.
#[pyfunction]
#[pyo3(signature = (request, output, progress=None))]
pub(crate) fn workload_make(
    py: Python<'_>,
    request: &str,
    output: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = request.to_owned();
    let document = detached(py, |raised| {
        let request = WorkloadRequest::from_json(&request)?;
        let mut watch = |operations: u64| {
            call_python(raised, |py| match &progress {
                Some(progress) => progress.call1(py, (operations,)).map(|_| ()),
                None => Ok(()),
            })
        };
        let (facts, bytes) = request.write(&output, &mut watch)?;
        Ok(json!({ "facts": facts, "bytes": bytes }))
    })?;
    Ok(document.to_string())
}

/// Reads the workload `path` to its end, checking every rule; returns its facts as JSON text.
#[pyfunction]
#[pyo3(signature = (path, progress=None))]
pub(crate) fn workload_info(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let facts = detached(py, |raised| {
        let mut reader = WorkloadReader::open(&path)?;
        let mut batch = Vec::new();
        while reader.next_batch(&mut batch)? {
            let operations = reader.live_set().operations();
            call_python(raised, |py| match &progress {
                Some(progress) => progress.call1(py, (operations,)).map(|_| ()),
                None => Ok(()),
            })?;
        }
        Ok(json!(reader.facts()))
    })?;
    Ok(facts.to_string())
}
