//! Cutting files: what lies behind the new end is freed.
//!
//! Source: 4.4BSD's `ffs_truncate`, `ffs_indirtrunc`. Freeing the rest of an indirect block reads
//! it; one that is still needed is written back at once.

use super::FastFileSystem;
use super::geometry::DIRECT_BLOCKS;
use super::inodes::{Indirect, Kind, Window};
use crate::file_system::{Content, FileDevice, FileSystemError, Urgency};

impl FastFileSystem {
    /// Cuts or extends `file` to `size_bytes`. An extended file has a block at its end, and holes
    /// before it.
    ///
    /// # Errors
    /// If there is no room for the last block, the file would be too large, or there is none.
    pub(crate) fn truncate_file(
        &mut self,
        file: u32,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let inode = self.file(file)?;
        if size_bytes > self.geometry.file_bytes_max() {
            return Err(FileSystemError::TooLarge);
        }
        let before = self.inodes.records[inode as usize].size_bytes;
        let mut done = Ok(());
        self.tally_tail(inode, false);
        if size_bytes > before {
            let block_bytes = u64::from(self.geometry.block_bytes);
            let last = size_bytes - 1;
            let (block, reach) = ((last / block_bytes) as u32, (last % block_bytes + 1) as u32);
            done = self.room_for(inode, block, reach, device);
            if done.is_ok() {
                self.inodes.records[inode as usize].size_bytes = size_bytes;
                self.send_now(inode, block, device);
            } else {
                self.cut(inode, before, device);
            }
        } else {
            self.cut(inode, size_bytes, device);
        }
        self.tally_tail(inode, true);
        self.write_inode(inode, Urgency::Synchronous, device);
        self.finish(device);
        done
    }

    /// Frees everything of `inode` behind `size_bytes`, which becomes its size.
    pub(crate) fn cut(&mut self, inode: u32, size_bytes: u64, device: &mut impl FileDevice) {
        let size = self.inodes.records[inode as usize].size_bytes;
        let keep = self.geometry.blocks_of(size_bytes);
        let record = &self.inodes.records[inode as usize];
        if record.single.is_some() || record.double != 0 {
            self.cut_indirect(inode, keep, device);
        }
        self.cut_direct(inode, keep);
        self.cut_last_block(inode, size, size_bytes);
        let record = &mut self.inodes.records[inode as usize];
        record.size_bytes = size_bytes;
        record.window = Window::default();
    }

    /// Frees the direct blocks from `keep` on. Indirect ones behind them are gone already.
    fn cut_direct(&mut self, inode: u32, keep: u32) {
        let size = self.inodes.records[inode as usize].size_bytes;
        let end = self.geometry.blocks_of(size).min(DIRECT_BLOCKS);
        let tallied = self.inodes.records[inode as usize].kind == Kind::File;
        // Backwards, so that what is behind is gone when a block goes.
        for block in (keep..end).rev() {
            let record = &mut self.inodes.records[inode as usize];
            let address = std::mem::take(&mut record.direct[block as usize]);
            if address == 0 {
                continue;
            }
            if tallied {
                let previous = self.address_before(inode, block);
                self.tally_pair(previous, address, false);
            }
            let fragments = self.block_fragments(size, block);
            self.release(address, fragments);
        }
    }

    /// Gives back the fragments of the last block that the new size does not need.
    fn cut_last_block(&mut self, inode: u32, size: u64, size_bytes: u64) {
        let Some(last) = self.geometry.blocks_of(size_bytes).checked_sub(1) else {
            return;
        };
        if last >= DIRECT_BLOCKS {
            return;
        }
        let address = self.inodes.records[inode as usize].direct[last as usize];
        let there = self.block_fragments(size, last);
        let needed = self.block_fragments(size_bytes, last);
        if address != 0 && needed < there {
            self.release(address + needed, there - needed);
        }
    }

    /// Frees the blocks from `keep` on that indirect blocks name, and the indirect blocks that name
    /// nothing any longer.
    fn cut_indirect(&mut self, inode: u32, keep: u32, device: &mut impl FileDevice) {
        let addresses = self.geometry.addresses_per_block;
        let number = self.inodes.records[inode as usize].double;
        if number != 0 {
            self.cut_double(inode, number, keep, device);
        }
        if let Some(single) = self.inodes.records[inode as usize].single {
            let kept = keep.saturating_sub(DIRECT_BLOCKS);
            if kept < addresses && self.cut_addresses(inode, DIRECT_BLOCKS, single, kept, device) {
                self.inodes.records[inode as usize].single = None;
            }
        }
    }

    fn cut_double(&mut self, inode: u32, number: u32, keep: u32, device: &mut impl FileDevice) {
        let addresses = self.geometry.addresses_per_block;
        let first = DIRECT_BLOCKS + addresses;
        let double = &self.inodes.doubles[number as usize - 1];
        let (address, children) = (double.address, double.children.len() as u32);
        // The child that is cut, and all behind it.
        let kept_children = keep.saturating_sub(first).div_ceil(addresses);
        self.read_addresses(address, device);
        let from = keep.saturating_sub(first) / addresses;
        for child in (from..children).rev() {
            let start = first + child * addresses;
            let named = self.inodes.doubles[number as usize - 1].children[child as usize];
            let Some(named) = named else { continue };
            let kept = keep.saturating_sub(start);
            if self.cut_addresses(inode, start, named, kept, device) {
                self.inodes.doubles[number as usize - 1].children[child as usize] = None;
            }
        }
        if keep <= first {
            self.release(address, self.geometry.fragments_per_block);
            self.inodes.records[inode as usize].double = 0;
            self.inodes.remove_double(number);
        } else {
            let double = &mut self.inodes.doubles[number as usize - 1];
            double.children.truncate(kept_children as usize);
        }
    }

    /// Frees the blocks from the `kept`-th on that `indirect`, whose first one is the file's
    /// `start`, names, and it itself if nothing is kept; returns whether it was freed.
    fn cut_addresses(
        &mut self,
        inode: u32,
        start: u32,
        indirect: Indirect,
        kept: u32,
        device: &mut impl FileDevice,
    ) -> bool {
        let whole = self.geometry.fragments_per_block;
        self.read_addresses(indirect.address, device);
        let mut list = indirect.list;
        let mut freed = false;
        let tallied = self.inodes.records[inode as usize].kind == Kind::File;
        // Backwards, so that what is behind is gone when a block goes.
        for index in (kept..list.capacity()).rev() {
            let address = self.lists.get(list, index);
            if address == 0 {
                continue;
            }
            if tallied {
                let near = index.checked_sub(1).map_or(0, |before| self.lists.get(list, before));
                let previous =
                    if near == 0 { self.address_before(inode, start + index) } else { near };
                self.tally_pair(previous, address, false);
            }
            self.lists.set(&mut list, index, 0);
            self.release(address, whole);
            freed = true;
        }
        if kept > 0 {
            if freed {
                device.write(self.transfer(
                    indirect.address,
                    whole,
                    Content::Indirect,
                    Urgency::Synchronous,
                ));
            }
            return false;
        }
        self.lists.discard(list);
        self.release(indirect.address, whole);
        true
    }

    /// Reads a block of addresses.
    pub(crate) fn read_addresses(&self, address: u32, device: &mut impl FileDevice) {
        device.read(self.transfer(
            address,
            self.geometry.fragments_per_block,
            Content::Indirect,
            Urgency::Synchronous,
        ));
    }
}
