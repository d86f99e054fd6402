//! What a stream does, measured on its requests: the columns of Matthews 1999, Table 4-1. For tests.

use std::collections::BTreeMap;

use agewell_core::{FileAction, FileRequest};

use super::{FileWorkload, InitialFile};

/// What is known of a block that is live.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// When it was written last; none if it was there before.
    born_ns: Option<u64>,
    live: bool,
    reads: u32,
    writes: u32,
}

/// Consecutive blocks that a client has asked for, so far.
#[derive(Debug, Clone, Copy)]
struct Run {
    action: FileAction,
    file: u32,
    first: u32,
    end: u32,
}

/// A stream, measured.
#[derive(Debug, Default)]
pub(super) struct Profile {
    pub(super) requests: Vec<FileRequest>,
    files: Vec<Vec<Block>>,
    runs: BTreeMap<u32, Run>,
    /// By action (read, write): blocks; blocks right behind the one before or first of a file; runs;
    /// runs over a file from its first block to its last.
    pub(super) blocks: [u64; 2],
    sequential: [u64; 2],
    run_count: [u64; 2],
    whole_runs: [u64; 2],
    /// Blocks of reads that were not live.
    pub(super) hole_reads: u64,
    /// Written blocks that were live.
    overwrites: u64,
    /// How old written blocks were when they died, ns.
    pub(super) lifetimes_ns: Vec<u64>,
    /// Longest length of each file, in blocks.
    pub(super) lengths: Vec<u32>,
    initial_blocks: u64,
}

impl Profile {
    /// Measures all of `workload`, before which `initial` is live.
    pub(super) fn of(initial: &[InitialFile], workload: &mut impl FileWorkload) -> Self {
        let mut profile = Self::default();
        for file in initial {
            profile.ensure(file.file, file.blocks);
            for block in &mut profile.files[file.file as usize] {
                block.live = true;
            }
            profile.initial_blocks += u64::from(file.blocks);
        }
        let mut last_ns = 0;
        while let Some(request) = workload.next_request() {
            assert!(request.time.0 >= last_ns, "times never fall");
            last_ns = request.time.0;
            profile.note(&request);
        }
        assert_eq!(workload.next_request(), None, "none stays none");
        let open: Vec<Run> = profile.runs.values().copied().collect();
        for run in &open {
            profile.end_run(run);
        }
        profile
    }

    fn ensure(&mut self, file: u32, end: u32) {
        let file = file as usize;
        if self.files.len() <= file {
            self.files.resize_with(file + 1, Vec::new);
            self.lengths.resize(file + 1, 0);
        }
        if self.files[file].len() < end as usize {
            self.files[file].resize(end as usize, Block::default());
        }
        self.lengths[file] = self.lengths[file].max(end);
    }

    fn length(&self, file: u32) -> u32 {
        let blocks = &self.files[file as usize];
        blocks.iter().rposition(|block| block.live).map_or(0, |last| last as u32 + 1)
    }

    fn note(&mut self, request: &FileRequest) {
        self.requests.push(*request);
        match request.action {
            FileAction::Read | FileAction::Write => self.note_transfer(request),
            FileAction::Delete => self.cut(request, 0),
            FileAction::Truncate => self.cut(request, request.block),
            FileAction::Sync => {}
        }
    }

    fn cut(&mut self, request: &FileRequest, kept: u32) {
        self.ensure(request.file, 0);
        let blocks = &mut self.files[request.file as usize];
        for block in blocks.iter_mut().skip(kept as usize).filter(|block| block.live) {
            let age = block.born_ns.map(|born| request.time.0 - born);
            self.lifetimes_ns.extend(age);
            block.live = false;
        }
    }

    fn note_transfer(&mut self, request: &FileRequest) {
        let FileRequest { time, client, file, block, blocks, action } = *request;
        assert!(blocks > 0, "a request of blocks names some");
        let (kind, end) = (action as usize, block + blocks);
        self.blocks[kind] += u64::from(blocks);
        match self.runs.get_mut(&client) {
            Some(run) if (run.action, run.file, run.end) == (action, file, block) => {
                run.end = end;
                self.sequential[kind] += u64::from(blocks);
            }
            _ => {
                let run = Run { action, file, first: block, end };
                if let Some(done) = self.runs.insert(client, run) {
                    self.end_run(&done);
                }
                self.sequential[kind] += u64::from(blocks) - u64::from(block > 0);
            }
        }
        self.ensure(file, if action == FileAction::Write { end } else { 0 });
        for at in block..end {
            let Some(known) = self.files[file as usize].get_mut(at as usize) else {
                self.hole_reads += 1;
                continue;
            };
            if action == FileAction::Read {
                known.reads += 1;
                self.hole_reads += u64::from(!known.live);
                continue;
            }
            if known.live {
                self.overwrites += 1;
                self.lifetimes_ns.extend(known.born_ns.map(|born| time.0 - born));
            }
            known.born_ns = Some(time.0);
            known.live = true;
            known.writes += 1;
        }
    }

