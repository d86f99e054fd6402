//! The ring of records.

use std::collections::BTreeMap;

use crate::NONE;
use crate::bytes::{u16_at, u32_at, u64_at};
use crate::checksum::{extended, structure_sum};
use crate::findings::{Finding, Structure};
use crate::geometry::{BLOCK_BYTES, Geometry};
use crate::groups::{Part, Placement};
use crate::image::Image;
use crate::map::DAMAGED;
use crate::numbers::refuse_impossible;
use crate::root::{OPEN_BYTES, OpenSegment, Root};

/// `AWRR`.
const KIND: u32 = u32::from_le_bytes(*b"AWRR");

/// Where the checksum of a record lies.
const SUM_AT: usize = 8;

/// Bytes of a record before its open segments.
const HEAD_BYTES: usize = 64;

/// Bytes of a run before its blocks, and of a block of it.
const RUN_BYTES: usize = 12;
const RUN_BLOCK_BYTES: usize = 8;

/// Where a record says how many bytes of a copy of another it has, and where that is in records of segments.
const COPY_AT: usize = 60;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A part of a group.
    Part,
    /// Every entry of inline records up to its sequence.
    Checkpoint,
    /// A part of a group, and every entry of inline records up to what was flushed.
    Both,
}

/// A ring record.
#[derive(Debug, Clone)]
pub(crate) struct RingRecord {
    /// Where it lies, blocks from the ring's start.
    pub(crate) place: u32,
    pub(crate) length: u32,
    pub(crate) kind: Kind,
    /// Who names its blocks, and the blocks: for a checkpoint in no group.
    pub(crate) part: Part,
    pub(crate) open: Vec<OpenSegment>,
    pub(crate) announced: Vec<u32>,
    /// A copy of another, if there is one.
    pub(crate) copy: Vec<u8>,
}

impl RingRecord {
    /// It is a checkpoint.
    pub(crate) fn covers(&self) -> bool {
        matches!(self.kind, Kind::Checkpoint | Kind::Both)
    }

    /// Segments that it names for inline records, and from which slot on.
    pub(crate) fn named(&self, geometry: &Geometry) -> impl Iterator<Item = (u32, u32)> {
        let segment_blocks = geometry.segment_blocks;
        let first_slot = move |&segment: &u32| (segment, segment * segment_blocks);
        let open = self.open.iter().map(|open| (open.segment, open.next));
        open.chain(self.announced.iter().map(first_slot))
    }
}

/// What a record says before its checksum is looked at.
struct Head {
    length: u32,
    number: u64,
    incarnation: u32,
}

/// A ring and where to look in it.
pub(crate) struct Ring<'a, I: ?Sized> {
    pub(crate) image: &'a I,
    pub(crate) geometry: &'a Geometry,
}

