//! Data that was read before somebody asked for it, by the slot in which it lies.
//!
//! What lies in a slot may change meanwhile. Who takes data out holds it against the checksum of the block
//! that he reads, which knows its slot, as if it came from the disk; so nothing has to be dropped when
//! something is written.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kept_blocks::KeptBlocks;

/// Bytes that are kept at most; chosen by us: two of the longest groups.
pub(super) const AHEAD_BYTES_MAX: usize = 4 << 20;

/// See the module. Its lock is the last of all, and held for a copy.
#[derive(Debug)]
pub(super) struct ReadAhead {
    kept: Mutex<Kept>,
    /// Slots in it, so that who reads need not lock where there are none.
    count: AtomicUsize,
}

#[derive(Debug)]
struct Kept {
    /// A little of what is read soon, by slots.
    near: KeptBlocks,
    swept: Swept,
}

impl Kept {
    fn len(&self) -> usize {
        self.near.len() + self.swept.of.len()
    }
}

/// What sweeps have read: much, and in the order of the disk.
#[derive(Debug, Default)]
struct Swept {
    /// What was read at once, the oldest first, each until all of it was taken out; nothing where that is so.
    steps: VecDeque<Step>,
    /// Steps that were forgotten: the number of the first that is there.
    forgotten: u64,
    /// The step of a slot, and where in it its data is.
    of: HashMap<u32, (u64, u32)>,
    bytes: usize,
    was_used: bool,
}

#[derive(Debug)]
struct Step {
    slots: Vec<u32>,
    data: Box<[u8]>,
    left: usize,
}

impl Swept {
    fn take(&mut self, slot: u32, into: &mut [u8]) -> bool {
        let Some((number, at)) = self.of.remove(&slot) else { return false };
        self.was_used = true;
        let step = &mut self.steps[(number - self.forgotten) as usize];
        into.copy_from_slice(&step.data[at as usize * into.len()..][..into.len()]);
        step.left -= 1;
        if step.left == 0 {
            self.bytes -= step.data.len();
            (step.data, step.slots) = (Box::default(), Vec::new());
        }
        true
    }

    fn keep(&mut self, blocks: &[(u32, &[u8])], bytes_max: usize) {
        let new = blocks.iter().filter(|(slot, _)| !self.of.contains_key(slot));
        let (slots, data): (Vec<u32>, Vec<&[u8]>) = new.copied().unzip();
        if slots.is_empty() {
            return;
        }
        self.was_used = true;
        let number = self.forgotten + self.steps.len() as u64;
        self.of.extend(slots.iter().zip(0..).map(|(slot, at)| (*slot, (number, at))));
        let data = data.concat().into_boxed_slice();
        self.bytes += data.len();
        self.steps.push_back(Step { left: slots.len(), slots, data });
        while self.bytes > bytes_max
            && let Some(oldest) = self.steps.pop_front()
        {
            for slot in &oldest.slots {
                // It may have been taken out, and read by a later step.
                if self.of.get(slot).is_some_and(|(number, _)| *number == self.forgotten) {
                    self.of.remove(slot);
                }
            }
            self.bytes -= oldest.data.len();
            self.forgotten += 1;
        }
    }
}

