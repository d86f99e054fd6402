//! What can go wrong with a recording, each as one line.

use std::io;
use std::path::Path;

use agewell_snapshot::SnapshotError;
use agewell_trace::TraceError;

/// An error that a person reads as one line: what is wrong, where, what to do.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The request is wrong, or this system cannot do it; exit status 2.
    #[error("{0}")]
    Input(String),
    /// The recording failed; exit status 1.
    #[error("{0}")]
    Run(String),
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file system cannot be looked at.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Someone asked to stop, and nothing was to be kept.
    #[error("stopped")]
    Stopped,
}

impl RecordError {
    /// Adds where and what to an error of the system: `.map_err(RecordError::io("read", path))`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |why| Self::Run(format!("cannot {doing} {path}: {why}"))
    }

    /// Whether the request is at fault (exit status 2) rather than the run (exit status 1).
    #[must_use]
    pub fn is_input_error(&self) -> bool {
        match self {
            Self::Input(_) => true,
            Self::Trace(error) => error.is_input_error(),
            Self::Snapshot(error) => matches!(error, SnapshotError::Input(_)),
            Self::Run(_) | Self::Stopped => false,
        }
    }
}
