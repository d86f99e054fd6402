//! Writing: blocks and fragments are given to a file as it grows.
//!
//! Block by block: a file's last fragments grow to what the write needs, to a whole block if the
//! file goes on behind them; an indirect block is allocated, and written empty, before the first
//! block that it names.
//!
//! Source: 4.4BSD's `ffs_write`, `ffs_balloc`.

use super::allocation::Growth;
use super::block_map::Slot;
use super::geometry::DIRECT_BLOCKS;
use super::inodes::Indirect;
use super::preference::{Wanted, block_address, group_front};
use super::{FastFileSystem, IndirectPlacement};
use crate::file_system::{Content, FileDevice, FileSystemError, Urgency};

impl FastFileSystem {
    /// Writes `size_bytes` of `file` from `offset_bytes`; the file grows where they reach beyond
    /// its end. Where space runs out on the way what fitted stays.
    pub(crate) fn write_file(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let inode = self.file(file)?;
        let end = offset_bytes.saturating_add(size_bytes);
        if end > self.geometry.file_bytes_max() {
            return Err(FileSystemError::TooLarge);
        }
        if size_bytes == 0 {
            return Ok(());
        }
        let before = self.inodes.records[inode as usize].size_bytes;
        self.tally_tail(inode, false);
        let mut at = offset_bytes;
        let mut refused = None;
        while at < end && refused.is_none() {
            match self.write_block(inode, at, end, device) {
                Ok(written) => at += written,
                Err(error) => refused = Some(error),
            }
        }
        if refused.is_some() {
            // A fragment may have become a block for nothing.
            let reached = if at > offset_bytes { at } else { 0 };
            self.cut(inode, before.max(reached), device);
        }
        self.tally_tail(inode, true);
        self.write_inode(inode, Urgency::Delayed, device);
        self.finish(device);
        refused.map_or(Ok(()), Err)
    }

    /// Writes from `at` to the end of its block, or to `end`.
    fn write_block<D: FileDevice>(
        &mut self,
        inode: u32,
        at: u64,
        end: u64,
        device: &mut D,
    ) -> Result<u64, FileSystemError> {
        let block_bytes = u64::from(self.geometry.block_bytes);
        let (block, within) = ((at / block_bytes) as u32, at % block_bytes);
        let count = (block_bytes - within).min(end - at);
        let reach = within + count;
        let size = self.inodes.records[inode as usize].size_bytes;
        if D::LISTENS {
            self.read_what_stays(inode, block, (within, reach), device);
        }
        self.room_for(inode, block, reach as u32, device)?;
        let record = &mut self.inodes.records[inode as usize];
        record.size_bytes = record.size_bytes.max(size).max(at + count);
        if reach == block_bytes {
            self.write_full(inode, block, device);
        } else if D::LISTENS {
            let fragments =
                self.block_fragments(self.inodes.records[inode as usize].size_bytes, block);
            self.unsent.mark(self.address(inode, block), fragments);
        }
        Ok(count)
    }

    /// Reads the block that is about to be written in part, and the map that names it.
    fn read_what_stays(
        &self,
        inode: u32,
        block: u32,
        (from, to): (u64, u64),
        device: &mut impl FileDevice,
    ) {
        let size = self.inodes.records[inode as usize].size_bytes;
        let start = u64::from(block) * u64::from(self.geometry.block_bytes);
        let there = size.saturating_sub(start).min(u64::from(self.geometry.block_bytes));
        let address = self.address(inode, block);
        if address != 0 && there > 0 && (from > 0 || to < there) {
            let fragments = self.block_fragments(size, block);
            let urgency = Urgency::Synchronous;
            device.read(self.transfer(address, fragments, Content::Data, urgency));
        }
    }

    /// Makes room for the first `reach` bytes of `block`.
    pub(crate) fn room_for(
        &mut self,
        inode: u32,
        block: u32,
        reach: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.complete_last_block(inode, block, device)?;
        if block >= DIRECT_BLOCKS {
            return self.room_behind_indirect(inode, block, device);
        }
        let size = self.inodes.records[inode as usize].size_bytes;
        let there = self.block_fragments(size, block);
        let here = self.inodes.records[inode as usize].direct[block as usize];
        let fragments = self.geometry.fragments_of(reach).max(there);
        if here != 0 {
            if fragments > there {
                self.grow_block(inode, block, there, fragments)?;
            }
            return Ok(());
        }
        let preferred = self.preferred_address(inode, block);
        let group = self.geometry.inode_group(inode);
        let address = self.allocate(group, preferred, fragments)?;
        self.set_address(inode, block, address);
        Ok(())
    }

