//! Stores that are made, from Python.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use agewell_core::parse_bytes;
use agewell_store::device::{Disk as _, FileDisk, FileOptions};
use agewell_store::{FormatOptions, Store, StoreError};
use pyo3::prelude::*;

use crate::error;
use crate::record::quantity;

/// Bytes at the beginning and the end of a device that are looked at for something that is there already;
/// chosen by us: more than the signatures of file systems and partition tables reach.
const LOOKED_AT_BYTES: u64 = 1 << 20;

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
    py.detach(|| {
        if path.exists() {
            return format_existing(&path, size_bytes, &options, force);
        }
        let Some(size_bytes) = size_bytes else {
            let why = "is not there; say by --size how large it is to be";
            return Err(error::input(format!("{}: {why}", path.display())));
        };
        format_new(&path, size_bytes, &options, sparse)
    })
}

fn format_new(path: &Path, size_bytes: u64, options: &FormatOptions, sparse: bool) -> PyResult<()> {
    // Whether it can be is known before anything is made.
    agewell_store::Geometry::plan(size_bytes, options).map_err(|why| not_made(path, &why))?;
    let make = if sparse { FileDisk::create } else { FileDisk::create_filled };
    let disk = make(path, size_bytes, FileOptions::default()).map_err(error::input)?;
    Store::format(&disk, options).map(|_| ()).map_err(|why| {
        drop(disk);
        // The error is why; that a file stays is seen.
        let _ = std::fs::remove_file(path);
        not_made(path, &why)
    })
}

fn format_existing(
    path: &Path,
    size_bytes: Option<u64>,
    options: &FormatOptions,
    force: bool,
) -> PyResult<()> {
    let refuse = |why: &str| Err(error::input(format!("{}: {why}", path.display())));
    if size_bytes.is_some() {
        return refuse("is there already, and a store takes its size from that; leave out --size");
    }
    let disk = FileDisk::open(path, FileOptions::default()).map_err(error::input)?;
    if !force && !is_blank(path, disk.size_bytes()).map_err(error::input)? {
        return refuse("something is there already; --force makes a store in its place");
    }
    Store::format(&disk, options).map(|_| ()).map_err(|why| not_made(path, &why))
}

/// Whether the beginning and the end of what is at `path` are all zeros.
fn is_blank(path: &Path, size_bytes: u64) -> io::Result<bool> {
    let file = File::open(path)?;
    let length = LOOKED_AT_BYTES.min(size_bytes);
    let mut bytes = vec![0; length as usize];
    for offset in [0, size_bytes - length] {
        file.read_exact_at(&mut bytes, offset)?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn not_made(path: &Path, why: &StoreError) -> PyErr {
    let message = format!("{}: {why}", path.display());
    match why {
        StoreError::Options(_) => error::input(message),
        _ => error::run(message),
    }
}
