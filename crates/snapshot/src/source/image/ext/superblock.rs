//! The superblock: sizes, features, and whether they can be.
//!
//! Source: Linux, `Documentation/filesystems/ext4/super.rst`; offsets are hexadecimal, as there.
//! Every number that later code divides by or multiplies is held to its bounds here.

use std::collections::BTreeMap;

use super::super::fault::Fault;
use super::super::fields::Fields;
use super::super::reader::Image;

/// Where it stands, and how long it is, bytes.
const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;

/// `mke2fs -g` takes no fewer blocks to a group; fewer would make groups without end.
const BLOCKS_PER_GROUP_MIN: u64 = 256;

const COMPATIBLE_HAS_JOURNAL: u32 = 0x4;
pub(super) const COMPATIBLE_DIR_INDEX: u32 = 0x20;
pub(super) const COMPATIBLE_SPARSE_SUPER2: u32 = 0x200;
pub(super) const INCOMPATIBLE_FILETYPE: u32 = 0x2;
pub(super) const INCOMPATIBLE_RECOVER: u32 = 0x4;
pub(super) const INCOMPATIBLE_META_BG: u32 = 0x10;
pub(super) const INCOMPATIBLE_64BIT: u32 = 0x80;
pub(super) const INCOMPATIBLE_FLEX_BG: u32 = 0x200;
pub(super) const INCOMPATIBLE_CSUM_SEED: u32 = 0x2000;
pub(super) const INCOMPATIBLE_LARGEDIR: u32 = 0x4000;
pub(super) const READ_ONLY_SPARSE_SUPER: u32 = 0x1;
pub(super) const READ_ONLY_GDT_CSUM: u32 = 0x10;
pub(super) const READ_ONLY_BIGALLOC: u32 = 0x200;
pub(super) const READ_ONLY_METADATA_CSUM: u32 = 0x400;

/// Names of features, as mke2fs knows them (e2fsprogs, `ext4(5)`).
const COMPATIBLE_NAMES: [(u32, &str); 10] = [
    (0x1, "dir_prealloc"),
    (0x2, "imagic_inodes"),
    (COMPATIBLE_HAS_JOURNAL, "has_journal"),
    (0x8, "ext_attr"),
    (0x10, "resize_inode"),
    (COMPATIBLE_DIR_INDEX, "dir_index"),
    (COMPATIBLE_SPARSE_SUPER2, "sparse_super2"),
    (0x400, "fast_commit"),
    (0x800, "stable_inodes"),
    (0x1000, "orphan_file"),
];

/// Those whose format we know; any other refuses the file system.
const INCOMPATIBLE_NAMES: [(u32, &str); 14] = [
    (INCOMPATIBLE_FILETYPE, "filetype"),
    (INCOMPATIBLE_RECOVER, "needs_recovery"),
    (INCOMPATIBLE_META_BG, "meta_bg"),
    (0x40, "extent"),
    (INCOMPATIBLE_64BIT, "64bit"),
    (0x100, "mmp"),
    (INCOMPATIBLE_FLEX_BG, "flex_bg"),
    (0x400, "ea_inode"),
    (INCOMPATIBLE_CSUM_SEED, "metadata_csum_seed"),
    (INCOMPATIBLE_LARGEDIR, "large_dir"),
    (0x8000, "inline_data"),
    (0x10000, "encrypt"),
    (0x20000, "casefold"),
    // Directory data of Lustre stands behind the name, within the length of the entry.
    (0x1000, "dirdata"),
];

const READ_ONLY_NAMES: [(u32, &str); 15] = [
    (READ_ONLY_SPARSE_SUPER, "sparse_super"),
    (0x2, "large_file"),
    (0x4, "btree_dir"),
    (0x8, "huge_file"),
    (READ_ONLY_GDT_CSUM, "uninit_bg"),
    (0x20, "dir_nlink"),
    (0x40, "extra_isize"),
    (0x80, "snapshot"),
    (0x100, "quota"),
    (READ_ONLY_BIGALLOC, "bigalloc"),
    (READ_ONLY_METADATA_CSUM, "metadata_csum"),
    (0x1000, "read-only"),
    (0x2000, "project"),
    (0x4000, "shared_blocks"),
    (0x8000, "verity"),
];

