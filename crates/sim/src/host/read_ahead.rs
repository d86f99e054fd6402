//! The host reads ahead: which blocks its policy names, and what became of them.

use std::ops::Range;

use agewell_core::FileRequest;
use agewell_layout::block_layout::{BlockLayout, Place};
use agewell_log::Purpose;

use super::file_blocks::FileBlocks;
use crate::cache::Cache;
use crate::drive::TimedDisk;
use crate::prefetch::{FileGraph, Prefetch, Streams};

/// What prefetching came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PrefetchCounts {
    /// Blocks read before anybody asked.
    pub(crate) blocks: u64,
    /// Of those, asked for while they were still in the cache.
    pub(crate) used: u64,
}

/// What the host remembers to read ahead.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    policy: Prefetch,
    pub(crate) counts: PrefetchCounts,
    streams: Streams,
    graph: Option<FileGraph>,
    /// The file that each client reads, as far as the graph is concerned.
    current: Vec<u32>,
    /// Blocks that were read ahead and not asked for since, a bit each.
    unasked: Vec<u64>,
    followers: Vec<u32>,
    wanted: Vec<u32>,
}

/// No file.
const NONE: u32 = u32::MAX;

impl ReadAhead {
    pub(crate) fn new(policy: Prefetch, clients: u32) -> Self {
        let graph = match policy {
            Prefetch::FileGraph { lookahead, .. } => Some(FileGraph::new(lookahead as usize)),
            _ => None,
        };
        Self {
            policy,
            counts: PrefetchCounts::default(),
            streams: Streams::default(),
            graph,
            current: vec![NONE; clients as usize],
            unasked: Vec::new(),
            followers: Vec::new(),
            wanted: Vec::new(),
        }
    }

    /// Somebody asks for `block`, which the cache has; whether it had been read ahead.
    #[inline]
    pub(crate) fn asked_for(&mut self, block: u32) -> bool {
        let was_ahead = self.forget(block);
        self.counts.used += u64::from(was_ahead);
        was_ahead
    }

    /// `block` is in the cache no longer, or was written; whether it had been read ahead in vain.
    #[inline]
    pub(crate) fn forget(&mut self, block: u32) -> bool {
        let Some(word) = self.unasked.get_mut((block / 64) as usize) else { return false };
        let bit = 1 << (block % 64);
        let was_ahead = *word & bit != 0;
        *word &= !bit;
        was_ahead
    }

    fn note_ahead(&mut self, block: u32) {
        let word = (block / 64) as usize;
        if word >= self.unasked.len() {
            self.unasked.resize(word + 1, 0);
        }
        self.unasked[word] |= 1 << (block % 64);
        self.counts.blocks += 1;
    }
    /// Reads ahead after `request`, a read, of whose blocks `missed` came from the disk: what of that
    /// is in no cache comes from `disk` into the `server`'s.
    pub(super) fn follow(
        &mut self,
        request: &FileRequest,
        missed: &[u32],
        files: &FileBlocks,
        layout: &mut impl BlockLayout,
        server: Option<&mut Cache>,
        disk: &mut TimedDisk,
    ) {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.clear();
        match self.policy {
            Prefetch::None => {}
            Prefetch::Sequential { blocks } => {
                let Range { start, end } =
                    self.streams.read(request.file, request.block, request.blocks, blocks);
                add_file_blocks(files, request.file, start, end - start, &mut wanted);
            }
            Prefetch::Cluster => {
                if let Some(block) = missed.last() {
                    layout.cluster_of(*block, &mut wanted);
                }
            }
            Prefetch::FileGraph { chance, blocks, .. } => {
                self.add_followers(request, chance, blocks, files, &mut wanted);
            }
        }
        if let Some(server) = server
            && !wanted.is_empty()
        {
            server.ensure_keys(files.numbered() as usize);
            self.bring_in(&mut wanted, layout, server, disk);
        }
        self.wanted = wanted;
    }

    /// A client that begins another file is taken to have opened it.
    fn add_followers(
        &mut self,
        request: &FileRequest,
        chance: f64,
        blocks: u32,
        files: &FileBlocks,
        wanted: &mut Vec<u32>,
    ) {
        let current = &mut self.current[request.client as usize];
        if *current == request.file && request.block > 0 {
            return;
        }
        *current = request.file;
        if let Some(graph) = &mut self.graph {
            graph.opened(request.file);
            graph.followers(request.file, chance, &mut self.followers);
        }
        for file in &self.followers {
            add_file_blocks(files, *file, 0, blocks, wanted);
        }
    }

    /// Reads what of `wanted` is on the disk and not in `server`.
    fn bring_in(
        &mut self,
        wanted: &mut Vec<u32>,
        layout: &mut impl BlockLayout,
        server: &mut Cache,
        disk: &mut TimedDisk,
    ) {
        let is_on_disk = |block: u32| matches!(layout.place_of(block), Place::Disk(_));
        wanted.retain(|block| !server.contains(*block) && is_on_disk(*block));
        // More than the cache holds would throw out what was read first.
        wanted.truncate(server.capacity_blocks() / 2);
        for block in &*wanted {
            self.note_ahead(*block);
            if let Some(evicted) = server.insert(*block) {
                self.forget(evicted);
                layout.set_resident(evicted, false);
            }
        }
        layout.read(wanted, Purpose::Prefetch, disk);
    }
}

fn add_file_blocks(files: &FileBlocks, file: u32, first: u32, blocks: u32, wanted: &mut Vec<u32>) {
    let blocks = first..first.saturating_add(blocks);
    wanted.extend(blocks.filter_map(|block| files.find(file, block)));
}
