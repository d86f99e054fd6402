//! What an ext2, ext3 or ext4 file system says of itself, from its superblock.
//!
//! Source: Linux `Documentation/filesystems/ext4/super.rst`. The superblock is read from the block
//! device, where that is allowed.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::FileSystemFacts;

/// Where the superblock is, bytes.
const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;
const MAGIC: u16 = 0xEF53;

/// `s_feature_compat`, `s_feature_incompat`, `s_feature_ro_compat`: where each stands, and the
/// features that change where data lie or how moves are logged.
const FEATURES: [(usize, u32, &str); 11] = [
    (0x5C, 0x4, "has_journal"),
    (0x5C, 0x10, "resize_inode"),
    (0x5C, 0x20, "dir_index"),
    (0x5C, 0x400, "fast_commit"),
    (0x60, 0x10, "meta_bg"),
    (0x60, 0x40, "extent"),
    (0x60, 0x80, "64bit"),
    (0x60, 0x200, "flex_bg"),
    (0x60, 0x8000, "inline_data"),
    (0x64, 0x200, "bigalloc"),
    (0x64, 0x400, "metadata_csum"),
];

struct Superblock([u8; SUPERBLOCK_BYTES]);

impl Superblock {
    fn short(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.0[at..at + 2].try_into().expect("two bytes"))
    }

    fn long(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }
}

/// Fills in what the superblock on `device` says; `None` if it is none.
pub(super) fn describe(device: &File, facts: &mut FileSystemFacts) -> Option<()> {
    let mut superblock = Superblock([0; SUPERBLOCK_BYTES]);
    device.read_exact_at(&mut superblock.0, SUPERBLOCK_AT).ok()?;
    let log_block_bytes = superblock.long(0x18);
    if superblock.short(0x38) != MAGIC || log_block_bytes > 6 {
        return None;
    }
    let block_bytes = 1024 << log_block_bytes;
    let has = |(at, bit, _): &(usize, u32, &str)| superblock.long(*at) & bit != 0;
    let names: Vec<&str> =
        FEATURES.iter().filter(|feature| has(feature)).map(|(_, _, name)| *name).collect();
    let high = if names.contains(&"64bit") { superblock.long(0x150) } else { 0 };
    let blocks = u64::from(high) << 32 | u64::from(superblock.long(0x4));
    facts.block_bytes = block_bytes;
    facts.fragment_bytes = block_bytes;
    facts.total_bytes = blocks.checked_mul(block_bytes.into())?;
    facts.group_bytes = u64::from(superblock.long(0x20)) * u64::from(block_bytes);
    facts.first_group_bytes = u64::from(superblock.long(0x14)) * u64::from(block_bytes);
    let mut set = |name: &str, value: String| facts.parameters.insert(name.to_owned(), value);
    set("features", names.join(","));
    set("inodes_per_group", superblock.long(0x28).to_string());
    set("inode_bytes", superblock.short(0x58).to_string());
    if names.contains(&"flex_bg") {
        set("flex_group_groups", (1_u64 << (superblock.0[0x174] & 63)).to_string());
    }
    if names.contains(&"bigalloc") {
        let cluster_bytes = 1024_u64 << (superblock.long(0x1C) & 31);
        set("cluster_bytes", cluster_bytes.to_string());
    }
    Some(())
}
