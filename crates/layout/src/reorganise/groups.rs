//! Groups of blocks that may belong together, by any of the ways of [`Related`].
//!
//! A group has a value, which reads of its blocks raise and writes lower, so that one rule serves
//! all ways: a group that is being read for the second time has a value above 2. In a graph that is
//! the mean weight of a member's ties ([`Partitions`](agewell_regrouping::Partitions)); without one, two for
//! every read of a block, over the blocks, as in a chain.

use super::files::Files;
use super::setting::Related;
use agewell_regrouping::{RelatedBlocks, Steps};

use crate::block_layout::FileBlock;

/// A group, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// A partition of the graph.
    Partition(u32),
    /// A part of a file.
    Extent {
        /// The file.
        file: u32,
        /// Its part.
        extent: u32,
    },
    /// Files of a directory.
    Bin(u32),
}

/// Where only groups are counted, or files are what is recorded, there are none.
impl Steps for Groups {
    fn steps_from(&self, block: u32) -> impl Iterator<Item = (u32, u16)> {
        let graph = self.graph.as_ref().filter(|_| self.records_blocks());
        let edges = graph.map(|graph| graph.graph().edges(block));
        edges.into_iter().flatten().map(|edge| (edge.target, edge.weight))
    }
}

/// All groups.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    related: Related,
    /// Blocks, or files, and what is read after what; nothing where groups are fixed.
    graph: Option<RelatedBlocks>,
    files: Option<Files>,
    /// The block read last.
    previous: Option<u32>,
}

impl Groups {
    pub(crate) fn new(related: Related, blocks: u32, part_blocks: u32) -> Self {
        let graph = match related {
            Related::Blocks | Related::NonSequential | Related::Frequency => {
                Some(RelatedBlocks::new(blocks, part_blocks))
            }
            Related::Files => Some(RelatedBlocks::new(0, part_blocks)),
            Related::WholeFile | Related::Directory => None,
        };
        let files = related.needs_names().then(|| Files::new(part_blocks));
        Self { related, graph, files, previous: None }
    }

    pub(crate) fn ensure_blocks(&mut self, blocks: u32) {
        if self.related != Related::Files
            && let Some(graph) = &mut self.graph
        {
            graph.ensure_blocks(blocks);
        }
    }

    /// `block` is called `name`.
    #[inline]
    pub(crate) fn call(&mut self, block: u32, name: FileBlock) {
        let Some(files) = &mut self.files else { return };
        let before = files.len(name.file);
        files.call(block, name);
        let blocks = files.len(name.file);
        if blocks != before {
            self.size(name.file, blocks);
        }
    }

    /// In a graph of files, `file` has `blocks` blocks.
    fn size(&mut self, file: u32, blocks: u32) {
        if self.related == Related::Files
            && let Some(graph) = &mut self.graph
        {
            graph.ensure_blocks(file + 1);
            graph.set_size(file, blocks);
        }
    }

    pub(crate) fn create(&mut self, file: u32, directory: u32) {
        if let Some(files) = &mut self.files {
            files.create(file, directory);
        }
    }

    pub(crate) fn remove(&mut self, file: u32) {
        if let Some(files) = &mut self.files {
            files.remove(file);
        }
        if self.related == Related::Files
            && let Some(graph) = &mut self.graph
        {
            graph.ensure_blocks(file + 1);
            graph.delete(file);
        }
    }

    /// `block` was read from disk; how often the step to it from the block before is on record now,
    /// where steps between blocks are.
    #[inline]
    pub(crate) fn read(&mut self, block: u32) -> Option<u16> {
        let previous = self.previous.replace(block);
        let mut on_record = None;
        match self.related {
            Related::Blocks | Related::Frequency => {
                if let Some(graph) = &mut self.graph {
                    on_record = Some(graph.read(block));
                }
            }
            Related::NonSequential => on_record = self.read_unless_it_follows(previous, block),
            Related::Files => self.read_of_file(block),
            Related::WholeFile | Related::Directory => {}
        }
        if let Some(group) = self.counted_group(block) {
            self.count(group, 2);
        }
        on_record
    }

