//! The queries that a layout of blocks makes on the file system of early UNIX.

use super::{EarlyUnix, EarlyUnixError, EarlyUnixSetting, INODE_BYTES, Kind, SUPERBLOCK};
use crate::file_system_blocks::{ExaminedFileSystem, SectorRun, in_disk_order};

impl EarlyUnixSetting {
    /// As large as leaves `bytes` for data.
    ///
    /// # Errors
    /// If such a file system cannot be made.
    pub fn with_data_bytes(self, bytes: u64) -> Result<Self, EarlyUnixError> {
        let is_block = (512..=65536).contains(&self.block_bytes);
        if !is_block || !self.block_bytes.is_power_of_two() || self.bytes_per_inode < INODE_BYTES {
            self.check()?;
        }
        let block_bytes = u64::from(self.block_bytes);
        let data_blocks = bytes.div_ceil(block_bytes).max(2);
        let mut tried = Self { total_bytes: bytes, ..self };
        loop {
            let blocks = u64::from(SUPERBLOCK) + 1 + tried.inode_blocks() + data_blocks;
            if tried.total_bytes >= blocks * block_bytes {
                tried.check()?;
                return Ok(tried);
            }
            tried.total_bytes = blocks * block_bytes;
        }
    }
}

impl EarlyUnix {
    fn run_of(&self, block: u32, blocks: u32) -> SectorRun {
        let sectors = u64::from(self.setting.block_bytes / 512);
        SectorRun { sector: u64::from(block) * sectors, sectors: u64::from(blocks) * sectors }
    }
}

impl ExaminedFileSystem for EarlyUnix {
    fn unit_sectors(&self) -> u32 {
        self.setting.block_bytes / 512
    }

    fn total_sectors(&self) -> u64 {
        self.run_of(0, self.blocks).sectors
    }

    #[inline]
    fn sector_of(&self, file: u32, offset_bytes: u64) -> Option<u64> {
        self.record(file, Kind::File).ok()?;
        let block = u32::try_from(offset_bytes / self.block_bytes()).ok()?;
        let address = self.address(file, block);
        (address != 0).then(|| self.run_of(address, 0).sector)
    }

    fn moved_blocks_max(&self) -> u32 {
        0
    }

    /// The superblock, all inodes, directories and indirect blocks, and the blocks that hold the
    /// list of free blocks (Matthews 1999, §3.2: what `fsck` looks for is blocks that belong
    /// "neither to a file nor to the freelist").
    fn metadata(&self) -> Vec<SectorRun> {
        let mut runs = vec![self.run_of(SUPERBLOCK, self.data_start - SUPERBLOCK)];
        for record in &self.records {
            if record.kind == Kind::Directory {
                let blocks = record.blocks.iter().filter(|block| **block != 0);
                runs.extend(blocks.map(|block| self.run_of(*block, 1)));
            }
            runs.extend(record.nodes.values().map(|block| self.run_of(*block, 1)));
        }
        runs.extend(self.free.links().map(|block| self.run_of(block, 1)));
        in_disk_order(runs)
    }

    /// The list of free blocks: the superblock, and those of the free blocks that hold the rest.
    fn free_maps(&self) -> Vec<SectorRun> {
        let links = self.free.links().map(|block| self.run_of(block, 1));
        in_disk_order([self.run_of(SUPERBLOCK, 1)].into_iter().chain(links).collect())
    }
}
