//! FADaC: fading data clustering.
//!
//! Source: Kremer and Brinkmann, "FADaC: a self-adapting data classifier for flash memory",
//! SYSTOR 2019, in the form of the simulator of Wang et al. (FAST 2022): a block counts its writes
//! less its moves, and the log is the number of powers of ten, times the average size of a request,
//! that the count exceeds. That average fades over as many requests as there are live blocks;
//! where every request is one block, as here, it is one.
//!
//! Difference: counts saturate at 65,535, above the limit of log 5 (10,000), so that more than six
//! logs stop at that count; a block hotter than that reaches it again within its next moves.
//!
//! Two bytes a block.

use super::{CollectedSegment, Placement};

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
    /// If `logs` is zero or above 6, the most that counts of 16 bits tell apart.
    #[must_use]
    pub fn new(blocks: usize, logs: usize) -> Self {
        assert!((1..=6).contains(&logs), "between 1 and 6 logs");
        Self { count: vec![0; blocks], hottest: (logs - 1) as u8 }
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
