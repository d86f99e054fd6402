//! A real file system behind the seam of layouts: the Fast File System, or that of early UNIX,
//! driven block by block.
//!
//! The file system decides where blocks go and what it does to its metadata; this module keeps the
//! write buffer, the caches of metadata, and the names. A block of the layout is one or more blocks
//! of the file system ("pieces"); places are its smallest units (fragments).
//!
//! * Data waits in a write buffer and is sent in the order of places, neighbours together up to the
//!   largest transfer of the file system. What the file system itself says about when data goes out
//!   is not followed; where it lies is. A block that it moves after it was sent is sent again.
//! * Metadata that it writes synchronously goes out at once, in its order; what it delays goes out
//!   sorted when a client syncs. Metadata is read through a cache of its own. With `metadata =
//!   false` none of it is transferred, as in the simple simulators of Matthews 1999, §6.2.2.
//! * Blocks are deleted one by one here, files cut there: a file is cut when the blocks at its end
//!   are gone, and not at all when it is removed right after. A block deleted in the middle of a file
//!   keeps its place until then.
//! * Free space is fragmented as in Matthews 1999, §6.3, by filling the file system with small files
//!   and removing all but evenly spaced ones: only the file system itself says what lies where.
//!
//! Not atomic: an update in place that is interrupted may leave neither version. After a crash all
//! metadata is read and the maps of what is free are written again (`fsck`; Matthews 1999, §3.2).
//!
//! Invariants: a block that exists has all its pieces, where the file system says; it waits in the
//! buffer or has been sent there.
//!
//! Cost: that of the file system's operation, plus a look at the blocks that it may have moved.

mod examined;
mod files;
mod fragmenting;
mod metadata;
#[cfg(test)]
mod tests;

use crate::block_layout::{BlockCounts, BlockLayout, FileBlock, LayoutError, Place};
use crate::write_buffers::WriteBuffers;
use agewell_log::{BlockDevice, Purpose, Transfer, Unpriced};
pub(crate) use examined::in_disk_order;
pub use examined::{ExaminedFileSystem, SectorRun};
use files::Files;
use metadata::{Listener, Metadata};

/// No place, no block, no file.
const NONE: u32 = u32::MAX;

/// Bytes of a sector.
const SECTOR_BYTES: u64 = 512;

/// Everything about the layout but the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystemBlocksSetting {
    /// Bytes of a block of the layout: whole blocks of the file system.
    pub block_bytes: u64,
    /// Clients, each with a write buffer.
    pub clients: u32,
    /// Blocks in a write buffer.
    pub buffer_blocks: u32,
    /// Whether metadata is read and written.
    pub metadata: bool,
    /// Blocks of metadata that a cache holds.
    pub metadata_cache_blocks: u32,
    /// Bytes that one transfer moves at most.
    pub transfer_bytes_max: u64,
}

/// Where the newest version of a block is, and what waits of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct BlockState {
    exists: bool,
    /// It waits because the file system has moved it, not because a user wrote it.
    is_resent: bool,
    /// A version of it has been sent.
    is_sent: bool,
}

/// A file system behind the seam. See the module.
#[derive(Debug, Clone)]
pub struct FileSystemBlocks<F> {
    setting: FileSystemBlocksSetting,
    system: F,
    unit_sectors: u32,
    /// Blocks of the file system in one of the layout.
    pieces: u32,
    units_per_piece: u32,
    /// First unit of each piece of each block.
    homes: Vec<u32>,
    states: Vec<BlockState>,
    files: Files,
    metadata: Metadata,
    buffers: WriteBuffers,
    counts: BlockCounts,
    live_blocks: u64,
    /// The file, and the blocks that it is to be cut to.
    cut_due: Option<(u32, u32)>,
    /// Of each client, whether a block waits that had been sent to another place, which is free now.
    has_displaced: Vec<bool>,
    /// Clients of which that is so.
    displaced_clients: u32,
    outgoing: Vec<u32>,
    /// Unit, and the block whose piece is there.
    sorted: Vec<(u32, u32)>,
    contents: Vec<u32>,
    /// First units of pieces that were moved away.
    left: Vec<u32>,
}

