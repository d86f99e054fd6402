//! The Fast File System as a [`FileSystem`].

use super::FastFileSystem;
use crate::file_system::{FileDevice, FileExtent, FileSystem, FileSystemError};

impl FileSystem for FastFileSystem {
    fn root(&self) -> u32 {
        Self::ROOT
    }

    fn block_bytes(&self) -> u64 {
        self.geometry.block_bytes.into()
    }

    fn make_directory(
        &mut self,
        parent: u32,
        device: &mut impl FileDevice,
    ) -> Result<u32, FileSystemError> {
        self.create_directory(parent, device)
    }

    fn create(
        &mut self,
        directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<u32, FileSystemError> {
        self.create_file(directory, device)
    }

    fn write(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.write_file(file, offset_bytes, size_bytes, device)
    }

    fn read(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.read_file(file, offset_bytes, size_bytes, device)
    }

    fn truncate(
        &mut self,
        file: u32,
        size_bytes: u64,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.truncate_file(file, size_bytes, device)
    }

    fn remove(&mut self, file: u32, device: &mut impl FileDevice) -> Result<(), FileSystemError> {
        self.remove_file(file, device)
    }

    fn remove_directory(
        &mut self,
        directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.remove_empty_directory(directory, device)
    }

    fn rename(
        &mut self,
        file: u32,
        to_directory: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.move_to(file, to_directory, device)
    }

    /// Delayed writes in the host's cache go out with it: the host has to write all of them.
    fn sync(&mut self, device: &mut impl FileDevice) -> Result<(), FileSystemError> {
        self.flush(device);
        Ok(())
    }

    fn sync_file(
        &mut self,
        file: u32,
        device: &mut impl FileDevice,
    ) -> Result<(), FileSystemError> {
        self.flush_file(file, device)
    }

    fn size_bytes(&self, file: u32) -> u64 {
        let number = self.file(file).or_else(|_| self.directory(file));
        number.map_or(0, |number| self.inodes.records[number as usize].size_bytes)
    }

    fn extents(&self, file: u32) -> Vec<FileExtent> {
        let bytes = u64::from(self.geometry.fragment_bytes);
        let sectors = u64::from(self.sectors_per_fragment());
        let Ok(runs) = self.runs(file) else {
            return Vec::new();
        };
        runs.map(|run| FileExtent {
            offset_bytes: run.logical * bytes,
            sector: u64::from(run.address) * sectors,
            bytes: u64::from(run.fragments) * bytes,
        })
        .collect()
    }

    /// Space for ordinary users: the reserve of `minfree_pct` is no part of it.
    fn usage_bytes(&self) -> (u64, u64) {
        let usage = self.usage();
        let bytes = u64::from(self.geometry.fragment_bytes);
        let used = u64::from(usage.total_fragments - usage.free_fragments);
        let total = u64::from(usage.total_fragments - usage.reserved_fragments);
        (used * bytes, total * bytes)
    }

    fn layout_counts(&self) -> (u64, u64) {
        let tally = self.whole_block_tally();
        (tally.optimal, tally.counted)
    }

    fn free_extents(&self) -> Vec<(u64, u64)> {
        let sectors = u64::from(self.sectors_per_fragment());
        self.free_runs()
            .map(|(first, count)| (u64::from(first) * sectors, u64::from(count) * sectors))
            .collect()
    }

    fn verify(&self) {
        self.check();
    }
}
