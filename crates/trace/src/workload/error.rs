//! Why a workload cannot be made.

use std::fmt::Display;

/// A parameter outside its range. The text is one line: which, what it is, what it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("workload {workload}: {key} is {value}; it must be {need}")]
pub struct WorkloadError {
    /// The workload as a configuration names it.
    pub workload: &'static str,
    /// The parameter.
    pub key: &'static str,
    /// Its value as given.
    pub value: String,
    /// What it must be.
    pub need: &'static str,
}

/// Refuses `value` unless `holds`.
pub(super) fn require(
    holds: bool,
    workload: &'static str,
    key: &'static str,
    value: impl Display,
    need: &'static str,
) -> Result<(), WorkloadError> {
    if holds {
        Ok(())
    } else {
        Err(WorkloadError { workload, key, value: format!("{value}"), need })
    }
}
