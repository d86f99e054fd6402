//! Sequential: the whole file rewritten front to back, again and again.
//!
//! The best case of a log: each segment written empties the one written a round before. Takes no
//! random number. Cost: O(1) an update.

use super::{BlockChoice, UpdateParameters, UpdateWorkload, WorkloadError};

/// Updates in address order, round after round.
pub type Sequential = UpdateWorkload<SequentialChoice>;

/// The block after the last one, and the first after the end.
#[derive(Debug, Clone)]
pub struct SequentialChoice {
    next: u32,
    blocks: u32,
}

impl BlockChoice for SequentialChoice {
    #[inline]
    fn next_block(&mut self) -> u32 {
        let block = self.next;
        self.next = if block + 1 == self.blocks { 0 } else { block + 1 };
        block
    }
}

impl Sequential {
    /// The workload that `parameters` describe; `updates_per_block` counts the rounds.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(parameters: &UpdateParameters) -> Result<Self, WorkloadError> {
        parameters.validate("sequential")?;
        Ok(Self::over(*parameters, SequentialChoice { next: 0, blocks: parameters.blocks }))
    }
}
