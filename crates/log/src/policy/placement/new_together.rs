//! Any placement for what is collected, and one log before its own for all that is new.
//!
//! A store writes what is synced at once to one place, as every further place may cost a disk a seek; and its
//! record lies before it. What survives a collection is written when there is time, and lives longer: it
//! goes to logs by expected lifetime. From the first collection on the placement within hears of new data as
//! if it were asked, so that it learns from that too. While it sees no difference between blocks they all go to the
//! log of new data: an open segment more would only take room. A store that only fills holes never begins, and what
//! the placement keeps a block is not touched.
//!
//! Nothing a block beside the placement within.

use super::{CollectedSegment, LifeTable, Placement};

/// A placement that may begin when there are blocks already.
pub trait BeginsLate: Placement {
    /// There are `live_blocks` blocks of which it has not heard. It hears of them when they are written, deleted or
    /// collected.
    fn begin(&mut self, live_blocks: u64);

    /// Whether collected blocks do not all have one log now.
    fn divides(&self) -> bool;
}

/// A placement that new data is not divided by.
#[derive(Debug, Clone)]
pub struct NewTogether<P> {
    within: P,
    /// Whether anything was collected.
    has_begun: bool,
    /// Until then.
    live_blocks: u64,
}

impl<P: BeginsLate> NewTogether<P> {
    /// `within` for what is collected.
    ///
    /// # Panics
    /// If it has more than 255 logs.
    #[must_use]
    pub fn new(within: P) -> Self {
        assert!(within.logs() < 256, "there is a number for its last log");
        Self { within, has_begun: false, live_blocks: 0 }
    }

    /// `segment` as the placement within may see it: new data is in its first log.
    fn seen_within(&self, segment: &CollectedSegment) -> CollectedSegment {
        let last = self.within.logs() as u8 - 1;
        CollectedSegment { log: segment.log.saturating_sub(1).min(last), ..*segment }
    }
}

impl NewTogether<LifeTable> {
    /// The placement of a store of `blocks` blocks: `logs` logs, 255 at most, by life table for what is
    /// collected, each of which must be worth the half of a segment of `segment_blocks` that an open one leaves
    /// unused.
    #[must_use]
    pub fn by_lifetime(blocks: u32, logs: u32, segment_blocks: u32) -> Self {
        let within = LifeTable::new(blocks as usize, logs.min(255) as usize);
        Self::new(within.with_open_log_cost(f64::from(segment_blocks) / 2.0))
    }
}

impl<P: BeginsLate> Placement for NewTogether<P> {
    fn logs(&self) -> usize {
        self.within.logs() + 1
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        self.within.ensure_blocks(blocks);
    }

    fn restored(&mut self, map: &[u32], _segment_of: &dyn Fn(u32) -> u32, _clock: u64) {
        self.live_blocks += map.iter().filter(|slot| **slot != u32::MAX).count() as u64;
    }

    #[inline]
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        if self.has_begun {
            let _ = self.within.place_new(block, overwrites, clock);
        } else {
            self.live_blocks += u64::from(!overwrites);
        }
        0
    }

    #[inline]
    fn place_collected(&mut self, block: u32, segment: &CollectedSegment, clock: u64) -> u8 {
        if !self.has_begun {
            self.has_begun = true;
            self.within.begin(self.live_blocks);
        }
        let segment = self.seen_within(segment);
        let log = self.within.place_collected(block, &segment, clock);
        if self.within.divides() { log + 1 } else { 0 }
    }

    fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        let segment = self.seen_within(segment);
        self.within.collected(&segment, clock);
    }

    fn deleted(&mut self, block: u32, clock: u64) {
        if self.has_begun {
            self.within.deleted(block, clock);
        } else {
            // One that was never placed may be deleted too; this is only a length.
            self.live_blocks = self.live_blocks.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SepBit;
    use super::*;

    #[test]
    fn a_placement_that_begins_late_knows_how_many_there_are() {
        let mut placement = NewTogether::new(LifeTable::new(100, 4));
        let slots: Vec<u32> =
            (0..100).map(|block| if block < 60 { block } else { u32::MAX }).collect();
        placement.restored(&slots, &|slot| slot / 8, 0);
        for block in 50..80 {
            assert_eq!(placement.place_new(block, block < 60, u64::from(block)), 0);
        }
        placement.deleted(79, 80);
        assert_eq!(placement.live_blocks, 79);
        let segment =
            CollectedSegment { log: 0, blocks: 8, filled: 8, live: 4, opened: 1, sealed: 2 };
        for block in 0..60 {
            assert_eq!(placement.place_collected(block, &segment, 90), 0, "nothing is known yet");
        }
        placement.deleted(70, 91);
        let _ = placement.place_new(71, true, 92);
        placement.within.verify();
    }

    #[test]
    fn new_data_is_together_and_what_is_collected_is_divided() {
        let mut placement = NewTogether::new(SepBit::new(10, 6));
        assert_eq!(placement.logs(), 7);
        let of_log =
            |log| CollectedSegment { log, blocks: 8, filled: 8, live: 4, opened: 1, sealed: 2 };
        for clock in 1..=20 {
            assert_eq!(placement.place_new(clock as u32 % 10, clock > 10, clock), 0);
        }
        // Survivors of new data go to the third log of the placement within, older ones to its fourth.
        assert_eq!(placement.place_collected(3, &of_log(0), 20), 3);
        assert_eq!(placement.place_collected(3, &of_log(3), 20), 4);
        // A log that there is not, as of a store that was written with more.
        assert_eq!(placement.place_collected(3, &of_log(9), 20), 4);
    }
}
