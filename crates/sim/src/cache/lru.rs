//! Least recently used: the block whose last reference is longest ago leaves first.
//!
//! Invariants: the list holds every resident block, `length` of them, by falling recency.
//!
//! Cost: a hit away from the newest place relinks the block: the slot, its two neighbours and the
//! newest one, four lines of memory at worst.

use super::block_table::BlockTable;
use super::{Access, IndexKind, Policy};

const RECENCY: u32 = 0;
const LISTS: u32 = 1;

/// A cache that evicts the least recently used block.
#[derive(Debug, Clone)]
pub(super) struct Lru {
    blocks: BlockTable,
    length: usize,
    capacity: usize,
}

impl Lru {
    pub(super) fn new(capacity: usize, keys: usize, index: Option<IndexKind>) -> Self {
        assert!(capacity > 0, "a cache of no blocks needs no policy");
        Self { blocks: BlockTable::new(LISTS, capacity, keys, index), length: 0, capacity }
    }
}

impl Policy for Lru {
    #[inline]
    fn contains(&self, key: u32) -> bool {
        self.blocks.find(key).is_some()
    }

    #[inline]
    fn reference(&mut self, key: u32) -> Access {
        if let Some(slot) = self.blocks.find(key) {
            self.blocks.move_to_newest(slot, RECENCY);
            return Access::Hit;
        }
        let evicted = if self.length == self.capacity {
            Some(self.blocks.leave(self.blocks.oldest(RECENCY)))
        } else {
            self.length += 1;
            None
        };
        self.blocks.enter(key, RECENCY);
        Access::Miss { evicted }
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
        assert_eq!(lists[RECENCY as usize].len(), self.length, "length of the list");
        assert!(self.length <= self.capacity);
    }
}
