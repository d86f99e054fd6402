//! Roots: which map pages are current, where the ring begins, and what is open.

use agewell_log::policy::mechanism::Mechanism;
use agewell_log::{OpenSegment, SegmentTimes};

use super::geometry::{ROOT_HEADER_BYTES, SEGMENT_BYTES};
use super::{Geometry, Place, are_possible, put_u32, put_u64, u32_at, u64_at};

const MAGIC: super::Magic = *b"AWRT";
const OPEN_AT: usize = 64;
const OPEN_BYTES: usize = 12;
/// Open segments that a root or a record has room for.
pub(crate) const OPEN_MAX: usize = 16;

/// Mechanisms by their numbers, from 1.
const MECHANISMS: [Mechanism; 3] = [Mechanism::Clean, Mechanism::Plug, Mechanism::Thread];

/// A root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Root {
    pub(crate) generation: u64,
    /// The map has every group up to this one.
    pub(crate) sequence: u64,
    /// Number of the first ring record to be read, and where it begins.
    pub(crate) ring_number: u64,
    pub(crate) ring_at: u32,
    pub(crate) incarnation: u32,
    pub(crate) closed: bool,
    /// How room was made, if that is known.
    pub(crate) mechanism: Option<Mechanism>,
    pub(crate) open: Vec<OpenSegment>,
    /// Of each map page its checksum but for bit 0, and in that bit where it is; 0 for none.
    pub(crate) pages: Vec<u64>,
    pub(crate) segments: Vec<SegmentTimes>,
}

impl Root {
    fn place(geometry: &Geometry, copy: u32) -> Place<'_> {
        Place { uuid: &geometry.uuid, magic: MAGIC, address: Self::address(geometry, copy) }
    }

    /// The address of root `copy`.
    pub(crate) fn address(geometry: &Geometry, copy: u32) -> u64 {
        geometry.roots + u64::from(copy) * u64::from(geometry.root_blocks)
    }

    pub(crate) fn encode(&self, geometry: &Geometry, copy: u32) -> Vec<u8> {
        let mut bytes = vec![0; geometry.root_blocks as usize * geometry.block_bytes as usize];
        put_u32(&mut bytes, 4, self.open.len() as u32);
        put_u64(&mut bytes, 16, self.generation);
        put_u64(&mut bytes, 24, self.sequence);
        put_u64(&mut bytes, 32, self.ring_number);
        put_u32(&mut bytes, 40, self.ring_at);
        put_u32(&mut bytes, 44, self.incarnation);
        put_u32(&mut bytes, 48, u32::from(self.closed));
        put_u32(&mut bytes, 52, self.pages.len() as u32);
        put_u32(&mut bytes, 56, self.segments.len() as u32);
        let mechanism = (1..).zip(MECHANISMS).find(|(_, one)| self.mechanism == Some(*one));
        put_u32(&mut bytes, 60, mechanism.map_or(0, |(number, _)| number));
        for (place, open) in self.open.iter().enumerate() {
            put_open(&mut bytes[OPEN_AT + place * OPEN_BYTES..], *open);
        }
        let mut at = ROOT_HEADER_BYTES as usize;
        for page in &self.pages {
            put_u64(&mut bytes, at, *page);
            at += 8;
        }
        for times in &self.segments {
            put_u64(&mut bytes, at, times.opened);
            put_u64(&mut bytes, at + 8, times.sealed);
            put_u64(&mut bytes, at + 16, times.youngest);
            put_u32(&mut bytes, at + 24, u32::from(times.log));
            at += SEGMENT_BYTES as usize;
        }
        Self::place(geometry, copy).sign(&mut bytes);
        bytes
    }

    pub(crate) fn decode(geometry: &Geometry, copy: u32, bytes: &[u8]) -> Option<Self> {
        Self::place(geometry, copy).check(bytes)?;
        let (pages, segments) = (u32_at(bytes, 52) as usize, u32_at(bytes, 56) as usize);
        let open = u32_at(bytes, 4) as usize;
        let tables = pages.checked_mul(8)?.checked_add(segments.checked_mul(32)?)?;
        let fits = tables.checked_add(ROOT_HEADER_BYTES as usize)? <= bytes.len();
        if !fits
            || open > OPEN_MAX
            || pages > geometry.map_pages as usize
            || segments > geometry.segments as usize
            || !are_possible(&[16, 24, 32].map(|at| u64_at(bytes, at)), u32_at(bytes, 44))
        {
            return None;
        }
        let pages_at = ROOT_HEADER_BYTES as usize;
        let segments_at = pages_at + pages * 8;
        Some(Self {
            generation: u64_at(bytes, 16),
            sequence: u64_at(bytes, 24),
            ring_number: u64_at(bytes, 32),
            ring_at: u32_at(bytes, 40),
            incarnation: u32_at(bytes, 44),
            closed: u32_at(bytes, 48) == 1,
            mechanism: (u32_at(bytes, 60) as usize)
                .checked_sub(1)
                .and_then(|place| MECHANISMS.get(place).copied()),
            open: (0..open).map(|place| open_at(&bytes[OPEN_AT + place * OPEN_BYTES..])).collect(),
            pages: (0..pages).map(|page| u64_at(bytes, pages_at + page * 8)).collect(),
            segments: bytes[segments_at..segments_at + segments * SEGMENT_BYTES as usize]
                .chunks_exact(SEGMENT_BYTES as usize)
                .map(|times| SegmentTimes {
                    opened: u64_at(times, 0),
                    sealed: u64_at(times, 8),
                    youngest: u64_at(times, 16),
                    log: u32_at(times, 24) as u8,
                })
                .collect(),
        })
    }
}

pub(super) fn put_open(bytes: &mut [u8], open: OpenSegment) {
    put_u32(bytes, 0, open.segment);
    put_u32(bytes, 4, open.next);
    put_u32(bytes, 8, open.log);
}

pub(super) fn open_at(bytes: &[u8]) -> OpenSegment {
    OpenSegment { segment: u32_at(bytes, 0), next: u32_at(bytes, 4), log: u32_at(bytes, 8) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::FormatOptions;

    #[test]
    fn a_root_is_read_back_only_at_its_place() {
        let geometry = Geometry::plan(16 << 20, &FormatOptions::new([3; 16])).unwrap();
        let root = Root {
            generation: 7,
            sequence: 99,
            ring_number: 12,
            ring_at: 3,
            incarnation: 2,
            closed: true,
            mechanism: Some(Mechanism::Thread),
            open: vec![OpenSegment { segment: 1, next: 260, log: 0 }],
            pages: (0..u64::from(geometry.map_pages)).collect(),
            segments: vec![
                SegmentTimes { opened: 1, sealed: 2, youngest: 3, log: 4 };
                geometry.segments as usize
            ],
        };
        let bytes = root.encode(&geometry, 1);
        assert_eq!(Root::decode(&geometry, 1, &bytes), Some(root.clone()));
        assert_eq!(Root::decode(&geometry, 0, &bytes), None);
        // One more would be no number.
        let beyond = Root { sequence: u64::MAX, ..root.clone() };
        assert_eq!(Root::decode(&geometry, 1, &beyond.encode(&geometry, 1)), None);
        let beyond = Root { incarnation: u32::MAX, ..root };
        assert_eq!(Root::decode(&geometry, 1, &beyond.encode(&geometry, 1)), None);
    }
}
