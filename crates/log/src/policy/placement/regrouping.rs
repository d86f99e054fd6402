//! Any placement, and one log more for blocks that are written together because they are read
//! together: the reorganisation log (Matthews 1999, §6.4.2).
//!
//! What the user writes goes where the placement within says. A block that is *kept* stays in the
//! reorganisation log: it is patched where it lies when it is written again, and what a collection
//! takes from there goes back there, in the order in which it lay, so that what was together stays
//! together at no cost. A block that is no longer kept leaves it with the next write or collection;
//! the placement within then sees it come from its last log, as data that was not written for long.
//!
//! Memory: a bit a block beside the placement within.

use super::{CollectedSegment, Placement};

/// A placement with a reorganisation log.
#[derive(Debug, Clone)]
pub struct Regrouping<P> {
    within: P,
    kept: Vec<u64>,
}

impl<P: Placement> Regrouping<P> {
    /// `within`, and a log behind its last, for `blocks` blocks; nothing if that log could not be
    /// numbered.
    #[must_use]
    pub fn new(within: P, blocks: u32) -> Option<Self> {
        let kept = vec![0; (blocks as usize).div_ceil(64)];
        (within.logs() < 256).then_some(Self { within, kept })
    }

    /// The placement of what the user writes.
    #[must_use]
    pub fn within(&self) -> &P {
        &self.within
    }

    /// The number of the reorganisation log.
    #[must_use]
    pub fn log(&self) -> u8 {
        self.within.logs() as u8
    }

    /// Whether `block` is kept in the reorganisation log if it lies there.
    #[must_use]
    #[inline]
    pub fn is_kept(&self, block: u32) -> bool {
        is_kept(&self.kept, block)
    }

    /// Changes that.
    #[inline]
    pub fn set_kept(&mut self, block: u32, kept: bool) {
        let (word, bit) = ((block / 64) as usize, 1 << (block % 64));
        if kept {
            self.kept[word] |= bit;
        } else {
            self.kept[word] &= !bit;
        }
    }

    /// `segment` as the placement within may see it.
    fn seen_within(&self, segment: &CollectedSegment) -> CollectedSegment {
        let last = self.within.logs() as u8 - 1;
        CollectedSegment { log: segment.log.min(last), ..*segment }
    }
}

#[inline]
fn is_kept(kept: &[u64], block: u32) -> bool {
    kept[(block / 64) as usize] >> (block % 64) & 1 == 1
}

impl<P: Placement> Placement for Regrouping<P> {
    fn logs(&self) -> usize {
        self.within.logs() + 1
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        self.within.ensure_blocks(blocks);
        if blocks.div_ceil(64) > self.kept.len() {
            self.kept.resize(blocks.div_ceil(64), 0);
        }
    }

    #[inline]
    fn will_write(&mut self, blocks: &mut dyn Iterator<Item = (u32, bool)>, clock: u64) {
        self.within.will_write(blocks, clock);
    }

    #[inline]
    fn will_collect(
        &mut self,
        blocks: &mut dyn Iterator<Item = u32>,
        segment: &CollectedSegment,
        clock: u64,
    ) {
        let (seen, kept) = (self.seen_within(segment), &self.kept);
        let stays = segment.log == self.log();
        let mut blocks = blocks.filter(|block| !(stays && is_kept(kept, *block)));
        self.within.will_collect(&mut blocks, &seen, clock);
    }

    #[inline]
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        self.within.place_new(block, overwrites, clock)
    }

    #[inline]
    fn place_collected(&mut self, block: u32, segment: &CollectedSegment, clock: u64) -> u8 {
        if segment.log == self.log() && self.is_kept(block) {
            return segment.log;
        }
        let segment = self.seen_within(segment);
        self.within.place_collected(block, &segment, clock)
    }

    fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        // Blocks in the reorganisation log give no information on how long data of a log lives.
        if segment.log != self.log() {
            self.within.collected(segment, clock);
        }
    }

    fn deleted(&mut self, block: u32, clock: u64) {
        self.set_kept(block, false);
        self.within.deleted(block, clock);
    }

    #[inline]
    fn placed(&mut self, block: u32, segment: u32) {
        self.within.placed(block, segment);
    }

    #[inline]
    fn died(&mut self, block: u32, segment: u32) {
        self.within.died(block, segment);
    }

    fn freed(&mut self, segment: u32) {
        self.within.freed(segment);
    }

    fn regroups_to(&self) -> Option<u8> {
        Some(self.log())
    }

    #[inline]
    fn keeps_place(&self, block: u32, log: u8) -> bool {
        log == self.log() && self.is_kept(block)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MultiLog, NoSeparation};
    use super::*;
    use agewell_core::RandomStreams;

    fn segment(log: u8) -> CollectedSegment {
        CollectedSegment { log, blocks: 8, filled: 8, live: 4, opened: 1, sealed: 2 }
    }

    #[test]
    fn what_is_kept_goes_back_and_what_is_not_leaves() {
        let mut placement = Regrouping::new(NoSeparation, 100).unwrap();
        assert_eq!((placement.logs(), placement.regroups_to()), (2, Some(1)));
        placement.set_kept(70, true);
        assert_eq!(placement.place_collected(70, &segment(1), 5), 1);
        assert_eq!(placement.place_collected(70, &segment(0), 5), 0);
        assert_eq!(placement.place_collected(71, &segment(1), 5), 0);
        assert!(placement.keeps_place(70, 1));
        assert!(!placement.keeps_place(70, 0));
        placement.deleted(70, 6);
        assert!(!placement.keeps_place(70, 1));
    }

    #[test]
    fn the_placement_within_never_sees_the_log_behind_its_last() {
        let levels = MultiLog::new(10, 3, &RandomStreams::new(1));
        let mut placement = Regrouping::new(levels, 10).unwrap();
        for clock in 1..11 {
            let log = placement.place_new(clock as u32 - 1, false, clock);
            assert!(log < 3);
        }
        // A level of its own for each log would be out of bounds here.
        assert!(placement.place_collected(3, &segment(3), 11) < 3);
        placement.collected(&segment(3), 11);
    }
}
