//! The device in cells: how much of each is free, holds files in one piece, holds broken files.
//!
//! What is neither free nor a regular file's is called other: metadata, directories, a log, and what
//! lies outside the tree that the snapshot was taken of. Where files share extents a cell counts them
//! once at most: parts of a cell never exceed it.
//!
//! Cost: an extent costs the same however many cells it covers (sums of differences).

use serde::Serialize;

use crate::{ExtentFlags, FileKind, Snapshot};

/// The device in cells of equal length; the last one may reach beyond its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiskMap {
    /// Bytes of a cell.
    pub cell_bytes: u64,
    /// Free bytes of each cell.
    pub free_bytes: Vec<u64>,
    /// Bytes of files that lie in one fragment.
    pub whole_file_bytes: Vec<u64>,
    /// Bytes of files in two fragments or more.
    pub split_file_bytes: Vec<u64>,
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
        let (mut free, mut whole, mut split) = (coverage(), coverage(), coverage());
        for extent in &snapshot.free {
            free.add(extent.physical_bytes, extent.length_bytes);
        }
        let placeless = ExtentFlags::INLINE.with(ExtentFlags::UNKNOWN);
        for (file, measure) in snapshot.files.iter().zip(&measures.files) {
            if file.kind != FileKind::Regular {
                continue;
            }
            let kind = if measure.fragments > 1 { &mut split } else { &mut whole };
            for extent in snapshot.extents_of(file) {
                if !extent.flags.any(placeless) {
                    kind.add(extent.physical_bytes, extent.length_bytes);
                }
            }
        }
        let (free_bytes, mut split_file_bytes) = (free.sums(), split.sums());
        let mut whole_file_bytes = whole.sums();
        let mut other_bytes = vec![0; count];
        for cell in 0..count {
            let mut left = cell_bytes.min(total_bytes - cell as u64 * cell_bytes);
            left = left.saturating_sub(free_bytes[cell]);
            split_file_bytes[cell] = split_file_bytes[cell].min(left);
            left -= split_file_bytes[cell];
            whole_file_bytes[cell] = whole_file_bytes[cell].min(left);
            other_bytes[cell] = left - whole_file_bytes[cell];
        }
        Self { cell_bytes, free_bytes, whole_file_bytes, split_file_bytes, other_bytes }
    }
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
