//! The file system of early UNIX: one list of free blocks, and all inodes at the front of the disk.
//!
//! The baseline of Matthews 1999, §3.2. A new block is the first of the free list, a freed block
//! becomes the first. The list begins in the order of the disk and ends in no order at all, and with
//! it the files. Blocks have 512 bytes (the seventh edition) or 1 KB (4.1BSD), there are no
//! fragments and no clusters: every block is a request of its own.
//!
//! Sources: Thompson 1978; Ritchie & Thompson 1974; the seventh edition's file system:
//! * block 0 is for booting, block 1 the superblock, then come the inodes of 64 bytes, then data;
//! * an inode names 10 blocks itself, then one indirect, one double and one triple indirect block;
//! * the superblock holds 50 numbers of free blocks; the first of them is that of a block with 50
//!   more, read when the list gets there and written when a freed block finds the 50 full;
//! * it holds 100 numbers of free inodes, refilled by looking through the inodes from the first on;
//! * files are freed from their last block to their first, so that the next file gets the blocks of
//!   a removed one in their order;
//! * directory entries have 16 bytes, and directories never shrink.
//!
//! Differences: names are not kept; interleaving is none unless asked for.
//!
//! Cost: O(1) a block.

mod examined;
mod free_list;
mod operations;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeMap;

use crate::file_system::{Content, FileDevice, FileSystemError, FileTransfer, Urgency};
use free_list::FreeList;
use tree::Node;

/// Bytes of an inode (seventh edition).
const INODE_BYTES: u32 = 64;
/// Numbers of free inodes that the superblock holds (`NICINOD`).
const CACHED_INODES: usize = 100;
/// Bytes of a directory entry: a number and 14 letters.
const ENTRY_BYTES: u64 = 16;
/// Block of the superblock; the inodes follow.
const SUPERBLOCK: u32 = 1;
/// The root directory (`ROOTINO`).
const ROOT: u32 = 2;

/// Parameters of an early UNIX file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlyUnixSetting {
    /// Bytes of a block: 512 or 1024.
    pub block_bytes: u32,
    /// Bytes of the file system.
    pub total_bytes: u64,
    /// Bytes of space for each inode.
    pub bytes_per_inode: u32,
    /// Distance of consecutive blocks of the first free list: 1 for the order of the disk.
    pub interleave_blocks: u32,
    /// Whether an operation waits for each of its updates before it makes the next one
    /// (Matthews 1999, §3.2); else maps and data are written later.
    pub ordered: bool,
}

impl EarlyUnixSetting {
    /// A file system of `total_bytes` in blocks of `block_bytes`, as Matthews 1999, §3.2 describes
    /// it. An inode for each 2 KB is chosen by us.
    #[must_use]
    pub fn matthews_1999(block_bytes: u32, total_bytes: u64) -> Self {
        Self {
            block_bytes,
            total_bytes,
            bytes_per_inode: 2048,
            interleave_blocks: 1,
            ordered: true,
        }
    }

    /// Whether a file system can be made like this.
    ///
    /// # Errors
    /// If a number is out of its range, or nothing is left for data.
    pub fn check(&self) -> Result<(), EarlyUnixError> {
        if !self.block_bytes.is_power_of_two() || !(512..=65536).contains(&self.block_bytes) {
            return Err(EarlyUnixError::BlockBytes(self.block_bytes));
        }
        if self.bytes_per_inode < INODE_BYTES {
            return Err(EarlyUnixError::BytesPerInode(self.bytes_per_inode));
        }
        let blocks = self.total_bytes / u64::from(self.block_bytes);
        if blocks > u64::from(u32::MAX) {
            return Err(EarlyUnixError::TooLarge(self.total_bytes));
        }
        if self.interleave_blocks == 0 || u64::from(self.interleave_blocks) > blocks {
            return Err(EarlyUnixError::Interleave(self.interleave_blocks));
        }
        let data = u64::from(SUPERBLOCK) + 1 + self.inode_blocks();
        // The root directory takes one block.
        if data + 1 >= blocks || self.inode_blocks() > u64::from(u32::MAX / self.inodes_per_block())
        {
            return Err(EarlyUnixError::TooSmall(self.total_bytes));
        }
        Ok(())
    }

    fn inodes_per_block(&self) -> u32 {
        self.block_bytes / INODE_BYTES
    }

    fn inode_blocks(&self) -> u64 {
        let wanted = self.total_bytes / u64::from(self.bytes_per_inode);
        wanted.div_ceil(u64::from(self.inodes_per_block())).max(1)
    }
}

/// Why an early UNIX file system cannot be made like this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EarlyUnixError {
    /// Not a block.
    #[error("block_bytes = {0}: has to be a power of two from 512 to 65536")]
    BlockBytes(u32),
    /// Too many inodes.
    #[error("bytes_per_inode = {0}: has to be at least 64")]
    BytesPerInode(u32),
    /// No distance, or one larger than the disk.
    #[error("interleave_blocks = {0}: has to be at least 1 and at most the blocks there are")]
    Interleave(u32),
    /// Too many blocks.
    #[error("{0} bytes are more than 2^32 blocks; use larger blocks")]
    TooLarge(u64),
    /// No data.
    #[error("{0} bytes leave no room for data behind the inodes; make the file system larger")]
    TooSmall(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Free,
    File,
    Directory,
}

