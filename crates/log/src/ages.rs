//! Ages of data: of segments, to choose victims, and of blocks, to put collected data of one age
//! together.
//!
//! Sprite LFS reads some tens of segments at a time and sorts their live blocks by age before it
//! writes them ("age sort", Rosenblum & Ousterhout 1992, §3.4), so that cold blocks accumulate in
//! segments of their own.
//!
//! Differences from the source: the times of blocks are kept to [`TICK_WRITES`] block writes, and
//! only if something asks for them. Blocks that are as old as each other stay in the order in which
//! they lie. A time is when the block came to the disk, not when it was put into a buffer.
//!
//! Cost: four bytes a block, and a store a block write.

/// The event that the age of a segment counts from, for `cost-age` and `cost-age-cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SegmentAge {
    /// When its youngest data was new, as far as segments know it: collected blocks are taken to be
    /// as young as the youngest that was ever written to the segments that they came from.
    #[default]
    Data,
    /// When its youngest block was written by its user ("the age of the youngest block", Rosenblum
    /// & Ousterhout 1992, §3.6), which takes a time a block.
    Block,
    /// When the segment was filled, with new or collected data.
    Segment,
}

/// The order in which collected blocks are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CollectedOrder {
    /// As they are found, segment by segment.
    #[default]
    Found,
    /// Oldest first among all that one cleaning reads.
    Age,
}

/// Which ages a log uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ages {
    /// Of segments.
    pub segment: SegmentAge,
    /// Of collected blocks.
    pub order: CollectedOrder,
}

impl Ages {
    /// Whether it must be known when each block was written.
    #[must_use]
    pub fn needs_block_times(self) -> bool {
        self.segment == SegmentAge::Block || self.order == CollectedOrder::Age
    }
}

/// Block writes that share a time; chosen by us: with 32 bits a time they reach 2^36 block writes,
/// the last of which are then equally old, and no segment is so short that it matters.
const TICK_WRITES: u64 = 16;

/// When each block was written; nothing unless asked for.
#[derive(Debug, Clone)]
pub(crate) struct BlockTimes {
    ticks: Vec<u32>,
    kept: bool,
}

impl BlockTimes {
    /// The times of `blocks` blocks, if they are `kept`.
    pub(crate) fn new(kept: bool, blocks: u32) -> Self {
        Self { ticks: vec![0; if kept { blocks as usize } else { 0 }], kept }
    }

    /// Lets blocks be numbered up to `blocks`.
    pub(crate) fn ensure_blocks(&mut self, blocks: u32) {
        if self.kept && blocks as usize > self.ticks.len() {
            self.ticks.resize(blocks as usize, 0);
        }
    }

    /// `block` was new at `clock`.
    #[inline]
    pub(crate) fn written(&mut self, block: u32, clock: u64) {
        if let Some(tick) = self.ticks.get_mut(block as usize) {
            *tick = u32::try_from(clock / TICK_WRITES).unwrap_or(u32::MAX);
        }
    }

    /// Each of `blocks` was new at `clock`.
    pub(crate) fn written_all(&mut self, blocks: impl Iterator<Item = u32>, clock: u64) {
        if self.kept {
            blocks.for_each(|block| self.written(block, clock));
        }
    }

    /// When `block` was new, in block writes, rounded down.
    pub(crate) fn of(&self, block: u32) -> u64 {
        u64::from(self.ticks[block as usize]) * TICK_WRITES
    }

    /// Puts blocks, each with the slot that it is in, oldest first.
    pub(crate) fn sort(&self, blocks: &mut [(u32, u32)]) {
        blocks.sort_unstable_by_key(|(block, slot)| (self.ticks[*block as usize], *slot));
    }

    /// Bytes that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.ticks.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_oldest_first_and_ties_as_they_lie() {
        let mut times = BlockTimes::new(true, 4);
        for (block, clock) in [(0, 500), (1, 20), (2, 20), (3, u64::MAX)] {
            times.written(block, clock);
        }
        let mut blocks = [(3, 1), (0, 2), (2, 9), (1, 4)];
        times.sort(&mut blocks);
        assert_eq!(blocks, [(1, 4), (2, 9), (0, 2), (3, 1)]);
        assert_eq!(times.of(1), 16);
        times.ensure_blocks(6);
        assert_eq!(times.of(5), 0);
    }

    #[test]
    fn times_that_nobody_asked_for_take_no_room() {
        let mut times = BlockTimes::new(false, 4);
        times.written(3, 7);
        times.ensure_blocks(9);
        assert_eq!(times.memory_bytes(), 0);
    }
}
