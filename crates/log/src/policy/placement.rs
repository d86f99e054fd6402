//! Data placement: which of several open logs a block goes to.
//!
//! Blocks that die at about the same time should lie in the same segment, so that it empties by
//! itself. A placement sees what is written and what is collected and answers with the number of an
//! open log. Its clock is the count of user block writes, given with every call.
//!
//! | placement | idea | memory a block |
//! |---|---|---|
//! | [`NoSeparation`] | one log | none |
//! | [`UserCollected`] | what the user writes apart from what is collected | none |
//! | [`MultiLog`] | a log a level; collected blocks sink, early rewrites rise | 5 bytes |
//! | [`Dac`] | a level up on each write, a level down on each move | 1 byte |
//! | [`Sfs`] | hotness quantised by clustering the segments | 6 bytes |
//! | [`Fadac`] | writes less moves, in powers of ten | 2 bytes |
//! | [`SepBit`] | the last lifetime of what is new, the age of what is collected | 4 bytes |
//! | [`LifeTable`] | measured death rates by count and age, divided at least cost; ours | 6 bytes |
//! | [`Oracle`] | the known time of each block's death | 4 bytes, and 4 a write |
//! | [`Batched`] | whatever a policy from outside says of many blocks at once | 4 bytes |
//!
//! [`Regrouping`] adds to any of them a log for blocks that are read together, [`NewTogether`] one for all
//! that is new, so that only what is collected is divided.
//!
//! [`Renewal`] is a victim selection to go with any of them: it needs the live blocks of a segment
//! and the clocks of its opening and sealing, and learns from victims.
//!
//! Per-block state is indexed by block number; a placement is made for a number of blocks, which
//! may be raised, and must not be asked about others. Clocks are kept as their low 32 bits and
//! compared by wrapping difference, so that an interval above 2^32 writes is taken for a short one:
//! of no consequence, because it is one block's estimate.

mod batched;
mod dac;
mod fadac;
mod life_table;
mod multi_log;
mod new_together;
mod none;
mod oracle;
mod regrouping;
mod renewal;
#[cfg(test)]
mod rows;
mod sepbit;
mod sfs;
mod user_collected;

pub use batched::{Batched, BlocksToPlace, NEW_BLOCK_AGE, PlacementPolicy};
pub use dac::Dac;
pub use fadac::Fadac;
pub use life_table::LifeTable;
pub use multi_log::MultiLog;
pub use new_together::{BeginsLate, NewTogether};
pub use none::NoSeparation;
pub use oracle::{Oracle, death_clocks};
pub use regrouping::Regrouping;
pub use renewal::Renewal;
pub use sepbit::SepBit;
pub use sfs::Sfs;
pub use user_collected::UserCollected;

/// A segment as a placement sees it when the segment is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectedSegment {
    /// The log it was written by.
    pub log: u8,
    /// Blocks that it can hold.
    pub blocks: u32,
    /// Blocks that were put into it: its other slots were left to records, or were too few for them.
    pub filled: u32,
    /// Blocks in it that are still live.
    pub live: u32,
    /// Clock when its first block was written.
    pub opened: u64,
    /// Clock when it was full.
    pub sealed: u64,
}

/// Decides which open log a block goes to.
///
/// For a write the log calls [`died`](Self::died) if the block was live, then
/// [`place_new`](Self::place_new), then [`placed`](Self::placed). For a collection it calls
/// [`place_collected`](Self::place_collected) and [`placed`](Self::placed) for each live block,
/// then [`collected`](Self::collected). For a deletion it calls [`died`](Self::died), then
/// [`deleted`](Self::deleted).
pub trait Placement {
    /// Open logs in use, numbered from zero; at least one, at most 256.
    fn logs(&self) -> usize;

    /// Raises the number of blocks, numbered from zero, to at least `blocks`; called before a block
    /// above the number that the placement was made for is placed.
    fn ensure_blocks(&mut self, blocks: usize) {
        let _ = blocks;
    }

    /// Blocks lie on disk already when the log begins, at user block write number `clock`: `map` has the slot
    /// of each, or [`u32::MAX`] where there is no such block, and `segment_of` says where a slot is.
    fn restored(&mut self, map: &[u32], segment_of: &dyn Fn(u32) -> u32, clock: u64) {
        for (block, slot) in (0..).zip(map).filter(|(_, slot)| **slot != u32::MAX) {
            let _ = self.place_new(block, false, clock);
            self.placed(block, segment_of(*slot));
        }
    }

    /// `blocks` are placed next, one after another, as user block writes from number `clock` on; with
    /// each comes whether it was live before. For what decides about many at once.
    #[inline]
    fn will_write(&mut self, blocks: &mut dyn Iterator<Item = (u32, bool)>, clock: u64) {
        let _ = (blocks, clock);
    }

    /// `blocks`, all that are live in `segment`, move out of it next, one after another.
    #[inline]
    fn will_collect(
        &mut self,
        blocks: &mut dyn Iterator<Item = u32>,
        segment: &CollectedSegment,
        clock: u64,
    ) {
        let _ = (blocks, segment, clock);
    }

    /// The log for `block`, which the user writes as number `clock` (counted from 1) of all user
    /// block writes. `overwrites` says whether the block was live before.
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8;

    /// The log for the live `block` that moves out of `segment`.
    fn place_collected(&mut self, block: u32, segment: &CollectedSegment, clock: u64) -> u8;

    /// `segment` has been collected: all its live blocks have been placed.
    fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        let _ = (segment, clock);
    }

    /// `block` has been deleted; it need not have been placed.
    fn deleted(&mut self, block: u32, clock: u64) {
        let _ = (block, clock);
    }

    /// `block` now lies in the segment with number `segment`, in the log that this placement chose.
    /// Only what keeps sums a segment needs it; the segment it came from is free or forgotten.
    fn placed(&mut self, block: u32, segment: u32) {
        let _ = (block, segment);
    }

    /// The copy of `block` in segment `segment` is dead, because the block is written again, deleted
    /// or put together with others elsewhere. Not called for copies that are left behind by a collection.
    fn died(&mut self, block: u32, segment: u32) {
        let _ = (block, segment);
    }

    /// Segment number `segment` is empty and will be written again.
    fn freed(&mut self, segment: u32) {
        let _ = segment;
    }

    /// Whether every block goes to log 0 and the placement ignores every other call. The log then
    /// neither asks nor notifies it. The answer never changes.
    fn is_indifferent(&self) -> bool {
        false
    }

    /// The log for blocks that are put together because they are read together, if there is one.
    fn regroups_to(&self) -> Option<u8> {
        None
    }

    /// Whether `block`, whose old copy lies in a segment of `log`, is to lie there again after it
    /// was written: then it is written twice (Matthews 1999, §6.4.3).
    fn keeps_place(&self, block: u32, log: u8) -> bool {
        let _ = (block, log);
        false
    }
}