impl Default for ReadAhead {
    fn default() -> Self {
        let kept = Kept { near: KeptBlocks::new(AHEAD_BYTES_MAX), swept: Swept::default() };
        Self { kept: Mutex::new(kept), count: AtomicUsize::new(0) }
    }
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
        if self.is_empty() {
            return false;
        }
        let kept = self.kept();
        kept.near.get(slot).is_some() || kept.swept.of.contains_key(&slot)
    }

    /// Takes the data of `slot` out; false if there is none.
    pub(super) fn take(&self, slot: u32, into: &mut [u8]) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut kept = self.kept();
        let near = kept.near.remove(slot);
        let is_there = match &near {
            Some(data) => {
                into.copy_from_slice(data);
                true
            }
            None => kept.swept.take(slot, into),
        };
        self.count.store(kept.len(), Ordering::Relaxed);
        is_there
    }

    /// Keeps data of slots.
    pub(super) fn keep<'a>(&self, all: impl Iterator<Item = (u32, &'a [u8])>) {
        let mut kept = self.kept();
        for (slot, data) in all {
            kept.near.keep(slot, data.into());
        }
        self.count.store(kept.len(), Ordering::Relaxed);
    }

    /// Keeps data of slots that a sweep has read, in place of the oldest of sweeps where all would be more than
    /// `bytes_max` bytes.
    pub(super) fn keep_swept(&self, blocks: &[(u32, &[u8])], bytes_max: usize) {
        let mut kept = self.kept();
        kept.swept.keep(blocks, bytes_max);
        self.count.store(kept.len(), Ordering::Relaxed);
    }

    /// Bytes of memory that what sweeps have read takes.
    pub(super) fn swept_bytes(&self) -> usize {
        self.kept().swept.bytes
    }

    /// Forgets what sweeps have read if it was not used since the last call; whether there is any left.
    pub(super) fn forget_unused_sweeps(&self) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut kept = self.kept();
        if !std::mem::take(&mut kept.swept.was_used) {
            kept.swept = Swept::default();
            self.count.store(kept.len(), Ordering::Relaxed);
        }
        !kept.swept.of.is_empty()
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

    /// Keeps one block for each of `slots`, whose content is its slot; room for eight.
    fn sweep(ahead: &ReadAhead, slots: &[u32]) {
        let data: Vec<[u8; 4096]> = slots.iter().map(|slot| [*slot as u8; 4096]).collect();
        let blocks: Vec<(u32, &[u8])> =
            slots.iter().zip(&data).map(|(slot, data)| (*slot, &data[..])).collect();
        ahead.keep_swept(&blocks, 8 * 4096);
    }

    fn taken(ahead: &ReadAhead, slots: &[u32]) -> Vec<bool> {
        let mut into = [0; 4096];
        let take = |slot: &u32| {
            let is_there = ahead.take(*slot, &mut into);
            assert!(!is_there || into == [*slot as u8; 4096]);
            is_there
        };
        slots.iter().map(take).collect()
    }

    #[test]
    fn the_oldest_of_sweeps_goes_first_and_memory_is_given_back() {
        let ahead = ReadAhead::default();
        sweep(&ahead, &[1, 3, 5, 7]);
        sweep(&ahead, &[9, 11, 13]);
        assert_eq!(ahead.swept_bytes(), 7 * 4096);
        assert_eq!(taken(&ahead, &[3, 9, 11, 13, 13, 4]), [true, true, true, true, false, false]);
        // All of the second is gone, one of the first.
        assert_eq!(ahead.swept_bytes(), 4 * 4096);
        // What is there is kept once, and what was taken out can come again.
        sweep(&ahead, &[1, 3, 9, 20]);
        assert_eq!(ahead.swept_bytes(), 7 * 4096);
        sweep(&ahead, &[30, 31]);
        assert_eq!(ahead.swept_bytes(), 5 * 4096);
        assert_eq!(
            taken(&ahead, &[1, 5, 7, 3, 9, 20, 31]),
            [false, false, false, true, true, true, true]
        );
        assert_eq!(ahead.swept_bytes(), 2 * 4096);
        assert_eq!(taken(&ahead, &[30]), [true]);
        assert!(ahead.is_empty() && ahead.swept_bytes() == 0);
    }

    #[test]
    fn what_sweeps_have_read_is_forgotten_when_nobody_asks_for_it() {
        let ahead = ReadAhead::default();
        assert!(!ahead.forget_unused_sweeps());
        sweep(&ahead, &[1, 2]);
        assert!(ahead.forget_unused_sweeps());
        assert_eq!(taken(&ahead, &[1]), [true]);
        assert!(ahead.forget_unused_sweeps() && ahead.holds(2));
        assert!(!ahead.forget_unused_sweeps() && !ahead.holds(2) && ahead.is_empty());
    }
}
