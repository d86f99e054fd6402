//! What can be wrong with a file system, or with what is asked of it.

use super::Inode;

/// Why a file system cannot be made like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// A parameter is out of its range.
    #[error("{name} = {value}: {needs}")]
    Range {
        /// Its name.
        name: &'static str,
        /// What it is.
        value: u64,
        /// What it has to be.
        needs: &'static str,
    },
    /// A cylinder group is no whole number of blocks.
    #[error(
        "a group of {cylinders} cylinders of {sectors} sectors is no whole number of blocks; \
         make cylinders_per_group a multiple of {multiple}"
    )]
    Ragged {
        /// Cylinders of a group.
        cylinders: u32,
        /// Sectors of a cylinder.
        sectors: u32,
        /// What would do.
        multiple: u32,
    },
    /// The maps of a group do not fit into a block.
    #[error(
        "the maps of a cylinder group take {bytes} bytes and have to fit into a block of \
         {block_bytes}; lower cylinders_per_group"
    )]
    GroupTooLarge {
        /// What they take.
        bytes: u64,
        /// What there is.
        block_bytes: u32,
    },
    /// Superblock and inodes leave no data.
    #[error(
        "a cylinder group of {blocks} blocks has no room for data beside its inodes; \
         raise cylinders_per_group or bytes_per_inode"
    )]
    NoData {
        /// Blocks of a group.
        blocks: u32,
    },
    /// Too large to number.
    #[error("{fragments} fragments are more than can be numbered (2^32); use larger fragments")]
    TooLarge {
        /// Fragments asked for.
        fragments: u64,
    },
}

/// Why an operation was refused. The file system is as consistent as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FfsError {
    /// No free space, or none that may be used (`minfree_pct`).
    #[error("no space is left on the file system; remove files or make it larger")]
    NoSpace,
    /// No inode is free.
    #[error("no inode is left on the file system; lower bytes_per_inode")]
    NoInodes,
    /// There is no such regular file.
    #[error("inode {} is no regular file here", .0.0)]
    NotFile(Inode),
    /// There is no such directory.
    #[error("inode {} is no directory here", .0.0)]
    NotDirectory(Inode),
    /// The directory still has entries.
    #[error("directory {} is not empty; remove what it holds first", .0.0)]
    NotEmpty(Inode),
    /// A directory cannot move into itself or below.
    #[error("directory {} cannot be moved into itself or below", .0.0)]
    Cycle(Inode),
    /// Larger than double indirect blocks reach.
    #[error("a file of {bytes} bytes is larger than this file system can map ({bytes_max})")]
    FileTooLarge {
        /// What was asked for.
        bytes: u64,
        /// What can be.
        bytes_max: u64,
    },
}
