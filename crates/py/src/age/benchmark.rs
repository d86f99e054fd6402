//! Benchmarks of mounted file systems from Python.

use agewell_age::benchmark::real::suite::RealSuite;
use pyo3::prelude::*;

use super::{call_python, detached};

/// Measures a directory as `request` (JSON text) says; returns the record as JSON text.
///
/// `progress` is called with the benchmarks done and how many there are. An exception from it, or
/// Ctrl-C, stops behind the benchmark at hand.
#[pyfunction]
#[pyo3(signature = (request, progress=None))]
pub(crate) fn bench_directory(
    py: Python<'_>,
    request: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    detached(py, |raised| {
        let record = RealSuite::read(request)?.run(&mut |done, total| {
            let called = call_python(raised, |py| {
                if let Some(progress) = &progress {
                    progress.call1(py, (done, total))?;
                }
                Ok(())
            });
            called.is_ok()
        })?;
        Ok(record.to_string())
    })
}
