//! The block access graph: which block was read from disk after which, and how often.
//!
//! An edge leads from each block to the one that was read right after it. A block keeps its four
//! edges that were used last; a fifth takes the place of the one unused for longest, with its
//! weight (Matthews 1999, §6.4.1). A write of the block lowers the weights of its edges by one
//! (§6.4.3), and an edge of weight zero is gone.
//!
//! Invariants: the edges of a block stand from the last used to the longest unused, no target
//! twice, none with weight zero, none leading back to the block itself; unused places stand last.
//!
//! Differences from the source, or what it leaves open: a block that is read twice in a row has no
//! edge to itself, for no layout could bring it nearer; weights stop at 65,535. An edge is known
//! only where it begins, so that those which lead to a deleted block stay until they are replaced.
//!
//! Memory: 24 bytes a block, 0.3 % of the data at 8 KB blocks. What bounds the speed: a read
//! touches the node of the block before, which is in the cache because it has just been read, and
//! where it must be looked at, that of the edge that is dropped.

pub(crate) use agewell_log::NONE;

/// Edges that a block keeps (Matthews 1999, §6.4.1: four).
pub const EDGES: usize = 4;

/// The edges of one block, the last used first.
#[derive(Debug, Clone, Copy)]
struct Node {
    targets: [u32; EDGES],
    weights: [u16; EDGES],
}

const EMPTY: Node = Node { targets: [NONE; EDGES], weights: [0; EDGES] };

/// An edge as seen from where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The block that was read next.
    pub target: u32,
    /// How often, less the writes since.
    pub weight: u16,
}

/// The changes of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The weight of the edge now.
    pub weight: u16,
    /// By how much it rose: one, or zero where it can rise no further.
    pub raised: u16,
    /// The edge that a new one replaced.
    pub dropped: Option<Edge>,
}

/// The graph.
#[derive(Debug, Clone, Default)]
pub struct AccessGraph {
    nodes: Vec<Node>,
}

impl AccessGraph {
    /// A graph without edges for blocks numbered below `blocks`.
    #[must_use]
    pub fn new(blocks: u32) -> Self {
        Self { nodes: vec![EMPTY; blocks as usize] }
    }

    /// Lets blocks be numbered up to `blocks`.
    pub fn ensure_blocks(&mut self, blocks: u32) {
        if blocks as usize > self.nodes.len() {
            self.nodes.resize(blocks as usize, EMPTY);
        }
    }

    /// `to` was read from disk right after `from`, another block.
    #[inline]
    pub fn record(&mut self, from: u32, to: u32) -> Recorded {
        debug_assert_ne!(from, to, "an edge leads to another block");
        let Node { targets, weights } = &mut self.nodes[from as usize];
        if targets[0] == to {
            let weight = weights[0].saturating_add(1);
            let raised = weight - weights[0];
            weights[0] = weight;
            return Recorded { weight, raised, dropped: None };
        }
        // The place of the edge, or the last, whose edge is replaced.
        let place = (1..EDGES).find(|place| targets[*place] == to);
        let last = place.unwrap_or(EDGES - 1);
        let earlier = Edge { target: targets[last], weight: weights[last] };
        targets.copy_within(..last, 1);
        weights.copy_within(..last, 1);
        targets[0] = to;
        let kept = if place.is_some() { earlier.weight } else { 0 };
        weights[0] = kept.saturating_add(1);
        let dropped = (place.is_none() && earlier.target != NONE).then_some(earlier);
        Recorded { weight: weights[0], raised: weights[0] - kept, dropped }
    }

