//! Block groups: their descriptors, and what is free.
//!
//! A group whose block bitmap was never written (`BLOCK_UNINIT`) holds its own metadata and nothing
//! else; its bitmap is made as the kernel makes it when it first needs it (Linux,
//! `fs/ext4/balloc.c`: `ext4_init_block_bitmap`).

use super::super::super::Progress;
use super::super::fault::Fault;
use super::super::fields::Fields;
use super::super::map::{FreeMap, runs_of};
use super::super::reader::Image;
use super::super::tell;
use super::superblock::{
    INCOMPATIBLE_64BIT, INCOMPATIBLE_META_BG, READ_ONLY_GDT_CSUM, READ_ONLY_METADATA_CSUM,
    Superblock,
};
use crate::FreeExtent;

const INODE_UNINIT: u16 = 1;
const BLOCK_UNINIT: u16 = 2;

/// A block group, within bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    block_bitmap: u64,
    inode_bitmap: u64,
    inode_table: u64,
    /// Whether the block bitmap was never written.
    bitmap_absent: bool,
    /// Where its inode table begins, bytes.
    pub(super) inode_table_bytes: u64,
    /// How many inodes at the beginning of the table may be in use.
    pub(super) inodes_used: u64,
}

/// All block groups.
#[derive(Debug)]
pub(super) struct Groups(Vec<Group>);

