//! What one pass over the extents shows of each file.
//!
//! Cost: 112 bytes a file, nothing else is allocated but the gaps (8 bytes a break).

use crate::{ExtentFlags, FileKind, LayoutCounts, Snapshot, SnapshotFile};

use super::pieces::{Join, Piece, Pieces};
use super::special::Special;

/// How one file lies.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileMeasure {
    /// Blocks that count.
    pub(crate) blocks: u64,
    /// What its layout score is made of.
    pub(crate) counts: LayoutCounts,
    /// Blocks with every tail as one, whether tails count or not: a file of two can be split.
    pub(crate) blocks_and_tails: u64,
    /// Blocks that count, and what the score is made of, where tails are left out.
    whole: (u64, LayoutCounts),
    /// Pieces that lie apart; 0 for a file without data on the device.
    pub(crate) fragments: u32,
    /// Breaks where the next piece lies before the end of the one before.
    pub(crate) backward: u32,
    /// Where its data begin on the device.
    pub(crate) first_bytes: u64,
    /// The least address at which something can lie right behind it.
    pub(crate) behind_bytes: u64,
    /// Where its last piece ends.
    pub(crate) end_bytes: u64,
}

/// How every file of a snapshot lies.
#[derive(Debug)]
pub(crate) struct Measures {
    /// One a file, in the order of the snapshot.
    pub(crate) files: Vec<FileMeasure>,
    /// Lengths of the gaps at all breaks of regular files, bytes.
    pub(crate) gaps_bytes: Vec<u64>,
    /// What is special about regular files.
    pub(crate) special: Special,
}

impl Measures {
    /// Measures every file of `snapshot`, which has passed [`super::check`].
    pub(crate) fn new(snapshot: &Snapshot, strict_holes: bool) -> Self {
        let mut measures = Self {
            files: Vec::with_capacity(snapshot.files.len()),
            gaps_bytes: Vec::new(),
            special: Special::default(),
        };
        for file in &snapshot.files {
            let measure = measures.measure(snapshot, file, strict_holes);
            measures.files.push(measure);
            if file.kind == FileKind::Regular {
                measures.special.add_left_out(snapshot, file);
            }
        }
        measures
    }

    fn measure(
        &mut self,
        snapshot: &Snapshot,
        file: &SnapshotFile,
        strict_holes: bool,
    ) -> FileMeasure {
        let mut measure = FileMeasure::default();
        let regular = file.kind == FileKind::Regular;
        let mut holes = false;
        for piece in Pieces::new(snapshot, file, strict_holes) {
            measure.add(&piece);
            if regular {
                holes |= piece.behind_hole;
                if let Join::Apart { gap_bytes, .. } = piece.join {
                    self.gaps_bytes.push(gap_bytes);
                }
                if piece.flags != ExtentFlags::default() {
                    self.special.add_counted(&piece);
                }
            }
        }
        self.special.files_with_holes += u64::from(holes);
        measure
    }

    /// Leaves tails out of the blocks of files and of their layout scores.
    pub(crate) fn leave_tails_out(&mut self) {
        for measure in &mut self.files {
            (measure.blocks, measure.counts) = measure.whole;
        }
    }

    /// What the aggregate layout score of all files of `kind` is made of.
    pub(crate) fn counts(&self, snapshot: &Snapshot, kind: FileKind) -> LayoutCounts {
        let mut counts = LayoutCounts::default();
        for (file, measure) in snapshot.files.iter().zip(&self.files) {
            if file.kind == kind {
                counts.optimal += measure.counts.optimal;
                counts.counted += measure.counts.counted;
            }
        }
        counts
    }
}

impl FileMeasure {
    /// Whether any of its data have a known place on the device.
    pub(crate) fn has_place(&self) -> bool {
        self.fragments > 0
    }

    #[inline]
    fn add(&mut self, piece: &Piece) {
        let (joined, behind) = match piece.join {
            Join::First | Join::Unknown => (0, 0),
            Join::Behind => (1, 1),
            Join::Apart { .. } => (1, 0),
        };
        if self.fragments == 0 {
            self.first_bytes = piece.physical_bytes;
            self.fragments = 1;
        }
        if let Join::Apart { backward, .. } = piece.join {
            self.fragments += 1;
            self.backward += u32::from(backward);
        }
        self.blocks += piece.blocks;
        self.blocks_and_tails += piece.blocks;
        self.counts.counted += piece.blocks - 1 + joined;
        self.counts.optimal += piece.blocks - 1 + behind;
        if piece.whole_blocks > 0 {
            let (blocks, counts) = &mut self.whole;
            *blocks += piece.whole_blocks;
            counts.counted += piece.whole_blocks - 1 + joined;
            counts.optimal += piece.whole_blocks - 1 + behind;
        }
        self.end_bytes = piece.end_bytes();
        self.behind_bytes = if piece.flags.any(ExtentFlags::ENCODED) {
            piece.physical_bytes + 1
        } else {
            self.end_bytes
        };
    }
}
