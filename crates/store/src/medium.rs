//! The medium: groups carried out on a disk, in their order.
//!
//! A group's data goes to its slots and its records before the data or into the ring, in one call. It is
//! on the medium when a flush has come back. Until then its bytes are kept: if a flush fails, all that
//! was written since the last is written again before the next, because nobody knows what of it the
//! device still has.
//!
//! What died in groups that are *flushed* may be written over, but for inline records. *Covered* are groups
//! whose records are in the ring or the map, because they were written there or a checkpoint that lasts has
//! repeated them: inline records of these may be written over, too.

mod closing;
mod composing;
mod gathering;

use std::collections::BTreeSet;
use std::sync::Arc;

use agewell_log::OpenSegment;
use agewell_log::policy::mechanism::Mechanism;

use crate::StoreError;
use crate::aligned::AlignedBytes;
use crate::composed::Composed;
use crate::device::{Disk, Piece, WriteZones};
use crate::format::{DAMAGED, Geometry, Kind, MapEntry, MapPage, NONE, RingRecord, Root, Runs};
use crate::group::Group;
use crate::learning::Learning;
use crate::places::{Places, named_by_root};
use crate::rotational_delay::RotationalDelay;
use crate::seeded::{SeededFault, is_seeded};
use crate::sums::Sums;

use self::gathering::Gathered;

/// Bytes written since the last flush after which there is one, so that what is kept stays small;
/// chosen by us.
const UNFLUSHED_BYTES_MAX: usize = 64 << 20;

/// Blocks of inline records after which there is a checkpoint, so that opening reads little; chosen by
/// us: 64 MiB of blocks of 4 KiB.
const UNCHECKED_BLOCKS_MAX: usize = 1 << 14;

/// Times that a block is read before it counts as lost, as it may be the reading that failed; chosen by us.
pub(crate) const READS_MAX: usize = 3;

/// Buffers that are kept for what comes; chosen by us: of as many groups as are usually under way.
const SPARES_MAX: usize = 4;

/// Map pages that are written by one call; chosen by us.
const PAGES_AT_ONCE: usize = 128;

/// The ring: where the next record goes, and what of it is in use.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ring {
    pub(crate) number: u64,
    pub(crate) at: u32,
    pub(crate) used: u32,
}

/// What gives the slots of blocks.
pub(crate) type SlotsOf<'a> = dyn Fn(&mut dyn Iterator<Item = u32>, &mut Vec<u32>) + 'a;

/// What has been written and may have to be written again.
#[derive(Debug)]
struct Unflushed {
    /// Where each piece goes, in which of the buffers it is, and from where to where.
    pieces: Vec<(u64, usize, std::ops::Range<usize>)>,
    buffers: [Arc<AlignedBytes>; 2],
}

impl Unflushed {
    fn write(&self, disk: &impl Disk) -> Result<(), StoreError> {
        let pieces: Vec<Piece<'_>> = self
            .pieces
            .iter()
            .map(|(offset, buffer, range)| Piece {
                offset: *offset,
                data: &self.buffers[*buffer][range.clone()],
            })
            .collect();
        write(disk, &pieces)
    }

    fn bytes(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.len()).sum()
    }
}