impl<I: Image + ?Sized> Ring<'_, I> {
    fn address(&self, place: u32) -> u64 {
        self.geometry.ring_start + u64::from(place)
    }

    /// The head of what may be a record at a place.
    fn head(&self, place: u32) -> Option<Head> {
        if place >= self.geometry.ring_blocks {
            return None;
        }
        let mut head = [0; HEAD_BYTES];
        let offset = self.address(place) * u64::from(self.geometry.block_bytes);
        self.image.read_at(offset, &mut head).ok()?;
        let length = u32_at(&head, 48);
        let fits = length >= 1 && length <= self.geometry.ring_blocks - place;
        (u32_at(&head, 0) == KIND && fits).then(|| Head {
            length,
            number: u64_at(&head, 16),
            incarnation: u32_at(&head, 4),
        })
    }

    /// The record at a place, if there is a whole one; `Err` where its checksum is right and it makes no
    /// sense.
    fn record(&self, place: u32, head: &Head) -> Option<Result<RingRecord, String>> {
        let address = self.address(place);
        let mut bytes = self.geometry.read(self.image, address, u64::from(head.length)).ok()?;
        let sum = structure_sum(&self.geometry.uuid, KIND, address, &mut bytes, SUM_AT);
        (sum == u64_at(&bytes, SUM_AT)).then(|| self.parse(place, head, &bytes))
    }

    fn parse(&self, place: u32, head: &Head, bytes: &[u8]) -> Result<RingRecord, String> {
        let kind = match u32_at(bytes, 44) {
            1 => Kind::Part,
            2 => Kind::Checkpoint,
            3 if self.geometry.packed_records => Kind::Both,
            other => return Err(format!("it is of kind {other}")),
        };
        let sequence = u64_at(bytes, 24);
        refuse_impossible(&[16, 24, 32].map(|at| u64_at(bytes, at)), u32_at(bytes, 4))?;
        let (opens, announced) = (u16_at(bytes, 56), u16_at(bytes, 58));
        let mut at = HEAD_BYTES;
        let mut take = |length: usize| {
            let taken = bytes.get(at..at.checked_add(length)?)?;
            at += length;
            Some(taken)
        };
        let short = || "it ends before what it lists".to_owned();
        let open = take(OPEN_BYTES * usize::from(opens)).ok_or_else(short)?;
        let open = open.chunks_exact(OPEN_BYTES).map(OpenSegment::parse).collect::<Vec<_>>();
        let announced = take(4 * usize::from(announced)).ok_or_else(short)?;
        let announced = announced.chunks_exact(4).map(|one| u32_at(one, 0)).collect::<Vec<_>>();
        let wrong = open.iter().find_map(|one| one.refusal(self.geometry)).or_else(|| {
            let beyond = announced.iter().find(|&&one| one >= self.geometry.segments)?;
            Some(format!("it announces segment {beyond} of {}", self.geometry.segments))
        });
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        let mut blocks = Vec::new();
        for _ in 0..u32_at(bytes, 52) {
            let run = take(RUN_BYTES).ok_or_else(short)?;
            let (first, count, low) = (u32_at(run, 0), u32_at(run, 4), u32_at(run, 8));
            let listed =
                take((count as usize).saturating_mul(RUN_BLOCK_BYTES)).ok_or_else(short)?;
            let put_by =
                extended(low, sequence).ok_or("a run is of a group that is still to come")?;
            if kind == Kind::Part && put_by != sequence {
                return Err(format!("a run is of group {put_by}, not of its own, {sequence}"));
            }
            let damaged = first != NONE && first & DAMAGED != 0;
            let first = if damaged { first & !DAMAGED } else { first };
            let end = u64::from(first) + u64::from(count);
            if first != NONE && end > u64::from(self.geometry.slots()) {
                return Err(format!("a run of {count} blocks begins in slot {first}"));
            }
            for (index, one) in (0..).zip(listed.chunks_exact(RUN_BLOCK_BYTES)) {
                let block = u32_at(one, 0);
                if block >= self.geometry.blocks {
                    return Err(format!("it names block {block} of {}", self.geometry.blocks));
                }
                let slot = if first == NONE { NONE } else { first + index };
                let short_sum = u32_at(one, 4);
                blocks.push(Placement { block, slot, short_sum, sequence: put_by, damaged });
            }
        }
        let flushed = u64_at(bytes, 32);
        if kind == Kind::Both && flushed.checked_add(1) != Some(sequence) {
            return Err(format!(
                "it repeats what was flushed up to {flushed}, in group {sequence}"
            ));
        }
        let copy = match u32_at(bytes, COPY_AT) as usize {
            length if self.geometry.packed_records => take(length).ok_or_else(short)?.to_vec(),
            _ => Vec::new(),
        };
        let part = Part {
            sequence,
            flushed,
            incarnation: head.incarnation,
            number: u16_at(bytes, 40),
            of: u16_at(bytes, 42),
            structure: Structure::RingRecord(head.number),
            address: self.address(place),
            blocks,
        };
        let length = head.length;
        Ok(RingRecord { place, length, kind, part, open, announced, copy })
    }

    /// The record of which this is a copy, if its number is that.
    pub(crate) fn of_copy(&self, copy: &[u8], number: u64) -> Option<RingRecord> {
        let (place, bytes) = copy.split_first_chunk()?;
        let place = u32::from_le_bytes(*place);
        if bytes.len() < HEAD_BYTES || u64_at(bytes, 16) != number || u32_at(bytes, 0) != KIND {
            return None;
        }
        let (length, incarnation) = (u32_at(bytes, 48), u32_at(bytes, 4));
        let left = self.geometry.ring_blocks.checked_sub(place)?;
        let head = Head { length, number, incarnation };
        let record =
            if (1..=left).contains(&length) { self.parse(place, &head, bytes).ok() } else { None };
        record.filter(|record| record.copy.is_empty())
    }

    /// The record with this number at a place or at the ring's beginning, or a copy of it.
    fn next(
        &self,
        place: u32,
        number: u64,
        incarnation: u32,
        copies: &BTreeMap<u64, RingRecord>,
    ) -> Option<Result<RingRecord, Finding>> {
        let copy = copies.get(&number).filter(|copy| {
            [place, 0].contains(&copy.place) && copy.part.incarnation >= incarnation
        });
        if let Some(copy) = copy {
            return Some(Ok(copy.clone()));
        }
        [place, 0].into_iter().find_map(|place| {
            let head = self.head(place)?;
            if head.number != number || head.incarnation < incarnation {
                return None;
            }
            let record = self.record(place, &head)?;
            Some(record.map_err(|why| {
                let problem = format!("its checksum is right, but {why}");
                Finding::damage(Structure::RingRecord(number), self.address(place), problem)
            }))
        })
    }

    /// The records that a reader reads, in order; those that are missing from `copies`.
    pub(crate) fn walk(
        &self,
        root: &Root,
        copies: &BTreeMap<u64, RingRecord>,
        findings: &mut Vec<Finding>,
    ) -> Vec<RingRecord> {
        let (mut place, mut number) = (root.ring_place, root.ring_number);
        let (mut incarnation, mut left) = (root.incarnation, self.geometry.ring_blocks);
        let mut records = Vec::new();
        while let Some(record) = self.next(place, number, incarnation, copies) {
            let record = match record {
                Ok(record) => record,
                Err(finding) => {
                    findings.push(finding);
                    break;
                }
            };
            let address = self.address(record.place);
            let structure = Structure::RingRecord(number);
            if copies.contains_key(&number) {
                let why = "it is damaged; a copy of it is there, and opening writes it again";
                findings.push(Finding::damage(structure, address, why));
            }
            // It cannot hold more than there is room for.
            let Some(fewer) = left.checked_sub(record.length) else {
                let why = "the records before it take up the whole ring";
                findings.push(Finding::damage(structure, address, why));
                break;
            };
            left = fewer;
            if record.kind != Kind::Checkpoint && record.part.incarnation > incarnation {
                let why = "its incarnation is greater than that of the checkpoint before it";
                findings.push(Finding::damage(structure, address, why));
            }
            if record.kind == Kind::Checkpoint && record.part.sequence > record.part.flushed {
                let why = "it is of a group that had not been flushed";
                findings.push(Finding::damage(structure, address, why));
            }
            incarnation = record.part.incarnation;
            place = record.place + record.length;
            let Some(next) = number.checked_add(1) else { break };
            number = next;
            records.push(record);
        }
        records
    }

    /// Every whole record that lies anywhere in the ring and that `wanted` asks for by its number and
    /// incarnation.
    pub(crate) fn scan(&self, wanted: impl Fn(u64, u32) -> bool) -> Vec<RingRecord> {
        let mut found = Vec::new();
        let mut place = 0;
        // Who says in every block that a long record begins there is not believed for ever.
        let mut left_blocks = SCANNED_MAX.saturating_mul(u64::from(self.geometry.ring_blocks));
        while place < self.geometry.ring_blocks {
            let head = self.head(place).filter(|head| wanted(head.number, head.incarnation));
            let Some(head) = head else {
                place += 1;
                continue;
            };
            let Some(left) = left_blocks.checked_sub(u64::from(head.length)) else { break };
            left_blocks = left;
            match self.record(place, &head) {
                Some(Ok(record)) => {
                    place += record.length;
                    found.push(record);
                }
                _ => place += 1,
            }
        }
        found
    }
}

/// How often the whole ring is read at most while records are looked for; chosen by us.
const SCANNED_MAX: u64 = 16;

const _: () = assert!(HEAD_BYTES <= BLOCK_BYTES.0 as usize);
