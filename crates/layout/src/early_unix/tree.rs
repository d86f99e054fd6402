//! The blocks of a file: through which indirect blocks they are named.

use super::{Content, EarlyUnix, FileDevice, FileSystemError, Kind, Urgency};

/// Blocks that the inode names itself (seventh edition).
pub(super) const DIRECT: u32 = 10;
/// Single, double and triple indirect blocks.
const DEPTH_MAX: u8 = 3;

/// An indirect block of a file: in which of the three trees, how far below its root, and which of
/// those that stand there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node {
    depth: u8,
    level: u8,
    index: u32,
}

impl EarlyUnix {
    /// Largest file, blocks.
    pub(super) fn blocks_max(&self) -> u64 {
        let addresses = u64::from(self.addresses());
        let trees = addresses + addresses.pow(2) + addresses.pow(3);
        (u64::from(DIRECT) + trees).min(u64::from(u32::MAX) - 1)
    }

    /// The tree that names `block`, and its place among the blocks of that tree.
    fn tree(&self, block: u32) -> Option<(u8, u64)> {
        let addresses = u64::from(self.addresses());
        let mut rest = u64::from(block.checked_sub(DIRECT)?);
        for depth in 1..=DEPTH_MAX {
            let reach = addresses.pow(u32::from(depth));
            if rest < reach {
                return Some((depth, rest));
            }
            rest -= reach;
        }
        None
    }

    /// The indirect blocks through which `block` is named, from the root on.
    pub(super) fn path(&self, block: u32) -> impl Iterator<Item = Node> + use<> {
        let (depth, rest) = self.tree(block).unwrap_or((0, 0));
        let addresses = u64::from(self.addresses());
        (0..depth).map(move |level| {
            let below = addresses.pow(u32::from(depth - level));
            Node { depth, level, index: (rest / below) as u32 }
        })
    }

    /// The indirect blocks, from the lowest up, of which `block` is the first.
    fn begun_by(&self, block: u32) -> impl Iterator<Item = Node> + use<> {
        let (depth, rest) = self.tree(block).unwrap_or((0, 0));
        let addresses = u64::from(self.addresses());
        (0..depth).rev().filter_map(move |level| {
            let below = addresses.pow(u32::from(depth - level));
            let index = (rest / below) as u32;
            rest.is_multiple_of(below).then_some(Node { depth, level, index })
        })
    }

    /// The address of `block` of `inode`; 0 for a hole.
    pub(super) fn address(&self, inode: u32, block: u32) -> u32 {
        self.records[inode as usize].blocks.get(block as usize).copied().unwrap_or(0)
    }

    /// Gives `inode` a block of its own at `block`, and the indirect blocks that this takes.
    pub(super) fn allocate(
        &mut self,
        inode: u32,
        block: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let nodes = &self.records[inode as usize].nodes;
        let missing = self.path(block).filter(|node| !nodes.contains_key(node)).count() as u32;
        if self.free.count() <= missing {
            return Err(FileSystemError::NoSpace);
        }
        let (later, mut lowest) = (self.later(), None);
        for node in self.path(block) {
            let there = self.records[inode as usize].nodes.get(&node).copied();
            let address = if let Some(address) = there {
                address
            } else {
                let address = self.take_block(device);
                self.records[inode as usize].nodes.insert(node, address);
                if let Some(parent) = lowest {
                    device.write(self.transfer(parent, Content::Indirect, later));
                }
                address
            };
            lowest = Some(address);
        }
        let address = self.take_block(device);
        if let Some(lowest) = lowest {
            device.write(self.transfer(lowest, Content::Indirect, later));
        }
        let blocks = &mut self.records[inode as usize].blocks;
        if blocks.len() <= block as usize {
            blocks.resize(block as usize + 1, 0);
        }
        self.set_address(inode, block, address);
        Ok(())
    }

    /// Takes the first block of the free list, which has one.
    fn take_block(&mut self, device: &mut impl FileDevice) -> u32 {
        let (block, listed) = self.free.take().expect("blocks were counted before");
        if listed {
            self.read_block(block, Content::Map, device);
        }
        self.write_superblock(device);
        block
    }

    fn give_block(&mut self, block: u32, device: &mut impl FileDevice) {
        if self.free.give(block) {
            device.write(self.transfer(block, Content::Map, self.later()));
        }
    }

    /// Sets the address of `block`, where there was none or will be none.
    fn set_address(&mut self, inode: u32, block: u32, address: u32) {
        let record = &mut self.records[inode as usize];
        let old = std::mem::replace(&mut record.blocks[block as usize], address);
        if record.kind != Kind::File {
            return;
        }
        let at = block as usize;
        let is_there = |address: &&u32| **address != 0;
        let before = record.blocks[..at].iter().rev().find(is_there).copied().unwrap_or(0);
        let after = record.blocks[at + 1..].iter().find(is_there).copied().unwrap_or(0);
        for (here, more) in [(old, false), (address, true)] {
            if here == 0 {
                self.tally_pair(before, after, more);
            } else {
                self.tally_pair(before, here, more);
                self.tally_pair(here, after, more);
            }
        }
    }

    /// Frees the blocks of `inode` from `keep` on, the last one first, and the indirect blocks that
    /// name nothing any longer, each when its first block has gone.
    pub(super) fn cut(&mut self, inode: u32, keep: u32, device: &mut impl FileDevice) {
        let blocks = self.records[inode as usize].blocks.len() as u32;
        for block in (keep..blocks).rev() {
            let address = self.address(inode, block);
            if address != 0 {
                self.set_address(inode, block, 0);
                self.give_block(address, device);
            }
            self.records[inode as usize].blocks.pop();
            for node in self.begun_by(block) {
                if let Some(address) = self.records[inode as usize].nodes.remove(&node) {
                    self.read_block(address, Content::Indirect, device);
                    self.give_block(address, device);
                }
            }
        }
        if keep < blocks {
            let lowest = self.path(keep.saturating_sub(1)).last();
            let nodes = &self.records[inode as usize].nodes;
            if let Some(address) = lowest.and_then(|node| nodes.get(&node)) {
                device.write(self.transfer(*address, Content::Indirect, Urgency::Synchronous));
            }
            self.write_superblock(device);
        }
    }
}
