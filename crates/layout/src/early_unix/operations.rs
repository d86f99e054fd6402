//! File operations, each with its requests.
//!
//! Matthews 1999, §3.2: the free list, the inode, the data and the directory's entry are updated in
//! this order, each on the disk before the next. Data that fills a block goes out at once, the rest
//! may wait (`writei` of the seventh edition), unless updates are ordered.

use super::{
    Content, ENTRY_BYTES, EarlyUnix, FileDevice, FileSystemError, Kind, ROOT, Record, Urgency,
};
use crate::file_system::{FileExtent, FileSystem};

impl EarlyUnix {
    /// Gives the new directory `inode` its entries for itself and `parent`.
    pub(super) fn begin_directory(
        &mut self,
        inode: u32,
        parent: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.allocate(inode, 0, device)?;
        let record = &mut self.records[inode as usize];
        record.size_bytes = 2 * ENTRY_BYTES;
        record.used.clear();
        record.used.extend([true, true]);
        (record.directory, record.first_open, record.entries) = (parent, 2, 0);
        self.write_entry(inode, 0, device);
        Ok(())
    }

    fn write_entry(&self, directory: u32, slot: u32, device: &mut impl FileDevice) {
        let block = (u64::from(slot) * ENTRY_BYTES / self.block_bytes()) as u32;
        let address = self.address(directory, block);
        device.write(self.transfer(address, Content::Directory, Urgency::Synchronous));
    }

    /// Enters `inode` in `directory`, in its first entry that is free.
    fn enter(
        &mut self,
        directory: u32,
        inode: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let record = &mut self.records[directory as usize];
        while record.used.get(record.first_open as usize) == Some(&true) {
            record.first_open += 1;
        }
        let slot = record.first_open;
        let block = (u64::from(slot) * ENTRY_BYTES / self.block_bytes()) as u32;
        if self.address(directory, block) == 0 {
            self.allocate(directory, block, device)?;
        }
        let record = &mut self.records[directory as usize];
        if slot as usize == record.used.len() {
            record.used.push(false);
            record.size_bytes += ENTRY_BYTES;
        }
        record.used[slot as usize] = true;
        record.entries += 1;
        let entered = &mut self.records[inode as usize];
        (entered.directory, entered.slot) = (directory, slot);
        self.write_entry(directory, slot, device);
        self.write_inode(directory, self.later(), device);
        Ok(())
    }

    fn leave(&mut self, directory: u32, slot: u32, device: &mut impl FileDevice) {
        let record = &mut self.records[directory as usize];
        record.used[slot as usize] = false;
        record.first_open = record.first_open.min(slot);
        record.entries -= 1;
        self.write_entry(directory, slot, device);
        self.write_inode(directory, self.later(), device);
    }

    fn make(
        &mut self,
        directory: u32,
        kind: Kind,
        device: &mut impl FileDevice,
    ) -> Result<u32, FileSystemError> {
        self.record(directory, Kind::Directory)?;
        let inode = self.allocate_inode(kind, device)?;
        self.write_inode(inode, Urgency::Synchronous, device);
        let mut made = Ok(());
        if kind == Kind::Directory {
            made = self.begin_directory(inode, directory, device);
        }
        if made.is_ok() {
            made = self.enter(directory, inode, device);
        }
        if made.is_err() {
            self.discard(inode, device);
        }
        made.map(|()| inode)
    }

    /// Frees the blocks of `inode`, and it.
    fn discard(&mut self, inode: u32, device: &mut impl FileDevice) {
        self.cut(inode, 0, device);
        self.release_inode(inode);
        self.write_inode(inode, Urgency::Synchronous, device);
    }

    fn unlink(&mut self, inode: u32, device: &mut impl FileDevice) {
        let Record { directory, slot, .. } = self.records[inode as usize];
        self.leave(directory, slot, device);
        self.discard(inode, device);
    }

