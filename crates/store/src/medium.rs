//! The medium: groups carried out on a disk, in their order.
//!
//! A group's data goes to its slots and its records before the data or into the ring, in one call. It is
//! on the medium when a flush has come back. Until then its bytes are kept: if a flush fails, all that
//! was written since the last is written again before the next, because nobody knows what of it the
//! device still has.
//!
//! *Covered* are groups whose records last: those of the ring, and inline ones that a checkpoint has
//! repeated there. What died in them may be written over.

use std::collections::BTreeSet;
use std::sync::Arc;

use agewell_log::OpenSegment;

use crate::StoreError;
use crate::aligned::AlignedBytes;
use crate::device::{Disk, Piece};
use crate::format::{
    DAMAGED, Geometry, InlineRecord, Kind, MapEntry, MapPage, NONE, Named, RingRecord, Root, Run,
    Runs, short_sum,
};
use crate::group::{Group, Origin, PlannedRun};
use crate::seeded::{SeededFault, is_seeded};
use crate::sums::Sums;

/// Bytes written since the last flush after which there is one, so that what is kept stays small;
/// chosen by us.
const UNFLUSHED_BYTES_MAX: usize = 64 << 20;

/// Blocks of inline records after which there is a checkpoint, so that opening reads little; chosen by
/// us: 64 MiB of blocks of 4 KiB.
const UNCHECKED_BLOCKS_MAX: usize = 1 << 14;

/// Times that a block is read before it counts as lost, as it may be the reading that failed; chosen by us.
const READS_MAX: usize = 3;

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
    pub(crate) sums: Arc<Sums>,
    /// A bit for each map page that has changed since it was written.
    pub(crate) dirty: Vec<u64>,
    pub(crate) written: u64,
    pub(crate) flushed: u64,
    pub(crate) covered: u64,
    /// Entries of inline records since the last checkpoint, and the first group among them.
    pub(crate) unchecked: Runs,
    pub(crate) unchecked_first: u64,
    /// Where inline records may go: names of records that last, and where the last inline part ended.
    pub(crate) chain: Vec<u32>,
    chain_coming: Vec<u32>,
    pub(crate) open: Option<OpenSegment>,
    pub(crate) free: Vec<u32>,
    unflushed: Vec<Unflushed>,
    unflushed_bytes: usize,
    rewrite_is_due: bool,
    /// Buffers that are not in use any more.
    pub(crate) spare: Vec<AlignedBytes>,
    pub(crate) counts: MediumCounts,
}

impl<D: Disk> Medium<D> {
    /// Of `disk`, where nothing has been written yet.
    pub(crate) fn new(disk: Arc<D>, geometry: Geometry, sums: Arc<Sums>) -> Self {
        let pages = geometry.map_pages as usize;
        Self {
            disk,
            incarnation: 0,
            ring: Ring::default(),
            root: Root { pages: vec![0; pages], ..Root::default() },
            root_is_due: false,
            sums,
            dirty: vec![0; pages.div_ceil(64)],
            written: 0,
            flushed: 0,
            covered: 0,
            unchecked: Runs::default(),
            unchecked_first: u64::MAX,
            chain: Vec::new(),
            chain_coming: Vec::new(),
            open: None,
            free: Vec::new(),
            unflushed: Vec::new(),
            unflushed_bytes: 0,
            rewrite_is_due: false,
            spare: Vec::new(),
            counts: MediumCounts::default(),
            geometry,
        }
    }

    fn block_bytes(&self) -> usize {
        self.geometry.block_bytes as usize
    }

