//! Versions of blocks, from every record and map page that is whole, current or not.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::NONE;
use crate::geometry::Geometry;
use crate::groups::Part;
use crate::image::Image;
use crate::inline_records::parse_inline;
use crate::map::read_page;
use crate::ring::{Kind, Ring};
use crate::root::read_root;
use crate::superblock::{COPIES, Copy, Placed};

/// Blocks that are read at once in search of inline records; chosen by us: a megabyte and more.
const SCANNED_BLOCKS: u32 = 1024;

/// Slots in which a record is looked for until a damaged superblock is given up; chosen by us.
const VOUCHED_SLOTS_MAX: u32 = 1 << 16;

/// A version of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) block: u32,
    /// `NONE` where the block was freed.
    pub(crate) slot: u32,
    pub(crate) short_sum: u32,
    pub(crate) sequence: u64,
    pub(crate) damaged: bool,
}

/// Every version of the blocks that are wanted, those of a block together and the newest of it first;
/// `None` where `go_on` says to stop. It is called with the share of the segments that have been read.
pub(crate) fn versions<I: Image + ?Sized>(
    image: &I,
    geometry: &Geometry,
    wanted: impl Fn(u32) -> bool,
    go_on: &mut dyn FnMut(f64) -> bool,
) -> Option<Vec<Version>> {
    let mut found = Found { wanted, of_records: Vec::new(), first_of: BTreeMap::new() };
    let mut versions = Vec::new();
    for page in 0..geometry.map_pages {
        for place in [0, 1] {
            let Ok(there) = read_page(image, geometry, page, place) else { continue };
            for (block, entry) in geometry.page_blocks(page).zip(&there.entries) {
                let (slot, short_sum, damaged) = (entry.slot, entry.short_sum, entry.damaged);
                // What a page says holds up to its sequence.
                let sequence = there.sequence;
                let is_possible = slot == NONE || slot < geometry.slots();
                if is_possible && (found.wanted)(block) {
                    versions.push(Version { block, slot, short_sum, sequence, damaged });
                }
            }
        }
    }
    for record in (Ring { image, geometry }).scan(|_, _| true) {
        // Who has opened the store goes on behind the groups of its checkpoint.
        let first = record.part.sequence.saturating_add(u64::from(record.kind == Kind::Checkpoint));
        found.add(record.part, first);
    }
    let mut slot = 0;
    while slot < geometry.slots() {
        let count = SCANNED_BLOCKS.min(geometry.slots() - slot);
        let address = geometry.slot_address(slot);
        let whole = geometry.read(image, address, u64::from(count));
        for index in 0..count {
            let block_bytes = geometry.block_bytes as usize;
            let at = index as usize * block_bytes;
            let one = match &whole {
                Ok(bytes) => Ok(bytes[at..at + block_bytes].to_vec()),
                Err(_) => geometry.read(image, address + u64::from(index), 1),
            };
            let record =
                one.ok().and_then(|mut one| parse_inline(geometry, slot + index, &mut one));
            if let Some(Ok(record)) = record {
                let first = record.part.sequence;
                found.add(record.part, first);
            }
        }
        slot += count;
        if !go_on(f64::from(slot) / f64::from(geometry.slots())) {
            return None;
        }
    }
    versions.extend(found.acknowledged());
    // A page without a block comes before the group that it has.
    let order = |version: &Version| (version.block, Reverse((version.sequence, version.slot)));
    versions.sort_unstable_by_key(order);
    versions.dedup();
    Some(versions)
}

/// What records say.
struct Found<W> {
    wanted: W,
    /// With the incarnation.
    of_records: Vec<(u32, Version)>,
    /// The first group of each incarnation.
    first_of: BTreeMap<u32, u64>,
}

impl<W: Fn(u32) -> bool> Found<W> {
    fn add(&mut self, part: Part, first: u64) {
        let of = self.first_of.entry(part.incarnation).or_insert(first);
        *of = first.min(*of);
        for one in part.blocks {
            if (self.wanted)(one.block) {
                let (block, slot, short_sum) = (one.block, one.slot, one.short_sum);
                let (sequence, damaged) = (one.sequence, one.damaged);
                let version = Version { block, slot, short_sum, sequence, damaged };
                self.of_records.push((part.incarnation, version));
            }
        }
    }

    /// Those that nobody who opened the store later has dropped: sequences that were dropped are used again.
    fn acknowledged(self) -> impl Iterator<Item = Version> {
        let mut first_later = BTreeMap::new();
        let mut first = u64::MAX;
        for (&incarnation, &of) in self.first_of.iter().rev() {
            first_later.insert(incarnation, first);
            first = first.min(of);
        }
        let kept = self.of_records.into_iter();
        kept.filter_map(move |(incarnation, version)| {
            (version.sequence < first_later[&incarnation]).then_some(version)
        })
    }
}

/// The geometry of a superblock whose checksum is wrong, if what lies where it says vouches for it.
pub(crate) fn vouched_geometry<I: Image + ?Sized>(
    image: &I,
    copies: &[Placed; COPIES],
) -> Option<Geometry> {
    let claimed = copies.iter().filter_map(|(copy, _)| match copy {
        Copy::Damaged(_, Some(geometry)) => Some(geometry),
        _ => None,
    });
    claimed.into_iter().find(|geometry| is_vouched_for(image, geometry)).cloned()
}

fn is_vouched_for<I: Image + ?Sized>(image: &I, geometry: &Geometry) -> bool {
    let roots = (0..2).any(|copy| read_root(image, geometry, copy).is_ok());
    let page = || {
        (0..geometry.map_pages.min(VOUCHED_SLOTS_MAX))
            .any(|page| (0..2).any(|place| read_page(image, geometry, page, place).is_ok()))
    };
    let record = || !(Ring { image, geometry }).scan(|_, _| true).is_empty();
    let inline = || {
        (0..geometry.slots().min(VOUCHED_SLOTS_MAX)).any(|slot| {
            geometry
                .read(image, geometry.slot_address(slot), 1)
                .is_ok_and(|mut block| parse_inline(geometry, slot, &mut block).is_some())
        })
    };
    roots || page() || record() || inline()
}
