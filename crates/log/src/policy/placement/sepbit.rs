//! SepBIT: separation by inferred block invalidation time.
//!
//! Source: Wang et al., "Separating data via block invalidation time inference for write
//! amplification reduction in log-structured storage", FAST 2022, algorithm 1, and its simulator.
//! A block that lived shortly the last time is taken to live shortly again: user writes with a last
//! lifetime below a threshold go to log 0, others to log 1. Survivors of log 0 go to log 2; other
//! collected blocks by age, in steps of four times the threshold, to log 3 and up. The threshold is
//! the mean time from opening to collection of the last 16 segments of log 0.
//!
//! The original finds lifetimes in a queue of recent writes, which covers no more than the smaller
//! of the live blocks and the threshold (it shrinks by one write at a time). We have the clock of
//! the last write of each block anyway and keep only the length of that queue. Difference: the
//! original counts blocks that died in open segments as live; we do not.
//!
//! Four bytes a block.

use super::{BeginsLate, CollectedSegment, Placement};

/// Segments of log 0 whose lifetime is averaged (Wang et al. 2022, algorithm 1).
const AVERAGED_SEGMENTS: u32 = 16;
/// Ratio of neighbouring age limits of collected blocks (4 and 16 thresholds in Wang et al. 2022).
const AGE_STEP: f64 = 4.0;

/// The last lifetime of what is new, the age of what is collected.
#[derive(Debug, Clone)]
pub struct SepBit {
    last_write: Vec<u32>,
    last_log: u8,
    live_blocks: u64,
    queue_blocks: u64,
    threshold: f64,
    lifetime_sum: u64,
    lifetimes: u32,
}

impl SepBit {
    /// For `blocks` blocks and `logs` logs: six in the source; with fewer the last ones fall
    /// together.
    ///
    /// # Panics
    ///
    /// If `logs` is zero or above 256.
    #[must_use]
    pub fn new(blocks: usize, logs: usize) -> Self {
        assert!((1..=256).contains(&logs), "between 1 and 256 logs");
        Self {
            last_write: vec![0; blocks],
            last_log: (logs - 1) as u8,
            live_blocks: 0,
            queue_blocks: 0,
            threshold: f64::INFINITY,
            lifetime_sum: 0,
            lifetimes: 0,
        }
    }

    fn lengthen_queue(&mut self) {
        self.queue_blocks += 1;
        let length = self.queue_blocks as f64;
        if length > self.threshold.min(self.live_blocks as f64) {
            self.queue_blocks -= 1;
            // A second one, so that the queue follows a threshold that fell.
            if length - 1.0 > self.threshold {
                self.queue_blocks -= 1;
            }
        }
    }
}

impl BeginsLate for SepBit {
    fn begin(&mut self, live_blocks: u64) {
        self.live_blocks += live_blocks;
    }

    fn divides(&self) -> bool {
        true
    }
}

impl Placement for SepBit {
    fn logs(&self) -> usize {
        usize::from(self.last_log) + 1
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        if blocks > self.last_write.len() {
            self.last_write.resize(blocks, 0);
        }
    }

    #[inline]
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        let last_write = &mut self.last_write[block as usize];
        let lifetime = (clock as u32).wrapping_sub(*last_write);
        *last_write = clock as u32;
        let limit = self.threshold.min(self.queue_blocks as f64);
        let short = overwrites && f64::from(lifetime) < limit;
        self.lengthen_queue();
        self.live_blocks += u64::from(!overwrites);
        u8::from(!short).min(self.last_log)
    }

    #[inline]
    fn place_collected(&mut self, block: u32, segment: &CollectedSegment, clock: u64) -> u8 {
        if segment.log == 0 {
            return self.last_log.min(2);
        }
        let age = f64::from((clock as u32).wrapping_sub(self.last_write[block as usize]));
        let mut log = self.last_log.min(3);
        let mut limit = self.threshold * AGE_STEP;
        while age >= limit && log < self.last_log {
            limit *= AGE_STEP;
            log += 1;
        }
        log
    }

    fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        if segment.log != 0 {
            return;
        }
        self.lifetime_sum += clock - segment.opened;
        self.lifetimes += 1;
        if self.lifetimes == AVERAGED_SEGMENTS {
            self.threshold = self.lifetime_sum as f64 / f64::from(AVERAGED_SEGMENTS);
            self.lifetime_sum = 0;
            self.lifetimes = 0;
        }
    }

    fn deleted(&mut self, _block: u32, _clock: u64) {
        // One that was never placed may be deleted too; this is only a limit to a length.
        self.live_blocks = self.live_blocks.saturating_sub(1);
    }
}
