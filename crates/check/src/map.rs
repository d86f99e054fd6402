//! The map: where each block lies, and its short sum.

use std::collections::BTreeMap;

use crate::NONE;
use crate::bytes::{u32_at, u64_at};
use crate::checksum::structure_sum;
use crate::findings::{Blocks, Finding, Structure};
use crate::geometry::{Geometry, PAGE_ENTRY_BYTES, PAGE_HEAD_BYTES};
use crate::image::Image;
use crate::root::Root;

/// `AWMP`.
const KIND: u32 = u32::from_le_bytes(*b"AWMP");

/// Where the checksum of a page lies.
const SUM_AT: usize = 8;

/// Bit 31 of a slot: its data is known to be damaged.
pub(crate) const DAMAGED: u32 = 1 << 31;

/// What the map has of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Where it lies; bit 31 is left out.
    pub slot: u32,
    /// Of its data.
    pub short_sum: u32,
    /// Its data is known to be damaged.
    pub damaged: bool,
}

impl Entry {
    /// No such block.
    const ABSENT: Self = Self { slot: NONE, short_sum: 0, damaged: false };

    fn parse(bytes: &[u8]) -> Self {
        let slot = u32_at(bytes, 0);
        let damaged = slot != NONE && slot & DAMAGED != 0;
        Self {
            slot: if damaged { slot & !DAMAGED } else { slot },
            short_sum: u32_at(bytes, 4),
            damaged,
        }
    }
}

/// A map page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// It has every group up to this one.
    pub(crate) sequence: u64,
    /// Its checksum.
    pub(crate) sum: u64,
    pub(crate) entries: Vec<Entry>,
}

/// Where every block lies.
#[derive(Debug, Clone, Default)]
pub struct Map {
    page_entries: u32,
    pages: BTreeMap<u32, Page>,
}

impl Map {
    /// Where a block lies, if there is such a block.
    pub fn get(&self, block: u32) -> Option<Entry> {
        let page = self.pages.get(&block.checked_div(self.page_entries)?)?;
        page.entries
            .get((block % self.page_entries) as usize)
            .copied()
            .filter(|entry| entry.slot != NONE)
    }

    /// Every block that there is, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Entry)> + '_ {
        self.pages.iter().flat_map(move |(page, found)| {
            let first = page * self.page_entries;
            let entries = (first..).zip(found.entries.iter().copied());
            entries.filter(|(_, entry)| entry.slot != NONE)
        })
    }

    /// A map without pages.
    pub(crate) fn empty(geometry: &Geometry) -> Self {
        Self { page_entries: geometry.page_entries(), pages: BTreeMap::new() }
    }

    /// Puts a block somewhere, unless its page has that group already; `None` where it is freed.
    pub(crate) fn apply(&mut self, block: u32, entry: Option<Entry>, sequence: u64) {
        let absent = || Page {
            sequence: 0,
            sum: 0,
            entries: vec![Entry::ABSENT; self.page_entries as usize],
        };
        let page = self.pages.entry(block / self.page_entries).or_insert_with(absent);
        if page.sequence < sequence {
            page.entries[(block % self.page_entries) as usize] = entry.unwrap_or(Entry::ABSENT);
        }
    }
}

/// Reads what lies at a place of a map page; why not, if it is none.
pub(crate) fn read_page<I: Image + ?Sized>(
    image: &I,
    geometry: &Geometry,
    page: u32,
    place: u32,
) -> Result<Page, String> {
    let mut bytes = geometry
        .read(image, geometry.page_address(page, place), 1)
        .map_err(|why| format!("cannot be read: {why}"))?;
    if u32_at(&bytes, 0) != KIND {
        return Err("it is not marked as one".to_owned());
    }
    let address = geometry.page_address(page, 0);
    let sum = structure_sum(&geometry.uuid, KIND, address, &mut bytes, SUM_AT);
    if sum != u64_at(&bytes, SUM_AT) {
        return Err("its checksum is wrong".to_owned());
    }
    if u32_at(&bytes, 4) != page {
        return Err(format!("its checksum is right, but it is page {}", u32_at(&bytes, 4)));
    }
    let entries = bytes[PAGE_HEAD_BYTES..].chunks_exact(PAGE_ENTRY_BYTES).map(Entry::parse);
    Ok(Page { sequence: u64_at(&bytes, 16), sum, entries: entries.collect() })
}

/// Reads the pages that a root names, and says which are lost.
pub(crate) fn read_map<I: Image + ?Sized>(
    image: &I,
    geometry: &Geometry,
    root: &Root,
    findings: &mut Vec<Finding>,
) -> Map {
    let mut map = Map::empty(geometry);
    for (page, &named) in (0..).zip(&root.pages).filter(|&(_, &named)| named != 0) {
        let place = (named & 1) as u32;
        let current = |place| {
            let found = read_page(image, geometry, page, place)?;
            if (found.sum ^ named) & !1 == 0 {
                Ok(found)
            } else {
                Err(format!(
                    "it is not the one that the root names, but of group {}",
                    found.sequence
                ))
            }
        };
        let structure = Structure::MapPage(page);
        let first = current(place);
        let second = (first.is_err() || root.closed).then(|| current(1 - place));
        // Only a store that was closed in order has both places the same; closing may have been cut short.
        if let (Some(Err(why)), true) = (&second, root.closed) {
            let address = geometry.page_address(page, 1 - place);
            let finding = Finding::damage(structure, address, format!("second copy: {why}"));
            findings.push(finding.or_note(true));
        }
        let found = match (first, second) {
            (Ok(found), _) => Some(found),
            (Err(why), second) => {
                let found = second.and_then(Result::ok);
                let finding =
                    Finding::damage(structure, geometry.page_address(page, place), why.clone());
                findings.push(if found.is_some() {
                    finding
                } else {
                    finding.affecting(Blocks::within(&geometry.page_blocks(page)))
                });
                found
            }
        };
        if let Some(mut found) = found {
            // It was not written again where no later group changed it.
            found.sequence = found.sequence.max(root.sequence);
            map.pages.insert(page, found);
        }
    }
    map
}
