//! Where the blocks of a file lie: extent trees and block maps.
//!
//! Both are walked in the order of the file. An extent tree's nodes name their depth, and what
//! lies below an entry begins at or behind that entry's first block and before the next one's, so
//! that no node can be met twice; a block map has three levels at most. The budget bounds both.

use super::super::fault::Fault;
use super::super::fields::Fields;
use super::super::map::Budget;
use super::super::reader::Image;
use super::super::tree::ExtentList;
use super::inode::{Inode, MAP_BYTES};
use super::superblock::Superblock;
use crate::{Extent, ExtentFlags, FileKind};

pub(super) const NODE_MAGIC: u16 = 0xF30A;
pub(super) const NODE_ENTRY_BYTES: usize = 12;
/// The deepest tree that the kernel makes (Linux, `fs/ext4/ext4_extents.h`).
const DEPTH_MAX: u16 = 5;
/// A length above this is that of an unwritten extent, plus this.
pub(super) const EXTENT_BLOCKS_MAX: u16 = 32768;
const DIRECT_BLOCKS: usize = 12;
/// Blocks in a file are numbered by 32 bits.
const FILE_BLOCKS_MAX: u64 = 1 << 32;

/// Follows the maps of files.
#[derive(Debug)]
pub(super) struct Mapper {
    block_bytes: u64,
    first_data_block: u64,
    blocks: u64,
    /// One buffer for each level, the highest last.
    nodes: Vec<Vec<u8>>,
}

/// Where the entries of a file go.
struct Walk<'a, 'b> {
    image: &'a mut Image,
    budget: &'a mut Budget,
    extents: &'a mut ExtentList<'b>,
    flags: ExtentFlags,
    /// The next block of the file must be this one or a later one.
    next_logical: u64,
}

impl Mapper {
    /// For the files of `superblock`.
    pub(super) fn new(superblock: &Superblock) -> Self {
        let block = vec![0; superblock.block_bytes as usize];
        Self {
            block_bytes: u64::from(superblock.block_bytes),
            first_data_block: superblock.first_data_block,
            blocks: superblock.blocks,
            nodes: vec![block; usize::from(DEPTH_MAX)],
        }
    }

    /// Adds the extents of `inode`, a file of `kind` and `size_bytes`, to `extents`.
    pub(super) fn map(
        &mut self,
        image: &mut Image,
        budget: &mut Budget,
        inode: Inode<'_>,
        kind: FileKind,
        size_bytes: u64,
        extents: &mut ExtentList<'_>,
    ) -> Result<(), Fault> {
        let short_link =
            kind == FileKind::Link && !inode.has_extents() && size_bytes < MAP_BYTES as u64;
        if kind == FileKind::Other || short_link {
            return Ok(());
        }
        if inode.is_inline() {
            if size_bytes > inode.bytes.len() as u64 {
                return Err(Fault::corrupt(format!("{size_bytes} bytes within the inode")));
            }
            if size_bytes > 0 {
                extents.push(Extent {
                    logical_bytes: 0,
                    physical_bytes: 0,
                    length_bytes: size_bytes,
                    flags: ExtentFlags::INLINE,
                });
            }
            return Ok(());
        }
        let encrypted = inode.is_encrypted() && kind == FileKind::Regular;
        let flags = if encrypted { ExtentFlags::ENCODED } else { ExtentFlags::default() };
        let mut walk = Walk { image, budget, extents, flags, next_logical: 0 };
        if inode.has_extents() {
            let depth = node_depth(inode.map())?;
            if depth > DEPTH_MAX {
                return Err(Fault::corrupt(format!("an extent tree {depth} levels deep")));
            }
            return self.node(&mut walk, inode.map(), depth, 0..FILE_BLOCKS_MAX);
        }
        self.block_map(&mut walk, inode.map())
    }

    /// A node of an extent tree, `depth` levels above the leaves, for the blocks `range`.
    fn node(
        &mut self,
        walk: &mut Walk<'_, '_>,
        bytes: &[u8],
        depth: u16,
        range: std::ops::Range<u64>,
    ) -> Result<(), Fault> {
        if node_depth(bytes)? != depth {
            return Err(Fault::corrupt("a node of the extent tree at the wrong depth"));
        }
        let entries = usize::from(Fields::little(bytes).u16(2));
        if entries > bytes.len() / NODE_ENTRY_BYTES - 1 {
            return Err(Fault::corrupt(format!("an extent tree node of {entries} entries")));
        }
        let entry = |index: usize| {
            let start = (index + 1) * NODE_ENTRY_BYTES;
            Fields::little(&bytes[start..start + NODE_ENTRY_BYTES])
        };
        let mut first_allowed = range.start;
        for index in 0..entries {
            let fields = entry(index);
            let first = u64::from(fields.u32(0));
            if first < first_allowed || first >= range.end {
                return Err(Fault::corrupt(format!("the extent tree is out of order at {first}")));
            }
            if depth == 0 {
                first_allowed = self.extent(walk, fields, range.end)?;
                continue;
            }
            let next = (index + 1 < entries).then(|| u64::from(entry(index + 1).u32(0)));
            let end = next.unwrap_or(range.end).min(range.end);
            let block = u64::from(fields.u32(4)) | u64::from(fields.u16(8)) << 32;
            let level = usize::from(depth - 1);
            let mut node = std::mem::take(&mut self.nodes[level]);
            let result = self
                .load(walk, block, &mut node)
                .and_then(|()| self.node(walk, &node, depth - 1, first..end))
                .map_err(|fault| fault.within(format_args!("extent tree at block {block}")));
            self.nodes[level] = node;
            result?;
            first_allowed = end.max(first + 1);
        }
        Ok(())
    }

