//! Reading a store: what its map, its ring and its segments say, after a crash as after a closing.
//!
//! Nothing is written here. The steps are those of `docs/internals/format.md`, "What a reader does".

mod entries;
mod inline_records;
mod read_ahead;

use std::collections::{BTreeMap, BTreeSet};

use agewell_core::SECTOR_BYTES;
use agewell_log::OpenSegment;

use crate::StoreError;
use crate::aligned::AlignedBytes;
use crate::device::Disk;
use crate::format::{
    DAMAGED, Geometry, InlineRecord, Kind, MapPage, NONE, Named, RING_RECORD_BLOCKS_MAX,
    RingRecord, Root, Run, Runs, short_sum,
};
use crate::medium::{Ring, read, read_blocks};
use crate::seeded::{SeededFault, is_seeded};

use self::entries::{Changed, Entries};
use self::read_ahead::ReadAhead;

/// Map pages that are read at once, both places of each; chosen by us: 4 MiB of blocks of 4 KiB.
const PAGES_AT_ONCE: u32 = 512;

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) geometry: Geometry,
    pub(crate) root: Root,
    /// Where copies of the superblock lie that are not the same.
    pub(crate) stale_superblocks: Vec<u64>,
    /// Copies of the root that are not the same.
    pub(crate) stale_roots: Vec<u32>,
    /// The slot of each block.
    pub(crate) map: Vec<u32>,
    pub(crate) sums: Vec<u32>,
    pub(crate) damaged: BTreeSet<u32>,
    /// Blocks whose entries are not those of their map page, and some beside them.
    pub(crate) changed: Changed,
    pub(crate) open: Option<OpenSegment>,
    /// First slots that the last ring record names, or the root if there is none, one a segment.
    pub(crate) named: Vec<u32>,
    /// Ring records that were found as copies, and where they belong.
    pub(crate) copies: Vec<(u32, RingRecord)>,
    /// Where the next ring record goes.
    pub(crate) ring: Ring,
    pub(crate) incarnation: u32,
    /// The last group that is there.
    pub(crate) sequence: u64,
    /// What inline records say that no checkpoint has.
    pub(crate) unchecked: Runs,
    pub(crate) unchecked_first: u64,
    /// Groups that were found behind the map.
    pub(crate) replayed: u64,
    /// Whether something was found that had not become whole.
    pub(crate) dropped: u64,
}

/// The first and the last bytes of a disk, where copies of the superblock lie in blocks of whatever size:
/// read at once, as every size is tried.
struct Ends([(u64, Vec<u8>); 2]);

impl Ends {
    /// Two blocks of the largest size.
    const BYTES: u64 = 128 << 10;

    /// Those of `disk`; nothing of an end that cannot be read.
    fn read(disk: &impl Disk, size: u64) -> Self {
        let size = size / SECTOR_BYTES * SECTOR_BYTES;
        let part = |from: u64, to: u64| {
            let mut bytes = vec![0; (to - from) as usize];
            if read(disk, from, &mut bytes).is_err() {
                bytes.clear();
            }
            (from, bytes)
        };
        Self([part(0, size.min(Self::BYTES)), part(size.saturating_sub(Self::BYTES), size)])
    }

    /// Fills `into` with what lies from byte `offset` on, if that was read.
    fn copy(&self, offset: u64, into: &mut [u8]) -> bool {
        let there = self.0.iter().find_map(|(first, bytes)| {
            let from = offset.checked_sub(*first)? as usize;
            bytes.get(from..from.checked_add(into.len())?)
        });
        there.inspect(|there| into.copy_from_slice(there)).is_some()
    }
}

