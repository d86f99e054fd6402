//! The superblock: how a store is divided.

use crate::StoreError;
use crate::device::WriteZones;

use super::map_page::{ENTRY_BYTES, HEADER_BYTES};
use super::record::RING_RECORD_BLOCKS_MAX;
use super::{NONE, Place, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"AGEWELL\0";
const VERSION: u16 = 1;

/// Feature of stores whose records are packed: see [`Geometry::packs`].
const PACKED_RECORDS: u32 = 1;
/// Feature of stores whose places of map pages are apart: see [`Geometry::is_apart`].
const PLACES_APART: u32 = 2;
/// Feature of stores whose inline records may name the slots of their data: see [`Geometry::scatters`].
const SCATTERED_RECORDS: u32 = 4;

const CHECKSUM_AT: usize = 40;

const PAGE_HEADER_BYTES: u32 = HEADER_BYTES as u32;
const PAGE_ENTRY_BYTES: u32 = ENTRY_BYTES as u32;

/// Bytes of a root before its tables.
pub(super) const ROOT_HEADER_BYTES: u64 = 256;
/// Bytes of a segment in a root.
pub(super) const SEGMENT_BYTES: u64 = 32;

/// Blocks that may be in a write buffer, and so in a transaction, at most.
const BUFFER_BLOCKS_MAX: u32 = 1024;

/// Segments at least that are kept from users: the log's own reserve of two, the open one, one in which
/// a buffer may end, and as many again for what collections leave behind; chosen by us.
const RESERVE_SEGMENTS_MIN: u32 = 8;

/// Share of the segments kept from users at least; chosen by us: what lies free when a store is full is what
/// it goes on with, and of a device of 512 MiB, more than nine tenths are left for files. (Flash drives keep
/// 7 % and more for the same purpose.)
const RESERVE_SHARE: f64 = 0.064;

/// Bytes of the ring for each block: as many records of eight bytes as this may wait until the map is
/// written, so that the map costs little; chosen by us: 0.8 % of blocks of 4 KiB. At most
/// [`RING_BYTES_MAX`], which is read in a second.
const RING_BYTES_A_BLOCK: u64 = 32;
const RING_BYTES_MAX: u64 = 224 << 20;
/// Blocks of the ring at least: a few of the longest records.
const RING_BLOCKS_MIN: u64 = 32;

/// Segments that are kept from users of a store of `segments`, if nothing else is said.
fn usual_reserve_segments(segments: u32) -> u32 {
    ((f64::from(segments) * RESERVE_SHARE) as u32).max(RESERVE_SEGMENTS_MIN)
}

/// Blocks of `block_bytes` that the ring of a store of `slots` has.
fn usual_ring_blocks(slots: u64, block_bytes: u64) -> u64 {
    let ring_bytes = (slots * RING_BYTES_A_BLOCK).min(RING_BYTES_MAX);
    (ring_bytes / block_bytes).max(RING_BLOCKS_MIN)
}

/// What a store is made with.
#[derive(Debug, Clone)]
pub struct FormatOptions {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks of a segment.
    pub segment_blocks: u32,
    /// Segments kept from users; none for what is usual.
    pub reserve_segments: Option<u32>,
    /// What no other has.
    pub uuid: [u8; 16],
}

impl FormatOptions {
    /// Blocks of 4 KiB in segments of 1 MiB.
    #[must_use]
    pub fn new(uuid: [u8; 16]) -> Self {
        Self { block_bytes: 4096, segment_blocks: 256, reserve_segments: None, uuid }
    }
}

/// How a store is divided. All addresses count blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// What no other has.
    pub uuid: [u8; 16],
    /// Greater whenever it changes.
    pub generation: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks of a segment.
    pub segment_blocks: u32,
    /// Segments.
    pub segments: u32,
    /// Segments kept from users.
    pub reserve_segments: u32,
    /// Block numbers there may be.
    pub blocks: u32,
    /// Whether ring records may be parts of groups and checkpoints, and records have copies of others; not in
    /// stores of version 1.0.
    pub(crate) packs: bool,
    /// Whether the first places of all map pages lie together, and the second ones behind them, and the parts
    /// lie in any order; not in stores before version 1.2.
    pub(crate) is_apart: bool,
    /// Whether inline records may lie in holes and name the slots of their data; not in stores before version
    /// 1.3.
    pub(crate) scatters: bool,
    pub(crate) root_blocks: u32,
    pub(crate) ring_blocks: u32,
    pub(crate) map_pages: u32,
    pub(crate) roots: u64,
    pub(crate) ring: u64,
    pub(crate) map: u64,
    pub(crate) segments_start: u64,
    /// Blocks of the device that are used.
    pub used_blocks: u64,
}

