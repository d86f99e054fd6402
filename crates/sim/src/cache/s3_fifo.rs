//! S3-FIFO: a small queue for what is new, a main queue for what came back, a ghost queue of keys.
//!
//! Source: Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache eviction", SOSP
//! 2023, section 4.1 and algorithm 1. The small queue has 10 % of the blocks (at least one), the
//! ghost queue as many keys as main has blocks. A hit adds one to the block's two-bit counter. A
//! new block enters small, or main if the ghost queue remembers it. When room is needed, small
//! gives it if it has its share or more, else main:
//! * the oldest of small goes to **main if its counter is above 1** (two hits since it entered),
//!   with the counter cleared, and otherwise leaves and is remembered by the ghost queue;
//! * the oldest of main goes round again with its counter less one, or leaves if that is 0.
//!
//! Invariants: small and main hold the resident blocks and are no longer than the capacity
//! together; the ghost queue holds no more than its share and no resident block; a mark names the
//! block's queue and its counter.
//!
//! Differences from the source:
//! * **One eviction an insertion.** Algorithm 1 evicts from main when a promotion overfills it, and
//!   then goes on until small has lost a block too. Here the share of small is looked at again
//!   after each promotion, which asks main for its block as soon as small is below its share, and
//!   the first block that leaves ends it.
//! * The ghost queue is asked before room is made, so that the block that makes room cannot push
//!   the key that is looked for out of the ghost queue. A ghost that comes back leaves the ghost
//!   queue.
//! * Removal, which the paper does not treat: a removed block leaves no ghost.
//!
//! libCacheSim's `S3FIFO` (0.3.5) is a later variant: until a block has left, those that find small
//! at its share enter main; afterwards main gives a block when it is above its share, and a search
//! goes on in one queue until it has lost one. On 5 million references of a Zipf stream that misses
//! 19.58 %, the algorithm of the paper 19.80 %; a model of the variant gives its figure exactly.
//!
//! Cost: a hit writes one byte. Each step of the search for a victim takes one off a counter or one
//! block out of small for good, so that it is paid for by hits and insertions.

use super::block_table::BlockTable;
use super::{Access, IndexKind, Policy};

const SMALL: u32 = 0;
const MAIN: u32 = 1;
const GHOST: u32 = 2;
const LISTS: u32 = 3;

/// Share of the small queue: a tenth (Yang et al. 2023, section 4.1).
const SMALL_DIVISOR: usize = 10;

/// Largest value of the counter: two bits (Yang et al. 2023, section 4.1).
const HITS_MAX: u8 = 3;

/// Least value of the counter that takes a block to main (Yang et al. 2023, algorithm 1).
const HITS_TO_MAIN: u8 = 2;

/// A mark is the queue's number above the two bits of the counter.
const HITS_BITS: u32 = 2;

#[inline]
fn mark(queue: u32, hits: u8) -> u8 {
    ((queue as u8) << HITS_BITS) | hits
}

#[inline]
fn queue_of(mark: u8) -> u32 {
    u32::from(mark >> HITS_BITS)
}

#[inline]
fn hits_of(mark: u8) -> u8 {
    mark & HITS_MAX
}

/// A cache that evicts by S3-FIFO.
#[derive(Debug, Clone)]
pub(super) struct S3Fifo {
    blocks: BlockTable,
    /// Lengths of the small, the main and the ghost queue.
    lengths: [usize; LISTS as usize],
    small_share: usize,
    ghosts_max: usize,
    capacity: usize,
}

impl S3Fifo {
    pub(super) fn new(capacity: usize, keys: usize, index: Option<IndexKind>) -> Self {
        assert!(capacity > 0, "a cache of no blocks needs no policy");
        let small_share = (capacity / SMALL_DIVISOR).max(1);
        let ghosts_max = capacity - small_share;
        Self {
            blocks: BlockTable::new(LISTS, capacity + ghosts_max, keys, index),
            lengths: [0; LISTS as usize],
            small_share,
            ghosts_max,
            capacity,
        }
    }

