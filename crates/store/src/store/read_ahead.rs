//! Data that was read before somebody asked for it, by the slot in which it lies.
//!
//! What lies in a slot may change meanwhile. Who takes data out holds it against the checksum of the block
//! that he reads, which knows its slot, as if it came from the disk; so nothing has to be dropped when
//! something is written.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that are kept at most; chosen by us: two of the longest groups.
pub(super) const AHEAD_BYTES_MAX: usize = 4 << 20;

#[derive(Debug, Default)]
struct Kept {
    /// Each with when it came.
    slots: HashMap<u32, (u64, Box<[u8]>)>,
    /// What came first goes first. What was taken out, or came again, may still stand here.
    order: VecDeque<(u32, u64)>,
    came: u64,
    bytes: usize,
}

/// See the module. Its lock is the last of all, and held for a copy.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    kept: Mutex<Kept>,
    /// Slots in it, so that who reads need not lock where there are none.
    count: AtomicUsize,
}

impl ReadAhead {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Whether there is data of `slot`.
    pub(super) fn holds(&self, slot: u32) -> bool {
        !self.is_empty() && self.kept().slots.contains_key(&slot)
    }

    /// Takes the data of `slot` out; false if there is none.
    pub(super) fn take(&self, slot: u32, into: &mut [u8]) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut kept = self.kept();
        let Some((_, data)) = kept.slots.remove(&slot) else { return false };
        kept.bytes -= data.len();
        self.count.store(kept.slots.len(), Ordering::Relaxed);
        drop(kept);
        into.copy_from_slice(&data);
        true
    }

    /// Keeps data of slots.
    pub(super) fn keep<'a>(&self, all: impl Iterator<Item = (u32, &'a [u8])>) {
        let mut kept = self.kept();
        let Kept { slots, order, came, bytes } = &mut *kept;
        for (slot, data) in all {
            *came += 1;
            *bytes += data.len();
            let before = slots.insert(slot, (*came, data.into()));
            *bytes -= before.map_or(0, |before| before.1.len());
            order.push_back((slot, *came));
        }
        let is_there = |slots: &HashMap<u32, (u64, Box<[u8]>)>, (slot, came): &(u32, u64)| {
            slots.get(slot).is_some_and(|there| there.0 == *came)
        };
        while *bytes > AHEAD_BYTES_MAX {
            let Some(first) = order.pop_front() else { break };
            if is_there(slots, &first) {
                *bytes -= slots.remove(&first.0).map_or(0, |gone| gone.1.len());
            }
        }
        // Those that were taken out stand there in vain.
        if order.len() > 2 * slots.len() + 1024 {
            order.retain(|one| is_there(slots, one));
        }
        self.count.store(slots.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_first_goes_first_and_each_is_taken_once() {
        let ahead = ReadAhead::default();
        let (mut into, block) = ([0; 4096], vec![7; 4096]);
        assert!(!ahead.take(1, &mut into) && ahead.is_empty());
        let most = (AHEAD_BYTES_MAX / 4096) as u32;
        ahead.keep((0..most + 3).map(|slot| (slot, &block[..])));
        assert!(!ahead.holds(2) && ahead.holds(3));
        assert!(ahead.take(3, &mut into) && into[0] == 7);
        assert!(!ahead.take(3, &mut into));
        // Again and again, and it does not grow.
        for round in 0..50 {
            ahead.keep((0..700).map(|_| (5, &block[..])));
            assert!(ahead.take(5, &mut into));
            ahead.keep((0..64).map(|slot| (9999 + round * 64 + slot, &block[..])));
            (0..64).for_each(|slot| assert!(ahead.take(9999 + round * 64 + slot, &mut into)));
        }
        let kept = ahead.kept();
        assert!(kept.order.len() <= 2 * kept.slots.len() + 1024 + 64);
        assert_eq!(kept.bytes, kept.slots.len() * 4096);
    }
}
