//! SIEVE: a queue in order of entry, a bit for each block that was hit, and a hand.
//!
//! Source: Zhang, Yang, Yue, Vigfusson, Rashmi: "SIEVE is Simpler than LRU", NSDI 2024, first
//! algorithm. A hit sets the block's bit. To evict, the hand goes from old to new, clearing bits,
//! and takes the first block without one; it stays there for the next time and turns back to the
//! oldest at the newest end. Blocks keep their places, unlike those of a clock, so that new ones
//! are sifted soon.
//!
//! Invariants: the queue holds every resident block, `length` of them; the hand is at one of them
//! or rests at the sentinel, which means the oldest; a mark is 0 or 1.
//!
//! Differences from the source: removal, which the paper does not treat; the hand steps on to the
//! next newer block when its own is removed.
//!
//! Cost: a hit writes one byte. The hand clears each bit once, so that its work is paid for by
//! hits.

use super::block_table::BlockTable;
use super::{Access, IndexKind, Policy};

const QUEUE: u32 = 0;
const LISTS: u32 = 1;

const UNVISITED: u8 = 0;
const VISITED: u8 = 1;

/// A cache that evicts by SIEVE.
#[derive(Debug, Clone)]
pub(super) struct Sieve {
    blocks: BlockTable,
    hand: u32,
    length: usize,
    capacity: usize,
}

impl Sieve {
    pub(super) fn new(capacity: usize, keys: usize, index: Option<IndexKind>) -> Self {
        assert!(capacity > 0, "a cache of no blocks needs no policy");
        let blocks = BlockTable::new(LISTS, capacity, keys, index);
        Self { blocks, hand: QUEUE, length: 0, capacity }
    }

    /// The slot under the hand; there is at least one block.
    #[inline]
    fn under_hand(&self) -> u32 {
        if self.hand == QUEUE { self.blocks.oldest(QUEUE) } else { self.hand }
    }

    fn evict(&mut self) -> u32 {
        let mut slot = self.under_hand();
        while self.blocks.mark(slot) == VISITED {
            self.blocks.set_mark(slot, UNVISITED);
            self.hand = self.blocks.newer(slot);
            slot = self.under_hand();
        }
        self.hand = self.blocks.newer(slot);
        self.blocks.leave(slot)
    }
}

impl Policy for Sieve {
    #[inline]
    fn contains(&self, key: u32) -> bool {
        self.blocks.find(key).is_some()
    }

    fn look_up(&self, keys: &[u32], found: &mut [u32]) -> u32 {
        self.blocks.look_up(keys, found)
    }

    #[inline]
    fn reference(&mut self, key: u32) -> Access {
        if let Some(slot) = self.blocks.find(key) {
            self.blocks.set_mark(slot, VISITED);
            return Access::Hit;
        }
        let evicted = if self.length == self.capacity {
            Some(self.evict())
        } else {
            self.length += 1;
            None
        };
        self.blocks.enter(key, QUEUE);
        Access::Miss { evicted }
    }

    fn remove(&mut self, key: u32) -> bool {
        let Some(slot) = self.blocks.find(key) else { return false };
        if slot == self.hand {
            self.hand = self.blocks.newer(slot);
        }
        self.blocks.leave(slot);
        self.length -= 1;
        true
    }

    fn len(&self) -> usize {
        self.length
    }

    fn ensure_keys(&mut self, keys: usize) {
        self.blocks.ensure_keys(keys);
    }

    fn index_kind(&self) -> IndexKind {
        self.blocks.index_kind()
    }

    fn verify(&self) {
        let lists = self.blocks.verify();
        let queue = &lists[QUEUE as usize];
        assert_eq!(queue.len(), self.length, "length of the queue");
        assert!(self.length <= self.capacity);
        assert!(self.hand == QUEUE || queue.contains(&self.hand), "the hand is at a block");
        assert!(queue.iter().all(|slot| self.blocks.mark(*slot) <= VISITED), "marks are bits");
    }
}