/// The superblock of `disk`, and where copies of it lie that are not the same.
pub(crate) fn geometry(disk: &impl Disk) -> Result<(Geometry, Vec<u64>), StoreError> {
    let size = disk.size_bytes();
    let ends = Ends::read(disk, size);
    let (mut refused, mut unread) = (None, None);
    let mut best: Option<Geometry> = None;
    let mut copies = Vec::new();
    for shift in 9..=16 {
        let block_bytes = 1_u32 << shift;
        if size < 3 * u64::from(block_bytes) {
            continue;
        }
        let mut bytes = vec![0; block_bytes as usize];
        copies.clear();
        for address in Geometry::superblocks(size, block_bytes) {
            let offset = address * u64::from(block_bytes);
            if !ends.copy(offset, &mut bytes)
                && let Err(error) = read(disk, offset, &mut bytes)
            {
                unread = Some(error);
                continue;
            }
            match Geometry::decode(&bytes, address) {
                Ok(Some(found)) => {
                    copies.push((address, Some(found.clone())));
                    if best.as_ref().is_none_or(|best| found.generation > best.generation) {
                        best = Some(found);
                    }
                }
                Ok(None) => copies.push((address, None)),
                Err(error) => refused = Some(error),
            }
        }
        // What lies beyond in blocks of another size is of a store that was here before.
        if best.is_some() {
            break;
        }
    }
    let nothing =
        || StoreError::format(0, "there is no store here; make one by `agewell store format`");
    let geometry = best.ok_or_else(|| refused.or(unread).unwrap_or_else(nothing))?;
    if geometry.offset(geometry.used_blocks) > size {
        let what = format!(
            "the store is {} bytes long and the device {size}: a part of it is missing",
            geometry.offset(geometry.used_blocks)
        );
        return Err(StoreError::format(0, what));
    }
    let differs = |copy: &Option<Geometry>| copy.as_ref() != Some(&geometry);
    let stale = copies.into_iter().filter(|(_, copy)| differs(copy));
    let stale = stale.map(|(address, _)| address).collect();
    Ok((geometry, stale))
}

/// A part of a group.
#[derive(Debug)]
struct Part {
    number: u16,
    parts: u16,
    runs: Runs,
    /// The open segment behind it; of an inline part, where its data behind it ends.
    open: Option<OpenSegment>,
    /// Whether it says that there is one or none.
    says_open: bool,
    is_inline: bool,
}

/// What the ring says.
#[derive(Debug, Default)]
struct RingRead {
    records: Vec<RingRecord>,
    ring: Ring,
    incarnation: u32,
    flushed: u64,
    covered: u64,
    /// Records that lie behind its end, where one is missing.
    ahead: Vec<RingRecord>,
}

/// Parts of groups by the groups' sequences.
type Groups = BTreeMap<u64, Vec<Part>>;

/// Copies of ring records by their numbers, and where they begin.
type Copies = BTreeMap<u64, (u32, RingRecord)>;

/// The copy in a record, if it is that of ring record `number`.
fn copy_of(copy: &[u8], number: u64) -> Option<(u32, RingRecord)> {
    RingRecord::of_copy(copy).filter(|(_, record)| record.number == number)
}

