//! An oracle that knows when each block dies: the lower bound that a real placement is held
//! against.
//!
//! Log = segments' worth of user writes until the block's death, capped at the last log ("FK",
//! future knowledge, in the simulator of Wang et al., FAST 2022). With few logs it distinguishes
//! only deaths in the near future and is worse than a good estimate; with 256 it is far better than
//! any.
//!
//! Four bytes a block, and four a user write for the deaths.

use super::{CollectedSegment, Placement};

/// Clock of a death that never comes.
const NEVER: u32 = u32::MAX;

/// For each of `writes`, in order, the clock (counted from 1) at which the block is written again,
/// or `u32::MAX`. `blocks` is above every block number in `writes`.
///
/// # Panics
///
/// If a block number is not below `blocks`, or there are 2^32 - 2 writes or more.
#[must_use]
pub fn death_clocks(writes: &[u32], blocks: usize) -> Vec<u32> {
    assert!(writes.len() < NEVER as usize - 1, "clocks are of 32 bits");
    let mut next = vec![NEVER; blocks];
    let mut deaths = vec![NEVER; writes.len()];
    for (index, block) in writes.iter().enumerate().rev() {
        deaths[index] = next[*block as usize];
        next[*block as usize] = index as u32 + 1;
    }
    deaths
}

/// The known time of each block's death.
#[derive(Debug, Clone)]
pub struct Oracle {
    deaths: Vec<u32>,
    death: Vec<u32>,
    segment_blocks: u64,
    furthest: u8,
}

impl Oracle {
    /// For `blocks` blocks in segments of `segment_blocks` and `logs` logs; `deaths` as made by
    /// [`death_clocks`] for exactly the writes to come.
    ///
    /// # Panics
    ///
    /// If `logs` is zero or above 256, or a segment has no blocks.
    #[must_use]
    pub fn new(deaths: Vec<u32>, blocks: usize, segment_blocks: u32, logs: usize) -> Self {
        assert!((1..=256).contains(&logs), "between 1 and 256 logs");
        assert!(segment_blocks > 0, "a segment holds blocks");
        Self {
            deaths,
            death: vec![NEVER; blocks],
            segment_blocks: u64::from(segment_blocks),
            furthest: (logs - 1) as u8,
        }
    }

    fn log(&self, block: u32, clock: u64) -> u8 {
        let remaining = u64::from(self.death[block as usize]).saturating_sub(clock);
        (remaining / self.segment_blocks).min(u64::from(self.furthest)) as u8
    }
}

impl Placement for Oracle {
    fn logs(&self) -> usize {
        usize::from(self.furthest) + 1
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        if blocks > self.death.len() {
            self.death.resize(blocks, NEVER);
        }
    }

    #[inline]
    fn place_new(&mut self, block: u32, _overwrites: bool, clock: u64) -> u8 {
        // A look-ahead may go on beyond the writes to come.
        let death = self.deaths.get(clock as usize - 1);
        self.death[block as usize] = death.copied().unwrap_or(NEVER);
        self.log(block, clock)
    }

    #[inline]
    fn place_collected(&mut self, block: u32, _segment: &CollectedSegment, clock: u64) -> u8 {
        self.log(block, clock)
    }
}
