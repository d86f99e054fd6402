//! Where everything is, as follows from the parameters.
//!
//! A file system is a sequence of fragments; `fragments_per_block` of them make a block, and blocks
//! begin at multiples of that. A cylinder group has, from an offset that differs from group to
//! group, so that not all lie on one platter: a copy of the superblock, its maps, its inodes. What
//! lies before and behind these is data; group 0 has the boot block in front and the summary of all
//! groups behind its inodes.
//!
//! The tables of rotational positions say for each block of a group its cylinder and how far round
//! the track it begins, and for each cylinder and position which blocks begin there.
//!
//! Source: McKusick et al. 1984, §2; the superblock fields of 4.4BSD (`fs.h`) and the arithmetic of
//! its `newfs`. Tracks are not skewed against one another and sectors not interleaved.

use super::{ParameterError, Parameters};

/// Direct blocks of an inode (4.4BSD's `NDADDR`).
pub(crate) const DIRECT_BLOCKS: u32 = 12;
/// Bytes of an inode on disk.
const INODE_BYTES: u32 = 128;
/// Bytes of the boot block, and of the space for a superblock.
const BOOT_BYTES: u32 = 8192;
const SUPERBLOCK_BYTES: u32 = 8192;
/// Bytes of the superblock in front of its tables of rotational positions.
const SUPERBLOCK_FIXED_BYTES: u32 = 1376;
/// Bytes of the fixed part of a group's maps.
const GROUP_FIXED_BYTES: u64 = 168;
/// Bytes of a group's entry in the summary of all groups.
const SUMMARY_BYTES: u32 = 16;
/// Largest cluster that a group keeps count of (4.4BSD's `FS_MAXCONTIG`).
pub(crate) const CLUSTER_MAX: u32 = 16;
/// Fragments that 4.4BSD can number: its addresses are signed.
const FRAGMENTS_MAX: u64 = 1 << 31;
/// Bytes of the unit in which directories grow and are written atomically.
pub(crate) const DIRECTORY_CHUNK_BYTES: u32 = 512;

/// Derived sizes and places; fragments unless named otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    pub(crate) block_bytes: u32,
    pub(crate) fragment_bytes: u32,
    pub(crate) fragments_per_block: u32,
    /// The whole file system.
    pub(crate) fragments: u32,
    pub(crate) groups: u32,
    pub(crate) fragments_per_group: u32,
    pub(crate) blocks_per_group: u32,
    pub(crate) cylinders_per_group: u32,
    pub(crate) inodes_per_group: u32,
    pub(crate) inodes_per_block: u32,
    /// Addresses in an indirect block.
    pub(crate) addresses_per_block: u32,
    /// Fragments for data, directories and indirect blocks in all.
    pub(crate) data_fragments: u32,
    /// Fragments that ordinary users leave free.
    pub(crate) reserve_fragments: u32,
    pub(crate) minfree_pct: u32,
    /// The rotational gap.
    pub(crate) gap_fragments: u32,
    pub(crate) maxcontig: u32,
    /// Largest cluster that is counted; 0 where clusters are not.
    pub(crate) cluster_max: u32,
    pub(crate) maxbpg: u32,
    pub(crate) transfer_blocks_max: u32,
    pub(crate) entries_per_chunk: u32,
    /// Fragments that a group's maps take on disk.
    pub(crate) map_fragments: u32,
    summary_fragments: u32,
    superblock_at: u32,
    maps_at: u32,
    inodes_at: u32,
    data_at: u32,
    offset_step: u32,
    offset_mask: u32,
    /// Rotational positions that the tables distinguish; 1 where there are no tables.
    pub(crate) positions: u32,
    /// Cylinder times `positions` plus position, for each block of a group.
    pub(crate) slot_of_block: Vec<u32>,
    /// The blocks of slot `s` are these of `blocks_by_slot`, ascending.
    pub(crate) slot_starts: Vec<u32>,
    pub(crate) blocks_by_slot: Vec<u32>,
}

