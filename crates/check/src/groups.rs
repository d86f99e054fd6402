//! Groups: what became durable together, and which of them count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::NONE;
use crate::checksum::short_sum;
use crate::findings::{Blocks, Finding, Structure};
use crate::geometry::Geometry;
use crate::image::Image;
use crate::inline_records;
use crate::map::{Entry, Map};
use crate::ring::{Kind, Ring};
use crate::root::Root;

/// A block and where a group put it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) block: u32,
    /// `NONE` where the block is freed.
    pub(crate) slot: u32,
    pub(crate) short_sum: u32,
    /// Of the group.
    pub(crate) sequence: u64,
    pub(crate) damaged: bool,
}

impl Placement {
    fn entry(&self) -> Option<Entry> {
        (self.slot != NONE).then_some(Entry {
            slot: self.slot,
            short_sum: self.short_sum,
            damaged: self.damaged,
        })
    }
}

/// A part of a group.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) sequence: u64,
    /// Every group up to this one was on the medium when this was written.
    pub(crate) flushed: u64,
    pub(crate) incarnation: u32,
    pub(crate) number: u16,
    pub(crate) of: u16,
    /// What it is written in.
    pub(crate) structure: Structure,
    pub(crate) address: u64,
    pub(crate) blocks: Vec<Placement>,
}

/// What the records say that were written since the map was.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// The last group that counts.
    pub(crate) sequence: u64,
    /// Every group up to this one was on the medium.
    pub(crate) flushed: u64,
    pub(crate) incarnation: u32,
    pub(crate) ring_records: u64,
    pub(crate) ring_blocks: u64,
    /// Segments that the root or a ring record names for inline records.
    pub(crate) open_segments: Vec<u32>,
    /// Groups that were not acknowledged, and are left out.
    pub(crate) dropped_groups: u64,
}

/// Reads the records since the map was written, applies what counts to the map, and says what is wrong.
/// With `thorough` it also looks into segments that nothing names, for signs of what is lost.
pub(crate) fn replay<I: Image + ?Sized>(
    image: &I,
    geometry: &Geometry,
    root: &Root,
    map: &mut Map,
    thorough: bool,
    findings: &mut Vec<Finding>,
) -> Replayed {
    let ring = Ring { image, geometry };
    let records = ring.walk(root, findings);
    let mut covered = root.sequence;
    let mut incarnation = root.incarnation;
    let mut flushed = root.sequence;
    let mut settled: Vec<Placement> = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    let named_by_root = root.open.iter().filter(|open| open.refusal(geometry).is_none());
    let named_by_root: Vec<_> = named_by_root.map(|open| (open.segment, open.next)).collect();
    let mut named: Vec<(u32, u32)> = Vec::new();
    let next_number = root.ring_number.saturating_add(records.len() as u64);
    let (ring_records, mut ring_blocks) = (records.len() as u64, 0);
    for record in records {
        ring_blocks += u64::from(record.length);
        flushed = flushed.max(record.part.flushed);
        if record.kind == Kind::Checkpoint {
            if record.part.incarnation > incarnation {
                // Whoever opened the store has dropped them.
                parts.retain(|part| part.sequence <= record.part.sequence);
            }
            incarnation = record.part.incarnation;
            covered = covered.max(record.part.sequence);
            named.clear();
            settled.extend_from_slice(&record.part.blocks);
        } else {
            parts.push(record.part);
        }
        named.extend(record.open.iter().map(|open| (open.segment, open.next)));
        let first_slot = |&segment: &u32| (segment, segment * geometry.segment_blocks);
        named.extend(record.announced.iter().map(first_slot));
    }
    flushed = flushed.max(covered);

    let places = named_by_root.iter().chain(&named).copied();
    let inline = inline_records::walk(image, geometry, places, incarnation, findings);
    for part in &inline {
        flushed = flushed.max(part.flushed);
    }
    let (before, behind): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|part| part.sequence <= covered);
    // A checkpoint has the inline parts of these groups, but not those in the ring.
    settled.extend(before.into_iter().flat_map(|part| part.blocks));
    settled.sort_by_key(|placement| placement.sequence);
    for placement in settled.iter().filter(|one| one.sequence > root.sequence) {
        map.apply(placement.block, placement.entry(), placement.sequence);
    }

    let mut groups: BTreeMap<u64, Vec<Part>> = BTreeMap::new();
    let of_now = behind.into_iter().filter(|part| part.incarnation == incarnation);
    for part in of_now.chain(inline.into_iter().filter(|part| part.sequence > covered)) {
        groups.entry(part.sequence).or_default().push(part);
    }
    let mut lost = behind_the_end(&ring, incarnation, next_number);
    if let Some(later) = lost.first() {
        let problem = format!("it is missing, though {} is there", later.structure);
        let structure = Structure::RingRecord(next_number);
        findings.push(Finding::damage(structure, None, problem).or_note(true));
    }
    if thorough {
        lost.extend(first_records(image, geometry, incarnation));
    }
    flushed = lost.iter().map(|part| part.flushed).fold(flushed, u64::max);

    for group in groups.values_mut() {
        group.sort_by_key(|part| part.number);
    }
    let sequence = last_that_counts(image, geometry, &groups, covered, flushed);
    for (_, group) in groups.range(..=sequence) {
        for placement in group.iter().flat_map(|part| &part.blocks) {
            map.apply(placement.block, placement.entry(), placement.sequence);
        }
    }

    let behind = |end| groups.range((Bound::Excluded(end), Bound::Unbounded));
    if flushed > sequence {
        let left: Vec<&Part> = behind(sequence).flat_map(|(_, parts)| parts).collect();
        findings.push(missing(sequence, flushed, &left, &lost));
    }
    let dropped_groups = behind(flushed.max(sequence)).count() as u64;
    let mut open_segments: Vec<u32> =
        named_by_root.iter().chain(&named).map(|&(segment, _)| segment).collect();
    open_segments.sort_unstable();
    open_segments.dedup();
    Replayed {
        sequence,
        flushed,
        incarnation,
        ring_records,
        ring_blocks,
        open_segments,
        dropped_groups,
    }
}