impl Groups {
    /// Reads all descriptors.
    pub(super) fn read(image: &mut Image, superblock: &Superblock) -> Result<Self, Fault> {
        let per_block = u64::from(superblock.block_bytes / superblock.descriptor_bytes);
        let mut groups = Vec::new();
        for number in 0..superblock.groups {
            let block = descriptor_block(superblock, number / per_block, per_block);
            let address = block * u64::from(superblock.block_bytes)
                + number % per_block * u64::from(superblock.descriptor_bytes);
            let bytes = image.bytes(address, superblock.descriptor_bytes as usize)?;
            let group = parse(Fields::little(bytes), superblock)
                .map_err(|fault| fault.within(format_args!("group {number}")))?;
            groups.push(group);
        }
        Ok(Self(groups))
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Group `number`.
    pub(super) fn group(&self, number: u64) -> &Group {
        &self.0[number as usize]
    }

    /// Where inode `number` stands on the device, bytes, if there is such an inode.
    pub(super) fn inode_address(&self, superblock: &Superblock, number: u64) -> Option<u64> {
        let index = number.checked_sub(1)?;
        let group = self.0.get((index / superblock.inodes_per_group) as usize)?;
        let within = index % superblock.inodes_per_group;
        let used = within < group.inodes_used;
        used.then(|| group.inode_table_bytes + within * u64::from(superblock.inode_bytes))
    }

    /// What is free, and how many bytes it is.
    pub(super) fn free_map(
        &mut self,
        image: &Image,
        superblock: &Superblock,
        progress: &mut Progress<'_>,
    ) -> Result<(Vec<FreeExtent>, u64), Fault> {
        let block_bytes = u64::from(superblock.block_bytes);
        let mut free = FreeMap::default();
        let mut bitmap = vec![0; superblock.block_bytes as usize];
        for (number, group) in self.0.iter().enumerate() {
            let number = number as u64;
            let start = superblock.group_start(number);
            let blocks = superblock.group_blocks(number);
            let clusters = blocks.div_ceil(superblock.cluster_blocks);
            if group.bitmap_absent {
                bitmap.fill(0);
                mark_own_metadata(superblock, number, group, &mut bitmap);
            } else {
                image.read_at(group.block_bitmap * block_bytes, &mut bitmap)?;
            }
            runs_of(&bitmap, clusters, false, |first, end| {
                let first = first * superblock.cluster_blocks;
                let end = (end * superblock.cluster_blocks).min(blocks);
                free.add((start + first) * block_bytes, (end - first) * block_bytes);
            });
            if number % 1024 == 1023 {
                tell(progress, 0)?;
            }
        }
        Ok(free.finish())
    }
}

/// The block that holds the descriptors of the `index`-th `per_block` groups (Linux,
/// `fs/ext4/super.c`: `descriptor_loc`).
fn descriptor_block(superblock: &Superblock, index: u64, per_block: u64) -> u64 {
    let meta = superblock.features.has_incompatible(INCOMPATIBLE_META_BG);
    if !meta || index < superblock.first_meta_group {
        return superblock.own_block + 1 + index;
    }
    let group = index * per_block;
    let mut skipped = u64::from(superblock.has_superblock(group));
    // With `bigalloc` and blocks of 1 KiB, group 0 begins one block before its superblock.
    if superblock.own_block == 1 && index == 0 && superblock.first_data_block == 0 {
        skipped += 1;
    }
    superblock.group_start(group) + skipped
}

fn parse(fields: Fields<'_>, superblock: &Superblock) -> Result<Group, Fault> {
    let wide = superblock.features.has_incompatible(INCOMPATIBLE_64BIT);
    let address = |low, high| {
        if wide { fields.halves(low, high) } else { u64::from(fields.u32(low)) }
    };
    let checked = superblock.features.has_read_only(READ_ONLY_GDT_CSUM | READ_ONLY_METADATA_CSUM);
    // Without checksums the flags and the count of unused inodes mean nothing.
    let flags = if checked { fields.u16(0x12) } else { 0 };
    let mut unused = if checked { u64::from(fields.u16(0x1C)) } else { 0 };
    if checked && wide {
        unused |= u64::from(fields.u16(0x32)) << 16;
    }
    let inodes = superblock.inodes_per_group;
    if flags & INODE_UNINIT != 0 {
        unused = inodes;
    }
    let Some(inodes_used) = inodes.checked_sub(unused) else {
        return Err(Fault::corrupt(format!("{unused} of {inodes} inodes unused")));
    };
    let inode_table = address(0x8, 0x28);
    let group = Group {
        block_bitmap: address(0x0, 0x20),
        inode_bitmap: address(0x4, 0x24),
        inode_table,
        bitmap_absent: flags & BLOCK_UNINIT != 0,
        inode_table_bytes: inode_table.saturating_mul(u64::from(superblock.block_bytes)),
        inodes_used,
    };
    let pieces = [
        ("block bitmap", group.block_bitmap, 1),
        ("inode bitmap", group.inode_bitmap, 1),
        ("inode table", inode_table, superblock.inode_table_blocks),
    ];
    for (name, block, length) in pieces {
        let end = block.checked_add(length);
        if block <= superblock.first_data_block || end.is_none_or(|end| end > superblock.blocks) {
            return Err(Fault::corrupt(format!("its {name} at block {block} is impossible")));
        }
    }
    Ok(group)
}

/// Marks in `bitmap` what group `number` holds of itself.
fn mark_own_metadata(superblock: &Superblock, number: u64, group: &Group, bitmap: &mut [u8]) {
    let start = superblock.group_start(number);
    let blocks = superblock.group_blocks(number);
    let mut mark = |first: u64, length: u64| {
        // What another group of its flexible group holds of it is not here.
        let end = first.saturating_add(length).min(start + blocks);
        for block in first.max(start)..end {
            let bit = (block - start) / superblock.cluster_blocks;
            bitmap[(bit / 8) as usize] |= 1 << (bit % 8);
        }
    };
    mark(start, descriptor_blocks(superblock, number));
    mark(group.block_bitmap, 1);
    mark(group.inode_bitmap, 1);
    mark(group.inode_table, superblock.inode_table_blocks);
}

/// How many blocks at the beginning of group `number` hold copies of the superblock and of
/// descriptors.
fn descriptor_blocks(superblock: &Superblock, number: u64) -> u64 {
    let per_block = u64::from(superblock.block_bytes / superblock.descriptor_bytes);
    let meta = superblock.features.has_incompatible(INCOMPATIBLE_META_BG);
    let copy = u64::from(superblock.has_superblock(number));
    if !meta || number < superblock.first_meta_group.saturating_mul(per_block) {
        if copy == 0 {
            return 0;
        }
        let all = superblock.groups.div_ceil(per_block);
        let blocks = if meta { superblock.first_meta_group } else { all };
        return copy + blocks + superblock.reserved_descriptor_blocks;
    }
    // In a meta group the first, the second and the last group hold the descriptors.
    let within = number % per_block;
    copy + u64::from(within <= 1 || within == per_block - 1)
}
