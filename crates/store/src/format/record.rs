//! Records: inline ones near the data that they describe, and those in the ring.

use agewell_log::OpenSegment;

use super::root::{OPEN_MAX, open_at, put_open};
use super::{
    Geometry, NONE, Place, are_possible, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at,
};

const INLINE_MAGIC: super::Magic = *b"AWIN";
const RING_MAGIC: super::Magic = *b"AWRR";
pub(crate) const RECORD_HEADER_BYTES: usize = 64;
const NAMED_BYTES: usize = 8;
const RUN_BYTES: usize = 12;
/// Segments that a record announces at most: those that will be opened, and those whose holes will be filled.
///
/// Chosen by us: as many segments are read at an opening after a crash.
pub(crate) const ANNOUNCED_MAX: usize = ANNOUNCED_FREE_MAX + ANNOUNCED_THREADED_MAX;
pub(crate) const ANNOUNCED_FREE_MAX: usize = 4;
pub(crate) const ANNOUNCED_THREADED_MAX: usize = 40;

/// Blocks of a ring record at most, so that behind a damaged one the next is found.
pub(crate) const RING_RECORD_BLOCKS_MAX: u32 = 1024;

/// Where the number of runs of an inline record is, and bytes of each.
const INLINE_RUNS_AT: usize = 48;
const INLINE_RUN_BYTES: usize = 8;

/// Where the number of bytes of a copy is.
const INLINE_COPY_AT: usize = 44;
const RING_COPY_AT: usize = 60;

/// The copy that `bytes` begin with.
fn copy_at(bytes: &[u8], length: u32) -> Vec<u8> {
    bytes.get(..length as usize).unwrap_or_default().to_vec()
}

/// A block and its short sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) block: u32,
    pub(crate) sum: u32,
}

fn put_named(bytes: &mut [u8], named: Named) {
    put_u32(bytes, 0, named.block);
    put_u32(bytes, 4, named.sum);
}

fn named_at(bytes: &[u8]) -> Named {
    Named { block: u32_at(bytes, 0), sum: u32_at(bytes, 4) }
}

/// What stands in a slot and says what data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InlineRecord {
    pub(crate) incarnation: u32,
    pub(crate) sequence: u64,
    pub(crate) flushed: u64,
    pub(crate) part: u16,
    pub(crate) parts: u16,
    pub(crate) data: Vec<Named>,
    /// Where the data lies: first slots and lengths; none if it lies in the slots behind.
    pub(crate) runs: Vec<(u32, u32)>,
    pub(crate) freed: Vec<u32>,
    /// A copy of a ring record, if there is one; written if there is room for it.
    pub(crate) copy: Vec<u8>,
}