/// Writes `pieces`.
pub(crate) fn write(disk: &impl Disk, pieces: &[Piece<'_>]) -> Result<(), StoreError> {
    disk.write(pieces).map_err(|error| StoreError::Device {
        what: "write",
        offset: pieces.first().map_or(0, |piece| piece.offset),
        bytes: pieces.iter().map(|piece| piece.data.len() as u64).sum(),
        error,
    })
}

/// Reads into `bytes`.
pub(crate) fn read(disk: &impl Disk, offset: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
    let length = bytes.len() as u64;
    disk.read(offset, bytes).map_err(|error| StoreError::Device {
        what: "read",
        offset,
        bytes: length,
        error,
    })
}

/// Fills `into` with the blocks of `block_bytes` from `offset` on. If they cannot be read together, each is
/// by itself.
pub(crate) fn read_blocks(
    disk: &impl Disk,
    offset: u64,
    block_bytes: usize,
    into: &mut [u8],
    unread: impl FnMut(usize, StoreError),
) {
    if read(disk, offset, into).is_err() {
        read_one_by_one(disk, offset, (block_bytes, 1), into, unread);
    }
}

/// Fills `into` with the blocks of `block_bytes` from `offset` on, each read by itself, up to `tries` times,
/// so that one that cannot be read takes no others with it: it is zeros, and `unread` is given its number
/// and why.
pub(crate) fn read_one_by_one(
    disk: &impl Disk,
    offset: u64,
    (block_bytes, tries): (usize, usize),
    into: &mut [u8],
    mut unread: impl FnMut(usize, StoreError),
) {
    for (number, block) in into.chunks_exact_mut(block_bytes).enumerate() {
        let offset = offset + (number * block_bytes) as u64;
        let mut is_read = read(disk, offset, block);
        for _ in 1..tries {
            is_read = is_read.or_else(|_| read(disk, offset, block));
        }
        if let Err(error) = is_read {
            block.fill(0);
            unread(number, error);
        }
    }
}

pub(crate) fn flush(disk: &impl Disk) -> Result<(), StoreError> {
    disk.flush().map_err(|error| StoreError::Device { what: "flush", offset: 0, bytes: 0, error })
}

/// What the medium has done, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MediumCounts {
    /// Blocks of users' new data.
    pub new_blocks: u64,
    /// Blocks moved by collections.
    pub moved_blocks: u64,
    /// Inline records.
    pub inline_blocks: u64,
    /// Blocks of ring records.
    pub ring_blocks: u64,
    /// Blocks of map pages and roots.
    pub map_blocks: u64,
    /// Flushes.
    pub flushes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Times that the map was written.
    pub maps_written: u64,
    /// Groups.
    pub groups: u64,
}

/// The medium.
#[derive(Debug)]
pub(crate) struct Medium<D> {
    disk: Arc<D>,
    pub(crate) geometry: Geometry,
    pub(crate) incarnation: u32,
    pub(crate) ring: Ring,
    /// The last root, and whether it is still to be written.
    pub(crate) root: Root,
    pub(crate) root_is_due: bool,
    /// Where copies of a superblock that was begun are still to be written.
    pub(crate) superblocks_due: Vec<u64>,
    pub(crate) sums: Arc<Sums>,
    /// A bit for each map page that has changed since it was written.
    pub(crate) dirty: Vec<u64>,
    pub(crate) written: u64,
    pub(crate) flushed: u64,
    pub(crate) covered: u64,
    /// Entries of inline records since the last checkpoint, and the first group among them.
    pub(crate) unchecked: Runs,
    pub(crate) unchecked_first: u64,
    pub(crate) places: Places,
    pub(crate) open: Option<OpenSegment>,
    /// Segments that records announce.
    pub(crate) announced: Vec<u32>,
    unflushed: Vec<Unflushed>,
    unflushed_bytes: usize,
    rewrite_is_due: bool,
    /// Buffers that are not in use any more.
    pub(crate) spare: Vec<AlignedBytes>,
    pub(crate) counts: MediumCounts,
    /// What transfers take, if the disk has a clock.
    pub(crate) learning: Option<Learning>,
    /// How room is made, as roots say it.
    pub(crate) mechanism: Option<Mechanism>,
    /// How far apart syncs are placed.
    pub(crate) rotational_delay: RotationalDelay,
    /// Its zones, if it is written in order.
    zones: Option<WriteZones>,
}

impl<D: Disk> Medium<D> {
    /// Of `disk`, where nothing has been written yet.
    pub(crate) fn new(disk: Arc<D>, geometry: Geometry, sums: Arc<Sums>) -> Self {
        let pages = geometry.map_pages as usize;
        Self {
            zones: disk.write_zones(),
            disk,
            incarnation: 0,
            ring: Ring::default(),
            root: Root { pages: vec![0; pages], ..Root::default() },
            root_is_due: false,
            superblocks_due: Vec::new(),
            sums,
            dirty: vec![0; pages.div_ceil(64)],
            written: 0,
            flushed: 0,
            covered: 0,
            unchecked: Runs::default(),
            unchecked_first: u64::MAX,
            places: Places::default(),
            open: None,
            announced: Vec::new(),
            unflushed: Vec::new(),
            unflushed_bytes: 0,
            rewrite_is_due: false,
            spare: Vec::new(),
            counts: MediumCounts::default(),
            learning: None,
            mechanism: None,
            rotational_delay: RotationalDelay::new(1, geometry.block_bytes, Some(0)),
            geometry,
        }
    }

