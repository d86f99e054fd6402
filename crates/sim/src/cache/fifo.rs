//! First in, first out: a hit changes nothing, the block that entered first leaves first.
//!
//! Invariants: the queue holds every resident block, `length` of them.

use super::block_table::BlockTable;
use super::{Access, IndexKind, Policy};

const QUEUE: u32 = 0;
const LISTS: u32 = 1;

/// A cache that evicts in the order of entry.
#[derive(Debug, Clone)]
pub(super) struct Fifo {
    blocks: BlockTable,
    length: usize,
    capacity: usize,
}

impl Fifo {
    pub(super) fn new(capacity: usize, keys: usize, index: Option<IndexKind>) -> Self {
        assert!(capacity > 0, "a cache of no blocks needs no policy");
        Self { blocks: BlockTable::new(LISTS, capacity, keys, index), length: 0, capacity }
    }
}

impl Policy for Fifo {
    #[inline]
    fn contains(&self, key: u32) -> bool {
        self.blocks.find(key).is_some()
    }

    #[inline]
    fn reference(&mut self, key: u32) -> Access {
        if self.contains(key) {
            return Access::Hit;
        }
        let evicted = if self.length == self.capacity {
            Some(self.blocks.leave(self.blocks.oldest(QUEUE)))
        } else {
            self.length += 1;
            None
        };
        self.blocks.enter(key, QUEUE);
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
        assert_eq!(lists[QUEUE as usize].len(), self.length, "length of the queue");
        assert!(self.length <= self.capacity);
    }
}
