//! What can go wrong with a snapshot or another file of tables, each as one line.

use std::io;
use std::path::{Path, PathBuf};

/// An error that a person reads as one line: what is wrong, where, what to do.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The input or the request is wrong; exit status 2.
    #[error("{0}")]
    Input(String),
    /// A file or device cannot be read or written; exit status 1.
    #[error("cannot {doing} {path}: {why}", path = path.display())]
    Io {
        /// What was tried: "read", "create".
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        why: io::Error,
    },
    /// The work itself failed; exit status 1.
    #[error("{0}")]
    Run(String),
    /// Someone asked to stop; nothing is half done.
    #[error("stopped")]
    Stopped,
}

impl SnapshotError {
    /// Adds where and what to an error of the system: `.map_err(SnapshotError::io("read", path))`.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |why| Self::Io { doing, path, why }
    }
}