    fn block_bytes(&self) -> usize {
        self.geometry.block_bytes as usize
    }

    /// Carries out `group`, which the last one was before. After an error it may be tried again.
    pub(crate) fn carry_out(&mut self, group: &Group) -> Result<(), StoreError> {
        assert_eq!(group.sequence, self.written + 1, "groups come in their order");
        let is_all_there = !self.root_is_due && self.superblocks_due.is_empty();
        assert!(is_all_there, "a root or superblock that was begun is written first");
        let needs = group.needs;
        if needs.covered > self.covered && !is_seeded(SeededFault::NeedsCoveredIgnored) {
            self.cover()?;
            assert!(needs.covered <= self.covered, "what is needed is covered");
        }
        if needs.flushed > self.flushed && !is_seeded(SeededFault::NeedsFlushedIgnored) {
            self.flush()?;
            assert!(needs.flushed <= self.flushed, "what is needed is flushed");
        }
        if !group.reads.is_empty() {
            self.rotational_delay.moved();
        }
        let begin_ns = self.now_ns();
        let Gathered { data, entries, bad } = self.gather(group);
        let read_ns = self.now_ns();
        let mut composed = self.compose(group, &data, &entries, &bad);
        let (pieces, heads) =
            (std::mem::take(&mut composed.places), std::mem::take(&mut composed.heads));
        let parcel = Unflushed { pieces, buffers: [data, Arc::new(heads)] };
        let begun = self.zones.map_or(Ok(()), |zones| zones.begin(&self.disk, &parcel.pieces));
        if let Err(error) = begun.and_then(|()| parcel.write(&self.disk))
            && !is_seeded(SeededFault::FailedWriteForgotten)
        {
            return Err(error);
        }
        let at_ns = [begin_ns, read_ns, self.now_ns()];
        self.learning.iter_mut().for_each(|learning| learning.group(group, at_ns));
        self.counts.groups += 1;
        self.counts.inline_blocks += composed.inline.len() as u64;
        self.unflushed_bytes += parcel.bytes();
        self.unflushed.push(parcel);
        if let Some((record, at)) = &composed.ring {
            self.ring_written(record, *at);
        }
        self.settle(group, &composed, &bad);
        Ok(())
    }

    /// What the disk's clock says, if it has one and somebody learns by it.
    fn now_ns(&self) -> u64 {
        if self.learning.is_some() { self.disk.now_ns().unwrap_or(0) } else { 0 }
    }

    /// What the disk has done since is charged to the next group.
    fn owes_since(&mut self, begin_ns: u64) {
        let end_ns = self.now_ns();
        self.learning.iter_mut().for_each(|learning| learning.more(begin_ns, end_ns));
    }

    /// Flushes, and puts what inline records say into the ring, when much has come together.
    pub(crate) fn relieve(&mut self) -> Result<(), StoreError> {
        if self.unflushed_bytes > UNFLUSHED_BYTES_MAX {
            self.flush()?;
        }
        if self.unchecked.named.len() > UNCHECKED_BLOCKS_MAX {
            self.cover()?;
        }
        Ok(())
    }

    /// Where in the ring a record of `blocks` goes.
    fn ring_place(&self, blocks: u32) -> u32 {
        if self.ring.at + blocks <= self.geometry.ring_blocks { self.ring.at } else { 0 }
    }

