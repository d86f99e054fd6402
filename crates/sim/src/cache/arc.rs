//! The adaptive replacement cache: seen once or seen again, and ghosts that shift the balance.
//!
//! Source: Megiddo & Modha: "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003, figure
//! 4. Resident blocks seen once lately are in T1, those seen again in T2, each by recency. Of the
//! blocks that left, B1 and B2 remember the keys. A miss that B1 remembers raises the target `p`
//! for the length of T1, one that B2 remembers lowers it.
//!
//! Invariants (section III of the source), with `c` the capacity: |T1| + |T2| <= c; |T1| + |B1| <=
//! c; all four together are no more than 2c; 0 <= p <= c; a mark names the block's list.
//!
//! Differences from the source:
//! * `p` is a real number there; here it counts steps of 2^-32 of a block, the ratio of the ghost
//!   lists rounded down to one, so that what leaves never depends on floating point.
//! * A miss makes room only when the cache is full. Without removals that is what figure 4 says;
//!   after a removal, which the paper does not treat, its case IV would evict with room to spare. A
//!   removed block leaves no ghost.
//!
//! Why one eviction a miss suffices, and REPLACE always finds its list filled: it is called when
//! |T1| + |T2| = c. It takes from T1 if T1 is longer than p; if T1 is not, it is as long as p at
//! most, and |T2| = 0 would mean |T1| = c = p. But then B1 is empty, so the miss is not remembered
//! by B1; if B2 remembers it, p has just been lowered below c; and if nothing does, figure 4 evicts
//! the oldest of T1 itself.

use super::block_table::BlockTable;
use super::{Access, IndexKind, Policy};

/// Resident, seen once lately.
const T1: u32 = 0;
/// Resident, seen again.
const T2: u32 = 1;
/// Remembered from T1.
const B1: u32 = 2;
/// Remembered from T2.
const B2: u32 = 3;
const LISTS: u32 = 4;

/// Bits of the target behind the point. Chosen by us: with 32 before it, all of a `u64`.
const TARGET_BITS: u32 = 32;

/// A cache that evicts by ARC.
#[derive(Debug, Clone)]
pub(super) struct Arc {
    blocks: BlockTable,
    /// Lengths of T1, T2, B1 and B2.
    lengths: [usize; LISTS as usize],
    /// The target for |T1| in steps of 2^-32: `p` of the source.
    target: u64,
    capacity: usize,
}

impl Arc {
    pub(super) fn new(capacity: usize, keys: usize, index: Option<IndexKind>) -> Self {
        assert!(capacity > 0, "a cache of no blocks needs no policy");
        assert!(u32::try_from(capacity).is_ok(), "a target has 32 bits before its point");
        let blocks = BlockTable::new(LISTS, 2 * capacity, keys, index);
        Self { blocks, lengths: [0; LISTS as usize], target: 0, capacity }
    }

    #[inline]
    fn length(&self, list: u32) -> usize {
        self.lengths[list as usize]
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.length(T1) + self.length(T2) == self.capacity
    }

    /// Makes `slot` the newest of `list`.
    #[inline]
    fn transfer(&mut self, slot: u32, list: u32) {
        self.lengths[usize::from(self.blocks.mark(slot))] -= 1;
        self.lengths[list as usize] += 1;
        self.blocks.move_to_newest(slot, list);
        self.blocks.set_mark(slot, list as u8);
    }

    /// Forgets the block in `slot` and returns its key.
    fn forget(&mut self, slot: u32) -> u32 {
        self.lengths[usize::from(self.blocks.mark(slot))] -= 1;
        self.blocks.leave(slot)
    }

    /// How far a ghost of the list `hit` moves the target, given the other list: the ratio of their
    /// lengths, but at least one block.
    #[inline]
    fn step(&self, hit: u32, other: u32) -> u64 {
        let ratio = ((self.length(other) as u64) << TARGET_BITS) / self.length(hit) as u64;
        ratio.max(1 << TARGET_BITS)
    }