    /// Carries out `group`, which the last one was before. After an error it may be tried again.
    pub(crate) fn carry_out(&mut self, group: &Group) -> Result<(), StoreError> {
        assert_eq!(group.sequence, self.written + 1, "groups come in their order");
        assert!(!self.root_is_due, "a root that was begun is written first");
        if group.needs_covered > self.covered && !is_seeded(SeededFault::NeedsCoveredIgnored) {
            self.cover()?;
            assert!(group.needs_covered <= self.covered, "what is needed is covered");
        }
        let Gathered { data, entries, bad } = self.collect_data(group);
        let mut composed = self.compose(group, &data, &entries, &bad);
        let (pieces, heads) =
            (std::mem::take(&mut composed.places), std::mem::take(&mut composed.heads));
        let parcel = Unflushed { pieces, buffers: [data, Arc::new(heads)] };
        if let Err(error) = parcel.write(&self.disk)
            && !is_seeded(SeededFault::FailedWriteForgotten)
        {
            return Err(error);
        }
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

    /// The data of `group`: of what is copied, all that is read for it.
    fn collect_data(&mut self, group: &Group) -> Gathered {
        if !group.runs.iter().any(|run| run.origin.copies()) {
            return Gathered { data: Arc::clone(&group.data), ..Gathered::default() };
        }
        assert!(group.data.is_empty(), "copies are groups of their own");
        let bytes = self.block_bytes();
        let blocks = group.reads.iter().map(|read| read.1).sum::<u32>() as usize;
        let mut data = self.spare.pop().unwrap_or_default();
        data.set_length(blocks * bytes);
        let (mut entries, mut bad) = (Vec::with_capacity(group.moves.len()), BTreeSet::new());
        let mut rest = &mut data[..];
        // What has been read: first slot, blocks, and where they are in the buffer.
        let (mut found, mut behind) = (Vec::with_capacity(group.reads.len()), 0);
        for (first, blocks) in &group.reads {
            let into =
                rest.split_off_mut(..*blocks as usize * bytes).expect("there is room for all");
            self.read_or_clear(*first, into);
            found.push((*first, *blocks, behind));
            behind += blocks;
        }
        let mut last = 0;
        for (index, moved) in group.moves.iter().enumerate() {
            let is_in = |read: &(u32, u32, u32)| (read.0..read.0 + read.1).contains(&moved.source);
            if !is_in(&found[last]) {
                last = found.iter().position(is_in).expect("what is copied has been asked for");
            }
            let (first, _, behind) = found[last];
            let entry = behind + moved.source - first;
            entries.push(entry);
            let contents = &mut data[entry as usize * bytes..][..bytes];
            let sum = self.sums.get(moved.block);
            let uuid = &self.geometry.uuid;
            let is_good =
                |contents: &[u8]| short_sum(uuid, moved.block, moved.source, contents) == sum;
            let is_lost = self.sums.is_damaged(moved.block)
                || !is_good(contents)
                    && !(1..READS_MAX).any(|_| {
                        let offset = self.geometry.slot_offset(moved.source);
                        self.disk.read(offset, contents).is_ok() && is_good(contents)
                    });
            if is_lost && !is_seeded(SeededFault::DamageCopiedAsGood) {
                bad.insert(index as u32);
            }
        }
        Gathered { data: Arc::new(data), entries, bad }
    }

    /// Reads the slots from `first` on; those that cannot be read are zeros.
    fn read_or_clear(&self, first: u32, into: &mut [u8]) {
        if read(&self.disk, self.geometry.slot_offset(first), into).is_ok() {
            return;
        }
        // Block by block, so that one that cannot be read takes no others with it.
        for (slot, block) in (first..).zip(into.chunks_exact_mut(self.block_bytes())) {
            if self.disk.read(self.geometry.slot_offset(slot), block).is_err() {
                block.fill(0);
            }
        }
    }

    /// Where in its buffer the data of a move is.
    fn range_of(&self, group: &Group, index: u32, entries: &[u32]) -> std::ops::Range<usize> {
        let bytes = self.block_bytes();
        let entry = match entries.get(index as usize) {
            Some(entry) => *entry,
            None => group.moves[index as usize].source,
        };
        entry as usize * bytes..(entry as usize + 1) * bytes
    }

    /// What is to be written for `group`.
    fn compose(
        &self,
        group: &Group,
        data: &[u8],
        entries: &[u32],
        bad: &BTreeSet<u32>,
    ) -> Composed {
        let (bytes, sequence) = (self.block_bytes(), group.sequence as u32);
        let mut composed = Composed::default();
        for run in &group.runs {
            let mut named = Vec::with_capacity(run.blocks as usize);
            for (index, slot) in (run.first..run.first + run.blocks).zip(run.slot..) {
                let range = self.range_of(group, index, entries);
                let block = group.moves[index as usize].block;
                let mut summed_slot = slot;
                if is_seeded(SeededFault::SumOfOldSlot) && run.origin.copies() {
                    summed_slot = group.moves[index as usize].source;
                }
                let uuid = &self.geometry.uuid;
                let sum = short_sum(uuid, block, summed_slot, &data[range.clone()]);
                named.push(Named { block, sum });
                let offset = self.geometry.slot_offset(slot);
                match composed.places.last_mut() {
                    Some((first, 0, last))
                        if *first + last.len() as u64 == offset && last.end == range.start =>
                    {
                        last.end = range.end;
                    }
                    _ => composed.places.push((offset, 0, range)),
                }
            }
            if bad.range(run.first..run.first + run.blocks).next().is_none() {
                let whole = Run { first: run.slot, blocks: run.blocks, sequence };
                composed.runs.push(whole, named);
            } else {
                for (index, (slot, named)) in (run.first..).zip((run.slot..).zip(named)) {
                    let first = if bad.contains(&index) { slot | DAMAGED } else { slot };
                    composed.runs.push(Run { first, blocks: 1, sequence }, [named]);
                }
            }
        }
        self.compose_records(group, bytes, &mut composed);
        composed
    }

    /// Divides what is to be recorded between inline records and the ring.
    fn compose_records(&self, group: &Group, bytes: usize, composed: &mut Composed) {
        let chain = &mut self.chain.clone();
        let mut in_ring = Runs::default();
        let mut inline: Vec<(u32, Vec<Named>)> = Vec::new();
        let mut origins = group.runs.iter();
        for (run, named) in composed.runs.iter() {
            let planned = origins.next();
            let may = planned.is_some_and(|planned| {
                planned.origin == Origin::Appended && planned.blocks == run.blocks
            });
            let place = run.first.wrapping_sub(1);
            let place_in_chain = chain.iter().position(|next| *next == place);
            let fits = InlineRecord::has_room(&self.geometry, named.len(), 0);
            match place_in_chain {
                Some(index) if may && fits => {
                    chain[index] = self.place_behind(run);
                    inline.push((place, named.to_vec()));
                }
                _ => in_ring.push(run, named.iter().copied()),
            }
        }
        let last = inline.last();
        let freed_fit = last.is_some_and(|(_, named)| {
            InlineRecord::has_room(&self.geometry, named.len(), group.freed.len())
        });
        if !freed_fit {
            in_ring.push_freed(group.sequence as u32, group.freed_blocks());
        }
        let parts = (inline.len() + usize::from(!in_ring.is_empty())) as u16;
        composed.heads = AlignedBytes::zeroed(inline.len() * bytes);
        let last = inline.len().wrapping_sub(1);
        for (part, (slot, data)) in inline.iter().enumerate() {
            let has_freed = part == last && freed_fit;
            let freed = if has_freed { group.freed_blocks().collect() } else { Vec::new() };
            let record = InlineRecord {
                incarnation: self.incarnation,
                sequence: group.sequence,
                flushed: self.flushed_said(group.sequence),
                part: part as u16,
                parts,
                data: data.clone(),
                freed,
            };
            let range = part * bytes..(part + 1) * bytes;
            record.encode(&self.geometry, *slot, &mut composed.heads[range.clone()]);
            composed.places.push((self.geometry.slot_offset(*slot), 1, range));
        }
        composed.freed_inline = freed_fit;
        composed.inline =
            inline.into_iter().map(|(slot, data)| (slot, data.len() as u32)).collect();
        if !in_ring.is_empty() {
            let kind = Kind::Part { part: parts - 1, parts };
            let mut record = self.ring_record(kind, group.sequence, in_ring);
            record.open = self.open_after(&group.runs).into_iter().collect();
            record.announced.clone_from(&group.free);
            let at = self.ring_place(record.blocks(&self.geometry));
            let encoded = record.encode(&self.geometry, at);
            let range = composed.heads.len()..composed.heads.len() + encoded.len();
            composed.heads.append(&encoded);
            let address = self.geometry.ring + u64::from(at);
            composed.places.push((self.geometry.offset(address), 1, range));
            composed.ring = Some((record, at));
        }
        // Neighbours behind one another: a record and its data go together.
        composed.places.sort_unstable_by_key(|place| place.0);
    }

    /// Where the next inline record goes behind that of `run`: nowhere behind the end of its segment, as
    /// a reader does not go on into the one that happens to lie there.
    fn place_behind(&self, run: Run) -> u32 {
        let next = run.first + run.blocks;
        let is_in_next = next.is_multiple_of(self.geometry.segment_blocks);
        if is_in_next && !is_seeded(SeededFault::ChainCrossesSegment) { NONE } else { next }
    }

    /// The open segment once `runs` are there.
    fn open_after(&self, runs: &[PlannedRun]) -> Option<OpenSegment> {
        let Some(last) = runs.iter().rfind(|run| run.origin.appends()) else { return self.open };
        let early = u32::from(is_seeded(SeededFault::OpenOneTooEarly));
        let (next, blocks) = (last.slot + last.blocks - early, self.geometry.segment_blocks);
        let open = OpenSegment { segment: last.slot / blocks, next, log: 0 };
        (next % blocks > 0).then_some(open)
    }

    /// What a record says was flushed before it.
    fn flushed_said(&self, sequence: u64) -> u64 {
        if is_seeded(SeededFault::FlushedTooFar) { sequence } else { self.flushed }
    }

    fn ring_record(&self, kind: Kind, sequence: u64, runs: Runs) -> RingRecord {
        RingRecord {
            incarnation: self.incarnation,
            number: self.ring.number,
            sequence,
            flushed: self.flushed_said(sequence),
            kind,
            open: self.open.into_iter().collect(),
            announced: self.free.clone(),
            runs,
        }
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
        self.chain_coming.clear();
        self.chain_coming.extend(record.open.iter().map(|open| open.next));
        let first = |segment: &u32| segment * self.geometry.segment_blocks;
        self.chain_coming.extend(record.announced.iter().map(first));
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
        // What inline records say is repeated in the next checkpoint.
        for (run, named) in composed.runs.iter() {
            let place = run.first.wrapping_sub(1);
            if composed.inline.contains(&(place, run.blocks)) {
                self.unchecked.push(run, named.iter().copied());
                let behind = self.place_behind(run);
                let named = self.chain.iter_mut().chain(&mut self.chain_coming);
                named.filter(|next| **next == place).for_each(|next| *next = behind);
            }
        }
        if composed.freed_inline {
            self.unchecked.push_freed(sequence, group.freed_blocks());
        }
        if !composed.inline.is_empty() {
            self.unchecked_first = self.unchecked_first.min(group.sequence);
        }
        self.open = self.open_after(&group.runs);
        if !group.free.is_empty() {
            self.free.clone_from(&group.free);
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
        if self.rewrite_is_due {
            self.unflushed.iter().try_for_each(|parcel| parcel.write(&self.disk))?;
        }
        self.rewrite_is_due = !is_seeded(SeededFault::NotWrittenAgain);
        if is_seeded(SeededFault::FailedFlushForgotten) {
            (self.flushed, self.rewrite_is_due) = (self.written, false);
        }
        flush(&self.disk)?;
        self.rewrite_is_due = false;
        self.counts.flushes += 1;
        self.unflushed_bytes = 0;
        for parcel in self.unflushed.drain(..) {
            let [data, _] = parcel.buffers;
            self.spare.extend(Arc::into_inner(data).filter(|_| self.spare.len() < SPARES_MAX));
        }
        self.flushed = self.written;
        self.covered = self.flushed.min(self.unchecked_first - 1);
        if !self.chain_coming.is_empty() {
            self.chain = std::mem::take(&mut self.chain_coming);
        }
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
        let runs = self.unchecked.clone();
        let record = self.ring_record(Kind::Checkpoint, self.flushed, runs);
        let at = self.ring_place(record.blocks(&self.geometry));
        let encoded = record.encode(&self.geometry, at);
        let offset = self.geometry.offset(self.geometry.ring + u64::from(at));
        let mut heads = AlignedBytes::default();
        heads.append(&encoded);
        let pieces = vec![(offset, 1, 0..encoded.len())];
        let parcel = Unflushed { pieces, buffers: [Arc::default(), Arc::new(heads)] };
        parcel.write(&self.disk)?;
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
        closes: bool,
    ) -> Result<(), StoreError> {
        if !self.root_is_due {
            if self.flushed < self.written || self.rewrite_is_due {
                self.flush()?;
            }
            let pages = self.write_pages(slots_of)?;
            self.root = Root {
                generation: self.root.generation + 1,
                sequence: self.flushed,
                ring_number: self.ring.number,
                ring_at: self.ring.at,
                incarnation: self.incarnation,
                closed: closes,
                open: self.open.into_iter().collect(),
                pages,
                segments: times(),
            };
            // From here on it is this root or none: it may be on the medium already.
            self.root_is_due = true;
        }
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
        self.chain.clear();
        self.chain_coming.clear();
        self.chain.extend(self.open.iter().map(|open| open.next));
        Ok(())
    }

    /// Writes the root to one of its places, and sees to it that it is on the medium.
    pub(crate) fn write_root(&mut self, copy: u32) -> Result<(), StoreError> {
        let bytes = self.root.encode(&self.geometry, copy);
        let offset = self.geometry.offset(Root::address(&self.geometry, copy));
        write(&self.disk, &[Piece { offset, data: &bytes }])?;
        if copy == 1 || !is_seeded(SeededFault::RootsInOneFlush) {
            flush(&self.disk)?;
        }
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

    /// Gives every map page the same at both places, so that one may be lost.
    pub(crate) fn copy_pages(&mut self) -> Result<(), StoreError> {
        let bytes = self.block_bytes();
        let mut page_bytes = vec![0; bytes];
        for page in 0..self.geometry.map_pages {
            let named = self.root.pages[page as usize];
            if named == 0 {
                continue;
            }
            let is_second = named & 1 == 1;
            let from = self.geometry.offset(MapPage::address(&self.geometry, page, is_second));
            let other = self.geometry.offset(MapPage::address(&self.geometry, page, !is_second));
            read(&self.disk, from, &mut page_bytes)?;
            let sum = MapPage::check(&self.geometry, page, &page_bytes).map(|(_, sum)| sum);
            if sum.is_none_or(|sum| (sum ^ named) & !1 != 0) {
                continue;
            }
            let mut there = vec![0; bytes];
            read(&self.disk, other, &mut there)?;
            if there != page_bytes {
                write(&self.disk, &[Piece { offset: other, data: &page_bytes }])?;
                self.counts.map_blocks += 1;
            }
        }
        flush(&self.disk)
    }
}

/// The data of a group.
#[derive(Debug, Default)]
struct Gathered {
    data: Arc<AlignedBytes>,
    /// Of copies, which block of the data is that of each move.
    entries: Vec<u32>,
    /// Moves whose data cannot be read.
    bad: BTreeSet<u32>,
}

/// What is to be written for a group.
#[derive(Debug, Default)]
struct Composed {
    /// All runs with their blocks, those that were damaged apart.
    runs: Runs,
    /// Records.
    heads: AlignedBytes,
    /// Where each piece goes, in which buffer it is (0 data, 1 records), and from where to where.
    places: Vec<(u64, usize, std::ops::Range<usize>)>,
    /// Slots of inline records, and how many blocks each has.
    inline: Vec<(u32, u32)>,
    freed_inline: bool,
    ring: Option<(RingRecord, u32)>,
}
