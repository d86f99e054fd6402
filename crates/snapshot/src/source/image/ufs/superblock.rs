//! The superblock: sizes, and whether they can be.
//!
//! Source: 4.4BSD, `sys/ufs/ffs/fs.h`, `struct fs`; every field is 32 bits wide, so that an offset
//! is four times the place in that structure. Every number that later code divides by or
//! multiplies is held to its bounds here.

use std::collections::BTreeMap;

use super::super::fault::Fault;
use super::super::fields::{ByteOrder, Fields};
use super::super::reader::Image;

/// Where it stands, bytes (`fs.h`: `SBOFF`).
pub(super) const SUPERBLOCK_AT: u64 = 8192;
/// Where its magic number stands within it: its last field.
pub(super) const MAGIC_WITHIN: u64 = 1372;
const SUPERBLOCK_BYTES: usize = 1376;

/// An inode in the tables that it places, bytes (4.4BSD, `dinode.h`).
pub(super) const INODE_BYTES: usize = 128;

/// The smallest block that holds a cylinder group (`fs.h`: `MINBSIZE`).
const BLOCK_BYTES_MIN: i64 = 4096;
/// The largest block of any system (4.4BSD, `sys/param.h`: `MAXBSIZE`).
const BLOCK_BYTES_MAX: i64 = 65536;
/// The smallest fragment, a sector.
const FRAGMENT_BYTES_MIN: i64 = 512;
/// The most fragments to a block (4.4BSD, `sys/param.h`: `MAXFRAG`).
const FRAGMENTS_MAX: i64 = 8;

/// `fs_postblformat` of 4.2BSD, whose cylinder groups have another form.
const POSITION_TABLES_42: i32 = -1;
/// The longest symbolic link that an inode holds: where else its fifteen addresses stand.
const SHORT_LINK_BYTES_MAX: i64 = 60;