impl Geometry {
    /// Divides a device of `device_bytes`.
    ///
    /// # Errors
    /// If there is not enough room, or the options are beyond the limits of the format.
    pub fn plan(device_bytes: u64, options: &FormatOptions) -> Result<Self, StoreError> {
        Self::plan_in(device_bytes, options, None)
    }

    /// Divides a device of `device_bytes`, of which `zones` are written in order, if it has some.
    ///
    /// # Errors
    /// If there is not enough room, or the options are beyond the limits of the format or not for zones.
    pub fn plan_in(
        device_bytes: u64,
        options: &FormatOptions,
        zones: Option<WriteZones>,
    ) -> Result<Self, StoreError> {
        let FormatOptions { block_bytes, segment_blocks, .. } = *options;
        if !block_bytes.is_power_of_two() || !(512..=65_536).contains(&block_bytes) {
            return Err(StoreError::Options(format!(
                "blocks have 512 to 65,536 bytes, a power of two, not {block_bytes}"
            )));
        }
        if !(8..=1 << 20).contains(&segment_blocks) {
            return Err(StoreError::Options(format!(
                "segments have 8 to 1,048,576 blocks, not {segment_blocks}"
            )));
        }
        let mut device_blocks = device_bytes / u64::from(block_bytes);
        if let Some(zones) = zones {
            zones.check_segments(u64::from(segment_blocks), u64::from(block_bytes))?;
            // The last zone is left to the last superblock.
            device_blocks = zones.last_zone(device_bytes) / u64::from(block_bytes) + 1;
        }
        // As many segments as find room with what describes them.
        let (mut fewest, mut most) = (0, (device_blocks / u64::from(segment_blocks)) as u32 + 1);
        while fewest + 1 < most {
            let middle = fewest.midpoint(most);
            match Self::with_segments(options, middle).map(|found| found.moved_to(zones)) {
                Some(geometry) if geometry.used_blocks <= device_blocks => fewest = middle,
                _ => most = middle,
            }
        }
        let too_small = || {
            let needed = u64::from(RESERVE_SEGMENTS_MIN + 4) * u64::from(segment_blocks);
            StoreError::Options(format!(
                "{device_bytes} bytes are too small for a store: segments of {segment_blocks} \
                 blocks of {block_bytes} bytes need some {} bytes; take smaller segments",
                (needed + 64) * u64::from(block_bytes)
            ))
        };
        let geometry = Self::with_segments(options, fewest).ok_or_else(too_small)?;
        if let Some(zones) = zones {
            let metadata_bytes = geometry.offset(geometry.segments_start);
            if metadata_bytes > zones.first_byte {
                return Err(StoreError::Options(format!(
                    "the ring and the map are written in place and take {metadata_bytes} bytes; of \
                     this device only the first {} may be written so",
                    zones.first_byte
                )));
            }
        }
        let geometry = geometry.moved_to(zones);
        if geometry.segments < geometry.reserve_segments + 2 {
            return Err(too_small());
        }
        Ok(geometry)
    }

    /// Bytes of a device that is divided into `segments`, if the format has room for that many.
    #[must_use]
    pub fn device_bytes(options: &FormatOptions, segments: u32) -> Option<u64> {
        let geometry = Self::with_segments(options, segments)?;
        Some(geometry.used_blocks * u64::from(options.block_bytes))
    }