impl<F: ExaminedFileSystem> FileSystemBlocks<F> {
    /// `system` behind the seam.
    ///
    /// # Panics
    /// If a block of the layout is no whole number of the file system's.
    #[must_use]
    pub fn new(setting: FileSystemBlocksSetting, system: F) -> Self {
        let piece_bytes = system.block_bytes();
        assert!(setting.block_bytes.is_multiple_of(piece_bytes), "blocks of whole blocks");
        let unit_sectors = system.unit_sectors();
        let units = system.total_sectors().div_ceil(u64::from(unit_sectors));
        let cached = if setting.metadata { setting.metadata_cache_blocks } else { 0 };
        Self {
            unit_sectors,
            pieces: (setting.block_bytes / piece_bytes) as u32,
            units_per_piece: (piece_bytes / SECTOR_BYTES) as u32 / unit_sectors,
            homes: Vec::new(),
            states: Vec::new(),
            files: Files::new(system.root()),
            metadata: Metadata::new(setting.metadata, units as u32, unit_sectors, cached),
            buffers: WriteBuffers::new(setting.clients, setting.buffer_blocks),
            counts: BlockCounts::default(),
            live_blocks: 0,
            cut_due: None,
            has_displaced: vec![false; setting.clients.max(1) as usize],
            displaced_clients: 0,
            outgoing: Vec::new(),
            sorted: Vec::new(),
            contents: Vec::new(),
            left: Vec::new(),
            setting,
            system,
        }
    }

    /// The file system.
    #[must_use]
    pub fn system(&self) -> &F {
        &self.system
    }

    fn offset_bytes(&self, name: FileBlock) -> u64 {
        u64::from(name.block) * self.setting.block_bytes
    }

    fn homes_of(&self, block: u32) -> &[u32] {
        let first = (block * self.pieces) as usize;
        &self.homes[first..first + self.pieces as usize]
    }

    fn exists(&self, block: u32) -> bool {
        self.states.get(block as usize).is_some_and(|state| state.exists)
    }

    /// Cuts the file whose last blocks have been deleted.
    fn settle_cut(&mut self, device: &mut impl BlockDevice) {
        let Some((file, blocks)) = self.cut_due.take() else { return };
        if let Some(number) = self.files.number(file) {
            let bytes = u64::from(blocks) * self.setting.block_bytes;
            let mut listener = Listener::new(&mut self.metadata, device);
            let cut = self.system.truncate(number, bytes, &mut listener);
            cut.expect("a file that is there can be cut");
        }
    }

    /// The file system's number of `file`, which is made if it is not there.
    fn number_of(
        &mut self,
        file: u32,
        directory: u32,
        device: &mut impl BlockDevice,
    ) -> Result<u32, LayoutError> {
        if let Some(number) = self.files.number(file) {
            return Ok(number);
        }
        let mut listener = Listener::new(&mut self.metadata, device);
        let parent = if let Some(parent) = self.files.directory(directory) {
            parent
        } else {
            let made = self.system.make_directory(self.system.root(), &mut listener)?;
            self.files.enter_directory(directory, made);
            made
        };
        let number = self.system.create(parent, &mut listener)?;
        self.files.enter(file, number);
        Ok(number)
    }

    /// Has the file system write `block`, which is `name`, and looks where it and those before it
    /// have come to lie.
    fn write_through<D: BlockDevice>(
        &mut self,
        block: u32,
        name: FileBlock,
        client: Option<u32>,
        listener: Option<&mut D>,
    ) -> Result<(), LayoutError> {
        let number = self.files.number(name.file).expect("the file has been made");
        let (offset, bytes) = (self.offset_bytes(name), self.setting.block_bytes);
        let written = match listener {
            Some(device) => {
                let mut listener = Listener::new(&mut self.metadata, device);
                self.system.write(number, offset, bytes, &mut listener)
            }
            None => self.system.write(number, offset, bytes, &mut ()),
        };
        if let Err(refused) = written {
            let kept = self.files.length(name.file);
            if kept <= name.block {
                // Pieces that fitted are given back.
                let bytes = u64::from(kept) * self.setting.block_bytes;
                let cut = self.system.truncate(number, bytes, &mut ());
                cut.expect("a file that is there can be cut");
            }
            self.note_homes(name, client);
            return Err(refused.into());
        }
        self.files.put(name, block);
        self.note_homes(name, client);
        Ok(())
    }

