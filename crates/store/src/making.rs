//! Stores that are made in files and on block devices.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::device::{Disk as _, FileDisk, FileOptions};
use crate::format::{FormatOptions, Geometry};
use crate::{Store, StoreError};

/// Bytes at the beginning and the end of a device that are looked at for something that is there already;
/// chosen by us: more than the signatures of file systems and partition tables reach.
const LOOKED_AT_BYTES: u64 = 1 << 20;

/// Where a store is made.
#[derive(Debug, Clone, Copy)]
pub struct MakeAt<'a> {
    /// The file or block device. A file that is not there is made.
    pub path: &'a Path,
    /// Bytes of a file that is made; what is there keeps its size.
    pub size_bytes: Option<u64>,
    /// Whether a file that is made has holes, not zeros.
    pub is_sparse: bool,
    /// Whether what is there may be lost; else it must be all zeros where it is looked at.
    pub replaces: bool,
}

/// Why no store was made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// It was asked for something that cannot be.
    #[error("{}: {why}", path.display())]
    Refused {
        /// Where.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// The file or device cannot be used; the path is in the error.
    #[error("{0}")]
    Device(io::Error),
    /// The device fails.
    #[error("{}: {error}", path.display())]
    Store {
        /// Where.
        path: PathBuf,
        /// How.
        error: StoreError,
    },
}

/// Makes an empty store, and gives what it lies on.
///
/// # Errors
/// [`MakeError`]; a file that was made for it is gone again.
pub fn make(at: &MakeAt<'_>, options: &FormatOptions) -> Result<FileDisk, MakeError> {
    if at.path.exists() {
        return make_on_existing(at, options);
    }
    let Some(size_bytes) = at.size_bytes else {
        return Err(refused(at, "is not there; say by --size how large it is to be"));
    };
    // Whether it can be is known before anything is made.
    Geometry::plan(size_bytes, options).map_err(|error| not_made(at, error))?;
    let make = if at.is_sparse { FileDisk::create } else { FileDisk::create_filled };
    let disk = make(at.path, size_bytes, FileOptions::default()).map_err(MakeError::Device)?;
    match Store::format(&disk, options) {
        Ok(_) => Ok(disk),
        Err(error) => {
            drop(disk);
            // The error is why; that a file stays is seen.
            let _ = std::fs::remove_file(at.path);
            Err(not_made(at, error))
        }
    }
}

fn make_on_existing(at: &MakeAt<'_>, options: &FormatOptions) -> Result<FileDisk, MakeError> {
    if at.size_bytes.is_some() {
        let why = "is there already, and a store takes its size from that; leave out --size";
        return Err(refused(at, why));
    }
    let disk = FileDisk::open(at.path, FileOptions::default()).map_err(MakeError::Device)?;
    if !at.replaces && !is_blank(at.path, disk.size_bytes()).map_err(MakeError::Device)? {
        let why = "something is there already; --force makes a store in its place";
        return Err(refused(at, why));
    }
    match Store::format(&disk, options) {
        Ok(_) => Ok(disk),
        Err(error) => Err(not_made(at, error)),
    }
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

fn refused(at: &MakeAt<'_>, why: &str) -> MakeError {
    MakeError::Refused { path: at.path.to_owned(), why: why.to_owned() }
}

fn not_made(at: &MakeAt<'_>, error: StoreError) -> MakeError {
    match error {
        StoreError::Options(why) => refused(at, &why),
        error => MakeError::Store { path: at.path.to_owned(), error },
    }
}
