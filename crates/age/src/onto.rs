//! What an aging workload is replayed onto: a simulated file system, or a directory of a real one.

#[cfg(target_os = "linux")]
pub mod directory;
mod directory_options;
pub mod simulated;

#[cfg(target_os = "linux")]
pub use directory::DirectoryTarget;
pub use directory_options::{Allocation, Data, DirectoryOptions};
pub use simulated::SimulatedTarget;

use crate::{AgeError, LayoutCounts, Operation, Snapshot};

/// What became of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// There was no room for it: the target is as it was before, or holds the part that fitted.
    NoSpace,
    /// Left out, because what it works on is not there or not whole for want of room earlier.
    Skipped,
}

/// How full a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes that can be used at all.
    pub total_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
}

impl Usage {
    /// Used over total; 0 for a target without room.
    #[must_use]
    pub fn utilization(self) -> f64 {
        if self.total_bytes == 0 { 0.0 } else { self.used_bytes as f64 / self.total_bytes as f64 }
    }
}

/// What an aging workload is replayed onto.
///
/// Want of room is an outcome, not an error: it is counted, and the replay goes on. A file that
/// could not be made, and a directory too, stays away until it is removed and made again; a file
/// that could not grow takes no more writes until it is cut to nothing, or removed and made again.
pub trait Target {
    /// Does `operation`.
    ///
    /// # Errors
    /// If the target fails in another way than by being full.
    fn apply(&mut self, operation: &Operation) -> Result<Outcome, AgeError>;

    /// Does `operations`, and puts the outcome of each into `outcomes`, which it clears first.
    ///
    /// Operations of one file, and of one directory as against what it holds, keep their order;
    /// others need not.
    ///
    /// # Errors
    /// As [`Target::apply`]; what was done by then stays.
    fn apply_all(
        &mut self,
        operations: &[Operation],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), AgeError> {
        outcomes.clear();
        for operation in operations {
            outcomes.push(self.apply(operation)?);
        }
        Ok(())
    }

    /// Takes note of `operations` that an earlier replay has done already; this one was resumed.
    ///
    /// # Errors
    /// If they cannot have been done.
    fn assume(&mut self, operations: &[Operation]) -> Result<(), AgeError>;

    /// What earlier outcomes left away, for a replay that is resumed.
    fn refusals(&self) -> Refusals;

    /// Sets what earlier outcomes left away.
    fn restore(&mut self, refusals: &Refusals);

    /// Takes back what an earlier replay, which was killed, did beyond what this one is given to
    /// assume: it is not known how far it had come.
    ///
    /// # Errors
    /// If what it did cannot be seen or not be taken back.
    fn roll_back(&mut self) -> Result<(), AgeError>;

    /// Every operation is done.
    ///
    /// # Errors
    /// If the target lost something that no operation took away.
    fn finish(&mut self) -> Result<(), AgeError> {
        Ok(())
    }

    /// Bytes of the smallest piece that the end of a small file takes, where that is less than a
    /// block.
    fn fragment_bytes(&self) -> Option<u64> {
        None
    }

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

    /// The same, of a sample of the files if asking all takes long.
    ///
    /// # Errors
    /// If it cannot be asked.
    fn layout_estimate(&mut self) -> Result<LayoutCounts, AgeError> {
        self.layout_counts()
    }

    /// What it holds and where.
    ///
    /// # Errors
    /// If it cannot be asked.
    fn snapshot(&mut self) -> Result<Snapshot, AgeError>;
}

/// What a target left away for want of room.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Refusals {
    /// Files that are not there although the workload made them, ascending.
    pub files: Vec<u32>,
    /// Files that are shorter than the workload left them, ascending.
    pub short_files: Vec<u32>,
    /// Files that are still there although the workload removed them, ascending.
    pub leftover_files: Vec<u32>,
    /// Directories that are not there although the workload made them, ascending.
    pub directories: Vec<u32>,
}