/// Reads the store on `disk`.
pub(crate) fn find(disk: &impl Disk) -> Result<Found, StoreError> {
    let (geometry, stale_superblocks) = geometry(disk)?;
    let root = root(disk, &geometry)?;
    let (root, stale_roots) = root;
    let mut found = Found {
        stale_superblocks,
        stale_roots,
        // Memory that is touched first by the thread that reads the map.
        map: vec![0; geometry.blocks as usize],
        sums: vec![0; geometry.blocks as usize],
        damaged: BTreeSet::new(),
        changed: Changed::default(),
        open: root.open.iter().copied().find(|open| {
            // The others are only announced.
            !open.next.is_multiple_of(geometry.segment_blocks)
        }),
        named: root.open.iter().map(|open| open.next).collect(),
        copies: Vec::new(),
        ring: Ring::default(),
        incarnation: root.incarnation,
        sequence: root.sequence,
        unchecked: Runs::default(),
        unchecked_first: u64::MAX,
        replayed: 0,
        dropped: 0,
        geometry,
        root,
    };
    found.read_map(disk)?;
    let ring_end = found.geometry.ring + u64::from(found.geometry.ring_blocks);
    let ahead = ReadAhead::new(disk, found.geometry.offset(ring_end));
    let mut copies = Copies::new();
    let (ring, mut groups) = loop {
        let mut ring = found.read_ring(&ahead, &copies)?;
        let (groups, copy) = found.read_inline(disk, &mut ring, &copies)?;
        match copy {
            Some(copy) => copies.insert(copy.1.number, copy),
            None => break (ring, groups),
        };
    };
    found.copies = copies.into_values().collect();
    found.ring = ring.ring;
    found.incarnation = ring.incarnation;
    if let Some(last) = ring.records.last() {
        let first = |segment: &u32| segment.checked_mul(found.geometry.segment_blocks);
        let announced = last.announced.iter().filter_map(first);
        found.named = last.open.iter().map(|open| open.next).chain(announced).collect();
    }
    let mut entries = Entries::default();
    let (covered, flushed) = (ring.covered, ring.flushed);
    let mut opens: Vec<(u64, Option<OpenSegment>)> = Vec::new();
    for record in ring.records {
        let open = record.open_behind();
        match record.kind {
            Kind::Checkpoint => {
                opens.push((record.sequence, open));
                for (run, named) in record.runs.iter() {
                    entries.push(whole(run.sequence, record.sequence), run, named);
                }
            }
            Kind::Part { part, parts, covers } => {
                if covers {
                    opens.push((record.flushed, record.open_before()));
                }
                let mut runs = Runs::default();
                for (run, named) in record.runs.iter() {
                    if covers && run.sequence != record.sequence as u32 {
                        entries.push(whole(run.sequence, record.flushed), run, named);
                    } else {
                        runs.push(run, named.iter().copied());
                    }
                }
                let of = groups.entry(record.sequence).or_default();
                of.push(Part {
                    number: part,
                    parts,
                    runs,
                    open,
                    says_open: true,
                    is_inline: false,
                });
            }
        }
    }
    found.apply_parts(disk, groups, (covered, flushed), &mut entries, &mut opens)?;
    if !is_seeded(SeededFault::OrderForgotten) {
        entries.sort();
    }
    opens.sort_by_key(|open| open.0);
    if let Some((_, open)) = opens.last() {
        found.open = *open;
    }
    found.apply(&entries)?;
    found.replayed = found.sequence - found.root.sequence;
    Ok(found)
}

/// The number not above `most` whose low 32 bits are `low`.
fn whole(low: u32, most: u64) -> u64 {
    let same = most & !u64::from(u32::MAX) | u64::from(low);
    if same > most { same.wrapping_sub(1 << 32) } else { same }
}

/// The current root, and the copies that are not the same.
fn root(disk: &impl Disk, geometry: &Geometry) -> Result<(Root, Vec<u32>), StoreError> {
    let (mut copies, mut unread) = ([None, None], None);
    for copy in 0..2 {
        let mut bytes = vec![0; geometry.root_blocks as usize * geometry.block_bytes as usize];
        if let Err(error) = read(disk, geometry.offset(Root::address(geometry, copy)), &mut bytes) {
            unread = Some(error);
            continue;
        }
        copies[copy as usize] = Root::decode(geometry, copy, &bytes);
    }
    let best = copies.iter().flatten().max_by_key(|root| root.generation).cloned();
    let offset = geometry.offset(geometry.roots);
    let best = best.ok_or_else(|| {
        unread.unwrap_or_else(|| {
            StoreError::format(offset, "both roots are damaged; try `agewell store salvage`")
        })
    })?;
    let stale = (0..2).filter(|copy| copies[*copy as usize].as_ref() != Some(&best)).collect();
    Ok((best, stale))
}

