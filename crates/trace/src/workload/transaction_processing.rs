//! Transaction processing: random updates through an index, a log, and a commit each time.
//!
//! Table 4-1, and what it is here:
//!
//! * *writes: random; no locality*: the block of a random account
//! * *reads: random; no locality for data, locality for indices*: the account's block, below the
//!   root, an inner page and a leaf of its index
//! * *interleaved*: every transaction reads and writes
//! * *sustained*: each terminal begins a transaction every `interval`
//! * *sizes vary*: accounts, index, branches, log and a history that grows
//! * *lifetimes vary*: the log is written over and over, accounts at random, history never
//!
//! A transaction reads its way through the index, reads and writes the account's block, writes the
//! block of its branch and the current block of the log, and syncs ("the need for frequent data
//! commits", §4.1). Log records and history records are collected until they fill a block: the log's
//! block is written at each commit, filled or not, and the history's once it is full. Nothing here
//! is cached by the database: the host's caches stand below.
//!
//! Source: Matthews 1999, Table 4-1 and §4.1; sizes of records after TPC-B (100 bytes an account, 50
//! a history record). Chosen by us: the other numbers. [`super::Tpcb`] is the TPC-B of Seltzer
//! 1995, with a cache of its own and without index or log.
//!
//! Invariant: the log is a ring of `log_blocks`. Cost: see [`super::clients`]; O(1) memory.

use agewell_core::{FileAction, RandomStreams, SimDuration, Stream, uniform_below};

use super::agenda::Agenda;
use super::clients::{Behaviour, ClientWorkload, Step};
use super::error::require;
use super::{InitialFile, WorkloadError};

const NAME: &str = "transaction-processing";

const ACCOUNT: u32 = 0;
const INDEX: u32 = 1;
const BRANCH: u32 = 2;
const LOG: u32 = 3;
const HISTORY: u32 = 4;
/// Data and indices lie in one directory, the log in another.
const LOG_DIRECTORY: u32 = 1;

const BLOCK_BYTES: u64 = 8192;
/// An account record; TPC-B.
const ACCOUNT_BYTES: u64 = 100;
/// A history record; TPC-B.
const HISTORY_BYTES: u64 = 50;
/// Entries of an index page: 8 bytes of key and 8 of pointer, two thirds full (chosen by us).
const INDEX_FANOUT: u64 = 341;
/// A log record: the images of three rows and their headers (chosen by us).
const LOG_RECORD_BYTES: u64 = 512;

/// What the transaction processing workload takes. Its numbers are meant for blocks of 8 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionProcessingParameters {
    /// Accounts; 800,000 by default: 9,877 blocks of data, 77 MiB.
    pub accounts: u32,
    /// Blocks of branches; 16 by default.
    pub branch_blocks: u32,
    /// Blocks of the log; 1,024 by default.
    pub log_blocks: u32,
    /// Terminals, each a client; 8 by default.
    pub terminals: u32,
    /// Transactions of all terminals; 40,000 by default.
    pub transactions: u32,
    /// Time from the beginning of a terminal's transaction to that of its next; 800 ms by default.
    pub interval: SimDuration,
    /// Time from one request of a transaction to the next; 1 ms by default.
    pub pace: SimDuration,
}

impl Default for TransactionProcessingParameters {
    fn default() -> Self {
        Self {
            accounts: 800_000,
            branch_blocks: 16,
            log_blocks: 1024,
            terminals: 8,
            transactions: 40_000,
            interval: SimDuration(800_000_000),
            pace: SimDuration(1_000_000),
        }
    }
}

impl TransactionProcessingParameters {
    fn validate(&self) -> Result<(), WorkloadError> {
        let Self { accounts, branch_blocks, log_blocks, terminals, .. } = *self;
        require(accounts > 0, NAME, "accounts", accounts, "at least 1")?;
        require(branch_blocks > 0, NAME, "branch_blocks", branch_blocks, "at least 1")?;
        let need = "from 1 to 2147483647";
        require((1..1 << 31).contains(&log_blocks), NAME, "log_blocks", log_blocks, need)?;
        require((1..=4096).contains(&terminals), NAME, "terminals", terminals, "from 1 to 4096")?;
        for (key, duration) in [("interval", self.interval), ("pace", self.pace)] {
            let last_ns = u128::from(self.transactions) * 8 * u128::from(duration.0);
            let need = "short enough that the last transaction comes within 2^63 ns (292 years)";
            require(last_ns < 1 << 63, NAME, key, format!("{} ns", duration.0), need)?;
        }
        Ok(())
    }

    /// Blocks of the account file.
    #[must_use]
    pub fn account_blocks(&self) -> u32 {
        let rows_per_block = BLOCK_BYTES / ACCOUNT_BYTES;
        u64::from(self.accounts).div_ceil(rows_per_block) as u32
    }

