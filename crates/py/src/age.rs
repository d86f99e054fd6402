//! Snapshots, layout metrics, aging workloads and their replay, from Python.

#[cfg(target_os = "linux")]
pub(crate) mod benchmark;
pub(crate) mod replay;
pub(crate) mod score;
pub(crate) mod snapshot;
pub(crate) mod workload;

use agewell_age::AgeError;
use pyo3::prelude::*;

use crate::{error, interpreter};

/// Distinguishes Python's exceptions: bad input from a run that failed.
pub(crate) fn to_python(problem: &AgeError) -> PyErr {
    match problem {
        AgeError::Input(_) => error::input(problem),
        AgeError::Io { .. } | AgeError::Run(_) | AgeError::Stopped => error::run(problem),
    }
}

/// Calls Python in the midst of work; what it raises is kept in `raised` and stops the work.
pub(crate) fn call_python(
    raised: &mut Option<PyErr>,
    call: impl FnOnce(Python<'_>) -> PyResult<()>,
) -> Result<(), AgeError> {
    if interpreter::call(raised, call) { Ok(()) } else { Err(AgeError::Stopped) }
}

/// Runs `work` without holding the interpreter; an exception that it kept wins over its error.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut Option<PyErr>) -> Result<T, AgeError> + Send,
) -> PyResult<T> {
    interpreter::detached(py, work, |why| to_python(&why))
}