impl Found {
    /// Reads the map; a large one by two threads, of which one checks what the other waits for.
    fn read_map(&mut self, disk: &impl Disk) -> Result<(), StoreError> {
        let (geometry, named) = (&self.geometry, &mut self.root.pages);
        named.resize(geometry.map_pages as usize, 0);
        let middle = geometry.map_pages / 2 / PAGES_AT_ONCE * PAGES_AT_ONCE;
        let blocks = (middle * geometry.page_entries()) as usize;
        let (map, more_map) = self.map.split_at_mut(blocks);
        let (sums, more_sums) = self.sums.split_at_mut(blocks);
        let (named, more_named) = named.split_at_mut(middle as usize);
        let low = Pages { geometry, first: 0, named, map, sums };
        let high =
            Pages { geometry, first: middle, named: more_named, map: more_map, sums: more_sums };
        let (low, high) = if middle == 0 {
            (Ok(Vec::new()), high.read(disk))
        } else {
            std::thread::scope(|scope| {
                let low = scope.spawn(|| low.read(disk));
                let high = high.read(disk);
                (low.join().expect("a page is read or not"), high)
            })
        };
        self.damaged = low?.into_iter().chain(high?).collect();
        Ok(())
    }

    fn read_ring(&self, disk: &impl Disk, copies: &Copies) -> Result<RingRead, StoreError> {
        let (geometry, root) = (&self.geometry, &self.root);
        let mut read = RingRead {
            ring: Ring { number: root.ring_number, at: root.ring_at, used: 0 },
            incarnation: root.incarnation,
            flushed: root.sequence,
            covered: root.sequence,
            ..RingRead::default()
        };
        while let Some((mut record, at)) = next_ring_record(disk, geometry, &read, copies)? {
            let blocks = record.blocks(geometry);
            let skipped = if at == read.ring.at { 0 } else { geometry.ring_blocks - read.ring.at };
            if read.ring.used + blocks + skipped > geometry.ring_blocks {
                break;
            }
            if record.kind == Kind::Checkpoint {
                if record.incarnation > read.incarnation {
                    // What had not become whole before does not come back.
                    let sequence = record.sequence;
                    let is_dropped = |before: &RingRecord| {
                        before.kind != Kind::Checkpoint
                            && before.sequence > sequence
                            && !is_seeded(SeededFault::DroppedPartsComeBack)
                    };
                    read.records.retain_mut(|before| {
                        !is_dropped(before)
                            || before.covers() && {
                                before.drop_part();
                                true
                            }
                    });
                }
                read.covered = read.covered.max(record.sequence);
            } else if record.incarnation > read.incarnation {
                break;
            } else if record.covers() {
                read.covered = read.covered.max(record.flushed);
            }
            read.incarnation = record.incarnation;
            read.flushed = read.flushed.max(record.flushed).max(read.covered);
            read.ring.used += blocks + skipped;
            read.ring.at = at + blocks;
            read.ring.number += 1;
            record.copy.clear();
            read.records.push(record);
        }
        // Behind a record that is damaged there may be others, which say what was acknowledged.
        let ahead = RING_RECORD_BLOCKS_MAX.min(geometry.ring_blocks);
        for step in 0..ahead {
            let at = (read.ring.at + step) % geometry.ring_blocks;
            if let Ok(Some(record)) = record_at(disk, geometry, at)
                && record.number >= read.ring.number
                && record.incarnation >= read.incarnation
            {
                read.flushed = read.flushed.max(record.flushed);
                read.ahead.push(record);
            }
        }
        Ok(read)
    }

