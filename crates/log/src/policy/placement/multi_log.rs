//! Multi-log: levels by update frequency.
//!
//! Source: Stoica and Ailamaki, "Improving flash write performance by using update frequency", VLDB
//! 2013, in the form of the simulator of Wang et al. (FAST 2022). A new block starts in log 0, the
//! hottest. A collected block sinks one log; the coldest log in use opens another once it holds a
//! segment's worth of live blocks. A rewritten block rises one log with a chance of 1 - lifetime /
//! expected lifetime where that is positive, and a log's expected lifetime is half its live blocks
//! times the live share of what was collected from it so far.
//!
//! Difference: a log's live blocks fall one by one during a collection, not all before it.
//!
//! Five bytes a block.

use agewell_core::{RandomStreams, chance};

use super::{CollectedSegment, Placement};

/// Level of a block that is not live.
const ABSENT: u8 = u8::MAX;

#[derive(Debug, Clone, Copy, Default)]
struct Level {
    live: u64,
    collected: u64,
    collected_live: u64,
}

/// A log a level; collected blocks sink, early rewrites rise.
#[derive(Debug, Clone)]
pub struct MultiLog {
    level: Vec<u8>,
    last_write: Vec<u32>,
    levels: Vec<Level>,
    coldest: u8,
    coins: agewell_core::Stream,
}

impl MultiLog {
    /// For `blocks` blocks and `logs` levels; its coins come from stream `multi-log` of `streams`.
    ///
    /// # Panics
    ///
    /// If `logs` is zero or above 256.
    #[must_use]
    pub fn new(blocks: usize, logs: usize, streams: &RandomStreams) -> Self {
        assert!((1..=256).contains(&logs), "between 1 and 256 logs");
        Self {
            level: vec![ABSENT; blocks],
            last_write: vec![0; blocks],
            levels: vec![Level::default(); logs.min(usize::from(ABSENT))],
            coldest: 0,
            coins: streams.stream("multi-log"),
        }
    }

    fn rises(&mut self, level: u8, lifetime: u32) -> bool {
        let Level { live, collected, collected_live } = self.levels[usize::from(level)];
        if level == 0 || collected == 0 {
            return false;
        }
        let expected = live as f64 * (collected_live as f64 / collected as f64) / 2.0;
        let share = 1.0 - f64::from(lifetime) / expected;
        share > 0.0 && chance(&mut self.coins, share)
    }
}

impl Placement for MultiLog {
    fn logs(&self) -> usize {
        self.levels.len()
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        if blocks > self.level.len() {
            self.level.resize(blocks, ABSENT);
            self.last_write.resize(blocks, 0);
        }
    }

    #[inline]
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        let index = block as usize;
        let mut level = 0;
        if overwrites {
            level = self.level[index];
            self.levels[usize::from(level)].live -= 1;
            let lifetime = (clock as u32).wrapping_sub(self.last_write[index]);
            if self.rises(level, lifetime) {
                level -= 1;
            }
        }
        self.last_write[index] = clock as u32;
        self.level[index] = level;
        self.levels[usize::from(level)].live += 1;
        level
    }

    #[inline]
    fn place_collected(&mut self, block: u32, segment: &CollectedSegment, _clock: u64) -> u8 {
        let mut level = self.level[block as usize];
        let live = &mut self.levels[usize::from(level)].live;
        let opens_another = *live >= u64::from(segment.blocks);
        *live -= 1;
        if level < self.coldest {
            level += 1;
        } else if usize::from(level) + 1 < self.levels.len() && opens_another {
            level += 1;
            self.coldest = level;
        }
        self.level[block as usize] = level;
        self.levels[usize::from(level)].live += 1;
        level
    }

    fn collected(&mut self, segment: &CollectedSegment, _clock: u64) {
        let level = &mut self.levels[usize::from(segment.log)];
        level.collected += u64::from(segment.blocks);
        level.collected_live += u64::from(segment.live);
    }

    fn deleted(&mut self, block: u32, _clock: u64) {
        let level = std::mem::replace(&mut self.level[block as usize], ABSENT);
        if level != ABSENT {
            self.levels[usize::from(level)].live -= 1;
        }
    }
}
