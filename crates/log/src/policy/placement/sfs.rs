//! SFS: hotness groups found by clustering the segments.
//!
//! Source: Min et al., "SFS: random write considered harmful in solid state drives", FAST 2012, in
//! the form of the simulator of Wang et al. (FAST 2022). The hotness of a block is its writes
//! divided by the time since the last; that of a segment the sum of its live blocks' writes divided
//! by the sum of those times. Centres of hotness, one a log and hottest first, are moved after each
//! collection by three rounds of k-means over all full segments; a block goes to the log whose
//! centre is nearest. A new block counts as infinitely hot.
//!
//! Differences: writes a block saturate at
//! 65,535; segments without a live block have no hotness and are left out; above 4,096 segments an
//! evenly spaced sample of them is clustered, so that a collection costs a bounded time.
//!
//! Six bytes a block and 24 bytes a segment; up to 3 x 4,096 x logs steps a collection.

use super::{CollectedSegment, Placement};

/// Rounds of k-means after a collection (simulator of Wang et al. 2022).
const ROUNDS: usize = 3;
/// Most segments that are clustered at once; chosen by us.
const SAMPLED_SEGMENTS: usize = 4_096;

#[derive(Debug, Clone, Copy, Default)]
struct SegmentSum {
    /// Clocks of the last write of its live blocks, added up.
    clocks: u64,
    /// Writes of its live blocks, added up.
    writes: u64,
    live: u32,
    written: u32,
}

/// Hotness quantised by clustering the segments.
#[derive(Debug, Clone)]
pub struct Sfs {
    writes: Vec<u16>,
    last_write: Vec<u32>,
    segment_blocks: u32,
    segments: Vec<SegmentSum>,
    /// Hotness of each log, in writes a block and user write, falling.
    centres: Vec<f64>,
    /// Sum of hotness and number of segments nearest to each centre.
    groups: Vec<(f64, u32)>,
    clock: u64,
    /// Whether the centres have been moved for the collection at hand.
    moved: bool,
}

impl Sfs {
    /// For `blocks` blocks in segments of `segment_blocks` and `logs` logs.
    ///
    /// # Panics
    ///
    /// If `logs` is zero or above 256.
    #[must_use]
    pub fn new(blocks: usize, segment_blocks: u32, logs: usize) -> Self {
        assert!((1..=256).contains(&logs), "between 1 and 256 logs");
        Self {
            writes: vec![0; blocks],
            last_write: vec![0; blocks],
            segment_blocks,
            segments: Vec::new(),
            centres: vec![0.0; logs],
            groups: vec![(0.0, 0); logs],
            clock: 0,
            moved: false,
        }
    }

    fn hotness(&self, block: u32) -> f64 {
        let index = block as usize;
        let elapsed = (self.clock as u32).wrapping_sub(self.last_write[index]);
        f64::from(self.writes[index]) / f64::from(elapsed)
    }

    /// The log whose centre is nearest; the coldest of several, the hottest for infinity.
    fn log(&self, hotness: f64) -> u8 {
        let mut nearest = (f64::INFINITY, 0);
        for (index, centre) in self.centres.iter().enumerate().rev() {
            let distance = (centre - hotness).abs();
            if distance < nearest.0 {
                nearest = (distance, index);
            }
        }
        nearest.1 as u8
    }

    /// The clock of the last write of `block`, from its low 32 bits.
    fn last_clock(&self, block: u32) -> u64 {
        let elapsed = (self.clock as u32).wrapping_sub(self.last_write[block as usize]);
        self.clock - u64::from(elapsed)
    }

    /// Moves the centres, once a collection: before its first block is placed.
    fn move_centres(&mut self) {
        for _ in 0..ROUNDS {
            self.gather();
            for (centre, (sum, segments)) in self.centres.iter_mut().zip(&self.groups) {
                *centre = if *segments == 0 { 0.0 } else { sum / f64::from(*segments) };
            }
        }
        self.centres.sort_unstable_by(|one, other| other.total_cmp(one));
        self.moved = true;
    }

    /// Checks that the sums of live blocks are those of the blocks' own counts.
    #[cfg(test)]
    pub(super) fn verify(&self) {
        let written: u64 = self.segments.iter().map(|sum| sum.writes).sum();
        let live: u64 = self.segments.iter().map(|sum| u64::from(sum.live)).sum();
        let known: u64 = self.writes.iter().map(|writes| u64::from(*writes)).sum();
        assert!(written <= known, "live blocks have no more writes than all");
        assert!(live <= self.writes.len() as u64, "no block counts twice");
        for sum in self.segments.iter().filter(|sum| sum.live == 0) {
            assert_eq!((sum.clocks, sum.writes), (0, 0), "dead blocks leave nothing behind");
        }
    }

    fn gather(&mut self) {
        let stride = self.segments.len().div_ceil(SAMPLED_SEGMENTS).max(1);
        self.groups.fill((0.0, 0));
        for segment in self.segments.iter().step_by(stride) {
            if segment.written < self.segment_blocks || segment.live == 0 {
                continue;
            }
            let time = u64::from(segment.live) * self.clock - segment.clocks;
            let hotness = segment.writes as f64 / time.max(1) as f64;
            let mut nearest = (f64::INFINITY, 0);
            for (index, centre) in self.centres.iter().enumerate() {
                let distance = (centre - hotness).abs();
                if distance < nearest.0 {
                    nearest = (distance, index);
                }
            }
            let group = &mut self.groups[nearest.1];
            group.0 += hotness;
            group.1 += 1;
        }
    }
}

impl Placement for Sfs {
    fn logs(&self) -> usize {
        self.centres.len()
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        if blocks > self.writes.len() {
            self.writes.resize(blocks, 0);
            self.last_write.resize(blocks, 0);
        }
    }

    #[inline]
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        let index = block as usize;
        self.clock = clock;
        let log = if overwrites {
            let hotness = self.hotness(block);
            self.writes[index] = self.writes[index].saturating_add(1);
            self.log(hotness)
        } else {
            self.writes[index] = 1;
            0
        };
        self.last_write[index] = clock as u32;
        log
    }

    #[inline]
    fn place_collected(&mut self, block: u32, _segment: &CollectedSegment, clock: u64) -> u8 {
        self.clock = clock;
        if !self.moved {
            self.move_centres();
        }
        self.log(self.hotness(block))
    }

    fn collected(&mut self, _segment: &CollectedSegment, clock: u64) {
        self.clock = clock;
        if !self.moved {
            self.move_centres();
        }
        self.moved = false;
    }

    #[inline]
    fn placed(&mut self, block: u32, segment: u32) {
        let index = segment as usize;
        if index >= self.segments.len() {
            self.segments.resize(index + 1, SegmentSum::default());
        }
        let clock = self.last_clock(block);
        let sum = &mut self.segments[index];
        sum.clocks += clock;
        sum.writes += u64::from(self.writes[block as usize]);
        sum.live += 1;
        sum.written += 1;
    }

    #[inline]
    fn died(&mut self, block: u32, segment: u32) {
        let clock = self.last_clock(block);
        let sum = &mut self.segments[segment as usize];
        sum.clocks -= clock;
        sum.writes -= u64::from(self.writes[block as usize]);
        sum.live -= 1;
    }

    fn freed(&mut self, segment: u32) {
        if let Some(sum) = self.segments.get_mut(segment as usize) {
            *sum = SegmentSum::default();
        }
    }
}