/// Records of this incarnation or a later one that lie in the ring behind the end of what is read.
fn behind_the_end<I: Image + ?Sized>(
    ring: &Ring<'_, I>,
    incarnation: u32,
    next_number: u64,
) -> Vec<Part> {
    let found = ring.scan(|number, of| number >= next_number && of >= incarnation);
    found.into_iter().map(|record| record.part).collect()
}

/// The inline records that segments begin with, of this incarnation or a later one.
fn first_records<'a, I: Image + ?Sized>(
    image: &'a I,
    geometry: &'a Geometry,
    incarnation: u32,
) -> impl Iterator<Item = Part> + 'a {
    let first_slots = (0..geometry.segments).map(|segment| segment * geometry.segment_blocks);
    first_slots
        .filter_map(move |slot| inline_records::read_inline(image, geometry, slot)?.ok())
        .map(|record| record.part)
        .filter(move |part| part.incarnation >= incarnation)
}

/// The last of `groups`, whose parts are in order, that counts: none before it lacks a part, and where that
/// was not flushed, every block matches its sum where the groups up to it leave it.
fn last_that_counts<I: Image + ?Sized>(
    image: &I,
    geometry: &Geometry,
    groups: &BTreeMap<u64, Vec<Part>>,
    covered: u64,
    flushed: u64,
) -> u64 {
    let mut last = covered;
    let mut unmatched: BTreeSet<u32> = BTreeSet::new();
    for (next, (sequence, parts)) in (covered..).skip(1).zip(groups) {
        if *sequence != next || incomplete(parts).is_some() {
            break;
        }
        if next > flushed {
            for one in parts.iter().flat_map(|part| &part.blocks) {
                // Where a later group has moved it on, what lies here may be another's by now.
                unmatched.remove(&one.block);
                if !matches(image, geometry, one) {
                    unmatched.insert(one.block);
                }
            }
        }
        if unmatched.is_empty() {
            last = next;
        }
    }
    last
}

/// Whether the data of a block is what its record says, as far as that can be known.
fn matches<I: Image + ?Sized>(image: &I, geometry: &Geometry, one: &Placement) -> bool {
    one.slot == NONE
        || one.damaged
        || geometry.read(image, geometry.slot_address(one.slot), 1).is_ok_and(|data| {
            short_sum(&geometry.uuid, one.block, one.slot, &data) == one.short_sum
        })
}

/// What is missing of a group whose parts are in order, if anything.
fn incomplete(parts: &[Part]) -> Option<String> {
    let of = parts.first().map_or(0, |part| part.of);
    if of == 0 || parts.iter().any(|part| part.of != of) {
        return Some("its records differ in how many parts it has".to_owned());
    }
    for (number, part) in parts.iter().enumerate() {
        if usize::from(part.number) != number {
            return Some(format!("part {} of {of} is where part {number} should be", part.number));
        }
    }
    if parts.len() != usize::from(of) {
        return Some(format!("{} of {of} parts are there", parts.len()));
    }
    None
}

/// That groups are missing which were acknowledged.
fn missing(sequence: u64, flushed: u64, left: &[&Part], lost: &[Part]) -> Finding {
    let first = sequence.saturating_add(1);
    let of_first: Vec<Part> =
        left.iter().filter(|part| part.sequence == first).map(|&part| part.clone()).collect();
    let why = if of_first.is_empty() {
        "no record of it is there".to_owned()
    } else {
        incomplete(&of_first).unwrap_or_else(|| "its data is damaged".to_owned())
    };
    let named = || {
        let all = left.iter().copied().chain(lost);
        all.filter(|part| part.sequence > sequence && part.sequence <= flushed)
    };
    let blocks = Blocks::of(named().flat_map(|part| part.blocks.iter().map(|one| one.block)));
    // A group of which a part is missing has blocks that nothing names.
    let mut parts: BTreeMap<u64, (u16, BTreeSet<u16>)> = BTreeMap::new();
    for part in named() {
        parts.entry(part.sequence).or_insert((part.of, BTreeSet::new())).1.insert(part.number);
    }
    let whole = parts.values().filter(|(of, there)| there.len() == usize::from(*of)).count();
    let unknown = match (flushed - sequence).saturating_sub(whole as u64) {
        0 => String::new(),
        unknown => format!(", and which blocks {unknown} of them had is not known"),
    };
    let at = of_first.first().map(|part| part.address);
    let from = of_first.first().map_or_else(String::new, |part| format!(" ({})", part.structure));
    Finding::damage(
        Structure::Group(first),
        at,
        format!(
            "groups up to {flushed} were flushed, but {why}{from}; it and all behind it are left \
             out{unknown}"
        ),
    )
    .affecting(blocks)
}
