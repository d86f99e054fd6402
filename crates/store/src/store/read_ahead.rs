//! Data that was read before somebody asked for it, by the slot in which it lies.
//!
//! What lies in a slot may change meanwhile. Who takes data out holds it against the checksum of the block
//! that he reads, which knows its slot, as if it came from the disk; so nothing has to be dropped when
//! something is written.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kept_blocks::KeptBlocks;

/// Bytes that are kept at most; chosen by us: two of the longest groups.
pub(super) const AHEAD_BYTES_MAX: usize = 4 << 20;

/// See the module. Its lock is the last of all, and held for a copy.
#[derive(Debug)]
pub(super) struct ReadAhead {
    /// By their slots.
    kept: Mutex<KeptBlocks>,
    /// Slots in it, so that who reads need not lock where there are none.
    count: AtomicUsize,
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self { kept: Mutex::new(KeptBlocks::new(AHEAD_BYTES_MAX)), count: AtomicUsize::new(0) }
    }
}

impl ReadAhead {
    fn kept(&self) -> MutexGuard<'_, KeptBlocks> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Whether there is data of `slot`.
    pub(super) fn holds(&self, slot: u32) -> bool {
        !self.is_empty() && self.kept().get(slot).is_some()
    }

    /// Takes the data of `slot` out; false if there is none.
    pub(super) fn take(&self, slot: u32, into: &mut [u8]) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut kept = self.kept();
        let Some(data) = kept.remove(slot) else { return false };
        self.count.store(kept.len(), Ordering::Relaxed);
        drop(kept);
        into.copy_from_slice(&data);
        true
    }

    /// Keeps data of slots.
    pub(super) fn keep<'a>(&self, all: impl Iterator<Item = (u32, &'a [u8])>) {
        let mut kept = self.kept();
        for (slot, data) in all {
            kept.keep(slot, data.into());
        }
        self.count.store(kept.len(), Ordering::Relaxed);
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
    }
}