    /// Notes where `name`, if it is there, and the blocks before it that may have moved are; one of
    /// those that has moved has to be sent again, by `client`.
    fn note_homes(&mut self, name: FileBlock, client: Option<u32>) {
        let number = self.files.number(name.file).expect("the file has been made");
        let back = self.system.moved_blocks_max().div_ceil(self.pieces);
        for index in name.block.saturating_sub(back)..=name.block {
            let Some(block) = self.files.block(name.file, index) else { continue };
            let offset = u64::from(index) * self.setting.block_bytes;
            let mut moved = false;
            for piece in 0..self.pieces {
                let at = offset + u64::from(piece) * self.system.block_bytes();
                let sector = self.system.sector_of(number, at);
                let sector = sector.expect("a block that was written has a place");
                let unit = (sector / u64::from(self.unit_sectors)) as u32;
                let home = &mut self.homes[(block * self.pieces + piece) as usize];
                if *home != unit {
                    if *home != NONE {
                        moved = true;
                        self.left.push(*home);
                    }
                    *home = unit;
                    // Metadata that was there is gone.
                    self.metadata.forget(unit, self.units_per_piece);
                }
            }
            if let Some(client) = client
                && moved
            {
                // The block that is being written comes to wait in any case.
                if index != name.block && self.buffers.push(client, block) {
                    self.states[block as usize].is_resent = true;
                }
                if self.states[block as usize].is_sent {
                    let waits_for = self.buffers.client_of(block).unwrap_or(client);
                    let had = std::mem::replace(&mut self.has_displaced[waits_for as usize], true);
                    self.displaced_clients += u32::from(!had);
                }
            }
        }
        self.bury_what_was_left(name, back);
    }

    /// Places that blocks around `name` have left are dead, unless one of them has moved there.
    fn bury_what_was_left(&mut self, name: FileBlock, back: u32) {
        let Self { left, metadata, units_per_piece, .. } = self;
        if left.is_empty() || !metadata.dead.is_wanted() {
            left.clear();
            return;
        }
        for first in left.drain(..) {
            (first..first + *units_per_piece).for_each(|unit| metadata.dead.died(unit));
        }
        for index in name.block.saturating_sub(back)..=name.block {
            let Some(block) = self.files.block(name.file, index) else { continue };
            let first = (block * self.pieces) as usize;
            for home in &self.homes[first..first + self.pieces as usize] {
                self.metadata.dead.used_run(*home, self.units_per_piece);
            }
        }
    }

    /// Sends what `client` has waiting, in the order of places.
    fn send_data(&mut self, client: u32, device: &mut impl BlockDevice) {
        let mut outgoing = std::mem::take(&mut self.outgoing);
        self.buffers.take(client, &mut outgoing);
        let had_displaced = std::mem::take(&mut self.has_displaced[client as usize]);
        self.displaced_clients -= u32::from(had_displaced);
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        for block in &outgoing {
            let state = &mut self.states[*block as usize];
            state.is_sent = true;
            if std::mem::take(&mut state.is_resent) {
                self.counts.moved_blocks += 1;
            } else {
                self.counts.new_blocks += 1;
            }
            sorted.extend(self.homes_of(*block).iter().map(|home| (*home, *block)));
        }
        sorted.sort_unstable();
        let mut rest = &sorted[..];
        device.begin_batch();
        while !rest.is_empty() {
            let pieces = self.run_pieces(rest.iter().map(|(home, _)| *home));
            let (run, later) = rest.split_at(pieces);
            let mut contents = std::mem::take(&mut self.contents);
            contents.clear();
            for (_, block) in run {
                contents.extend(std::iter::repeat_n(*block, self.units_per_piece as usize));
            }
            let units = run.len() as u32 * self.units_per_piece;
            device.transfer(&Transfer::of_blocks(Purpose::NewData, run[0].0, units), &contents);
            self.contents = contents;
            rest = later;
        }
        device.end_batch();
        if !outgoing.is_empty() {
            device.commit();
        }
        (self.outgoing, self.sorted) = (outgoing, sorted);
    }

    /// Sends the metadata that waits, and issues discards for what has died if the copies that
    /// replace it have been sent, too.
    fn send_metadata(&mut self, device: &mut impl BlockDevice) {
        self.metadata.send(device);
        if self.buffers.waiting_blocks() == 0 {
            self.metadata.issue_discards(device);
        }
    }

    /// How many of the pieces at `homes` go in one transfer.
    fn run_pieces(&self, homes: impl Iterator<Item = u32>) -> usize {
        let piece_bytes = u64::from(self.units_per_piece) * self.unit_bytes(0);
        let most = (self.setting.transfer_bytes_max / piece_bytes).max(1) as usize;
        let mut expected = None;
        homes
            .take(most)
            .take_while(|home| {
                let follows = expected.is_none_or(|expected| expected == *home);
                expected = Some(home + self.units_per_piece);
                follows
            })
            .count()
    }

