//! A log-structured file system: files, directories and inodes on top of the log.
//!
//! Nothing is written in place. Changed blocks, inodes and directories wait in memory until enough
//! are dirty, or a sync comes, and are then written as one partial segment: a summary, the blocks
//! of each file, its indirect blocks, and the inodes of all of them, packed together.
//!
//! After the 4.4BSD log-structured file system (Seltzer et al. 1993; Seltzer et al. 1995, §1.2, §2):
//! * a partial segment is written when over half a megabyte is dirty;
//! * the files of a partial segment are laid out in the reverse order of their first change, because
//!   4.4BSD walks its list of files from the youngest on (1995, §2.1: "the files are actually laid
//!   out in reverse order");
//! * there are no fragments: a file of one byte takes a block;
//! * blocks are 8 KB with 12 direct addresses and 4-byte addresses in indirect blocks.
//!
//! Differences: the inode map and the segment usage table (the ifile) are taken to be in memory and
//! written at no cost; a summary takes a whole block, as in the account of 1995, §3; a block that is
//! written twice before it goes out is written once.
//!
//! Cost: O(1) a block, plus what the log collects; [`FileSystem::layout_counts`] walks all blocks.

mod partial_segment;

use crate::block_layout::BlockLayout;
use crate::file_system::{
    Content, FileDevice, FileExtent, FileSystem, FileSystemError, FileTransfer, Urgency,
};
use agewell_log::policy::mechanism::Mechanism;
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{AdaptiveLog, LogSetting, ShapeError};
use partial_segment::SegmentDevice;

const NONE: u32 = u32::MAX;

/// Addresses that an inode holds itself (4.4BSD).
const DIRECT: usize = 12;

/// Bytes of an address in an indirect block (4.4BSD).
const ADDRESS_BYTES: u64 = 4;

/// Bytes of an inode (4.4BSD).
const INODE_BYTES: u64 = 128;

/// Bytes of an entry of a directory, about; 4.4BSD's are 8 bytes and the name, padded to 4.
const ENTRY_BYTES: u64 = 24;

/// Dirty bytes that make a partial segment due (Seltzer et al. 1995, §2.3).
const DIRTY_BYTES: u64 = 512 << 10;

/// Parameters of a log-structured file system.
#[derive(Debug, Clone)]
pub struct LogFileSystemSetting {
    /// The log. Its blocks, clients and buffer are set by the file system.
    pub log: LogSetting,
    /// The mechanisms that make room, of which the cheapest is taken; nothing if the log's setting
    /// names one.
    pub mechanisms: Vec<Mechanism>,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Blocks of one file that are read together at most: the largest transfer.
    pub cluster_blocks: u32,
    /// Share of the log that files must leave free, per cent, so that collecting stays possible.
    pub minfree_pct: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Free,
    File,
    Directory,
}

#[derive(Debug, Clone)]
struct Node {
    kind: Kind,
    parent: u32,
    size_bytes: u64,
    /// Entries of a directory.
    entries: u64,
    /// Blocks of the log that hold its blocks, [`NONE`] for a hole.
    blocks: Vec<u32>,
    indirect: Vec<u32>,
    /// Blocks and indirect blocks that have changed.
    dirty_blocks: Vec<u32>,
    dirty_indirect: Vec<u32>,
    dirty: bool,
    /// Block of the log that holds its inode, once it was written.
    inode_block: u32,
}

const EMPTY: Node = Node {
    kind: Kind::Free,
    parent: NONE,
    size_bytes: 0,
    entries: 0,
    blocks: Vec::new(),
    indirect: Vec::new(),
    dirty_blocks: Vec::new(),
    dirty_indirect: Vec::new(),
    dirty: false,
    inode_block: NONE,
};

/// A log-structured file system.
#[derive(Debug, Clone)]
pub struct LogFileSystem {
    log: AdaptiveLog<NoSeparation>,
    block_bytes: u64,
    cluster_blocks: u32,
    /// Blocks that may be in use, waiting ones included.
    blocks_max: u64,
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    /// Numbers of blocks of the log that are free to be used again, and how many there are in all.
    free_blocks: Vec<u32>,
    numbered: u32,
    /// Inodes that each block of the log holds, if it is a block of inodes.
    inodes_in: Vec<u32>,
    /// The latest summary: it is dead as soon as the next is written.
    summary: u32,
    /// Files with changes, in the order of their first.
    dirty_nodes: Vec<u32>,
    /// Blocks that have changed and wait.
    dirty_blocks: u64,
    used_blocks: u64,
}

