//! The seam of a layout of blocks: blocks of files are written, read and deleted; transfers of
//! places come out.
//!
//! A block has a number, dense and used again after its deletion, and a name: which block of which
//! file it is. Layouts that go by what is written when (logs, write-anywhere) need the number alone;
//! layouts that go by what belongs together (FFS) need the name. Writes wait in a write buffer of
//! the layout until it is full or synced. Reads reach a layout only when no cache of the host has
//! the block.
//!
//! What every layout promises: the block read is the version last written; nothing is read that was
//! never written; the same calls give the same transfers; what is refused for want of room leaves
//! the layout as it was, so that it goes on after deletions.

use crate::file_system::FileSystemError;
use agewell_log::{BlockDevice, LogError, Purpose, Transfer, TransferTimes, even_chunks};

/// Which block of which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileBlock {
    /// The file.
    pub file: u32,
    /// The block within it.
    pub block: u32,
}

/// Where the newest version of a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// There is no such block.
    Nowhere,
    /// In a write buffer, or kept in memory for another reason.
    Memory,
    /// On the disk.
    Disk(u32),
}

/// Why a layout refuses something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A log finds no room.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file system refuses it.
    #[error(transparent)]
    FileSystem(#[from] FileSystemError),
    /// There is no place left.
    #[error(
        "the disk is full: {live} of {capacity} blocks are live; lower the utilization or use a \
         larger device"
    )]
    Full {
        /// Live blocks.
        live: u64,
        /// Blocks that it can hold.
        capacity: u64,
    },
}

/// What a layout has done so far, in blocks, as far as the layout knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockCounts {
    /// Blocks written by users.
    pub user_blocks: u64,
    /// Of those, absorbed in a write buffer by a later write or a deletion.
    pub absorbed_blocks: u64,
    /// New data blocks sent to the disk.
    pub new_blocks: u64,
    /// Blocks that the layout wrote for its own ends: collected, regrouped, journaled, propagated.
    pub moved_blocks: u64,
}

impl BlockCounts {
    /// Counts since `before`.
    #[must_use]
    pub fn since(&self, before: &BlockCounts) -> BlockCounts {
        BlockCounts {
            user_blocks: self.user_blocks - before.user_blocks,
            absorbed_blocks: self.absorbed_blocks - before.absorbed_blocks,
            new_blocks: self.new_blocks - before.new_blocks,
            moved_blocks: self.moved_blocks - before.moved_blocks,
        }
    }
}

/// A layout of blocks. See the module.
pub trait BlockLayout {
    /// Lets blocks be numbered up to `blocks`.
    fn ensure_blocks(&mut self, blocks: u32);

    /// Puts `block` on the disk as it was before the first request, where this layout would put it
    /// next, past any buffer and at no cost.
    ///
    /// # Errors
    /// If there is no room.
    fn preload(&mut self, block: u32, name: FileBlock) -> Result<(), LayoutError>;

    /// Puts blocks `first..first + blocks` on the disk as [`Self::preload`] does one after another;
    /// they are those of one file from `name` on.
    ///
    /// # Errors
    /// If there is no room.
    fn preload_run(&mut self, first: u32, blocks: u32, name: FileBlock) -> Result<(), LayoutError> {
        for number in 0..blocks {
            self.ensure_blocks(first + number + 1);
            self.preload(first + number, FileBlock { block: name.block + number, ..name })?;
        }
        Ok(())
    }

    /// Puts blocks `first..first + blocks`, which are never asked for again, on an empty disk in
    /// chunks of `chunk_blocks` that lie evenly (Matthews 1999, §6.3), at no cost.
    ///
    /// # Errors
    /// If there is no room.
    fn fragment(&mut self, first: u32, blocks: u32, chunk_blocks: u32) -> Result<(), LayoutError>;

    /// A file comes into being in `directory`; a layout that knows no files ignores it.
    ///
    /// # Errors
    /// If there is no room.
    fn create(
        &mut self,
        _file: u32,
        _directory: u32,
        _device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        Ok(())
    }

    /// A file, all of whose blocks have been deleted, is gone; a layout that knows no files ignores
    /// it.
    fn remove(&mut self, _file: u32, _device: &mut impl BlockDevice) {}