    /// The same store on a larger device, of `device_bytes`: with as many segments as find room before the
    /// roots and the map, which lie at its end, where this one has nothing. Before them lies the ring, if it
    /// is to be twice as long at least, or lay there before.
    ///
    /// # Errors
    /// If the device is not larger by enough.
    pub fn grown(&self, device_bytes: u64) -> Result<Self, StoreError> {
        let bytes = u64::from(self.block_bytes);
        let device_blocks = device_bytes / bytes;
        let usual = usual_ring_blocks(device_blocks.saturating_sub(self.segments_start), bytes);
        let ring_blocks = u64::from(self.ring_blocks);
        // Where the ring has lain is lost, so it stays unless it gains much, or would lie amid segments.
        let stays = usual < 2 * ring_blocks && self.ring < self.segments_start;
        let ring_blocks = if stays { ring_blocks } else { usual.max(ring_blocks) };
        let with = |segments: u32| {
            let slots = u64::from(segments) * u64::from(self.segment_blocks);
            let map_pages = slots.div_ceil(u64::from(self.page_entries()));
            let tables = 8 * map_pages + SEGMENT_BYTES * u64::from(segments);
            let root_blocks = (ROOT_HEADER_BYTES + tables).div_ceil(bytes);
            let roots = device_blocks.checked_sub(1 + 2 * map_pages + 2 * root_blocks)?;
            let first = if stays { roots } else { roots.checked_sub(ring_blocks)? };
            let ring = if stays { self.ring } else { first };
            let is_apart = first >= self.used_blocks && first >= self.segments_start + slots;
            (slots < 1 << 31 && is_apart).then(|| Self {
                generation: self.generation + 1,
                segments,
                reserve_segments: self.reserve_of(segments),
                blocks: slots as u32,
                is_apart: true,
                root_blocks: root_blocks as u32,
                ring_blocks: ring_blocks as u32,
                map_pages: map_pages as u32,
                roots,
                ring,
                map: roots + 2 * root_blocks,
                used_blocks: device_blocks,
                ..self.clone()
            })
        };
        let most = ((1_u64 << 31) / u64::from(self.segment_blocks)).min(device_blocks) as u32;
        let (mut fewest, mut most) = (self.segments, most.max(self.segments) + 1);
        while fewest + 1 < most {
            let middle = fewest.midpoint(most);
            if with(middle).is_some() { fewest = middle } else { most = middle }
        }
        with(fewest).filter(|_| fewest > self.segments).ok_or_else(|| {
            let used_bytes = self.offset(self.used_blocks);
            StoreError::Options(format!(
                "the store has {used_bytes} bytes and the device {device_bytes}: it grows by a \
                 segment of {} blocks at least, with a new map behind it; make the device larger",
                self.segment_blocks
            ))
        })
    }

    /// Segments that are kept from users when there are `segments`: what is usual if that is so now, else in
    /// proportion.
    fn reserve_of(&self, segments: u32) -> u32 {
        if self.reserve_segments == usual_reserve_segments(self.segments) {
            return usual_reserve_segments(segments);
        }
        let reserve = u64::from(self.reserve_segments) * u64::from(segments);
        reserve.div_ceil(u64::from(self.segments)) as u32
    }

    /// With its segments in `zones`, if there are some.
    fn moved_to(mut self, zones: Option<WriteZones>) -> Self {
        if let Some(zones) = zones {
            let bytes = u64::from(self.block_bytes);
            let start = self.segments_start.max(zones.first_byte.div_ceil(bytes));
            self.segments_start = start.next_multiple_of(zones.zone_bytes / bytes);
            let slots = u64::from(self.segments) * u64::from(self.segment_blocks);
            self.used_blocks = self.segments_start + slots + 1;
        }
        self
    }