impl LogFileSystem {
    /// An empty file system.
    ///
    /// # Errors
    /// If the log is too small to work with.
    pub fn new(setting: LogFileSystemSetting) -> Result<Self, ShapeError> {
        let LogFileSystemSetting { mut log, mechanisms, .. } = setting;
        let LogFileSystemSetting { block_bytes, cluster_blocks, minfree_pct, .. } = setting;
        log.clients = 1;
        log.blocks = 1;
        log.buffer_blocks = log.shape.segment_blocks_max().max(2);
        let capacity = log.shape.capacity_blocks();
        let spare =
            (u64::from(log.reserve_segments) + 2) * u64::from(log.shape.segment_blocks_max());
        let kept = (capacity * u64::from(minfree_pct) / 100).max(spare);
        log.check_fits(capacity.saturating_sub(kept), 1)?;
        let mut fresh = Self {
            log: if mechanisms.is_empty() {
                AdaptiveLog::fixed(log, NoSeparation)?
            } else {
                AdaptiveLog::among(&mechanisms, log, |_| NoSeparation)?
            },
            block_bytes,
            cluster_blocks: cluster_blocks.max(1),
            blocks_max: capacity.saturating_sub(kept),
            nodes: Vec::new(),
            free_nodes: Vec::new(),
            free_blocks: Vec::new(),
            numbered: 0,
            inodes_in: Vec::new(),
            summary: NONE,
            dirty_nodes: Vec::new(),
            dirty_blocks: 0,
            used_blocks: 0,
        };
        fresh.summary = fresh.number_block();
        fresh.nodes.push(Node { kind: Kind::Directory, parent: 0, ..EMPTY });
        fresh.touch(0);
        Ok(fresh)
    }

    fn number_block(&mut self) -> u32 {
        self.used_blocks += 1;
        self.free_blocks.pop().unwrap_or_else(|| {
            self.numbered += 1;
            // In steps, so that the log grows its map rarely.
            BlockLayout::ensure_blocks(&mut self.log, self.numbered.next_multiple_of(1024));
            self.inodes_in.push(0);
            self.numbered - 1
        })
    }

    fn drop_block(&mut self, block: u32, device: &mut impl FileDevice) {
        if block == NONE {
            return;
        }
        self.used_blocks -= 1;
        self.free_blocks.push(block);
        let mut segments = SegmentDevice::new(device, self.block_bytes);
        BlockLayout::delete(&mut self.log, block, &mut segments);
    }

    fn node(&self, number: u32, kind: Kind) -> Result<&Node, FileSystemError> {
        let node = self.nodes.get(number as usize).filter(|node| node.kind == kind);
        node.ok_or(FileSystemError::NoFile(number))
    }

    /// `number` has changed and its inode has to be written.
    fn touch(&mut self, number: u32) {
        let node = &mut self.nodes[number as usize];
        if !node.dirty {
            node.dirty = true;
            self.dirty_nodes.push(number);
        }
    }

    fn addresses_per_block(&self) -> usize {
        (self.block_bytes / ADDRESS_BYTES) as usize
    }

    /// Indirect blocks that a file of `blocks` needs; the block that holds the addresses of
    /// indirect blocks is the last.
    fn indirect_blocks(&self, blocks: usize) -> usize {
        let single = blocks.saturating_sub(DIRECT).div_ceil(self.addresses_per_block());
        single + usize::from(single > 1)
    }

    /// Blocks that making `number` as long as `blocks` takes at most, its inode included.
    fn room_for(&self, number: u32, blocks: usize) -> u64 {
        let node = &self.nodes[number as usize];
        let more = blocks.saturating_sub(node.blocks.len());
        let indirect = self.indirect_blocks(blocks).saturating_sub(node.indirect.len());
        (more + indirect + 1) as u64
    }

    fn has_room(&self, blocks: u64) -> bool {
        self.used_blocks + blocks <= self.blocks_max
    }

    /// `block` of `number` has changed, and what points to it.
    fn change(&mut self, number: u32, block: usize) {
        let per = self.addresses_per_block();
        let needed = self.indirect_blocks(block + 1);
        if block >= self.nodes[number as usize].blocks.len() {
            self.nodes[number as usize].blocks.resize(block + 1, NONE);
        }
        if self.nodes[number as usize].blocks[block] == NONE {
            let made = self.number_block();
            self.nodes[number as usize].blocks[block] = made;
        }
        while self.nodes[number as usize].indirect.len() < needed {
            let made = self.number_block();
            self.nodes[number as usize].indirect.push(made);
        }
        self.touch(number);
        let node = &mut self.nodes[number as usize];
        self.dirty_blocks += u64::from(mark(&mut node.dirty_blocks, block as u32));
        if let Some(beyond) = block.checked_sub(DIRECT) {
            let changed = mark(&mut node.dirty_indirect, (beyond / per) as u32);
            self.dirty_blocks += u64::from(changed);
        }
    }

