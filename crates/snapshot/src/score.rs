//! Layout metrics of a snapshot.
//!
//! The layout score is that of Smith & Seltzer 1996, §3.3: the share of a file's blocks that lie
//! right behind the block before them; first blocks are left out, and one-block files have none. The
//! aggregate is the share over all blocks, so that a file weighs as many blocks as it has. Because
//! one number is not enough (xfs and btrfs keep it at 1.00 while neighbours in a directory drift
//! apart; Smith & Seltzer 1997 saw twice as many split files at a higher score), a [`Report`] holds
//! also how files lie to each other, how they are broken, how what is free is broken, where in the
//! groups both happens, and a map of the device.
//!
//! The rules for holes, tails and special extents stand in `pieces`; the denominator of every share
//! is given beside it.
//!
//! Invariants: metrics are functions of the snapshot alone; nothing depends on the order in which
//! files are listed except where an order of files is measured.
//!
//! Cost: one pass over the extents, one sort of the files by directory, one small sort a directory
//! and order; `benches/score.rs` prints files per second.

mod check;
mod free;
mod histogram;
mod hot;
mod layout;
mod map;
mod measure;
mod metadata_reads;
mod neighbours;
mod pieces;
mod placement;
mod read_costs;
mod reorganise;
mod special;
mod tree;

pub use free::{FreeBin, FreeReach, FreeSpace};
pub use hot::HotPeriod;
pub use layout::{
    DirectoryLayout, FileLayout, Fragmentation, FragmentsBin, HotFiles, Layout, SizeBin,
};
pub use map::DiskMap;
pub use neighbours::{Neighbours, Order};
pub use placement::{GroupTenth, Placement};
pub use reorganise::{Alone, NOTICED_PCT, PAYS_PCT, Reorganising, Verdict, Walk, reorganising};
pub use special::Special;

use serde::Serialize;

use crate::{FileKind, LayoutCounts, NO_TIME, Snapshot, SnapshotError, SnapshotFile};

use measure::Measures;
use pieces::{Join, Pieces};
use tree::Tree;

/// What may be chosen about the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ScoreOptions {
    /// Whether a block behind a hole counts as badly placed wherever it lies.
    pub strict_holes: bool,
    /// Whether a tail (fragments at the end of a file) is a block of its file.
    pub count_tails: bool,
    /// Hot files are those modified within so long before the snapshot, ns; `None`: no such subset.
    pub hot_period_ns: Option<u64>,
    /// Cells of the map of the device.
    pub map_cells: u32,
}

impl Default for ScoreOptions {
    fn default() -> Self {
        Self { strict_holes: false, count_tails: false, hot_period_ns: None, map_cells: 1024 }
    }
}

/// What a snapshot says of itself, counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contents {
    /// `ext4`, `xfs`, `btrfs`, `ffs`, ...
    pub kind: String,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes of the smallest piece that can be allocated.
    pub fragment_bytes: u32,
    /// Bytes of the file system.
    pub total_bytes: u64,
    /// Bytes of it that are free, as the file system says.
    pub free_bytes: u64,
    /// Share of it that is in use; `None` where its size is not known.
    pub utilization: Option<f64>,
    /// Bytes of a group; 0 without groups.
    pub group_bytes: u64,
    /// When the snapshot was taken, nanoseconds since 1970, if known.
    pub taken_ns: Option<i64>,
    /// Whether the map of free space is complete.
    pub free_map: bool,
    /// Regular files.
    pub files: u64,
    /// Their lengths together, bytes.
    pub file_bytes: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links and special files.
    pub others: u64,
    /// Extents of all of them.
    pub extents: u64,
    /// Files that vanished while the snapshot was taken.
    pub vanished: u64,
    /// Files that changed meanwhile.
    pub changed: u64,
    /// Files that could not be read.
    pub unreadable: u64,
}

/// Every metric of one snapshot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What was chosen.
    pub options: ScoreOptions,
    /// What there is.
    pub contents: Contents,
    /// How regular files lie.
    pub layout: Layout,
    /// How directories lie.
    pub directory_layout: Share,
    /// How regular files are broken.
    pub fragmentation: Fragmentation,
    /// How neighbours in a directory lie to each other.
    pub neighbours: Neighbours,
    /// What is free.
    pub free_space: FreeSpace,
    /// Where in the groups; `None` without groups.
    pub placement: Option<Placement>,
    /// The device in cells.
    pub map: DiskMap,
}

