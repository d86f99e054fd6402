//! btrfs: as on xfs a copy that the kernel compares and shares, but space cannot be held.
//!
//! btrfs gives back an extent only when nothing refers to any part of it any more. Were many files to
//! share one long extent, removing one would free nothing. So each piece gets an extent of its
//! own, written to the donor alone, and the donor is cut back before the next: files are in the end
//! as if they had been written so.
//!
//! Where an extent comes to lie cannot be said. But btrfs looks for free space from where the file
//! begins, and takes the first that is long enough. So the donor begins with a block that is shared
//! with whatever file lies before the run that is wanted. Where the copy came to lie is looked at
//! before the file is handed over; elsewhere, it is given up and another place is tried.
//!
//! Source: Linux `fs/btrfs/inode.c` (`get_extent_allocation_hint`), `fs/btrfs/extent-tree.c`
//! (`find_free_extent`), `fs/remap_range.c`.

use agewell_snapshot::source::live::{DataSpace, ExtentMap};
use agewell_snapshot::{Extent, SnapshotError};
use rustix::fd::OwnedFd;
use rustix::fs::ftruncate;
use rustix::io::{Errno, pread};

use super::copying::{self, Copied};
use super::{Carried, Fault, Mechanism, Neighbours, kernel};
use crate::arranger::Move;
use crate::runs::Runs;
use crate::skip::Skip;
use crate::volume::Volume;

#[derive(Default)]
pub(super) struct Btrfs {
    space: Option<DataSpace>,
    runs: Runs,
    donor: Option<Donor>,
    /// A run in which a copy did not come to lie where it should: no more are tried there.
    lost: Option<(u64, u64)>,
    buffer: Vec<u8>,
    extents: Vec<Extent>,
}

/// A file that begins with a block before the run that is being filled.
struct Donor {
    file: OwnedFd,
    /// The run, start and end.
    run: (u64, u64),
}

impl Btrfs {
    /// The donor for the run that `physical_bytes` is in.
    fn donor_for(
        &mut self,
        volume: &Volume,
        physical_bytes: u64,
        neighbours: &mut Neighbours<'_>,
    ) -> Result<(), Fault> {
        let within = |run: &(u64, u64)| run.0 <= physical_bytes && physical_bytes < run.1;
        if self.lost.as_ref().is_some_and(within) {
            return Err(Fault::Taken);
        }
        if self.donor.as_ref().is_some_and(|donor| within(&donor.run)) {
            return Ok(());
        }
        self.donor = None;
        let run = self.runs.run_at(physical_bytes).ok_or(Fault::Taken)?;
        let file = volume.nameless_file().map_err(Fault::Stop)?;
        let block_bytes = volume.block_bytes();
        if let Some((neighbour, offset)) = neighbours(run.0)
            && kernel::clone_range(&neighbour, offset, block_bytes, &file, 0).is_ok()
        {
            // Read, so that btrfs has in memory where it lies.
            let mut byte = [0];
            let _ = pread(&file, &mut byte, 0);
        }
        // Without a neighbour the first copy lies anywhere, and is held against what was wanted.
        ftruncate(&file, block_bytes).map_err(|why| copying::fault(volume, why))?;
        self.donor = Some(Donor { file, run: (run.0, run.0 + run.1) });
        Ok(())
    }

    /// Copies a part, looks where it lies, and has the file share it.
    fn carry_part(
        &mut self,
        volume: &Volume,
        file: &OwnedFd,
        from: u64,
        data_bytes: u64,
        physical_bytes: u64,
    ) -> Result<Copied, Fault> {
        let donor = &self.donor.as_ref().expect("made before").file;
        let space = self.space.as_ref().expect("looked at before");
        let block_bytes = volume.block_bytes();
        let failed = |why: Errno| copying::fault(volume, why);
        let copied = copying::copy(file, from, donor, block_bytes, data_bytes, &mut self.buffer);
        if !copied.map_err(failed)? {
            return Ok(Copied::Not(Skip::Changed));
        }
        self.extents.clear();
        ExtentMap::new(true).read(donor, &mut self.extents).map_err(failed)?;
        let whole_bytes = data_bytes.next_multiple_of(block_bytes);
        let wanted = space.to_logical(physical_bytes);
        let lies = self.extents.iter().find(|extent| extent.logical_bytes <= block_bytes
            && block_bytes < extent.logical_bytes + extent.length_bytes);
        let right = lies.is_some_and(|extent| {
            let skipped = block_bytes - extent.logical_bytes;
            Some(extent.physical_bytes + skipped) == wanted
                && extent.length_bytes - skipped >= whole_bytes
        });
        if !right {
            return Err(Fault::Taken);
        }
        copying::exchange(file, from, donor, block_bytes, data_bytes).map_err(failed)
    }
}

impl Mechanism for Btrfs {
    fn acquire(&mut self, volume: &Volume) -> Result<(Runs, Runs), SnapshotError> {
        // What was freed is given out again after a commit.
        volume.commit()?;
        let space = volume.data_space()?;
        self.runs = space.free.iter().map(|run| (run.physical_bytes, run.length_bytes)).collect();
        self.space = Some(space);
        self.lost = None;
        Ok((crate::plan::Room::new(self.runs.clone()).held(), self.runs.clone()))
    }

    fn in_order(&self, mut moves: Vec<Move>) -> Vec<Move> {
        // Each run is filled from its start.
        moves.sort_by_key(|step| step.physical_bytes);
        moves
    }

    fn carry(
        &mut self,
        volume: &Volume,
        file: &OwnedFd,
        step: &Move,
        size_bytes: u64,
        neighbours: &mut Neighbours<'_>,
    ) -> Carried {
        let mut done = 0;
        while done < step.length_bytes {
            let to = step.physical_bytes + done;
            if let Err(fault) = self.donor_for(volume, to, neighbours) {
                return Carried::stopped(done, fault);
            }
            let from = step.logical_bytes + done;
            let length = (step.length_bytes - done).min(copying::PIECE_BYTES);
            let data_bytes = length.min(size_bytes.saturating_sub(from));
            let result = self.carry_part(volume, file, from, data_bytes, to);
            let donor = self.donor.as_ref().expect("made above");
            let (cut, run) = (ftruncate(&donor.file, volume.block_bytes()), donor.run);
            match result {
                Ok(Copied::Shared) => done += length,
                Ok(Copied::Not(why)) => return Carried::stopped(done, Fault::Leave(why)),
                Err(fault) => {
                    if matches!(fault, Fault::Taken) {
                        self.lost = Some(run);
                        self.donor = None;
                    }
                    return Carried::stopped(done, fault);
                }
            }
            if let Err(why) = cut {
                return Carried::stopped(done, copying::fault(volume, why));
            }
        }
        Carried::all(step)
    }

    fn release(&mut self, _: &Volume) -> Result<(), SnapshotError> {
        self.donor = None;
        Ok(())
    }
}
