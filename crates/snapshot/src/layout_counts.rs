//! What the layout score is made of.

use crate::Extent;

/// What the layout score is made of: optimal over counted.
///
/// A block is counted when it is not the first of its file, and optimal when it lies right behind
/// its predecessor (Smith & Seltzer 1996, §3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayoutCounts {
    /// Blocks that follow their predecessor on the device.
    pub optimal: u64,
    /// Blocks that have a predecessor.
    pub counted: u64,
}

impl LayoutCounts {
    /// Those of a file with `extents`, which all have a place. A block behind a hole counts as any
    /// other: it is optimal where it lies right behind the one written before it.
    #[must_use]
    pub fn of_extents(extents: &[Extent], block_bytes: u64) -> Self {
        let mut counts = Self::default();
        let mut end_bytes = None;
        for extent in extents {
            let blocks = extent.length_bytes.div_ceil(block_bytes);
            if blocks == 0 {
                continue;
            }
            counts.counted += blocks - u64::from(end_bytes.is_none());
            let follows = end_bytes == Some(extent.physical_bytes);
            counts.optimal += blocks - 1 + u64::from(follows);
            end_bytes = Some(extent.physical_bytes.wrapping_add(extent.length_bytes));
        }
        counts
    }

    /// The layout score, if any block counts.
    #[must_use]
    pub fn score(self) -> Option<f64> {
        (self.counted > 0).then(|| self.optimal as f64 / self.counted as f64)
    }
}
