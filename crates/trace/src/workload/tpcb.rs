//! TPC-B as the file system sees it: an account block in, a dirty one out, and a little history.
//!
//! Each transaction updates a random account record. The block that holds it is in the user's own
//! cache, or is read, for which the block used longest ago is written to the file system, always
//! dirty, because every block in the cache was updated when it came. Branch and teller records and
//! the internal pages of the B-tree stay in memory and cause no requests. The history grows by a
//! record a transaction and is written a block at a time. The log of the transactions lies on
//! another disk, so that nothing here is synced.
//!
//! With `metadata`, every write of a block is followed by writes of the blocks that hold its
//! address: the indirect block, the double indirect block where it hangs below one, and the block
//! of inodes, all of one metadata file. A log's buffer absorbs the repeats. With `dirty_blocks`,
//! which is how 4.4BSD has it, metadata is written once for a number of dirty buffers, and a sync
//! behind it sends everything; what the log moves ([`Tpcb::moved`]) makes metadata dirty as well
//! ([`Gathering`]).
//!
//! Source: Seltzer 1995, §3 and table 2 (237 MB in 4 KB blocks; read as 10^6 bytes the account file
//! has exactly the 58 indirect blocks of the text). Differences: records are spread evenly over
//! the whole account file, as if it had no internal pages (they would be under 1 % of it); the
//! text takes all 58 indirect blocks for dirty after 115 writes, where 115 uniform writes dirty
//! about 50 of them. The double indirect block and the block of inodes count as no dirty buffers
//! when something below them was moved. Chosen by us: the cache starts full of dirty blocks, as it is after a while,
//! and the history starts empty.
//!
//! Invariants: a request asks for one block; the cache holds as many blocks as it may.
//! Cost: O(1) a transaction; 4 bytes an account block and 12 a cached block.

use agewell_core::{
    FileAction, FileRequest, RandomStreams, SimDuration, SimTime, Stream, uniform_below,
};

use super::error::require;
use super::{FileWorkload, InitialFile, Survey, WorkloadError};

mod gathering;
mod indirect;
mod recency_list;

use gathering::Gathering;
use indirect::{IndirectPath, POINTERS_PER_BLOCK, indirect_blocks, indirect_path};
use recency_list::RecencyList;

const NAME: &str = "tpcb";
/// Size of a block; Seltzer 1995, §3.
const BLOCK_BYTES: u64 = 4096;
/// The longest history: what the direct, single and double indirect blocks reach.
const FILE_BLOCKS_MAX: u64 = 12 + POINTERS_PER_BLOCK + POINTERS_PER_BLOCK * POINTERS_PER_BLOCK;

const ACCOUNT: u32 = 0;
const BRANCH: u32 = 1;
const TELLER: u32 = 2;
const HISTORY: u32 = 3;
const METADATA: u32 = 4;

/// What the TPC-B workload takes; blocks are of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TpcbParameters {
    /// Transactions of the stream; 100,000 by default (chosen by us).
    pub transactions: u64,
    /// Account records; 1,000,000 by default (Seltzer 1995, table 2, as the rest).
    pub accounts: u32,
    /// Blocks of the account file; 57,861 by default: 237 MB.
    pub account_blocks: u32,
    /// Blocks of the branch file; 11 by default: 44 KB.
    pub branch_blocks: u32,
    /// Blocks of the teller file; 11 by default: 44 KB.
    pub teller_blocks: u32,
    /// Blocks in the user's cache; 1,024 by default: 4 MB.
    pub cache_blocks: u32,
    /// Bytes of a history record; 50 by default.
    pub history_record_bytes: u32,
    /// Whether writes of indirect blocks and inodes are part of the stream; they are by default.
    pub metadata: bool,
    /// Dirty buffers that are written together, with the metadata behind them and a sync; 0 by
    /// default: metadata follows each block, and the log's buffer decides. Seltzer 1995, §3: 115.
    pub dirty_blocks: u32,
    /// Time from one transaction to the next; zero by default: as fast as the host can.
    pub interval: SimDuration,
}

