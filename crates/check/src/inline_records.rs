//! Inline records: in a slot before the data that they describe, or in any slot with the slots of that data.

use std::collections::BTreeMap;

use crate::NONE;
use crate::bytes::{u16_at, u32_at, u64_at};
use crate::checksum::structure_sum;
use crate::findings::{Finding, Structure};
use crate::geometry::Geometry;
use crate::groups::{Part, Placement};
use crate::image::Image;
use crate::numbers::refuse_impossible;

/// `AWIN`.
const KIND: u32 = u32::from_le_bytes(*b"AWIN");

/// Where the checksum of a record lies.
const SUM_AT: usize = 8;

/// Bytes of a record before its blocks.
const HEAD_BYTES: usize = 64;

/// Bytes of a block, and of one that is freed.
const BLOCK_BYTES: usize = 8;
const FREED_BYTES: usize = 4;

/// Where it says how many runs its data lies in, and bytes of each.
const RUNS_AT: usize = 48;
const RUN_BYTES: usize = 8;

/// Where it says how many bytes of a copy of a ring record it has.
const COPY_AT: usize = 44;

/// An inline record.
#[derive(Debug, Clone)]
pub(crate) struct InlineRecord {
    pub(crate) part: Part,
    /// Slots behind it that are no places of records: its data.
    pub(crate) data_blocks: u32,
    /// A copy of a ring record, if there is one.
    pub(crate) copy: Vec<u8>,
}

/// The record in a slot, if there is a whole one; `Err` where its checksum is right and it makes no sense.
pub(crate) fn read_inline<I: Image + ?Sized>(
    image: &I,
    geometry: &Geometry,
    slot: u32,
) -> Option<Result<InlineRecord, String>> {
    let mut bytes = geometry.read(image, geometry.slot_address(slot), 1).ok()?;
    parse_inline(geometry, slot, &mut bytes)
}

/// The record that a block in a slot holds, likewise.
pub(crate) fn parse_inline(
    geometry: &Geometry,
    slot: u32,
    bytes: &mut [u8],
) -> Option<Result<InlineRecord, String>> {
    if u32_at(bytes, 0) != KIND {
        return None;
    }
    let address = geometry.slot_address(slot);
    let sum = structure_sum(&geometry.uuid, KIND, address, bytes, SUM_AT);
    (sum == u64_at(bytes, SUM_AT)).then(|| parse(geometry, slot, bytes))
}