impl InlineRecord {
    fn place(geometry: &Geometry, slot: u32) -> Place<'_> {
        let address = geometry.slot_address(slot);
        Place { uuid: &geometry.uuid, magic: INLINE_MAGIC, address }
    }

    /// Whether `data` blocks in `runs` and `freed` ones find room in one.
    pub(crate) fn has_room(geometry: &Geometry, data: usize, runs: usize, freed: usize) -> bool {
        let bytes = data * NAMED_BYTES + runs * INLINE_RUN_BYTES + freed * 4;
        RECORD_HEADER_BYTES + bytes <= geometry.block_bytes as usize
    }

    pub(crate) fn encode(&self, geometry: &Geometry, slot: u32, bytes: &mut [u8]) {
        bytes.fill(0);
        put_u32(bytes, 4, self.incarnation);
        put_u64(bytes, 16, self.sequence);
        put_u64(bytes, 24, self.flushed);
        put_u16(bytes, 32, self.part);
        put_u16(bytes, 34, self.parts);
        put_u32(bytes, 36, self.data.len() as u32);
        put_u32(bytes, 40, self.freed.len() as u32);
        put_u32(bytes, INLINE_RUNS_AT, self.runs.len() as u32);
        let mut at = RECORD_HEADER_BYTES;
        for named in &self.data {
            put_named(&mut bytes[at..], *named);
            at += NAMED_BYTES;
        }
        for block in &self.freed {
            put_u32(bytes, at, *block);
            at += 4;
        }
        for (slot, blocks) in &self.runs {
            put_u32(bytes, at, *slot);
            put_u32(bytes, at + 4, *blocks);
            at += INLINE_RUN_BYTES;
        }
        if let Some(room) = bytes.get_mut(at..at + self.copy.len()) {
            room.copy_from_slice(&self.copy);
            put_u32(bytes, INLINE_COPY_AT, self.copy.len() as u32);
        }
        Self::place(geometry, slot).sign(bytes);
    }

    pub(crate) fn decode(geometry: &Geometry, slot: u32, bytes: &[u8]) -> Option<Self> {
        Self::place(geometry, slot).check(bytes)?;
        let (data, freed) = (u32_at(bytes, 36) as usize, u32_at(bytes, 40) as usize);
        let runs = if geometry.scatters { u32_at(bytes, INLINE_RUNS_AT) as usize } else { 0 };
        let in_segment = slot % geometry.segment_blocks + 1;
        let fits = data <= bytes.len() && freed <= bytes.len() && runs <= data;
        if !fits
            || !Self::has_room(geometry, data, runs, freed)
            || runs == 0 && data > (geometry.segment_blocks - in_segment) as usize
            || !are_possible(&[16, 24].map(|at| u64_at(bytes, at)), u32_at(bytes, 4))
        {
            return None;
        }
        let freed_at = RECORD_HEADER_BYTES + data * NAMED_BYTES;
        let named = bytes[RECORD_HEADER_BYTES..freed_at].chunks_exact(NAMED_BYTES);
        let runs_at = freed_at + freed * 4;
        let gone = bytes[freed_at..runs_at].chunks_exact(4);
        let copy_begins = runs_at + runs * INLINE_RUN_BYTES;
        let runs = bytes[runs_at..copy_begins].chunks_exact(INLINE_RUN_BYTES);
        let runs: Vec<(u32, u32)> = runs.map(|run| (u32_at(run, 0), u32_at(run, 4))).collect();
        let end = |(first, blocks): &(u32, u32)| u64::from(*first) + u64::from(*blocks);
        let blocks: u64 = runs.iter().map(|run| u64::from(run.1)).sum();
        let are_there = runs.iter().all(|run| end(run) <= u64::from(geometry.slots()));
        if !runs.is_empty() && (blocks != data as u64 || !are_there) {
            return None;
        }
        Some(Self {
            incarnation: u32_at(bytes, 4),
            sequence: u64_at(bytes, 16),
            flushed: u64_at(bytes, 24),
            part: u16_at(bytes, 32),
            parts: u16_at(bytes, 34),
            data: named.map(named_at).collect(),
            runs,
            freed: gone.map(|block| u32_at(block, 0)).collect(),
            copy: copy_at(&bytes[copy_begins..], u32_at(bytes, INLINE_COPY_AT)),
        })
    }
}

/// What a ring record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A part of a group.
    Part {
        part: u16,
        parts: u16,
        /// It is a checkpoint as well, of what was flushed: the runs of other sequences.
        covers: bool,
    },
    /// Everything of inline records since the checkpoint before it.
    Checkpoint,
}

/// Blocks that lie in slots that follow one another, or are freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first slot; `NONE`: freed; `DAMAGED` may be set.
    pub(crate) first: u32,
    pub(crate) blocks: u32,
    /// The group's, modulo 2^32.
    pub(crate) sequence: u32,
}

/// Runs, and their blocks one behind another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Runs {
    pub(crate) runs: Vec<Run>,
    pub(crate) named: Vec<Named>,
}

impl Runs {
    pub(crate) fn push(&mut self, run: Run, named: impl IntoIterator<Item = Named>) {
        let before = self.named.len();
        self.named.extend(named);
        assert_eq!(self.named.len() - before, run.blocks as usize, "a run of another length");
        self.runs.push(run);
    }

    /// Blocks that a group has freed, if there are any.
    pub(crate) fn push_freed(&mut self, sequence: u32, freed: impl ExactSizeIterator<Item = u32>) {
        if freed.len() > 0 {
            let run = Run { first: NONE, blocks: freed.len() as u32, sequence };
            self.push(run, freed.map(|block| Named { block, sum: 0 }));
        }
    }

