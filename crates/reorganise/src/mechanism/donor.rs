//! A file without a name that holds free space.

use agewell_snapshot::source::live::{self, ExtentMap};
use agewell_snapshot::{Extent, SnapshotError};
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;

use crate::room::reserve_bytes;
use crate::runs::Runs;
use crate::volume::Volume;

/// Free space is asked for in steps of this many bytes, so that a file system that gives the nearest
/// first is asked again for each; chosen by us: the largest that ext4 has in one extent.
const STEP_BYTES: u64 = 128 << 20;

/// No more is held at a time, bytes; chosen by us: enough for long stretches, and mapped in a moment.
const HOLD_BYTES_MAX: u64 = 8 << 30;

/// Where in the donor space is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holding {
    /// As part of the file.
    WithinFile,
    /// Beyond its end.
    BeyondEnd,
}

/// A file without a name, and where what it holds lies.
#[derive(Debug)]
pub(super) struct Donor {
    pub(super) file: OwnedFd,
    /// Ascending by place on the device.
    held: Vec<Extent>,
}

impl Donor {
    /// Holds what is free but the reserve for others.
    pub(super) fn holding_free_space(
        volume: &Volume,
        holding: Holding,
    ) -> Result<Self, SnapshotError> {
        let file = volume.nameless_file()?;
        let free_bytes = volume.free_bytes()?;
        let block_bytes = volume.block_bytes();
        let may_hold_bytes = (free_bytes - reserve_bytes(free_bytes)).min(HOLD_BYTES_MAX);
        let hold_bytes = may_hold_bytes / block_bytes * block_bytes;
        let flags = match holding {
            Holding::WithinFile => FallocateFlags::empty(),
            Holding::BeyondEnd => FallocateFlags::KEEP_SIZE,
        };
        let (mut at, mut step) = (0, STEP_BYTES);
        while at < hold_bytes && step >= block_bytes {
            match fallocate(&file, flags, at, step.min(hold_bytes - at)) {
                Ok(()) => at += step.min(hold_bytes - at),
                // Metadata takes room too, and others do.
                Err(Errno::NOSPC | Errno::DQUOT) => step /= 4,
                Err(Errno::INTR) => {}
                Err(why) => return Err(volume.failed("allocate space on")(why)),
            }
        }
        let mut held = Vec::new();
        ExtentMap::new(true).read(&file, &mut held).map_err(volume.failed("map a file of"))?;
        held.sort_unstable_by_key(|extent| extent.physical_bytes);
        Ok(Self { file, held })
    }

    /// The runs that it holds, and those with all else that is free.
    pub(super) fn runs(&self, volume: &Volume) -> Result<(Runs, Runs), SnapshotError> {
        let held: Runs =
            self.held.iter().map(|extent| (extent.physical_bytes, extent.length_bytes)).collect();
        let mut free = held.clone();
        for run in live::free_space(volume.path())?.unwrap_or_default() {
            free.add_absent(run.physical_bytes, run.length_bytes);
        }
        Ok((held, free))
    }

    /// Gives up all that it holds, at once: xfs frees what a file without a name had only later.
    pub(super) fn give_up(self, volume: &Volume) -> Result<(), SnapshotError> {
        ftruncate(&self.file, 0).map_err(volume.failed("give up space on"))
    }

    /// Where in the donor the byte at `physical_bytes` of the device is, and how many follow it
    /// there.
    pub(super) fn offset_of(&self, physical_bytes: u64) -> Option<(u64, u64)> {
        let after = self.held.partition_point(|extent| extent.physical_bytes <= physical_bytes);
        let extent = &self.held[after.checked_sub(1)?];
        let within = physical_bytes - extent.physical_bytes;
        let rest = extent.length_bytes.checked_sub(within).filter(|rest| *rest > 0)?;
        Some((extent.logical_bytes + within, rest))
    }
}
