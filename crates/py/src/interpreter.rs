//! Work that runs without holding the interpreter, and asks Python something now and then.

use pyo3::prelude::*;

/// Calls Python in the midst of work, and lets it handle signals; whether to go on. What it raises
/// is kept in `raised`.
pub(crate) fn call(
    raised: &mut Option<PyErr>,
    call: impl FnOnce(Python<'_>) -> PyResult<()>,
) -> bool {
    // Signals reach Python only while it holds the interpreter.
    let called = Python::attach(|py| {
        py.check_signals()?;
        call(py)
    });
    match called {
        Ok(()) => true,
        Err(exception) => {
            *raised = Some(exception);
            false
        }
    }
}

/// Runs `work` without holding the interpreter; an exception that it kept wins over its error, which
/// `to_python` turns into one.
pub(crate) fn detached<T: Send, E: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut Option<PyErr>) -> Result<T, E> + Send,
    to_python: impl FnOnce(E) -> PyErr,
) -> PyResult<T> {
    let mut raised = None;
    let result = py.detach(|| work(&mut raised));
    match raised {
        Some(exception) => Err(exception),
        None => result.map_err(to_python),
    }
}
