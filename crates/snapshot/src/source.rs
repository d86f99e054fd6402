//! Where snapshots come from: mounted file systems and images.
//!
//! Nothing here writes to what it reads.

mod extents;
pub mod image;
#[cfg(target_os = "linux")]
pub mod live;

use std::path::{Path, PathBuf};

use crate::{Snapshot, SnapshotError};

/// How a snapshot is to be taken.
#[derive(Debug, Clone, Default)]
pub struct TakeOptions {
    /// Keep the names of files.
    pub names: bool,
    /// Have delayed data written first, so that its place is known. This makes the file system
    /// write; without it such data is reported as `UNKNOWN`.
    pub sync: bool,
    /// Ask the kernel about every file of a mounted tree, also where its inode could be read from the
    /// device with the same answer, only faster.
    pub calls_only: bool,
    /// The time now, nanoseconds since 1970.
    pub now_ns: i64,
    /// Threads to read with; as many as there are processors if `None`.
    pub threads: Option<usize>,
    /// Where finished work is kept until the snapshot is complete.
    pub checkpoint: Option<Checkpoint>,
}

/// Where finished work is kept, so that an interrupted snapshot can go on.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The file; removed by whoever has written the snapshot.
    pub path: PathBuf,
    /// Go on with what it holds; else there must be none.
    pub resume: bool,
    /// Files between two records of a thread.
    pub interval_files: usize,
}

impl Checkpoint {
    /// Files between two records of a thread unless said otherwise: a tenth of a second of work on
    /// a warm cache, some minutes on a cold disk, and small trees never write a checkpoint; chosen
    /// by us.
    pub const INTERVAL_FILES: usize = 1 << 14;
}

/// How far a snapshot has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TakeProgress {
    /// Files, directories and links seen so far.
    pub files: u64,
    /// How many there are, where the file system says so.
    pub files_in_all: Option<u64>,
}

/// Called now and then; an error stops the work and is handed on.
pub type Progress<'a> = dyn FnMut(&TakeProgress) -> Result<(), SnapshotError> + 'a;

/// Takes a snapshot of the tree or image at `path`.
///
/// # Errors
/// If there is nothing that agewell reads, or if it cannot be read.
pub fn take(
    path: &Path,
    options: &TakeOptions,
    progress: &mut Progress<'_>,
) -> Result<Snapshot, SnapshotError> {
    let metadata = std::fs::metadata(path).map_err(|why| {
        SnapshotError::Input(format!("{}: {why}; give a directory or an image", path.display()))
    })?;
    if metadata.is_dir() {
        #[cfg(target_os = "linux")]
        return live::take(path, options, progress);
        #[cfg(not(target_os = "linux"))]
        return Err(SnapshotError::Input(format!(
            "{}: where the files of a mounted tree lie is asked of Linux, and this is {}; give an image, or \
             a snapshot that was taken on Linux",
            path.display(),
            std::env::consts::OS
        )));
    }
    if options.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.resume) {
        return Err(SnapshotError::Input(format!(
            "{}: an image is read in one go, so there is nothing to go on with; leave --resume out",
            path.display()
        )));
    }
    image::take_image(path, options.names, progress)
}
