//! One list of blocks, the oldest of which leaves first: by last reference (LRU) or by entry (FIFO).
//!
//! The two differ in what a hit does: under LRU the block becomes the newest, under FIFO it stays
//! where it is.
//!
//! Invariants: the list holds every resident block, `length` of them, newest first.
//!
//! Cost: a hit under LRU away from the newest place relinks the block: the slot, its two neighbours
//! and the newest one, four lines of memory at worst.

use super::block_table::BlockTable;
use super::{Access, IndexKind, Policy};

const LIST: u32 = 0;
const LISTS: u32 = 1;

/// A cache that evicts the least recently used block.
pub(super) type Lru = OneList<true>;

/// A cache that evicts in the order of entry.
pub(super) type Fifo = OneList<false>;

/// The oldest block leaves first; a hit makes a block the newest if `RENEWED_BY_HITS`.
#[derive(Debug, Clone)]
pub(super) struct OneList<const RENEWED_BY_HITS: bool> {
    blocks: BlockTable,
    length: usize,
    capacity: usize,
}

impl<const RENEWED_BY_HITS: bool> OneList<RENEWED_BY_HITS> {
    pub(super) fn new(capacity: usize, keys: usize, index: Option<IndexKind>) -> Self {
        assert!(capacity > 0, "a cache of no blocks needs no policy");
        Self { blocks: BlockTable::new(LISTS, capacity, keys, index), length: 0, capacity }
    }
}

impl<const RENEWED_BY_HITS: bool> Policy for OneList<RENEWED_BY_HITS> {
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
            if RENEWED_BY_HITS {
                self.blocks.move_to_newest(slot, LIST);
            }
            return Access::Hit;
        }
        if self.length == self.capacity {
            return Access::Miss { evicted: Some(self.blocks.replace_oldest(key, LIST)) };
        }
        self.length += 1;
        self.blocks.enter(key, LIST);
        Access::Miss { evicted: None }
    }

    fn remove(&mut self, key: u32) -> bool {
        let Some(slot) = self.blocks.find(key) else { return false };
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
        assert_eq!(lists[LIST as usize].len(), self.length, "length of the list");
        assert!(self.length <= self.capacity);
    }
}