fn parse(geometry: &Geometry, slot: u32, bytes: &[u8]) -> Result<InlineRecord, String> {
    let (count, freed) = (u32_at(bytes, 36), u32_at(bytes, 40));
    let copied = if geometry.packed_records { u32_at(bytes, COPY_AT) } else { 0 };
    let runs = if geometry.scattered_records { u32_at(bytes, RUNS_AT) } else { 0 };
    let needed = u64::from(copied)
        + HEAD_BYTES as u64
        + BLOCK_BYTES as u64 * u64::from(count)
        + FREED_BYTES as u64 * u64::from(freed)
        + RUN_BYTES as u64 * u64::from(runs);
    if needed > bytes.len() as u64 {
        return Err(format!(
            "it is said to list {count} blocks in {runs} runs and {freed} freed ones, and {copied} bytes of \
             a copy"
        ));
    }
    let last = slot - slot % geometry.segment_blocks + (geometry.segment_blocks - 1);
    if runs == 0 && count > last - slot {
        return Err(format!("it describes {count} blocks, where its segment ends before"));
    }
    let sequence = u64_at(bytes, 16);
    refuse_impossible(&[sequence, u64_at(bytes, 24)], u32_at(bytes, 4))?;
    let listed = HEAD_BYTES + BLOCK_BYTES * count as usize;
    let runs_begin = listed + FREED_BYTES * freed as usize;
    let copy_begins = runs_begin + RUN_BYTES * runs as usize;
    let slots = if runs == 0 {
        (slot + 1..=slot + count).collect()
    } else {
        slots_of_runs(geometry, &bytes[runs_begin..copy_begins], count)?
    };
    let put = bytes[HEAD_BYTES..listed].chunks_exact(BLOCK_BYTES);
    let put = slots.into_iter().zip(put).map(|(slot, one)| {
        let (block, short_sum) = (u32_at(one, 0), u32_at(one, 4));
        Placement { block, slot, short_sum, sequence, damaged: false }
    });
    let gone = bytes[listed..].chunks_exact(FREED_BYTES).take(freed as usize).map(|one| {
        let block = u32_at(one, 0);
        Placement { block, slot: NONE, short_sum: 0, sequence, damaged: false }
    });
    let blocks = put.chain(gone).collect::<Vec<_>>();
    if let Some(beyond) = blocks.iter().find(|one| one.block >= geometry.blocks) {
        return Err(format!("it names block {} of {}", beyond.block, geometry.blocks));
    }
    let part = Part {
        sequence,
        flushed: u64_at(bytes, 24),
        incarnation: u32_at(bytes, 4),
        number: u16_at(bytes, 32),
        of: u16_at(bytes, 34),
        structure: Structure::InlineRecord(slot),
        address: geometry.slot_address(slot),
        blocks,
    };
    let copy = bytes[copy_begins..copy_begins + copied as usize].to_vec();
    // Where records may lie in holes, one may lie in a slot of this one's data by now.
    let data_blocks = if geometry.scattered_records { 0 } else { count };
    Ok(InlineRecord { part, data_blocks, copy })
}

/// The slots of `count` blocks that lie in `runs`, of first slots and lengths.
fn slots_of_runs(geometry: &Geometry, runs: &[u8], count: u32) -> Result<Vec<u32>, String> {
    let mut slots = Vec::with_capacity(count as usize);
    let all = geometry.slots();
    for run in runs.chunks_exact(RUN_BYTES) {
        let (first, blocks) = (u32_at(run, 0), u32_at(run, 4));
        let end = first.checked_add(blocks).filter(|end| *end <= all);
        let end = end.ok_or_else(|| format!("it names slots from {first} on, of {all}"))?;
        if blocks > count {
            return Err(format!("a run of {blocks} blocks is of {count}"));
        }
        slots.extend(first..end);
    }
    if slots.len() != count as usize {
        return Err(format!("its runs have {} slots for {count} blocks", slots.len()));
    }
    Ok(slots)
}

/// The records of `incarnation` behind the group `covered`, and those of a greater one, in the segments of
/// `places` from the first of these on, each once.
pub(crate) fn search<I: Image + ?Sized>(
    image: &I,
    geometry: &Geometry,
    places: impl IntoIterator<Item = (u32, u32)>,
    (incarnation, covered): (u32, u64),
    findings: &mut Vec<Finding>,
) -> Vec<InlineRecord> {
    let mut from: BTreeMap<u32, u32> = BTreeMap::new();
    for (segment, slot) in places {
        let first = from.entry(segment).or_insert(slot);
        *first = slot.min(*first);
    }
    let mut records = Vec::new();
    for (segment, mut slot) in from {
        let end = (segment + 1) * geometry.segment_blocks;
        while slot < end {
            match read_inline(image, geometry, slot) {
                Some(Ok(record)) => {
                    let part = &record.part;
                    let is_behind = part.incarnation == incarnation && part.sequence > covered;
                    // What lies behind one that counts is data, whatever it looks like.
                    slot += 1 + if is_behind { record.data_blocks } else { 0 };
                    if is_behind || part.incarnation > incarnation {
                        records.push(record);
                    }
                }
                Some(Err(why)) => {
                    let problem = format!("its checksum is right, but {why}");
                    let structure = Structure::InlineRecord(slot);
                    let address = geometry.slot_address(slot);
                    findings.push(Finding::damage(structure, address, problem));
                    slot += 1;
                }
                None => slot += 1,
            }
        }
    }
    records
}
