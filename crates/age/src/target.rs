//! What an aging workload is replayed onto: a simulated file system, or a directory of a real one.

use crate::{AgeError, Operation, Snapshot};

/// What became of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// There was no room for it: the target is as it was before, or holds the part that fitted.
    NoSpace,
}

/// How full a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes that can be used at all.
    pub total_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
}

/// What the layout score is made of: optimal over counted.
///
/// A block is counted when it is not the first of its file, and optimal when it lies right behind
/// its predecessor (Smith & Seltzer 1996, §3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayoutCounts {
    /// Blocks that follow their predecessor on the device.
    pub optimal: u64,
    /// Blocks that have a predecessor.
    pub counted: u64,
}

impl LayoutCounts {
    /// The layout score, if any block counts.
    #[must_use]
    pub fn score(self) -> Option<f64> {
        (self.counted > 0).then(|| self.optimal as f64 / self.counted as f64)
    }
}

/// What an aging workload is replayed onto.
pub trait Target {
    /// Does `operation`.
    ///
    /// # Errors
    /// If the target fails in another way than by being full.
    fn apply(&mut self, operation: &Operation) -> Result<Outcome, AgeError>;

    /// How full it is.
    ///
    /// # Errors
    /// If it cannot be asked.
    fn usage(&mut self) -> Result<Usage, AgeError>;

    /// The aggregate layout score of its regular files now.
    ///
    /// # Errors
    /// If it cannot be asked.
    fn layout_counts(&mut self) -> Result<LayoutCounts, AgeError>;

    /// What it holds and where.
    ///
    /// # Errors
    /// If it cannot be asked.
    fn snapshot(&mut self) -> Result<Snapshot, AgeError>;
}
