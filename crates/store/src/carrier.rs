//! What is planned carried out behind the writers' backs, in a thread of its own.
//!
//! Who fills a buffer plans where it goes, wakes this thread and goes on; only when several groups wait does a
//! writer wait for the medium. So a long write is taken in while what came before is on its way to the device.

use std::io;
use std::sync::Arc;

use crate::background::{Background, Bell};
use crate::device::Disk;
use crate::store::Store;

/// Carries out what a store plans, from a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Carrier {
    _background: Background,
}

impl Carrier {
    /// Starts for `store`.
    ///
    /// # Errors
    /// If there can be no more threads.
    ///
    /// # Panics
    /// If the store has one already.
    pub fn start<D: Disk + 'static>(store: Arc<Store<D>>) -> io::Result<Self> {
        let bell = Arc::new(Bell::default());
        let is_first = store.set_carrier(Some(Arc::clone(&bell)));
        assert!(is_first, "a store has one carrier");
        let ear = Arc::clone(&bell);
        let body = move || {
            while !ear.wait(None).is_over {
                // What the device did not take waits: who writes or syncs next tries again, and hears of it.
                let _ = store.carry_out_waiting();
            }
            store.set_carrier(None);
        };
        Ok(Self { _background: Background::start("carrier", bell, body)? })
    }
}
