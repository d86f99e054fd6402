//! Where the parts of a store lie, as its superblock says.

use std::io;
use std::ops::Range;

use crate::bytes::{array_at, u16_at, u32_at, u64_at};
use crate::image::Image;

/// The least and the most bytes of a block.
pub(crate) const BLOCK_BYTES: (u32, u32) = (512, 65_536);

/// The least and the most blocks of a segment.
const SEGMENT_BLOCKS: (u32, u32) = (8, 1 << 20);

/// The feature of stores whose records are packed.
pub(crate) const PACKED_RECORDS: u32 = 1;

/// The feature of stores whose map pages have all their first places side by side.
pub(crate) const PLACES_APART: u32 = 2;

/// The feature of stores whose inline records may name the slots of their data.
pub(crate) const SCATTERED_RECORDS: u32 = 4;

/// The fewest segments of a store.
const SEGMENTS_MIN: u32 = 4;

/// There are fewer slots than this.
const SLOTS_END: u64 = 1 << 31;

/// The most numbers of blocks.
const BLOCKS_MAX: u32 = 1 << 31;

/// Bytes of a map page before its entries.
pub(crate) const PAGE_HEAD_BYTES: usize = 32;

/// Bytes of an entry of a map page.
pub(crate) const PAGE_ENTRY_BYTES: usize = 8;

/// Bytes of a root before its map pages.
pub(crate) const ROOT_HEAD_BYTES: u64 = 256;

/// Bytes of a root for a segment.
pub(crate) const ROOT_SEGMENT_BYTES: u64 = 32;

/// The geometry of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Which store it is.
    pub uuid: [u8; 16],
    /// The second number of the version of its format.
    pub minor_version: u16,
    /// Whether its records are packed: a feature that a reader must know.
    pub packed_records: bool,
    /// Whether the first places of map pages lie side by side, and then the second ones, and the parts in any
    /// order: a feature that a reader must know.
    pub places_apart: bool,
    /// Whether inline records may name the slots of their data: a feature that a reader must know.
    pub scattered_records: bool,
    /// Of the superblock that says all this.
    pub generation: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks of a segment.
    pub segment_blocks: u32,
    /// Segments.
    pub segments: u32,
    /// Segments that are kept from users.
    pub reserve_segments: u32,
    /// Block numbers that there may be.
    pub blocks: u32,
    /// Blocks of a root.
    pub root_blocks: u32,
    /// Blocks of the ring.
    pub ring_blocks: u32,
    /// Map pages.
    pub map_pages: u32,
    /// Address of root 0.
    pub roots_start: u64,
    /// Address of the ring.
    pub ring_start: u64,
    /// Address of the map.
    pub map_start: u64,
    /// Address of slot 0.
    pub segments_start: u64,
    /// Blocks of the device that the store uses.
    pub used_blocks: u64,
}

impl Geometry {
    /// As a superblock has it; nothing of it is looked at yet.
    pub(crate) fn parse(superblock: &[u8]) -> Self {
        Self {
            uuid: array_at(superblock, 24),
            minor_version: u16_at(superblock, 10),
            packed_records: u32_at(superblock, 12) & PACKED_RECORDS != 0,
            places_apart: u32_at(superblock, 12) & PLACES_APART != 0,
            scattered_records: u32_at(superblock, 12) & SCATTERED_RECORDS != 0,
            generation: u64_at(superblock, 48),
            block_bytes: u32_at(superblock, 56),
            segment_blocks: u32_at(superblock, 60),
            segments: u32_at(superblock, 64),
            reserve_segments: u32_at(superblock, 68),
            blocks: u32_at(superblock, 72),
            root_blocks: u32_at(superblock, 76),
            ring_blocks: u32_at(superblock, 80),
            map_pages: u32_at(superblock, 84),
            roots_start: u64_at(superblock, 88),
            ring_start: u64_at(superblock, 96),
            map_start: u64_at(superblock, 104),
            segments_start: u64_at(superblock, 112),
            used_blocks: u64_at(superblock, 120),
        }
    }

    /// Why a reader cannot go by it, if so.
    pub(crate) fn refusal(&self) -> Option<String> {
        let within = |name: &str, value: u32, (least, most): (u32, u32)| {
            (value < least || value > most)
                .then(|| format!("{name} is {value}, not {least} to {most}"))
        };
        if !self.block_bytes.is_power_of_two() {
            return Some(format!("block_bytes is {}, not a power of two", self.block_bytes));
        }
        within("block_bytes", self.block_bytes, BLOCK_BYTES)
            .or_else(|| within("segment_blocks", self.segment_blocks, SEGMENT_BLOCKS))
            .or_else(|| within("segments", self.segments, (SEGMENTS_MIN, u32::MAX)))
            .or_else(|| within("reserve_segments", self.reserve_segments, (0, self.segments - 1)))
            .or_else(|| within("blocks", self.blocks, (1, BLOCKS_MAX)))
            .or_else(|| {
                let slots = u64::from(self.segments) * u64::from(self.segment_blocks);
                (slots >= SLOTS_END).then(|| format!("there are {slots} slots, 2^31 or more"))
            })
            .or_else(|| self.refusal_of_parts())
    }