    /// Inline records behind what is covered, as parts of their groups; or a copy of the ring record that is
    /// missing, if there is one that was not yet among `copies`.
    fn read_inline(
        &self,
        disk: &impl Disk,
        ring: &mut RingRead,
        copies: &Copies,
    ) -> Result<(Groups, Option<(u32, RingRecord)>), StoreError> {
        let geometry = &self.geometry;
        let from = ring.records.iter().rposition(RingRecord::covers).unwrap_or(0);
        // A checkpoint may be of what was flushed when those before it were not yet named twice.
        let recent = &ring.records[from.saturating_sub(2)..];
        let mut places: Vec<u32> = self.root.open.iter().map(|open| open.next).collect();
        for record in recent.iter().chain(&ring.ahead) {
            places.extend(record.open.iter().map(|open| open.next));
            let first = |segment: &u32| segment.checked_mul(geometry.segment_blocks);
            places.extend(record.announced.iter().filter_map(first));
        }
        places.sort_unstable();
        places.dedup();
        let found =
            inline_records::find(disk, geometry, &places, (ring.incarnation, ring.covered))?;
        let number = ring.ring.number;
        let ahead = ring.ahead.iter().map(|record| &record.copy);
        let mut all = ahead.chain(found.iter().map(|(_, record)| &record.copy));
        let copy = all.find_map(|copy| copy_of(copy, number));
        if copy.is_some() && !copies.contains_key(&number) {
            return Ok((Groups::new(), copy));
        }
        let mut groups = Groups::new();
        for (slot, record) in found {
            if record.incarnation > ring.incarnation {
                let offset = geometry.offset(geometry.ring + u64::from(ring.ring.at));
                let what = format!(
                    "the ring record that opening {} of the store wrote is damaged; `agewell store \
                     salvage` copies out the rest",
                    record.incarnation
                );
                return Err(StoreError::format(offset, what));
            }
            ring.flushed = ring.flushed.max(record.flushed);
            let of = groups.entry(record.sequence).or_default();
            if of.iter().all(|part| part.number != record.part) {
                of.push(inline_part(geometry, slot, record));
            }
        }
        Ok((groups, None))
    }

    /// Groups as long as they are whole: their entries, and the open segment behind each.
    fn apply_parts(
        &mut self,
        disk: &impl Disk,
        groups: Groups,
        (covered, flushed): (u64, u64),
        entries: &mut Entries,
        opens: &mut Vec<(u64, Option<OpenSegment>)>,
    ) -> Result<(), StoreError> {
        let last = self.last_group(disk, &groups, (covered, flushed))?;
        self.sequence = last;
        if last < flushed {
            return Err(self.lost(last + 1, flushed));
        }
        for (sequence, mut parts) in groups {
            if sequence > last {
                self.dropped += 1;
                continue;
            }
            parts.sort_by_key(|part| part.number);
            for part in parts {
                opens.extend(part.says_open.then_some((sequence, part.open)));
                for (run, named) in part.runs.iter() {
                    entries.push(sequence, run, named);
                    if part.is_inline {
                        self.unchecked.push(run, named.iter().copied());
                        self.unchecked_first = self.unchecked_first.min(sequence);
                    }
                }
            }
        }
        Ok(())
    }

    /// The last group that counts: all up to it have all their parts, and every block, as they leave it, is
    /// what they say. What one of them has put somewhere and a later one has moved on need not be there
    /// any more: it may have been written over as soon as that was flushed.
    fn last_group(
        &self,
        disk: &impl Disk,
        groups: &Groups,
        (covered, flushed): (u64, u64),
    ) -> Result<u64, StoreError> {
        let (mut last, mut next) = (covered, covered + 1);
        // Blocks that are not as the last group that names them says.
        let mut missing: BTreeSet<u32> = BTreeSet::new();
        for (sequence, parts) in groups.range(covered + 1..) {
            let counts = *sequence == next && is_whole(parts);
            if !counts && !is_seeded(SeededFault::FirstGapIgnored) {
                break;
            }
            next = sequence + 1;
            if *sequence <= flushed {
                last = *sequence;
                continue;
            }
            for (run, named) in parts.iter().flat_map(|part| part.runs.iter()) {
                for (index, named) in (0..).zip(named) {
                    if self.is_there(disk, &run, index, *named)? {
                        missing.remove(&named.block);
                    } else {
                        missing.insert(named.block);
                    }
                }
            }
            if missing.is_empty() {
                last = *sequence;
            } else if is_seeded(SeededFault::SupersededVerified) {
                break;
            }
        }
        Ok(last)
    }

