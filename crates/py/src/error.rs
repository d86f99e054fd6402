//! The exceptions of the extension module.
//!
//! `InputError` is bad usage or bad input (the command line exits 2), `RunError` a run that failed
//! (exit 1). The text of each is the complete one-line message: what is wrong, where, and what to
//! do.

use std::fmt::Display;

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    _agewell,
    AgewellError,
    PyException,
    "Any error that agewell reports to its user."
);
create_exception!(
    _agewell,
    InputError,
    AgewellError,
    "Bad usage or bad input; the message is one line."
);
create_exception!(_agewell, RunError, AgewellError, "The run failed; the message is one line.");

/// An `InputError` with `message`.
pub(crate) fn input(message: impl Display) -> PyErr {
    InputError::new_err(one_line(message))
}

/// A `RunError` with `message`.
pub(crate) fn run(message: impl Display) -> PyErr {
    RunError::new_err(one_line(message))
}

fn one_line(message: impl Display) -> String {
    message.to_string().split('\n').map(str::trim).collect::<Vec<_>>().join(" ")
}