    /// A user writes `block`, all of it.
    ///
    /// # Errors
    /// If no room can be made for it.
    fn write(
        &mut self,
        block: u32,
        name: FileBlock,
        client: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError>;

    /// Whether the layout wants to decide how it goes on, before the next write.
    #[inline]
    fn is_decision_due(&self) -> bool {
        false
    }

    /// Whether what waits must be sent before the layout decides, because room was made for it.
    fn sends_before_deciding(&self) -> bool {
        false
    }

    /// Decides how to go on, if that is due, by what transfers took so far on the device; none if
    /// nothing but the policies' cost model is known.
    fn decide(&mut self, _times: Option<&TransferTimes>) {}

    /// A read comes next. What all transfers have taken so far `spent_ns` says, ns, once they are
    /// done; a layout that learns from reads may ask, and compare no more than that.
    fn begin_read(&mut self, _spent_ns: impl FnOnce() -> u64) {}

    /// Whether writes can be handed over many at a time: [`Self::write_to_buffer`].
    fn takes_many_writes(&self) -> bool {
        false
    }

    /// A user writes the first of `blocks`, as many as only have to wait in a write buffer; how many.
    /// No device is asked for anything, and everything is as if they had been written one by one.
    /// The one that fills the buffer is not among them.
    fn write_to_buffer(&mut self, _blocks: &[u32], _client: u32) -> usize {
        0
    }

    /// Looks where a write of `block` will: who knows what is written soon has the processor bring
    /// it in. Changes nothing, and the number means nothing.
    #[inline]
    fn look_up(&self, _block: u32) -> u32 {
        0
    }

    /// Users read `blocks`, in this order, because no cache has them. Those in memory and those that
    /// do not exist cost nothing; those side by side on the disk are read together.
    fn read(&mut self, blocks: &[u32], purpose: Purpose, device: &mut impl BlockDevice) {
        read_in_runs(blocks, purpose, |block| self.place_of(block), device);
    }

    /// Whether a read is nothing to it but the transfers of [`read_in_runs`], a read of nothing nothing
    /// at all: it learns nothing from what users read.
    fn only_reads_in_runs(&self) -> bool {
        false
    }

    /// A user asks for `block`, which was read ahead of time and is in the host's cache: to a layout
    /// that learns from reads it is one.
    fn foreseen(&mut self, _block: u32, _device: &mut impl BlockDevice) {}

    /// `block` is deleted; nothing happens if there is none.
    fn delete(&mut self, block: u32, device: &mut impl BlockDevice);

    /// What `client` has written goes to the disk.
    ///
    /// # Errors
    /// If no room can be made for it.
    fn sync(&mut self, client: u32, device: &mut impl BlockDevice) -> Result<(), LayoutError>;

    /// Everything goes to the disk.
    ///
    /// # Errors
    /// If no room can be made for it.
    fn sync_all(&mut self, device: &mut impl BlockDevice) -> Result<(), LayoutError>;

    /// Sends what the disk needs so that everything sent before can be found on it: a journal around
    /// the layout asks for it before each commit, which is to be all that a crash may leave. Nothing
    /// where every transfer leaves the disk like that.
    fn settle(&mut self, _device: &mut impl BlockDevice) {}

    /// Places that [`Self::settle`] would send now; about, and not too few.
    fn unsettled_places(&self) -> u64 {
        0
    }

    /// Where the newest version of `block` is.
    fn place_of(&self, block: u32) -> Place;

    /// Blocks that are worth reading together with `block`, in the order of the disk, and `block`
    /// among them; none if the layout has not put it together with others.
    fn cluster_of(&self, _block: u32, _cluster: &mut Vec<u32>) {}

    /// The host has `block` in its cache, or has dropped it.
    fn set_resident(&mut self, _block: u32, _resident: bool) {}

    /// From here on what dies is discarded on the device ([`BlockDevice::discard`]), if the layout
    /// can; a layout that cannot ignores it.
    fn enable_discard(&mut self) {}

    /// Nobody asks for anything: one piece of work of the layout's own, if it has any. `free_wanted`
    /// is how many segments a log keeps free beyond its reserve.
    ///
    /// # Errors
    /// If the work finds no room.
    fn work_ahead(
        &mut self,
        _free_wanted: u32,
        _device: &mut impl BlockDevice,
    ) -> Result<bool, LayoutError> {
        Ok(false)
    }

    /// What must be read and written after a crash at this moment, before the disk can be used.
    fn recover(&self, device: &mut impl BlockDevice);

    /// What it has done so far.
    fn counts(&self) -> BlockCounts;

    /// Blocks that exist, in memory or on disk.
    fn live_blocks(&self) -> u64;

    /// Bytes of one place: those of a block, unless places are finer.
    fn unit_bytes(&self, block_bytes: u64) -> u64 {
        block_bytes
    }

    /// The first place of those that lie on a disk of their own, if the layout asks for a second
    /// one; it is the first place there.
    fn second_disk_from(&self) -> Option<u32> {
        None
    }

    /// Checks every invariant.
    ///
    /// # Panics
    /// If one does not hold, which is a bug.
    fn verify(&self);
}

/// Reads `blocks` in their order, those side by side on the disk in one transfer, all transfers
/// together.
pub fn read_in_runs(
    blocks: &[u32],
    purpose: Purpose,
    place_of: impl Fn(u32) -> Place,
    device: &mut impl BlockDevice,
) {
    let mut run: Option<(u32, u32)> = None;
    device.begin_batch();
    let mut send = |run: Option<(u32, u32)>| {
        if let Some((first, length)) = run {
            device.transfer(&Transfer::of_blocks(purpose, first, length), &[]);
        }
    };
    for block in blocks {
        let Place::Disk(place) = place_of(*block) else { continue };
        run = Some(match run {
            Some((first, length)) if first + length == place => (first, length + 1),
            earlier => {
                send(earlier);
                (place, 1)
            }
        });
    }
    send(run);
    device.end_batch();
}

/// The places of [`even_chunks`], one by one.
pub fn even_places(capacity: u64, blocks: u64, chunk_blocks: u32) -> impl Iterator<Item = u64> {
    let chunks = even_chunks(capacity, blocks, chunk_blocks);
    chunks.flat_map(|(first, length)| first..first + u64::from(length))
}