    fn read_unless_it_follows(&mut self, previous: Option<u32>, block: u32) -> Option<u16> {
        let (Some(graph), Some(files)) = (&mut self.graph, &self.files) else { return None };
        if previous.is_some_and(|previous| files.follows(previous, block)) {
            graph.read_apart(block);
            None
        } else {
            Some(graph.read(block))
        }
    }

    fn read_of_file(&mut self, block: u32) {
        let (Some(graph), Some(files)) = (&mut self.graph, &self.files) else { return };
        if let Some(name) = files.name(block) {
            graph.ensure_blocks(name.file + 1);
            graph.read(name.file);
        }
    }

    /// The group of `block` whose reads are counted, if they are.
    fn counted_group(&self, block: u32) -> Option<Group> {
        let files = self.files.as_ref()?;
        let name = files.name(block)?;
        let extent = Group::Extent { file: name.file, extent: files.extent_of(name) };
        match self.related {
            Related::Directory if !files.is_large(name.file) => {
                files.bin_of(name.file).map(Group::Bin)
            }
            Related::WholeFile | Related::Directory | Related::Files => Some(extent),
            Related::Blocks | Related::NonSequential | Related::Frequency => None,
        }
    }

    fn count(&mut self, group: Group, weight: i64) {
        let Some(files) = &mut self.files else { return };
        let part = match group {
            Group::Extent { file, extent } => files.extent_part(file, extent),
            Group::Bin(bin) => files.bin_part(bin),
            Group::Partition(_) => None,
        };
        if let Some((reads, _)) = part {
            *reads = reads.saturating_add_signed(weight);
        }
    }

    /// The group of `block`, which was read.
    #[inline]
    pub(crate) fn of(&self, block: u32) -> Option<Group> {
        match self.related {
            Related::Blocks | Related::NonSequential | Related::Frequency => {
                self.graph.as_ref()?.partitions().of(block).map(Group::Partition)
            }
            Related::Files => {
                let file = self.files.as_ref()?.name(block)?.file;
                let partitions = self.graph.as_ref()?.partitions();
                let known = file < partitions.nodes();
                let partition = known.then(|| partitions.of(file)).flatten();
                match partition.filter(|found| partitions.len(*found) > 1) {
                    Some(partition) => Some(Group::Partition(partition)),
                    None => self.counted_group(block),
                }
            }
            Related::WholeFile | Related::Directory => self.counted_group(block),
        }
    }

    /// The sum whose mean over [`Self::len`] is the value of `group`.
    #[inline]
    pub(crate) fn weight(&mut self, group: Group) -> u64 {
        match (group, &self.graph, &mut self.files) {
            (Group::Partition(partition), Some(graph), _) => {
                graph.partitions().ties_within(partition)
            }
            (Group::Extent { file, extent }, _, Some(files)) => {
                files.extent_part(file, extent).map_or(0, |part| *part.0)
            }
            (Group::Bin(bin), _, Some(files)) => files.bin_part(bin).map_or(0, |part| *part.0),
            _ => 0,
        }
    }

    /// Over how many the weight of `group` is spread.
    #[inline]
    pub(crate) fn len(&self, group: Group) -> u64 {
        match (group, &self.graph, &self.files) {
            (Group::Partition(partition), Some(graph), _) => {
                u64::from(graph.partitions().len(partition))
            }
            (Group::Extent { file, extent }, _, Some(files)) => {
                files.extent(file, extent).count() as u64
            }
            (Group::Bin(bin), _, Some(files)) => files.bin(bin).count() as u64,
            _ => 0,
        }
    }