/// What the superblock says, as far as it is needed, within bounds.
#[derive(Debug)]
pub(super) struct Superblock {
    pub(super) order: ByteOrder,
    pub(super) block_bytes: u32,
    pub(super) fragment_bytes: u64,
    /// Fragments to a block.
    pub(super) block_fragments: u64,
    /// Fragments of the whole file system.
    pub(super) fragments: u64,
    pub(super) groups: u64,
    pub(super) fragments_per_group: u64,
    pub(super) inodes_per_group: u64,
    /// Bytes of a cylinder group's own block.
    pub(super) group_block_bytes: u64,
    /// Whether cylinder groups have the form of 4.2BSD.
    pub(super) old_groups: bool,
    /// Whether directories have the form of 4.2BSD, without kinds.
    pub(super) old_directories: bool,
    /// Symbolic links shorter than this lie in their inode.
    pub(super) short_link_bytes: u64,
    /// From the beginning of a group to its own block, its inodes and its data, fragments.
    group_block_offset: u64,
    inode_offset: u64,
    data_offset: u64,
    /// How the beginning of groups moves from track to track (`fs_cgoffset`, `fs_cgmask`).
    skew: u64,
    skew_mask: u64,
    /// How many fragments are free, alone and in blocks, as the superblock counts them.
    free_fragments: i64,
    /// What else it says, by the names of the fields without `fs_`.
    told: [(&'static str, i32); TOLD.len()],
}

/// Fields that decide how blocks are placed, by their place in the structure.
const TOLD: [(&str, usize); 14] = [
    ("minfree", 15),
    ("rotdelay", 16),
    ("rps", 17),
    ("maxcontig", 22),
    ("maxbpg", 23),
    ("optim", 32),
    ("npsect", 33),
    ("interleave", 34),
    ("trackskew", 35),
    ("ntrak", 41),
    ("nsect", 42),
    ("spc", 43),
    ("ncyl", 44),
    ("cpg", 45),
];

impl Superblock {
    /// Reads it and checks whether it can be.
    pub(super) fn read(image: &Image, order: ByteOrder) -> Result<Self, Fault> {
        let mut bytes = [0; SUPERBLOCK_BYTES];
        image.read_at(SUPERBLOCK_AT, &mut bytes)?;
        let superblock = Self::parse(Fields::new(&bytes, order))
            .map_err(|fault| fault.within("superblock at 8192"))?;
        let total = superblock.fragments * superblock.fragment_bytes;
        if total > image.length_bytes() {
            return Err(Fault::Foreign(format!(
                "the file system is {total} bytes long, the image only {}: copy it again",
                image.length_bytes()
            )));
        }
        Ok(superblock)
    }

    fn parse(fields: Fields<'_>) -> Result<Self, Fault> {
        let number = |place: usize| i64::from(fields.i32(place * 4));
        let block_bytes = within("fs_bsize", number(12), BLOCK_BYTES_MIN, BLOCK_BYTES_MAX)?;
        let fragment_bytes =
            within("fs_fsize", number(13), FRAGMENT_BYTES_MIN, block_bytes as i64)?;
        let block_fragments = within("fs_frag", number(14), 1, FRAGMENTS_MAX)?;
        let powers = block_bytes.is_power_of_two() && fragment_bytes.is_power_of_two();
        if !powers || fragment_bytes * block_fragments != block_bytes {
            return Err(Fault::corrupt(format!(
                "blocks of {block_bytes} bytes in {block_fragments} fragments of {fragment_bytes}"
            )));
        }
        let fragments = within("fs_size", number(9), 1, i64::from(i32::MAX))?;
        let fragments_per_group = within("fs_fpg", number(47), 1, i64::from(i32::MAX))?;
        let groups = within("fs_ncg", number(11), 1, i64::from(i32::MAX))?;
        if groups != fragments.div_ceil(fragments_per_group) {
            return Err(Fault::corrupt(format!(
                "{groups} groups of {fragments_per_group} fragments, but {fragments} fragments"
            )));
        }
        // A group holds, in this order, a superblock, its own block, its inodes and its data.
        let data_offset = within("fs_dblkno", number(5), 1, fragments_per_group as i64)?;
        let inode_offset = within("fs_iblkno", number(4), 1, data_offset as i64)?;
        let group_block_offset = within("fs_cblkno", number(3), 1, inode_offset as i64)?;
        let inodes_per_group = within("fs_ipg", number(46), 1, i64::from(i32::MAX))?;
        let table_bytes = inodes_per_group * INODE_BYTES as u64;
        if table_bytes.div_ceil(fragment_bytes) > data_offset - inode_offset {
            return Err(Fault::corrupt(format!(
                "fs_ipg is {inodes_per_group}, more inodes than fit before the data of a group"
            )));
        }
        let group_block_bytes = within("fs_cgsize", number(40), 1, block_bytes as i64)?;
        let short_link_bytes = fields.i32(1320);
        Ok(Self {
            order: fields.order(),
            block_bytes: block_bytes as u32,
            fragment_bytes,
            block_fragments,
            fragments,
            groups,
            fragments_per_group,
            inodes_per_group,
            group_block_bytes,
            old_groups: fields.i32(1356) == POSITION_TABLES_42,
            // As 4.4BSD decides it (`ufs_vnops.c`: `OFSFMT`).
            old_directories: short_link_bytes <= 0,
            short_link_bytes: i64::from(short_link_bytes).clamp(0, SHORT_LINK_BYTES_MAX) as u64,
            group_block_offset,
            inode_offset,
            data_offset,
            skew: within("fs_cgoffset", number(6), 0, fragments_per_group as i64)?,
            skew_mask: u64::from(!fields.u32(28)),
            free_fragments: number(49) * block_fragments as i64 + number(51),
            told: TOLD.map(|(name, place)| (name, fields.i32(place * 4))),
        })
    }

    /// Where the metadata of group `group` begins, fragments (`fs.h`: `cgstart`).
    fn group_start(&self, group: u64) -> u64 {
        group * self.fragments_per_group + self.skew * (group & self.skew_mask)
    }

    /// Whether the metadata of group `group` lies within the file system.
    pub(super) fn has_group(&self, group: u64) -> bool {
        self.group_start(group) + self.data_offset <= self.fragments
    }

    /// Where the own block of group `group` stands, bytes.
    pub(super) fn group_block_address(&self, group: u64) -> u64 {
        (self.group_start(group) + self.group_block_offset) * self.fragment_bytes
    }

    /// Where inode `number` stands, bytes.
    pub(super) fn inode_address(&self, number: u64) -> u64 {
        let table = self.group_start(number / self.inodes_per_group) + self.inode_offset;
        table * self.fragment_bytes + number % self.inodes_per_group * INODE_BYTES as u64
    }

    /// What it says of itself; `free_bytes` is what the bitmaps say is free.
    pub(super) fn describe(&self, free_bytes: u64) -> BTreeMap<String, String> {
        let told = self.told.iter().map(|(name, value)| ((*name).to_owned(), value.to_string()));
        let mut parameters: BTreeMap<String, String> = told.collect();
        let mut add = |name: &str, value: String| {
            parameters.insert(name.to_owned(), value);
        };
        add("groups", self.groups.to_string());
        add("inodes_per_group", self.inodes_per_group.to_string());
        let order = if self.order == ByteOrder::Little { "little" } else { "big" };
        add("byte_order", order.to_owned());
        let format = |old: bool| if old { "4.2BSD" } else { "4.4BSD" }.to_owned();
        add("cylinder_group_format", format(self.old_groups));
        add("directory_format", format(self.old_directories));
        let free = i128::from(self.free_fragments) * i128::from(self.fragment_bytes);
        if free != i128::from(free_bytes) {
            add("superblock_free_bytes", free.to_string());
        }
        parameters
    }
}

fn within(name: &str, value: i64, least: i64, most: i64) -> Result<u64, Fault> {
    if (least..=most).contains(&value) {
        return Ok(value.unsigned_abs());
    }
    Err(Fault::corrupt(format!("{name} is {value}, not within {least} and {most}")))
}
