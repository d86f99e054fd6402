//! FADaC: fading data clustering.
//!
//! Source: Kremer and Brinkmann, "FADaC: a self-adapting data classifier for flash memory",
//! SYSTOR 2019, in the form of the simulator of Wang et al. (FAST 2022): a block counts its writes
//! less its moves, and the log is the number of powers of ten, times the average size of a request,
//! that the count exceeds. That average fades over as many requests as there are live blocks;
//! where every request is one block, as here, it is one.
//!
//! Difference: counts saturate at 65,535, which is above the limit of the sixth log (10,000). More
//! than six logs are not used.
//!
//! Two bytes a block.

use super::{CollectedSegment, Placement};

/// As many logs as counts of 16 bits distinguish; more are not opened.
const USEFUL_LOGS: usize = 6;

/// Writes less moves, in powers of ten.
#[derive(Debug, Clone)]
pub struct Fadac {
    count: Vec<u16>,
    hottest: u8,
}

impl Fadac {
    /// For `blocks` blocks and `logs` logs.
    ///
    /// # Panics
    ///
    /// If `logs` is zero or above 256.
    #[must_use]
    pub fn new(blocks: usize, logs: usize) -> Self {
        assert!((1..=256).contains(&logs), "between 1 and 256 logs");
        Self { count: vec![0; blocks], hottest: (logs.min(USEFUL_LOGS) - 1) as u8 }
    }

    fn log(&self, count: u16) -> u8 {
        let level = match count {
            0..=1 => 0,
            2..=10 => 1,
            11..=100 => 2,
            101..=1_000 => 3,
            1_001..=10_000 => 4,
            _ => 5,
        };
        self.hottest.min(level)
    }
}

impl Placement for Fadac {
    fn logs(&self) -> usize {
        usize::from(self.hottest) + 1
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        if blocks > self.count.len() {
            self.count.resize(blocks, 0);
        }
    }

    #[inline]
    fn place_new(&mut self, block: u32, overwrites: bool, _clock: u64) -> u8 {
        let count = &mut self.count[block as usize];
        *count = if overwrites { count.saturating_add(1) } else { 1 };
        let count = *count;
        self.log(count)
    }

    #[inline]
    fn place_collected(&mut self, block: u32, _segment: &CollectedSegment, _clock: u64) -> u8 {
        let count = &mut self.count[block as usize];
        *count = count.saturating_sub(1);
        let count = *count;
        self.log(count)
    }
}