    fn lost(&self, sequence: u64, flushed: u64) -> StoreError {
        let offset = self.geometry.offset(self.geometry.segments_start);
        let what = format!(
            "group {sequence} was acknowledged, as group {flushed} was, and its record is damaged; \
             `agewell store salvage` copies out the rest"
        );
        StoreError::format(offset, what)
    }

    /// Whether the data of block `index` of `run` is what its record says.
    fn is_there(
        &self,
        disk: &impl Disk,
        run: &Run,
        index: u32,
        named: Named,
    ) -> Result<bool, StoreError> {
        let geometry = &self.geometry;
        let has_none = run.first == NONE || run.first & DAMAGED != 0;
        if has_none || is_seeded(SeededFault::DataNotVerified) {
            return Ok(true);
        }
        let slot = run.first.saturating_add(index);
        if slot >= geometry.slots() {
            return Ok(false);
        }
        let mut bytes = vec![0; geometry.block_bytes as usize];
        read(disk, geometry.slot_offset(slot), &mut bytes)?;
        Ok(short_sum(&geometry.uuid, named.block, slot, &bytes) == named.sum)
    }

    /// Has the map say what `entries` say.
    fn apply(&mut self, entries: &Entries) -> Result<(), StoreError> {
        let (root, blocks) = (self.root.sequence, self.geometry.blocks);
        if let Some(block) = entries.blocks_behind(root).find(|block| *block >= blocks) {
            let offset = self.geometry.offset(self.geometry.ring);
            let what = format!("a record names block {block}, which there cannot be");
            return Err(StoreError::format(offset, what));
        }
        self.changed = entries.apply(root, &mut self.map, &mut self.sums);
        entries.apply_damage(root, &mut self.damaged);
        Ok(())
    }
}

/// Map pages that follow one another, and what they say of their blocks.
struct Pages<'a> {
    geometry: &'a Geometry,
    first: u32,
    /// What the root names of each.
    named: &'a mut [u64],
    map: &'a mut [u32],
    sums: &'a mut [u32],
}

