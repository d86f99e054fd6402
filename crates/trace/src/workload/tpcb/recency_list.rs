//! An exact LRU cache of numbered blocks: which are in it, and which goes next.
//!
//! Invariants: slots form one ring from the block used last to the one used longest ago;
//! `slot_of_block` and `block_of_slot` are inverse to each other on the blocks in the cache.
//! Cost: O(1) a touch, 4 bytes a block and 12 a slot, no hashing.

const ABSENT: u32 = u32::MAX;

#[derive(Debug, Clone)]
pub(super) struct RecencyList {
    slot_of_block: Vec<u32>,
    block_of_slot: Vec<u32>,
    newer: Vec<u32>,
    older: Vec<u32>,
    newest: u32,
    filled: u32,
}

impl RecencyList {
    /// An empty cache of `capacity` >= 1 out of `blocks` blocks.
    pub(super) fn new(blocks: u32, capacity: u32) -> Self {
        assert!(capacity > 0, "a cache of no blocks");
        // The empty slots are already in the ring, behind one another.
        Self {
            slot_of_block: vec![ABSENT; blocks as usize],
            block_of_slot: vec![ABSENT; capacity as usize],
            newer: (0..capacity).map(|slot| (slot + 1) % capacity).collect(),
            older: (0..capacity).map(|slot| (slot + capacity - 1) % capacity).collect(),
            newest: capacity - 1,
            filled: 0,
        }
    }

    /// Whether every slot holds a block.
    pub(super) fn is_full(&self) -> bool {
        self.filled as usize == self.block_of_slot.len()
    }

    /// Makes `block` the one used last; the block that had to go for it, when it was absent and
    /// the cache full.
    pub(super) fn touch(&mut self, block: u32) -> Option<u32> {
        let slot = self.slot_of_block[block as usize];
        if slot != ABSENT {
            self.move_to_front(slot);
            return None;
        }
        // The oldest slot follows the newest in the ring; turning the ring makes it the newest.
        let slot = self.newer[self.newest as usize];
        self.newest = slot;
        let evicted = std::mem::replace(&mut self.block_of_slot[slot as usize], block);
        self.slot_of_block[block as usize] = slot;
        if evicted == ABSENT {
            self.filled += 1;
            return None;
        }
        self.slot_of_block[evicted as usize] = ABSENT;
        Some(evicted)
    }

    fn move_to_front(&mut self, slot: u32) {
        if slot == self.newest {
            return;
        }
        let oldest = self.newer[self.newest as usize];
        if slot != oldest {
            let (newer, older) = (self.newer[slot as usize], self.older[slot as usize]);
            self.older[newer as usize] = older;
            self.newer[older as usize] = newer;
            self.newer[slot as usize] = oldest;
            self.older[slot as usize] = self.newest;
            self.newer[self.newest as usize] = slot;
            self.older[oldest as usize] = slot;
        }
        self.newest = slot;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn it_evicts_what_a_plain_list_evicts(
            capacity in 1_u32..8,
            touches in prop::collection::vec(0_u32..12, 0..300),
        ) {
            let mut cache = RecencyList::new(12, capacity);
            let mut list: Vec<u32> = Vec::new();
            for block in touches {
                let known = list.iter().position(|held| *held == block);
                let mut evicted = None;
                if let Some(place) = known {
                    list.remove(place);
                } else if list.len() == capacity as usize {
                    evicted = Some(list.remove(0));
                }
                list.push(block);
                prop_assert_eq!(cache.touch(block), evicted);
                prop_assert_eq!(cache.is_full(), list.len() == capacity as usize);
            }
        }
    }
}