/// What ext3 knows; one more makes it ext4 (as libblkid distinguishes them).
const EXT3_INCOMPATIBLE: u32 = INCOMPATIBLE_FILETYPE | INCOMPATIBLE_RECOVER | INCOMPATIBLE_META_BG;
const EXT3_READ_ONLY: u32 = READ_ONLY_SPARSE_SUPER | 0x2 | 0x4;

/// The three sets of features.
#[derive(Debug, Clone, Copy)]
pub(super) struct Features {
    compatible: u32,
    incompatible: u32,
    read_only: u32,
}

impl Features {
    /// Whether any of the compatible features `bits` is there.
    pub(super) fn has_compatible(self, bits: u32) -> bool {
        self.compatible & bits != 0
    }

    /// Whether any of the incompatible features `bits` is there.
    pub(super) fn has_incompatible(self, bits: u32) -> bool {
        self.incompatible & bits != 0
    }

    /// Whether any of the features `bits` is there that allow reading.
    pub(super) fn has_read_only(self, bits: u32) -> bool {
        self.read_only & bits != 0
    }

    fn names(self) -> String {
        let sets = [
            (self.compatible, &COMPATIBLE_NAMES[..]),
            (self.incompatible, &INCOMPATIBLE_NAMES[..]),
            (self.read_only, &READ_ONLY_NAMES[..]),
        ];
        let known = sets.iter().flat_map(|&(set, names)| {
            names.iter().filter(move |(bit, _)| set & bit != 0).map(|&(_, name)| name)
        });
        known.collect::<Vec<_>>().join(",")
    }
}

/// How names are hashed into an indexed directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct HashSetting {
    pub(super) seed: [u32; 4],
    pub(super) version: u8,
    pub(super) unsigned: bool,
}

/// What the superblock says, as far as it is needed, within bounds.
#[derive(Debug)]
pub(super) struct Superblock {
    pub(super) features: Features,
    pub(super) block_bytes: u32,
    pub(super) blocks: u64,
    /// The first block that belongs to group 0.
    pub(super) first_data_block: u64,
    /// The block that the superblock itself lies in.
    pub(super) own_block: u64,
    pub(super) blocks_per_group: u64,
    /// What one bit of a block bitmap stands for, blocks; 1 without `bigalloc`.
    pub(super) cluster_blocks: u64,
    pub(super) inodes_per_group: u64,
    pub(super) inode_bytes: u32,
    /// Blocks of the inode table of each group.
    pub(super) inode_table_blocks: u64,
    /// The first inode that is not reserved.
    pub(super) first_inode: u64,
    pub(super) descriptor_bytes: u32,
    pub(super) first_meta_group: u64,
    pub(super) reserved_descriptor_blocks: u64,
    pub(super) backup_groups: [u32; 2],
    pub(super) groups: u64,
    pub(super) hash: HashSetting,
    inodes: u64,
    free_blocks: u64,
    reserved_blocks: u64,
    state: u16,
    flex_groups_log: u8,
}

impl Superblock {
    /// Reads it and checks whether it can be.
    pub(super) fn read(image: &Image) -> Result<Self, Fault> {
        let mut bytes = [0; SUPERBLOCK_BYTES];
        image.read_at(SUPERBLOCK_AT, &mut bytes)?;
        let superblock = Self::parse(Fields::little(&bytes))
            .map_err(|fault| fault.within("superblock at 1024"))?;
        let total = u128::from(superblock.blocks) * u128::from(superblock.block_bytes);
        if total > u128::from(image.length_bytes()) {
            return Err(Fault::Foreign(format!(
                "the file system is {total} bytes long, the image only {}: copy it again",
                image.length_bytes()
            )));
        }
        Ok(superblock)
    }