impl Pages<'_> {
    /// Reads all of them, and gives the blocks that are damaged.
    fn read(mut self, disk: &impl Disk) -> Result<Vec<u32>, StoreError> {
        let (geometry, bytes) = (self.geometry, self.geometry.block_bytes as usize);
        let mut damaged = Vec::new();
        let mut places = [AlignedBytes::default(), AlignedBytes::default()];
        for from in (0..self.named.len()).step_by(PAGES_AT_ONCE as usize) {
            let named = &self.named[from..];
            let pages = named.len().min(PAGES_AT_ONCE as usize);
            let first = self.first + from as u32;
            let mut unread = None;
            // Of places apart those are read that are named; else both lie together.
            for second in [false, true] {
                let names = |named: &u64| *named != 0 && *named & 1 == u64::from(second);
                let any = if geometry.is_apart {
                    named[..pages].iter().any(names)
                } else {
                    !second && named[..pages].iter().any(|named| *named != 0)
                };
                let into = &mut places[usize::from(second)];
                let places = if geometry.is_apart { 1 } else { 2 };
                into.set_length(usize::from(any) * places * pages * bytes);
                if any {
                    let offset = geometry.offset(MapPage::address(geometry, first, second));
                    read_blocks(disk, offset, bytes, into, |_, error| unread = Some(error));
                }
            }
            for (index, page) in (0..pages).zip(first..) {
                let at = |place: usize, block: usize| {
                    places[place].get(block * bytes..(block + 1) * bytes)
                };
                let both = if geometry.is_apart {
                    [at(0, index), at(1, index)]
                } else {
                    [at(0, 2 * index), at(0, 2 * index + 1)]
                };
                if self.take(page, both, &mut damaged) || self.take_other(disk, page, &mut damaged)
                {
                    continue;
                }
                let second = self.named[(page - self.first) as usize] & 1 == 1;
                let offset = geometry.offset(MapPage::address(geometry, page, second));
                let what = format!(
                    "page {page} of the map is damaged at both its places; `agewell store \
                     salvage` copies out the rest"
                );
                return Err(unread.unwrap_or_else(|| StoreError::format(offset, what)));
            }
        }
        Ok(damaged)
    }

    /// Takes over what page `page` says at the place that the root does not name; false if it is not there.
    fn take_other(&mut self, disk: &impl Disk, page: u32, damaged: &mut Vec<u32>) -> bool {
        let geometry = self.geometry;
        let second = self.named[(page - self.first) as usize] & 1 == 0;
        let mut other = vec![0; geometry.block_bytes as usize];
        let offset = geometry.offset(MapPage::address(geometry, page, second));
        let is_read = disk.read(offset, &mut other).is_ok();
        let both = if second { [None, Some(&other[..])] } else { [Some(&other[..]), None] };
        is_read && self.take(page, both, damaged)
    }

    /// Takes over what page `page` says, of which `places` have been read; false if it is at none of them.
    fn take(&mut self, page: u32, places: [Option<&[u8]>; 2], damaged: &mut Vec<u32>) -> bool {
        let geometry = self.geometry;
        let named = &mut self.named[(page - self.first) as usize];
        let entries = geometry.page_entries();
        let from = ((page - self.first) * entries) as usize;
        let behind = (from + entries as usize).min(self.map.len());
        if *named == 0 {
            self.map[from..behind].fill(NONE);
            return true;
        }
        let is_it = |bytes: &&[u8]| {
            MapPage::check(geometry, page, bytes).is_some_and(|(_, sum)| (sum ^ *named) & !1 == 0)
        };
        let is_second = *named & 1 == 1;
        let mut current = [is_second, !is_second]
            .into_iter()
            .filter_map(|second| Some((second, places[usize::from(second)].filter(is_it)?)));
        let Some((second, bytes)) = current.next() else { return false };
        // What is written next goes to the other, which may be damaged.
        *named = *named & !1 | u64::from(second);
        let blocks = page * entries..;
        let into = self.map[from..behind].iter_mut().zip(&mut self.sums[from..behind]);
        for ((block, entry), (slot, sum)) in blocks.zip(MapPage::entries(bytes)).zip(into) {
            (*slot, *sum) = (entry.slot, entry.sum);
            if entry.slot >= DAMAGED && entry.slot != NONE {
                *slot &= !DAMAGED;
                damaged.push(block);
            }
        }
        true
    }
}

/// The record that follows on what was `read`: behind it, or at the ring's beginning, or that of `copies`.
///
/// Behind it there may lie one of the same number from before an opening, where one did not fit afterwards.
fn next_ring_record(
    disk: &impl Disk,
    geometry: &Geometry,
    read: &RingRead,
    copies: &Copies,
) -> Result<Option<(RingRecord, u32)>, StoreError> {
    let number = read.ring.number;
    let of_any = is_seeded(SeededFault::IncarnationOfRingIgnored);
    let follows = |record: &RingRecord| {
        record.number == number && (record.incarnation >= read.incarnation || of_any)
    };
    let places = [read.ring.at, 0];
    let copy = copies.get(&number);
    if let Some((at, record)) = copy.filter(|(at, one)| places.contains(at) && follows(one)) {
        return Ok(Some((record.clone(), *at)));
    }
    for at in places.into_iter().filter(|at| *at < geometry.ring_blocks) {
        if let Some(record) = record_at(disk, geometry, at)?.filter(follows) {
            return Ok(Some((record, at)));
        }
    }
    Ok(None)
}

