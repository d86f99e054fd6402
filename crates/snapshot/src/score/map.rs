//! The device in cells: how much of each is free, holds files in one piece, long and short pieces of
//! broken files.
//!
//! A break costs the same wherever it is, so that what it spoils is a piece, not the file: a file of
//! a gigabyte with two breaks reads as one without, but for the short piece that they may cut off.
//! Hence the pieces of broken files are distinguished by their length.
//!
//! What is neither free nor a regular file's is called other: metadata, directories, a log, and what
//! lies outside the tree that the snapshot was taken of. Where files share extents a cell counts them
//! once at most: parts of a cell never exceed it.
//!
//! Cost: an extent costs the same however many cells it covers (sums of differences).

use serde::Serialize;

use crate::{Extent, ExtentFlags, FileKind, Snapshot};

/// A piece of a broken file is short below this: the access at its beginning takes longer than its
/// transfer. Chosen by us: 1 MiB, what a disk of 100 MB/s transfers in an access of 10 ms.
pub(super) const SHORT_PIECE_BYTES: u64 = 1 << 20;

/// The device in cells of equal length; the last one may reach beyond its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiskMap {
    /// Bytes of a cell.
    pub cell_bytes: u64,
    /// Free bytes of each cell.
    pub free_bytes: Vec<u64>,
    /// Bytes of files that lie in one fragment.
    pub whole_file_bytes: Vec<u64>,
    /// Bytes of files in two fragments or more, in fragments of 1 MiB or more.
    pub long_piece_bytes: Vec<u64>,
    /// And in shorter fragments.
    pub short_piece_bytes: Vec<u64>,
    /// Bytes of everything else.
    pub other_bytes: Vec<u64>,
}

impl DiskMap {
    pub(super) fn new(snapshot: &Snapshot, measures: &super::Measures, cells: u32) -> Self {
        let total_bytes = snapshot.facts.total_bytes;
        let block_bytes = u64::from(snapshot.facts.block_bytes);
        // Whole blocks, so that a block lies in one cell.
        let cell_bytes = total_bytes
            .div_ceil(u64::from(cells.max(1)))
            .max(1)
            .div_ceil(block_bytes)
            .saturating_mul(block_bytes);
        let count = total_bytes.div_ceil(cell_bytes) as usize;
        let coverage = || Coverage::new(count, cell_bytes, total_bytes);
        let (mut free, mut whole) = (coverage(), coverage());
        let (mut long, mut short) = (coverage(), coverage());
        for extent in &snapshot.free {
            free.add(extent.physical_bytes, extent.length_bytes);
        }
        for (file, measure) in snapshot.files.iter().zip(&measures.files) {
            if file.kind != FileKind::Regular {
                continue;
            }
            for (start_bytes, length_bytes) in runs(snapshot.extents_of(file)) {
                let kind = match (measure.fragments > 1, length_bytes < SHORT_PIECE_BYTES) {
                    (false, _) => &mut whole,
                    (true, false) => &mut long,
                    (true, true) => &mut short,
                };
                kind.add(start_bytes, length_bytes);
            }
        }
        let (free_bytes, mut short_piece_bytes) = (free.sums(), short.sums());
        let (mut long_piece_bytes, mut whole_file_bytes) = (long.sums(), whole.sums());
        let mut other_bytes = vec![0; count];
        for cell in 0..count {
            let mut left = cell_bytes.min(total_bytes - cell as u64 * cell_bytes);
            left = left.saturating_sub(free_bytes[cell]);
            for part in [&mut short_piece_bytes, &mut long_piece_bytes] {
                part[cell] = part[cell].min(left);
                left -= part[cell];
            }
            whole_file_bytes[cell] = whole_file_bytes[cell].min(left);
            other_bytes[cell] = left - whole_file_bytes[cell];
        }
        Self {
            cell_bytes,
            free_bytes,
            whole_file_bytes,
            long_piece_bytes,
            short_piece_bytes,
            other_bytes,
        }
    }
}

/// Where the extents of a file lie, those that touch taken together: start and length, bytes.
fn runs(extents: &[Extent]) -> impl Iterator<Item = (u64, u64)> {
    let placeless = ExtentFlags::INLINE.with(ExtentFlags::UNKNOWN);
    let mut placed = extents.iter().filter(move |extent| !extent.flags.any(placeless)).peekable();
    std::iter::from_fn(move || {
        let first = placed.next()?;
        let (start, mut end) = (first.physical_bytes, first.physical_bytes + first.length_bytes);
        while let Some(next) = placed.next_if(|next| next.physical_bytes == end) {
            end += next.length_bytes;
        }
        Some((start, end - start))
    })
}

/// Bytes a cell that some extents cover.
struct Coverage {
    cell_bytes: u64,
    total_bytes: u64,
    /// Bytes in cells that an extent covers in part.
    parts: Vec<u64>,
    /// Cells wholly covered: one more from here on, one fewer.
    whole: Vec<i64>,
}

impl Coverage {
    fn new(cells: usize, cell_bytes: u64, total_bytes: u64) -> Self {
        Self { cell_bytes, total_bytes, parts: vec![0; cells], whole: vec![0; cells + 1] }
    }

    #[inline]
    fn add(&mut self, start_bytes: u64, length_bytes: u64) {
        let end_bytes = (start_bytes + length_bytes).min(self.total_bytes);
        if start_bytes >= end_bytes {
            return;
        }
        let (first, last) = (start_bytes / self.cell_bytes, (end_bytes - 1) / self.cell_bytes);
        if first == last {
            self.parts[first as usize] += end_bytes - start_bytes;
            return;
        }
        self.parts[first as usize] += (first + 1) * self.cell_bytes - start_bytes;
        self.parts[last as usize] += end_bytes - last * self.cell_bytes;
        self.whole[first as usize + 1] += 1;
        self.whole[last as usize] -= 1;
    }

    fn sums(&self) -> Vec<u64> {
        let mut covers = 0_i64;
        let mut sums = Vec::with_capacity(self.parts.len());
        for (part, change) in self.parts.iter().zip(&self.whole) {
            covers += change;
            // Shared extents may cover a cell many times; the caller cuts at its size.
            sums.push(part.saturating_add((covers as u64).saturating_mul(self.cell_bytes)));
        }
        sums
    }
}
