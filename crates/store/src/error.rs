//! Errors of a store.

use std::io;

use agewell_log::{LogError, RestoreError, ShapeError};

/// Why a store refuses, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The device failed. What was acknowledged is there; what was not may be tried again.
    #[error("cannot {what} {bytes} bytes at byte {offset}: {error}")]
    Device {
        /// Read, write, discard or flush.
        what: &'static str,
        /// Where.
        offset: u64,
        /// How much.
        bytes: u64,
        /// What the system says.
        error: io::Error,
    },
    /// There is no room for more blocks.
    #[error("no room: {live} of {capacity} blocks are in use, and {more} more were asked for")]
    NoRoom {
        /// Blocks there are.
        live: u64,
        /// Blocks there may be.
        capacity: u64,
        /// Blocks that the transaction adds.
        more: u64,
    },
    /// A transaction cannot be carried out as it is.
    #[error("{0}")]
    Transaction(String),
    /// A block cannot be read: what lies there is not what was written.
    #[error("block {block} is damaged: what lies in slot {slot} is not what was written there")]
    Damaged {
        /// The block.
        block: u32,
        /// Where it should be.
        slot: u32,
    },
    /// The device does not hold a store that can be opened.
    #[error("{what} (at byte {offset})")]
    Format {
        /// What is wrong, and what to do.
        what: String,
        /// Where.
        offset: u64,
    },
    /// A store cannot be made with these options.
    #[error("{0}")]
    Options(String),
}

impl StoreError {
    pub(crate) fn format(offset: u64, what: impl Into<String>) -> Self {
        Self::Format { what: what.into(), offset }
    }
}

impl From<ShapeError> for StoreError {
    fn from(error: ShapeError) -> Self {
        Self::Options(error.to_string())
    }
}

impl From<RestoreError> for StoreError {
    fn from(error: RestoreError) -> Self {
        Self::format(0, format!("the map contradicts itself: {error}; run `agewell store check`"))
    }
}

impl From<LogError> for StoreError {
    fn from(error: LogError) -> Self {
        // Room is accounted for before anything is accepted, so this is our own fault.
        panic!("the log is full though there was room: {error}")
    }
}
