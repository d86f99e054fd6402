//! Writes stores, from `docs/internals/format.md` alone: slow, in memory, one group after another. It shares
//! nothing with what reads them.

use std::collections::BTreeMap;

use twox_hash::XxHash3_64;

const NONE: u32 = u32::MAX;
const DAMAGED: u32 = 1 << 31;
const UUID: [u8; 16] = *b"a store of tests";

/// How large a store is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) block_bytes: usize,
    pub(crate) segment_blocks: u32,
    pub(crate) segments: u32,
    pub(crate) blocks: u32,
    pub(crate) ring_blocks: u32,
}

impl Shape {
    /// Room for some hundred groups, and two map pages.
    pub(crate) const SMALL: Self =
        Self { block_bytes: 512, segment_blocks: 16, segments: 12, blocks: 80, ring_blocks: 40 };
}

/// Where a block lies, as the map has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lies {
    pub(crate) slot: u32,
    pub(crate) short_sum: u32,
    pub(crate) damaged: bool,
}

/// All blocks at one time.
pub(crate) type State = BTreeMap<u32, Lies>;

/// A run of a ring record: its first slot, the sequence, and of each block its number and sum.
type Run = (u32, u32, Vec<(u32, u32)>);

/// What a group does to a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Write(u32, u8),
    Free(u32),
}

/// A store that is written.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) shape: Shape,
    pub(crate) image: Vec<u8>,
    /// After each group, from none on.
    pub(crate) history: Vec<State>,
    root_blocks: u32,
    map_pages: u32,
    generation: u64,
    incarnation: u32,
    ring_number: u64,
    ring_place: u32,
    /// Where the root lets the ring begin.
    pub(crate) ring_begins: (u64, u32),
    /// Blocks of the ring from there on that are taken.
    ring_taken: u32,
    /// The open segment and its next slot.
    open: (u32, u32),
    /// Entries of inline records since the last checkpoint: block, slot or `NONE`, sum, sequence.
    since: Vec<(u32, u32, u32, u32)>,
    /// Sequence of the map as it was written last.
    map_sequence: u64,
    /// Of each page where it is current, its checksum and its sequence.
    pages: Vec<Option<(u32, u64, u64)>>,
    written: State,
    /// Slots that are free for any use, and those that will be once a record says so.
    free: Vec<u32>,
    dying: Vec<u32>,
}

impl Writer {
    pub(crate) fn format(shape: Shape) -> Self {
        let entries = (shape.block_bytes - 32) as u32 / 8;
        let map_pages = shape.blocks.div_ceil(entries);
        let root_bytes = 256 + 8 * map_pages as usize + 32 * shape.segments as usize;
        let root_blocks = root_bytes.div_ceil(shape.block_bytes) as u32;
        let used = 3
            + 2 * root_blocks
            + shape.ring_blocks
            + 2 * map_pages
            + shape.segments * shape.segment_blocks;
        let mut writer = Self {
            shape,
            image: vec![0; used as usize * shape.block_bytes],
            history: vec![State::new()],
            root_blocks,
            map_pages,
            generation: 0,
            incarnation: 1,
            ring_number: 1,
            ring_place: 0,
            ring_begins: (1, 0),
            ring_taken: 0,
            open: (0, 0),
            since: Vec::new(),
            map_sequence: 0,
            pages: vec![None; map_pages as usize],
            written: State::new(),
            free: (shape.segment_blocks..shape.segments * shape.segment_blocks).rev().collect(),
            dying: Vec::new(),
        };
        for address in [0, 1, u64::from(used) - 1] {
            let superblock = writer.superblock(address, u64::from(used));
            writer.put(address, &superblock);
        }
        writer.write_roots(false);
        writer
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.history.len() as u64 - 1
    }

    pub(crate) fn state(&self) -> &State {
        self.history.last().expect("there is one from the beginning")
    }

    pub(crate) fn ring_start(&self) -> u64 {
        2 + 2 * u64::from(self.root_blocks)
    }

    pub(crate) fn map_start(&self) -> u64 {
        self.ring_start() + u64::from(self.shape.ring_blocks)
    }

