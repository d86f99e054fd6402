//! Which blocks belong together: the access graph and its partitions, fed with what happens.
//!
//! Invariants: those of [`AccessGraph`] and [`Partitions`], and that the partitions follow every
//! change of the graph.
//!
//! Source: Matthews 1999, §6.4.1 and §6.4.3. Cost: see the benchmark `reorganise`.

use super::access_graph::AccessGraph;
use super::partitions::Partitions;

/// The graph, its partitions, and the block read last.
#[derive(Debug, Clone)]
pub struct RelatedBlocks {
    graph: AccessGraph,
    partitions: Partitions,
    previous: Option<u32>,
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