fn range(
    name: &'static str,
    value: u32,
    fits: bool,
    needs: &'static str,
) -> Result<(), ParameterError> {
    if fits { Ok(()) } else { Err(ParameterError::Range { name, value: u64::from(value), needs }) }
}

fn check_ranges(from: &Parameters) -> Result<(), ParameterError> {
    let power = |value: u32, least: u32, most: u32| {
        value.is_power_of_two() && (least..=most).contains(&value)
    };
    let positive = |name, value| range(name, value, value > 0, "has to be at least 1");
    range(
        "block_bytes",
        from.block_bytes,
        power(from.block_bytes, 4096, 65536),
        "has to be a power of two from 4096 to 65536",
    )?;
    range(
        "sector_bytes",
        from.sector_bytes,
        power(from.sector_bytes, 256, 4096),
        "has to be a power of two from 256 to 4096",
    )?;
    range(
        "fragment_bytes",
        from.fragment_bytes,
        power(from.fragment_bytes, from.sector_bytes.max(512), from.block_bytes)
            && from.block_bytes / from.fragment_bytes <= 8,
        "has to be a block or a half, quarter or eighth of one, and at least a sector and 512",
    )?;
    positive("sectors_per_track", from.sectors_per_track)?;
    positive("heads", from.heads)?;
    positive("cylinders", from.cylinders)?;
    positive("cylinders_per_group", from.cylinders_per_group)?;
    positive("maxcontig", from.maxcontig)?;
    positive("maxbpg", from.maxbpg)?;
    positive("rpm", from.rpm)?;
    positive("rotational_positions", from.rotational_positions)?;
    range(
        "transfer_blocks_max",
        from.transfer_blocks_max,
        (1..=65536).contains(&from.transfer_blocks_max),
        "has to be from 1 to 65536",
    )?;
    range("rpm", from.rpm, from.rpm <= 1_000_000, "has to be at most 1000000")?;
    range("rotdelay_ms", from.rotdelay_ms, from.rotdelay_ms <= 1000, "has to be at most 1000")?;
    range("minfree_pct", from.minfree_pct, from.minfree_pct < 100, "has to be below 100")?;
    range(
        "sectors_per_track",
        from.sectors_per_track,
        u64::from(from.sectors_per_track) * u64::from(from.heads) <= 1 << 24,
        "times heads has to be at most 2^24",
    )?;
    range(
        "rotational_positions",
        from.rotational_positions,
        from.rotational_positions <= 256,
        "has to be at most 256",
    )?;
    range(
        "bytes_per_inode",
        from.bytes_per_inode,
        from.bytes_per_inode >= 128,
        "has to be at least 128",
    )?;
    range(
        "entry_bytes",
        from.entry_bytes,
        (12..=264).contains(&from.entry_bytes),
        "has to be from 12 to 264",
    )
}

fn gcd(first: u64, second: u64) -> u64 {
    if second == 0 { first } else { gcd(second, first % second) }
}

