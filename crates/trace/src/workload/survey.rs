//! What was live before a stream of requests began, and how much is live at most.
//!
//! A trace does not say what lay on the disk before its first record. The rule, after Matthews
//! 1999, §5.2.1.2 ("the read or delete of a block that has not yet been written ... any access to a
//! block at offset x in a file, I assume that the entire file existed and was at least as large"):
//! while a file has been neither deleted nor truncated, its *known end* is the highest block of it
//! seen so far, plus one. Then
//!
//! * a read that passes the known end shows that the file reached the end of the read before the
//!   stream began;
//! * a write that begins beyond the known end shows that the file reached the written block;
//! * a write at the known end or before it shows nothing: it may have made the block (a file whose
//!   first access is a write at block 0 is new), and later evidence may still show otherwise;
//! * a delete of a file never seen shows one block; a truncate shows the blocks it keeps, and at
//!   least one.
//!
//! Once deleted or truncated, nothing more is learnt of what a file was. What evidence shows holds
//! from the beginning: when a write beyond the end follows appends, the appends were overwrites.
//!
//! Limits: holes count as blocks of the file where it existed before the stream; files that the
//! stream never touches, and the parts of files above the highest access, stay unknown; a file
//! overwritten from its first block to its last without having been read is taken for new.
//!
//! Because evidence reaches back, live blocks are counted after the stream has ended, from a log of
//! the requests that can change their number. Invariants: a request of n blocks counts as n
//! requests of one block; live blocks are those of initial files and of writes, less those deleted
//! or truncated. Cost: O(1) a request (the logarithm of a file's fragments for a file written after
//! it was deleted or truncated); memory is O(files + blocks ever made), and much less where blocks
//! are made in runs.

use std::collections::BTreeMap;

use agewell_core::{FileAction, FileRequest};

use super::FileWorkload;

/// A file that is live before the stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitialFile {
    /// Its number.
    pub file: u32,
    /// Its length; every block of it is live.
    pub blocks: u32,
}

/// What a host must know of a workload before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Files live before the stream, by number; laid out sequentially in this order.
    pub initial: Vec<InitialFile>,
    /// Sum of their blocks.
    pub initial_blocks: u64,
    /// Most blocks live at once, before the stream or after any request.
    pub peak_live_blocks: u64,
    /// Blocks live after the last request.
    pub final_live_blocks: u64,
    /// One more than the highest number of a file.
    pub files: u32,
    /// One more than the highest number of a client.
    pub clients: u32,
    /// Requests of the stream, syncs included.
    pub requests: u64,
}

/// Surveys the rest of `workload`, to its end.
pub fn survey(workload: &mut (impl FileWorkload + ?Sized)) -> Survey {
    let mut surveyor = Surveyor::default();
    while let Some(request) = workload.next_request() {
        surveyor.note(&request);
    }
    surveyor.finish()
}

/// Surveys the rest of `workload`, before which exactly `initial` is live: nothing is inferred.
pub fn survey_knowing(
    initial: Vec<InitialFile>,
    workload: &mut (impl FileWorkload + ?Sized),
) -> Survey {
    let mut surveyor = Surveyor::knowing(initial);
    while let Some(request) = workload.next_request() {
        surveyor.note(&request);
    }
    surveyor.finish()
}

/// Takes requests one by one and knows the survey at the end; see the module's rule.
#[derive(Debug, Default)]
pub struct Surveyor {
    files: Vec<FileState>,
    changes: Vec<Change>,
    clients: u32,
    requests: u64,
    /// Whether what is live before the stream is known, so that requests show nothing of it.
    knows: bool,
}

#[derive(Debug, Default)]
struct FileState {
    /// Length before the stream, as far as shown.
    initial: u32,
    /// Blocks below are written or existed; in the first life, all there are.
    known_end: u32,
    /// Blocks at or above `known_end` written since the first life ended; none during it.
    later: Option<Box<Fragments>>,
}