    fn parse(fields: Fields<'_>) -> Result<Self, Fault> {
        let revision = fields.u32(0x4C);
        let features = features(fields, revision)?;
        let wide = features.has_incompatible(INCOMPATIBLE_64BIT);
        let block_log = within("s_log_block_size", u64::from(fields.u32(0x18)), 0, 6)? as u32;
        let block_bytes = 1024_u32 << block_log;
        let bits = u64::from(block_bytes) * 8;
        let high = |offset| if wide { u64::from(fields.u32(offset)) << 32 } else { 0 };
        let blocks = u64::from(fields.u32(0x4)) | high(0x150);
        let bigalloc = features.has_read_only(READ_ONLY_BIGALLOC);
        let cluster_log = if bigalloc {
            within("s_log_cluster_size", u64::from(fields.u32(0x1C)), u64::from(block_log), 30)?
        } else {
            u64::from(block_log)
        };
        let cluster_blocks = 1_u64 << (cluster_log - u64::from(block_log));
        let blocks_per_group = within(
            "s_blocks_per_group",
            u64::from(fields.u32(0x20)),
            BLOCKS_PER_GROUP_MIN,
            bits * cluster_blocks,
        )?;
        if !blocks_per_group.is_multiple_of(cluster_blocks) {
            return Err(Fault::corrupt("s_blocks_per_group is not a whole number of clusters"));
        }
        let first_data_block = within("s_first_data_block", u64::from(fields.u32(0x14)), 0, 1)?;
        within("s_blocks_count", blocks, first_data_block + 1, u64::MAX >> 16)?;
        let inode_bytes = match revision {
            0 => 128,
            _ => within("s_inode_size", u64::from(fields.u16(0x58)), 128, block_bytes.into())?,
        } as u32;
        if !inode_bytes.is_power_of_two() {
            return Err(Fault::corrupt(format!("s_inode_size of {inode_bytes} is impossible")));
        }
        let inodes_per_group = within("s_inodes_per_group", u64::from(fields.u32(0x28)), 1, bits)?;
        let groups = (blocks - first_data_block).div_ceil(blocks_per_group);
        let inodes = u64::from(fields.u32(0x0));
        if groups.checked_mul(inodes_per_group) != Some(inodes) {
            return Err(Fault::corrupt(format!(
                "s_inodes_count is {inodes}, but {groups} groups have {inodes_per_group} each"
            )));
        }
        let table_bytes = inodes_per_group * u64::from(inode_bytes);
        let inode_table_blocks = table_bytes.div_ceil(u64::from(block_bytes));
        if u128::from(groups) * u128::from(inode_table_blocks) > u128::from(blocks) {
            return Err(Fault::corrupt("the inode tables are larger than the file system"));
        }
        let descriptor_bytes = if wide {
            within("s_desc_size", u64::from(fields.u16(0xFE)), 64, 1024)? as u32
        } else {
            32
        };
        if !descriptor_bytes.is_power_of_two() {
            return Err(Fault::corrupt(format!("s_desc_size of {descriptor_bytes} is impossible")));
        }
        let first_inode = if revision == 0 { 11 } else { u64::from(fields.u32(0x54)) };
        within("s_first_ino", first_inode, 11, inodes.max(11))?;
        Ok(Self {
            features,
            block_bytes,
            blocks,
            first_data_block,
            own_block: SUPERBLOCK_AT / u64::from(block_bytes),
            blocks_per_group,
            cluster_blocks,
            inodes_per_group,
            inode_bytes,
            inode_table_blocks,
            first_inode,
            descriptor_bytes,
            first_meta_group: u64::from(fields.u32(0x104)),
            reserved_descriptor_blocks: u64::from(fields.u16(0xCE)),
            backup_groups: [fields.u32(0x24C), fields.u32(0x250)],
            groups,
            hash: HashSetting {
                seed: [0xEC, 0xF0, 0xF4, 0xF8].map(|offset| fields.u32(offset)),
                version: fields.u8(0xFC),
                unsigned: fields.u32(0x160) & 2 != 0,
            },
            inodes,
            free_blocks: u64::from(fields.u32(0xC)) | high(0x158),
            reserved_blocks: u64::from(fields.u32(0x8)) | high(0x154),
            state: fields.u16(0x3A),
            flex_groups_log: fields.u8(0x174),
        })
    }