    /// Writes from `at` to the end of its block, or to `end`; returns the bytes written.
    fn write_some(
        &mut self,
        file: u32,
        (at, end): (u64, u64),
        device: &mut impl FileDevice,
    ) -> Result<u64, FileSystemError> {
        let bytes = self.block_bytes();
        let (block, within) = ((at / bytes) as u32, at % bytes);
        let count = (bytes - within).min(end - at);
        if self.address(file, block) == 0 {
            self.allocate(file, block, device)?;
        } else if count < bytes {
            self.read_block(self.address(file, block), Content::Data, device);
        }
        let record = &mut self.records[file as usize];
        record.size_bytes = record.size_bytes.max(at + count);
        let urgency = if self.setting.ordered {
            Urgency::Synchronous
        } else if within + count == bytes {
            Urgency::Asynchronous
        } else {
            Urgency::Delayed
        };
        device.write(self.transfer(self.address(file, block), Content::Data, urgency));
        Ok(count)
    }

    fn is_below(&self, mut inode: u32, above: u32) -> bool {
        while inode != above && inode != ROOT {
            inode = self.records[inode as usize].directory;
        }
        inode == above
    }
}

impl FileSystem for EarlyUnix {
    fn root(&self) -> u32 {
        ROOT
    }

    fn block_bytes(&self) -> u64 {
        self.setting.block_bytes.into()
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
        self.record(file, Kind::File)?;
        let end = offset_bytes.saturating_add(size_bytes);
        if end.div_ceil(self.block_bytes()) > self.blocks_max() {
            return Err(FileSystemError::TooLarge);
        }
        let (mut at, mut written) = (offset_bytes, Ok(()));
        while at < end && written.is_ok() {
            written = self.write_some(file, (at, end), device).map(|count| at += count);
        }
        if at > offset_bytes {
            self.write_inode(file, self.later(), device);
        }
        written
    }

    fn read(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let size = self.record(file, Kind::File)?.size_bytes;
        self.read_block(self.inode_block(file), Content::Inode, device);
        let end = offset_bytes.saturating_add(size_bytes).min(size);
        let (mut block, blocks) = (
            (offset_bytes / self.block_bytes()).min(u64::from(u32::MAX)) as u32,
            end.div_ceil(self.block_bytes()) as u32,
        );
        let mut read = Vec::new();
        while block < blocks {
            for (level, node) in self.path(block).enumerate() {
                if read.get(level) != Some(&node) {
                    read.truncate(level);
                    read.push(node);
                    if let Some(address) = self.records[file as usize].nodes.get(&node) {
                        self.read_block(*address, Content::Indirect, device);
                    }
                }
            }
            let address = self.address(file, block);
            if address != 0 {
                device.read(self.transfer(address, Content::Data, Urgency::Asynchronous));
            }
            block += 1;
        }
        Ok(())
    }

    fn truncate(
        &mut self,
        file: u32,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.record(file, Kind::File)?;
        let blocks = size_bytes.div_ceil(self.block_bytes());
        if blocks > self.blocks_max() {
            return Err(FileSystemError::TooLarge);
        }
        // Behind the end there is nothing: an extended file ends in a hole.
        self.cut(file, blocks as u32, device);
        self.records[file as usize].size_bytes = size_bytes;
        self.write_inode(file, Urgency::Synchronous, device);
        Ok(())
    }

    fn remove(&mut self, file: u32, device: &mut impl FileDevice) -> Result<(), FileSystemError> {
        self.record(file, Kind::File)?;
        self.unlink(file, device);
        Ok(())
    }

    fn remove_directory(
        &mut self,
        directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let entries = self.record(directory, Kind::Directory)?.entries;
        if entries > 0 || directory == ROOT {
            return Err(FileSystemError::NotEmpty(directory));
        }
        self.unlink(directory, device);
        Ok(())
    }

    fn rename(
        &mut self,
        file: u32,
        to_directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.record(to_directory, Kind::Directory)?;
        if self.record(file, Kind::Directory).is_ok() {
            if self.is_below(to_directory, file) {
                return Err(FileSystemError::Cycle(file));
            }
        } else {
            self.record(file, Kind::File)?;
        }
        let Record { directory, slot, .. } = self.records[file as usize];
        self.enter(to_directory, file, device)?;
        self.leave(directory, slot, device);
        if self.records[file as usize].kind == Kind::Directory {
            // The entry for its parent.
            self.write_entry(file, 1, device);
        }
        Ok(())
    }