    pub(crate) fn segments_start(&self) -> u64 {
        self.map_start() + 2 * u64::from(self.map_pages)
    }

    pub(crate) fn root_address(&self, copy: u32) -> u64 {
        2 + u64::from(copy * self.root_blocks)
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        let at = address as usize * self.shape.block_bytes;
        self.image[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// What a user wrote: a block of one pattern.
    pub(crate) fn data(&self, block: u32, fill: u8) -> Vec<u8> {
        let pattern = (0..self.shape.block_bytes).map(|at| fill ^ (at as u8) ^ (block as u8));
        pattern.collect()
    }

    fn superblock(&self, address: u64, used: u64) -> Vec<u8> {
        let mut bytes = Bytes::new(self.shape.block_bytes, b"AGEWELL\0");
        bytes.u16(8, 1);
        bytes.at(24, &UUID);
        bytes.u64(48, 1);
        let numbers = [
            self.shape.block_bytes as u32,
            self.shape.segment_blocks,
            self.shape.segments,
            2,
            self.shape.blocks,
            self.root_blocks,
            self.shape.ring_blocks,
            self.map_pages,
        ];
        for (index, number) in numbers.into_iter().enumerate() {
            bytes.u32(56 + 4 * index, number);
        }
        let starts = [2, self.ring_start(), self.map_start(), self.segments_start(), used];
        for (index, start) in starts.into_iter().enumerate() {
            bytes.u64(88 + 8 * index, start);
        }
        bytes.sealed(40, address)
    }

    fn write_roots(&mut self, closed: bool) {
        self.generation += 1;
        self.ring_begins = (self.ring_number, self.ring_place);
        self.ring_taken = 0;
        for copy in 0..2 {
            let length = self.root_blocks as usize * self.shape.block_bytes;
            let mut bytes = Bytes::new(length, b"AWRT");
            bytes.u32(4, 1);
            bytes.u64(16, self.generation);
            bytes.u64(24, self.map_sequence);
            bytes.u64(32, self.ring_number);
            bytes.u32(40, self.ring_place);
            bytes.u32(44, self.incarnation);
            bytes.u32(48, u32::from(closed));
            bytes.u32(52, self.map_pages);
            bytes.u32(56, self.shape.segments);
            bytes.u32(64, self.open.0);
            bytes.u32(68, self.open.1);
            for (page, known) in self.pages.iter().enumerate() {
                if let Some((place, sum, _)) = known {
                    bytes.u64(256 + 8 * page, sum & !1 | u64::from(*place));
                }
            }
            let address = self.root_address(copy);
            let root = bytes.sealed(8, address);
            self.put(address, &root);
        }
    }

    /// Goes on with a store that was closed or left: with an incarnation greater by one.
    pub(crate) fn open(&mut self) {
        self.incarnation += 1;
        self.checkpoint();
    }

    /// A checkpoint in the ring.
    pub(crate) fn checkpoint(&mut self) {
        let mut runs = Vec::new();
        for (block, slot, sum, sequence) in std::mem::take(&mut self.since) {
            runs.push((slot, sequence, vec![(block, sum)]));
        }
        self.ring_record(2, (0, 0), self.sequence(), &runs);
        self.free.append(&mut self.dying);
    }

    fn ring_record(&mut self, kind: u32, part: (u16, u16), sequence: u64, runs: &[Run]) {
        let run_bytes = |run: &Run| 12 + 8 * run.2.len();
        let needed = 64 + 12 + 4 + runs.iter().map(run_bytes).sum::<usize>();
        let length = needed.div_ceil(self.shape.block_bytes) as u32;
        let left = self.shape.ring_blocks - self.ring_place;
        let skipped = if length > left { left } else { 0 };
        assert!(
            self.ring_taken + skipped + length <= self.shape.ring_blocks,
            "the tests write the map before the ring is full"
        );
        if skipped > 0 {
            self.ring_place = 0;
        }
        self.ring_taken += skipped + length;
        let mut bytes = Bytes::new(length as usize * self.shape.block_bytes, b"AWRR");
        bytes.u32(4, self.incarnation);
        bytes.u64(16, self.ring_number);
        bytes.u64(24, sequence);
        // Each record is flushed before the next group begins.
        bytes.u64(32, self.sequence());
        bytes.u16(40, part.0);
        bytes.u16(42, part.1);
        bytes.u32(44, kind);
        bytes.u32(48, length);
        bytes.u32(52, runs.len() as u32);
        bytes.u16(56, 1);
        bytes.u16(58, 1);
        bytes.u32(64, self.open.0);
        bytes.u32(68, self.open.1);
        // Announced as well as open.
        bytes.u32(76, self.open.0);
        let mut at = 80;
        for (slot, run_sequence, blocks) in runs {
            bytes.u32(at, *slot);
            bytes.u32(at + 4, blocks.len() as u32);
            bytes.u32(at + 8, *run_sequence);
            at += 12;
            for (block, sum) in blocks {
                bytes.u32(at, *block);
                bytes.u32(at + 4, *sum);
                at += 8;
            }
        }
        let address = self.ring_start() + u64::from(self.ring_place);
        let record = bytes.sealed(8, address);
        self.put(address, &record);
        self.ring_place += length;
        self.ring_number += 1;
    }

    /// A segment of free slots, for inline records.
    fn new_segment(&mut self, slots: u32) {
        let end = (self.open.0 + 1) * self.shape.segment_blocks;
        if self.open.1 + slots <= end {
            return;
        }
        self.free.extend(self.open.1..end);
        let whole = (0..self.shape.segments).find(|segment| {
            let first = segment * self.shape.segment_blocks;
            (first..first + self.shape.segment_blocks).all(|slot| self.free.contains(&slot))
        });
        let segment = whole.expect("the tests leave a segment free");
        let first = segment * self.shape.segment_blocks;
        self.free.retain(|slot| slot / self.shape.segment_blocks != segment);
        self.open = (segment, first);
        self.checkpoint();
    }

    /// A whole segment is free, or the open one has room.
    pub(crate) fn has_room(&self, slots: u32) -> bool {
        let end = (self.open.0 + 1) * self.shape.segment_blocks;
        self.open.1 + slots <= end
            || (0..self.shape.segments).any(|segment| {
                let first = segment * self.shape.segment_blocks;
                (first..first + self.shape.segment_blocks).all(|slot| self.free.contains(&slot))
            })
    }

    /// The ring has room for some records of a block or two.
    pub(crate) fn ring_has_room(&self) -> bool {
        self.ring_taken + 12 <= self.shape.ring_blocks
    }

    /// Slots that a copy or new data can be written into.
    pub(crate) fn holes(&self) -> usize {
        self.free.len()
    }

    /// The blocks of an inline part, written; its record is left out if it is not `whole`.
    fn inline_part(
        &mut self,
        part: (u16, u16),
        changes: &[Change],
        state: &mut State,
        whole: bool,
    ) {
        let sequence = self.sequence() + 1;
        let writes: Vec<(u32, u8)> = changes.iter().copied().filter_map(Change::write).collect();
        let freed: Vec<u32> = changes.iter().copied().filter_map(Change::free).collect();
        let mut bytes = Bytes::new(self.shape.block_bytes, b"AWIN");
        bytes.u32(4, self.incarnation);
        bytes.u64(16, sequence);
        bytes.u64(24, sequence - 1);
        bytes.u16(32, part.0);
        bytes.u16(34, part.1);
        bytes.u32(36, writes.len() as u32);
        bytes.u32(40, freed.len() as u32);
        let mut at = 64;
        let record_slot = self.open.1;
        for (slot, (block, fill)) in (record_slot + 1..).zip(writes) {
            let data = self.data(block, fill);
            let sum = short_sum(block, slot, &data);
            self.put(self.segments_start() + u64::from(slot), &data);
            bytes.u32(at, block);
            bytes.u32(at + 4, sum);
            at += 8;
            let lies = Lies { slot, short_sum: sum, damaged: false };
            self.lay(state, block, Some(lies));
            self.since.push((block, slot, sum, sequence as u32));
            self.open.1 = slot;
        }
        for block in freed {
            bytes.u32(at, block);
            at += 4;
            self.lay(state, block, None);
            self.since.push((block, NONE, 0, sequence as u32));
        }
        self.open.1 += 1;
        self.dying.push(record_slot);
        let address = self.segments_start() + u64::from(record_slot);
        let record = bytes.sealed(8, address);
        if whole {
            self.put(address, &record);
        }
    }

    /// The blocks of a part in the ring, each in a hole.
    fn ring_part(&mut self, part: (u16, u16), changes: &[Change], state: &mut State) {
        let sequence = self.sequence() + 1;
        let mut runs = Vec::new();
        for change in changes {
            match *change {
                Change::Write(block, fill) => {
                    let slot = self.free.pop().expect("the tests leave holes");
                    let data = self.data(block, fill);
                    let sum = short_sum(block, slot, &data);
                    self.put(self.segments_start() + u64::from(slot), &data);
                    runs.push((slot, sequence as u32, vec![(block, sum)]));
                    let lies = Lies { slot, short_sum: sum, damaged: false };
                    self.lay(state, block, Some(lies));
                }
                Change::Free(block) => {
                    runs.push((NONE, sequence as u32, vec![(block, 0)]));
                    self.lay(state, block, None);
                }
            }
        }
        self.ring_record(1, part, sequence, &runs);
    }

    fn lay(&mut self, state: &mut State, block: u32, lies: Option<Lies>) {
        let before = match lies {
            Some(lies) => state.insert(block, lies),
            None => state.remove(&block),
        };
        self.dying.extend(before.map(|before| before.slot));
    }

    /// A group in a segment, with its record before it.
    pub(crate) fn inline_group(&mut self, changes: &[Change]) {
        self.new_segment(1 + changes.len() as u32);
        let mut state = self.state().clone();
        self.inline_part((0, 1), changes, &mut state, true);
        self.history.push(state);
    }

    /// A group in the ring, its blocks in holes.
    pub(crate) fn ring_group(&mut self, changes: &[Change]) {
        let mut state = self.state().clone();
        self.ring_part((0, 1), changes, &mut state);
        self.history.push(state);
    }

    /// A group of two parts, one of each kind.
    pub(crate) fn mixed_group(&mut self, inline: &[Change], ring: &[Change]) {
        self.new_segment(1 + inline.len() as u32);
        let mut state = self.state().clone();
        self.inline_part((0, 2), inline, &mut state, true);
        self.ring_part((1, 2), ring, &mut state);
        self.history.push(state);
    }

    /// A block is moved that could not be read.
    pub(crate) fn move_damaged(&mut self, block: u32) {
        let sequence = self.sequence() + 1;
        let mut state = self.state().clone();
        let slot = self.free.pop().expect("the tests leave holes");
        let runs = [(slot | DAMAGED, sequence as u32, vec![(block, 7)])];
        self.ring_record(1, (0, 1), sequence, &runs);
        let lies = Lies { slot, short_sum: 7, damaged: true };
        self.lay(&mut state, block, Some(lies));
        self.history.push(state);
    }

    /// The power fails while a group of two parts is written: only the one in the ring is there, or, `inline`, only
    /// data without its record.
    pub(crate) fn unfinished_group(&mut self, changes: &[Change], inline: bool) {
        self.new_segment(1 + changes.len() as u32);
        let mut state = self.state().clone();
        let kept = self.clone();
        if inline {
            self.inline_part((0, 1), changes, &mut state, false);
        } else {
            self.ring_part((1, 2), changes, &mut state);
        }
        // What is written is written, but nobody knows of it.
        let (image, place, number) =
            (std::mem::take(&mut self.image), self.ring_place, self.ring_number);
        let taken = self.ring_taken;
        *self = kept;
        self.image = image;
        if !inline {
            // The record itself is whole: it has its number.
            (self.ring_place, self.ring_number, self.ring_taken) = (place, number, taken);
        }
    }

    /// The map, and the ring begins behind what it has.
    pub(crate) fn write_map(&mut self) {
        self.map_and_roots(false);
    }

    /// The same, in both places, and marked as closed.
    pub(crate) fn close(&mut self) {
        self.map_and_roots(true);
    }

    fn map_and_roots(&mut self, closed: bool) {
        let entries = (self.shape.block_bytes - 32) as u32 / 8;
        let sequence = self.sequence();
        let state = self.state().clone();
        for page in 0..self.map_pages {
            let blocks = page * entries..(page + 1) * entries;
            let changed = blocks.clone().any(|one| state.get(&one) != self.written.get(&one));
            let known = self.pages[page as usize];
            if changed {
                let mut bytes = Bytes::new(self.shape.block_bytes, b"AWMP");
                bytes.u32(4, page);
                bytes.u64(16, sequence);
                for (index, block) in blocks.enumerate() {
                    let at = 32 + 8 * index;
                    let Some(lies) = state.get(&block) else {
                        bytes.u32(at, NONE);
                        continue;
                    };
                    bytes.u32(at, lies.slot | if lies.damaged { DAMAGED } else { 0 });
                    bytes.u32(at + 4, lies.short_sum);
                }
                let place = known.map_or(0, |(place, ..)| 1 - place);
                let address = self.map_start() + 2 * u64::from(page);
                let sealed = bytes.sealed(8, address);
                let sum = u64::from_le_bytes(sealed[8..16].try_into().expect("eight bytes"));
                self.put(address + u64::from(place), &sealed);
                self.pages[page as usize] = Some((place, sum, sequence));
            }
            if let (true, Some((place, ..))) = (closed, self.pages[page as usize]) {
                let address = self.map_start() + 2 * u64::from(page);
                let at = (address + u64::from(place)) as usize * self.shape.block_bytes;
                let same = self.image[at..at + self.shape.block_bytes].to_vec();
                self.put(address + u64::from(1 - place), &same);
            }
        }
        self.written = state;
        self.map_sequence = sequence;
        self.since.clear();
        self.write_roots(closed);
        self.free.append(&mut self.dying);
    }
}

impl Change {
    fn write(self) -> Option<(u32, u8)> {
        match self {
            Self::Write(block, fill) => Some((block, fill)),
            Self::Free(_) => None,
        }
    }

    fn free(self) -> Option<u32> {
        match self {
            Self::Write(..) => None,
            Self::Free(block) => Some(block),
        }
    }
}

fn seed(rest: &[u8]) -> u64 {
    XxHash3_64::oneshot(&[UUID.as_slice(), rest].concat())
}

fn short_sum(block: u32, slot: u32, data: &[u8]) -> u32 {
    let rest = [block.to_le_bytes(), slot.to_le_bytes()].concat();
    XxHash3_64::oneshot_with_seed(seed(&rest), data) as u32
}

/// A structure that is put together.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(length: usize, magic: &[u8]) -> Self {
        let mut bytes = vec![0; length];
        bytes[..magic.len()].copy_from_slice(magic);
        Self(bytes)
    }