    /// Each run with its blocks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Run, &[Named])> {
        let mut at = 0;
        self.runs.iter().map(move |run| {
            let first = at;
            at += run.blocks as usize;
            (*run, &self.named[first..at])
        })
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.named.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Bytes that it takes in a record.
    pub(crate) fn bytes(&self) -> usize {
        self.runs.len() * RUN_BYTES + self.named.len() * NAMED_BYTES
    }
}

/// A record in the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RingRecord {
    pub(crate) incarnation: u32,
    pub(crate) number: u64,
    pub(crate) sequence: u64,
    pub(crate) flushed: u64,
    pub(crate) kind: Kind,
    pub(crate) open: Vec<OpenSegment>,
    pub(crate) announced: Vec<u32>,
    pub(crate) runs: Runs,
    /// A copy of the one before, if there is one; written if there is room for it.
    pub(crate) copy: Vec<u8>,
}

impl RingRecord {
    fn place(geometry: &Geometry, at: u32) -> Place<'_> {
        let address = geometry.ring + u64::from(at);
        Place { uuid: &geometry.uuid, magic: RING_MAGIC, address }
    }

    /// Blocks of the ring for `bytes` of runs and as many open and announced segments as there may be.
    pub(crate) fn blocks_for(geometry: &Geometry, runs_bytes: usize) -> u32 {
        let most = RECORD_HEADER_BYTES + OPEN_MAX * RUN_BYTES + ANNOUNCED_MAX * 4 + runs_bytes;
        most.div_ceil(geometry.block_bytes as usize) as u32
    }

    /// Its bytes without those of a copy.
    fn bytes(&self) -> usize {
        let segments = self.open.len() * RUN_BYTES + self.announced.len() * 4;
        RECORD_HEADER_BYTES + segments + self.runs.bytes()
    }

    /// Blocks of the ring that it takes.
    pub(crate) fn blocks(&self, geometry: &Geometry) -> u32 {
        self.bytes().div_ceil(geometry.block_bytes as usize) as u32
    }

    pub(crate) fn encode(&self, geometry: &Geometry, at: u32) -> Vec<u8> {
        let blocks = self.blocks(geometry);
        let mut bytes = self.unsigned(blocks);
        let end = bytes.len();
        bytes.resize(blocks as usize * geometry.block_bytes as usize, 0);
        if let Some(room) = bytes.get_mut(end..end + self.copy.len()) {
            room.copy_from_slice(&self.copy);
            put_u32(&mut bytes, RING_COPY_AT, self.copy.len() as u32);
        }
        Self::place(geometry, at).sign(&mut bytes);
        bytes
    }

    /// What others repeat of it, which begins at `at`.
    pub(crate) fn as_copy(&self, geometry: &Geometry, at: u32) -> Vec<u8> {
        let mut bytes = self.unsigned(self.blocks(geometry));
        bytes[..4].copy_from_slice(&RING_MAGIC);
        [&at.to_le_bytes()[..], &bytes].concat()
    }

    /// The record of which `copy` is one, and where it begins.
    pub(crate) fn of_copy(copy: &[u8]) -> Option<(u32, Self)> {
        let (at, bytes) = copy.split_first_chunk()?;
        let is_one = bytes.len() >= RECORD_HEADER_BYTES && bytes[..4] == RING_MAGIC;
        let record = is_one.then(|| Self::parse(bytes))??;
        Some((u32::from_le_bytes(*at), record))
    }

    /// The open segment behind its group.
    pub(crate) fn open_behind(&self) -> Option<OpenSegment> {
        self.open.iter().copied().find(|open| open.log != NONE)
    }

    /// The open segment before its group, of a record that is a checkpoint as well.
    pub(crate) fn open_before(&self) -> Option<OpenSegment> {
        let before = self.open.iter().copied().find(|open| open.log == NONE)?;
        Some(OpenSegment { log: 0, ..before })
    }

    /// Whether it is a checkpoint.
    pub(crate) fn covers(&self) -> bool {
        matches!(self.kind, Kind::Checkpoint | Kind::Part { covers: true, .. })
    }

    /// What it says of its group is left out; what it repeats remains.
    pub(crate) fn drop_part(&mut self) {
        let mut repeated = Runs::default();
        if self.covers() {
            for (run, named) in
                self.runs.iter().filter(|(run, _)| run.sequence != self.sequence as u32)
            {
                repeated.push(run, named.iter().copied());
            }
        }
        self.open = self.open_before().into_iter().collect();
        self.kind = Kind::Checkpoint;
        self.sequence = self.flushed;
        self.runs = repeated;
    }

    fn unsigned(&self, blocks: u32) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes()];
        put_u32(&mut bytes, 4, self.incarnation);
        put_u64(&mut bytes, 16, self.number);
        put_u64(&mut bytes, 24, self.sequence);
        put_u64(&mut bytes, 32, self.flushed);
        let (kind, part, parts) = match self.kind {
            Kind::Part { part, parts, covers } => (if covers { 3 } else { 1 }, part, parts),
            Kind::Checkpoint => (2, 0, 0),
        };
        put_u16(&mut bytes, 40, part);
        put_u16(&mut bytes, 42, parts);
        put_u32(&mut bytes, 44, kind);
        put_u32(&mut bytes, 48, blocks);
        put_u32(&mut bytes, 52, self.runs.runs.len() as u32);
        put_u16(&mut bytes, 56, self.open.len() as u16);
        put_u16(&mut bytes, 58, self.announced.len() as u16);
        let mut place = RECORD_HEADER_BYTES;
        for open in &self.open {
            put_open(&mut bytes[place..], *open);
            place += RUN_BYTES;
        }
        for segment in &self.announced {
            put_u32(&mut bytes, place, *segment);
            place += 4;
        }
        for (run, named) in self.runs.iter() {
            put_u32(&mut bytes, place, run.first);
            put_u32(&mut bytes, place + 4, run.blocks);
            put_u32(&mut bytes, place + 8, run.sequence);
            place += RUN_BYTES;
            for one in named {
                put_named(&mut bytes[place..], *one);
                place += NAMED_BYTES;
            }
        }
        bytes
    }

    /// How long the record that begins with `first`, a block, says it is; none if that cannot be.
    pub(crate) fn length(geometry: &Geometry, at: u32, first: &[u8]) -> Option<u32> {
        let blocks = u32_at(first, 48);
        let is_one = first[..4] == RING_MAGIC && blocks > 0;
        (is_one && blocks <= RING_RECORD_BLOCKS_MAX.min(geometry.ring_blocks - at))
            .then_some(blocks)
    }

    pub(crate) fn decode(geometry: &Geometry, at: u32, bytes: &[u8]) -> Option<Self> {
        Self::place(geometry, at).check(bytes)?;
        Self::parse(bytes)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        if !are_possible(&[16, 24, 32].map(|at| u64_at(bytes, at)), u32_at(bytes, 4)) {
            return None;
        }
        let (part, parts) = (u16_at(bytes, 40), u16_at(bytes, 42));
        let kind = match u32_at(bytes, 44) {
            kind @ (1 | 3) if part < parts => Kind::Part { part, parts, covers: kind == 3 },
            2 => Kind::Checkpoint,
            _ => return None,
        };
        let (open, announced) = (u16_at(bytes, 56) as usize, u16_at(bytes, 58) as usize);
        let announced_at = RECORD_HEADER_BYTES + open * RUN_BYTES;
        let mut rest = bytes.get(announced_at + announced * 4..)?;
        let segments = &bytes[RECORD_HEADER_BYTES..];
        let mut runs = Runs::default();
        for _ in 0..u32_at(bytes, 52) {
            let head = rest.get(..RUN_BYTES)?;
            let run =
                Run { first: u32_at(head, 0), blocks: u32_at(head, 4), sequence: u32_at(head, 8) };
            let end = (run.blocks as usize).checked_mul(NAMED_BYTES)?.checked_add(RUN_BYTES)?;
            let named = rest.get(RUN_BYTES..end)?;
            runs.push(run, named.chunks_exact(NAMED_BYTES).map(named_at));
            rest = &rest[end..];
        }
        Some(Self {
            incarnation: u32_at(bytes, 4),
            number: u64_at(bytes, 16),
            sequence: u64_at(bytes, 24),
            flushed: u64_at(bytes, 32),
            kind,
            open: segments.chunks_exact(RUN_BYTES).take(open).map(open_at).collect(),
            announced: bytes[announced_at..announced_at + announced * 4]
                .chunks_exact(4)
                .map(|segment| u32_at(segment, 0))
                .collect(),
            runs,
            copy: copy_at(rest, u32_at(bytes, RING_COPY_AT)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::FormatOptions;

    fn geometry() -> Geometry {
        let options =
            FormatOptions { block_bytes: 512, segment_blocks: 16, ..FormatOptions::new([9; 16]) };
        Geometry::plan(1 << 20, &options).unwrap()
    }

    #[test]
    fn records_are_read_back() {
        let geometry = geometry();
        let named = |count: u32| (0..count).map(|block| Named { block, sum: block * 3 });
        let inline = InlineRecord {
            incarnation: 2,
            sequence: 5,
            flushed: 4,
            part: 0,
            parts: 2,
            data: named(7).collect(),
            runs: Vec::new(),
            freed: vec![9, 11],
            copy: vec![7; 90],
        };
        let mut bytes = vec![0; 512];
        inline.encode(&geometry, 33, &mut bytes);
        assert_eq!(InlineRecord::decode(&geometry, 33, &bytes), Some(inline.clone()));
        assert_eq!(InlineRecord::decode(&geometry, 49, &bytes), None);
        // Seven blocks do not fit behind slot 12 of a segment of sixteen.
        inline.encode(&geometry, 12, &mut bytes);
        assert_eq!(InlineRecord::decode(&geometry, 12, &bytes), None);
        // They do where its runs say they lie.
        let slots = geometry.slots();
        let scattered =
            |runs: &[(u32, u32)]| InlineRecord { runs: runs.to_vec(), ..inline.clone() };
        let is_whole = |record: &InlineRecord, geometry: &Geometry| {
            let mut bytes = vec![0; 512];
            record.encode(geometry, 12, &mut bytes);
            InlineRecord::decode(geometry, 12, &bytes).as_ref() == Some(record)
        };
        assert!(is_whole(&scattered(&[(3, 2), (90, 1), (slots - 4, 4)]), &geometry));
        assert!(!is_whole(&scattered(&[(3, 2), (90, 1), (slots - 3, 4)]), &geometry));
        assert!(!is_whole(&scattered(&[(3, 2), (90, 1), (70, 5)]), &geometry));
        let before = Geometry { scatters: false, ..geometry.clone() };
        assert!(!is_whole(&scattered(&[(3, 2), (90, 5)]), &before));
        let mut runs = Runs::default();
        runs.push(Run { first: 40, blocks: 90, sequence: 5 }, named(90));
        runs.push(Run { first: super::super::NONE, blocks: 1, sequence: 5 }, named(1));
        let ring = RingRecord {
            incarnation: 2,
            number: 8,
            sequence: 5,
            flushed: 4,
            kind: Kind::Part { part: 1, parts: 2, covers: true },
            open: vec![OpenSegment { segment: 2, next: 40, log: 0 }],
            announced: vec![3, 4],
            runs,
            copy: Vec::new(),
        };
        let other = RingRecord { number: 9, runs: Runs::default(), ..ring.clone() };
        let copy = other.as_copy(&geometry, 3);
        assert_eq!(RingRecord::of_copy(&copy), Some((3, other)));
        let ring = RingRecord { copy, ..ring };
        let bytes = ring.encode(&geometry, 6);
        assert_eq!(bytes.len(), 1024);
        assert_eq!(RingRecord::length(&geometry, 6, &bytes), Some(2));
        assert_eq!(RingRecord::decode(&geometry, 6, &bytes), Some(ring));
        for byte in (0..bytes.len()).step_by(7) {
            let mut flipped = bytes.clone();
            flipped[byte] ^= 4;
            assert_eq!(RingRecord::decode(&geometry, 6, &flipped), None, "byte {byte}");
        }
    }
}