    /// The fewest segments of a store that gives its users `blocks` blocks; none if that is too many.
    #[must_use]
    pub fn segments_for(options: &FormatOptions, blocks: u32) -> Option<u32> {
        let (mut fewest, mut most) =
            (1, blocks.div_ceil(options.segment_blocks).checked_mul(2)? + 16);
        let holds = |segments| {
            let geometry = Self::with_segments(options, segments);
            geometry.map(|geometry| {
                segments > geometry.reserve_segments
                    && geometry.capacity_blocks() >= u64::from(blocks)
            })
        };
        while fewest < most {
            let middle = u32::midpoint(fewest, most);
            if holds(middle).unwrap_or(true) { most = middle } else { fewest = middle + 1 }
        }
        holds(fewest)?.then_some(fewest)
    }

    fn with_segments(options: &FormatOptions, segments: u32) -> Option<Self> {
        let FormatOptions { block_bytes, segment_blocks, .. } = *options;
        let slots = u64::from(segments) * u64::from(segment_blocks);
        if slots >= 1 << 31 {
            return None;
        }
        let bytes = u64::from(block_bytes);
        let usual = usual_reserve_segments(segments);
        let blocks = slots as u32;
        let entries = (bytes - u64::from(PAGE_HEADER_BYTES)) / u64::from(PAGE_ENTRY_BYTES);
        let map_pages = u64::from(blocks).div_ceil(entries);
        let tables = 8 * map_pages + SEGMENT_BYTES * u64::from(segments);
        let root_blocks = (ROOT_HEADER_BYTES + tables).div_ceil(bytes);
        let ring_blocks = usual_ring_blocks(slots, bytes);
        let roots = 2;
        let ring = roots + 2 * root_blocks;
        let map = ring + ring_blocks;
        let segments_start = map + 2 * map_pages;
        Some(Self {
            uuid: options.uuid,
            generation: 1,
            block_bytes,
            segment_blocks,
            segments,
            reserve_segments: options.reserve_segments.unwrap_or(usual).max(RESERVE_SEGMENTS_MIN),
            blocks,
            packs: true,
            is_apart: true,
            scatters: true,
            root_blocks: root_blocks as u32,
            ring_blocks: ring_blocks as u32,
            map_pages: map_pages as u32,
            roots,
            ring,
            map,
            segments_start,
            // The last superblock comes behind.
            used_blocks: segments_start + slots + 1,
        })
    }

    /// Entries of a map page.
    #[must_use]
    pub(crate) fn page_entries(&self) -> u32 {
        (self.block_bytes - PAGE_HEADER_BYTES) / PAGE_ENTRY_BYTES
    }

    /// Where `slot` begins, bytes.
    #[must_use]
    pub(crate) fn slot_offset(&self, slot: u32) -> u64 {
        (self.segments_start + u64::from(slot)) * u64::from(self.block_bytes)
    }

    /// The address of `slot`.
    #[must_use]
    pub(crate) fn slot_address(&self, slot: u32) -> u64 {
        self.segments_start + u64::from(slot)
    }

    /// Where `address` begins, bytes.
    #[must_use]
    pub(crate) fn offset(&self, address: u64) -> u64 {
        address * u64::from(self.block_bytes)
    }