    fn sync(&mut self, device: &mut impl FileDevice) -> Result<(), FileSystemError> {
        self.write_superblock(device);
        Ok(())
    }

    fn sync_file(
        &mut self,
        file: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let record = self.record(file, Kind::File)?;
        let last = record.blocks.last().copied().filter(|address| *address != 0);
        // Whole blocks have gone already.
        if let Some(address) =
            last.filter(|_| !record.size_bytes.is_multiple_of(self.block_bytes()))
        {
            device.write(self.transfer(address, Content::Data, Urgency::Synchronous));
        }
        for address in record.nodes.values() {
            device.write(self.transfer(*address, Content::Indirect, Urgency::Synchronous));
        }
        self.write_inode(file, Urgency::Synchronous, device);
        Ok(())
    }

    fn size_bytes(&self, file: u32) -> u64 {
        let record = self.records.get(file as usize).filter(|record| record.kind != Kind::Free);
        record.map_or(0, |record| record.size_bytes)
    }

    fn extents(&self, file: u32) -> Vec<FileExtent> {
        let Some(record) = self.records.get(file as usize) else {
            return Vec::new();
        };
        let (bytes, sectors) = (self.block_bytes(), u64::from(self.setting.block_bytes / 512));
        let mut extents: Vec<FileExtent> = Vec::new();
        for (block, address) in record.blocks.iter().enumerate() {
            if *address == 0 {
                continue;
            }
            let (offset_bytes, sector) = (block as u64 * bytes, u64::from(*address) * sectors);
            match extents.last_mut() {
                Some(last)
                    if last.offset_bytes + last.bytes == offset_bytes
                        && last.sector + last.bytes / 512 == sector =>
                {
                    last.bytes += bytes;
                }
                _ => extents.push(FileExtent { offset_bytes, sector, bytes }),
            }
        }
        extents
    }

    fn usage_bytes(&self) -> (u64, u64) {
        let total = self.blocks - self.data_start;
        let used = total - self.free.count();
        (u64::from(used) * self.block_bytes(), u64::from(total) * self.block_bytes())
    }

    fn layout_counts(&self) -> (u64, u64) {
        (self.optimal, self.counted)
    }

    fn free_extents(&self) -> Vec<(u64, u64)> {
        let mut blocks = self.free.blocks().to_vec();
        blocks.sort_unstable();
        let sectors = u64::from(self.setting.block_bytes / 512);
        let mut extents: Vec<(u64, u64)> = Vec::new();
        for block in blocks {
            let sector = u64::from(block) * sectors;
            match extents.last_mut() {
                Some((first, length)) if *first + *length == sector => *length += sectors,
                _ => extents.push((sector, sectors)),
            }
        }
        extents
    }

    fn verify(&self) {
        let mut used = vec![false; self.blocks as usize];
        used[..self.data_start as usize].fill(true);
        let mut take = |address: u32| {
            assert!(!std::mem::replace(&mut used[address as usize], true), "{address} twice");
        };
        self.free.blocks().iter().copied().for_each(&mut take);
        let (mut optimal, mut counted, mut free_inodes) = (0, 0, 0);
        for record in &self.records {
            let blocks = record.blocks.iter().copied().filter(|address| *address != 0);
            blocks.clone().for_each(&mut take);
            record.nodes.values().copied().for_each(&mut take);
            assert!(record.blocks.len() as u64 <= record.size_bytes.div_ceil(self.block_bytes()));
            free_inodes += u32::from(record.kind == Kind::Free);
            if record.kind == Kind::File {
                let addresses: Vec<u32> = blocks.collect();
                counted += addresses.len().saturating_sub(1) as u64;
                let pairs = addresses.windows(2);
                optimal += pairs.filter(|pair| pair[0] + 1 == pair[1]).count() as u64;
            }
        }
        assert!(used.iter().all(|used| *used), "a block is neither free nor used");
        assert_eq!((self.optimal, self.counted), (optimal, counted), "layout counts");
        assert_eq!(self.free_inodes + ROOT, free_inodes, "free inodes");
    }
}