    /// Writes partial segments if enough is dirty.
    fn write_if_due(&mut self, device: &mut impl FileDevice) -> Result<(), FileSystemError> {
        if self.dirty_blocks * self.block_bytes > DIRTY_BYTES {
            let nodes = std::mem::take(&mut self.dirty_nodes);
            self.write_partial_segments(&nodes, Urgency::Asynchronous, device)?;
        }
        Ok(())
    }

    fn add_entry(&mut self, directory: u32) {
        let node = &mut self.nodes[directory as usize];
        node.entries += 1;
        node.size_bytes = node.size_bytes.max(node.entries * ENTRY_BYTES);
        let block = ((node.entries * ENTRY_BYTES - 1) / self.block_bytes) as usize;
        self.change(directory, block);
    }

    fn remove_entry(&mut self, directory: u32) {
        let entries = &mut self.nodes[directory as usize].entries;
        let block = ((*entries * ENTRY_BYTES - 1) / self.block_bytes) as usize;
        *entries -= 1;
        self.change(directory, block);
    }

    fn make(
        &mut self,
        parent: u32,
        kind: Kind,
        device: &mut impl FileDevice,
    ) -> Result<u32, FileSystemError> {
        self.node(parent, Kind::Directory)?;
        // An entry may take a block and an indirect one, the inode a block.
        if !self.has_room(4) {
            return Err(FileSystemError::NoSpace);
        }
        let number = self.free_nodes.pop().unwrap_or_else(|| {
            self.nodes.push(EMPTY);
            self.nodes.len() as u32 - 1
        });
        self.nodes[number as usize] = Node { kind, parent, ..EMPTY };
        self.touch(number);
        self.add_entry(parent);
        self.write_if_due(device)?;
        Ok(number)
    }

    fn discard(&mut self, number: u32, device: &mut impl FileDevice) {
        self.cut(number, 0, device);
        let node = std::mem::replace(&mut self.nodes[number as usize], EMPTY);
        if node.dirty {
            self.dirty_nodes.retain(|dirty| *dirty != number);
        }
        self.leave_inode_block(node.inode_block, device);
        self.free_nodes.push(number);
    }

    /// The inode that lay in `block` does so no more.
    fn leave_inode_block(&mut self, block: u32, device: &mut impl FileDevice) {
        if block == NONE {
            return;
        }
        let inodes = &mut self.inodes_in[block as usize];
        *inodes -= 1;
        if *inodes == 0 {
            self.drop_block(block, device);
        }
    }

    /// Takes away the blocks from `kept` on.
    fn cut(&mut self, number: u32, kept: usize, device: &mut impl FileDevice) {
        let needed = self.indirect_blocks(kept);
        let node = &mut self.nodes[number as usize];
        let mut gone: Vec<u32> = node.blocks.drain(kept.min(node.blocks.len())..).collect();
        gone.extend(node.indirect.drain(needed.min(node.indirect.len())..));
        let waiting = node.dirty_blocks.len() + node.dirty_indirect.len();
        node.dirty_blocks.retain(|block| (*block as usize) < kept);
        node.dirty_indirect.retain(|block| (*block as usize) < needed);
        self.dirty_blocks -= (waiting - node.dirty_blocks.len() - node.dirty_indirect.len()) as u64;
        for block in gone {
            self.drop_block(block, device);
        }
    }

    /// Where `block` of the log lies, in sectors, if it was written.
    fn sector_of(&self, block: u32) -> Option<u64> {
        let slot = (block != NONE).then(|| self.log.log().slot_of(block)).flatten()?;
        Some(u64::from(slot) * (self.block_bytes / 512))
    }

    fn read_block(&self, block: u32, content: Content, device: &mut impl FileDevice) {
        if let Some(sector) = self.sector_of(block) {
            let sectors = (self.block_bytes / 512) as u32;
            device.read(FileTransfer { sector, sectors, content, urgency: Urgency::Synchronous });
        }
    }

