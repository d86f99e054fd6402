//! All of a file system: how much room there is, what of it is on the medium, and its end.

use std::ops::Range;
use std::sync::Arc;

use agewell_store::Store;
use agewell_store::device::Disk;
use rustix::io::Errno;

use super::{FileSystem, Space};
use crate::FsError;
use crate::journal::{Journaled, Placement};
use crate::seeded::{SeededFault, is_seeded};

impl<D: Disk> FileSystem<D> {
    /// How much room there is.
    #[must_use]
    pub fn space(&self) -> Space {
        let core = self.core();
        Space {
            block_bytes: self.store.geometry().block_bytes,
            blocks: core.blocks.capacity(),
            free: core.blocks.free_for_data(),
        }
    }

    /// What is in the journal.
    #[must_use]
    pub fn journaled(&self) -> Journaled {
        self.core().blocks.journaled()
    }

    /// Hands everything that was done to the store; whether any of it may not be on the medium.
    ///
    /// # Errors
    /// If the store fails.
    pub fn commit(&self) -> Result<bool, FsError> {
        let mut core = self.core();
        if core.is_shut {
            return Err(Errno::IO.into());
        }
        core.blocks.commit()?;
        Ok(std::mem::take(&mut core.blocks.is_unsynced))
    }

    /// Hands everything that was done to the store, nodes as they are: nothing is left in the journal.
    ///
    /// # Errors
    /// If the store fails.
    pub fn checkpoint(&self) -> Result<(), FsError> {
        let mut core = self.core();
        if core.is_shut {
            return Err(Errno::IO.into());
        }
        core.blocks.commit()?;
        core.blocks.checkpoint(Placement::Anywhere)
    }

    /// Everything that was done before is on the medium when it returns. Threads that wait at the same
    /// time share a flush.
    ///
    /// # Errors
    /// If the store fails.
    pub fn sync(&self) -> Result<(), FsError> {
        self.commit()?;
        if is_seeded(SeededFault::SyncWithoutFlush) {
            return Ok(());
        }
        let done = self.store.sync();
        if let Some(traced) = &mut *self.core().blocks.traced.borrow_mut() {
            traced.note_sync();
        }
        Ok(done?)
    }

    /// Takes in all of a device that has become larger, while it is used; everything that was done before is
    /// on the medium then.
    ///
    /// # Errors
    /// If the device is not larger by enough, or written in zones, and nothing has been changed; if the store
    /// fails: then nothing is lost, and it may be tried again.
    pub fn grow(&self) -> Result<(), FsError> {
        self.commit()?;
        self.store.grow()?;
        self.core().blocks.grow();
        Ok(())
    }

    /// Gives what is free back to the device, within bytes `range` of it and in pieces of `least_bytes` at
    /// least; how many bytes.
    ///
    /// # Errors
    /// If the store fails.
    pub fn trim(&self, range: Range<u64>, least_bytes: u64) -> Result<u64, FsError> {
        self.commit()?;
        Ok(self.store.trim(range, least_bytes)?)
    }

    /// Whether it was [shut](Self::shut).
    #[must_use]
    pub fn is_shut(&self) -> bool {
        self.core().is_shut
    }

    /// Nothing is done any more, but that every operation fails: what was not synced may be lost.
    pub fn shut(&self) {
        self.core().is_shut = true;
    }

    /// Ends it in order, and gives the store back.
    ///
    /// # Errors
    /// If the store fails.
    pub fn close(self) -> Result<Arc<Store<D>>, FsError> {
        while self.work()? {}
        self.checkpoint()?;
        self.sync()?;
        Ok(self.store)
    }
}