    /// Sends a run of units that is being read.
    fn read_run(run: &mut Option<(u32, u32)>, purpose: Purpose, device: &mut impl BlockDevice) {
        if let Some((first, units)) = run.take() {
            device.transfer(&Transfer::of_blocks(purpose, first, units), &[]);
        }
    }
}

impl<F: ExaminedFileSystem> BlockLayout for FileSystemBlocks<F> {
    fn ensure_blocks(&mut self, blocks: u32) {
        if blocks as usize > self.states.len() {
            self.states.resize(blocks as usize, BlockState::default());
            self.homes.resize(blocks as usize * self.pieces as usize, NONE);
            self.files.ensure_blocks(blocks);
            self.buffers.ensure_blocks(blocks);
        }
    }

    fn preload(&mut self, block: u32, name: FileBlock) -> Result<(), LayoutError> {
        self.number_of(name.file, 0, &mut Unpriced)?;
        self.write_through::<Unpriced>(block, name, None, None)?;
        let state = &mut self.states[block as usize];
        (state.exists, state.is_sent) = (true, true);
        self.live_blocks += 1;
        Ok(())
    }

    fn fragment(&mut self, first: u32, blocks: u32, chunk_blocks: u32) -> Result<(), LayoutError> {
        self.fragment_with_files(first, blocks, chunk_blocks)
    }

    fn create(
        &mut self,
        file: u32,
        directory: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        self.settle_cut(device);
        self.number_of(file, directory, device).map(|_| ())
    }

    fn remove(&mut self, file: u32, device: &mut impl BlockDevice) {
        if self.cut_due.is_some_and(|(due, _)| due == file) {
            self.cut_due = None;
        }
        self.settle_cut(device);
        if let Some(number) = self.files.forget(file) {
            let mut listener = Listener::new(&mut self.metadata, device);
            let removed = self.system.remove(number, &mut listener);
            removed.expect("a file that was made is there");
        }
    }

    fn write(
        &mut self,
        block: u32,
        name: FileBlock,
        client: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        self.settle_cut(device);
        self.number_of(name.file, 0, device)?;
        self.write_through(block, name, Some(client), Some(device))?;
        let state = &mut self.states[block as usize];
        self.live_blocks += u64::from(!state.exists);
        state.exists = true;
        self.counts.user_blocks += 1;
        if !self.buffers.push(client, block) && !std::mem::take(&mut state.is_resent) {
            self.counts.absorbed_blocks += 1;
        }
        if self.buffers.is_full(client) {
            self.send_data(client, device);
        }
        Ok(())
    }

    fn read(&mut self, blocks: &[u32], purpose: Purpose, device: &mut impl BlockDevice) {
        self.settle_cut(device);
        let most = (self.setting.transfer_bytes_max / self.unit_bytes(0)).max(1) as u32;
        let mut run: Option<(u32, u32)> = None;
        device.begin_batch();
        for block in blocks {
            if !matches!(self.place_of(*block), Place::Disk(_)) {
                continue;
            }
            if let Some((file, offset_bytes)) = self.named(*block) {
                let mut wanted = self.metadata.collect_reads();
                let bytes = self.setting.block_bytes;
                let read = self.system.read(file, offset_bytes, bytes, &mut wanted);
                read.expect("a file with blocks is there");
                self.metadata.retain_missing(&mut wanted);
                if !wanted.is_empty() {
                    Self::read_run(&mut run, purpose, device);
                }
                self.metadata.read(wanted, device);
            }
            for piece in 0..self.pieces {
                let home = self.homes[(block * self.pieces + piece) as usize];
                let units = self.units_per_piece;
                run = match run {
                    Some((first, length)) if first + length == home && length + units <= most => {
                        Some((first, length + units))
                    }
                    mut earlier => {
                        Self::read_run(&mut earlier, purpose, device);
                        Some((home, units))
                    }
                };
            }
        }
        Self::read_run(&mut run, purpose, device);
        device.end_batch();
    }

    fn delete(&mut self, block: u32, device: &mut impl BlockDevice) {
        if !self.exists(block) {
            return;
        }
        let state = std::mem::take(&mut self.states[block as usize]);
        self.live_blocks -= 1;
        if self.buffers.forget(block) && !state.is_resent {
            self.counts.absorbed_blocks += 1;
        }
        let first = (block * self.pieces) as usize;
        for home in &mut self.homes[first..first + self.pieces as usize] {
            let unit = std::mem::replace(home, NONE);
            if unit != NONE && self.metadata.dead.is_wanted() {
                (unit..unit + self.units_per_piece).for_each(|unit| self.metadata.dead.died(unit));
            }
        }
        let Some((file, kept)) = self.files.take(block) else { return };
        if self.cut_due.is_some_and(|(due, _)| due != file) {
            self.settle_cut(device);
        }
        if let Some(kept) = kept {
            self.cut_due = Some((file, kept));
        }
    }

