//! Where within the groups of a file system is free space, and where are badly placed blocks.
//!
//! Smith found that free space accumulates towards the end of a cylinder group and is better clustered
//! there, because the allocator begins its search at the front ("The effects of age and
//! fragmentation on file system performance"). Every group is cut into tenths at whole blocks; tenth
//! `i` of the result is that of all groups together.
//!
//! Sums over an extent are differences of sums from the start of the groups, so that an extent costs
//! the same however long it is.

use serde::Serialize;

use crate::{FileKind, Snapshot};

use super::pieces::{Join, Pieces};
use super::{ScoreOptions, Share};

/// Parts of a group.
const TENTHS: usize = 10;

/// Free space and layout by place within a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Placement {
    /// Groups, a last one that is not whole included.
    pub groups: u64,
    /// From the front of a group to its end.
    pub tenths: Vec<GroupTenth>,
}

/// One tenth of all groups together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupTenth {
    /// Blocks of it.
    pub blocks: u64,
    /// Free blocks of it.
    pub free_blocks: u64,
    /// Share of it that is free.
    pub free_share: Option<f64>,
    /// Free extents that begin in it.
    pub free_extents: u64,
    /// Their mean length, bytes, however far they reach.
    pub mean_free_extent_bytes: Option<f64>,
    /// The layout of the blocks of regular files that lie in it.
    #[serde(flatten)]
    pub share: Share,
}

/// Blocks by tenth of a group.
type Tenths = [u64; TENTHS];

impl Placement {
    pub(super) fn new(snapshot: &Snapshot, options: &ScoreOptions) -> Option<Self> {
        let grid = Grid::new(snapshot)?;
        let everything = grid.up_to(grid.blocks);
        let mut free = Tenths::default();
        let mut free_extents = Tenths::default();
        let mut free_bytes = Tenths::default();
        for extent in &snapshot.free {
            let end = extent.physical_bytes + extent.length_bytes;
            grid.add(&mut free, extent.physical_bytes, end);
            if let Some(tenth) = grid.tenth_at(extent.physical_bytes) {
                free_extents[tenth] += 1;
                free_bytes[tenth] += extent.length_bytes;
            }
        }
        let mut counted = Tenths::default();
        let mut optimal = Tenths::default();
        for file in snapshot.files.iter().filter(|file| file.kind == FileKind::Regular) {
            for piece in Pieces::new(snapshot, file, options.strict_holes) {
                let blocks = if options.count_tails { piece.blocks } else { piece.whole_blocks };
                if blocks == 0 {
                    continue;
                }
                let block_bytes = grid.block_bytes;
                let start = piece.physical_bytes / block_bytes * block_bytes;
                // The first block apart, because it alone may be not counted or not optimal.
                grid.add(&mut counted, start + block_bytes, start + blocks * block_bytes);
                let Some(tenth) = grid.tenth_at(start) else { continue };
                match piece.join {
                    Join::First | Join::Unknown => {}
                    Join::Behind => counted[tenth] += 1,
                    Join::Apart { .. } => {
                        counted[tenth] += 1;
                        // Taken away below: everything counted is optimal but for these.
                        optimal[tenth] += 1;
                    }
                }
            }
        }
        for (sum, all) in optimal.iter_mut().zip(counted) {
            *sum = all - *sum;
        }
        let tenths = (0..TENTHS)
            .map(|tenth| GroupTenth {
                blocks: everything[tenth],
                free_blocks: free[tenth],
                free_share: super::share(free[tenth], everything[tenth]),
                free_extents: free_extents[tenth],
                mean_free_extent_bytes: super::share(free_bytes[tenth], free_extents[tenth]),
                share: crate::LayoutCounts { optimal: optimal[tenth], counted: counted[tenth] }
                    .into(),
            })
            .collect();
        Some(Self { groups: grid.blocks.div_ceil(grid.group_blocks), tenths })
    }
}

/// Groups as blocks behind the start of the first.
struct Grid {
    block_bytes: u64,
    first_bytes: u64,
    /// Of all groups.
    blocks: u64,
    group_blocks: u64,
    /// First block of each tenth within a group, and the end of the last.
    edges: [u64; TENTHS + 1],
}

impl Grid {
    /// The groups of `snapshot`, if it has any.
    fn new(snapshot: &Snapshot) -> Option<Self> {
        let facts = &snapshot.facts;
        let block_bytes = u64::from(facts.block_bytes);
        let group_blocks = facts.group_bytes / block_bytes;
        let blocks = facts.total_bytes.checked_sub(facts.first_group_bytes)? / block_bytes;
        if group_blocks == 0 || blocks == 0 {
            return None;
        }
        let mut edges = [0; TENTHS + 1];
        for (tenth, edge) in edges.iter_mut().enumerate() {
            *edge = (u128::from(group_blocks) * tenth as u128 / TENTHS as u128) as u64;
        }
        Some(Self {
            block_bytes,
            first_bytes: facts.first_group_bytes,
            blocks,
            group_blocks,
            edges,
        })
    }

    /// The block that holds `bytes` of the device; 0 in front of the groups, the end behind them.
    fn block_at(&self, bytes: u64) -> u64 {
        (bytes.saturating_sub(self.first_bytes) / self.block_bytes).min(self.blocks)
    }

    fn tenth_of(&self, block: u64) -> usize {
        let within = block % self.group_blocks;
        self.edges[1..].partition_point(|edge| *edge <= within)
    }

    /// The tenth that holds `bytes` of the device, unless they lie outside the groups.
    fn tenth_at(&self, bytes: u64) -> Option<usize> {
        let block = self.block_at(bytes);
        let inside = bytes >= self.first_bytes && block < self.blocks;
        inside.then(|| self.tenth_of(block))
    }

    /// Blocks of each tenth in front of `block`.
    fn up_to(&self, block: u64) -> Tenths {
        let (whole, within) = (block / self.group_blocks, block % self.group_blocks);
        let mut sums = Tenths::default();
        for (tenth, sum) in sums.iter_mut().enumerate() {
            let (start, end) = (self.edges[tenth], self.edges[tenth + 1]);
            *sum = whole * (end - start) + within.clamp(start, end) - start;
        }
        sums
    }

    /// Adds the blocks from `start_bytes` to `end_bytes` to their tenths.
    #[inline]
    fn add(&self, sums: &mut Tenths, start_bytes: u64, end_bytes: u64) {
        let (start, end) = (self.block_at(start_bytes), self.block_at(end_bytes));
        if start >= end {
            return;
        }
        let tenth = self.tenth_of(start);
        let within = start % self.group_blocks;
        if within + (end - start) <= self.edges[tenth + 1] {
            sums[tenth] += end - start;
            return;
        }
        let (before, after) = (self.up_to(start), self.up_to(end));
        for (sum, (after, before)) in sums.iter_mut().zip(after.into_iter().zip(before)) {
            *sum += after - before;
        }
    }
}
