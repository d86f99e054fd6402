//! Why a run failed.

use std::io;
use std::path::PathBuf;

use agewell_disk::DeviceError;
use agewell_trace::TraceError;

use crate::config::ConfigError;

/// Why a run failed; every text is one line.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The experiment itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device file.
    #[error(transparent)]
    Device(DeviceError),
    /// The trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Inputs that do not go together.
    #[error("{0}")]
    Input(String),
    /// A file that cannot be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Stopped on request.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

impl RunError {
    /// Whether the user's input is at fault (exit code 2) rather than the run (exit code 1).
    #[must_use]
    pub fn is_input(&self) -> bool {
        !matches!(self, RunError::Io { .. } | RunError::Interrupted)
    }
}
