//! xfs with reflink: a copy in the donor, which the kernel compares with the file and then
//! has the file share (`FIDEDUPERANGE`); then the donor gives it up.
//!
//! The kernel compares under the locks of both files, so that a write in between is seen: the file
//! then stays as it is. A part that ends amid a block is shared only if it ends both files. So
//! space is held beyond the donor's end, and parts are copied by ascending place in the donor: each
//! copy sets its end.
//!
//! On btrfs this does not do: see [`super::btrfs`].
//!
//! Source: Linux `fs/remap_range.c`; manual page ioctl_fideduperange(2).

use agewell_snapshot::SnapshotError;
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, fallocate};

use super::copying::{self, Copied};
use super::donor::{Donor, Holding};
use super::{Carried, Fault, Mechanism, skip_of};
use crate::arranger::{Move, Purpose};
use crate::runs::Runs;
use crate::volume::Volume;

#[derive(Debug, Default)]
pub(super) struct Dedupe {
    donor: Option<Donor>,
    buffer: Vec<u8>,
}

impl Mechanism for Dedupe {
    fn acquire(&mut self, volume: &Volume) -> Result<(Runs, Runs), SnapshotError> {
        self.release(volume)?;
        volume.commit()?;
        let donor = Donor::holding_free_space(volume, Holding::BeyondEnd)?;
        let runs = donor.runs(volume)?;
        self.donor = Some(donor);
        Ok(runs)
    }

    fn prepare(
        &mut self,
        _volume: &Volume,
        moves: Vec<Move>,
        _purpose: Purpose,
    ) -> Result<Vec<Move>, SnapshotError> {
        let Some(donor) = &self.donor else { return Ok(moves) };
        let mut parts = Vec::with_capacity(moves.len());
        for step in moves {
            let mut rest = step;
            while rest.length_bytes > 0 {
                let held = donor.offset_of(rest.physical_bytes).map_or(u64::MAX, |held| held.1);
                let length_bytes = rest.length_bytes.min(held);
                parts.push(Move { length_bytes, ..rest });
                rest.logical_bytes += length_bytes;
                rest.physical_bytes += length_bytes;
                rest.length_bytes -= length_bytes;
            }
        }
        parts.sort_by_key(|part| donor.offset_of(part.physical_bytes));
        Ok(parts)
    }

    fn carry(&mut self, volume: &Volume, file: &OwnedFd, step: &Move, size_bytes: u64) -> Carried {
        let donor = self.donor.as_ref().expect("space is acquired before files are moved");
        let mut done = 0;
        while done < step.length_bytes {
            let Some((offset, rest)) = donor.offset_of(step.physical_bytes + done) else {
                return Carried::stopped(done, Fault::Taken);
            };
            let from = step.logical_bytes + done;
            let length = rest.min(step.length_bytes - done).min(copying::PIECE_BYTES);
            let data_bytes = length.min(size_bytes.saturating_sub(from));
            let copied =
                copying::share(file, from, &donor.file, offset, data_bytes, &mut self.buffer);
            // What is shared is the file's from now on, what is not is of no use.
            let punch = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
            let given_up = fallocate(&donor.file, punch, offset, length);
            match copied {
                Ok(Copied::Shared) => done += length,
                Ok(Copied::Not(why)) => return Carried::stopped(done, Fault::Leave(why)),
                Err(why) => return Carried::stopped(done, copying::fault(volume, why)),
            }
            if let Err(why) = given_up {
                return Carried::stopped(done, Fault::Leave(skip_of(why)));
            }
        }
        Carried::all(step)
    }

    fn release(&mut self, volume: &Volume) -> Result<(), SnapshotError> {
        self.donor.take().map_or(Ok(()), |donor| donor.give_up(volume))
    }
}