    fn end_run(&mut self, run: &Run) {
        let kind = run.action as usize;
        self.run_count[kind] += 1;
        let whole = run.first == 0 && run.end >= self.length(run.file);
        self.whole_runs[kind] += u64::from(whole);
    }

    /// Share of the blocks read or written that came right behind the one before, or first in a file.
    pub(super) fn sequential_share(&self, action: FileAction) -> f64 {
        self.sequential[action as usize] as f64 / self.blocks[action as usize] as f64
    }

    /// Share of the runs of consecutive blocks that cover a whole file.
    pub(super) fn whole_file_share(&self, action: FileAction) -> f64 {
        self.whole_runs[action as usize] as f64 / self.run_count[action as usize] as f64
    }

    /// Share of the writes that replaced a live block.
    pub(super) fn overwrite_share(&self) -> f64 {
        self.overwrites as f64 / self.blocks[1] as f64
    }

    /// Of the files in `files`: share of the accesses of `action` that the busiest tenth of the blocks
    /// ever live get. A tenth means no locality, one all of it.
    pub(super) fn busiest_tenth(
        &self,
        action: FileAction,
        files: impl Iterator<Item = u32>,
    ) -> f64 {
        let count = |block: &Block| {
            u64::from(if action == FileAction::Read { block.reads } else { block.writes })
        };
        let mut counts: Vec<u64> =
            files.flat_map(|file| &self.files[file as usize]).map(count).collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let busiest: u64 = counts[..counts.len().div_ceil(10)].iter().sum();
        busiest as f64 / counts.iter().sum::<u64>() as f64
    }

    /// Every file that there was.
    pub(super) fn all_files(&self) -> std::ops::Range<u32> {
        0..self.files.len() as u32
    }

    /// Reads of a block that was written, in the mean.
    pub(super) fn reads_per_written_block(&self) -> f64 {
        let written = || self.files.iter().flatten().filter(|block| block.writes > 0);
        let reads: u64 = written().map(|block| u64::from(block.reads)).sum();
        reads as f64 / written().count() as f64
    }

    /// Share of the windows of `window` transfers that have both reads and writes.
    pub(super) fn mixed_share(&self, window: usize) -> f64 {
        let transfers: Vec<FileAction> = self
            .requests
            .iter()
            .map(|request| request.action)
            .filter(|action| matches!(action, FileAction::Read | FileAction::Write))
            .collect();
        let mixed = |window: &&[FileAction]| window.iter().any(|action| *action != window[0]);
        let windows = transfers.chunks_exact(window);
        let count = windows.len();
        windows.filter(mixed).count() as f64 / count as f64
    }

    /// Requests of each slot of `slot_ns`, up to the last full one.
    pub(super) fn rate(&self, slot_ns: u64) -> Vec<u64> {
        let last = self.requests.last().map_or(0, |request| request.time.0 / slot_ns);
        let mut slots = vec![0; last as usize];
        for request in &self.requests {
            if let Some(slot) = slots.get_mut((request.time.0 / slot_ns) as usize) {
                *slot += 1;
            }
        }
        slots
    }

    /// Share of the blocks live at the end that are older than the stream or than `age_ns`.
    pub(super) fn live_older_than(&self, age_ns: u64) -> f64 {
        let end_ns = self.requests.last().map_or(0, |request| request.time.0);
        let live = || self.files.iter().flatten().filter(|block| block.live);
        let old = live().filter(|block| block.born_ns.is_none_or(|born| end_ns - born > age_ns));
        old.count() as f64 / live().count() as f64
    }

    /// Share of the blocks written that had died when they were `age_ns` old.
    pub(super) fn died_within(&self, age_ns: u64) -> f64 {
        let young = self.lifetimes_ns.iter().filter(|age| **age <= age_ns).count();
        young as f64 / self.blocks[1] as f64
    }
}

/// Standard deviation over mean.
pub(super) fn variation(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let square = |count: &u64| (*count as f64 - mean).powi(2);
    (counts.iter().map(square).sum::<f64>() / counts.len() as f64).sqrt() / mean
}
