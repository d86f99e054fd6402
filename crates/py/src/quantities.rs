//! Quantities as people write them, from Python.

use agewell_core::parse_duration_ns;
use pyo3::prelude::*;

use crate::record::quantity;

/// Nanoseconds out of a duration such as `10 min`, which the option `name` has.
///
/// # Errors
/// If it is none.
#[pyfunction]
#[pyo3(name = "duration_ns")]
pub(crate) fn duration(name: &str, text: &str) -> PyResult<u64> {
    Ok(quantity(name, Some(text), parse_duration_ns)?.unwrap_or_default())
}
