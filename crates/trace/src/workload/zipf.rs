//! Zipf: the block of rank r is updated with probability proportional to r^-alpha.
//!
//! Ranks are given to addresses by a random permutation, so that frequency says nothing about
//! place; `alpha` 0 is uniform. The permutation is part of the table of weights and costs a draw
//! nothing. Weights are whole numbers computed by arithmetic that IEEE 754 fixes to the bit, so the
//! stream is the same on every platform.
//! Cost: 8 bytes a block, one draw and one access to memory an update; building takes 40 bytes a
//! block for a moment.

use agewell_core::{RandomStreams, Stream, uniform_below};

use super::error::require;
use super::exact_power::inverse_power;
use super::{AliasTable, BlockChoice, UpdateParameters, UpdateWorkload, WorkloadError};

const NAME: &str = "zipf";

/// Weight of rank 1; the weight of any rank is at least 1. Chosen by us: a rank's weight is exact
/// to 2^-30 of itself for over a million blocks at alpha 1.
const WEIGHT_FIRST: f64 = 1_125_899_906_842_624.0;

/// Updates whose frequencies follow Zipf's law.
pub type Zipf = UpdateWorkload<ZipfChoice>;

/// What the Zipf workload takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ZipfParameters {
    /// The parts shared by all update workloads.
    pub update: UpdateParameters,
    /// The exponent, 0 to 20; 1 by default.
    pub alpha: f64,
}

impl Default for ZipfParameters {
    fn default() -> Self {
        Self { update: UpdateParameters::default(), alpha: 1.0 }
    }
}

/// Draws blocks by the weight of their rank.
#[derive(Debug, Clone)]
pub struct ZipfChoice {
    stream: Stream,
    table: AliasTable,
}

impl BlockChoice for ZipfChoice {
    #[inline]
    fn next_block(&mut self) -> u32 {
        self.table.draw(&mut self.stream)
    }
}

/// The whole-number weight of `rank`, counted from 1.
pub(super) fn rank_weight(rank: u32, alpha: f64) -> u64 {
    ((inverse_power(rank, alpha) * WEIGHT_FIRST).round() as u64).max(1)
}

/// Every number below `count` once, in random order (Fisher and Yates, as Durstenfeld 1964).
pub(super) fn permutation(count: u32, stream: &mut Stream) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, uniform_below(stream, last as u64 + 1) as usize);
    }
    order
}

impl ZipfChoice {
    /// The probability of each block.
    #[must_use]
    pub fn probabilities(&self) -> Vec<f64> {
        self.table.probabilities()
    }
}

impl Zipf {
    /// The workload that `parameters` describe.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &ZipfParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        let ZipfParameters { update, alpha } = *parameters;
        update.validate(NAME)?;
        require((0.0..=20.0).contains(&alpha), NAME, "alpha", alpha, "from 0 to 20")?;
        let order = permutation(update.blocks, &mut streams.stream("workload/zipf/ranks"));
        let mut weights = vec![0; order.len()];
        for (rank, address) in (1..).zip(order) {
            weights[address as usize] = rank_weight(rank, alpha);
        }
        let table = AliasTable::new(&weights);
        let stream = streams.stream("workload/zipf");
        Ok(Self::over(update, ZipfChoice { stream, table }))
    }

    /// The probability of each block, for studies that may know it.
    #[must_use]
    pub fn probabilities(&self) -> Vec<f64> {
        self.choice().probabilities()
    }
}