impl Default for TpcbParameters {
    fn default() -> Self {
        Self {
            transactions: 100_000,
            accounts: 1_000_000,
            account_blocks: 57_861,
            branch_blocks: 11,
            teller_blocks: 11,
            cache_blocks: 1_024,
            history_record_bytes: 50,
            metadata: true,
            dirty_blocks: 0,
            interval: SimDuration::ZERO,
        }
    }
}

impl TpcbParameters {
    fn validate(&self) -> Result<(), WorkloadError> {
        let Self { accounts, account_blocks, cache_blocks, history_record_bytes, .. } = *self;
        require(cache_blocks > 0, NAME, "cache_blocks", cache_blocks, "at least 1")?;
        let need = "above cache_blocks, or nothing would ever be read, and below 1,049,612 blocks";
        let fits = account_blocks > cache_blocks && u64::from(account_blocks) < FILE_BLOCKS_MAX;
        require(fits, NAME, "account_blocks", account_blocks, need)?;
        let need = "at least one a block of the account file";
        require(accounts >= account_blocks, NAME, "accounts", accounts, need)?;
        let need = "at most a block";
        let small = u64::from(history_record_bytes) <= BLOCK_BYTES;
        require(small, NAME, "history_record_bytes", history_record_bytes, need)?;
        let bytes = u128::from(self.transactions) * u128::from(history_record_bytes);
        let need = "so few that the history stays below 1,049,612 blocks";
        let short = bytes / u128::from(BLOCK_BYTES) < u128::from(FILE_BLOCKS_MAX);
        require(short, NAME, "transactions", self.transactions, need)?;
        let need = "0 without metadata";
        let fits = self.metadata || self.dirty_blocks == 0;
        require(fits, NAME, "dirty_blocks", self.dirty_blocks, need)?;
        let last_ns = u128::from(self.transactions) * u128::from(self.interval.0);
        let interval = format!("{} ns", self.interval.0);
        let need = "short enough that the last transaction comes within 2^63 ns (292 years)";
        require(last_ns < 1 << 63, NAME, "interval", interval, need)
    }

    /// Blocks of history at the end.
    fn history_blocks(&self) -> u32 {
        (self.transactions * u64::from(self.history_record_bytes) / BLOCK_BYTES) as u32
    }
}

/// The TPC-B workload.
#[derive(Debug, Clone)]
pub struct Tpcb {
    parameters: TpcbParameters,
    stream: Stream,
    cache: RecencyList,
    started: u64,
    history_bytes: u64,
    gathering: Gathering,
    /// Requests of the current transaction; those before `next` have been handed out.
    pending: Vec<FileRequest>,
    next: usize,
}