    /// Makes the file's last fragments a whole block if `block` lies behind them.
    fn complete_last_block(
        &mut self,
        inode: u32,
        block: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let block_bytes = u64::from(self.geometry.block_bytes);
        let size = self.inodes.records[inode as usize].size_bytes;
        let last = (size / block_bytes).min(u64::from(u32::MAX)) as u32;
        if last >= DIRECT_BLOCKS || last >= block || size.is_multiple_of(block_bytes) {
            return Ok(());
        }
        let whole = self.geometry.fragments_per_block;
        let there = self.block_fragments(size, last);
        if self.inodes.records[inode as usize].direct[last as usize] != 0 && there < whole {
            self.grow_block(inode, last, there, whole)?;
            self.inodes.records[inode as usize].size_bytes = (u64::from(last) + 1) * block_bytes;
            self.send_now(inode, last, device);
        }
        Ok(())
    }

    /// Makes the fragments of `block` more.
    fn grow_block(
        &mut self,
        inode: u32,
        block: u32,
        from: u32,
        to: u32,
    ) -> Result<(), FileSystemError> {
        let address = self.inodes.records[inode as usize].direct[block as usize];
        let preferred = self.preferred_address(inode, block);
        let grown = self.grow(Growth { address, preferred, from, to })?;
        if grown != address {
            self.set_address(inode, block, grown);
        }
        Ok(())
    }

    /// Where `block` should go.
    pub(crate) fn preferred_address(&self, inode: u32, block: u32) -> u32 {
        let slot = self.slot(block);
        let index = slot.index();
        let inode_group = self.geometry.inode_group(inode);
        let before = |distance: u32| {
            if index >= distance { self.address(inode, block - distance) } else { 0 }
        };
        if index == 0 && block >= DIRECT_BLOCKS {
            let next = self.geometry.fragments_per_block;
            let near = match self.policies.indirect {
                IndirectPlacement::NearPrevious => {
                    self.indirect(inode, slot).map_or(0, |indirect| indirect.address)
                }
                IndirectPlacement::NoSwitch if matches!(slot, Slot::Single(_)) => {
                    return group_front(&self.geometry, inode_group);
                }
                _ => 0,
            };
            if near != 0 {
                return near + next;
            }
        }
        let maxcontig = self.geometry.maxcontig;
        let wanted = Wanted {
            inode_group,
            block,
            index,
            previous: if index == 0 { 0 } else { before(1) },
            // Only the gap asks for it.
            run_start: if self.geometry.gap_fragments == 0 { 0 } else { before(maxcontig) },
            leaves_group: self.leaves_group(),
        };
        block_address(self.view(), wanted)
    }

    /// Whether files leave their inode's group when they need an indirect block.
    fn leaves_group(&self) -> bool {
        self.policies.indirect != IndirectPlacement::RoomyGroup
    }

    /// Where the indirect block that names `block` should go.
    fn preferred_indirect(&self, inode: u32, block: u32) -> u32 {
        let inode_group = self.geometry.inode_group(inode);
        let previous = self.address(inode, block.saturating_sub(1));
        match self.policies.indirect {
            IndirectPlacement::NearPrevious if previous != 0 => {
                previous + self.geometry.fragments_per_block
            }
            IndirectPlacement::NoSwitch if matches!(self.slot(block), Slot::Single(_)) => {
                group_front(&self.geometry, inode_group)
            }
            _ => block_address(
                self.view(),
                Wanted::first_of_map(inode_group, block, self.leaves_group()),
            ),
        }
    }

    /// Makes room for `block`, which an indirect block names. Where there is none, the maps that
    /// were made for it are given back: 4.4BSD's `ffs_balloc` does the same.
    fn room_behind_indirect(
        &mut self,
        inode: u32,
        block: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let had_indirect = self.indirect(inode, self.slot(block)).is_some();
        let had_double = self.inodes.records[inode as usize].double != 0;
        let done = self.place_behind_indirect(inode, block, device);
        if done.is_err() {
            if !had_indirect {
                self.give_back_indirect(inode, self.slot(block), device);
            }
            if !had_double {
                self.give_back_double(inode);
            }
        }
        done
    }

