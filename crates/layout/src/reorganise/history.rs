//! State of single blocks: reads since they were last written, moves, and which are in memory.
//!
//! Memory holds the blocks that were read or written last, each once: a ring, from which a block
//! falls when as many others were touched after it as memory holds. It stands for the host's cache,
//! which a layout cannot look into.
//!
//! Invariants: `reads` and `moves` count since the last write; a block is in memory if it was
//! touched within the last `memory_blocks` touches.
//!
//! Memory: 16 bytes a block, and 4 bytes a block that memory holds.

use agewell_log::NONE;

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The touch, counted from 1, at which it was last read or written.
    touched: u64,
    reads: u16,
    moves: u8,
    trial: u8,
}

/// State of all blocks.
#[derive(Debug, Clone)]
pub(crate) struct History {
    known: Vec<Known>,
    ring: Vec<u32>,
    touches: u64,
}

impl History {
    pub(crate) fn new(blocks: u32, memory_blocks: u32) -> Self {
        Self {
            known: vec![Known::default(); blocks as usize],
            ring: vec![NONE; memory_blocks.max(1) as usize],
            touches: 0,
        }
    }

    pub(crate) fn ensure_blocks(&mut self, blocks: u32) {
        if blocks as usize > self.known.len() {
            self.known.resize(blocks as usize, Known::default());
        }
    }

    /// `block` is in memory now; the block that falls out of it for that, if any.
    #[inline]
    fn touch(&mut self, block: u32) -> Option<u32> {
        let place = (self.touches % self.ring.len() as u64) as usize;
        self.touches += 1;
        let last = std::mem::replace(&mut self.ring[place], block);
        let known = &mut self.known[block as usize];
        let again = last == block;
        known.touched = self.touches;
        (last != NONE && !again && !self.is_in_memory(last)).then_some(last)
    }

    /// `block` was read from disk; the block that leaves memory for it.
    #[inline]
    pub(crate) fn read(&mut self, block: u32) -> Option<u32> {
        let known = &mut self.known[block as usize];
        known.reads = known.reads.saturating_add(1);
        self.touch(block)
    }

    /// `block` was written, to the place among others where it lay if it `keeps` that; the block
    /// that leaves memory for it.
    #[inline]
    pub(crate) fn write(&mut self, block: u32, keeps: bool) -> Option<u32> {
        let known = &mut self.known[block as usize];
        (known.reads, known.moves) = (0, 0);
        known.trial = if keeps { known.trial } else { 0 };
        self.touch(block)
    }

    /// `block` was deleted.
    pub(crate) fn delete(&mut self, block: u32) {
        self.known[block as usize] = Known::default();
    }

    /// `block` was moved as part of the trial `trial`.
    pub(crate) fn moved(&mut self, block: u32, trial: u8) {
        let known = &mut self.known[block as usize];
        known.moves = known.moves.saturating_add(1);
        known.trial = trial;
    }

    /// Whether `block` is in memory.
    #[inline]
    pub(crate) fn is_in_memory(&self, block: u32) -> bool {
        let touched = self.known[block as usize].touched;
        touched > 0 && touched + self.ring.len() as u64 > self.touches
    }

    /// Reads of `block` since it was last written.
    #[inline]
    pub(crate) fn reads(&self, block: u32) -> u16 {
        self.known[block as usize].reads
    }

    /// Moves of `block` since it was last written.
    pub(crate) fn moves(&self, block: u32) -> u8 {
        self.known[block as usize].moves
    }

    /// The trial that `block` was last moved in; zero if it was not, or has left.
    #[inline]
    pub(crate) fn trial(&self, block: u32) -> u8 {
        self.known[block as usize].trial
    }

    /// Bytes it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.known.capacity() * size_of::<Known>() + self.ring.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Memory is the last distinct touches, and each block is seen to leave it once.
        #[test]
        fn memory_is_what_was_touched_last(
            memory in 1_u32..8,
            touches in prop::collection::vec((0_u32..12, any::<bool>()), 0..200),
        ) {
            let mut history = History::new(12, memory);
            let mut done: Vec<u32> = Vec::new();
            let mut reads = [0_u16; 12];
            for (block, reads_it) in touches {
                let inside = |done: &[u32], block: u32| {
                    done.iter().rev().take(memory as usize).any(|other| *other == block)
                };
                let before: Vec<u32> = (0..12).filter(|block| inside(&done, *block)).collect();
                let left = if reads_it {
                    reads[block as usize] += 1;
                    history.read(block)
                } else {
                    reads[block as usize] = 0;
                    history.write(block, false)
                };
                done.push(block);
                let gone: Vec<u32> =
                    before.into_iter().filter(|block| !inside(&done, *block)).collect();
                prop_assert_eq!(left.into_iter().collect::<Vec<_>>(), gone);
                for block in 0..12 {
                    prop_assert_eq!(history.is_in_memory(block), inside(&done, block));
                    prop_assert_eq!(history.reads(block), reads[block as usize]);
                }
            }
        }
    }
}
