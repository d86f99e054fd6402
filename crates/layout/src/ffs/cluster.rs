//! Clusters: blocks wait until they make one large write, and may move before they go.
//!
//! A block that a program fills waits for the next one. If that lies right behind it both wait on,
//! until the cluster is as large as a transfer may be. If it lies elsewhere the cluster goes out;
//! or, with reallocation, at the end of a file, all of it is moved to a free cluster of its size
//! and goes on waiting. A file's last block is not full and comes here only when it is: that is why
//! files of one block and a part of another are not reallocated (Smith & Seltzer 1996, §4).
//!
//! A cluster of `n` blocks is moved when block `n` turns out not to follow, so that the largest
//! that is moved is one block smaller than the largest that is written: 56 KB and 64 KB in the
//! system of the paper, which sees both (§2, §5.1).
//!
//! Source: 4.4BSD's `cluster_write`, `cluster_wbuild`, `ffs_reallocblks`.

use super::FastFileSystem;
use super::inodes::Window;
use crate::file_system::{Content, FileDevice, FileSystemError, Urgency};

impl FastFileSystem {
    /// `block` has been filled to its end.
    pub(crate) fn write_full<D: FileDevice>(&mut self, inode: u32, block: u32, device: &mut D) {
        if !D::LISTENS && !self.policies.realloc {
            return;
        }
        let whole = self.geometry.fragments_per_block;
        let mut address = self.address(inode, block);
        if D::LISTENS {
            self.unsent.mark(address, whole);
        }
        let mut window = self.inodes.records[inode as usize].window;
        if block == 0 {
            window = Window::default();
        }
        let follows = window.length > 0
            && block == window.last.wrapping_add(1)
            && address == window.last_address.wrapping_add(whole);
        if follows && block == window.start + window.length {
            // The cluster is as large as a transfer may be.
            self.send(inode, window.start, window.length + 1, device);
            (window.length, window.start) = (0, block + 1);
        } else if !follows {
            if self.gather(inode, block, &window, device) {
                address = self.address(inode, block);
            } else {
                self.begin_cluster(inode, block, &mut window, device);
            }
        }
        (window.last, window.last_address) = (block, address);
        self.inodes.records[inode as usize].window = window;
    }

    /// `block` does not lie behind the one before it: moves the open cluster and it together, or
    /// sends the cluster out and says that it is no longer open.
    fn gather(
        &mut self,
        inode: u32,
        block: u32,
        window: &Window,
        device: &mut impl FileDevice,
    ) -> bool {
        if window.length == 0 {
            return false;
        }
        let waiting = window.last.wrapping_sub(window.start).wrapping_add(1);
        let size = self.inodes.records[inode as usize].size_bytes;
        let at_end = (u64::from(block) + 1) * u64::from(self.geometry.block_bytes) == size;
        let can_move = self.policies.realloc
            && at_end
            && block == window.last.wrapping_add(1)
            && window.length > waiting;
        if can_move && self.move_together(inode, window.start, waiting + 1, device) {
            return true;
        }
        self.send(inode, window.start, waiting, device);
        false
    }

    fn begin_cluster(
        &mut self,
        inode: u32,
        block: u32,
        window: &mut Window,
        device: &mut impl FileDevice,
    ) {
        let most = self.geometry.transfer_blocks_max - 1;
        let size = self.inodes.records[inode as usize].size_bytes;
        let at_end = (u64::from(block) + 1) * u64::from(self.geometry.block_bytes) == size;
        // At the end of the file as many as can be, elsewhere as many as lie side by side.
        window.length = if at_end { most } else { self.run_length(inode, block, most) };
        if window.length == 0 {
            window.start = block + 1;
            self.send(inode, block, 1, device);
        } else {
            window.start = block;
        }
    }

    /// How many blocks follow `block`, in its map, each right behind the one before; at most
    /// `most`.
    pub(crate) fn run_length(&self, inode: u32, block: u32, most: u32) -> u32 {
        let whole = self.geometry.fragments_per_block;
        let size = self.inodes.records[inode as usize].size_bytes;
        let map_end = block - self.slot(block).index()
            + if block < super::geometry::DIRECT_BLOCKS {
                super::geometry::DIRECT_BLOCKS
            } else {
                self.geometry.addresses_per_block
            };
        let end = self.geometry.blocks_of(size).min(map_end);
        let (first, mut run) = (self.address(inode, block), 0);
        while run < most
            && block + run + 1 < end
            && self.address(inode, block + run + 1) == first + (run + 1) * whole
        {
            run += 1;
        }
        run
    }

