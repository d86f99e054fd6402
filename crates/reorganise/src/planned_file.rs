//! What a plan names: a file, or a part of one. Plain functions of values.

use std::collections::HashMap;

use agewell_snapshot::{Extent, Snapshot, SnapshotFile};
use serde::{Deserialize, Serialize};

use crate::arranger::{Piece, joined};
use crate::file_system::Identity;
use crate::order::ByteRange;

/// A file that a plan names, or a part of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedFile {
    /// Its path from the root of the tree.
    #[serde(with = "crate::path_text")]
    pub path: Vec<u8>,
    /// What it was.
    pub identity: Identity,
    /// Which part of it; none is all. Other parts are named for themselves, or stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ByteRange>,
    /// Where it lay, up to its end.
    pub pieces: Vec<Piece>,
    /// Whether it lies well enough, or is beyond the budget.
    pub stays: bool,
}

/// Where the bytes of `file`, or of a part of it, lie, up to its end; what is allocated beyond stays
/// where it is.
pub(crate) fn pieces_of(
    snapshot: &Snapshot,
    file: &SnapshotFile,
    block_bytes: u64,
    range: Option<ByteRange>,
) -> Vec<Piece> {
    let within = within(range, file.size_bytes, block_bytes);
    let extents = snapshot.extents_of(file).iter();
    joined(&extents.filter_map(|extent| cut(extent, within)).collect::<Vec<_>>())
}

/// `range` of a file of `size_bytes`, or all of it, up to its last block.
pub(crate) fn within(range: Option<ByteRange>, size_bytes: u64, block_bytes: u64) -> ByteRange {
    let end_bytes = size_bytes.next_multiple_of(block_bytes);
    let range = range.unwrap_or(ByteRange { from_bytes: 0, to_bytes: end_bytes });
    ByteRange { to_bytes: range.to_bytes.min(end_bytes), ..range }
}

/// What of `extent` is within `range`.
pub(crate) fn cut(extent: &Extent, range: ByteRange) -> Option<Piece> {
    let from = extent.logical_bytes.max(range.from_bytes);
    let to = (extent.logical_bytes + extent.length_bytes).min(range.to_bytes);
    (from < to).then(|| Piece {
        logical_bytes: from,
        physical_bytes: extent.physical_bytes + (from - extent.logical_bytes),
        length_bytes: to - from,
    })
}

/// For each of `files`, by its number, the number of the first that is of the same file: parts of one
/// count as one.
pub(crate) fn first_of_file(files: &[PlannedFile]) -> Vec<u32> {
    let mut seen: HashMap<u64, u32> = HashMap::new();
    let first = |(number, file): (usize, &PlannedFile)| match file.range {
        None => number as u32,
        Some(_) => *seen.entry(file.identity.inode).or_insert(number as u32),
    };
    files.iter().enumerate().map(first).collect()
}
