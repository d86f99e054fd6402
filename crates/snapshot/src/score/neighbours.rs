//! How neighbours in a directory lie to each other.
//!
//! Two files are neighbours if one follows the other in some order of their directory and both have
//! data on the device. They are adjacent if the next begins right behind the last block of the one
//! before: at its end, or at the next block's start behind a tail. A layout score does not see this:
//! xfs and btrfs keep theirs at 1.00 while 3 to 5 % of neighbours are adjacent after a git history
//! was replayed, and reading a directory's files one after another is what a person waits for
//! (Conway et al. 2017).
//!
//! Order of creation is that of birth times, by inode where they are equal; files whose file system
//! keeps no birth time are left out of it.
//!
//! Cost: a sort of each directory's files in each order.

use serde::Serialize;

use crate::{NO_TIME, Snapshot, SnapshotFile};

use super::histogram::{mean, median};
use super::measure::{FileMeasure, Measures};
use super::share;
use super::tree::Tree;

/// Neighbours in three orders.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Neighbours {
    /// By name, as sorted listings and most programs read them.
    pub by_name: Order,
    /// As they were made.
    pub by_creation: Order,
    /// As the file system lists them, which is how a program reads that does not sort.
    pub by_readdir: Order,
}

/// Neighbours in one order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Order {
    /// Share of pairs that are adjacent.
    pub adjacency: Option<f64>,
    /// Pairs where the next begins right behind the one before.
    pub adjacent_pairs: u64,
    /// Pairs of neighbours.
    pub pairs: u64,
    /// Mean distance from the end of one to the start of the next, forward or backward, bytes.
    pub mean_gap_bytes: Option<f64>,
    /// Its median, bytes.
    pub median_gap_bytes: Option<u64>,
}

impl Neighbours {
    pub(super) fn new(snapshot: &Snapshot, measures: &Measures, tree: &Tree) -> Self {
        let order =
            |rank: fn(&SnapshotFile) -> Option<i64>| Order::new(snapshot, measures, tree, rank);
        Self {
            by_name: order(|file| Some(i64::from(file.name_rank))),
            by_creation: order(|file| (file.birth_ns != NO_TIME).then_some(file.birth_ns)),
            by_readdir: order(|file| Some(i64::from(file.readdir_rank))),
        }
    }
}

impl Order {
    fn new(
        snapshot: &Snapshot,
        measures: &Measures,
        tree: &Tree,
        rank: impl Fn(&SnapshotFile) -> Option<i64>,
    ) -> Self {
        let block_bytes = u64::from(snapshot.facts.block_bytes);
        let mut gaps_bytes = Vec::with_capacity(snapshot.files.len());
        let mut adjacent_pairs = 0;
        let mut ranked: Vec<(i64, u32)> = Vec::new();
        for group in &tree.groups {
            ranked.clear();
            // Members ascend by inode, which decides equal ranks.
            ranked.extend(tree.members(*group).iter().filter_map(|place| {
                let file = &snapshot.files[*place as usize];
                let placed = measures.files[*place as usize].has_place();
                placed.then(|| rank(file)).flatten().map(|rank| (rank, *place))
            }));
            ranked.sort_unstable();
            for pair in ranked.windows(2) {
                let before = &measures.files[pair[0].1 as usize];
                let next = &measures.files[pair[1].1 as usize];
                let adjacent = before.is_followed_by(next, block_bytes);
                adjacent_pairs += u64::from(adjacent);
                let gap = if adjacent { 0 } else { next.first_bytes.abs_diff(before.end_bytes) };
                gaps_bytes.push(gap);
            }
        }
        let pairs = gaps_bytes.len() as u64;
        Self {
            adjacency: share(adjacent_pairs, pairs),
            adjacent_pairs,
            pairs,
            mean_gap_bytes: mean(&gaps_bytes),
            median_gap_bytes: median(&mut gaps_bytes),
        }
    }
}

impl FileMeasure {
    /// Whether `next` begins right behind the last block of this file.
    pub(super) fn is_followed_by(&self, next: &FileMeasure, block_bytes: u64) -> bool {
        (self.behind_bytes..=self.end_bytes).contains(&next.first_bytes)
            || next.first_bytes == self.end_bytes.next_multiple_of(block_bytes)
    }
}