    /// An entry of a leaf; the block of the file behind it.
    fn extent(&self, walk: &mut Walk<'_, '_>, fields: Fields<'_>, end: u64) -> Result<u64, Fault> {
        let logical = u64::from(fields.u32(0));
        let length = fields.u16(4);
        let unwritten = length > EXTENT_BLOCKS_MAX;
        let length = if unwritten { length - EXTENT_BLOCKS_MAX } else { length };
        let length = u64::from(length);
        if length == 0 || logical + length > end {
            return Err(Fault::corrupt(format!("an extent of {length} blocks at {logical}")));
        }
        let physical = u64::from(fields.u32(8)) | u64::from(fields.u16(6)) << 32;
        let more = if unwritten { ExtentFlags::UNWRITTEN } else { ExtentFlags::default() };
        self.push(walk, logical, physical, length, more)?;
        Ok(logical + length)
    }

    /// The twelve direct blocks, then one, two and three levels of indirect ones.
    fn block_map(&mut self, walk: &mut Walk<'_, '_>, map: &[u8]) -> Result<(), Fault> {
        let pointers = Fields::little(map);
        for index in 0..DIRECT_BLOCKS {
            self.block(walk, pointers.u32(index * 4), index as u64)?;
        }
        let per_block = self.block_bytes / 4;
        let mut logical = DIRECT_BLOCKS as u64;
        for level in 0..3 {
            let pointer = pointers.u32((DIRECT_BLOCKS + level) * 4);
            self.indirect(walk, pointer, level, logical)?;
            logical += per_block.pow(level as u32 + 1);
        }
        Ok(())
    }

    /// The blocks below the indirect block `pointer`, which is `level` levels above the last
    /// indirect blocks and begins at `logical`.
    fn indirect(
        &mut self,
        walk: &mut Walk<'_, '_>,
        pointer: u32,
        level: usize,
        logical: u64,
    ) -> Result<(), Fault> {
        if pointer == 0 {
            return Ok(());
        }
        let mut node = std::mem::take(&mut self.nodes[level]);
        let result = self.load(walk, u64::from(pointer), &mut node).and_then(|()| {
            let below = (self.block_bytes / 4).pow(level as u32);
            for (index, bytes) in node.chunks_exact(4).enumerate() {
                let pointer = Fields::little(bytes).u32(0);
                let logical = logical + index as u64 * below;
                if level == 0 {
                    self.block(walk, pointer, logical)?;
                } else {
                    self.indirect(walk, pointer, level - 1, logical)?;
                }
            }
            Ok(())
        });
        self.nodes[level] = node;
        result.map_err(|fault| fault.within(format_args!("indirect block {pointer}")))
    }

    fn block(&self, walk: &mut Walk<'_, '_>, pointer: u32, logical: u64) -> Result<(), Fault> {
        if pointer == 0 {
            return Ok(());
        }
        self.push(walk, logical, u64::from(pointer), 1, ExtentFlags::default())
    }

    fn push(
        &self,
        walk: &mut Walk<'_, '_>,
        logical: u64,
        physical: u64,
        length: u64,
        more: ExtentFlags,
    ) -> Result<(), Fault> {
        if physical < self.first_data_block || physical + length > self.blocks {
            return Err(Fault::corrupt(format!(
                "block {logical} of the file at block {physical} is impossible"
            )));
        }
        assert!(logical >= walk.next_logical, "maps are walked in the order of the file");
        walk.next_logical = logical + length;
        walk.extents.push(Extent {
            logical_bytes: logical * self.block_bytes,
            physical_bytes: physical * self.block_bytes,
            length_bytes: length * self.block_bytes,
            flags: walk.flags.with(more),
        });
        Ok(())
    }

    fn load(&self, walk: &mut Walk<'_, '_>, block: u64, node: &mut [u8]) -> Result<(), Fault> {
        if block <= self.first_data_block || block >= self.blocks {
            return Err(Fault::corrupt("is impossible"));
        }
        walk.budget.spend(1)?;
        let bytes = walk.image.bytes(block * self.block_bytes, node.len())?;
        node.copy_from_slice(bytes);
        Ok(())
    }
}

fn node_depth(bytes: &[u8]) -> Result<u16, Fault> {
    let fields = Fields::little(bytes);
    if fields.u16(0) != NODE_MAGIC {
        return Err(Fault::corrupt("a node of the extent tree without its magic number"));
    }
    Ok(fields.u16(6))
}
