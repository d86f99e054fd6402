//! The two roots, and which of them counts.

use crate::bytes::{u32_at, u64_at};
use crate::checksum::structure_sum;
use crate::findings::{Finding, Structure};
use crate::geometry::{Geometry, ROOT_HEAD_BYTES, ROOT_SEGMENT_BYTES};
use crate::image::Image;
use crate::numbers::refuse_impossible;

/// `AWRT`.
const KIND: u32 = u32::from_le_bytes(*b"AWRT");

/// Where its checksum lies.
const SUM_AT: usize = 8;

/// Where its open segments begin, and how many there is room for.
const OPEN_AT: usize = 64;
const OPEN_MAX: u32 = 16;

/// Bytes of an open segment, in roots and in ring records.
pub(crate) const OPEN_BYTES: usize = 12;

/// A segment that is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenSegment {
    pub(crate) segment: u32,
    /// The slot that is written next.
    pub(crate) next: u32,
}

impl OpenSegment {
    /// As it stands in a root or a ring record.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        Self { segment: u32_at(bytes, 0), next: u32_at(bytes, 4) }
    }

    /// What is wrong with it, if anything.
    pub(crate) fn refusal(self, geometry: &Geometry) -> Option<String> {
        let (segment, next) = (self.segment, self.next);
        if segment >= geometry.segments {
            return Some(format!("segment {segment} is open, of {}", geometry.segments));
        }
        let first = segment * geometry.segment_blocks;
        (next < first || next > first + geometry.segment_blocks)
            .then(|| format!("slot {next} is next of segment {segment}, which begins at {first}"))
    }
}

/// A root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) generation: u64,
    /// The map has every group up to this one.
    pub(crate) sequence: u64,
    /// Of the first ring record to be read.
    pub(crate) ring_number: u64,
    /// Where that lies, blocks from the ring's start.
    pub(crate) ring_place: u32,
    pub(crate) incarnation: u32,
    pub(crate) closed: bool,
    pub(crate) open: Vec<OpenSegment>,
    /// Of each map page the checksum, but for bit 0, which is the place.
    pub(crate) pages: Vec<u64>,
    /// How many segments it says ages of.
    pub(crate) segments: u32,
}

/// Reads a copy of the root; why not, if it cannot be used.
pub(crate) fn read_root<I: Image + ?Sized>(
    image: &I,
    geometry: &Geometry,
    copy: u32,
) -> Result<Root, String> {
    let address = geometry.root_address(copy);
    let mut bytes = geometry
        .read(image, address, u64::from(geometry.root_blocks))
        .map_err(|why| format!("cannot be read: {why}"))?;
    if u32_at(&bytes, 0) != KIND {
        return Err("it is not marked as one".to_owned());
    }
    let sum = structure_sum(&geometry.uuid, KIND, address, &mut bytes, SUM_AT);
    if sum != u64_at(&bytes, SUM_AT) {
        return Err("its checksum is wrong".to_owned());
    }
    let (opens, pages, segments) = (u32_at(&bytes, 4), u32_at(&bytes, 52), u32_at(&bytes, 56));
    let needed = ROOT_HEAD_BYTES + 8 * u64::from(pages) + ROOT_SEGMENT_BYTES * u64::from(segments);
    if opens > OPEN_MAX
        || pages > geometry.map_pages
        || segments > geometry.segments
        || needed > bytes.len() as u64
    {
        return Err(format!(
            "its checksum is right, but it has {opens} open segments, {pages} map pages, \
             {segments} segments"
        ));
    }
    let incarnation = u32_at(&bytes, 44);
    refuse_impossible(&[16, 24, 32].map(|at| u64_at(&bytes, at)), incarnation)?;
    let (ring_place, closed) = (u32_at(&bytes, 40), u32_at(&bytes, 48));
    if ring_place > geometry.ring_blocks || closed > 1 {
        return Err(format!(
            "its checksum is right, but the ring begins at {ring_place} of {}, and it is \
             {closed} whether the store was closed",
            geometry.ring_blocks
        ));
    }
    let open = |index: u32| OpenSegment::parse(&bytes[OPEN_AT + OPEN_BYTES * index as usize..]);
    Ok(Root {
        generation: u64_at(&bytes, 16),
        sequence: u64_at(&bytes, 24),
        ring_number: u64_at(&bytes, 32),
        ring_place: ring_place % geometry.ring_blocks,
        incarnation,
        closed: closed == 1,
        open: (0..opens).map(open).collect(),
        pages: (0..pages as usize)
            .map(|page| u64_at(&bytes, ROOT_HEAD_BYTES as usize + 8 * page))
            .collect(),
        segments,
    })
}

/// The root to go by, if any, and what is wrong with the two.
pub(crate) fn choose<I: Image + ?Sized>(
    image: &I,
    geometry: &Geometry,
    findings: &mut Vec<Finding>,
) -> Option<Root> {
    let copies = [0, 1].map(|copy| read_root(image, geometry, copy));
    let place = |copy: u32| geometry.root_address(copy);
    let current = match &copies {
        [Ok(first), Ok(second)] => {
            let newer = u32::from(second.generation > first.generation);
            if first.generation == second.generation && first != second {
                let why = "it differs from root 0, which has the same generation";
                findings.push(Finding::damage(Structure::Root(1), place(1), why));
            } else if first.generation != second.generation {
                let (older, why) = (1 - newer, "it is older than the other");
                findings
                    .push(Finding::damage(Structure::Root(older), place(older), why).or_note(true));
            }
            Some(newer)
        }
        [Ok(_), Err(_)] => Some(0),
        [Err(_), Ok(_)] => Some(1),
        [Err(_), Err(_)] => None,
    };
    // A root that is being written when the power fails may be torn; the other one is then whole.
    let explained = copies.iter().any(Result::is_ok);
    for (copy, found) in (0..).zip(&copies) {
        if let Err(why) = found {
            let finding = Finding::damage(Structure::Root(copy), place(copy), why.clone());
            findings.push(finding.or_note(explained));
        }
    }
    let root = copies.into_iter().nth(current? as usize)?.ok()?;
    for open in &root.open {
        if let Some(why) = open.refusal(geometry) {
            let structure = Structure::Root(current?);
            findings.push(Finding::damage(structure, place(current?), why));
        }
    }
    Some(root)
}
