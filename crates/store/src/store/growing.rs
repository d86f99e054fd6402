//! A store that takes the room of a device that has become larger, while it is used.

use super::{Store, lock};
use crate::StoreError;
use crate::device::Disk;
use crate::format::Geometry;
use crate::medium::Medium;
use crate::seeded::{SeededFault, is_seeded};

impl<D: Disk> Store<D> {
    /// Takes in all of a disk that has become larger: there is more room afterwards, and there are more block
    /// numbers. All that was taken in before is durable then. Others may use the store meanwhile; what they
    /// write waits until the map is written. A crash in the midst of it leaves the store as it was or as
    /// it will be, with all that is in it.
    ///
    /// # Errors
    /// If the disk is not larger by a segment and what describes it, or written in zones, and nothing has
    /// been changed; if it fails: then nothing is lost, and it may be tried again.
    ///
    /// # Panics
    /// If a thread that was in the store has panicked.
    pub fn grow(&self) -> Result<(), StoreError> {
        if self.disk.write_zones().is_some() {
            let what = "a store on a device that is written in order, zone by zone, cannot grow: copy it \
                        to a new one";
            return Err(StoreError::Options(what.into()));
        }
        let mut medium = self.medium_at_once();
        self.commit_all(&mut medium)?;
        // The medium may have come further the last time, when the disk failed.
        if medium.geometry.generation == self.geometry().generation {
            self.divide_medium(&mut medium)?;
        }
        let geometry = medium.geometry.clone();
        self.sums.grow(geometry.blocks);
        let mut front = lock(&self.front);
        front.plan_changes()?;
        front.engine.grow(&geometry);
        self.divided.add(geometry);
        let wanted = self.room_ahead().0;
        front.pacing.iter_mut().for_each(|pacing| pacing.want(wanted));
        Ok(())
    }

    /// Has the medium divided by all of the disk. The first copy of the superblock that is written says so:
    /// from then on there is no way back.
    fn divide_medium(&self, medium: &mut Medium<D>) -> Result<(), StoreError> {
        let measured = self.disk.measure();
        let size_bytes = measured.map_err(|error| StoreError::Device {
            what: "measure",
            offset: 0,
            bytes: 0,
            error,
        })?;
        let geometry = self.geometry().grown(size_bytes)?;
        let superblocks = Geometry::superblocks(size_bytes, geometry.block_bytes);
        // All of this goes where there is nothing yet.
        let before = medium.divide_as(geometry);
        if is_seeded(SeededFault::GrownBeforeMap) {
            medium.write_superblocks(&superblocks)?;
        }
        if let Err(error) = self.write_map(medium) {
            medium.divide_as_before(before);
            return Err(error);
        }
        medium.superblocks_due = superblocks.to_vec();
        let written = medium.write_due_superblocks();
        if written.is_err() && is_seeded(SeededFault::GrownBackTooLate) {
            medium.superblocks_due.clear();
            medium.divide_as_before(before);
        }
        if is_seeded(SeededFault::SuperblockForgotten) {
            medium.superblocks_due.clear();
        }
        written
    }
}
