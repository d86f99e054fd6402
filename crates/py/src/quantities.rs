//! Quantities as people write them, from Python.

use agewell_core::{parse_bytes_per_second, parse_duration_ns};
use pyo3::prelude::*;

use crate::error;

/// The value of a text that the option `name` has, if it was given.
///
/// # Errors
/// If it is no such quantity.
pub(crate) fn quantity<T, E: std::fmt::Display>(
    name: &str,
    text: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> PyResult<Option<T>> {
    let parsed = text.map(|text| parse(text).map_err(|why| error::input(format!("{name}: {why}"))));
    parsed.transpose()
}

/// Nanoseconds out of a duration such as `10 min`, which the option `name` has.
///
/// # Errors
/// If it is none.
#[pyfunction]
#[pyo3(name = "duration_ns")]
pub(crate) fn duration(name: &str, text: &str) -> PyResult<u64> {
    Ok(quantity(name, Some(text), parse_duration_ns)?.unwrap_or_default())
}

/// Bytes a second out of a rate such as `20 MB/s`, which the option `name` has.
///
/// # Errors
/// If it is none.
#[pyfunction]
#[pyo3(name = "bytes_per_second")]
pub(crate) fn rate(name: &str, text: &str) -> PyResult<u64> {
    Ok(quantity(name, Some(text), parse_bytes_per_second)?.unwrap_or_default())
}
