//! The one extension module, `agewell._agewell`: thin glue between the crates and Python.
//!
//! Structured values cross as JSON text, bulk data as Parquet files; the Python package gives both their shape.

mod error;

use pyo3::prelude::*;

#[pymodule]
mod _agewell {
    #[pymodule_export]
    use crate::error::{AgewellError, InputError, RunError};

    #[pymodule_export]
    use super::version;
}

/// The version of agewell, as in the workspace's Cargo.toml.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