/// A request that may change the number of live blocks, to be counted once all evidence is in.
#[derive(Debug)]
enum Change {
    /// In its first life `file` was written up to `end`.
    Grown { file: u32, end: u32 },
    /// The first life of `file` ended with `kept` blocks.
    Cut { file: u32, kept: u32 },
    /// This number of blocks was written that were not live.
    Made(u64),
    /// This number of blocks went, of a file in a later life.
    Lost(u64),
}

/// Single blocks of a file, 64 to a word.
#[derive(Debug, Default)]
struct Fragments {
    words: BTreeMap<u32, u64>,
}

impl Fragments {
    /// Adds a block; whether it is new.
    fn insert(&mut self, block: u32) -> bool {
        let (word, bit) = (self.words.entry(block / 64).or_default(), 1 << (block % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn last(&self) -> Option<u32> {
        let (word, bits) = self.words.last_key_value()?;
        Some(word * 64 + bits.ilog2())
    }

    /// Removes the blocks from `kept` on; how many there were.
    fn cut(&mut self, kept: u32) -> u64 {
        let mut gone = self.words.split_off(&(kept / 64));
        if let Some(word) = gone.get_mut(&(kept / 64)) {
            let below = *word & ((1 << (kept % 64)) - 1);
            *word ^= below;
            if below != 0 {
                self.words.insert(kept / 64, below);
            }
        }
        gone.values().map(|word| u64::from(word.count_ones())).sum()
    }
}

impl Surveyor {
    /// A surveyor that is given what is live before the first request: exactly `initial`.
    #[must_use]
    pub fn knowing(initial: Vec<InitialFile>) -> Self {
        let mut surveyor = Self { knows: true, ..Self::default() };
        for InitialFile { file, blocks } in initial {
            surveyor.ensure_file(file);
            let state = &mut surveyor.files[file as usize];
            (state.initial, state.known_end) = (blocks, blocks);
        }
        surveyor
    }

    fn ensure_file(&mut self, file: u32) {
        if self.files.len() <= file as usize {
            // Nothing is learnt of a file in a later life, or when all is known.
            let knows = self.knows;
            let state = || FileState { later: knows.then(Box::default), ..FileState::default() };
            self.files.resize_with(file as usize + 1, state);
        }
    }

    /// The length of every file now, by number: one more than its last live block.
    #[must_use]
    pub fn lengths(&self) -> Vec<u32> {
        let length = |state: &FileState| {
            let last = state.later.as_ref().and_then(|later| later.last());
            last.map_or(state.known_end, |last| state.known_end.max(last + 1))
        };
        self.files.iter().map(length).collect()
    }

    /// Takes the next request of the stream.
    ///
    /// Files are numbered densely: memory goes with the highest number.
    ///
    /// # Panics
    /// If a read or write ends beyond block 2^32 - 1.
    pub fn note(&mut self, request: &FileRequest) {
        self.requests += 1;
        self.clients = self.clients.max(request.client + 1);
        let FileRequest { file, block, blocks, .. } = *request;
        if request.action == FileAction::Sync {
            return;
        }
        self.ensure_file(file);
        match request.action {
            FileAction::Read => self.note_read(file, end_of(block, blocks)),
            FileAction::Write => self.note_write(file, block, end_of(block, blocks)),
            FileAction::Delete => self.note_cut(file, 0),
            FileAction::Truncate => self.note_cut(file, block),
            FileAction::Sync => {}
        }
    }

    /// Takes the next requests of the stream as [`Self::note`] takes them one by one.
    ///
    /// # Panics
    /// As [`Self::note`].
    pub fn note_all(&mut self, mut requests: &[FileRequest]) {
        while let Some((first, later)) = requests.split_first() {
            if first.action != FileAction::Read {
                self.note(first);
                requests = later;
                continue;
            }
            // Reads of one file on end show what the one that reaches furthest shows.
            let (mut reads, mut client, mut end) = (0, 0, 0);
            for request in requests {
                if request.action != FileAction::Read || request.file != first.file {
                    break;
                }
                reads += 1;
                client = request.client.max(client);
                end = end_of(request.block, request.blocks).max(end);
            }
            self.requests += reads as u64;
            self.clients = self.clients.max(client + 1);
            self.ensure_file(first.file);
            self.note_read(first.file, end);
            requests = &requests[reads..];
        }
    }

    fn note_read(&mut self, file: u32, end: u32) {
        let state = &mut self.files[file as usize];
        if state.later.is_none() && end > state.known_end {
            state.initial = end;
            state.known_end = end;
        }
    }

    fn note_write(&mut self, file: u32, block: u32, end: u32) {
        let state = &mut self.files[file as usize];
        if end <= state.known_end {
            return;
        }
        if let Some(later) = &mut state.later {
            let first = block.max(state.known_end);
            if first == state.known_end && later.is_empty() {
                // An append needs no list of blocks.
                self.log_made(u64::from(end - first));
                self.files[file as usize].known_end = end;
                return;
            }
            let made = (first..end).filter(|block| later.insert(*block)).count() as u64;
            self.log_made(made);
            return;
        }
        if block > state.known_end {
            state.initial = block + 1;
        }
        state.known_end = end;
        if end > state.initial {
            self.log_grown(file, end);
        }
    }

    /// All blocks of `file` from `kept` on are gone.
    fn note_cut(&mut self, file: u32, kept: u32) {
        let state = &mut self.files[file as usize];
        if let Some(later) = &mut state.later {
            let fragments = later.cut(kept);
            let below = u64::from(state.known_end.saturating_sub(kept));
            state.known_end = state.known_end.min(kept);
            if fragments + below > 0 {
                self.changes.push(Change::Lost(fragments + below));
            }
            return;
        }
        let shown = if state.known_end == 0 { kept.max(1) } else { kept };
        if shown > state.known_end {
            state.initial = shown;
        }
        state.known_end = kept;
        state.later = Some(Box::default());
        self.changes.push(Change::Cut { file, kept });
    }

    /// Runs of appends are one change: what is live in between is less than at their end.
    fn log_grown(&mut self, file: u32, end: u32) {
        match self.changes.last_mut() {
            Some(Change::Grown { file: last, end: grown }) if *last == file => *grown = end,
            _ => self.changes.push(Change::Grown { file, end }),
        }
    }

    fn log_made(&mut self, made: u64) {
        match self.changes.last_mut() {
            Some(Change::Made(sum)) => *sum += made,
            _ if made > 0 => self.changes.push(Change::Made(made)),
            _ => {}
        }
    }

    /// The survey of the requests taken.
    ///
    /// # Panics
    /// If there were 2^32 files.
    #[must_use]
    pub fn finish(self) -> Survey {
        let mut ends: Vec<u32> = self.files.iter().map(|state| state.initial).collect();
        let initial: Vec<InitialFile> = (0..)
            .zip(&ends)
            .filter(|(_, blocks)| **blocks > 0)
            .map(|(file, blocks)| InitialFile { file, blocks: *blocks })
            .collect();
        let initial_blocks = initial.iter().map(|file| u64::from(file.blocks)).sum();
        let (mut live, mut peak): (u64, u64) = (initial_blocks, initial_blocks);
        for change in &self.changes {
            match *change {
                Change::Grown { file, end } => {
                    let known = &mut ends[file as usize];
                    live += u64::from(end.saturating_sub(*known));
                    *known = end.max(*known);
                }
                Change::Cut { file, kept } => {
                    live -= u64::from(ends[file as usize].saturating_sub(kept));
                    ends[file as usize] = kept;
                }
                Change::Made(blocks) => live += blocks,
                Change::Lost(blocks) => live -= blocks,
            }
            peak = peak.max(live);
        }
        Survey {
            initial,
            initial_blocks,
            peak_live_blocks: peak,
            final_live_blocks: live,
            files: u32::try_from(self.files.len()).expect("numbered by u32"),
            clients: self.clients,
            requests: self.requests,
        }
    }
}

fn end_of(block: u32, blocks: u32) -> u32 {
    block.checked_add(blocks).expect("a file ends at block 2^32 - 1")
}

#[cfg(test)]
mod tests;
