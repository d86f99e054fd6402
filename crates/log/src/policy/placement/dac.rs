//! Dynamic data clustering.
//!
//! Source: Chiang, Lee and Chang, "Using data clustering to improve cleaning performance for flash
//! memory", Software: Practice and Experience 29(3), 1999. A block has a level: one up whenever the
//! user rewrites it, one down whenever it is collected. Log = level, so the hottest blocks
//! accumulate in the last one.
//!
//! Differences from the source: the paper promotes only a block that is rewritten while its region
//! is young, demotes only one whose segment is old; like the simulator of Wang et al. (FAST 2022)
//! we promote and demote always.
//!
//! One byte a block; a byte read and written a call.

use super::{CollectedSegment, Placement};

/// A level up on each write, a level down on each move.
#[derive(Debug, Clone)]
pub struct Dac {
    level: Vec<u8>,
    hottest: u8,
}

impl Dac {
    /// For `blocks` blocks and `logs` levels.
    ///
    /// # Panics
    ///
    /// If `logs` is zero or above 256.
    #[must_use]
    pub fn new(blocks: usize, logs: usize) -> Self {
        assert!((1..=256).contains(&logs), "between 1 and 256 logs");
        Self { level: vec![0; blocks], hottest: (logs - 1) as u8 }
    }
}

impl Placement for Dac {
    fn logs(&self) -> usize {
        usize::from(self.hottest) + 1
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        if blocks > self.level.len() {
            self.level.resize(blocks, 0);
        }
    }

    #[inline]
    fn place_new(&mut self, block: u32, overwrites: bool, _clock: u64) -> u8 {
        let level = &mut self.level[block as usize];
        *level = if overwrites { (*level).saturating_add(1).min(self.hottest) } else { 0 };
        *level
    }

    #[inline]
    fn place_collected(&mut self, block: u32, _segment: &CollectedSegment, _clock: u64) -> u8 {
        let level = &mut self.level[block as usize];
        *level = level.saturating_sub(1);
        *level
    }
}