    fn place_behind_indirect(
        &mut self,
        inode: u32,
        block: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let slot = self.slot(block);
        if self.indirect(inode, slot).is_none() {
            self.make_indirect(inode, block, device)?;
        }
        if self.address(inode, block) != 0 {
            return Ok(());
        }
        let preferred = self.preferred_address(inode, block);
        let group = self.geometry.inode_group(inode);
        let address = self.allocate(group, preferred, self.geometry.fragments_per_block)?;
        self.set_address(inode, block, address);
        self.write_indirect(inode, block, Urgency::Delayed, device);
        Ok(())
    }

    /// Frees the indirect block for `slot`, if there is one; it names nothing.
    fn give_back_indirect(&mut self, inode: u32, slot: Slot, device: &mut impl FileDevice) {
        let Some(indirect) = self.indirect(inode, slot) else { return };
        let record = &mut self.inodes.records[inode as usize];
        if let Slot::Double(child, _) = slot {
            let double = &mut self.inodes.doubles[record.double as usize - 1];
            double.children[child as usize] = None;
            let address = double.address;
            self.write_addresses(address, Urgency::Delayed, device);
        } else {
            record.single = None;
        }
        self.lists.discard(indirect.list);
        self.release(indirect.address, self.geometry.fragments_per_block);
    }

    /// Frees the double indirect block, if there is one; it names nothing.
    fn give_back_double(&mut self, inode: u32) {
        let number = std::mem::take(&mut self.inodes.records[inode as usize].double);
        if number != 0 {
            let address = self.inodes.doubles[number as usize - 1].address;
            self.inodes.remove_double(number);
            self.release(address, self.geometry.fragments_per_block);
        }
    }

    /// Writes the indirect block that names `block`.
    pub(crate) fn write_indirect(
        &self,
        inode: u32,
        block: u32,
        urgency: Urgency,
        device: &mut impl FileDevice,
    ) {
        if let Some(indirect) = self.indirect(inode, self.slot(block)) {
            self.write_addresses(indirect.address, urgency, device);
        }
    }

    fn write_addresses(&self, address: u32, urgency: Urgency, device: &mut impl FileDevice) {
        device.write(self.transfer(
            address,
            self.geometry.fragments_per_block,
            Content::Indirect,
            urgency,
        ));
    }

    /// Makes the indirect blocks through which `block` is named. They are written at once, empty,
    /// so that no address on the disk ever leads to garbage.
    fn make_indirect(
        &mut self,
        inode: u32,
        block: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let slot = self.slot(block);
        let preferred = self.preferred_indirect(inode, block);
        let group = self.geometry.inode_group(inode);
        let whole = self.geometry.fragments_per_block;
        if matches!(slot, Slot::Double(..)) && self.inodes.records[inode as usize].double == 0 {
            let address = self.allocate(group, preferred, whole)?;
            self.inodes.records[inode as usize].double = self.inodes.add_double(address);
            self.write_addresses(address, Urgency::Synchronous, device);
        }
        let address = self.allocate(group, preferred, whole)?;
        self.write_addresses(address, Urgency::Synchronous, device);
        let list = self.lists.create(slot.index() + 1);
        let record = &mut self.inodes.records[inode as usize];
        let made = Some(Indirect { address, list });
        if let Slot::Double(child, _) = slot {
            let double = &mut self.inodes.doubles[record.double as usize - 1];
            let least = child as usize + 1;
            if double.children.len() < least {
                double.children.resize(least, None);
            }
            double.children[child as usize] = made;
            let address = double.address;
            self.write_addresses(address, Urgency::Delayed, device);
        } else {
            record.single = made;
        }
        Ok(())
    }

    /// Makes the directory `inode` `size_bytes` long, chunk by chunk.
    pub(crate) fn extend_directory(
        &mut self,
        inode: u32,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let block_bytes = u64::from(self.geometry.block_bytes);
        let last = size_bytes - 1;
        let (block, reach) = ((last / block_bytes) as u32, last % block_bytes + 1);
        let before = self.inodes.records[inode as usize].size_bytes;
        let made = self.room_for(inode, block, reach as u32, device);
        if made.is_err() {
            self.cut(inode, before, device);
            return made;
        }
        self.inodes.records[inode as usize].size_bytes = size_bytes;
        Ok(())
    }
}
