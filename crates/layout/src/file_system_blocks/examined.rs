//! The queries of a layout of blocks on a file system, beyond its operations: where a block lies,
//! and what a check after a crash reads.

use crate::file_system::FileSystem;

/// Neighbouring sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SectorRun {
    /// The first.
    pub sector: u64,
    /// How many.
    pub sectors: u64,
}

/// A file system that reports its places.
pub trait ExaminedFileSystem: FileSystem {
    /// Sectors of the smallest piece of the disk that it allocates.
    fn unit_sectors(&self) -> u32;

    /// Sectors of the whole file system.
    fn total_sectors(&self) -> u64;

    /// The sector where the block of `file` that has the byte `offset_bytes` begins; none for a
    /// hole, or if there is no such file.
    fn sector_of(&self, file: u32, offset_bytes: u64) -> Option<u64>;

    /// How many blocks before the one that was written last may have moved by that.
    fn moved_blocks_max(&self) -> u32;

    /// All that describes the data, in the order of the disk, and no longer than it is: inodes,
    /// maps, directories, indirect blocks.
    fn metadata(&self) -> Vec<SectorRun>;

    /// What says which sectors and inodes are free, which a check writes again.
    fn free_maps(&self) -> Vec<SectorRun>;
}

/// Sorts `runs` and joins those that touch.
pub(crate) fn in_disk_order(mut runs: Vec<SectorRun>) -> Vec<SectorRun> {
    runs.sort_unstable();
    let mut joined: Vec<SectorRun> = Vec::new();
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.sector + last.sectors == run.sector => last.sectors += run.sectors,
            _ => joined.push(run),
        }
    }
    joined
}