    /// The runs of blocks of `node` that lie side by side: first block, first sector, blocks.
    fn runs(&self, node: &Node, from: usize, to: usize, most: u32) -> Vec<(usize, u64, u32)> {
        let mut runs: Vec<(usize, u64, u32)> = Vec::new();
        let block_sectors = self.block_bytes / 512;
        for (index, block) in node.blocks.iter().enumerate().take(to).skip(from) {
            let Some(sector) = self.sector_of(*block) else { continue };
            match runs.last_mut() {
                Some((first, start, blocks))
                    if *blocks < most
                        && *first + *blocks as usize == index
                        && *start + u64::from(*blocks) * block_sectors == sector =>
                {
                    *blocks += 1;
                }
                _ => runs.push((index, sector, 1)),
            }
        }
        runs
    }
}

/// Adds `value` to an ascending list; returns whether it is new there.
fn mark(list: &mut Vec<u32>, value: u32) -> bool {
    if list.last().is_none_or(|last| *last < value) {
        list.push(value);
        return true;
    }
    match list.binary_search(&value) {
        Ok(_) => false,
        Err(at) => {
            list.insert(at, value);
            true
        }
    }
}

impl FileSystem for LogFileSystem {
    fn root(&self) -> u32 {
        0
    }

    fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn make_directory(
        &mut self,
        parent: u32,
        device: &mut impl FileDevice,
    ) -> Result<u32, FileSystemError> {
        self.make(parent, Kind::Directory, device)
    }

