//! A cylinder group's own block: which inodes are used and which fragments are free.
//!
//! Source: 4.4BSD, `sys/ufs/ffs/fs.h`, `struct cg` and, for 4.2BSD, `struct ocg`.

use super::super::fault::Fault;
use super::super::fields::Fields;
use super::super::reader::Image;
use super::superblock::Superblock;

const MAGIC: u32 = 0x0009_0255;

/// Where the magic number and the maps stand in a group of 4.2BSD: behind block totals of 32
/// cylinders, positions of 32 times 8, and a map of 2048 inodes.
const OLD_USED_AT: usize = 724;
const OLD_MAGIC_AT: usize = 980;
const OLD_FREE_AT: usize = 984;

/// The fixed fields in front of the maps, bytes; as many as `struct ocg` needs.
const HEADER_BYTES: u64 = 984;

/// A cylinder group.
#[derive(Debug)]
pub(super) struct CylinderGroup {
    bytes: Vec<u8>,
    used_at: usize,
    free_at: usize,
    /// Its first fragment.
    pub(super) base: u64,
    /// How many it has.
    pub(super) fragments: u64,
}

impl CylinderGroup {
    /// Reads group `number`.
    pub(super) fn read(image: &Image, superblock: &Superblock, number: u64) -> Result<Self, Fault> {
        if !superblock.has_group(number) {
            return Err(Fault::corrupt("begins beyond the end of the file system"));
        }
        let mut bytes = vec![0; superblock.group_block_bytes.max(HEADER_BYTES) as usize];
        image.read_at(superblock.group_block_address(number), &mut bytes)?;
        let fields = Fields::new(&bytes, superblock.order);
        let magic_at = if superblock.old_groups { OLD_MAGIC_AT } else { 4 };
        if fields.u32(magic_at) != MAGIC {
            return Err(Fault::corrupt("without its magic number"));
        }
        let (used_at, free_at) = if superblock.old_groups {
            (OLD_USED_AT, OLD_FREE_AT)
        } else {
            (fields.u32(92) as usize, fields.u32(96) as usize)
        };
        let base = number * superblock.fragments_per_group;
        let fragments = superblock.fragments_per_group.min(superblock.fragments - base);
        let told = u64::from(fields.u32(20));
        if told != fragments {
            return Err(Fault::corrupt(format!("has {told} fragments, not {fragments}")));
        }
        let group = Self { bytes, used_at, free_at, base, fragments };
        let ends =
            [(used_at, superblock.inodes_per_group.div_ceil(8)), (free_at, fragments.div_ceil(8))];
        for (start, length) in ends {
            let end = (start as u64).checked_add(length);
            if end.is_none_or(|end| end > group.bytes.len() as u64) {
                return Err(Fault::corrupt("its maps reach beyond its block"));
            }
        }
        Ok(group)
    }

    /// A bit for each inode, set where it is used.
    pub(super) fn used_inodes(&self) -> &[u8] {
        &self.bytes[self.used_at..]
    }

    /// A bit for each fragment, set where it is free.
    pub(super) fn free_fragments(&self) -> &[u8] {
        &self.bytes[self.free_at..]
    }
}
