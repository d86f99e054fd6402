//! Random update: every block equally likely, with frequent syncs.
//!
//! The worst case of a log: each segment written makes holes all over the disk, and the syncs
//! force partial segments. Approximates TPC-C without index accesses.
//! Source: Matthews 1999, §5.2.1.1 (ten updates a block, a sync after every fourth write, one
//! client). Cost: one draw an update.

use agewell_core::{RandomStreams, Stream, uniform_below};

use super::{BlockChoice, UpdateParameters, UpdateWorkload, WorkloadError};

/// Uniform single-block updates.
pub type RandomUpdate = UpdateWorkload<UniformChoice>;

/// Every block with the same probability.
#[derive(Debug, Clone)]
pub struct UniformChoice {
    stream: Stream,
    blocks: u32,
}

impl BlockChoice for UniformChoice {
    #[inline]
    fn next_block(&mut self) -> u32 {
        uniform_below(&mut self.stream, u64::from(self.blocks)) as u32
    }
}

impl RandomUpdate {
    /// The workload that `parameters` describe.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &UpdateParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        parameters.validate("random-update")?;
        let stream = streams.stream("workload/random-update");
        Ok(Self::over(*parameters, UniformChoice { stream, blocks: parameters.blocks }))
    }
}
