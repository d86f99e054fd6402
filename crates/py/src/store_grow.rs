//! Stores that grow, from Python.

use std::path::{Path, PathBuf};

use agewell_core::parse_bytes;
use agewell_store::device::{FileDisk, FileOptions};
use agewell_store::{OpenOptions, Store, StoreError};
use pyo3::prelude::*;

use crate::error;
use crate::quantities::quantity;

/// Has the store in the file or on the device `path` take in all of it.
///
/// A file is made longer first if `size` (such as `16 GiB`) is given: filled with zeros, or by a hole if `sparse`.
///
/// # Errors
/// If there is no store, it is not larger by enough, or the device fails.
#[pyfunction]
#[pyo3(signature = (path, size=None, sparse=false))]
pub(crate) fn store_grow(
    py: Python<'_>,
    path: PathBuf,
    size: Option<&str>,
    sparse: bool,
) -> PyResult<()> {
    let size_bytes = quantity("--size", size, parse_bytes)?;
    py.detach(|| {
        let failed = |why: StoreError| not_grown(&path, &why);
        let mut store = open(&path)?;
        if let Some(size_bytes) = size_bytes {
            // What cannot grow is not made longer.
            store.geometry().grown(size_bytes).map_err(failed)?;
            store.close().map_err(failed)?;
            FileDisk::extend(&path, size_bytes, !sparse).map_err(error::input)?;
            store = open(&path)?;
        }
        store.grow().and_then(|()| store.close()).map(drop).map_err(failed)
    })
}

/// Makes a file longer that a store lies in, which may be in use: filled with zeros up to `size` (such as `16 GiB`). How
/// long it was, bytes.
///
/// # Errors
/// If it is no file, is as long already, or there is not so much room: then it is as long as it was.
#[pyfunction]
pub(crate) fn store_lengthen(py: Python<'_>, path: PathBuf, size: &str) -> PyResult<u64> {
    let size_bytes = quantity("--size", Some(size), parse_bytes)?.expect("it is given");
    py.detach(|| FileDisk::extend_in_use(&path, size_bytes, true).map_err(error::input))
}

fn open(path: &Path) -> PyResult<Store<FileDisk>> {
    let disk = FileDisk::open(path, FileOptions::default()).map_err(error::input)?;
    Store::open(disk, &OpenOptions::default()).map_err(|why| not_grown(path, &why))
}

fn not_grown(path: &Path, why: &StoreError) -> PyErr {
    let message = format!("{}: {why}", path.display());
    match why {
        StoreError::Options(_) => error::input(message),
        _ => error::run(message),
    }
}
