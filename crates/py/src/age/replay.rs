//! Replaying aging workloads from Python.

use std::path::PathBuf;

use agewell_age::replay::recipe::Recipe;
use agewell_age::replay::request::Request;
use pyo3::prelude::*;
use serde_json::json;

use super::{call_python, detached, to_python};

/// Replays a workload onto a target as `request` (JSON text) says; returns the record as JSON text.
///
/// `progress` is called between batches with operations done, operations in all if known, those
/// without room, days of the workload passed, used over total, the layout score or `None`, and
/// whether operations are only taken note of because they were done before. An exception from it,
/// or Ctrl-C, stops the replay behind the batch at hand, with a checkpoint if the target keeps one.
#[pyfunction]
#[pyo3(signature = (request, progress=None))]
pub(crate) fn age_replay(
    py: Python<'_>,
    request: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    detached(py, |raised| {
        let job = Request::read(request)?.job()?;
        let record = job.run(&mut |told| {
            let called = call_python(raised, |py| {
                if let Some(progress) = &progress {
                    let days = told.time_ns as f64 / agewell_core::DAY_NS as f64;
                    let state = (
                        told.operations,
                        told.operations_total,
                        told.no_space,
                        days,
                        told.utilization,
                        told.layout_score,
                        told.resuming,
                    );
                    progress.call1(py, state)?;
                }
                Ok(())
            });
            called.is_ok()
        })?;
        Ok(record.to_string())
    })
}

/// The recipe at `path`, checked, as JSON text.
#[pyfunction]
pub(crate) fn age_recipe(path: PathBuf) -> PyResult<String> {
    let recipe = Recipe::read(&path).map_err(|why| to_python(&why))?;
    Ok(json!(recipe).to_string())
}
