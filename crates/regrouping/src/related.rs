//! Which blocks belong together: the access graph and its partitions, fed with what happens.
//!
//! Invariants: those of [`AccessGraph`] and [`Partitions`], and that the partitions follow every
//! change of the graph.
//!
//! Source: Matthews 1999, §6.4.1 and §6.4.3. Cost: see the benchmark `reorganise`.

use crate::access_graph::{AccessGraph, EDGES, Edge};
use crate::partitions::Partitions;
use crate::savings::Steps;

/// The graph, its partitions, and the block read last.
#[derive(Debug, Clone)]
pub struct RelatedBlocks {
    graph: AccessGraph,
    partitions: Partitions,
    previous: Option<u32>,
}

impl Steps for RelatedBlocks {
    fn steps_from(&self, block: u32) -> impl Iterator<Item = (u32, u16)> {
        self.graph.edges(block).map(|edge| (edge.target, edge.weight))
    }
}

impl RelatedBlocks {
    /// Nothing known of blocks numbered below `blocks`; partitions are no larger than
    /// `limit_blocks`.
    #[must_use]
    pub fn new(blocks: u32, limit_blocks: u32) -> Self {
        Self {
            graph: AccessGraph::new(blocks),
            partitions: Partitions::new(blocks, limit_blocks),
            previous: None,
        }
    }

    /// Lets blocks be numbered up to `blocks`.
    pub fn ensure_blocks(&mut self, blocks: u32) {
        self.graph.ensure_blocks(blocks);
        self.partitions.ensure_blocks(blocks);
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &AccessGraph {
        &self.graph
    }

    /// The partitions.
    #[must_use]
    pub fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// `node` stands for `blocks` blocks from now on: see [`Partitions::set_size`].
    pub fn set_size(&mut self, node: u32, blocks: u32) {
        self.partitions.set_size(&self.graph, node, blocks);
    }

    /// The partitions, for marks.
    pub fn partitions_mut(&mut self) -> &mut Partitions {
        &mut self.partitions
    }

    /// The block read last, unless it was deleted since.
    #[must_use]
    pub fn previous(&self) -> Option<u32> {
        self.previous
    }

    /// `block` was read from disk; how often it has been read right after the block before, this time
    /// included, less writes, or zero if there is no such edge.
    #[inline]
    pub fn read(&mut self, block: u32) -> u16 {
        match self.previous.replace(block) {
            Some(previous) if previous != block => {
                let recorded = self.graph.record(previous, block);
                self.partitions.read_after(&self.graph, previous, block, recorded);
                recorded.weight
            }
            Some(_) => 0,
            None => {
                self.partitions.admit(block);
                0
            }
        }
    }

    /// `block` was read from disk; that it followed the one before is not recorded.
    pub fn read_apart(&mut self, block: u32) {
        self.partitions.admit(block);
        self.previous = Some(block);
    }

    /// `block` was written.
    #[inline]
    pub fn write(&mut self, block: u32) {
        if self.partitions.of(block).is_some() {
            self.partitions.written(&mut self.graph, block);
        }
    }

    /// `block` was deleted.
    pub fn delete(&mut self, block: u32) {
        self.partitions.deleted(&mut self.graph, block);
        if self.previous == Some(block) {
            self.previous = None;
        }
    }

    /// Members of `partition` in the order to lay them out.
    pub fn lay_out(&self, partition: u32, order: &mut Vec<u32>) {
        self.partitions.lay_out(&self.graph, partition, order);
    }

    /// Those of `gone` were deleted, and their numbers may be given to others: no edge leads to one of
    /// them any more. Takes time in proportion to all blocks.
    pub fn delete_all(&mut self, gone: &[u32]) {
        let mut is_gone = vec![false; self.partitions.nodes() as usize];
        for block in gone {
            self.delete(*block);
            is_gone[*block as usize] = true;
        }
        for block in 0..self.partitions.nodes() {
            let lost = |edge: &Edge| is_gone[edge.target as usize];
            let targets: Vec<u32> =
                self.graph.edges(block).filter(lost).map(|edge| edge.target).collect();
            for target in targets {
                self.graph.cut(block, target);
            }
        }
    }

    /// All of it as words, for a file. Marks of partitions are not kept, nor their numbers.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        let nodes = self.partitions.nodes();
        let mut words =
            vec![u64::from(nodes), self.previous.map_or(0, |block| 1 + u64::from(block))];
        for block in 0..nodes {
            let size = u64::from(self.partitions.size(block));
            words.push(size << 1 | u64::from(self.partitions.is_gone(block)));
            words.extend(self.graph.words(block));
        }
        let numbers: Vec<u32> = self.partitions.numbers().collect();
        words.push(numbers.len() as u64);
        for number in numbers {
            words.push(u64::from(self.partitions.len(number)));
            words.extend(self.partitions.members(number).map(u64::from));
        }
        words
    }

    /// What [`Self::words`] gave, with partitions of at most `limit_blocks`; `None` if these are
    /// others, or of more than `nodes_max` nodes.
    pub fn from_words(
        limit_blocks: u32,
        nodes_max: u32,
        words: &mut impl Iterator<Item = u64>,
    ) -> Option<Self> {
        let node = |word: u64, nodes: u32| u32::try_from(word).ok().filter(|node| *node < nodes);
        let nodes = u32::try_from(words.next()?).ok().filter(|nodes| *nodes <= nodes_max)?;
        let mut related = Self::new(nodes, limit_blocks);
        related.previous = match words.next()?.checked_sub(1) {
            None => None,
            Some(block) => Some(node(block, nodes)?),
        };
        for block in 0..nodes {
            let word = words.next()?;
            related.set_size(block, u32::try_from(word >> 1).ok()?);
            if word & 1 == 1 {
                related.partitions.set_gone(block);
            }
            let mut edges = [0; EDGES];
            for edge in &mut edges {
                *edge = words.next()?;
            }
            related.graph.set_words(block, edges).then_some(())?;
        }
        let mut members = Vec::new();
        for _ in 0..words.next()? {
            members.clear();
            for _ in 0..words.next()? {
                members.push(node(words.next()?, nodes)?);
            }
            related.partitions.assemble(&related.graph, &members).then_some(())?;
        }
        Some(related)
    }

    /// Bytes it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.graph.memory_bytes() + self.partitions.memory_bytes()
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// If one does not hold, which is a bug.
    pub fn verify(&self) {
        self.graph.verify();
        self.partitions.verify(&self.graph);
    }
}

#[cfg(test)]
mod tests;
