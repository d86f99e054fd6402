//! Files that are laid in parts, and what that does to their layout. Plain functions of values.

use std::collections::HashMap;

use agewell_snapshot::{Extent, ExtentFlags, LayoutCounts, Snapshot};
use serde::{Deserialize, Serialize};

use crate::arranger::{Arranger, Limits, Move, Piece};
use crate::planned_file::{PlannedFile, pieces_of};

/// Files that are laid in parts, and what that does to them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PartedFiles {
    /// Files.
    pub files: u64,
    /// Parts in which they are laid; what is not read of them stays where it is.
    pub parts: u64,
    /// Share of their blocks that lie right behind the one before; none if they have one block each.
    pub layout_score_before: Option<f64>,
    /// The same afterwards.
    pub layout_score_after: Option<f64>,
}

/// Of `files` those that are laid in parts: how they lie, and how if what moves of them comes to
/// `places`.
pub(crate) fn parted_files(
    snapshot: &Snapshot,
    files: &[PlannedFile],
    places: &[Vec<Piece>],
) -> Option<PartedFiles> {
    let block_bytes = u64::from(snapshot.facts.block_bytes);
    let mut parts: HashMap<u64, Vec<usize>> = HashMap::new();
    for (number, _) in files.iter().enumerate().filter(|(_, file)| file.range.is_some()) {
        parts.entry(files[number].identity.inode).or_default().push(number);
    }
    let (mut before, mut after) = (LayoutCounts::default(), LayoutCounts::default());
    let mut found = PartedFiles {
        files: parts.len() as u64,
        parts: parts.values().map(Vec::len).sum::<usize>() as u64,
        layout_score_before: None,
        layout_score_after: None,
    };
    for (inode, parts) in parts {
        let Ok(file) = snapshot.files.binary_search_by_key(&inode, |file| file.inode) else {
            continue;
        };
        let pieces = pieces_of(snapshot, &snapshot.files[file], block_bytes, None);
        let mut arranger =
            Arranger::new(vec![pieces.clone()], &[true], Limits::default(), block_bytes);
        for piece in parts.iter().flat_map(|part| &places[*part]) {
            arranger.moved(&Move {
                file: 0,
                logical_bytes: piece.logical_bytes,
                length_bytes: piece.length_bytes,
                physical_bytes: piece.physical_bytes,
            });
        }
        add(&mut before, &pieces, block_bytes);
        add(&mut after, arranger.pieces(0), block_bytes);
    }
    let score = |counts: LayoutCounts| {
        (counts.counted > 0).then(|| counts.optimal as f64 / counts.counted as f64)
    };
    found.layout_score_before = score(before);
    found.layout_score_after = score(after);
    (found.files > 0).then_some(found)
}

/// Counts a file that lies in `pieces`.
fn add(counts: &mut LayoutCounts, pieces: &[Piece], block_bytes: u64) {
    let extent = |piece: &Piece| Extent {
        logical_bytes: piece.logical_bytes,
        physical_bytes: piece.physical_bytes,
        length_bytes: piece.length_bytes,
        flags: ExtentFlags::default(),
    };
    let extents: Vec<Extent> = pieces.iter().map(extent).collect();
    let told = LayoutCounts::of_extents(&extents, block_bytes);
    counts.optimal += told.optimal;
    counts.counted += told.counted;
}
