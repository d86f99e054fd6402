//! ext2, ext3 and ext4 without mounting.
//!
//! Source: the kernel's documentation of the format (Linux, `Documentation/filesystems/ext4`) and,
//! for what it leaves open (which entry of a directory is listed first, what a group without a
//! bitmap holds), the kernel's own behaviour, against which the tests hold us.
//!
//! Blocks of 1 KiB to 64 KiB; `64bit`, `flex_bg`, `meta_bg`, `bigalloc`, `inline_data`, extents and
//! block maps, `huge_file`, uninitialised groups, inodes of 128 bytes and more. Checksums are not
//! verified. A file system of an unknown incompatible feature is refused by name.
//!
//! Differences from a mounted file system:
//! * a journal that was not replayed is not looked at: `parameters["needs_recovery"]` says so;
//! * directories are listed as the kernel lists them, by the hash of the name, except where the
//!   hash needs a key or case folding: there they are listed as they lie on disk;
//! * symbolic links that have a block of their own have an extent.
//!
//! Cost: every inode table is read once in order (256 bytes a file), every block of a map and of a
//! directory once.

mod directory;
mod groups;
mod hash;
mod inode;
mod inode_table;
mod mapping;
mod superblock;

use std::collections::BTreeMap;

use directory::DirectoryReader;
use groups::Groups;
use inode::{INODE_BYTES_MIN, Inode};
pub(in crate::source) use inode_table::{InodeTable, TableWindow};
use mapping::Mapper;
use superblock::Superblock;

use super::super::Progress;
use super::fault::Fault;
use super::map::Budget;
use super::reader::Image;
use super::tell;
use super::tree::Catalogue;
use crate::{Extent, FileKind, FileSystemFacts, Snapshot};

/// The inode of the root directory.
const ROOT_INODE: u64 = 2;

/// What the reserved inodes hold (Linux, `fs/ext4/ext4.h`: `EXT4_BAD_INO` and the following).
const RESERVED: [(u64, &str); 8] = [
    (1, "bad_blocks"),
    (3, "user_quota"),
    (4, "group_quota"),
    (5, "boot_loader"),
    (6, "undelete"),
    (7, "resize"),
    (8, "journal"),
    (9, "exclude"),
];

/// How much of an inode table is read at once, bytes. Chosen by us.
const TABLE_CHUNK_BYTES: u64 = 1 << 20;

/// Takes the snapshot of an ext file system.
pub(super) fn take(
    image: &mut Image,
    names: bool,
    progress: &mut Progress<'_>,
) -> Result<Snapshot, Fault> {
    let superblock = Superblock::read(image)?;
    image.set_block_bytes(superblock.block_bytes);
    let mut groups = Groups::read(image, &superblock)?;
    let (free, free_bytes) = groups.free_map(image, &superblock, progress)?;
    let mut budget = Budget::of_blocks(superblock.blocks);
    let mut parameters = BTreeMap::new();
    let mut scan = Scan {
        image: &mut *image,
        superblock: &superblock,
        budget: &mut budget,
        catalogue: Catalogue::default(),
        parameters: &mut parameters,
    };
    scan.inodes(&groups, progress)?;
    let catalogue = scan.catalogue;
    let mut reader = DirectoryReader::new(image, &superblock, &groups, &mut budget);
    let placed = catalogue.place(ROOT_INODE, names, &mut reader, progress)?;
    if reader.unhashed > 0 {
        parameters.insert("directories_listed_as_on_disk".to_owned(), reader.unhashed.to_string());
    }
    superblock.describe(free_bytes, &mut parameters);
    let facts = FileSystemFacts {
        kind: superblock.kind().to_owned(),
        block_bytes: superblock.block_bytes,
        fragment_bytes: superblock.block_bytes,
        total_bytes: superblock.blocks * u64::from(superblock.block_bytes),
        free_bytes,
        group_bytes: superblock.blocks_per_group * u64::from(superblock.block_bytes),
        first_group_bytes: superblock.first_data_block * u64::from(superblock.block_bytes),
        parameters,
        ..FileSystemFacts::default()
    };
    Ok(placed.into_snapshot(facts, free))
}

/// The pass over the inode tables.
struct Scan<'a> {
    image: &'a mut Image,
    superblock: &'a Superblock,
    budget: &'a mut Budget,
    catalogue: Catalogue,
    parameters: &'a mut BTreeMap<String, String>,
}

impl Scan<'_> {
    fn inodes(&mut self, groups: &Groups, progress: &mut Progress<'_>) -> Result<(), Fault> {
        let mut mapper = Mapper::new(self.superblock);
        let mut table = Vec::new();
        let inode_bytes = u64::from(self.superblock.inode_bytes);
        let chunk = (TABLE_CHUNK_BYTES / inode_bytes).max(1);
        for group in 0..groups.len() {
            let described = groups.group(group);
            let first_inode = group * self.superblock.inodes_per_group + 1;
            let mut index = 0;
            while index < described.inodes_used {
                let count = chunk.min(described.inodes_used - index);
                table.resize((count * inode_bytes) as usize, 0);
                let address = described.inode_table_bytes + index * inode_bytes;
                self.image.read_at(address, &mut table)?;
                for (slot, bytes) in table.chunks_exact(inode_bytes as usize).enumerate() {
                    let number = first_inode + index + slot as u64;
                    self.inode(number, Inode { bytes }, &mut mapper)?;
                }
                index += count;
                tell(progress, self.catalogue.len())?;
            }
        }
        Ok(())
    }

    fn inode(&mut self, number: u64, inode: Inode<'_>, mapper: &mut Mapper) -> Result<(), Fault> {
        assert!(inode.bytes.len() >= INODE_BYTES_MIN);
        if !inode.is_used() {
            return Ok(());
        }
        if number < self.superblock.first_inode && number != ROOT_INODE {
            return self.reserved(number, inode, mapper);
        }
        let found = inode.found(number, self.superblock.features);
        self.catalogue.add(&found, |extents| {
            mapper.map(self.image, self.budget, inode, found.kind, found.size_bytes, extents)
        })
    }

    /// A reserved inode is no file, but what it takes is reported.
    fn reserved(
        &mut self,
        number: u64,
        inode: Inode<'_>,
        mapper: &mut Mapper,
    ) -> Result<(), Fault> {
        let Some(&(_, name)) = RESERVED.iter().find(|(reserved, _)| *reserved == number) else {
            return Ok(());
        };
        let mut catalogue = Catalogue::default();
        let mut found = inode.found(number, self.superblock.features);
        found.kind = FileKind::Regular;
        catalogue.add(&found, |extents| {
            mapper.map(self.image, self.budget, inode, found.kind, found.size_bytes, extents)
        })?;
        let extents: &[Extent] = catalogue.extents();
        if !extents.is_empty() {
            let bytes: u64 = extents.iter().map(|extent| extent.length_bytes).sum();
            self.parameters.insert(format!("{name}_bytes"), bytes.to_string());
            self.parameters.insert(format!("{name}_extents"), extents.len().to_string());
        }
        Ok(())
    }
}
