//! A file's extents as far as they count for its layout, each with how it stands to the one before.
//!
//! Every layout metric goes through [`Pieces`], so that the rules for what is special stand here
//! once:
//!
//! | what | rule |
//! |---|---|
//! | inline data | left out: it has no block of its own |
//! | unknown addresses | left out, and so is the join to the block behind them |
//! | beyond the end of the file | left out: preallocated, no part of the contents |
//! | unwritten | counted: it is allocated, and a later write keeps the place |
//! | shared | counted in every file that it belongs to |
//! | tails and fragments | no blocks of the layout score: two-block files are those that "use two |
//! |  | blocks (instead of one block and some number of fragments)" (Smith & Seltzer 1996, §4); |
//! |  | with `count_tails` each is a block of its file; for fragments, gaps and reading they count |
//! | holes | no blocks; the block behind one has the last block before it as its predecessor; |
//! |  | with `strict_holes` that block is never optimal |
//! | encoded | counted by the blocks of the file; the next begins right behind if it begins within |
//! |  | the file's length of it, because the length on the device is smaller and not known |
//!
//! Cost: one pass over the extents, nothing allocated.

use crate::{Extent, ExtentFlags, Snapshot, SnapshotFile};

/// How a piece stands to the one before it in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    /// It is the first of its file: its first block has no predecessor.
    First,
    /// The address of its predecessor is not known.
    Unknown,
    /// Right behind its predecessor.
    Behind,
    /// Elsewhere, this distance away, bytes; `backward` if before the end of its predecessor.
    Apart {
        /// Between the end of the predecessor and this.
        gap_bytes: u64,
        /// Whether the head goes back.
        backward: bool,
    },
}

/// An extent as far as it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// On the device.
    pub(crate) physical_bytes: u64,
    /// Of the file, without what is beyond its end.
    pub(crate) length_bytes: u64,
    /// Of the file; a tail is one.
    pub(crate) blocks: u64,
    /// Of those the whole ones.
    pub(crate) whole_blocks: u64,
    /// What is special about it.
    pub(crate) flags: ExtentFlags,
    /// Against the piece before.
    pub(crate) join: Join,
    /// Whether a hole is in front of it.
    pub(crate) behind_hole: bool,
}

impl Piece {
    /// Where it ends on the device; an encoded one ends earlier.
    pub(crate) fn end_bytes(&self) -> u64 {
        self.physical_bytes + self.length_bytes
    }
}

/// The pieces of one file.
pub(crate) struct Pieces<'a> {
    extents: std::slice::Iter<'a, Extent>,
    /// The end of the file rounded up to a block.
    limit_bytes: u64,
    block_bytes: u64,
    strict_holes: bool,
    previous: Option<Extent>,
    behind_unknown: bool,
}

impl<'a> Pieces<'a> {
    /// The pieces of `file`; `snapshot` has passed [`super::check`].
    pub(crate) fn new(snapshot: &'a Snapshot, file: &SnapshotFile, strict_holes: bool) -> Self {
        let block_bytes = u64::from(snapshot.facts.block_bytes);
        Self {
            extents: snapshot.extents_of(file).iter(),
            limit_bytes: file.size_bytes.div_ceil(block_bytes).saturating_mul(block_bytes),
            block_bytes,
            strict_holes,
            previous: None,
            behind_unknown: false,
        }
    }

    fn join(&self, extent: &Extent) -> Join {
        let Some(before) = self.previous else {
            return if self.behind_unknown { Join::Unknown } else { Join::First };
        };
        if self.behind_unknown {
            return Join::Unknown;
        }
        let end = before.physical_bytes + before.length_bytes;
        let touches = if before.flags.any(ExtentFlags::ENCODED) {
            before.physical_bytes < extent.physical_bytes && extent.physical_bytes <= end
        } else {
            extent.physical_bytes == end
        };
        if touches && !(self.strict_holes && hole_between(&before, extent)) {
            return Join::Behind;
        }
        Join::Apart {
            gap_bytes: extent.physical_bytes.abs_diff(end),
            backward: extent.physical_bytes < end,
        }
    }
}

/// Whether bytes of the file between the two have no place on the device.
fn hole_between(before: &Extent, extent: &Extent) -> bool {
    before.logical_bytes + before.length_bytes < extent.logical_bytes
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        loop {
            let mut extent = *self.extents.next()?;
            if extent.logical_bytes >= self.limit_bytes {
                return None;
            }
            if extent.flags.any(ExtentFlags::INLINE) || extent.length_bytes == 0 {
                continue;
            }
            if extent.flags.any(ExtentFlags::UNKNOWN) {
                self.behind_unknown = true;
                continue;
            }
            extent.length_bytes = extent.length_bytes.min(self.limit_bytes - extent.logical_bytes);
            let join = self.join(&extent);
            let behind_hole = !self.behind_unknown
                && match &self.previous {
                    Some(before) => hole_between(before, &extent),
                    None => extent.logical_bytes > 0,
                };
            self.previous = Some(extent);
            self.behind_unknown = false;
            return Some(Piece {
                physical_bytes: extent.physical_bytes,
                length_bytes: extent.length_bytes,
                blocks: extent.length_bytes.div_ceil(self.block_bytes),
                whole_blocks: extent.length_bytes / self.block_bytes,
                flags: extent.flags,
                join,
                behind_hole,
            });
        }
    }
}
