//! Stores that are made, from Python.

use std::path::PathBuf;

use agewell_core::parse_bytes;
use agewell_store::{FormatOptions, MakeAt, MakeError};
use pyo3::prelude::*;

use crate::error;
use crate::quantities::quantity;

/// Makes an empty store in the file or on the device `path`.
///
/// A file that is not there is made, of `size` (such as `8 GiB`): filled with zeros, or with holes if `sparse`. What is
/// there keeps its size, and must be all zeros where it is looked at, unless `force`.
///
/// # Errors
/// If something is there, the size or the options cannot be, or the device fails.
#[pyfunction]
#[pyo3(signature = (path, uuid, size=None, block_bytes=4096, segment_blocks=256, sparse=false, force=false))]
#[expect(clippy::too_many_arguments, reason = "each is an option of the command")]
pub(crate) fn store_format(
    py: Python<'_>,
    path: PathBuf,
    uuid: [u8; 16],
    size: Option<&str>,
    block_bytes: u32,
    segment_blocks: u32,
    sparse: bool,
    force: bool,
) -> PyResult<()> {
    let options = FormatOptions { block_bytes, segment_blocks, ..FormatOptions::new(uuid) };
    let size_bytes = quantity("--size", size, parse_bytes)?;
    let at = MakeAt { path: &path, size_bytes, is_sparse: sparse, replaces: force };
    py.detach(|| {
        agewell_store::make(&at, &options).map(|_| ()).map_err(|why| match why {
            MakeError::Store { .. } => error::run(why),
            why => error::input(why),
        })
    })
}