impl Geometry {
    pub(crate) fn new(from: &Parameters) -> Result<Self, ParameterError> {
        check_ranges(from)?;
        let fragments_per_block = from.block_bytes / from.fragment_bytes;
        let sectors_per_fragment = from.fragment_bytes / from.sector_bytes;
        let sectors_per_block = from.block_bytes / from.sector_bytes;
        let cylinder_sectors = from.sectors_per_track * from.heads;
        // A file system of less than a group's cylinders has one group of those it has.
        let ragged = from.cylinders_per_group.min(from.cylinders);
        let multiple = (u64::from(sectors_per_block)
            / gcd(u64::from(sectors_per_block), u64::from(cylinder_sectors)))
            as u32;
        let cylinders_per_group = from.cylinders_per_group;
        if ragged == cylinders_per_group && !cylinders_per_group.is_multiple_of(multiple) {
            return Err(ParameterError::Ragged {
                cylinders: cylinders_per_group,
                sectors: cylinder_sectors,
                multiple,
            });
        }
        let sectors = u64::from(cylinder_sectors) * u64::from(from.cylinders);
        let fragments = sectors / u64::from(sectors_per_fragment);
        if fragments > FRAGMENTS_MAX {
            return Err(ParameterError::TooLarge { fragments });
        }
        let group_sectors = u64::from(cylinder_sectors) * u64::from(cylinders_per_group);
        let blocks_per_group = (group_sectors / u64::from(sectors_per_block))
            .min(fragments / u64::from(fragments_per_block));
        let blocks_per_group = blocks_per_group as u32;
        let mut geometry = Self {
            block_bytes: from.block_bytes,
            fragment_bytes: from.fragment_bytes,
            fragments_per_block,
            // Fragments behind the last whole block are not used.
            fragments: fragments as u32 / fragments_per_block * fragments_per_block,
            groups: 0,
            fragments_per_group: blocks_per_group * fragments_per_block,
            blocks_per_group,
            cylinders_per_group,
            inodes_per_group: 0,
            inodes_per_block: from.block_bytes / INODE_BYTES,
            addresses_per_block: from.block_bytes / 4,
            data_fragments: 0,
            reserve_fragments: 0,
            minfree_pct: from.minfree_pct,
            gap_fragments: gap_fragments(from, sectors_per_fragment, fragments_per_block)?,
            // No run is longer than a group.
            maxcontig: from.maxcontig.min(blocks_per_group.max(1)),
            cluster_max: if from.maxcontig > 1 { from.maxcontig.min(CLUSTER_MAX) } else { 0 },
            maxbpg: from.maxbpg,
            transfer_blocks_max: from.transfer_blocks_max,
            entries_per_chunk: DIRECTORY_CHUNK_BYTES / from.entry_bytes,
            map_fragments: 0,
            summary_fragments: 0,
            superblock_at: 0,
            maps_at: 0,
            inodes_at: 0,
            data_at: 0,
            offset_step: from
                .sectors_per_track
                .div_ceil(sectors_per_fragment)
                .next_multiple_of(fragments_per_block),
            offset_mask: from.heads.next_power_of_two() - 1,
            positions: 1,
            slot_of_block: Vec::new(),
            slot_starts: Vec::new(),
            blocks_by_slot: Vec::new(),
        };
        geometry.place_metadata(from)?;
        geometry.tabulate_rotation(from);
        Ok(geometry)
    }

    fn place_metadata(&mut self, from: &Parameters) -> Result<(), ParameterError> {
        let round = |bytes: u32| {
            bytes.div_ceil(self.fragment_bytes).next_multiple_of(self.fragments_per_block)
        };
        let no_data = ParameterError::NoData { blocks: self.blocks_per_group };
        if self.blocks_per_group == 0 {
            return Err(no_data);
        }
        let group_bytes = u64::from(self.blocks_per_group) * u64::from(self.block_bytes);
        let inodes = (group_bytes / u64::from(from.bytes_per_inode))
            .max(1)
            .next_multiple_of(u64::from(self.inodes_per_block));
        self.superblock_at = round(BOOT_BYTES + SUPERBLOCK_BYTES);
        self.maps_at = self.superblock_at + round(SUPERBLOCK_BYTES);
        self.inodes_at = self.maps_at + self.fragments_per_block;
        let inode_fragments =
            inodes / u64::from(self.inodes_per_block) * u64::from(self.fragments_per_block);
        let data_at = u64::from(self.inodes_at) + inode_fragments;
        if data_at >= u64::from(self.fragments_per_group) {
            return Err(no_data);
        }
        (self.inodes_per_group, self.data_at) = (inodes as u32, data_at as u32);
        let map_bytes = self.map_bytes(from);
        if map_bytes > u64::from(self.block_bytes) {
            return Err(ParameterError::GroupTooLarge {
                bytes: map_bytes,
                block_bytes: self.block_bytes,
            });
        }
        self.map_fragments = (map_bytes as u32).div_ceil(self.fragment_bytes);
        self.groups = self.fragments.div_ceil(self.fragments_per_group);
        // A last group that is cut off within its inodes is not used (as `newfs` decides).
        let last = self.groups - 1;
        if last > 0 && self.offset(last) + self.data_at >= self.group_fragments(last) {
            self.fragments = last * self.fragments_per_group;
            self.groups = last;
        }
        self.summary_fragments = (self.groups * SUMMARY_BYTES).div_ceil(self.fragment_bytes);
        for group in 0..self.groups {
            let size = self.group_fragments(group);
            if u64::from(self.data_start(group)) >= u64::from(size) {
                return Err(no_data);
            }
        }
        let inodes = u64::from(self.groups) * u64::from(self.inodes_per_group);
        if inodes > u64::from(u32::MAX) {
            return Err(ParameterError::Range {
                name: "bytes_per_inode",
                value: u64::from(from.bytes_per_inode),
                needs: "has to be larger: there would be more than 2^32 inodes",
            });
        }
        self.data_fragments = (0..self.groups)
            .map(|group| self.group_fragments(group) - self.metadata_fragments(group))
            .sum();
        let reserve = u64::from(self.data_fragments) * u64::from(from.minfree_pct) / 100;
        self.reserve_fragments = reserve as u32;
        Ok(())
    }

