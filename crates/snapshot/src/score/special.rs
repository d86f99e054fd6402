//! What is special about the extents of regular files.

use serde::Serialize;

use crate::{ExtentFlags, Snapshot, SnapshotFile};

use super::pieces::Piece;

/// Special extents of regular files; the rules stand in `pieces`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Special {
    /// Left out: extents of inline data.
    pub inline_extents: u64,
    /// Left out: extents without a known address.
    pub unknown_extents: u64,
    /// Left out: bytes allocated beyond the end of their file.
    pub beyond_end_bytes: u64,
    /// Counted: blocks allocated but never written.
    pub unwritten_blocks: u64,
    /// Counted in each of their files: blocks that others use too.
    pub shared_blocks: u64,
    /// Counted by the blocks of the file: compressed or encrypted.
    pub encoded_blocks: u64,
    /// Tails and fragments; counted as one block each if asked for.
    pub tails: u64,
    /// Files with a hole in front of data.
    pub files_with_holes: u64,
    /// Files without any data on the device.
    pub files_without_blocks: u64,
}

impl Special {
    /// Adds what of `piece`, which counts, is special.
    pub(super) fn add_counted(&mut self, piece: &Piece) {
        let blocks = |flag| if piece.flags.any(flag) { piece.blocks } else { 0 };
        self.unwritten_blocks += blocks(ExtentFlags::UNWRITTEN);
        self.shared_blocks += blocks(ExtentFlags::SHARED);
        self.encoded_blocks += blocks(ExtentFlags::ENCODED);
        self.tails += u64::from(piece.flags.any(ExtentFlags::TAIL));
    }

    /// Adds what of `file` does not count.
    pub(super) fn add_left_out(&mut self, snapshot: &Snapshot, file: &SnapshotFile) {
        let block_bytes = u64::from(snapshot.facts.block_bytes);
        let limit_bytes = file.size_bytes.div_ceil(block_bytes).saturating_mul(block_bytes);
        for extent in snapshot.extents_of(file) {
            if extent.flags.any(ExtentFlags::INLINE) {
                self.inline_extents += 1;
            } else if extent.flags.any(ExtentFlags::UNKNOWN) {
                self.unknown_extents += 1;
            } else {
                let end = extent.logical_bytes + extent.length_bytes;
                let beyond = end.saturating_sub(limit_bytes.max(extent.logical_bytes));
                self.beyond_end_bytes += beyond;
            }
        }
    }
}
