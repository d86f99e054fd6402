//! ext4: the kernel exchanges blocks of the file with blocks of the donor (`EXT4_IOC_MOVE_EXT`).
//!
//! The contents go through the page cache under the locks of both files, and are written before the
//! exchange is committed. What the file leaves comes to the donor and, when that is let go, to what is
//! free; the kernel uses it again only after the commit, so that a crash finds either the old place
//! intact or the new one written. What others make durable before the commit: see [`super::openers`].
//!
//! Source: Linux `fs/ext4/move_extent.c`.

use std::thread::sleep;
use std::time::Duration;

use agewell_snapshot::SnapshotError;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::donor::{Donor, Holding};
use super::openers::Openers;
use super::{AHEAD_BYTES, Carried, Fault, Mechanism, kernel, read_ahead, skip_of};
use crate::arranger::Move;
use crate::runs::Runs;
use crate::skip::Skip;
use crate::volume::Volume;

/// Bytes exchanged by one call, during which writers of the file wait: a tenth of a second of a
/// disk of today; chosen by us.
const CALL_BYTES: u64 = 16 << 20;

/// Times that a page in use is asked for again, and the pause before each; chosen by us: a page under
/// writeback is free after some milliseconds.
const BUSY_TRIES: u32 = 5;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct Ext4 {
    donor: Option<Donor>,
    openers: Openers,
}

impl Mechanism for Ext4 {
    fn acquire(&mut self, volume: &Volume) -> Result<(Runs, Runs), SnapshotError> {
        self.release(volume)?;
        // Only what is committed as free is given out again.
        self.openers.commit(volume)?;
        let donor = Donor::holding_free_space(volume, Holding::WithinFile)?;
        let runs = donor.runs(volume)?;
        self.donor = Some(donor);
        Ok(runs)
    }

    fn carry(&mut self, volume: &Volume, file: &OwnedFd, step: &Move, _size_bytes: u64) -> Carried {
        let Self { donor, openers } = self;
        let donor = donor.as_ref().expect("space is acquired before files are moved");
        let block_bytes = volume.block_bytes();
        let (mut done, mut busy) = (0, 0);
        while done < step.length_bytes {
            let Some((offset, rest)) = donor.offset_of(step.physical_bytes + done) else {
                return Carried::stopped(done, Fault::Taken);
            };
            let length = rest.min(step.length_bytes - done).min(CALL_BYTES);
            // Page by page and each for itself is how the call would read what is not in memory.
            let after = step.logical_bytes + done + AHEAD_BYTES;
            let end = step.logical_bytes + step.length_bytes;
            read_ahead(file, after, length.min(end.saturating_sub(after)));
            let (from, to) = ((step.logical_bytes + done) / block_bytes, offset / block_bytes);
            // Before each call: what was watched is forgotten with a commit.
            let alone = match openers.watch(volume, file) {
                Ok(alone) => alone,
                Err(why) => return Carried::stopped(done, Fault::Stop(why)),
            };
            match kernel::move_extent(file, from, &donor.file, to, length / block_bytes) {
                Ok(0) => return Carried::stopped(done, Fault::Leave(Skip::Refused)),
                Ok(blocks) => {
                    done += blocks * block_bytes;
                    if let Err(why) = openers.settle(volume, file, alone) {
                        return Carried::stopped(done, Fault::Stop(why));
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::BUSY | Errno::AGAIN) if busy < BUSY_TRIES => {
                    busy += 1;
                    sleep(BUSY_PAUSE);
                }
                Err(why @ (Errno::IO | Errno::ROFS | Errno::STALE)) => {
                    return Carried::stopped(
                        done,
                        Fault::Stop(volume.failed("move a file of")(why)),
                    );
                }
                Err(why) => return Carried::stopped(done, Fault::Leave(skip_of(why))),
            }
        }
        Carried::all(step)
    }

    fn pause(&mut self, volume: &Volume) -> Result<(), SnapshotError> {
        if self.openers.watch_any() { self.openers.commit(volume) } else { Ok(()) }
    }

    fn release(&mut self, volume: &Volume) -> Result<(), SnapshotError> {
        self.donor.take().map_or(Ok(()), |donor| donor.give_up(volume))
    }
}
