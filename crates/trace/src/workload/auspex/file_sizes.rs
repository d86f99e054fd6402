//! How large the files of Unix systems were in November 1993, in blocks of 8 KB.
//!
//! Source: Irlam 1993, "Unix File Size Survey": 12 million files of about a thousand file systems,
//! counted by powers of two of their size. Differences: empty files take a block like all others
//! up to 8 KB; within a bin every length is equally likely; files above 8 MB (1 in 6,400, with 23 %
//! of the space) are left out, so that no single file makes a week. The mean is 2.9 blocks.

use agewell_core::{Stream, uniform_below};

use crate::workload::AliasTable;

/// Files counted with up to 2^bin blocks of 8 KB and more than half of that (the first: up to one).
const FILES_BY_BIN: [u64; 11] =
    [9_914_387, 865_126, 574_651, 348_280, 194_864, 112_967, 58_644, 32_286, 16_140, 7_221, 2_475];

/// Draws sizes of files.
#[derive(Debug, Clone)]
pub(super) struct FileSizes {
    bins: AliasTable,
}

impl FileSizes {
    pub(super) fn new() -> Self {
        Self { bins: AliasTable::new(&FILES_BY_BIN) }
    }

    /// Blocks of a file, at least 1 and at most 1,024.
    pub(super) fn draw(&self, stream: &mut Stream) -> u32 {
        let bin = self.bins.draw(stream);
        let (largest, below) = (1_u64 << bin, (1_u64 << bin) / 2);
        (below + 1 + uniform_below(stream, largest - below)) as u32
    }
}

#[cfg(test)]
mod tests {
    use agewell_core::RandomStreams;

    use super::*;

    #[test]
    fn most_files_are_small_and_most_blocks_are_in_large_ones() {
        let (sizes, mut stream) = (FileSizes::new(), RandomStreams::new(1).stream("sizes"));
        let drawn: Vec<u32> = (0..1_000_000).map(|_| sizes.draw(&mut stream)).collect();
        let share_up_to = |blocks: u32| {
            drawn.iter().filter(|size| **size <= blocks).count() as f64 / drawn.len() as f64
        };
        // The survey's own cumulative shares, in per cent of files: 81.7, 88.9, 93.6, 98.1, 99.8.
        for (blocks, share) in [(1, 0.817), (2, 0.889), (4, 0.936), (16, 0.981), (128, 0.998)] {
            assert!((share_up_to(blocks) - share).abs() < 0.0015, "up to {blocks} blocks");
        }
        let total: u64 = drawn.iter().map(|size| u64::from(*size)).sum();
        assert!((total as f64 / 1e6 - 2.88).abs() < 0.08, "mean of {total} / 1,000,000");
        let large: u64 = drawn.iter().filter(|size| **size > 8).map(|size| u64::from(*size)).sum();
        assert!(large * 2 > total, "{large} of {total} blocks are in files above 64 KB");
        let largest = drawn.iter().max().expect("a million sizes");
        assert!((1000..=1024).contains(largest), "{largest}");
    }
}
