//! Making room behind the writers' backs, in a thread of its own.
//!
//! It keeps room ahead, a victim at a time or a part of one, so that nobody waits long for the medium, and measures what a
//! block of room takes: by that writers are slowed when they are faster ([`crate::pacing`]). When nobody
//! has written for a while it makes more room than it must, and stops when somebody does. When nothing can
//! be gained it rests until something has been written.

#![expect(clippy::disallowed_methods, reason = "it measures what it does on the real device")]

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::StoreError;
use crate::background::{Background, Bell};
use crate::device::Disk;
use crate::pacing::Pacing;
use crate::store::{Ahead, Store};

/// How long nobody writes before it counts as idle; chosen by us: some seeks of a disk.
const IDLE_AFTER: Duration = Duration::from_millis(50);

/// How long it rests when the device has failed; chosen by us. Writers meet the error themselves.
const REST_AFTER_ERROR: Duration = Duration::from_secs(1);

/// The weight of the last measurement in what a block of room takes; chosen by us: some thirty victims
/// count.
const LAST_WEIGHT: f64 = 1.0 / 16.0;

/// How room is made behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectorOptions {
    /// Whether what came free is given back to the device when it is idle.
    pub discards: bool,
}

impl Default for CollectorOptions {
    fn default() -> Self {
        Self { discards: true }
    }
}

/// What a collector has done.
#[derive(Debug, Default)]
pub struct Collected {
    /// Victims collected because writers needed room.
    pub needed: u64,
    /// Victims collected while nobody wrote.
    pub idle: u64,
    /// Times that nothing could be gained.
    pub rests: u64,
    /// Bytes given back to the device.
    pub discarded_bytes: u64,
    /// The last error of the device.
    pub error: Option<StoreError>,
}

/// Makes room in a store from a thread of its own until it is stopped or dropped.
#[derive(Debug)]
pub struct Collector {
    background: Background,
    done: Arc<Mutex<Collected>>,
}

impl Collector {
    /// Starts making room in `store`.
    ///
    /// # Errors
    /// If there can be no more threads.
    ///
    /// # Panics
    /// If the store has one already.
    pub fn start<D: Disk + 'static>(
        store: Arc<Store<D>>,
        options: CollectorOptions,
    ) -> io::Result<Self> {
        let bell = Arc::new(Bell::default());
        let done = Arc::new(Mutex::new(Collected::default()));
        let (wanted, _) = store.room_ahead();
        let is_first = store.pace(Some(Pacing::new(Arc::clone(&bell), wanted)));
        assert!(is_first, "a store has one collector");
        let (ear, log) = (Arc::clone(&bell), Arc::clone(&done));
        let body = move || {
            let worker = Worker { store: &store, done: &log };
            worker.run(&ear, options);
            store.pace(None);
        };
        Ok(Self { background: Background::start("collector", bell, body)?, done })
    }

    /// Stops it, and gives what it has done.
    #[must_use]
    pub fn stop(mut self) -> Collected {
        self.background.end();
        std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The thread.
struct Worker<'a, D> {
    store: &'a Store<D>,
    done: &'a Mutex<Collected>,
}

impl<D: Disk> Worker<'_, D> {
    fn note(&self, note: impl FnOnce(&mut Collected)) {
        note(&mut self.done.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn run(&self, bell: &Bell, options: CollectorOptions) {
        let mut block_ns = 0.0;
        let mut is_tidy = false;
        loop {
            let taken = self.store.taken();
            let mut most = (!is_tidy).then_some(IDLE_AFTER);
            if let Err(error) = self.make_room(bell, &mut block_ns) {
                self.note(|done| done.error = Some(error));
                most = Some(REST_AFTER_ERROR);
            }
            let rung = bell.wait(most);
            if rung.is_over {
                return;
            }
            is_tidy = false;
            if !rung.is_needed && self.store.taken() == taken {
                match self.tidy(bell, taken, options) {
                    Ok(is_done) => is_tidy = is_done && self.store.rings_at_next_write(taken),
                    Err(error) => self.note(|done| done.error = Some(error)),
                }
            }
        }
    }

    /// Makes as much room as is wanted, or can be had.
    fn make_room(&self, bell: &Bell, block_ns: &mut f64) -> Result<(), StoreError> {
        // A victim may take several steps.
        let mut begun = None;
        while !bell.is_over() {
            self.store.decide()?;
            let since = *begun.get_or_insert_with(Instant::now);
            match self.store.collect_ahead(self.store.room_ahead().0)? {
                Ahead::Enough => return Ok(()),
                Ahead::Nothing => {
                    // Nobody waits for what cannot be had.
                    *block_ns = 0.0;
                    self.store.set_pace(0.0);
                    self.note(|done| done.rests += 1);
                    return Ok(());
                }
                Ahead::Begun => {}
                Ahead::Gained(blocks) => {
                    begun = None;
                    let took = since.elapsed().as_nanos() as f64 / blocks as f64;
                    let weight = if *block_ns == 0.0 { 1.0 } else { LAST_WEIGHT };
                    *block_ns += weight * (took - *block_ns);
                    self.store.set_pace(*block_ns);
                    self.note(|done| done.needed += 1);
                }
            }
        }
        Ok(())
    }

    /// Makes more room than is needed, and gives back to the device what is free, as long as nobody
    /// writes; whether all of it is done.
    fn tidy(&self, bell: &Bell, taken: u64, options: CollectorOptions) -> Result<bool, StoreError> {
        loop {
            if self.store.taken() != taken || bell.is_over() {
                return Ok(false);
            }
            match self.store.collect_ahead(self.store.room_ahead().1)? {
                Ahead::Begun => {}
                Ahead::Gained(_) => self.note(|done| done.idle += 1),
                Ahead::Enough | Ahead::Nothing => break,
            }
        }
        if options.discards {
            let bytes = self.store.discard()?;
            self.note(|done| done.discarded_bytes += bytes);
        }
        Ok(self.store.taken() == taken)
    }
}
