//! Write-ahead logging: what a layout updates in place is written to a journal first, and to its
//! place later.
//!
//! Around any layout that updates in place. What it sends is queued in a transaction and committed
//! by one sequential write to the journal, with a header that says what belongs where; the places
//! are written when the journal is half full, or after a number of commits ("checkpoint"): in the
//! order of addresses, neighbours together, each place once however often it was written since
//! (Matthews 1999, §3.4). What waits for that is in memory, and reads of it cost nothing.
//!
//! * [`Journaled::Metadata`]: data goes to its place as soon as it is sent, and before the metadata
//!   that names it is committed; only metadata is journaled. "Most write-ahead logging systems place
//!   only meta-data operations in the log" (§3.4).
//! * [`Journaled::Full`]: data is journaled, too. What a crash leaves is then what users had at the
//!   last commit: a commit takes along what the layout inside needs for that
//!   ([`BlockLayout::settle`]), such as metadata that waits and the data of all clients that it
//!   names.
//!
//! A transaction is committed when a client syncs, when a write buffer has been sent, or when
//! enough is queued. Synchronous updates of metadata need not be synchronous any more: the order of
//! transactions is what keeps the metadata consistent. The journal is a ring at the front or in the
//! middle of the same disk, or a disk of its own ("many database systems invest in a separate disk
//! for the log", §3.4). There a checkpoint goes on in the background: commits need not wait for it
//! until the ring comes round to the records that it frees, or the next one begins.
//!
//! Invariants: a committed version is in the journal, in a record that is not written over, or in
//! its place; a place is written only by versions that the journal has had (full journal). A test
//! stops after every write and within it, and replays.
//!
//! Left open by the source, and decided here: a checkpoint begins at half of the journal and
//! propagates everything; headers take 16 bytes a record, rounded up to sectors; where the journal
//! begins is written, as one place at its front, after each checkpoint; a place that is given to
//! data written in place is revoked. A full journal commits before what is queued and what waits
//! inside fill half of the largest transaction, a quarter of the ring. More than that from a single
//! operation goes in several transactions, none of which tears a block: the places of what it
//! deletes and what it writes are then committed one after the other, not at once.
//!
//! Cost: a few words a place; a checkpoint looks at what waits alone.

mod journal;
#[cfg(test)]
mod tests;

use crate::block_layout::{BlockCounts, BlockLayout, FileBlock, LayoutError, Place};
use agewell_log::{BlockDevice, Purpose, Transfer, pass_batches_on};
use journal::Journal;

/// The contents that go through the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journaled {
    /// Metadata alone.
    Metadata,
    /// Metadata and data.
    Full,
}

/// Where the journal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalPlace {
    /// At the front of the disk.
    Start,
    /// In its middle.
    Middle,
    /// On a disk of its own.
    OwnDisk,
}

/// Everything about the journal but its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteAheadSetting {
    /// The contents that go through it.
    pub journaled: Journaled,
    /// Where it is.
    pub place: JournalPlace,
    /// Places of the layout inside.
    pub inner_places: u32,
    /// Bytes of a place.
    pub place_bytes: u64,
    /// Places of a block.
    pub block_places: u32,
    /// Places of the journal; at least [`JOURNAL_PLACES_MIN`].
    pub journal_places: u32,
    /// Places queued at most before they are committed.
    pub group_places: u32,
    /// Commits after which a checkpoint is taken though the journal is not half full; 0 for never.
    pub checkpoint_commits: u32,
}

/// Places of the smallest journal: where it begins, and transactions of one place and its header
/// in each quarter.
pub const JOURNAL_PLACES_MIN: u32 = 16;

/// A layout behind a journal. See the module.
#[derive(Debug, Clone)]
pub struct WriteAhead<L> {
    inner: L,
    journal: Journal,
    /// Blocks that a read has to get from the disk.
    asked: Vec<u32>,
}

impl<L: BlockLayout> WriteAhead<L> {
    /// `inner`, which is empty, behind an empty journal.
    ///
    /// # Panics
    /// If the journal is too small.
    #[must_use]
    pub fn new(setting: WriteAheadSetting, inner: L) -> Self {
        assert!(setting.journal_places >= JOURNAL_PLACES_MIN, "the journal is too small");
        Self { inner, journal: Journal::new(setting), asked: Vec::new() }
    }

    /// Has the layout inside do something, and commits if that is due: with a full journal only a
    /// state that may be found after a crash.
    fn within<D: BlockDevice, R>(
        &mut self,
        is_sync: bool,
        device: &mut D,
        act: impl FnOnce(&mut L, &mut Capture<'_, D>) -> R,
    ) -> R {
        let Self { inner, journal, .. } = self;
        let done = act(inner, &mut Capture { journal, device });
        let is_full = journal.takes_data();
        if journal.is_due(is_sync) || (is_full && journal.is_crowded(inner.unsettled_places())) {
            if is_full {
                inner.settle(&mut Capture { journal, device });
            }
            journal.commit(device);
        }
        done
    }
}

/// Takes what the layout inside sends.
struct Capture<'a, D> {
    journal: &'a mut Journal,
    device: &'a mut D,
}