/// The record at `at`, if there is one.
fn record_at(
    disk: &impl Disk,
    geometry: &Geometry,
    at: u32,
) -> Result<Option<RingRecord>, StoreError> {
    let bytes = geometry.block_bytes as usize;
    let offset = geometry.offset(geometry.ring + u64::from(at));
    let mut first = vec![0; bytes];
    let is_read = read(disk, offset, &mut first);
    if is_seeded(SeededFault::UnreadableIsAbsent) && is_read.is_err() {
        return Ok(None);
    }
    is_read?;
    let Some(length) = RingRecord::length(geometry, at, &first) else { return Ok(None) };
    if length > 1 {
        first.resize(length as usize * bytes, 0);
        read(disk, offset + bytes as u64, &mut first[bytes..])?;
    }
    Ok(RingRecord::decode(geometry, at, &first))
}

fn inline_part(geometry: &Geometry, slot: u32, record: InlineRecord) -> Part {
    let sequence = record.sequence as u32;
    let mut runs = Runs::default();
    let blocks = record.data.len() as u32;
    let (mut open, says_open) = (None, record.runs.is_empty() && blocks > 0);
    let mut named = record.data.into_iter();
    for (first, blocks) in &record.runs {
        let run = Run { first: *first, blocks: *blocks, sequence };
        runs.push(run, named.by_ref().take(*blocks as usize));
    }
    if says_open {
        runs.push(Run { first: slot + 1, blocks, sequence }, named);
        let next = slot + 1 + blocks;
        let segment = slot / geometry.segment_blocks;
        let is_full = next.is_multiple_of(geometry.segment_blocks);
        open = (!is_full).then_some(OpenSegment { segment, next, log: 0 });
    }
    runs.push_freed(sequence, record.freed.into_iter());
    Part { number: record.part, parts: record.parts, runs, open, says_open, is_inline: true }
}

/// Whether every part is there, and once.
fn is_whole(parts: &[Part]) -> bool {
    if is_seeded(SeededFault::PartCountIgnored) {
        return true;
    }
    let all = parts[0].parts;
    let mut there: Vec<u16> = parts.iter().map(|part| part.number).collect();
    there.sort_unstable();
    parts.iter().all(|part| part.parts == all) && there.into_iter().eq(0..all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{MemoryDisk, Piece};
    use crate::format::FormatOptions;

    /// Two records of the ring are lost in a crash, and the third, which is not, lies at the ring's end. After the
    /// opening one with its number does not fit there, and stands at the beginning. Taking the one at the end for it
    /// ended the reading, and what had been synced behind it was gone.
    #[test]
    fn a_record_of_before_at_the_end_of_the_ring_hides_none() {
        let options = FormatOptions { segment_blocks: 16, ..FormatOptions::new([7; 16]) };
        let geometry = Geometry::plan(4 << 20, &options).unwrap();
        let disk = MemoryDisk::new(4 << 20);
        let record = |incarnation| RingRecord {
            incarnation,
            number: 9,
            sequence: 5,
            flushed: 4,
            kind: Kind::Part { part: 0, parts: 1, covers: false },
            open: Vec::new(),
            announced: vec![3],
            runs: Runs::default(),
            copy: Vec::new(),
        };
        let end = geometry.ring_blocks - 1;
        for (at, record) in [(end, record(1)), (0, record(2))] {
            let data = record.encode(&geometry, at);
            let offset = geometry.offset(geometry.ring + u64::from(at));
            disk.write(&[Piece { offset, data: &data }]).unwrap();
        }
        let found = |incarnation| {
            let ring = Ring { number: 9, at: end, used: 0 };
            let read = RingRead { ring, incarnation, ..RingRead::default() };
            next_ring_record(&disk, &geometry, &read, &Copies::new()).unwrap()
        };
        assert_eq!(found(2), Some((record(2), 0)));
        assert_eq!(found(1), Some((record(1), end)), "nothing was lost");
    }
}
