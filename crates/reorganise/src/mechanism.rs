//! How the kernel is asked to have a file lie elsewhere.
//!
//! A mechanism takes hold of free space by a file without a name, the donor, says which runs it
//! holds, and moves parts of files there. Moves are carried out one at a time, each by calls during
//! which the kernel keeps writers of that one file out, for a bounded piece of it.

mod btrfs;
mod copier;
mod copying;
mod dedupe;
mod donor;
mod ext4;
mod openers;

use std::num::NonZeroU64;

use rustix::fd::OwnedFd;
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;

use agewell_snapshot::SnapshotError;

use crate::arranger::{Move, Purpose};
use crate::file_system::FileSystem;
use crate::kernel;
use crate::runs::Runs;
use crate::skip::Skip;
use crate::volume::Volume;

/// What is read of files ahead of their moves; chosen by us: some tenths of a second of small reads, or
/// of one large one.
pub(crate) const AHEAD_BYTES: u64 = 16 << 20;

/// Why a move was not carried out, or not all of it.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The file stays as it is.
    Leave(Skip),
    /// The place was taken by others: it may be tried again elsewhere.
    Taken,
    /// Nothing more can be done.
    Stop(SnapshotError),
}

/// What has been carried out of a move, from its front, bytes, and why not more.
pub(crate) struct Carried {
    pub(crate) bytes: u64,
    pub(crate) fault: Option<Fault>,
    /// Where it lies now, if that is not where the move says.
    pub(crate) places: Vec<Move>,
}

impl Carried {
    fn all(step: &Move) -> Self {
        Self { bytes: step.length_bytes, fault: None, places: Vec::new() }
    }

    fn stopped(bytes: u64, fault: Fault) -> Self {
        Self { bytes, fault: Some(fault), places: Vec::new() }
    }
}

/// A way to move files.
pub(crate) trait Mechanism {
    /// Takes hold of free space, before every batch; gives the runs that files can be moved to, and all
    /// that is free, them included. What was freed by moves before is on the device as free by now.
    fn acquire(&mut self, volume: &Volume) -> Result<(Runs, Runs), SnapshotError>;

    /// Makes room for data beyond what data has, before anything else: about `bytes` in all. Gives the bytes
    /// that it moved for that.
    fn make_chunks(&mut self, _volume: &Volume, _bytes: u64) -> Result<u64, SnapshotError> {
        Ok(0)
    }

    /// Makes ready for a batch; gives its moves in the order in which they can be carried out, divided
    /// where they must be.
    fn prepare(
        &mut self,
        _volume: &Volume,
        moves: Vec<Move>,
        _purpose: Purpose,
    ) -> Result<Vec<Move>, SnapshotError> {
        Ok(moves)
    }

    /// Begins a move that is carried out later; called for every move, in their order, when what it
    /// moves has been asked for some time before.
    fn look_ahead(&mut self, _volume: &Volume, _file: &OwnedFd, _step: &Move, _size_bytes: u64) {}

    /// Moves a part of `file`, which has `size_bytes`.
    fn carry(&mut self, volume: &Volume, file: &OwnedFd, step: &Move, size_bytes: u64) -> Carried;

    /// Nothing is moved for a while.
    fn pause(&mut self, _volume: &Volume) -> Result<(), SnapshotError> {
        Ok(())
    }

    /// Gives up what is held.
    fn release(&mut self, volume: &Volume) -> Result<(), SnapshotError>;
}

/// Bytes that are asked for at a time: of a longer stretch the kernel would read no more than the larger
/// of its read-ahead, 128 KiB unless told otherwise, and the longest request of the device
/// (`force_page_cache_ra`).
const ADVICE_BYTES: u64 = 128 << 10;

/// Has `bytes` of `file` from `from` on read into memory, and does not wait for it.
pub(crate) fn read_ahead(file: &OwnedFd, from: u64, bytes: u64) {
    let mut at = from;
    while at < from + bytes {
        let length = NonZeroU64::new((from + bytes - at).min(ADVICE_BYTES));
        // It is advice: without it the move itself reads.
        let _ = fadvise(file, at, length, Advice::WillNeed);
        at += ADVICE_BYTES;
    }
}

/// The mechanism of `file_system`.
pub(crate) fn of(file_system: FileSystem) -> Box<dyn Mechanism> {
    match file_system {
        FileSystem::Ext4 => Box::<ext4::Ext4>::default(),
        FileSystem::Xfs => Box::<dedupe::Dedupe>::default(),
        FileSystem::Btrfs => Box::<btrfs::Btrfs>::default(),
    }
}

/// What an error of the kernel says about a file.
fn skip_of(error: Errno) -> Skip {
    match error {
        Errno::TXTBSY => Skip::Swap,
        Errno::PERM | Errno::ACCESS => Skip::Protected,
        Errno::NOSPC | Errno::DQUOT => Skip::NoRoom,
        Errno::BUSY | Errno::NODATA => Skip::Changed,
        _ => Skip::Refused,
    }
}