    /// Whether the ring has room for a record with `runs_bytes`, and a checkpoint.
    pub(crate) fn ring_has_room(&self, runs_bytes: usize) -> bool {
        let record = RingRecord::blocks_for(&self.geometry, runs_bytes);
        let unchecked = self.unchecked.bytes() + runs_bytes;
        let checkpoint = RingRecord::blocks_for(&self.geometry, unchecked);
        // Twice: either may not fit before the ring's end.
        is_seeded(SeededFault::RingOvertakes)
            || self.ring.used + 2 * (record + checkpoint) <= self.geometry.ring_blocks
    }

    fn ring_written(&mut self, record: &RingRecord, at: u32) {
        let blocks = record.blocks(&self.geometry);
        let skipped = if at < self.ring.at { self.geometry.ring_blocks - self.ring.at } else { 0 };
        self.ring.used += blocks + skipped;
        let overtakes = self.ring.used > self.geometry.ring_blocks;
        assert!(!overtakes || is_seeded(SeededFault::RingOvertakes), "the ring overtakes itself");
        self.ring.at = at + blocks;
        self.ring.number += 1;
        self.counts.ring_blocks += u64::from(blocks);
        self.places.ring_written(&self.geometry, record, at);
    }

    /// `group` has been written: what is known of its blocks.
    fn settle(&mut self, group: &Group, composed: &Composed, bad: &BTreeSet<u32>) {
        let sequence = group.sequence as u32;
        for (_, named) in composed.runs.iter() {
            for one in named {
                self.sums.set(one.block, one.sum);
                self.soil(one.block);
            }
        }
        let moved =
            (0..).zip(&group.moves).map(|(index, moved)| (moved.block, bad.contains(&index)));
        self.sums.set_damaged(moved.chain(group.freed_blocks().map(|block| (block, false))));
        for block in group.freed_blocks() {
            self.sums.set(block, 0);
            if !is_seeded(SeededFault::PageNotDirty) {
                self.soil(block);
            }
        }
        for run in &group.runs {
            let count = if run.origin.copies() {
                &mut self.counts.moved_blocks
            } else {
                &mut self.counts.new_blocks
            };
            *count += u64::from(run.blocks);
        }
        if composed.ring.as_ref().is_some_and(|(record, _)| record.covers()) {
            self.unchecked.clear();
            self.unchecked_first = u64::MAX;
        }
        // What inline records say is repeated in the next checkpoint.
        for (run, named) in composed.runs.iter() {
            let place = run.first.wrapping_sub(1);
            let is_behind_record = composed.inline.contains(&(place, run.blocks));
            if is_behind_record || composed.is_scattered {
                self.unchecked.push(run, named.iter().copied());
            }
            if is_behind_record {
                self.places.advance(&self.geometry, place, self.place_behind(run));
            }
        }
        if composed.freed_inline {
            self.unchecked.push_freed(sequence, group.freed_blocks());
        }
        if !composed.inline.is_empty() {
            self.unchecked_first = self.unchecked_first.min(group.sequence);
        }
        self.open = self.open_after(&group.runs);
        if !group.announced.is_empty() {
            self.announced.clone_from(&group.announced);
        }
        self.written = group.sequence;
    }

    /// The page of `block` has changed.
    pub(crate) fn soil(&mut self, block: u32) {
        let page = block / self.geometry.page_entries();
        self.dirty[(page / 64) as usize] |= 1 << (page % 64);
    }