    /// Slots.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.segments * self.segment_blocks
    }

    /// Whether `slot` is `first`, or lies behind it in its segment.
    pub(crate) fn is_behind(&self, first: u32, slot: u32) -> bool {
        first <= slot && first / self.segment_blocks == slot / self.segment_blocks
    }

    /// Blocks that users may have at once.
    #[must_use]
    pub fn capacity_blocks(&self) -> u64 {
        let segments = self.segments - self.reserve_segments;
        u64::from(segments) * u64::from(self.segment_blocks)
    }

    /// Blocks that wait at most before they are written.
    #[must_use]
    pub(crate) fn buffer_blocks(&self) -> u32 {
        self.segment_blocks.min(BUFFER_BLOCKS_MAX)
    }

    /// Blocks that a group copies at most, likewise.
    #[must_use]
    pub(crate) fn copies_max(&self) -> u32 {
        self.frees_max().max(self.buffer_blocks())
    }

    /// Blocks that a group frees at most, so that a record of them fits into the ring with a checkpoint,
    /// both twice, and is found behind a damaged one.
    #[must_use]
    pub(crate) fn frees_max(&self) -> u32 {
        // As the ring's room is counted: twenty bytes a block, and what else is in a record.
        let quarter = self.ring_blocks.min(RING_RECORD_BLOCKS_MAX) / 4 * self.block_bytes;
        (quarter.saturating_sub(512) / 20).saturating_sub(self.buffer_blocks()).max(1)
    }

    /// Where the superblocks are, addresses.
    pub(crate) fn superblocks(device_bytes: u64, block_bytes: u32) -> [u64; 3] {
        let last = (device_bytes / u64::from(block_bytes)).saturating_sub(1);
        [0, 1, last]
    }

    fn place(uuid: &[u8; 16], address: u64) -> Place<'_> {
        let magic = MAGIC[..4].try_into().expect("four bytes");
        Place { uuid, magic, address }
    }

    /// The superblock at `address`.
    pub(crate) fn encode(&self, address: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.block_bytes as usize];
        bytes[..8].copy_from_slice(MAGIC);
        put_u16(&mut bytes, 8, VERSION);
        // Each with the minor version that brought it.
        let features = [
            (self.packs, 1, PACKED_RECORDS),
            (self.is_apart, 2, PLACES_APART),
            (self.scatters, 3, SCATTERED_RECORDS),
        ];
        let features = features.into_iter().filter(|(has, ..)| *has);
        let (minor, bits) = features.fold((0, 0), |(_, bits), (_, minor, bit)| (minor, bits | bit));
        put_u16(&mut bytes, 10, minor);
        put_u32(&mut bytes, 12, bits);
        bytes[24..40].copy_from_slice(&self.uuid);
        put_u64(&mut bytes, 48, self.generation);
        let numbers = [
            self.block_bytes,
            self.segment_blocks,
            self.segments,
            self.reserve_segments,
            self.blocks,
            self.root_blocks,
            self.ring_blocks,
            self.map_pages,
        ];
        for (place, number) in numbers.into_iter().enumerate() {
            put_u32(&mut bytes, 56 + 4 * place, number);
        }
        let addresses = [self.roots, self.ring, self.map, self.segments_start, self.used_blocks];
        for (place, number) in addresses.into_iter().enumerate() {
            put_u64(&mut bytes, 88 + 8 * place, number);
        }
        Self::place(&self.uuid, address).sign_at(&mut bytes, CHECKSUM_AT);
        bytes
    }

    /// What the superblock `bytes`, a whole block, says, if it is one; an error if it is one that
    /// cannot be used.
    pub(crate) fn decode(bytes: &[u8], address: u64) -> Result<Option<Self>, StoreError> {
        if bytes[..8] != *MAGIC {
            return Ok(None);
        }
        let uuid: [u8; 16] = bytes[24..40].try_into().expect("sixteen bytes");
        if Self::place(&uuid, address).check_at(bytes, CHECKSUM_AT).is_none() {
            return Ok(None);
        }
        let offset = address * bytes.len() as u64;
        let (version, features, writing) = (u16_at(bytes, 8), u32_at(bytes, 12), u32_at(bytes, 16));
        if version != VERSION {
            let what = format!("this is a store of version {version}, and we read version 1");
            return Err(StoreError::format(offset, what));
        }
        if features & !(PACKED_RECORDS | PLACES_APART | SCATTERED_RECORDS) | writing != 0 {
            let what = "this store has features that we do not know; take a newer agewell";
            return Err(StoreError::format(offset, what));
        }
        let number = |place: usize| u32_at(bytes, 56 + 4 * place);
        let address_of = |place: usize| u64_at(bytes, 88 + 8 * place);
        let geometry = Self {
            uuid,
            generation: u64_at(bytes, 48),
            block_bytes: number(0),
            segment_blocks: number(1),
            segments: number(2),
            reserve_segments: number(3),
            blocks: number(4),
            packs: features & PACKED_RECORDS != 0,
            is_apart: features & PLACES_APART != 0,
            scatters: features & SCATTERED_RECORDS != 0,
            root_blocks: number(5),
            ring_blocks: number(6),
            map_pages: number(7),
            roots: address_of(0),
            ring: address_of(1),
            map: address_of(2),
            segments_start: address_of(3),
            used_blocks: address_of(4),
        };
        if !geometry.is_possible() || geometry.block_bytes as usize != bytes.len() {
            return Err(StoreError::format(offset, "the superblock's numbers cannot be"));
        }
        Ok(Some(geometry))
    }

    fn is_possible(&self) -> bool {
        let bytes = u64::from(self.block_bytes);
        let slots = u64::from(self.segments) * u64::from(self.segment_blocks);
        let tables = 8 * u64::from(self.map_pages) + SEGMENT_BYTES * u64::from(self.segments);
        self.block_bytes.is_power_of_two()
            && (512..=65_536).contains(&self.block_bytes)
            && (8..=1 << 20).contains(&self.segment_blocks)
            && self.segments >= 4
            && slots < 1 << 31
            && self.blocks < NONE >> 1
            && self.reserve_segments < self.segments
            && self.ring_blocks > 0
            && u64::from(self.map_pages) * u64::from(self.page_entries()) >= u64::from(self.blocks)
            && u64::from(self.root_blocks) * bytes >= ROOT_HEADER_BYTES + tables
            && self.has_parts_apart(slots)
    }

    /// Whether its parts, in the order that they are to have or in any, lie behind one another.
    fn has_parts_apart(&self, slots: u64) -> bool {
        let mut parts = [
            (self.roots, 2 * u64::from(self.root_blocks)),
            (self.ring, u64::from(self.ring_blocks)),
            (self.map, 2 * u64::from(self.map_pages)),
            (self.segments_start, slots),
        ];
        if self.is_apart {
            parts.sort_unstable();
        }
        let end = parts.iter().try_fold(2_u64, |end, (start, blocks)| {
            if *start < end { None } else { start.checked_add(*blocks) }
        });
        end.is_some_and(|end| self.used_blocks > end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_division_fits_its_device_and_is_read_back() {
        for (bytes, block_bytes, segment_blocks) in
            [(512 * 700, 512, 16), (64 << 20, 4096, 256), (64 << 30, 4096, 256)]
        {
            let options =
                FormatOptions { block_bytes, segment_blocks, ..FormatOptions::new([7; 16]) };
            let geometry = Geometry::plan(bytes, &options).unwrap();
            assert!(geometry.used_blocks * u64::from(block_bytes) <= bytes);
            let more = Geometry::device_bytes(&options, geometry.segments + 1).unwrap();
            assert!(more > bytes, "there was room for more");
            assert!(Geometry::device_bytes(&options, geometry.segments).unwrap() <= bytes);
            for address in Geometry::superblocks(bytes, block_bytes) {
                let read = Geometry::decode(&geometry.encode(address), address).unwrap();
                assert_eq!(read, Some(geometry.clone()));
                assert_eq!(Geometry::decode(&geometry.encode(address), address + 1).unwrap(), None);
            }
        }
    }

    #[test]
    fn a_grown_division_has_nothing_where_the_one_before_had_something() {
        for (bytes, block_bytes, segment_blocks) in
            [(512 * 700, 512, 16), (64 << 20, 4096, 256), (64 << 30, 4096, 256)]
        {
            let options =
                FormatOptions { block_bytes, segment_blocks, ..FormatOptions::new([7; 16]) };
            let small = Geometry::plan(bytes, &options).unwrap();
            let segment_bytes = u64::from(segment_blocks) * u64::from(block_bytes);
            let enough = (bytes..).step_by(segment_bytes as usize / 8);
            let least = enough.clone().find(|bytes| small.grown(*bytes).is_ok()).unwrap();
            // By a segment and what describes all of them, or a little more.
            let described = small.offset(2 * u64::from(small.root_blocks + small.map_pages));
            assert!(least - bytes <= 2 * segment_bytes + described * 21 / 20, "{least}");
            for size_bytes in [least, 2 * bytes, 3 * bytes + 5 * segment_bytes / 3] {
                let grown = small.grown(size_bytes).unwrap();
                assert!(grown.roots >= small.used_blocks && grown.segments > small.segments);
                assert!(grown.offset(grown.used_blocks) <= size_bytes);
                let behind = if grown.ring == small.ring { grown.roots } else { grown.ring };
                let rest = behind - grown.segments_start - u64::from(grown.slots());
                assert!(size_bytes == least || rest < u64::from(segment_blocks) + 8, "{rest}");
                for address in Geometry::superblocks(size_bytes, block_bytes) {
                    let read = Geometry::decode(&grown.encode(address), address).unwrap();
                    assert_eq!(read, Some(grown.clone()));
                }
                // Parts that lie within others.
                let last_slot = grown.segments_start + u64::from(grown.slots()) - 1;
                for broken in [
                    Geometry { map: grown.map - 1, ..grown.clone() },
                    Geometry { roots: last_slot, ..grown.clone() },
                    Geometry { used_blocks: grown.used_blocks - 1, ..grown.clone() },
                    Geometry { ring: 1, ..grown.clone() },
                    Geometry { is_apart: false, ..grown.clone() },
                ] {
                    assert!(Geometry::decode(&broken.encode(0), 0).is_err(), "{broken:?}");
                }
                // And once more.
                let again = grown.grown(size_bytes * 2).unwrap();
                assert!(again.roots >= grown.used_blocks && again.generation == 3);
            }
            assert!(small.grown(bytes).is_err() && small.grown(0).is_err());
        }
    }

    #[test]
    fn users_have_nine_tenths() {
        let geometry = Geometry::plan(1 << 30, &FormatOptions::new([0; 16])).unwrap();
        let usable = geometry.capacity_blocks() as f64 * 4096.0 / f64::from(1 << 30);
        assert!(usable >= 0.91, "{usable}");
    }

    #[test]
    fn a_store_that_has_grown_is_worth_one_that_was_made_so_large() {
        let options = FormatOptions::new([0; 16]);
        let small = Geometry::plan(64 << 20, &options).unwrap();
        for device_bytes in [200 << 20, 8 << 30, 2 << 40] {
            let grown = small.grown(device_bytes).unwrap();
            assert!(grown.is_possible());
            let made = Geometry::plan(device_bytes, &options).unwrap();
            let share = grown.capacity_blocks() as f64 / made.capacity_blocks() as f64;
            assert!(share > 0.985, "{share} of {device_bytes} bytes");
            let ring = f64::from(grown.ring_blocks) / f64::from(made.ring_blocks);
            assert!((0.98..1.02).contains(&ring), "{ring} of {device_bytes} bytes");
            let again = grown.grown(3 * device_bytes).unwrap();
            assert!(again.is_possible() && again.ring_blocks >= grown.ring_blocks);
        }
        let reserve_segments = Some(16);
        let said =
            Geometry::plan(64 << 20, &FormatOptions { reserve_segments, ..options }).unwrap();
        let grown = said.grown(640 << 20).unwrap();
        let share = f64::from(grown.reserve_segments) / f64::from(grown.segments);
        let before = 16.0 / f64::from(said.segments);
        assert!((before..before + 0.01).contains(&share), "{share} of {before}");
    }

    #[test]
    fn a_store_for_some_blocks_has_room_for_them_and_not_for_a_segment_more() {
        for (blocks, segment_blocks, reserve) in
            [(1, 8, None), (80_000, 256, None), (80_000, 64, Some(20)), (3_000_000, 512, None)]
        {
            let mut options = FormatOptions::new([0; 16]);
            (options.segment_blocks, options.reserve_segments) = (segment_blocks, reserve);
            let segments = Geometry::segments_for(&options, blocks).unwrap();
            let capacity =
                |segments| Geometry::with_segments(&options, segments).unwrap().capacity_blocks();
            let (least, most) = (u64::from(blocks), u64::from(blocks + segment_blocks));
            assert!((least..most).contains(&capacity(segments)), "{blocks} in {segments}");
        }
        assert_eq!(Geometry::segments_for(&FormatOptions::new([0; 16]), u32::MAX), None);
    }
}