/// A layout score with what it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// The score, if any block counts.
    pub layout_score: Option<f64>,
    /// Blocks right behind their predecessor.
    pub optimal_blocks: u64,
    /// Blocks that have a predecessor.
    pub counted_blocks: u64,
}

impl From<LayoutCounts> for Share {
    fn from(counts: LayoutCounts) -> Self {
        Self {
            layout_score: counts.score(),
            optimal_blocks: counts.optimal,
            counted_blocks: counts.counted,
        }
    }
}

/// Every metric of `snapshot`.
///
/// # Errors
/// If the snapshot contradicts itself, as a damaged one may.
pub fn score(snapshot: &Snapshot, options: &ScoreOptions) -> Result<Report, SnapshotError> {
    check::check(snapshot)?;
    let mut measures = Measures::new(snapshot, options.strict_holes);
    if !options.count_tails {
        measures.leave_tails_out();
    }
    let tree = Tree::new(snapshot);
    Ok(Report {
        options: *options,
        contents: contents(snapshot),
        layout: Layout::new(snapshot, &measures, &tree, options.hot_period_ns),
        directory_layout: measures.counts(snapshot, FileKind::Directory).into(),
        fragmentation: Fragmentation::new(snapshot, &measures),
        neighbours: Neighbours::new(snapshot, &measures, &tree),
        free_space: FreeSpace::new(snapshot),
        placement: Placement::new(snapshot, options),
        map: DiskMap::new(snapshot, &measures, options.map_cells),
    })
}

/// What the aggregate layout score of the regular files that `choose` accepts is made of, by the
/// rules of `options` (Smith & Seltzer 1996, §3.3; for a subset §5.2).
///
/// # Errors
/// If the snapshot contradicts itself, as a damaged one may.
pub fn layout_counts(
    snapshot: &Snapshot,
    options: &ScoreOptions,
    mut choose: impl FnMut(&SnapshotFile) -> bool,
) -> Result<LayoutCounts, SnapshotError> {
    check::check(snapshot)?;
    let mut counts = LayoutCounts::default();
    for file in &snapshot.files {
        if file.kind == FileKind::Regular && choose(file) {
            let of_file = file_counts(snapshot, file, options);
            counts.optimal += of_file.optimal;
            counts.counted += of_file.counted;
        }
    }
    Ok(counts)
}

/// What the layout score of one file is made of; the snapshot has passed `check`.
fn file_counts(snapshot: &Snapshot, file: &SnapshotFile, options: &ScoreOptions) -> LayoutCounts {
    let mut counts = LayoutCounts::default();
    for piece in Pieces::new(snapshot, file, options.strict_holes) {
        let (joined, behind) = match piece.join {
            Join::First | Join::Unknown => (0, 0),
            Join::Behind => (1, 1),
            Join::Apart { .. } => (1, 0),
        };
        let blocks = if options.count_tails { piece.blocks } else { piece.whole_blocks };
        if blocks > 0 {
            counts.counted += blocks - 1 + joined;
            counts.optimal += blocks - 1 + behind;
        }
    }
    counts
}

fn contents(snapshot: &Snapshot) -> Contents {
    let facts = &snapshot.facts;
    let (mut files, mut file_bytes, mut directories, mut others) = (0, 0_u64, 0, 0);
    for file in &snapshot.files {
        match file.kind {
            FileKind::Regular => {
                files += 1;
                file_bytes = file_bytes.saturating_add(file.size_bytes);
            }
            FileKind::Directory => directories += 1,
            FileKind::Link | FileKind::Other => others += 1,
        }
    }
    Contents {
        kind: facts.kind.clone(),
        block_bytes: facts.block_bytes,
        fragment_bytes: facts.fragment_bytes,
        total_bytes: facts.total_bytes,
        free_bytes: facts.free_bytes,
        utilization: (facts.total_bytes > 0)
            .then(|| 1.0 - facts.free_bytes as f64 / facts.total_bytes as f64),
        group_bytes: facts.group_bytes,
        taken_ns: (facts.taken_ns != NO_TIME).then_some(facts.taken_ns),
        free_map: facts.free_map,
        files,
        file_bytes,
        directories,
        others,
        extents: snapshot.extents.len() as u64,
        vanished: facts.vanished,
        changed: facts.changed,
        unreadable: facts.unreadable,
    }
}

/// `part / whole`, if there is a whole.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests;
