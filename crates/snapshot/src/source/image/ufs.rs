//! UFS1, the fast file system of 4.2BSD and 4.4BSD, without mounting.
//!
//! Source: McKusick, Joy, Leffler & Fabry 1984, "A Fast File System for UNIX"; 4.4BSD,
//! `sys/ufs/ffs/fs.h`, `sys/ufs/ufs/dinode.h` and `dir.h`, which the names of fields are from.
//!
//! Either byte order; cylinder groups as in 4.2BSD and as in 4.4BSD; directories with and without
//! the kinds of files. Addresses on disk count fragments. A file of up to twelve blocks ends in as
//! many fragments as it needs: that end is an extent of its own, flagged `TAIL`, as long as its
//! fragments. Short symbolic links lie
//! in their inode and have no extent.
//!
//! Images of 4.2BSD itself were not at hand: its forms of cylinder groups and directories are tested
//! on images of `makefs` that were rewritten into them.
//!
//! Cost: as `ext`.

mod directory;
mod group;
mod inode;
mod superblock;

use directory::DirectoryReader;
use group::CylinderGroup;
use inode::{Inode, Mapper};
use superblock::{INODE_BYTES, Superblock};

use super::super::Progress;
use super::fault::Fault;
use super::fields::{ByteOrder, Fields};
use super::map::{Budget, FreeMap, runs_of};
use super::reader::Image;
use super::tell;
use super::tree::Catalogue;
use crate::{FileSystemFacts, Snapshot};

/// The inode of the root directory; those before it are none (4.4BSD, `dinode.h`: `ROOTINO`).
const ROOT_INODE: u64 = 2;

/// The magic number and where it stands (`fs.h`: `FS_MAGIC`, the last field of the superblock).
const MAGIC: u32 = 0x0001_1954;
const MAGIC_AT: u64 = superblock::SUPERBLOCK_AT + superblock::MAGIC_WITHIN;

/// Groups between two reports of progress. Chosen by us.
const GROUPS_TOLD: u64 = 16;

/// The byte order of the UFS1 in `image`, if it holds one.
pub(super) fn byte_order(image: &Image) -> Result<Option<ByteOrder>, Fault> {
    let mut bytes = [0; 4];
    match image.read_at(MAGIC_AT, &mut bytes) {
        Ok(()) => {}
        Err(Fault::Beyond(_)) => return Ok(None),
        Err(fault) => return Err(fault),
    }
    let orders = [ByteOrder::Little, ByteOrder::Big];
    Ok(orders.into_iter().find(|&order| Fields::new(&bytes, order).u32(0) == MAGIC))
}

/// Takes the snapshot of a UFS1.
pub(super) fn take(
    image: &mut Image,
    order: ByteOrder,
    names: bool,
    progress: &mut Progress<'_>,
) -> Result<Snapshot, Fault> {
    let superblock = Superblock::read(image, order)?;
    image.set_block_bytes(superblock.block_bytes);
    let mut free = FreeMap::default();
    let mut catalogue = Catalogue::default();
    let mut budget = Budget::of_blocks(superblock.fragments);
    let mut mapper = Mapper::new(&superblock);
    let mut table = Vec::new();
    for number in 0..superblock.groups {
        let group = CylinderGroup::read(image, &superblock, number)
            .map_err(|fault| fault.within(format_args!("cylinder group {number}")))?;
        runs_of(group.free_fragments(), group.fragments, true, |first, end| {
            let bytes = |fragment: u64| (group.base + fragment) * superblock.fragment_bytes;
            free.add(bytes(first), bytes(end) - bytes(first));
        });
        // One past the last inode in use; the rest of the table need not be read.
        let mut used = 0;
        runs_of(group.used_inodes(), superblock.inodes_per_group, true, |_, end| used = end);
        table.resize((used * INODE_BYTES as u64) as usize, 0);
        let address = superblock.inode_address(number * superblock.inodes_per_group);
        image.read_at(address, &mut table)?;
        for (index, bytes) in table.chunks_exact(INODE_BYTES).enumerate() {
            let inode_number = number * superblock.inodes_per_group + index as u64;
            let inode = Inode { fields: Fields::new(bytes, order) };
            let in_use = group.used_inodes()[index / 8] >> (index % 8) & 1 == 1;
            if inode_number < ROOT_INODE || !in_use || !inode.is_used() {
                continue;
            }
            let found = inode.found(inode_number);
            catalogue
                .add(&found, |extents| mapper.map(image, &mut budget, inode, &found, extents))?;
        }
        if number % GROUPS_TOLD == 0 {
            tell(progress, catalogue.len())?;
        }
    }
    let (free, free_bytes) = free.finish();
    let mut reader = DirectoryReader::new(image, &superblock, &mut budget);
    let placed = catalogue.place(ROOT_INODE, names, &mut reader, progress)?;
    let facts = FileSystemFacts {
        kind: "ufs1".to_owned(),
        block_bytes: superblock.block_bytes,
        fragment_bytes: superblock.fragment_bytes as u32,
        total_bytes: superblock.fragments * superblock.fragment_bytes,
        free_bytes,
        group_bytes: superblock.fragments_per_group * superblock.fragment_bytes,
        first_group_bytes: 0,
        parameters: superblock.describe(free_bytes),
        ..FileSystemFacts::default()
    };
    Ok(placed.into_snapshot(facts, free))
}
