//! Nodes that are read with one that is wanted: those behind it where they are read in a row, and those that lie near.

use std::ops::Range;
use std::sync::Arc;

use agewell_store::device::Disk;

use super::Blocks;
use crate::node::Node;

/// Nodes on either side of the one above whose children are read with its own where they lie near; chosen by us: with
/// a hundred children each, they have what is read at once.
const PARENTS_NEAR: usize = 4;

/// Slots from a node that is wanted to one that is read with it, at most; chosen by us: of 4 KiB, what a disk reads
/// in a turn.
const NEAR_SLOTS_MAX: u32 = 256;

/// The same where there is no room in memory for more; chosen by us: the quarter of a turn.
const NEAR_SLOTS_MIN: u32 = 64;

/// What is read with a node that is wanted takes at most this part of the room for nodes; chosen by us.
const FORESEEN_SHARE: usize = 8;

impl<D: Disk> Blocks<D> {
    /// The child `at` of the node `above` is not in memory and about to be read: if leaves are read in a row, it
    /// and those behind it are read together; and with it those that lie near, as nodes do that were changed or
    /// put together at the same time: its siblings, and the children of the siblings of `above`. `way` leads to
    /// `above`.
    pub(crate) fn foresee(&mut self, way: Option<(u32, usize)>, above: u32, at: usize) {
        let Some(cached) = self.nodes.get(&above) else { return };
        let bytes = Arc::clone(&cached.bytes);
        let node = Node(&bytes);
        let (child, count) = (node.child(at), node.count());
        let worth = self.leaves.worth_reading(above, at as u32, count as u32);
        let passes_gaps = self.store.longest_gap() > 0;
        if (worth.is_empty() && !passes_gaps) || self.store.is_read_ahead(child, 1) {
            return;
        }
        let in_row = worth.start as usize..worth.end.max(at as u32 + 1) as usize;
        let in_row = self.absent_children(node, in_row);
        let mut near = Vec::new();
        if passes_gaps {
            let beside = way.filter(|_| self.store.may_have_arm());
            let beside = beside.and_then(|(top, at)| Some((self.node_in_memory(top)?, at)));
            let parents = beside.map_or(vec![above], |(top, at)| {
                let first = at.saturating_sub(PARENTS_NEAR);
                (first..(at + PARENTS_NEAR + 1).min(top.count())).map(|at| top.child(at)).collect()
            });
            for parent in parents.iter().filter_map(|parent| self.node_in_memory(*parent)) {
                near.extend(self.absent_children(parent, 0..parent.count()));
            }
        }
        let room = (self.nodes_max / FORESEEN_SHARE) as u32;
        let near_slots = room.clamp(NEAR_SLOTS_MIN, NEAR_SLOTS_MAX);
        if self.store.read_ahead(&in_row, &near, near_slots) <= room {
            for node in in_row.into_iter().chain(near) {
                self.keep_foreseen(node);
            }
        }
    }

    /// Reads those of `nodes` that are not in memory, together.
    pub(crate) fn read_nodes_ahead(&mut self, nodes: &[u32]) {
        let absent = self.absent(nodes.iter().copied());
        self.store.read_ahead(&absent, &[], 0);
        for node in absent {
            self.keep_foreseen(node);
        }
    }

    /// Those of the children of `node` that are not in memory.
    fn absent_children(&self, node: Node<'_>, range: Range<usize>) -> Vec<u32> {
        self.absent(range.map(|at| node.child(at)))
    }

    /// Those of `nodes` that are not in memory.
    fn absent(&self, nodes: impl Iterator<Item = u32>) -> Vec<u32> {
        nodes.filter(|node| !self.is_in_memory(*node) && self.is_used(*node)).collect()
    }

    /// Keeps a node that was read ahead with the others, of which there is more room than for what was read ahead.
    fn keep_foreseen(&mut self, number: u32) {
        if self.has_node(number) || !self.store.is_read_ahead(number, 1) {
            return;
        }
        let mut bytes = vec![0; self.block_bytes];
        // What cannot be read is left to who asks for it.
        if self.store.read(number, &mut bytes).unwrap_or(false) && Node(&bytes).fault().is_none() {
            self.found_node(number, bytes);
            let kept = self.nodes.get_mut(&number).expect("it was just put there");
            kept.is_foreseen = true;
        }
    }
}