    /// A number that the caller keeps with `group`; zero at first.
    #[inline]
    pub(crate) fn mark(&mut self, group: Group) -> u64 {
        match (group, &self.graph, &mut self.files) {
            (Group::Partition(partition), Some(graph), _) => graph.partitions().mark(partition),
            (Group::Extent { file, extent }, _, Some(files)) => {
                files.extent_part(file, extent).map_or(0, |part| *part.1)
            }
            (Group::Bin(bin), _, Some(files)) => files.bin_part(bin).map_or(0, |part| *part.1),
            _ => 0,
        }
    }

    /// Changes that.
    pub(crate) fn set_mark(&mut self, group: Group, mark: u64) {
        match (group, &mut self.graph, &mut self.files) {
            (Group::Partition(partition), Some(graph), _) => {
                graph.partitions_mut().set_mark(partition, mark);
            }
            (Group::Extent { file, extent }, _, Some(files)) => {
                files.extent_part(file, extent).into_iter().for_each(|part| *part.1 = mark);
            }
            (Group::Bin(bin), _, Some(files)) => {
                files.bin_part(bin).into_iter().for_each(|part| *part.1 = mark);
            }
            _ => {}
        }
    }

    /// The blocks of `group` in the order to lay them out.
    pub(crate) fn lay_out(&self, group: Group, order: &mut Vec<u32>) {
        order.clear();
        match (group, &self.graph, &self.files) {
            (Group::Partition(partition), Some(graph), Some(files))
                if self.related == Related::Files =>
            {
                let mut in_order = Vec::new();
                graph.lay_out(partition, &mut in_order);
                order.extend(in_order.into_iter().flat_map(|file| files.blocks(file)));
            }
            (Group::Partition(partition), Some(graph), _) => graph.lay_out(partition, order),
            (Group::Extent { file, extent }, _, Some(files)) => {
                order.extend(files.extent(file, extent));
            }
            (Group::Bin(bin), _, Some(files)) => order.extend(files.bin(bin)),
            _ => {}
        }
    }

    /// Whether steps from block to block are on record.
    pub(crate) fn records_blocks(&self) -> bool {
        matches!(self.related, Related::Blocks | Related::NonSequential | Related::Frequency)
    }

    /// `block` was written; returns whether it is still tied to others.
    #[inline]
    pub(crate) fn write(&mut self, block: u32) -> bool {
        match self.related {
            Related::Blocks | Related::NonSequential | Related::Frequency => {
                let Some(graph) = &mut self.graph else { return false };
                graph.write(block);
                graph.partitions().ties(block) > 0
            }
            Related::Files | Related::WholeFile | Related::Directory => {
                if let Some(group) = self.counted_group(block) {
                    self.count(group, -2);
                }
                let name = self.files.as_ref().and_then(|files| files.name(block));
                if self.related == Related::Files
                    && let (Some(graph), Some(name)) = (&mut self.graph, name)
                    && name.file < graph.partitions().nodes()
                    && name.block == 0
                {
                    // Once for each time that the file is written.
                    graph.write(name.file);
                }
                self.of(block).is_some_and(|group| self.weight(group) > 0)
            }
        }
    }

    /// `block` was deleted.
    pub(crate) fn delete(&mut self, block: u32) {
        if self.previous == Some(block) {
            self.previous = None;
        }
        let name = self.files.as_ref().and_then(|files| files.name(block));
        if let Some(files) = &mut self.files {
            files.forget(block);
        }
        if let Some(name) = name {
            let blocks = self.files.as_ref().map_or(0, |files| files.len(name.file));
            self.size(name.file, blocks);
        }
        if self.related != Related::Files
            && let Some(graph) = &mut self.graph
        {
            graph.delete(block);
        }
    }

    /// Bytes it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.graph.as_ref().map_or(0, RelatedBlocks::memory_bytes)
            + self.files.as_ref().map_or(0, Files::memory_bytes)
    }

    /// Checks the invariants.
    pub(crate) fn verify(&self) {
        self.graph.iter().for_each(RelatedBlocks::verify);
    }
}
