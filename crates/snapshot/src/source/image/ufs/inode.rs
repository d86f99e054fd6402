//! An inode and the map in it: twelve direct addresses and three levels of indirect ones.
//!
//! Source: 4.4BSD, `sys/ufs/ufs/dinode.h`, `struct dinode`; `fs.h` for `blksize`, the length of a
//! file's block.

use super::super::fault::Fault;
use super::super::fields::{ByteOrder, Fields};
use super::super::map::Budget;
use super::super::reader::Image;
use super::super::tree::{ExtentList, Found};
use super::superblock::Superblock;
use crate::{Extent, ExtentFlags, FileKind, NO_TIME};

const ADDRESSES_AT: usize = 40;
const DIRECT_BLOCKS: usize = 12;
const INDIRECT_LEVELS: usize = 3;
const NANOSECONDS: i64 = 1_000_000_000;

/// An inode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inode<'a> {
    pub(super) fields: Fields<'a>,
}

impl Inode<'_> {
    /// Whether a file is here: it has a kind, and links.
    pub(super) fn is_used(self) -> bool {
        self.fields.u16(0) != 0 && self.fields.u16(2) != 0
    }

    /// What it says of its file, numbered `inode`.
    pub(super) fn found(self, inode: u64) -> Found {
        let time_ns = |at: usize| {
            // 4.2BSD keeps no nanoseconds: the field is spare there, and zero.
            let nanoseconds = i64::from(self.fields.i32(at + 4)).clamp(0, NANOSECONDS - 1);
            i64::from(self.fields.i32(at)) * NANOSECONDS + nanoseconds
        };
        Found {
            inode,
            kind: match self.fields.u16(0) & 0xF000 {
                0x8000 => FileKind::Regular,
                0x4000 => FileKind::Directory,
                0xA000 => FileKind::Link,
                _ => FileKind::Other,
            },
            links: u32::from(self.fields.u16(2)),
            size_bytes: self.fields.u64(8),
            birth_ns: NO_TIME,
            change_ns: time_ns(32),
            modify_ns: time_ns(24),
        }
    }

    /// The `index`-th address of its map, fragments; 0 for a hole.
    fn address(self, index: usize) -> u32 {
        self.fields.u32(ADDRESSES_AT + index * 4)
    }
}

/// Follows the maps of files.
#[derive(Debug)]
pub(super) struct Mapper {
    order: ByteOrder,
    block_bytes: u64,
    fragment_bytes: u64,
    block_fragments: u64,
    fragments: u64,
    short_link_bytes: u64,
    /// One buffer for each level of indirect blocks.
    nodes: Vec<Vec<u8>>,
}

/// Where the blocks of a file go.
struct Walk<'a, 'b> {
    image: &'a mut Image,
    budget: &'a mut Budget,
    extents: &'a mut ExtentList<'b>,
    size_bytes: u64,
}

impl Mapper {
    /// For the files of `superblock`.
    pub(super) fn new(superblock: &Superblock) -> Self {
        let block = vec![0; superblock.block_bytes as usize];
        Self {
            order: superblock.order,
            block_bytes: u64::from(superblock.block_bytes),
            fragment_bytes: superblock.fragment_bytes,
            block_fragments: superblock.block_fragments,
            fragments: superblock.fragments,
            short_link_bytes: superblock.short_link_bytes,
            nodes: vec![block; INDIRECT_LEVELS],
        }
    }

    /// Adds the extents of `inode`, which `found` describes, to `extents`.
    pub(super) fn map(
        &mut self,
        image: &mut Image,
        budget: &mut Budget,
        inode: Inode<'_>,
        found: &Found,
        extents: &mut ExtentList<'_>,
    ) -> Result<(), Fault> {
        let size_bytes = found.size_bytes;
        let short_link = found.kind == FileKind::Link && size_bytes < self.short_link_bytes;
        if found.kind == FileKind::Other || short_link {
            return Ok(());
        }
        let mut walk = Walk { image, budget, extents, size_bytes };
        for index in 0..DIRECT_BLOCKS {
            self.block(&mut walk, inode.address(index), index as u64)?;
        }
        let mut logical = DIRECT_BLOCKS as u64;
        for level in 0..INDIRECT_LEVELS {
            self.indirect(&mut walk, inode.address(DIRECT_BLOCKS + level), level, logical)?;
            logical += (self.block_bytes / 4).pow(level as u32 + 1);
        }
        Ok(())
    }

    /// The blocks below the indirect block at `address`, which is `level` levels above the last
    /// indirect blocks and begins at the block `logical` of the file.
    fn indirect(
        &mut self,
        walk: &mut Walk<'_, '_>,
        address: u32,
        level: usize,
        logical: u64,
    ) -> Result<(), Fault> {
        if address == 0 {
            return Ok(());
        }
        let mut node = std::mem::take(&mut self.nodes[level]);
        let result = self.load(walk, address, &mut node).and_then(|()| {
            let below = (self.block_bytes / 4).pow(level as u32);
            for (index, bytes) in node.chunks_exact(4).enumerate() {
                let address = Fields::new(bytes, self.order).u32(0);
                let logical = logical + index as u64 * below;
                if level == 0 {
                    self.block(walk, address, logical)?;
                } else {
                    self.indirect(walk, address, level - 1, logical)?;
                }
            }
            Ok(())
        });
        self.nodes[level] = node;
        result.map_err(|fault| fault.within(format_args!("indirect block at fragment {address}")))
    }

    fn load(&self, walk: &mut Walk<'_, '_>, address: u32, node: &mut [u8]) -> Result<(), Fault> {
        self.check(u64::from(address), self.block_fragments)?;
        walk.budget.spend(1)?;
        let bytes = walk.image.bytes(u64::from(address) * self.fragment_bytes, node.len())?;
        node.copy_from_slice(bytes);
        Ok(())
    }

    fn block(&self, walk: &mut Walk<'_, '_>, address: u32, logical: u64) -> Result<(), Fault> {
        if address == 0 {
            return Ok(());
        }
        let start = logical * self.block_bytes;
        let rest = walk.size_bytes.saturating_sub(start).div_ceil(self.fragment_bytes);
        // Only the end of a file of direct blocks lies in fragments.
        let partial = logical < DIRECT_BLOCKS as u64 && (1..self.block_fragments).contains(&rest);
        let fragments = if partial { rest } else { self.block_fragments };
        self.check(u64::from(address), fragments)
            .map_err(|fault| fault.within(format_args!("block {logical} of the file")))?;
        walk.extents.push(Extent {
            logical_bytes: start,
            physical_bytes: u64::from(address) * self.fragment_bytes,
            length_bytes: fragments * self.fragment_bytes,
            flags: if partial { ExtentFlags::TAIL } else { ExtentFlags::default() },
        });
        Ok(())
    }

    /// Whether this number of fragments can lie at `address`: within the file system and one block.
    fn check(&self, address: u64, fragments: u64) -> Result<(), Fault> {
        let inside = address + fragments <= self.fragments;
        if inside && address % self.block_fragments + fragments <= self.block_fragments {
            return Ok(());
        }
        Err(Fault::corrupt(format!("{fragments} fragments at {address} are impossible")))
    }
}
