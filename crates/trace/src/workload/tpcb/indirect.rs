//! Which indirect blocks hold the address of a file's block.
//!
//! Twelve addresses stand in the inode, 1,024 four-byte ones in the single indirect block, and
//! 1,024 times as many below the double indirect block (McKusick, Bostic, Karels & Quarterman
//! 1996, §7.2, with blocks of 4 KB). A file's indirect blocks are numbered in the order in which a
//! growing file gets them: the single one, the double one, the leaves of the double one.

/// Addresses in an indirect block of 4 KB.
pub(super) const POINTERS_PER_BLOCK: u64 = 1024;
/// Addresses in the inode.
const DIRECT: u32 = 12;
/// Blocks reached without the double indirect block.
const SINGLE_END: u32 = DIRECT + POINTERS_PER_BLOCK as u32;

/// Numbers of the indirect blocks on the way to one block, as far as there are any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndirectPath {
    /// The double indirect block.
    pub(super) root: Option<u32>,
    /// The block that holds the address itself.
    pub(super) leaf: Option<u32>,
}

/// The way to `block` of a file.
pub(super) fn indirect_path(block: u32) -> IndirectPath {
    if block < DIRECT {
        IndirectPath { root: None, leaf: None }
    } else if block < SINGLE_END {
        IndirectPath { root: None, leaf: Some(0) }
    } else {
        let leaf = (block - SINGLE_END) / POINTERS_PER_BLOCK as u32;
        IndirectPath { root: Some(1), leaf: Some(2 + leaf) }
    }
}

/// How many indirect blocks a file of `blocks` blocks has.
pub(super) fn indirect_blocks(blocks: u32) -> u32 {
    let last = blocks.checked_sub(1).and_then(|block| indirect_path(block).leaf);
    last.map_or(0, |leaf| leaf + 1)
}
