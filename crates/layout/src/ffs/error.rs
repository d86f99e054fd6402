//! Errors in the parameters of a file system.

/// Why a file system cannot be made like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// A parameter is out of its range.
    #[error("{name} = {value}: {needs}")]
    Range {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The values that are allowed.
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
        /// A number of cylinders, of which every multiple is allowed.
        multiple: u32,
    },
    /// The maps of a group do not fit into a block.
    #[error(
        "the maps of a cylinder group take {bytes} bytes and have to fit into a block of \
         {block_bytes}; lower cylinders_per_group"
    )]
    GroupTooLarge {
        /// Bytes that they take.
        bytes: u64,
        /// Bytes of a block.
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
    #[error("{fragments} fragments are more than can be numbered (2^31); use larger fragments")]
    TooLarge {
        /// Fragments asked for.
        fragments: u64,
    },
}