impl<D: BlockDevice> BlockDevice for Capture<'_, D> {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        let Transfer { purpose, slot, blocks, .. } = *transfer;
        if !purpose.writes() {
            // Metadata that waits is in memory; blocks that wait are not asked for at all.
            let is_metadata = purpose == Purpose::MetadataRead;
            let waits = |place| self.journal.waits(place);
            if !(is_metadata && (slot..slot + blocks).all(waits)) {
                self.journal.pass(transfer, contents, self.device);
            }
        } else if contents.is_empty() || self.journal.takes_data() {
            self.journal.gather(slot, blocks, contents);
        } else {
            self.journal.revoke(slot, blocks);
            self.journal.pass(transfer, contents, self.device);
        }
    }

    /// The transaction says when: see [`Journal::commit`].
    fn commit(&mut self) {}

    /// Data whose deletion is not committed may come back: the transaction says when.
    fn discard(&mut self, slot: u32, blocks: u32) {
        (slot..slot + blocks).for_each(|place| self.journal.dead.died(place));
    }

    pass_batches_on!();
}

impl<L: BlockLayout> BlockLayout for WriteAhead<L> {
    fn ensure_blocks(&mut self, blocks: u32) {
        self.inner.ensure_blocks(blocks);
        self.journal.ensure_blocks(blocks);
    }

    fn preload(&mut self, block: u32, name: FileBlock) -> Result<(), LayoutError> {
        self.inner.preload(block, name)
    }

    fn fragment(&mut self, first: u32, blocks: u32, chunk_blocks: u32) -> Result<(), LayoutError> {
        self.inner.fragment(first, blocks, chunk_blocks)
    }

    fn create(
        &mut self,
        file: u32,
        directory: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        self.within(false, device, |inner, captured| inner.create(file, directory, captured))
    }

    fn remove(&mut self, file: u32, device: &mut impl BlockDevice) {
        self.within(false, device, |inner, captured| inner.remove(file, captured));
    }

    fn write(
        &mut self,
        block: u32,
        name: FileBlock,
        client: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        self.within(false, device, |inner, captured| inner.write(block, name, client, captured))
    }

    fn read(&mut self, blocks: &[u32], purpose: Purpose, device: &mut impl BlockDevice) {
        let mut asked = std::mem::take(&mut self.asked);
        asked.clear();
        let is_on_disk = |block: &u32| matches!(self.place_of(*block), Place::Disk(_));
        asked.extend(blocks.iter().copied().filter(is_on_disk));
        self.within(false, device, |inner, captured| inner.read(&asked, purpose, captured));
        self.asked = asked;
    }

    fn delete(&mut self, block: u32, device: &mut impl BlockDevice) {
        self.journal.disown_block(block);
        self.within(false, device, |inner, captured| inner.delete(block, captured));
    }

    fn sync(&mut self, client: u32, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        self.within(true, device, |inner, captured| inner.sync(client, captured))
    }

    fn sync_all(&mut self, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        self.within(true, device, |inner, captured| inner.sync_all(captured))
    }

    fn place_of(&self, block: u32) -> Place {
        match self.inner.place_of(block) {
            Place::Disk(place) if self.journal.waits(place) => Place::Memory,
            Place::Disk(place) => Place::Disk(self.journal.outer(place)),
            elsewhere => elsewhere,
        }
    }

    fn cluster_of(&self, block: u32, cluster: &mut Vec<u32>) {
        self.inner.cluster_of(block, cluster);
    }

    fn set_resident(&mut self, block: u32, resident: bool) {
        self.inner.set_resident(block, resident);
    }

    fn enable_discard(&mut self) {
        self.inner.enable_discard();
        self.journal.enable_discard();
    }

    /// A checkpoint, while the disk is idle.
    fn work_ahead(
        &mut self,
        _free_wanted: u32,
        device: &mut impl BlockDevice,
    ) -> Result<bool, LayoutError> {
        Ok(self.journal.checkpoint(device))
    }

    /// The journal is read from its last checkpoint on, and what it holds is written to its places
    /// (Matthews 1999, §3.4).
    fn recover(&self, device: &mut impl BlockDevice) {
        self.journal.recover(device);
    }

    fn counts(&self) -> BlockCounts {
        let counts = self.inner.counts();
        BlockCounts { moved_blocks: counts.moved_blocks + self.journal.moved_blocks(), ..counts }
    }

    fn live_blocks(&self) -> u64 {
        self.inner.live_blocks()
    }

    fn unit_bytes(&self, block_bytes: u64) -> u64 {
        self.inner.unit_bytes(block_bytes)
    }

    fn second_disk_from(&self) -> Option<u32> {
        self.journal.second_disk_from()
    }

    fn verify(&self) {
        self.inner.verify();
        self.journal.verify();
    }
}
