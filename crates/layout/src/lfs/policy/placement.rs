//! Data placement: which of several open logs a block goes to.
//!
//! Blocks that die at about the same time should lie in the same segment, so that it empties by
//! itself. A placement sees what is written and what is collected and answers with the number of an
//! open log. Its clock is the count of user block writes, given with every call.

/// A segment as a placement sees it when the segment is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectedSegment {
    /// The log it was written by.
    pub log: u8,
    /// Blocks that it can hold.
    pub blocks: u32,
    /// Blocks in it that are still live.
    pub live: u32,
    /// Clock when its first block was written.
    pub opened: u64,
    /// Clock when it was full.
    pub sealed: u64,
}

/// Decides which open log a block goes to.
pub trait Placement {
    /// Open logs in use, numbered from zero; at least one, at most 256.
    fn logs(&self) -> usize;

    /// The log for `block`, which the user writes as number `clock` (counted from 1) of all user
    /// block writes. `overwrites` says whether the block was live before.
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8;

    /// The log for the live `block` that moves out of `segment`.
    fn place_collected(&mut self, block: u32, segment: &CollectedSegment, clock: u64) -> u8;

    /// `segment` has been collected: all its live blocks have been placed.
    fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        let _ = (segment, clock);
    }

    /// `block` has been deleted.
    fn deleted(&mut self, block: u32, clock: u64) {
        let _ = (block, clock);
    }
}