    /// Leaves and inner pages of the index; above them stands one root.
    fn index_pages(&self) -> (u32, u32) {
        let leaves = u64::from(self.accounts).div_ceil(INDEX_FANOUT);
        (leaves as u32, leaves.div_ceil(INDEX_FANOUT) as u32)
    }

    /// Blocks of the index: root, inner pages, leaves.
    #[must_use]
    pub fn index_blocks(&self) -> u32 {
        let (leaves, inner) = self.index_pages();
        1 + inner + leaves
    }
}

/// The transaction processing workload.
pub type TransactionProcessing = ClientWorkload<TransactionProcessingBehaviour>;

/// What terminals do.
#[derive(Debug, Clone)]
pub struct TransactionProcessingBehaviour {
    parameters: TransactionProcessingParameters,
    stream: Stream,
    terminals: Vec<Terminal>,
    transactions: u32,
}

#[derive(Debug, Clone)]
struct Terminal {
    agenda: Agenda,
    /// When its next transaction begins; none before it has come to work.
    next_ns: Option<u64>,
}

impl TransactionProcessingBehaviour {
    fn plan_transaction(&mut self, terminal: u32) {
        let account = uniform_below(&mut self.stream, u64::from(self.parameters.accounts));
        let branches = u64::from(self.parameters.branch_blocks);
        let branch = uniform_below(&mut self.stream, branches) as u32;
        let number = u64::from(self.transactions);
        self.transactions += 1;
        let (_, inner) = self.parameters.index_pages();
        let leaf = (account / INDEX_FANOUT) as u32;
        let path = [0, 1 + leaf / INDEX_FANOUT as u32, 1 + inner + leaf];
        let block = (account / (BLOCK_BYTES / ACCOUNT_BYTES)) as u32;
        let log_block = number * LOG_RECORD_BYTES / BLOCK_BYTES;
        let log_block = (log_block % u64::from(self.parameters.log_blocks)) as u32;
        let agenda = &mut self.terminals[terminal as usize].agenda;
        for page in path {
            agenda.transfer(FileAction::Read, INDEX, page, 1);
        }
        agenda.transfer(FileAction::Read, ACCOUNT, block, 1);
        agenda.transfer(FileAction::Write, ACCOUNT, block, 1);
        agenda.transfer(FileAction::Write, BRANCH, branch, 1);
        let filled = |transactions: u64| (transactions * HISTORY_BYTES / BLOCK_BYTES) as u32;
        if filled(number + 1) > filled(number) {
            agenda.transfer(FileAction::Write, HISTORY, filled(number), 1);
        }
        agenda.transfer(FileAction::Write, LOG, log_block, 1);
        agenda.plan(Step::Sync);
    }
}

impl Behaviour for TransactionProcessingBehaviour {
    fn next_step(&mut self, client: u32, time_ns: u64) -> Step {
        if let Some(step) = self.terminals[client as usize].agenda.next() {
            return step;
        }
        let TransactionProcessingParameters { interval, terminals, transactions, .. } =
            self.parameters;
        // Terminals come to work one after another, so that transactions come evenly.
        let first_ns = interval.0 / u64::from(terminals) * u64::from(client);
        let next_ns = *self.terminals[client as usize].next_ns.get_or_insert(first_ns);
        if time_ns < next_ns {
            return Step::Wait(next_ns - time_ns);
        }
        if self.transactions == transactions {
            return Step::Done;
        }
        self.terminals[client as usize].next_ns = Some(next_ns + interval.0);
        self.plan_transaction(client);
        self.terminals[client as usize].agenda.next().expect("a transaction has steps")
    }

    fn directory_of(&self, file: u32) -> u32 {
        if file == LOG { LOG_DIRECTORY } else { 0 }
    }

    fn initial(&self) -> Vec<InitialFile> {
        let parameters = &self.parameters;
        vec![
            InitialFile { file: ACCOUNT, blocks: parameters.account_blocks() },
            InitialFile { file: INDEX, blocks: parameters.index_blocks() },
            InitialFile { file: BRANCH, blocks: parameters.branch_blocks },
            InitialFile { file: LOG, blocks: parameters.log_blocks },
        ]
    }
}

impl TransactionProcessing {
    /// The workload that `parameters` describe.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &TransactionProcessingParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        parameters.validate()?;
        let terminal = Terminal { agenda: Agenda::new(parameters.pace.0), next_ns: None };
        let behaviour = TransactionProcessingBehaviour {
            parameters: *parameters,
            stream: streams.stream("workload/transaction-processing"),
            terminals: vec![terminal; parameters.terminals as usize],
            transactions: 0,
        };
        Ok(Self::over(behaviour, parameters.terminals, 1))
    }

    /// The parameters it was made of.
    #[must_use]
    pub fn parameters(&self) -> &TransactionProcessingParameters {
        &self.behaviour().parameters
    }
}

#[cfg(test)]
mod tests;