    /// REPLACE of figure 4: turns the oldest of T1 or T2 into a ghost and returns its key.
    fn replace(&mut self, in_b2: bool) -> u32 {
        let seen_once = (self.length(T1) as u64) << TARGET_BITS;
        let from_t1 =
            seen_once > 0 && (seen_once > self.target || (in_b2 && seen_once == self.target));
        let (list, ghosts) = if from_t1 { (T1, B1) } else { (T2, B2) };
        let slot = self.blocks.oldest(list);
        self.transfer(slot, ghosts);
        self.blocks.key(slot)
    }

    /// Cases II and III: a miss that is remembered, in `slot` of `ghosts`.
    fn recall(&mut self, slot: u32, ghosts: u32) -> Access {
        if ghosts == B1 {
            let most = (self.capacity as u64) << TARGET_BITS;
            self.target = self.target.saturating_add(self.step(B1, B2)).min(most);
        } else {
            self.target = self.target.saturating_sub(self.step(B2, B1));
        }
        let evicted = self.is_full().then(|| self.replace(ghosts == B2));
        self.transfer(slot, T2);
        Access::Miss { evicted }
    }

    /// Case IV: a miss of which nothing is known.
    fn admit(&mut self, key: u32) -> Access {
        let evicted = if self.length(T1) == self.capacity {
            Some(self.forget(self.blocks.oldest(T1)))
        } else {
            if self.length(T1) + self.length(B1) == self.capacity {
                self.forget(self.blocks.oldest(B1));
            } else if self.lengths.iter().sum::<usize>() == 2 * self.capacity {
                self.forget(self.blocks.oldest(B2));
            }
            self.is_full().then(|| self.replace(false))
        };
        let slot = self.blocks.enter(key, T1);
        self.blocks.set_mark(slot, T1 as u8);
        self.lengths[T1 as usize] += 1;
        Access::Miss { evicted }
    }

    /// The slot of `key` and its list, if it is resident or a ghost.
    #[inline]
    fn find(&self, key: u32) -> Option<(u32, u32)> {
        self.blocks.find(key).map(|slot| (slot, u32::from(self.blocks.mark(slot))))
    }
}

impl Policy for Arc {
    #[inline]
    fn contains(&self, key: u32) -> bool {
        self.find(key).is_some_and(|(_, list)| list <= T2)
    }

    fn look_up(&self, keys: &[u32], found: &mut [u32]) -> u32 {
        self.blocks.look_up(keys, found)
    }

    #[inline]
    fn reference(&mut self, key: u32) -> Access {
        match self.find(key) {
            Some((slot, list)) if list <= T2 => {
                self.transfer(slot, T2);
                Access::Hit
            }
            Some((slot, ghosts)) => self.recall(slot, ghosts),
            None => self.admit(key),
        }
    }

    fn remove(&mut self, key: u32) -> bool {
        let Some((slot, list)) = self.find(key) else { return false };
        self.forget(slot);
        list <= T2
    }

    fn len(&self) -> usize {
        self.length(T1) + self.length(T2)
    }

    fn ensure_keys(&mut self, keys: usize) {
        self.blocks.ensure_keys(keys);
    }

    fn index_kind(&self) -> IndexKind {
        self.blocks.index_kind()
    }

    fn verify(&self) {
        let lists = self.blocks.verify();
        for list in [T1, T2, B1, B2] {
            let listed = &lists[list as usize];
            assert_eq!(listed.len(), self.length(list), "length of list {list}");
            let marked = listed.iter().all(|slot| u32::from(self.blocks.mark(*slot)) == list);
            assert!(marked, "the blocks of list {list} say so");
        }
        assert!(self.len() <= self.capacity, "T1 and T2 fit the cache");
        assert!(self.length(T1) + self.length(B1) <= self.capacity, "T1 and B1 are c at most");
        assert!(self.lengths.iter().sum::<usize>() <= 2 * self.capacity, "all are 2c at most");
        assert!(self.target <= (self.capacity as u64) << TARGET_BITS, "the target is c at most");
    }
}