    /// `ext2`, `ext3` or `ext4`.
    pub(super) fn kind(&self) -> &'static str {
        let Features { compatible, incompatible, read_only } = self.features;
        if incompatible & !EXT3_INCOMPATIBLE != 0 || read_only & !EXT3_READ_ONLY != 0 {
            "ext4"
        } else if compatible & COMPATIBLE_HAS_JOURNAL != 0 {
            "ext3"
        } else {
            "ext2"
        }
    }

    /// The first block of group `group`.
    pub(super) fn group_start(&self, group: u64) -> u64 {
        self.first_data_block + group * self.blocks_per_group
    }

    /// How many blocks group `group` has.
    pub(super) fn group_blocks(&self, group: u64) -> u64 {
        self.blocks_per_group.min(self.blocks - self.group_start(group))
    }

    /// Whether group `group` begins with a copy of the superblock.
    pub(super) fn has_superblock(&self, group: u64) -> bool {
        if group == 0 {
            return true;
        }
        if self.features.has_compatible(COMPATIBLE_SPARSE_SUPER2) {
            return self.backup_groups.iter().any(|&backup| u64::from(backup) == group);
        }
        let power_of = |base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        group == 1
            || !self.features.has_read_only(READ_ONLY_SPARSE_SUPER)
            || [3, 5, 7].into_iter().any(power_of)
    }

    /// Adds what it says of itself to `parameters`; `free_bytes` is what the bitmaps say is free.
    ///
    /// Label, identifier and the place of the last mount are left out: they name someone's disk.
    pub(super) fn describe(&self, free_bytes: u64, parameters: &mut BTreeMap<String, String>) {
        let mut add = |name: &str, value: String| {
            parameters.insert(name.to_owned(), value);
        };
        add("features", self.features.names());
        add("inodes", self.inodes.to_string());
        add("inodes_per_group", self.inodes_per_group.to_string());
        add("inode_bytes", self.inode_bytes.to_string());
        add("groups", self.groups.to_string());
        // Counts that nothing here relies on, and which may be anything.
        let bytes = |blocks: u64| (u128::from(blocks) * u128::from(self.block_bytes)).to_string();
        add("reserved_for_root_bytes", bytes(self.reserved_blocks));
        if self.features.has_incompatible(INCOMPATIBLE_FLEX_BG) && self.flex_groups_log < 32 {
            add("flex_group_groups", (1_u64 << self.flex_groups_log).to_string());
        }
        if self.cluster_blocks > 1 {
            add("cluster_bytes", bytes(self.cluster_blocks));
        }
        if self.features.has_incompatible(INCOMPATIBLE_RECOVER) {
            add("needs_recovery", "yes: the journal was not replayed, nor read".to_owned());
        }
        if self.state & 1 == 0 {
            add("not_unmounted", "yes".to_owned());
        }
        if self.state & 2 != 0 {
            add("errors_recorded", "yes".to_owned());
        }
        if bytes(self.free_blocks) != free_bytes.to_string() {
            add("superblock_free_bytes", bytes(self.free_blocks));
        }
    }
}

fn features(fields: Fields<'_>, revision: u32) -> Result<Features, Fault> {
    // The first revision has no features.
    let set = |offset| if revision == 0 { 0 } else { fields.u32(offset) };
    let features =
        Features { compatible: set(0x5C), incompatible: set(0x60), read_only: set(0x64) };
    if features.incompatible & 0x8 != 0 {
        return Err(Fault::Foreign("is the external journal of an ext file system".to_owned()));
    }
    let known = INCOMPATIBLE_NAMES.iter().fold(0, |known, (bit, _)| known | bit);
    let unknown = features.incompatible & !known;
    if unknown != 0 {
        return Err(Fault::Foreign(format!(
            "an ext file system with features that are not understood ({unknown:#x})"
        )));
    }
    Ok(features)
}

fn within(name: &str, value: u64, least: u64, most: u64) -> Result<u64, Fault> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Fault::corrupt(format!("{name} is {value}, not within {least} and {most}")))
}
