//! Which block of a file lies where, and how well.
//!
//! Blocks 0 to 11 are named in the inode, the next ones in its indirect block, the rest in indirect
//! blocks named by its double indirect block. The tally of the layout score is kept here: it changes
//! with each address that is set.

use super::geometry::DIRECT_BLOCKS;
use super::inodes::{Indirect, Kind};
use super::{FastFileSystem, LayoutTally};

/// The map that names a block, and where in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Direct(u32),
    Single(u32),
    /// Number of the indirect block among those of the double indirect one, and the place in it.
    Double(u32, u32),
}

impl Slot {
    /// The place in its map.
    #[inline]
    pub(crate) fn index(self) -> u32 {
        match self {
            Slot::Direct(index) | Slot::Single(index) | Slot::Double(_, index) => index,
        }
    }
}

impl FastFileSystem {
    /// Where the address of `block` stands.
    #[inline]
    pub(crate) fn slot(&self, block: u32) -> Slot {
        if block < DIRECT_BLOCKS {
            return Slot::Direct(block);
        }
        let (rest, addresses) = (block - DIRECT_BLOCKS, self.geometry.addresses_per_block);
        if rest < addresses {
            return Slot::Single(rest);
        }
        let rest = rest - addresses;
        Slot::Double(rest / addresses, rest % addresses)
    }

    /// The indirect block that names what stands at `slot`, if there is one.
    #[inline]
    pub(crate) fn indirect(&self, inode: u32, slot: Slot) -> Option<Indirect> {
        let record = &self.inodes.records[inode as usize];
        match slot {
            Slot::Direct(_) => None,
            Slot::Single(_) => record.single,
            Slot::Double(child, _) => {
                let number = record.double.checked_sub(1)?;
                let double = &self.inodes.doubles[number as usize];
                double.children.get(child as usize).copied().flatten()
            }
        }
    }

    /// The address of `block`; 0 for a hole.
    #[inline]
    pub(crate) fn address(&self, inode: u32, block: u32) -> u32 {
        match self.slot(block) {
            Slot::Direct(index) => self.inodes.records[inode as usize].direct[index as usize],
            slot => self
                .indirect(inode, slot)
                .map_or(0, |indirect| self.lists.get(indirect.list, slot.index())),
        }
    }

    /// Gives `block` another address; its map is there.
    pub(crate) fn set_address(&mut self, inode: u32, block: u32, address: u32) {
        self.tally_around(inode, block, false);
        self.store(inode, block, address);
        self.tally_around(inode, block, true);
    }

    fn store(&mut self, inode: u32, block: u32, address: u32) {
        let slot = self.slot(block);
        let record = &mut self.inodes.records[inode as usize];
        let indirect = match slot {
            Slot::Direct(index) => {
                record.direct[index as usize] = address;
                return;
            }
            Slot::Single(_) => record.single.as_mut(),
            Slot::Double(child, _) => {
                let double = &mut self.inodes.doubles[record.double as usize - 1];
                double.children[child as usize].as_mut()
            }
        };
        let indirect = indirect.expect("the indirect block is made before what it names");
        self.lists.set(&mut indirect.list, slot.index(), address);
    }

    /// Counts, or stops to count, `block` and the one behind it in the layout score.
    fn tally_around(&mut self, inode: u32, block: u32, more: bool) {
        if self.inodes.records[inode as usize].kind != Kind::File {
            return;
        }
        let here = self.address(inode, block);
        let (before, after) = (self.address_before(inode, block), self.address_after(inode, block));
        if here == 0 {
            self.tally_pair(before, after, more);
        } else {
            self.tally_pair(before, here, more);
            self.tally_pair(here, after, more);
        }
    }

    /// The address of the last block before `block` that is no hole; 0 if there is none.
    #[inline]
    pub(crate) fn address_before(&self, inode: u32, block: u32) -> u32 {
        let mut before = block;
        while let Some(previous) = before.checked_sub(1) {
            let address = self.address(inode, previous);
            if address != 0 {
                return address;
            }
            let slot = self.slot(previous);
            let is_map = matches!(slot, Slot::Direct(_)) || self.indirect(inode, slot).is_some();
            // Where there is no indirect block there is nothing that it names.
            before = if is_map { previous } else { previous - slot.index() };
        }
        0
    }

    /// The address of the first block behind `block` that is no hole; 0 if there is none.
    #[inline]
    fn address_after(&self, inode: u32, block: u32) -> u32 {
        let blocks = self.geometry.blocks_of(self.inodes.records[inode as usize].size_bytes);
        let mut next = block + 1;
        while next < blocks {
            let address = self.address(inode, next);
            if address != 0 {
                return address;
            }
            let slot = self.slot(next);
            let is_map = matches!(slot, Slot::Direct(_)) || self.indirect(inode, slot).is_some();
            let map_blocks = self.geometry.addresses_per_block;
            next += if is_map { 1 } else { map_blocks - slot.index() };
        }
        0
    }

    /// Counts, or stops to count, the block at `second` that follows the one at `first`.
    #[inline]
    pub(crate) fn tally_pair(&mut self, first: u32, second: u32, more: bool) {
        if first == 0 || second == 0 {
            return;
        }
        let optimal = u64::from(first + self.geometry.fragments_per_block == second);
        let tally = &mut self.tally;
        if more {
            tally.counted += 1;
            tally.optimal += optimal;
        } else {
            tally.counted -= 1;
            tally.optimal -= optimal;
        }
    }

    /// Counts, or stops to count, the fragments at the end of the file `inode`, if it has any: once
    /// before it changes and once after.
    pub(crate) fn tally_tail(&mut self, inode: u32, more: bool) {
        let tail = self.tail(inode);
        let tails = &mut self.tails;
        if more {
            tails.counted += tail.counted;
            tails.optimal += tail.optimal;
        } else {
            tails.counted -= tail.counted;
            tails.optimal -= tail.optimal;
        }
    }

    /// The tally of the fragments at the end of the file `inode`.
    pub(crate) fn tail(&self, inode: u32) -> LayoutTally {
        let size = self.inodes.records[inode as usize].size_bytes;
        let whole = self.geometry.fragments_per_block;
        let fragments = |last: &u32| self.block_fragments(size, *last) < whole;
        let last = self.geometry.blocks_of(size).checked_sub(1).filter(fragments);
        let Some(last) = last else {
            return LayoutTally::default();
        };
        let (before, here) = (self.address_before(inode, last), self.address(inode, last));
        let counted = before != 0 && here != 0;
        let optimal = counted && before + whole == here;
        LayoutTally { optimal: optimal.into(), counted: counted.into() }
    }

    /// Bytes of `block` that have room on the disk, if it is no hole, of a file of `size_bytes`.
    #[inline]
    pub(crate) fn block_fragments(&self, size_bytes: u64, block: u32) -> u32 {
        let end = (u64::from(block) + 1) * u64::from(self.geometry.block_bytes);
        if block >= DIRECT_BLOCKS || size_bytes >= end {
            return self.geometry.fragments_per_block;
        }
        let start = end - u64::from(self.geometry.block_bytes);
        self.geometry.fragments_of(size_bytes.saturating_sub(start) as u32)
    }
}
