//! The checksums of Parquet files, for tables that Python writes and reads.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error;

/// Checks every byte of the Parquet file `path` if it has checksums; whether it has.
#[pyfunction]
pub(crate) fn check_parquet(path: PathBuf) -> PyResult<bool> {
    agewell_trace::check_parquet(&path)
        .map_err(|why| error::input(format!("{}: {why}; make it again", path.display())))
}

/// `table`, a finished Parquet file whose metadata have the key `agewell.checksums`, with checksums.
#[pyfunction]
pub(crate) fn with_checksums<'py>(
    py: Python<'py>,
    table: &Bound<'py, PyBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    let whole = agewell_trace::with_checksums(table.as_bytes()).map_err(error::input)?;
    Ok(PyBytes::new(py, &whole))
}