    /// Whether the parts are large enough, in order, and apart.
    fn refusal_of_parts(&self) -> Option<String> {
        let root_bytes = u64::from(self.root_blocks) * u64::from(self.block_bytes);
        let needed = ROOT_HEAD_BYTES
            + 8 * u64::from(self.map_pages)
            + ROOT_SEGMENT_BYTES * u64::from(self.segments);
        if root_bytes < needed {
            return Some(format!("a root of {} blocks is too small", self.root_blocks));
        }
        if self.ring_blocks == 0 {
            return Some("the ring has no blocks".to_owned());
        }
        let (pages, blocks) = (self.map_pages, self.blocks);
        if u64::from(pages) * u64::from(self.page_entries()) < u64::from(blocks) {
            return Some(format!("{pages} map pages are too few for {blocks} blocks"));
        }
        // So the numbers of all blocks that pages may describe have 32 bits.
        if pages > BLOCKS_MAX.div_ceil(self.page_entries()) {
            return Some(format!("{pages} map pages are more than any store needs"));
        }
        let mut parts = [
            ("the roots", self.roots_start, 2 * u64::from(self.root_blocks)),
            ("the ring", self.ring_start, u64::from(self.ring_blocks)),
            ("the map", self.map_start, 2 * u64::from(self.map_pages)),
            ("the segments", self.segments_start, u64::from(self.slots())),
            ("the last superblock", self.used_blocks.saturating_sub(1), 1),
        ];
        if self.places_apart {
            parts.sort_by_key(|(_, start, _)| *start);
        }
        // Behind the first two superblocks.
        let mut end = 2;
        for (name, start, blocks) in parts {
            if start < end {
                return Some(format!("{name} at {start} lie within what is before them"));
            }
            // Addresses in bytes have 64 bits as well.
            let after = start.checked_add(blocks);
            let bytes = after.and_then(|after| after.checked_mul(u64::from(self.block_bytes)));
            let (Some(after), Some(_)) = (after, bytes) else {
                return Some(format!("{name} at {start} lie beyond any device"));
            };
            end = after;
        }
        None
    }

    /// Slots of all segments.
    pub fn slots(&self) -> u32 {
        self.segments * self.segment_blocks
    }

    /// Blocks that a map page describes.
    pub fn page_entries(&self) -> u32 {
        ((self.block_bytes as usize - PAGE_HEAD_BYTES) / PAGE_ENTRY_BYTES) as u32
    }

    /// The blocks of a map page; none of a page that is kept for more blocks than there are.
    pub(crate) fn page_blocks(&self, page: u32) -> Range<u32> {
        let first = page * self.page_entries();
        first..(first + self.page_entries()).min(self.blocks).max(first)
    }

    /// Where a slot lies.
    pub fn slot_address(&self, slot: u32) -> u64 {
        self.segments_start + u64::from(slot)
    }

    /// Where a place of a map page lies.
    pub(crate) fn page_address(&self, page: u32, place: u32) -> u64 {
        let (page, place) = (u64::from(page), u64::from(place));
        if self.places_apart {
            self.map_start + place * u64::from(self.map_pages) + page
        } else {
            self.map_start + 2 * page + place
        }
    }

    /// Where a root lies.
    pub(crate) fn root_address(&self, copy: u32) -> u64 {
        self.roots_start + u64::from(copy) * u64::from(self.root_blocks)
    }

    /// Reads blocks, if the image is so long.
    pub(crate) fn read<I: Image + ?Sized>(
        &self,
        image: &I,
        address: u64,
        blocks: u64,
    ) -> io::Result<Vec<u8>> {
        read_blocks(image, self.block_bytes, address, blocks)
    }
}

/// Reads blocks, if the image is so long: no memory is taken for what is not there.
pub(crate) fn read_blocks<I: Image + ?Sized>(
    image: &I,
    block_bytes: u32,
    address: u64,
    blocks: u64,
) -> io::Result<Vec<u8>> {
    let beyond = || io::Error::new(io::ErrorKind::UnexpectedEof, "it lies beyond the image's end");
    let offset = address.checked_mul(u64::from(block_bytes)).ok_or_else(beyond)?;
    let bytes = blocks.checked_mul(u64::from(block_bytes)).ok_or_else(beyond)?;
    if offset.checked_add(bytes).is_none_or(|end| end > image.size_bytes()) {
        return Err(beyond());
    }
    let mut found = vec![0; usize::try_from(bytes).map_err(|_| beyond())?];
    image.read_at(offset, &mut found)?;
    Ok(found)
}
