//! A store that takes the room of a device that has become larger.

use super::{Store, lock};
use crate::StoreError;
use crate::device::Disk;
use crate::format::Geometry;
use crate::seeded::{SeededFault, is_seeded};

impl<D: Disk> Store<D> {
    /// Takes in all of a disk that is larger than the store, closes the store in order and gives the disk
    /// back: opened again it has more room, and more block numbers. A crash in the midst of it leaves the
    /// store as it was or as it will be, with all that is in it.
    ///
    /// # Errors
    /// If the disk is not larger by a segment and what describes it, or written in zones, and nothing has
    /// been changed; if it fails, and then the store is as after a crash.
    ///
    /// # Panics
    /// If a thread that was in the store has panicked.
    pub fn grow(self) -> Result<D, StoreError> {
        if self.disk.write_zones().is_some() {
            let what = "a store on a device that is written in order, zone by zone, cannot grow: copy it \
                        to a new one";
            return Err(StoreError::Options(what.into()));
        }
        let size_bytes = self.disk.size_bytes();
        let geometry = self.geometry.grown(size_bytes)?;
        let superblocks = Geometry::superblocks(size_bytes, geometry.block_bytes);
        let mut medium = lock(&self.medium);
        self.commit_all(&mut medium)?;
        // All of this goes where there is nothing yet.
        medium.divide_as(geometry);
        if is_seeded(SeededFault::GrownBeforeMap) {
            medium.write_superblocks(&superblocks)?;
        }
        self.write_map(&mut medium)?;
        medium.close()?;
        medium.write_superblocks(&superblocks)?;
        drop(medium);
        Ok(self.into_disk())
    }
}