    /// Everything written is on the medium when this returns.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        let begin_ns = self.now_ns();
        if self.rewrite_is_due {
            self.unflushed.iter().try_for_each(|parcel| parcel.write(&self.disk))?;
        }
        self.rewrite_is_due = !is_seeded(SeededFault::NotWrittenAgain);
        if is_seeded(SeededFault::FailedFlushForgotten) {
            (self.flushed, self.rewrite_is_due) = (self.written, false);
        }
        flush(&self.disk)?;
        let end_ns = self.now_ns();
        self.learning.iter_mut().for_each(|learning| learning.flushed(begin_ns, end_ns));
        self.rewrite_is_due = false;
        self.counts.flushes += 1;
        self.unflushed_bytes = 0;
        for parcel in self.unflushed.drain(..) {
            let [data, _] = parcel.buffers;
            self.spare.extend(Arc::into_inner(data).filter(|_| self.spare.len() < SPARES_MAX));
        }
        self.flushed = self.written;
        self.covered = self.flushed.min(self.unchecked_first - 1);
        self.places.flushed();
        Ok(())
    }

    /// Whether a flush has failed, so that the device may have forgotten what was written before it.
    pub(crate) fn may_have_forgotten(&self) -> bool {
        self.rewrite_is_due && !is_seeded(SeededFault::ForgottenIsRead)
    }

    /// Fills `into` with what lies, or must lie, at `offset`.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let end = offset + into.len() as u64;
        let youngest = self.unflushed.iter().rev().filter(|_| self.may_have_forgotten());
        let mut pieces =
            youngest.flat_map(|parcel| parcel.pieces.iter().map(move |piece| (parcel, piece)));
        let has_all = |(first, _, range): &&(u64, usize, std::ops::Range<usize>)| {
            *first <= offset && end <= first + range.len() as u64
        };
        if let Some((parcel, (first, buffer, range))) = pieces.find(|(_, piece)| has_all(piece)) {
            let from = range.start + (offset - first) as usize;
            into.copy_from_slice(&parcel.buffers[*buffer][from..from + into.len()]);
            return Ok(());
        }
        read(&self.disk, offset, into)
    }

    /// Sees to it that the records of all groups last.
    pub(crate) fn cover(&mut self) -> Result<(), StoreError> {
        let is_flushed = self.flushed == self.written && !self.rewrite_is_due;
        if !is_flushed && !is_seeded(SeededFault::CheckpointBeforeFlush) {
            self.flush()?;
        }
        if self.unchecked.is_empty() {
            return if is_seeded(SeededFault::CheckpointBeforeFlush) {
                self.flush()
            } else {
                Ok(())
            };
        }
        self.checkpoint()?;
        if is_seeded(SeededFault::CheckpointNotFlushed) {
            self.covered = self.flushed;
            return Ok(());
        }
        self.flush()
    }

    /// Puts into the ring what inline records have said, all of which must be on the medium.
    pub(crate) fn checkpoint(&mut self) -> Result<(), StoreError> {
        if is_seeded(SeededFault::CheckpointBeforeFlush) {
            self.flushed = self.written;
        }
        assert_eq!(self.flushed, self.written, "a checkpoint has only what is on the medium");
        self.rotational_delay.moved();
        let runs = self.unchecked.clone();
        let record = self.ring_record(Kind::Checkpoint, self.flushed, runs);
        let at = self.ring_place(record.blocks(&self.geometry));
        let encoded = record.encode(&self.geometry, at);
        let offset = self.geometry.offset(self.geometry.ring + u64::from(at));
        let mut heads = AlignedBytes::default();
        heads.append(&encoded);
        let pieces = vec![(offset, 1, 0..encoded.len())];
        let parcel = Unflushed { pieces, buffers: [Arc::default(), Arc::new(heads)] };
        let begin_ns = self.now_ns();
        parcel.write(&self.disk)?;
        self.owes_since(begin_ns);
        self.unflushed.push(parcel);
        self.counts.checkpoints += 1;
        self.ring_written(&record, at);
        self.unchecked.clear();
        self.unchecked_first = u64::MAX;
        Ok(())
    }

    /// Writes the map pages that have changed, and the roots; `slots_of` says where blocks are on disk.
    /// The ring is empty afterwards.
    pub(crate) fn write_map(
        &mut self,
        slots_of: &SlotsOf<'_>,
        times: &dyn Fn() -> Vec<agewell_log::SegmentTimes>,
    ) -> Result<(), StoreError> {
        if !self.root_is_due {
            if self.flushed < self.written || self.rewrite_is_due {
                self.flush()?;
            }
            let begin_ns = self.now_ns();
            let pages = self.write_pages(slots_of)?;
            let at_ns = [begin_ns, self.now_ns()];
            if let Some(learning) = &mut self.learning {
                learning.map(&self.geometry, &self.root.pages, &pages, at_ns);
            }
            self.root = Root {
                generation: self.root.generation + 1,
                sequence: self.flushed,
                ring_number: self.ring.number,
                ring_at: self.ring.at,
                incarnation: self.incarnation,
                closed: false,
                mechanism: self.mechanism,
                open: named_by_root(&self.geometry, self.open, &self.announced),
                pages,
                segments: times(),
            };
            // From here on it is this root or none: it may be on the medium already.
            self.root_is_due = true;
        }
        self.rotational_delay.moved();
        for copy in 0..2 {
            self.write_root(copy)?;
        }
        self.root_is_due = false;
        self.counts.maps_written += 1;
        self.ring.used = 0;
        if self.flushed == self.root.sequence {
            self.dirty.fill(0);
            self.unchecked.clear();
            self.unchecked_first = u64::MAX;
            self.covered = self.flushed;
        }
        self.places.root_written(&self.root);
        Ok(())
    }

    /// Writes the root to one of its places, and sees to it that it is on the medium.
    pub(crate) fn write_root(&mut self, copy: u32) -> Result<(), StoreError> {
        let begin_ns = self.now_ns();
        let bytes = self.root.encode(&self.geometry, copy);
        let offset = self.geometry.offset(Root::address(&self.geometry, copy));
        write(&self.disk, &[Piece { offset, data: &bytes }])?;
        if copy == 1 || !is_seeded(SeededFault::RootsInOneFlush) {
            flush(&self.disk)?;
        }
        self.owes_since(begin_ns);
        self.counts.flushes += 1;
        self.counts.map_blocks += u64::from(self.geometry.root_blocks);
        Ok(())
    }

    /// Writes changed pages to the places that the root does not name; the root's table with them.
    fn write_pages(&mut self, slots_of: &SlotsOf<'_>) -> Result<Vec<u64>, StoreError> {
        let (bytes, entries) = (self.block_bytes(), self.geometry.page_entries());
        let mut table = self.root.pages.clone();
        let is_dirty = |page: &u32| self.dirty[(page / 64) as usize] >> (page % 64) & 1 == 1;
        let pages: Vec<u32> = (0..self.geometry.map_pages).filter(is_dirty).collect();
        let blocks_of =
            |page: &u32| page * entries..(page * entries + entries).min(self.geometry.blocks);
        let mut slots = Vec::new();
        let mut encoded = vec![0; PAGES_AT_ONCE.min(pages.len()) * bytes];
        for batch in pages.chunks(PAGES_AT_ONCE) {
            let mut places = Vec::with_capacity(batch.len());
            slots_of(&mut batch.iter().flat_map(blocks_of), &mut slots);
            let mut slots = slots.iter().copied();
            for (page, into) in batch.iter().zip(encoded.chunks_exact_mut(bytes)) {
                let is_named = table[*page as usize] != 0;
                let in_place = is_named && is_seeded(SeededFault::PageInPlace);
                let second = is_named && (table[*page as usize] & 1 == 0) != in_place;
                let all = blocks_of(page)
                    .zip(slots.by_ref())
                    .map(|(block, slot)| self.entry(block, slot));
                let sum = MapPage::encode(&self.geometry, *page, self.flushed, all, into);
                table[*page as usize] = sum & !1 | u64::from(second);
                let address = MapPage::address(&self.geometry, *page, second);
                places.push(self.geometry.offset(address));
            }
            let pieces: Vec<Piece<'_>> = places
                .iter()
                .zip(encoded.chunks_exact(bytes))
                .map(|(offset, data)| Piece { offset: *offset, data })
                .collect();
            write(&self.disk, &pieces)?;
        }
        self.counts.map_blocks += pages.len() as u64;
        if !is_seeded(SeededFault::PagesNotFlushed) {
            flush(&self.disk)?;
        }
        self.counts.flushes += 1;
        Ok(table)
    }

    fn entry(&self, block: u32, slot: u32) -> MapEntry {
        if slot == NONE {
            return MapEntry::NOTHING;
        }
        let sum = self.sums.get(block);
        let damaged = if self.sums.is_damaged(block) { DAMAGED } else { 0 };
        MapEntry { slot: slot | damaged, sum }
    }
}