/// One inode.
#[derive(Debug, Clone, Default)]
struct Record {
    kind: Kind,
    size_bytes: u64,
    /// Addresses of its blocks; 0 for a hole.
    blocks: Vec<u32>,
    /// Its indirect blocks.
    nodes: BTreeMap<Node, u32>,
    /// The directory it is in, and where.
    directory: u32,
    slot: u32,
    /// Of a directory: which of its entries are in use, and none before this one is not.
    used: Vec<bool>,
    first_open: u32,
    entries: u32,
}

/// The file system of early UNIX.
#[derive(Debug, Clone)]
pub struct EarlyUnix {
    setting: EarlyUnixSetting,
    /// First block of data.
    data_start: u32,
    blocks: u32,
    free: FreeList,
    records: Vec<Record>,
    free_inodes: u32,
    /// Numbers of free inodes in the superblock; some may have been taken since.
    cached_inodes: Vec<u32>,
    optimal: u64,
    counted: u64,
}

impl EarlyUnix {
    /// An empty file system: nothing but its root directory.
    ///
    /// # Errors
    /// If `setting` cannot be.
    pub fn new(setting: EarlyUnixSetting) -> Result<Self, EarlyUnixError> {
        setting.check()?;
        let blocks = (setting.total_bytes / u64::from(setting.block_bytes)) as u32;
        let inode_blocks = setting.inode_blocks() as u32;
        let data_start = SUPERBLOCK + 1 + inode_blocks;
        let inodes = inode_blocks * setting.inodes_per_block();
        let mut system = Self {
            setting,
            data_start,
            blocks,
            free: FreeList::new(data_start..blocks, setting.interleave_blocks),
            records: vec![Record::default(); inodes as usize],
            // Inodes 0 and 1 stand for nothing.
            free_inodes: inodes - ROOT,
            cached_inodes: Vec::new(),
            optimal: 0,
            counted: 0,
        };
        system.take_inode(ROOT, Kind::Directory);
        let made = system.begin_directory(ROOT, ROOT, &mut ());
        made.map_err(|_| EarlyUnixError::TooSmall(setting.total_bytes))?;
        Ok(system)
    }

    fn block_bytes(&self) -> u64 {
        self.setting.block_bytes.into()
    }

    /// Addresses in an indirect block.
    fn addresses(&self) -> u32 {
        self.setting.block_bytes / 4
    }

    /// The urgency of metadata updates that could be written later.
    fn later(&self) -> Urgency {
        if self.setting.ordered { Urgency::Synchronous } else { Urgency::Delayed }
    }

    fn transfer(&self, block: u32, content: Content, urgency: Urgency) -> FileTransfer {
        let sectors = self.setting.block_bytes / 512;
        FileTransfer { sector: u64::from(block) * u64::from(sectors), sectors, content, urgency }
    }

    fn read_block(&self, block: u32, content: Content, device: &mut impl FileDevice) {
        device.read(self.transfer(block, content, Urgency::Synchronous));
    }

    fn write_inode(&self, inode: u32, urgency: Urgency, device: &mut impl FileDevice) {
        device.write(self.transfer(self.inode_block(inode), Content::Inode, urgency));
    }

    fn inode_block(&self, inode: u32) -> u32 {
        SUPERBLOCK + 1 + inode / self.setting.inodes_per_block()
    }

    fn write_superblock(&self, device: &mut impl FileDevice) {
        device.write(self.transfer(SUPERBLOCK, Content::Map, self.later()));
    }

    fn record(&self, number: u32, kind: Kind) -> Result<&Record, FileSystemError> {
        let record = self.records.get(number as usize).filter(|record| record.kind == kind);
        record.ok_or(FileSystemError::NoFile(number))
    }

    fn take_inode(&mut self, inode: u32, kind: Kind) {
        let record = &mut self.records[inode as usize];
        debug_assert!(record.blocks.is_empty(), "a free inode has no blocks");
        record.kind = kind;
        record.size_bytes = 0;
        self.free_inodes -= 1;
    }

    /// The next free inode of the superblock's, which are refilled when they run out.
    fn allocate_inode(
        &mut self,
        kind: Kind,
        device: &mut impl FileDevice,
    ) -> Result<u32, FileSystemError> {
        loop {
            let Some(inode) = self.cached_inodes.pop() else {
                self.refill_inodes(device)?;
                continue;
            };
            if self.records[inode as usize].kind == Kind::Free {
                self.take_inode(inode, kind);
                return Ok(inode);
            }
        }
    }

    fn refill_inodes(&mut self, device: &mut impl FileDevice) -> Result<(), FileSystemError> {
        if self.free_inodes == 0 {
            return Err(FileSystemError::NoInodes);
        }
        let per_block = self.setting.inodes_per_block();
        for inode in ROOT..self.records.len() as u32 {
            if inode.is_multiple_of(per_block) || inode == ROOT {
                self.read_block(self.inode_block(inode), Content::Inode, device);
            }
            if self.records[inode as usize].kind == Kind::Free {
                self.cached_inodes.push(inode);
                if self.cached_inodes.len() == CACHED_INODES {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Gives `inode`, whose blocks are free already, back.
    fn release_inode(&mut self, inode: u32) {
        self.records[inode as usize].kind = Kind::Free;
        self.free_inodes += 1;
        if self.cached_inodes.len() < CACHED_INODES {
            self.cached_inodes.push(inode);
        }
    }

    /// Counts, or stops to count, the block at `second` that follows the one at `first`.
    fn tally_pair(&mut self, first: u32, second: u32, more: bool) {
        if first == 0 || second == 0 {
            return;
        }
        let optimal = u64::from(first + 1 == second);
        if more {
            self.counted += 1;
            self.optimal += optimal;
        } else {
            self.counted -= 1;
            self.optimal -= optimal;
        }
    }
}