    /// Bytes of a group's header, tables and maps.
    fn map_bytes(&self, from: &Parameters) -> u64 {
        let cylinders = u64::from(self.cylinders_per_group);
        let blocks = u64::from(self.blocks_per_group);
        GROUP_FIXED_BYTES
            + cylinders * (4 + 2 * u64::from(from.rotational_positions))
            + u64::from(self.inodes_per_group).div_ceil(8)
            + u64::from(self.fragments_per_group).div_ceil(8)
            + 4 * u64::from(self.cluster_max + 1)
            + blocks.div_ceil(8)
    }

    fn tabulate_rotation(&mut self, from: &Parameters) {
        let cylinder_sectors = from.sectors_per_track * from.heads;
        let sectors_per_block = from.block_bytes / from.sector_bytes;
        self.positions = from.rotational_positions;
        if !has_rotation_tables(from, cylinder_sectors, sectors_per_block) {
            self.positions = 1;
        }
        let slots = self.cylinders_per_group * self.positions;
        let mut counts = vec![0_u32; slots as usize + 1];
        for block in 0..self.blocks_per_group {
            let sector = u64::from(block) * u64::from(sectors_per_block);
            let cylinder = (sector / u64::from(cylinder_sectors)) as u32;
            let within = (sector % u64::from(from.sectors_per_track)) as u32;
            let position = within * self.positions / from.sectors_per_track;
            let slot = cylinder * self.positions + position;
            self.slot_of_block.push(slot);
            counts[slot as usize + 1] += 1;
        }
        for slot in 0..slots as usize {
            counts[slot + 1] += counts[slot];
        }
        self.slot_starts.clone_from(&counts);
        self.blocks_by_slot = vec![0; self.blocks_per_group as usize];
        for (block, slot) in self.slot_of_block.iter().enumerate() {
            let at = &mut counts[*slot as usize];
            self.blocks_by_slot[*at as usize] = block as u32;
            *at += 1;
        }
    }

    /// Where the metadata of `group` begins, before its superblock's place, within the group.
    fn offset(&self, group: u32) -> u32 {
        self.offset_step * (group & self.offset_mask)
    }

    /// First fragment behind the metadata of `group`, within the group.
    fn data_start(&self, group: u32) -> u32 {
        let summary = if group == 0 { self.summary_fragments } else { 0 };
        self.offset(group) + self.data_at + summary
    }

    /// The fragments of `group` that are never data, within the group.
    pub(crate) fn metadata(&self, group: u32) -> std::ops::Range<u32> {
        let first = if group == 0 { 0 } else { self.offset(group) + self.superblock_at };
        first..self.data_start(group)
    }

    fn metadata_fragments(&self, group: u32) -> u32 {
        self.metadata(group).len() as u32
    }

    /// Fragments of `group`; the last one may be cut off.
    pub(crate) fn group_fragments(&self, group: u32) -> u32 {
        (self.fragments - group * self.fragments_per_group).min(self.fragments_per_group)
    }

