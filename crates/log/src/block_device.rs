//! The seam between a layout and whatever carries out its transfers.
//!
//! A layout says which places it reads and writes, and why; a device prices that, times it on a
//! modelled disk, records it, or carries it out. A place is as large as one block of the layout
//! unless the layout says otherwise.
//!
//! Transfers come one after another, each waiting for the one before, unless a layout brackets them
//! ([`BlockDevice::begin_batch`]): then they belong to one call and a drive with a queue may do them
//! in any order, or at once. What must be on the disk before something else is written, or must be
//! read before it is known what else to read, is apart from it by [`BlockDevice::wait`] or
//! [`BlockDevice::commit`], inside a bracket or not.

use super::buffers::Waiting;

/// Why blocks are transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// New data, appended to a log.
    NewData = 0,
    /// New data, threaded into the holes of a segment.
    Thread = 1,
    /// A segment is read to be collected.
    CollectRead = 2,
    /// Collected blocks, appended to a log.
    CollectWrite = 3,
    /// Collected blocks, written into holes.
    Plug = 4,
    /// A segment header is read because a hole of the segment will be filled.
    HeaderRead = 5,
    /// A segment header is written because a hole of the segment has been filled.
    HeaderWrite = 6,
    /// A user reads.
    Read = 7,
    /// Blocks that nobody has asked for yet are read ahead of time.
    Prefetch = 8,
    /// Blocks are read to be put together with others.
    RegroupRead = 9,
    /// Blocks are written together.
    RegroupWrite = 10,
    /// A block that has been written elsewhere is written to its place among others, too.
    Patch = 11,
    /// Records are appended to a journal.
    Journal = 12,
    /// What a journal holds is written to its own place.
    Propagate = 13,
    /// What describes the data is read.
    MetadataRead = 14,
    /// What describes the data is written.
    MetadataWrite = 15,
    /// A journal, a log or a whole disk is read after a crash.
    RecoveryRead = 16,
    /// What a crash left is put right.
    RecoveryWrite = 17,
    /// Dead data is discarded; nothing is transferred.
    Discard = 18,
    /// The device puts on the medium what it has reported as written.
    Flush = 19,
}

impl Purpose {
    /// Every purpose, in the order of its number.
    pub const ALL: [Purpose; 20] = [
        Purpose::NewData,
        Purpose::Thread,
        Purpose::CollectRead,
        Purpose::CollectWrite,
        Purpose::Plug,
        Purpose::HeaderRead,
        Purpose::HeaderWrite,
        Purpose::Read,
        Purpose::Prefetch,
        Purpose::RegroupRead,
        Purpose::RegroupWrite,
        Purpose::Patch,
        Purpose::Journal,
        Purpose::Propagate,
        Purpose::MetadataRead,
        Purpose::MetadataWrite,
        Purpose::RecoveryRead,
        Purpose::RecoveryWrite,
        Purpose::Discard,
        Purpose::Flush,
    ];

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Purpose::NewData => "new_data",
            Purpose::Thread => "thread",
            Purpose::CollectRead => "collect_read",
            Purpose::CollectWrite => "collect_write",
            Purpose::Plug => "plug",
            Purpose::HeaderRead => "header_read",
            Purpose::HeaderWrite => "header_write",
            Purpose::Read => "read",
            Purpose::Prefetch => "prefetch",
            Purpose::RegroupRead => "regroup_read",
            Purpose::RegroupWrite => "regroup_write",
            Purpose::Patch => "patch",
            Purpose::Journal => "journal",
            Purpose::Propagate => "propagate",
            Purpose::MetadataRead => "metadata_read",
            Purpose::MetadataWrite => "metadata_write",
            Purpose::RecoveryRead => "recovery_read",
            Purpose::RecoveryWrite => "recovery_write",
            Purpose::Discard => "discard",
            Purpose::Flush => "flush",
        }
    }

    /// Whether the disk is written.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(
            self,
            Purpose::CollectRead
                | Purpose::HeaderRead
                | Purpose::Read
                | Purpose::Prefetch
                | Purpose::RegroupRead
                | Purpose::MetadataRead
                | Purpose::RecoveryRead
        )
    }

    /// Whether the transfer serves reads of users rather than writes: a price of reading.
    #[must_use]
    pub fn is_for_reading(self) -> bool {
        matches!(self, Purpose::Read | Purpose::Prefetch)
    }
}

/// One transfer of neighbouring blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Why.
    pub purpose: Purpose,
    /// First place; in a log, it and those that follow belong to one segment.
    pub slot: u32,
    /// Blocks.
    pub blocks: u32,
    /// Bytes of headers moved beside the blocks.
    pub header_bytes: u32,
    /// Whether the transfer before it went to the same segment in the same piece of work, so that
    /// the arm is there (Matthews 1999, §5.4.1: half a rotation and no seek).
    pub further: bool,
}

