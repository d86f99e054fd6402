//! Nodes of the tree that are in memory, put together on the disk.
//!
//! A node is written again with what was changed with it, so that the nodes of one part of the tree come to lie
//! all over the disk: whoever reads them next, with none in memory, has to go to each. At the end of a mount
//! those in memory are known, and it is known where they lie. Siblings that lie together are read together.

use agewell_store::device::Disk;

use crate::blocks::{Blocks, NumberSet};
use crate::journal::{AT_ONCE, Placement};
use crate::tree::ROOT;
use crate::{FileSystem, FsError};

/// Reads that a place beside its siblings saves a node, until it is written again; chosen by us: nodes in memory at
/// the end of a mount are those that were used last, and most are read at the beginning of the next one and of
/// the one after it.
const SAVED_READS: f64 = 2.0;

/// What reading and moving takes on the disk.
#[derive(Debug, Clone, Copy)]
struct Costs {
    /// Of a read elsewhere, ns.
    request_ns: f64,
    /// Of a block that is moved, and of the room for it, ns.
    moved_ns: f64,
    /// Bytes of the longest gap that is read.
    gap_bytes: u64,
    /// Bytes of a block.
    block_bytes: u64,
}

impl Costs {
    /// Of `siblings`, by their places on the disk, those that are worth moving to one place: a run of them is if
    /// that takes less time than the request that it saves.
    fn worth_moving(&self, mut siblings: Vec<(u64, u32)>) -> NumberSet<u32> {
        siblings.sort_unstable();
        let step_max = self.gap_bytes + self.block_bytes;
        let runs = siblings.chunk_by(|before, next| next.0 - before.0 <= step_max);
        let length_max = SAVED_READS * self.request_ns / self.moved_ns;
        let short: Vec<_> = runs.filter(|run| (run.len() as f64) < length_max).collect();
        // The place that they are moved to is a run as well.
        if short.len() < 2 {
            return NumberSet::default();
        }
        short.into_iter().flatten().map(|(_, node)| *node).collect()
    }
}

impl<D: Disk> FileSystem<D> {
    /// Puts nodes that are in memory together where that pays on the device, in the order of their keys; how many
    /// were moved. Nothing is read for it but what is cleaned to make room for them. What is in them does not change,
    /// so that there is nothing to be synced.
    ///
    /// # Errors
    /// If the device fails.
    pub fn put_nodes_together(&self) -> Result<u64, FsError> {
        let store = self.store();
        if !store.has_arm() {
            return Ok(0);
        }
        // These are to be written anyway.
        self.core().blocks.checkpoint(Placement::Together)?;
        let (request_ns, block_ns) = store.read_times_ns();
        let geometry = store.geometry();
        let block_bytes = u64::from(geometry.block_bytes);
        // The room for a block is made by reading a segment and writing what lives in it.
        let full = store.live_blocks() as f64 / f64::from(geometry.slots());
        let made = (1.0 + full) / (1.0 - full).max(f64::EPSILON);
        let costs = Costs {
            request_ns: request_ns as f64,
            moved_ns: block_ns as f64 * (1.0 + made),
            gap_bytes: u64::from(store.longest_gap()) * block_bytes,
            block_bytes,
        };
        let nodes = worth_moving(&self.core().blocks, &costs);
        let mut moved = 0;
        for some in nodes.chunks(AT_ONCE) {
            if !store.make_room_together(some.len() as u32, &mut || true)? {
                return Ok(moved);
            }
            let core = self.core();
            let held: Vec<_> = some
                .iter()
                .filter_map(|node| Some((*node, core.blocks.unchanged_node(*node)?)))
                .collect();
            drop(core);
            let held: Vec<(u32, &[u8])> =
                held.iter().map(|(node, data)| (*node, &**data)).collect();
            moved += u64::from(store.put_together_from_memory(&held)?);
        }
        Ok(moved)
    }
}

/// The nodes that are worth moving, level by level from the top, so that those that lead to all others are read
/// at once.
fn worth_moving<D: Disk>(blocks: &Blocks<D>, costs: &Costs) -> Vec<u32> {
    let mut moved = Vec::new();
    // In a damaged tree a node may be below itself.
    let mut seen = NumberSet::default();
    let mut level = vec![ROOT];
    while !level.is_empty() {
        let mut below = Vec::new();
        for node in level {
            let mut children = blocks.children_in_memory(node);
            children.retain(|child| seen.insert(*child));
            let places = blocks.store().places_of(children.iter().copied());
            let there = places.into_iter().zip(&children);
            let there = there.filter_map(|(place, node)| Some((place?, *node))).collect();
            let worth = costs.worth_moving(there);
            moved.extend(children.iter().filter(|child| worth.contains(child)));
            below.extend(children);
        }
        level = below;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs =
        Costs { request_ns: 6e6, moved_ns: 4e6, gap_bytes: 2 * 4096, block_bytes: 4096 };

    /// What is worth moving of nodes that lie in these blocks of the disk, by those.
    fn moved(places: &[u32]) -> Vec<u32> {
        let siblings = places.iter().map(|at| (u64::from(*at) * 4096, *at)).collect();
        let mut moved: Vec<u32> = COSTS.worth_moving(siblings).into_iter().collect();
        moved.sort_unstable();
        moved
    }

    #[test]
    fn what_lies_alone_is_moved_and_what_lies_together_stays() {
        // Two requests for the price of three blocks: a run of three costs what it saves.
        assert_eq!(moved(&[90, 10, 50, 11, 12]), [50, 90]);
        assert_eq!(moved(&[90, 91, 10, 50, 11, 12]), [50, 90, 91]);
        // What is passed over is no break.
        assert_eq!(moved(&[10, 13, 16, 50, 90]), [50, 90]);
        assert_eq!(moved(&[10, 14, 18]), [10, 14, 18]);
    }

    #[test]
    fn one_place_for_another_saves_nothing() {
        assert!(moved(&[]).is_empty());
        assert!(moved(&[7]).is_empty());
        assert!(moved(&[10, 11, 12, 50]).is_empty());
    }
}