    fn create(
        &mut self,
        directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<u32, FileSystemError> {
        self.make(directory, Kind::File, device)
    }

    fn write(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.node(file, Kind::File)?;
        let end_bytes = offset_bytes.checked_add(size_bytes).ok_or(FileSystemError::TooLarge)?;
        let blocks = end_bytes.div_ceil(self.block_bytes);
        let per = self.addresses_per_block() as u64;
        if blocks > DIRECT as u64 + per * per {
            return Err(FileSystemError::TooLarge);
        }
        let first = offset_bytes / self.block_bytes;
        for block in first..blocks {
            if !self.has_room(self.room_for(file, block as usize + 1)) {
                return Err(FileSystemError::NoSpace);
            }
            self.change(file, block as usize);
            let node = &mut self.nodes[file as usize];
            node.size_bytes = node.size_bytes.max(end_bytes.min((block + 1) * self.block_bytes));
            self.write_if_due(device)?;
        }
        Ok(())
    }

    fn read(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let node = self.node(file, Kind::File)?;
        self.read_block(node.inode_block, Content::Inode, device);
        let end = (offset_bytes.saturating_add(size_bytes)).min(node.size_bytes);
        let (from, to) = (offset_bytes / self.block_bytes, end.div_ceil(self.block_bytes));
        let mut pointed = NONE as usize;
        for (first, sector, blocks) in
            self.runs(node, from as usize, to as usize, self.cluster_blocks)
        {
            if let Some(beyond) = (first + blocks as usize - 1).checked_sub(DIRECT) {
                let indirect = beyond / self.addresses_per_block();
                if indirect != pointed {
                    pointed = indirect;
                    if node.indirect.len() > 1 {
                        let last = *node.indirect.last().expect("more than one");
                        self.read_block(last, Content::Indirect, device);
                    }
                    self.read_block(node.indirect[indirect], Content::Indirect, device);
                }
            }
            let sectors = blocks * (self.block_bytes / 512) as u32;
            let (content, urgency) = (Content::Data, Urgency::Asynchronous);
            device.read(FileTransfer { sector, sectors, content, urgency });
        }
        Ok(())
    }

    fn truncate(
        &mut self,
        file: u32,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.node(file, Kind::File)?;
        self.cut(file, size_bytes.div_ceil(self.block_bytes) as usize, device);
        self.nodes[file as usize].size_bytes = size_bytes;
        self.touch(file);
        Ok(())
    }

    fn remove(&mut self, file: u32, device: &mut impl FileDevice) -> Result<(), FileSystemError> {
        let directory = self.node(file, Kind::File)?.parent;
        self.discard(file, device);
        self.remove_entry(directory);
        self.write_if_due(device)
    }

    fn remove_directory(
        &mut self,
        directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let node = self.node(directory, Kind::Directory)?;
        if node.entries > 0 || directory == self.root() {
            return Err(FileSystemError::NotEmpty(directory));
        }
        let parent = node.parent;
        self.discard(directory, device);
        self.remove_entry(parent);
        self.write_if_due(device)
    }

    fn rename(
        &mut self,
        file: u32,
        to_directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.node(to_directory, Kind::Directory)?;
        let kind = self.nodes.get(file as usize).map_or(Kind::Free, |node| node.kind);
        if kind == Kind::Free {
            return Err(FileSystemError::NoFile(file));
        }
        if !self.has_room(2) {
            return Err(FileSystemError::NoSpace);
        }
        let from = std::mem::replace(&mut self.nodes[file as usize].parent, to_directory);
        self.remove_entry(from);
        self.add_entry(to_directory);
        self.touch(file);
        self.write_if_due(device)
    }

    fn sync(&mut self, device: &mut impl FileDevice) -> Result<(), FileSystemError> {
        let nodes = std::mem::take(&mut self.dirty_nodes);
        self.write_partial_segments(&nodes, Urgency::Asynchronous, device)
    }

    fn sync_file(
        &mut self,
        file: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.node(file, Kind::File)?;
        if !self.nodes[file as usize].dirty {
            return Ok(());
        }
        self.dirty_nodes.retain(|dirty| *dirty != file);
        self.write_partial_segments(&[file], Urgency::Synchronous, device)
    }

    fn size_bytes(&self, file: u32) -> u64 {
        self.nodes.get(file as usize).map_or(0, |node| node.size_bytes)
    }

    fn extents(&self, file: u32) -> Vec<FileExtent> {
        let Some(node) = self.nodes.get(file as usize) else { return Vec::new() };
        let runs = self.runs(node, 0, node.blocks.len(), u32::MAX);
        let extent = |(first, sector, blocks): (usize, u64, u32)| FileExtent {
            offset_bytes: first as u64 * self.block_bytes,
            sector,
            bytes: u64::from(blocks) * self.block_bytes,
        };
        runs.into_iter().map(extent).collect()
    }

    fn usage_bytes(&self) -> (u64, u64) {
        (self.used_blocks * self.block_bytes, self.blocks_max * self.block_bytes)
    }

    fn layout_counts(&self) -> (u64, u64) {
        let (mut optimal, mut counted) = (0, 0);
        let block_sectors = self.block_bytes / 512;
        for node in self.nodes.iter().filter(|node| node.kind == Kind::File) {
            let mut before: Option<Option<u64>> = None;
            for block in node.blocks.iter().filter(|block| **block != NONE) {
                let sector = self.sector_of(*block);
                if let Some(before) = before {
                    counted += 1;
                    let follows = before.is_some_and(|at| sector == Some(at + block_sectors));
                    optimal += u64::from(follows);
                }
                before = Some(sector);
            }
        }
        (optimal, counted)
    }

    fn free_extents(&self) -> Vec<(u64, u64)> {
        let shape = self.log.log().shape();
        let block_sectors = self.block_bytes / 512;
        let mut used = vec![false; shape.slots() as usize];
        for slot in (0..self.numbered).filter_map(|block| self.log.log().slot_of(block)) {
            used[slot as usize] = true;
        }
        let mut free: Vec<(u64, u64)> = Vec::new();
        for slot in (0..shape.slots()).filter(|slot| !used[*slot as usize]) {
            let sector = u64::from(slot) * block_sectors;
            match free.last_mut() {
                Some((first, sectors)) if *first + *sectors == sector => *sectors += block_sectors,
                _ => free.push((sector, block_sectors)),
            }
        }
        free
    }

    fn verify(&self) {
        self.log.verify();
        let mut seen = vec![0_u32; self.numbered as usize];
        let mut inodes = vec![0_u32; self.numbered as usize];
        let mut waiting = 0;
        for node in self.nodes.iter().filter(|node| node.kind != Kind::Free) {
            let blocks = node.blocks.iter().chain(&node.indirect);
            blocks.filter(|block| **block != NONE).for_each(|block| seen[*block as usize] += 1);
            assert_eq!(node.indirect.len(), self.indirect_blocks(node.blocks.len()));
            waiting += (node.dirty_blocks.len() + node.dirty_indirect.len()) as u64;
            if node.inode_block != NONE {
                inodes[node.inode_block as usize] += 1;
            }
        }
        assert_eq!(waiting, self.dirty_blocks, "dirty blocks are counted");
        assert_eq!(inodes, self.inodes_in, "inodes are where they are said to be");
        for (block, inodes) in inodes.iter().enumerate().filter(|(_, inodes)| **inodes > 0) {
            assert!(*inodes > 0);
            seen[block] += 1;
        }
        seen[self.summary as usize] += 1;
        self.free_blocks.iter().for_each(|block| seen[*block as usize] += 1);
        assert!(seen.iter().all(|times| *times == 1), "a block is used once or free");
        assert_eq!(self.used_blocks + self.free_blocks.len() as u64, u64::from(self.numbered));
        assert!(self.used_blocks <= self.log.log().shape().capacity_blocks());
    }
}

#[cfg(test)]
mod tests;