impl Transfer {
    /// Blocks alone, by themselves.
    #[must_use]
    #[inline]
    pub fn of_blocks(purpose: Purpose, slot: u32, blocks: u32) -> Self {
        Self { purpose, slot, blocks, header_bytes: 0, further: false }
    }

    /// Bytes moved, where a block is `block_bytes`.
    #[must_use]
    #[inline]
    pub fn bytes(&self, block_bytes: u64) -> u64 {
        u64::from(self.blocks) * block_bytes + u64::from(self.header_bytes)
    }
}

/// Where the data of a log's transfer comes from, slot by slot. What lay there before dies with the
/// commit that follows.
#[derive(Debug, Clone, Copy)]
pub enum Sources<'a> {
    /// Nothing is said of it.
    Unnamed,
    /// Write buffers: the entries from this number on.
    Run(u32, &'a [Waiting]),
    /// Write buffers: entries by number, among all there are.
    Entries(&'a [u32], &'a [Waiting]),
    /// A block that waited nowhere, and its last place.
    Through(Waiting),
    /// Slots on the disk: blocks, and where each is copied from.
    Copies(&'a [(u32, u32)]),
}

impl Sources<'_> {
    /// Those of `slots` of the transfer.
    #[must_use]
    pub fn part(self, slots: std::ops::Range<usize>) -> Self {
        match self {
            Self::Run(first, waiting) => Self::Run(first + slots.start as u32, &waiting[slots]),
            Self::Entries(entries, waiting) => Self::Entries(&entries[slots], waiting),
            Self::Copies(copies) => Self::Copies(&copies[slots]),
            whole => whole,
        }
    }
}

/// Carries out, prices or records what a layout does.
pub trait BlockDevice {
    /// A transfer. `contents` are the blocks whose data is moved, one a slot, for writes; nothing
    /// for reads.
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]);

    /// A log's transfer, of whose data more is known. Who only prices or times it need not listen.
    #[inline]
    fn transfer_from(&mut self, transfer: &Transfer, contents: &[u32], _sources: Sources<'_>) {
        self.transfer(transfer, contents);
    }

    /// `block` does not exist any longer from the next commit on; `slot` is its place, if it had one.
    #[inline]
    fn deletes(&mut self, _block: u32, _slot: Option<u32>) {}

    /// Whether the hole in `slot` may be filled. Who carries transfers out says no as long as a crash
    /// would bring back what died there.
    #[inline]
    fn may_fill(&self, _slot: u32) -> bool {
        true
    }

    /// Holes that may not be filled, at most.
    #[inline]
    fn unfillable_most(&self) -> u64 {
        0
    }

    /// The record of what has gone into holes since the last sync goes into the hole in `slot`.
    fn records_in(&mut self, _slot: u32) {}

    /// Everything transferred before is now what the map on disk says; slots that this frees may be
    /// written from here on.
    fn commit(&mut self) {}

    /// The data in `blocks` places from `slot` on is dead, and the map on disk does not name it: the
    /// device may forget it. What came before is done before this, and this before what follows.
    /// Layouts say so only where they were asked to.
    fn discard(&mut self, _slot: u32, _blocks: u32) {}

    /// Transfers from here to [`BlockDevice::end_batch`] are issued together: none depends on
    /// another, and any of them may be done when a crash stops the rest. Brackets may stand inside
    /// brackets; the outermost counts.
    fn begin_batch(&mut self) {}

    /// The end of a bracket: what was issued in the outermost one is done.
    fn end_batch(&mut self) {}

    /// What was transferred before is done before anything that follows.
    fn wait(&mut self) {}

    /// Transfers from here to [`BlockDevice::end_background`] go on while the layout does other things:
    /// the disk that they are on does them in their order before whatever is asked of it later, and
    /// another disk, where there is one, does not wait for them. Where there is none they are
    /// transfers like others.
    fn begin_background(&mut self) {}

    /// What follows is waited for again.
    fn end_background(&mut self) {}

    /// Whether all that was to go on behind is done.
    fn is_drained(&self) -> bool {
        true
    }

    /// Waits for all that goes on behind.
    fn drain(&mut self) {}
}

/// What a device that stands before another, its field `device`, does with brackets: it passes them
/// on. Left out, they would be lost without a word, since a device may do nothing about them.
#[macro_export]
macro_rules! pass_batches_on {
    () => {
        fn begin_batch(&mut self) {
            self.device.begin_batch();
        }

        fn end_batch(&mut self) {
            self.device.end_batch();
        }

        fn wait(&mut self) {
            self.device.wait();
        }
    };
}

/// A device that costs nothing, for counting blocks alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unpriced;

impl BlockDevice for Unpriced {
    #[inline]
    fn transfer(&mut self, _transfer: &Transfer, _contents: &[u32]) {}
}