    fn sync(&mut self, client: u32, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        self.settle_cut(device);
        self.send_data(client, device);
        self.send_metadata(device);
        Ok(())
    }

    fn sync_all(&mut self, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        self.settle_cut(device);
        (0..self.buffers.clients()).for_each(|client| self.send_data(client, device));
        let mut listener = Listener::new(&mut self.metadata, device);
        self.system.sync(&mut listener)?;
        self.send_metadata(device);
        Ok(())
    }

    /// Where metadata is transferred, it names blocks of all clients: they go with it. Where it is not,
    /// blocks that have left their places go before those are used again.
    fn settle(&mut self, device: &mut impl BlockDevice) {
        let has_metadata = self.setting.metadata;
        if has_metadata {
            self.settle_cut(device);
        }
        for client in 0..self.buffers.clients() {
            if has_metadata || self.has_displaced[client as usize] {
                self.send_data(client, device);
            }
        }
        self.metadata.send(device);
    }

    fn unsettled_places(&self) -> u64 {
        if !self.setting.metadata && self.displaced_clients == 0 {
            return 0;
        }
        let block_places = u64::from(self.pieces) * u64::from(self.units_per_piece);
        u64::from(self.buffers.waiting_blocks()) * block_places + self.metadata.waiting_units()
    }

    fn place_of(&self, block: u32) -> Place {
        if !self.exists(block) {
            Place::Nowhere
        } else if self.buffers.is_waiting(block) {
            Place::Memory
        } else {
            Place::Disk(self.homes[(block * self.pieces) as usize])
        }
    }

    fn enable_discard(&mut self) {
        let units = self.system.total_sectors().div_ceil(u64::from(self.unit_sectors));
        self.metadata.dead.begin(units as u32);
    }

    fn recover(&self, device: &mut impl BlockDevice) {
        let unit = u64::from(self.unit_sectors);
        let mut transfer = |purpose, run: SectorRun| {
            let (first, end) = (run.sector / unit, (run.sector + run.sectors).div_ceil(unit));
            let units = (end - first) as u32;
            device.transfer(&Transfer::of_blocks(purpose, first as u32, units), &[]);
        };
        for run in self.system.metadata() {
            transfer(Purpose::RecoveryRead, run);
        }
        for run in self.system.free_maps() {
            transfer(Purpose::RecoveryWrite, run);
        }
    }

    fn counts(&self) -> BlockCounts {
        self.counts
    }

    fn live_blocks(&self) -> u64 {
        self.live_blocks
    }

    fn unit_bytes(&self, _block_bytes: u64) -> u64 {
        u64::from(self.unit_sectors) * SECTOR_BYTES
    }

    fn verify(&self) {
        self.system.verify();
        self.files.verify();
        let mut live = 0;
        for (block, state) in (0..).zip(&self.states) {
            assert!(state.exists || !self.buffers.is_waiting(block), "what waits exists");
            if !state.exists {
                continue;
            }
            live += 1;
            let Some((file, offset_bytes)) = self.named(block) else { continue };
            for (piece, home) in (0..).zip(self.homes_of(block)) {
                let at = offset_bytes + piece * self.system.block_bytes();
                let sector = self.system.sector_of(file, at);
                let unit = sector.map(|sector| (sector / u64::from(self.unit_sectors)) as u32);
                assert_eq!(unit, Some(*home), "home of piece {piece} of block {block}");
            }
        }
        assert_eq!(live, self.live_blocks, "count of live blocks");
        let displaced = self.has_displaced.iter().filter(|has| **has).count();
        assert_eq!(displaced, self.displaced_clients as usize, "clients with displaced blocks");
    }
}

impl<F: ExaminedFileSystem> FileSystemBlocks<F> {
    /// The file system's number of the file that `block` is in, and where in it; none for blocks
    /// that belong to no file.
    fn named(&self, block: u32) -> Option<(u32, u64)> {
        let name = self.files.name(block)?;
        Some((self.files.number(name.file)?, self.offset_bytes(name)))
    }
}
