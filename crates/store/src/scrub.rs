//! Looking for damage while a store is in use, no faster than is said.

#![expect(clippy::disallowed_methods, reason = "it keeps to a rate on the real device")]

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::StoreError;
use crate::background::{Background, Bell};
use crate::device::Disk;
use crate::store::Store;

/// Blocks that are read between looks at the clock; chosen by us: a few milliseconds of a disk.
const BLOCKS_AT_ONCE: u32 = 64;

/// What has been looked at.
#[derive(Debug, Default)]
pub struct Scrubbed {
    /// The next block number that is looked at.
    pub next: u32,
    /// Whether all were.
    pub is_done: bool,
    /// Blocks that are damaged, or that the device cannot read.
    pub damaged: Vec<u32>,
    /// Why it has ended early.
    pub error: Option<StoreError>,
}

/// Reads every block of a store once, from a thread of its own, until it is done, stopped or dropped.
#[derive(Debug)]
pub struct Scrub {
    background: Background,
    done: Arc<Mutex<Scrubbed>>,
}

impl Scrub {
    /// Reads the blocks of `store` from number `first` on, at most `bytes_per_s` of them.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub fn start<D: Disk + 'static>(
        store: Arc<Store<D>>,
        first: u32,
        bytes_per_s: u64,
    ) -> io::Result<Self> {
        let bell = Arc::new(Bell::default());
        let done = Arc::new(Mutex::new(Scrubbed { next: first, ..Scrubbed::default() }));
        let (ear, log) = (Arc::clone(&bell), Arc::clone(&done));
        let body = move || run(&store, &ear, &log, bytes_per_s.max(1));
        Ok(Self { background: Background::start("scrub", bell, body)?, done })
    }

    /// How many block numbers have been looked at so far.
    #[must_use]
    pub fn next(&self) -> u32 {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).next
    }

    /// Waits until all blocks have been looked at.
    #[must_use]
    pub fn finish(mut self) -> Scrubbed {
        self.background.join();
        std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops it, and gives what has been looked at; another may go on from `next`.
    #[must_use]
    pub fn stop(mut self) -> Scrubbed {
        self.background.end();
        self.finish()
    }
}

fn run<D: Disk>(store: &Store<D>, bell: &Bell, done: &Mutex<Scrubbed>, bytes_per_s: u64) {
    let (blocks, bytes) = (store.geometry().blocks, u64::from(store.geometry().block_bytes));
    let note = || done.lock().unwrap_or_else(PoisonError::into_inner);
    let mut next = note().next;
    while next < blocks {
        let begun = Instant::now();
        let end = blocks.min(next.saturating_add(BLOCKS_AT_ONCE));
        let read = (next..end).filter(|block| store.holds(*block)).count() as u64;
        match store.scrub(next..end) {
            Ok(damaged) => note().damaged.extend(damaged),
            Err(error) => {
                note().error = Some(error);
                return;
            }
        }
        next = end;
        note().next = next;
        let due = Duration::from_nanos(read * bytes * 1_000_000_000 / bytes_per_s);
        if bell.wait(Some(due.saturating_sub(begun.elapsed()))).is_over {
            note().is_done = next == blocks;
            return;
        }
    }
    note().is_done = true;
}
