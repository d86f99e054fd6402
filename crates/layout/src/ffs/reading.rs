//! Reading: the inode, the indirect blocks, the data.
//!
//! Blocks that lie side by side are read together, up to the largest transfer; fragments at a
//! file's end are read by themselves (4.4BSD's `cluster_read`, `ufs_bmaparray`).

use super::FastFileSystem;
use super::block_map::Slot;
use crate::file_system::{Content, FileDevice, FileSystemError, Urgency};

impl FastFileSystem {
    /// Reads `size_bytes` of `file` from `offset_bytes`, as far as the file goes. Holes are
    /// not read.
    ///
    /// # Errors
    /// If there is no such file.
    pub(crate) fn read_file(
        &self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        let inode = self.file(file)?;
        device.read(self.transfer(
            self.geometry.inode_address(inode),
            self.geometry.fragments_per_block,
            Content::Inode,
            Urgency::Synchronous,
        ));
        let size = self.inodes.records[inode as usize].size_bytes;
        let end = offset_bytes.saturating_add(size_bytes).min(size);
        if offset_bytes >= end {
            return Ok(());
        }
        let block_bytes = u64::from(self.geometry.block_bytes);
        let mut block = (offset_bytes / block_bytes) as u32;
        let blocks = self.geometry.blocks_of(end);
        let mut map = None;
        while block < blocks {
            self.read_map(inode, block, &mut map, device);
            block += self.read_run(inode, block, blocks, device);
        }
        Ok(())
    }

    /// Reads the indirect blocks through which `block` is named, unless `map` says that they were
    /// read last.
    fn read_map(
        &self,
        inode: u32,
        block: u32,
        map: &mut Option<u32>,
        device: &mut impl FileDevice,
    ) {
        let slot = self.slot(block);
        let number = match slot {
            Slot::Direct(_) => return,
            Slot::Single(_) => 0,
            Slot::Double(child, _) => child + 1,
        };
        if *map == Some(number) {
            return;
        }
        let record = &self.inodes.records[inode as usize];
        if number > 0
            && map.is_none_or(|before| before == 0)
            && let Some(double) = record.double.checked_sub(1)
        {
            self.read_addresses(self.inodes.doubles[double as usize].address, device);
        }
        if let Some(indirect) = self.indirect(inode, slot) {
            self.read_addresses(indirect.address, device);
        }
        *map = Some(number);
    }

    /// Reads the blocks from `block` on, before `end`, that lie side by side; returns their number.
    fn read_run(&self, inode: u32, block: u32, end: u32, device: &mut impl FileDevice) -> u32 {
        let whole = self.geometry.fragments_per_block;
        let size = self.inodes.records[inode as usize].size_bytes;
        let address = self.address(inode, block);
        if address == 0 {
            return 1;
        }
        let first = self.block_fragments(size, block);
        let mut blocks = 1;
        if first == whole {
            let most = (self.geometry.transfer_blocks_max - 1).min(end - block - 1);
            blocks += self.run_length(inode, block, most);
            // Not together with the fragments at the end.
            if self.block_fragments(size, block + blocks - 1) < whole {
                blocks -= 1;
            }
        }
        device.read(self.transfer(
            address,
            if blocks == 1 { first } else { blocks * whole },
            Content::Data,
            Urgency::Asynchronous,
        ));
        blocks
    }
}