    /// The edges of `block`, the last used first.
    #[inline]
    pub fn edges(&self, block: u32) -> impl Iterator<Item = Edge> + '_ {
        let Node { targets, weights } = &self.nodes[block as usize];
        let edges = targets.iter().zip(weights).take_while(|edge| *edge.0 != NONE);
        edges.map(|(target, weight)| Edge { target: *target, weight: *weight })
    }

    /// The weight of the edge from `from` to `to`; zero if there is none.
    #[must_use]
    #[inline]
    pub fn weight(&self, from: u32, to: u32) -> u16 {
        let Node { targets, weights } = &self.nodes[from as usize];
        (0..EDGES).find(|place| targets[*place] == to).map_or(0, |place| weights[place])
    }

    /// Lowers the edge from `from` to `to` by one; returns whether there was one.
    pub fn weaken(&mut self, from: u32, to: u32) -> bool {
        let Node { targets, weights } = &mut self.nodes[from as usize];
        let Some(place) = (0..EDGES).find(|place| targets[*place] == to) else { return false };
        weights[place] -= 1;
        if weights[place] == 0 {
            targets.copy_within(place + 1.., place);
            weights.copy_within(place + 1.., place);
            (targets[EDGES - 1], weights[EDGES - 1]) = (NONE, 0);
        }
        true
    }

    /// Forgets the edge from `from` to `to`, and gives its weight.
    pub fn cut(&mut self, from: u32, to: u32) -> u16 {
        let weight = self.weight(from, to);
        if weight > 0 {
            let Node { targets, weights } = &mut self.nodes[from as usize];
            if let Some(place) = (0..EDGES).find(|place| targets[*place] == to) {
                weights[place] = 1;
            }
            self.weaken(from, to);
        }
        weight
    }

    /// Forgets the edges that begin at `block`.
    pub fn clear(&mut self, block: u32) {
        self.nodes[block as usize] = EMPTY;
    }

    /// The edges of `block`, the last used first, as words for a file.
    #[must_use]
    pub(crate) fn words(&self, block: u32) -> [u64; EDGES] {
        let Node { targets, weights } = self.nodes[block as usize];
        std::array::from_fn(|place| u64::from(weights[place]) << 32 | u64::from(targets[place]))
    }

    /// Gives `block` the edges that [`Self::words`] gave; `false` if they break an invariant.
    pub(crate) fn set_words(&mut self, block: u32, words: [u64; EDGES]) -> bool {
        let mut node = EMPTY;
        for (place, word) in words.into_iter().enumerate() {
            let (target, weight) = (word as u32, word >> 32);
            if target == NONE && weight == 0 {
                continue;
            }
            let is_new = !node.targets[..place].contains(&target);
            let has_gap = node.targets[..place].contains(&NONE);
            let is_good = target != block && (target as usize) < self.nodes.len();
            let Some(weight) = u16::try_from(weight).ok().filter(|weight| *weight > 0) else {
                return false;
            };
            if !is_new || has_gap || !is_good {
                return false;
            }
            (node.targets[place], node.weights[place]) = (target, weight);
        }
        self.nodes[block as usize] = node;
        true
    }

    /// Bytes it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// If one does not hold, which is a bug.
    pub fn verify(&self) {
        for (block, Node { targets, weights }) in self.nodes.iter().enumerate() {
            let used = targets.iter().take_while(|target| **target != NONE).count();
            assert!(targets[used..].iter().all(|target| *target == NONE), "a gap at {block}");
            for place in 0..EDGES {
                assert_eq!(place < used, weights[place] > 0, "weight {place} of block {block}");
                assert_ne!(targets[place] as usize, block, "block {block} follows itself");
                let twice = targets[..place.min(used)].contains(&targets[place]);
                assert!(place >= used || !twice, "two edges of block {block} to one");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A block's edges as a list, plainly.
    fn slow_record(edges: &mut Vec<Edge>, to: u32) -> Recorded {
        let found = edges.iter().position(|edge| edge.target == to);
        let before = found.map_or(0, |place| edges.remove(place).weight);
        let dropped = if edges.len() == EDGES { edges.pop() } else { None };
        edges.insert(0, Edge { target: to, weight: before.saturating_add(1) });
        Recorded { weight: edges[0].weight, raised: edges[0].weight - before, dropped }
    }

    fn slow_weaken(edges: &mut Vec<Edge>, to: u32) -> bool {
        let found = edges.iter_mut().find(|edge| edge.target == to);
        let there = found.is_some();
        if let Some(edge) = found {
            edge.weight -= 1;
        }
        edges.retain(|edge| edge.weight > 0);
        there
    }

    #[derive(Debug, Clone)]
    enum Step {
        Record(u32, u32),
        Weaken(u32, u32),
        Cut(u32, u32),
        Clear(u32),
    }

    fn steps(blocks: u32) -> impl Strategy<Value = Step> {
        let pair = (0..blocks, 0..blocks);
        prop_oneof![
            8 => pair.clone().prop_map(|(from, to)| Step::Record(from, to)),
            3 => pair.clone().prop_map(|(from, to)| Step::Weaken(from, to)),
            1 => pair.prop_map(|(from, to)| Step::Cut(from, to)),
            1 => (0..blocks).prop_map(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn edges_are_as_lists_of_them_say(steps in prop::collection::vec(steps(9), 0..400)) {
            let mut graph = AccessGraph::new(9);
            let mut lists = vec![Vec::new(); 9];
            for step in steps {
                match step {
                    Step::Record(from, to) if from == to => {}
                    Step::Record(from, to) => {
                        let expected = slow_record(&mut lists[from as usize], to);
                        prop_assert_eq!(graph.record(from, to), expected);
                    }
                    Step::Weaken(from, to) => {
                        let expected = slow_weaken(&mut lists[from as usize], to);
                        prop_assert_eq!(graph.weaken(from, to), expected);
                    }
                    Step::Cut(from, to) => {
                        let list = &mut lists[from as usize];
                        let found = list.iter().find(|edge| edge.target == to);
                        let weight = found.map_or(0, |edge| edge.weight);
                        list.retain(|edge| edge.target != to);
                        prop_assert_eq!(graph.cut(from, to), weight);
                    }
                    Step::Clear(block) => {
                        lists[block as usize].clear();
                        graph.clear(block);
                    }
                }
                graph.verify();
            }
            for (block, list) in lists.iter().enumerate() {
                prop_assert_eq!(&graph.edges(block as u32).collect::<Vec<_>>(), list);
            }
        }
    }

    #[test]
    fn the_edge_unused_for_longest_makes_way_whatever_its_weight() {
        let mut graph = AccessGraph::new(6);
        graph.record(0, 1);
        graph.record(0, 1);
        for to in 2..5 {
            graph.record(0, to);
        }
        let recorded = graph.record(0, 5);
        assert_eq!(recorded.dropped, Some(Edge { target: 1, weight: 2 }));
        assert_eq!(graph.edges(0).map(|edge| edge.target).collect::<Vec<_>>(), [5, 4, 3, 2]);
    }

    #[test]
    fn a_weight_stops_where_it_can_rise_no_further() {
        let mut graph = AccessGraph::new(2);
        for _ in 0..u32::from(u16::MAX) {
            assert_eq!(graph.record(0, 1).raised, 1);
        }
        assert_eq!(graph.record(0, 1), Recorded { weight: u16::MAX, raised: 0, dropped: None });
    }
}
