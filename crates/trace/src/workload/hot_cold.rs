//! Hot and cold: a small part of the blocks gets most of the updates.
//!
//! The hot blocks are neighbours in the file, so that the sequential fill puts them into segments
//! of their own; with `shift_every` the hot range moves on by its own length, which makes data
//! that was hot cold. Within each group every block is equally likely.
//! Source: Rosenblum & Ousterhout 1992, §3.5 (10 % of the files get 90 % of the writes). Cost: two
//! draws an update.

use agewell_core::{RandomStreams, Stream, chance, uniform_below};

use super::error::require;
use super::{BlockChoice, UpdateParameters, UpdateWorkload, WorkloadError};

const NAME: &str = "hot-cold";

/// Updates of a hot and a cold group of blocks.
pub type HotCold = UpdateWorkload<HotColdChoice>;

/// What the hot-and-cold workload takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HotColdParameters {
    /// The parts shared by all update workloads.
    pub update: UpdateParameters,
    /// Part of the blocks that is hot, above 0 and below 1; 0.1 by default.
    pub hot_fraction: f64,
    /// Part of the updates that goes to the hot blocks, 0 to 1; 0.9 by default.
    pub hot_share: f64,
    /// Updates after which the hot range moves on; 0, the default, means never.
    pub shift_every: u64,
}

impl Default for HotColdParameters {
    fn default() -> Self {
        let update = UpdateParameters::default();
        Self { update, hot_fraction: 0.1, hot_share: 0.9, shift_every: 0 }
    }
}

/// Hot with one probability, else cold.
#[derive(Debug, Clone)]
pub struct HotColdChoice {
    stream: Stream,
    blocks: u32,
    hot_blocks: u32,
    hot_share: f64,
    hot_start: u32,
    shift_every: u64,
    updates_to_shift: u64,
}

impl HotColdChoice {
    /// `offset` blocks after the start of the hot range, around the end of the file.
    fn address(&self, offset: u64) -> u32 {
        let address = u64::from(self.hot_start) + offset;
        let blocks = u64::from(self.blocks);
        (if address < blocks { address } else { address - blocks }) as u32
    }
}

impl BlockChoice for HotColdChoice {
    #[inline]
    fn next_block(&mut self) -> u32 {
        if self.shift_every > 0 {
            if self.updates_to_shift == 0 {
                self.hot_start = self.address(u64::from(self.hot_blocks));
                self.updates_to_shift = self.shift_every;
            }
            self.updates_to_shift -= 1;
        }
        let hot_blocks = u64::from(self.hot_blocks);
        let offset = if chance(&mut self.stream, self.hot_share) {
            uniform_below(&mut self.stream, hot_blocks)
        } else {
            hot_blocks + uniform_below(&mut self.stream, u64::from(self.blocks) - hot_blocks)
        };
        self.address(offset)
    }
}

impl HotCold {
    /// The workload that `parameters` describe. The number of hot blocks is rounded to the nearest
    /// that leaves both groups at least one.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &HotColdParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        let HotColdParameters { update, hot_fraction, hot_share, shift_every } = *parameters;
        update.validate(NAME)?;
        require(update.blocks > 1, NAME, "blocks", update.blocks, "at least 2: one hot, one cold")?;
        let between = hot_fraction > 0.0 && hot_fraction < 1.0;
        require(between, NAME, "hot_fraction", hot_fraction, "above 0 and below 1")?;
        require((0.0..=1.0).contains(&hot_share), NAME, "hot_share", hot_share, "from 0 to 1")?;
        let hot_blocks = (f64::from(update.blocks) * hot_fraction).round() as u32;
        let choice = HotColdChoice {
            stream: streams.stream("workload/hot-cold"),
            blocks: update.blocks,
            hot_blocks: hot_blocks.clamp(1, update.blocks - 1),
            hot_share,
            hot_start: 0,
            shift_every,
            updates_to_shift: shift_every,
        };
        Ok(Self::over(update, choice))
    }
}
