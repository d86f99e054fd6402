//! Which file is opened after which: the graph that Griffioen & Appleton (USENIX Summer 1994)
//! prefetch by.
//!
//! A node is a file; an edge from one file to another counts how often the other was opened within
//! the next few openings. A file is worth prefetching when its edge's count is a large enough share
//! of how often the first one was opened. Each file keeps as many edges as [`EDGES`]; the one least
//! recently used makes room.
//!
//! Differences from the source: the number of edges is bounded, which the source leaves open.

/// Edges of a file; chosen by us: files have either a few strong followers or many weak ones, as
/// Matthews 1999, §6.4.1, says of blocks.
const EDGES: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edge {
    file: u32,
    count: u32,
    /// When it was last added to, in openings.
    used: u64,
}

#[derive(Debug, Clone, Default)]
struct Node {
    opened: u32,
    edges: Vec<Edge>,
}

/// The graph, and the files opened last.
#[derive(Debug, Clone)]
pub struct FileGraph {
    nodes: Vec<Node>,
    recent: Vec<u32>,
    lookahead: usize,
    clock: u64,
}

impl FileGraph {
    /// An empty graph; a file follows those opened up to `lookahead` openings before.
    ///
    /// # Panics
    /// If `lookahead` is zero.
    #[must_use]
    pub fn new(lookahead: usize) -> Self {
        assert!(lookahead > 0, "a graph looks ahead one opening or more");
        Self { nodes: Vec::new(), recent: Vec::new(), lookahead, clock: 0 }
    }

    /// `file` is opened.
    pub fn opened(&mut self, file: u32) {
        self.clock += 1;
        if file as usize >= self.nodes.len() {
            self.nodes.resize(file as usize + 1, Node::default());
        }
        self.nodes[file as usize].opened += 1;
        for earlier in &self.recent {
            if *earlier != file {
                self.nodes[*earlier as usize].follow(file, self.clock);
            }
        }
        // Nearest last; the same file twice counts once.
        self.recent.retain(|earlier| *earlier != file);
        self.recent.push(file);
        if self.recent.len() > self.lookahead {
            self.recent.remove(0);
        }
    }

    /// Files that follow `file` with a probability of at least `chance`, the likeliest first.
    pub fn followers(&self, file: u32, chance: f64, followers: &mut Vec<u32>) {
        followers.clear();
        let Some(node) = self.nodes.get(file as usize) else { return };
        // Once is no habit.
        if node.opened < 2 {
            return;
        }
        let likely = |edge: &&Edge| f64::from(edge.count) >= chance * f64::from(node.opened);
        let mut chosen: Vec<Edge> = node.edges.iter().filter(likely).copied().collect();
        chosen.sort_unstable_by_key(|edge| (std::cmp::Reverse(edge.count), edge.file));
        followers.extend(chosen.iter().map(|edge| edge.file));
    }
}

impl Node {
    fn follow(&mut self, file: u32, clock: u64) {
        if let Some(edge) = self.edges.iter_mut().find(|edge| edge.file == file) {
            edge.count += 1;
            edge.used = clock;
            return;
        }
        let edge = Edge { file, count: 1, used: clock };
        if self.edges.len() < EDGES {
            self.edges.push(edge);
        } else if let Some(oldest) = self.edges.iter_mut().min_by_key(|edge| edge.used) {
            *oldest = edge;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followers(graph: &FileGraph, file: u32, chance: f64) -> Vec<u32> {
        let mut found = Vec::new();
        graph.followers(file, chance, &mut found);
        found
    }

    #[test]
    fn what_follows_often_enough_is_foretold() {
        let mut graph = FileGraph::new(1);
        // After 1 comes 2 three times of four, and 3 once.
        for file in [1, 2, 1, 2, 1, 3, 1, 2] {
            graph.opened(file);
        }
        assert_eq!(followers(&graph, 1, 0.7), [2]);
        assert_eq!(followers(&graph, 1, 0.2), [2, 3]);
        assert_eq!(followers(&graph, 3, 0.0), [] as [u32; 0], "opened once");
        assert_eq!(followers(&graph, 9, 0.0), [] as [u32; 0], "never opened");
    }

    #[test]
    fn a_longer_look_sees_over_what_lies_between() {
        let (mut near, mut far) = (FileGraph::new(1), FileGraph::new(3));
        for round in 0..10 {
            for file in [1, 10 + round, 2] {
                near.opened(file);
                far.opened(file);
            }
        }
        assert_eq!(followers(&near, 1, 0.5), [] as [u32; 0]);
        assert_eq!(followers(&far, 1, 0.5), [2]);
    }

    #[test]
    fn edges_are_bounded_and_the_oldest_makes_room() {
        let mut graph = FileGraph::new(1);
        for follower in 2..=2 + EDGES as u32 {
            graph.opened(1);
            graph.opened(follower);
        }
        let found = followers(&graph, 1, 0.0);
        assert_eq!(found.len(), EDGES);
        assert!(!found.contains(&2), "the edge used longest ago is gone");
    }
}