    fn at(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn u16(&mut self, at: usize, number: u16) {
        self.at(at, &number.to_le_bytes());
    }

    fn u32(&mut self, at: usize, number: u32) {
        self.at(at, &number.to_le_bytes());
    }

    fn u64(&mut self, at: usize, number: u64) {
        self.at(at, &number.to_le_bytes());
    }

    /// With its checksum, as it lies at `address`.
    fn sealed(mut self, sum_at: usize, address: u64) -> Vec<u8> {
        let mut rest = [0; 12];
        rest[..4].copy_from_slice(&self.0[..4]);
        rest[4..].copy_from_slice(&address.to_le_bytes());
        let sum = XxHash3_64::oneshot_with_seed(seed(&rest), &self.0);
        self.at(sum_at, &sum.to_le_bytes());
        self.0
    }
}

/// The checksum of the structure at `address` made right again, for what is wrong and checksummed.
pub(crate) fn reseal(
    image: &mut [u8],
    block_bytes: usize,
    address: u64,
    blocks: usize,
    sum_at: usize,
) {
    let at = address as usize * block_bytes;
    let range = at..at + blocks * block_bytes;
    let mut bytes = Bytes(image[range.clone()].to_vec());
    bytes.u64(sum_at, 0);
    let sealed = bytes.sealed(sum_at, address);
    image[range].copy_from_slice(&sealed);
}