    /// Moves `count` blocks from `start` on, which lie in one group, to a free cluster, if there is
    /// one.
    fn move_together(
        &mut self,
        inode: u32,
        start: u32,
        count: u32,
        device: &mut impl FileDevice,
    ) -> bool {
        let whole = self.geometry.fragments_per_block;
        let (first, last) = (self.address(inode, start), self.address(inode, start + count - 1));
        // In a new group: the file has gone there on purpose.
        if first == 0 || self.geometry.group_of(first) != self.geometry.group_of(last) {
            return false;
        }
        let preferred = self.preferred_address(inode, start);
        if count > self.geometry.cluster_max || preferred >= self.geometry.fragments {
            return false;
        }
        let Some(cluster) = self.allocate_cluster(preferred, count) else {
            return false;
        };
        for index in 0..count {
            let old = self.address(inode, start + index);
            let new = cluster + index * whole;
            self.unsent.transfer(old, new, whole);
            self.set_address(inode, start + index, new);
            self.release(old, whole);
        }
        // The maps of both ends have changed; those of the inode go with it.
        self.write_indirect(inode, start, Urgency::Delayed, device);
        if self.indirect(inode, self.slot(start))
            != self.indirect(inode, self.slot(start + count - 1))
        {
            self.write_indirect(inode, start + count - 1, Urgency::Delayed, device);
        }
        true
    }

    /// Sends those of `count` blocks from `start` on that wait, together where they lie together.
    pub(crate) fn send<D: FileDevice>(
        &mut self,
        inode: u32,
        start: u32,
        count: u32,
        device: &mut D,
    ) {
        if !D::LISTENS {
            return;
        }
        let most = self.geometry.transfer_blocks_max * self.geometry.fragments_per_block;
        let size = self.inodes.records[inode as usize].size_bytes;
        let end = start.saturating_add(count).min(self.geometry.blocks_of(size));
        let (mut first, mut length) = (0, 0);
        for block in start..end {
            let address = self.address(inode, block);
            let fragments = self.block_fragments(size, block);
            let waits = address != 0 && self.unsent.waits(address, fragments);
            if length > 0 && (!waits || address != first + length || length + fragments > most) {
                self.send_data(first, length, device);
                length = 0;
            }
            if waits {
                self.unsent.clear(address, fragments);
                if length == 0 {
                    first = address;
                }
                length += fragments;
            }
        }
        if length > 0 {
            self.send_data(first, length, device);
        }
    }

    /// Sends `block` whether it waited or not.
    pub(crate) fn send_now(&mut self, inode: u32, block: u32, device: &mut impl FileDevice) {
        let size = self.inodes.records[inode as usize].size_bytes;
        let (address, fragments) = (self.address(inode, block), self.block_fragments(size, block));
        if address != 0 && fragments > 0 {
            self.unsent.clear(address, fragments);
            self.send_data(address, fragments, device);
        }
    }

    /// `file` is to be on the device: its data that waits, its indirect blocks, and, waited for, its
    /// inode. The host has to wait for what is under way for the file before.
    ///
    /// # Errors
    /// If there is no such file.
    pub(crate) fn flush_file(
        &mut self,
        file: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let inode = self.file(file)?;
        let size = self.inodes.records[inode as usize].size_bytes;
        let blocks = self.geometry.blocks_of(size);
        self.send(inode, 0, blocks, device);
        let mut block = super::geometry::DIRECT_BLOCKS;
        while block < blocks {
            self.write_indirect(inode, block, Urgency::Asynchronous, device);
            block += self.geometry.addresses_per_block;
        }
        self.inodes.records[inode as usize].window = Window::default();
        self.write_inode(inode, Urgency::Synchronous, device);
        Ok(())
    }

    fn send_data(&self, address: u32, fragments: u32, device: &mut impl FileDevice) {
        device.write(self.transfer(address, fragments, Content::Data, Urgency::Asynchronous));
    }
}