    /// First fragment of `group`.
    #[inline]
    pub(crate) fn group_start(&self, group: u32) -> u32 {
        group * self.fragments_per_group
    }

    /// The group that `address` is in.
    #[inline]
    pub(crate) fn group_of(&self, address: u32) -> u32 {
        address / self.fragments_per_group
    }

    /// The group of an inode.
    #[inline]
    pub(crate) fn inode_group(&self, inode: u32) -> u32 {
        inode / self.inodes_per_group
    }

    /// The block of the inode table that holds `inode`.
    pub(crate) fn inode_address(&self, inode: u32) -> u32 {
        let (group, within) = (inode / self.inodes_per_group, inode % self.inodes_per_group);
        let block = within / self.inodes_per_block;
        self.group_start(group)
            + self.offset(group)
            + self.inodes_at
            + block * self.fragments_per_block
    }

    /// The maps of `group`.
    pub(crate) fn map_address(&self, group: u32) -> u32 {
        self.group_start(group) + self.offset(group) + self.maps_at
    }

    /// The first superblock.
    pub(crate) fn superblock(&self) -> (u32, u32) {
        (BOOT_BYTES.div_ceil(self.fragment_bytes), SUPERBLOCK_BYTES.div_ceil(self.fragment_bytes))
    }

    /// Whole blocks that `bytes` touch.
    #[inline]
    pub(crate) fn blocks_of(&self, bytes: u64) -> u32 {
        bytes.div_ceil(u64::from(self.block_bytes)) as u32
    }

    /// Fragments that `bytes` of a block take.
    #[inline]
    pub(crate) fn fragments_of(&self, bytes: u32) -> u32 {
        bytes.div_ceil(self.fragment_bytes)
    }

    /// Largest file that single and double indirect blocks reach, bytes.
    pub(crate) fn file_bytes_max(&self) -> u64 {
        let addresses = u64::from(self.addresses_per_block);
        (u64::from(DIRECT_BLOCKS) + addresses + addresses * addresses)
            .min(u64::from(u32::MAX) - 1)
            .saturating_mul(u64::from(self.block_bytes))
    }
}

/// The gap in fragments: the delay in sectors, rounded up to blocks.
fn gap_fragments(
    from: &Parameters,
    sectors_per_fragment: u32,
    fragments_per_block: u32,
) -> Result<u32, ParameterError> {
    let turns_per_s = u64::from(from.rpm / 60);
    let sectors = u64::from(from.rotdelay_ms) * turns_per_s * u64::from(from.sectors_per_track);
    let fragments = sectors / (u64::from(sectors_per_fragment) * 1000);
    let cylinder = u64::from(from.sectors_per_track) * u64::from(from.heads);
    if fragments * u64::from(sectors_per_fragment) > cylinder {
        return Err(ParameterError::Range {
            name: "rotdelay_ms",
            value: u64::from(from.rotdelay_ms),
            needs: "has to be short enough for the gap to fit into a cylinder",
        });
    }
    Ok((fragments as u32).next_multiple_of(fragments_per_block))
}

/// Whether the superblock has room for the tables of rotational positions, which repeat after as
/// many cylinders as it takes for a block to begin a cylinder again.
fn has_rotation_tables(from: &Parameters, cylinder_sectors: u32, sectors_per_block: u32) -> bool {
    if from.heads == 1 || from.rotational_positions <= 1 {
        return false;
    }
    let (mut cycle, mut sectors) = (sectors_per_block, cylinder_sectors);
    while cycle > 1 && sectors.is_multiple_of(2) {
        (cycle, sectors) = (cycle / 2, sectors / 2);
    }
    let table = u64::from(cycle) * u64::from(from.rotational_positions) * 2;
    let chain = u64::from(cylinder_sectors) * u64::from(cycle) / u64::from(sectors_per_block);
    table + chain + u64::from(SUPERBLOCK_FIXED_BYTES) <= u64::from(SUPERBLOCK_BYTES)
}
