//! Blocks that lie scattered, read in the order in which they lie and kept in memory until they are asked for.
//!
//! What has been written over at random is read by one request a block, wherever the next one lies. A disk that
//! passes over all of it once has read it in a fraction of that time, and what else is live on the way with it: where
//! there is memory for that, it is kept too, for it was probably written together with the rest and is read next.

use std::ops::Range;

use super::{Newest, Store, gaps, lock};
use crate::device::Disk;

/// Blocks that are looked up at once, so that others come to their turn; chosen by us.
const LOOKED_UP_AT_ONCE: usize = 4096;

/// Slots that are read at once, and requests; chosen by us: a megabyte in a row, which a disk goes on reading by itself
/// until it is asked for the next, and otherwise what it does in a tenth of a second, so that others come to their turn.
const STEP_SLOTS: usize = 256;
const STEP_REQUESTS: usize = 64;

/// Requests that slots take in the order in which they stand.
fn requests_in_order(slots: &[u32]) -> usize {
    slots.chunk_by(|one, next| one.checked_add(1) == Some(*next)).count()
}

/// What is to be read in the order in which it lies.
#[derive(Debug)]
pub struct Sweep {
    /// Slots that are wanted, ascending, and how many of them were read.
    wanted: Vec<u32>,
    read: usize,
    /// What is read, from the end: the last is read first.
    runs: Vec<Range<u32>>,
    requests: usize,
    slots: u64,
    requests_one_by_one: usize,
    bytes_max: usize,
}

impl Sweep {
    /// Requests that it takes.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests as u64
    }

    /// Blocks that are transferred, with those between.
    #[must_use]
    pub fn transferred_blocks(&self) -> u64 {
        self.slots
    }

    /// Blocks that are wanted.
    #[must_use]
    pub fn wanted_blocks(&self) -> u64 {
        self.wanted.len() as u64
    }

    /// Requests that it takes to read them in the order in which they were listed.
    #[must_use]
    pub fn requests_one_by_one(&self) -> u64 {
        self.requests_one_by_one as u64
    }

    /// The next ones that are read at once.
    fn step(&mut self) -> Vec<Range<u32>> {
        let (mut step, mut left) = (Vec::new(), STEP_SLOTS);
        while left > 0
            && step.len() < STEP_REQUESTS
            && let Some(run) = self.runs.pop()
        {
            let end = run.end.min(run.start + left as u32);
            left -= (end - run.start) as usize;
            step.push(run.start..end);
            if end < run.end {
                self.runs.push(end..run.end);
            }
        }
        step
    }
}

impl<D: Disk> Store<D> {
    /// Requests of the disk that reading the `count` blocks from `first` on takes at the moment.
    #[must_use]
    pub fn requests_of(&self, first: u32, count: u32) -> u32 {
        let mut slots = Vec::new();
        self.add_unread(first..first.saturating_add(count), &mut slots);
        requests_in_order(&slots) as u32
    }

    /// Adds the slots of `blocks` that are not in memory, in the order of the blocks, looked up at one moment.
    fn add_unread(&self, blocks: impl Iterator<Item = u32>, slots: &mut Vec<u32>) {
        let mut scratch = vec![0; self.geometry().block_bytes as usize];
        let front = lock(&self.front);
        for block in blocks {
            if let Newest::InSlot(slot) = front.newest(block, &mut scratch)
                && !self.ahead.holds(slot)
            {
                slots.push(slot);
            }
        }
    }

    /// What it takes to read `blocks`, which nobody has in memory, in the order in which they lie; those that fit
    /// into `bytes_max` bytes.
    #[must_use]
    pub fn plan_sweep(&self, blocks: &[Range<u32>], bytes_max: u64) -> Sweep {
        let bytes = self.geometry().block_bytes as usize;
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let mut wanted = Vec::new();
        let mut numbers = blocks.iter().cloned().flatten().take(bytes_max / bytes).peekable();
        while numbers.peek().is_some() {
            self.add_unread(numbers.by_ref().take(LOOKED_UP_AT_ONCE), &mut wanted);
        }
        let requests_one_by_one = requests_in_order(&wanted);
        wanted.sort_unstable();
        wanted.dedup();
        let longest = self.gaps.longest_in_sweep();
        let is_near = |one: &u32, next: &u32| {
            one.checked_add(1) == Some(*next) || gaps::before_slot(*one, *next, longest).is_some()
        };
        let mut runs: Vec<Range<u32>> =
            wanted.chunk_by(is_near).map(|run| run[0]..run[run.len() - 1] + 1).collect();
        runs.reverse();
        let slots = runs.iter().map(|run| run.len() as u64).sum();
        let requests = runs.len();
        Sweep { wanted, read: 0, runs, requests, slots, requests_one_by_one, bytes_max }
    }

    /// Reads the next part of `sweep`; whether there is more. What cannot be read is left to who reads it, and what
    /// would come behind it as well.
    pub fn sweep_on(&self, sweep: &mut Sweep) -> bool {
        let step = sweep.step();
        let bytes = self.geometry().block_bytes as usize;
        let slots: Vec<u32> = step.iter().cloned().flatten().collect();
        let mut data = vec![0; slots.len() * bytes];
        if !self.read_runs(step.into_iter(), &mut data) {
            return false;
        }
        // What is wanted goes first where there is not room for all.
        let held = self.ahead.swept_bytes();
        let unread = (sweep.wanted.len() - sweep.read) * bytes;
        let mut room = sweep.bytes_max.saturating_sub(held + unread) / bytes;
        let mut kept = Vec::with_capacity(slots.len());
        let front = lock(&self.front);
        for (slot, data) in slots.iter().zip(data.chunks_exact(bytes)) {
            if sweep.wanted.get(sweep.read) == Some(slot) {
                sweep.read += 1;
                kept.push((*slot, data));
            } else if room > 0 && front.engine.log().owner_of(*slot).is_some() {
                room -= 1;
                kept.push((*slot, data));
            }
        }
        drop(front);
        self.ahead.keep_swept(&kept, sweep.bytes_max);
        !sweep.runs.is_empty()
    }

    /// Forgets what a sweep has read if none of it was asked for since the last call; whether there is any left.
    pub fn forget_unused_sweeps(&self) -> bool {
        self.ahead.forget_unused_sweeps()
    }
}
