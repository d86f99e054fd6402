//! Map pages: where each block lies.

use super::{Geometry, NONE, Place, put_u32, put_u64, u32_at, u64_at};

const MAGIC: super::Magic = *b"AWMP";
pub(super) const HEADER_BYTES: usize = 32;
pub(super) const ENTRY_BYTES: usize = 8;

/// What the map says of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapEntry {
    /// The slot; [`NONE`] if there is no such block; [`super::DAMAGED`] may be set.
    pub(crate) slot: u32,
    pub(crate) sum: u32,
}

impl MapEntry {
    /// No such block.
    pub(crate) const NOTHING: Self = Self { slot: NONE, sum: 0 };
}

/// A map page: its place, and what is asked of its bytes.
pub(crate) struct MapPage;

impl MapPage {
    fn place(geometry: &Geometry, page: u32) -> Place<'_> {
        let address = Self::address(geometry, page, false);
        Place { uuid: &geometry.uuid, magic: MAGIC, address }
    }

    /// The address of `page` at its first or second place.
    pub(crate) fn address(geometry: &Geometry, page: u32, second: bool) -> u64 {
        let (page, second) = (u64::from(page), u64::from(second));
        if geometry.is_apart {
            geometry.map + second * u64::from(geometry.map_pages) + page
        } else {
            geometry.map + 2 * page + second
        }
    }

    /// The page with `entries`, and its checksum.
    pub(crate) fn encode(
        geometry: &Geometry,
        page: u32,
        sequence: u64,
        entries: impl Iterator<Item = MapEntry>,
        bytes: &mut [u8],
    ) -> u64 {
        bytes.fill(0);
        put_u32(bytes, 4, page);
        put_u64(bytes, 16, sequence);
        let mut entries = entries;
        for chunk in bytes[HEADER_BYTES..].chunks_exact_mut(ENTRY_BYTES) {
            let entry = entries.next().unwrap_or(MapEntry::NOTHING);
            put_u32(chunk, 0, entry.slot);
            put_u32(chunk, 4, entry.sum);
        }
        Self::place(geometry, page).sign(bytes)
    }

    /// The sequence and checksum of `page`, if `bytes` are it.
    pub(crate) fn check(geometry: &Geometry, page: u32, bytes: &[u8]) -> Option<(u64, u64)> {
        let sum = Self::place(geometry, page).check(bytes)?;
        (u32_at(bytes, 4) == page).then(|| (u64_at(bytes, 16), sum))
    }

    /// What it says.
    pub(crate) fn entries(bytes: &[u8]) -> impl Iterator<Item = MapEntry> + '_ {
        bytes[HEADER_BYTES..]
            .chunks_exact(ENTRY_BYTES)
            .map(|chunk| MapEntry { slot: u32_at(chunk, 0), sum: u32_at(chunk, 4) })
    }
}