    /// Puts `slot` at the new end of `queue`.
    #[inline]
    fn transfer(&mut self, slot: u32, queue: u32, hits: u8) {
        let from = queue_of(self.blocks.mark(slot));
        self.lengths[from as usize] -= 1;
        self.lengths[queue as usize] += 1;
        self.blocks.move_to_newest(slot, queue);
        self.blocks.set_mark(slot, mark(queue, hits));
    }

    /// Forgets the block in `slot` and returns its key.
    fn forget(&mut self, slot: u32) -> u32 {
        self.lengths[queue_of(self.blocks.mark(slot)) as usize] -= 1;
        self.blocks.leave(slot)
    }

    /// Makes room for one block and returns the one that left. The cache is full, so that main
    /// holds a block whenever small is below its share.
    fn evict(&mut self) -> u32 {
        loop {
            if self.lengths[SMALL as usize] >= self.small_share {
                let slot = self.blocks.oldest(SMALL);
                if hits_of(self.blocks.mark(slot)) < HITS_TO_MAIN {
                    return self.demote(slot);
                }
                self.transfer(slot, MAIN, 0);
            } else {
                let slot = self.blocks.oldest(MAIN);
                let hits = hits_of(self.blocks.mark(slot));
                if hits == 0 {
                    return self.forget(slot);
                }
                self.transfer(slot, MAIN, hits - 1);
            }
        }
    }

    /// Makes a ghost of the block in `slot` and returns its key.
    fn demote(&mut self, slot: u32) -> u32 {
        if self.ghosts_max == 0 {
            return self.forget(slot);
        }
        if self.lengths[GHOST as usize] == self.ghosts_max {
            self.forget(self.blocks.oldest(GHOST));
        }
        self.transfer(slot, GHOST, 0);
        self.blocks.key(slot)
    }

    /// The slot of `key` and its mark, if it is resident or a ghost.
    #[inline]
    fn find(&self, key: u32) -> Option<(u32, u8)> {
        self.blocks.find(key).map(|slot| (slot, self.blocks.mark(slot)))
    }
}

impl Policy for S3Fifo {
    #[inline]
    fn contains(&self, key: u32) -> bool {
        self.find(key).is_some_and(|(_, mark)| queue_of(mark) != GHOST)
    }

    fn look_up(&self, keys: &[u32], found: &mut [u32]) -> u32 {
        self.blocks.look_up(keys, found)
    }

    #[inline]
    fn reference(&mut self, key: u32) -> Access {
        let queue = match self.find(key) {
            Some((slot, found)) if queue_of(found) != GHOST => {
                if hits_of(found) < HITS_MAX {
                    self.blocks.set_mark(slot, found + 1);
                }
                return Access::Hit;
            }
            Some((ghost, _)) => {
                self.forget(ghost);
                MAIN
            }
            None => SMALL,
        };
        let evicted = (self.len() == self.capacity).then(|| self.evict());
        let slot = self.blocks.enter(key, queue);
        self.blocks.set_mark(slot, mark(queue, 0));
        self.lengths[queue as usize] += 1;
        Access::Miss { evicted }
    }

    fn remove(&mut self, key: u32) -> bool {
        let Some((slot, found)) = self.find(key) else { return false };
        self.forget(slot);
        queue_of(found) != GHOST
    }

    #[inline]
    fn len(&self) -> usize {
        self.lengths[SMALL as usize] + self.lengths[MAIN as usize]
    }

    fn ensure_keys(&mut self, keys: usize) {
        self.blocks.ensure_keys(keys);
    }

    fn index_kind(&self) -> IndexKind {
        self.blocks.index_kind()
    }

    fn verify(&self) {
        let lists = self.blocks.verify();
        for queue in [SMALL, MAIN, GHOST] {
            let listed = &lists[queue as usize];
            assert_eq!(listed.len(), self.lengths[queue as usize], "length of queue {queue}");
            let marked = listed.iter().all(|slot| queue_of(self.blocks.mark(*slot)) == queue);
            assert!(marked, "the blocks of queue {queue} say so");
        }
        assert!(self.len() <= self.capacity);
        assert!(self.lengths[GHOST as usize] <= self.ghosts_max, "no more ghosts than their share");
    }
}