impl Tpcb {
    /// The workload that `parameters` describe.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &TpcbParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        parameters.validate()?;
        let mut workload = Self {
            parameters: *parameters,
            stream: streams.stream("workload/tpcb"),
            cache: RecencyList::new(parameters.account_blocks, parameters.cache_blocks),
            started: 0,
            history_bytes: 0,
            gathering: Gathering::default(),
            pending: Vec::new(),
            next: 0,
        };
        while !workload.cache.is_full() {
            let block = workload.random_account_block();
            let _ = workload.cache.touch(block);
        }
        Ok(workload)
    }

    /// Transactions whose requests have all been handed out.
    #[must_use]
    pub fn transactions(&self) -> u64 {
        self.started - u64::from(self.next < self.pending.len())
    }

    /// Whether dirty buffers accumulate, so that the stream depends on what the log moves.
    #[must_use]
    pub fn gathers(&self) -> bool {
        self.parameters.dirty_blocks > 0
    }

    /// The log has moved `block` of `file`, so that the metadata with its address is dirty.
    pub fn moved(&mut self, file: u32, block: u32) {
        let first = match file {
            ACCOUNT => 0,
            HISTORY => self.inode_block() + 1,
            _ => return,
        };
        if self.gathers()
            && let Some(leaf) = indirect_path(block).leaf
        {
            self.gathering.holds_moved(first + leaf);
        }
    }

    /// What is live before the stream, and its sizes, if nothing is moved. The number of requests is counted on a copy,
    /// which takes the time of the stream; the rest is known by construction.
    #[must_use]
    pub fn survey(&self) -> Survey {
        let parameters = &self.parameters;
        let mut initial = vec![
            InitialFile { file: ACCOUNT, blocks: parameters.account_blocks },
            InitialFile { file: BRANCH, blocks: parameters.branch_blocks },
            InitialFile { file: TELLER, blocks: parameters.teller_blocks },
        ];
        initial.retain(|file| file.blocks > 0);
        let history_blocks = parameters.history_blocks();
        let mut grown = u64::from(history_blocks);
        if parameters.metadata {
            initial.push(InitialFile { file: METADATA, blocks: self.inode_block() + 1 });
            grown += u64::from(indirect_blocks(history_blocks));
        }
        let initial_blocks = initial.iter().map(|file| u64::from(file.blocks)).sum();
        let mut copy = self.clone();
        let requests = std::iter::from_fn(|| copy.next_request()).count() as u64;
        Survey {
            initial,
            initial_blocks,
            peak_live_blocks: initial_blocks + grown,
            final_live_blocks: initial_blocks + grown,
            files: if parameters.metadata { METADATA } else { HISTORY } + 1,
            clients: 1,
            requests,
        }
    }

    /// Where the metadata file holds the inodes: behind the account file's indirect blocks and
    /// before those of the history, which grows.
    fn inode_block(&self) -> u32 {
        indirect_blocks(self.parameters.account_blocks)
    }

    fn random_account_block(&mut self) -> u32 {
        let accounts = u64::from(self.parameters.accounts);
        let record = uniform_below(&mut self.stream, accounts);
        (record * u64::from(self.parameters.account_blocks) / accounts) as u32
    }

    fn push(&mut self, action: FileAction, file: u32, block: u32) {
        let time = SimTime((self.started - 1) * self.parameters.interval.0);
        let blocks = u32::from(action != FileAction::Sync);
        self.pending.push(FileRequest { time, client: 0, file, block, blocks, action });
    }

    /// A write of a block of data and of the metadata that says where it is; `first` is where the
    /// metadata file holds the first indirect block of `file`.
    fn push_write(&mut self, file: u32, block: u32, first: u32) {
        self.push(FileAction::Write, file, block);
        if !self.parameters.metadata {
            return;
        }
        let IndirectPath { root, leaf } = indirect_path(block);
        // The root was made before its leaves, so the metadata file grows block by block.
        let indirect = [root, leaf].into_iter().flatten().map(|indirect| first + indirect);
        let gathers = self.gathers();
        for block in indirect.chain([self.inode_block()]) {
            if gathers {
                self.gathering.holds_written(block);
            } else {
                self.push(FileAction::Write, METADATA, block);
            }
        }
        if gathers {
            self.gathering.data();
        }
    }

    /// Writes the metadata of all that is queued, and sends everything.
    fn push_gathered(&mut self) {
        let mut gathering = std::mem::take(&mut self.gathering);
        gathering.send(|block| self.push(FileAction::Write, METADATA, block));
        self.gathering = gathering;
        self.push(FileAction::Sync, METADATA, 0);
    }

    fn transact(&mut self) {
        self.started += 1;
        self.pending.clear();
        self.next = 0;
        let block = self.random_account_block();
        if let Some(evicted) = self.cache.touch(block) {
            self.push(FileAction::Read, ACCOUNT, block);
            self.push_write(ACCOUNT, evicted, 0);
        }
        let block = self.history_bytes / BLOCK_BYTES;
        self.history_bytes += u64::from(self.parameters.history_record_bytes);
        if self.history_bytes / BLOCK_BYTES > block {
            self.push_write(HISTORY, block as u32, self.inode_block() + 1);
        }
        if self.gathers() && self.gathering.buffers() >= self.parameters.dirty_blocks {
            self.push_gathered();
        }
    }
}

impl FileWorkload for Tpcb {
    fn next_request(&mut self) -> Option<FileRequest> {
        while self.next == self.pending.len() {
            if self.started == self.parameters.transactions {
                return None;
            }
            self.transact();
        }
        self.next += 1;
        Some(self.pending[self.next - 1])
    }

    /// A batch ends with the sync of what is queued, so that the moves that follow from it are
    /// known to the next.
    fn next_batch(&mut self, batch: &mut Vec<FileRequest>, requests_max: usize) {
        batch.clear();
        while batch.len() < requests_max {
            let Some(request) = self.next_request() else { break };
            batch.push(request);
            if request.action == FileAction::Sync {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests;
