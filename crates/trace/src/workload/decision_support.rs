//! Decision support: a large table that grows, and questions that scan it or follow its indices.
//!
//! Table 4-1, and what it is here:
//!
//! * *writes: update, append; no locality*: a load appends rows to the large table and updates
//!   random leaves of every index
//! * *reads: random, patterns for common queries*: scans front to back; common queries follow an
//!   index in its order, which scatters over the table and is the same each time; ad-hoc queries
//!   begin anywhere
//! * *read locality: none for data, some for indices*: rows lie anywhere; an index is small, and
//!   common queries begin at the same leaf
//! * *write once, read many*: rows are written once, when they are appended
//! * *rate varies*: pauses between queries of all lengths
//! * *huge*: the large table is nearly all there is; nothing is deleted
//! * *long lifetimes*: only blocks of indices are overwritten
//!
//! An index orders all rows of the table by something else than their place: entry e of index i is
//! the row in block `hash(i, e)` of the table. A query by index reads a leaf, then the block of each
//! of the entries that it covers, one by one, then the next leaf. Rows appended by a load are found
//! by scans; the indices cover the rows that were there before.
//!
//! Source: Matthews 1999, Table 4-1, §4.1 and §6.5.2.2 (tables scanned in one query and accessed
//! through an index in another; tables and indices in different files). Chosen by us: all numbers.
//! The recorded queries of a real database stand beside it (`examples/traces`).
//!
//! Clients: analysts first, the loader last. Directories: tables 0, indices 1.
//! Cost: see [`super::clients`]; a hash an entry, and no memory for the order of an index.

use agewell_core::{FileAction, RandomStreams, SimDuration, Stream, chance, mix, uniform_below};

use super::clients::{Behaviour, ClientWorkload, Step, Transfer};
use super::draws::over_doublings;
use super::error::require;
use super::{InitialFile, WorkloadError};

const NAME: &str = "decision-support";

const TABLE: u32 = 0;
const INDEX_DIRECTORY: u32 = 1;
/// Entries of a leaf: 8 bytes of key and 8 of pointer, two thirds full (chosen by us).
const LEAF_ENTRIES: u64 = 341;
/// Rows of a block of the table, of 100 bytes (chosen by us).
const BLOCK_ROWS: u64 = 81;

/// What the decision support workload takes. Its numbers are meant for blocks of 8 KiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecisionSupportParameters {
    /// Blocks of the large table; 12,000 by default: 94 MiB.
    pub table_blocks: u32,
    /// Indices of the table, each a file; 3 by default.
    pub indices: u32,
    /// Analysts, each a client; 3 by default.
    pub analysts: u32,
    /// Queries of all analysts; 150 by default.
    pub queries: u32,
    /// Share of the queries that scan the table; 0.3 by default.
    pub scan_share: f64,
    /// Of the queries by index, the share that are common ones; 0.7 by default.
    pub common_share: f64,
    /// Common queries that there are; 6 by default. Each has its index and its first entry.
    pub common_queries: u32,
    /// Entries that a query by index follows; 2,000 by default.
    pub query_entries: u32,
    /// Blocks that a load appends; 32 by default.
    pub load_blocks: u32,
    /// Leaves of each index that a load updates; 32 by default.
    pub load_leaves: u32,
    /// Queries from one load to the next; 10 by default, 0 means never.
    pub load_every: u32,
    /// Shortest time between two queries of an analyst; 10 s by default. The longest is 1,024
    /// times that, each doubling equally likely.
    pub think: SimDuration,
    /// Time from one request to the next within a query; 1 ms by default.
    pub pace: SimDuration,
    /// Blocks of a request of a scan or a load; 8 by default: 64 KiB.
    pub request_blocks: u32,
}

impl Default for DecisionSupportParameters {
    fn default() -> Self {
        Self {
            table_blocks: 12_000,
            indices: 3,
            analysts: 3,
            queries: 150,
            scan_share: 0.3,
            common_share: 0.7,
            common_queries: 6,
            query_entries: 2_000,
            load_blocks: 32,
            load_leaves: 32,
            load_every: 10,
            think: SimDuration(10_000_000_000),
            pace: SimDuration(1_000_000),
            request_blocks: 8,
        }
    }
}

impl DecisionSupportParameters {
    fn validate(&self) -> Result<(), WorkloadError> {
        let Self { table_blocks, indices, analysts, common_queries, query_entries, .. } = *self;
        let grown = u64::from(table_blocks) + u64::from(self.loads()) * u64::from(self.load_blocks);
        let need = "at least 1, and below 2^31 with all that is loaded";
        let fits = table_blocks > 0 && grown < 1 << 31;
        require(fits, NAME, "table_blocks", table_blocks, need)?;
        require((1..=4096).contains(&indices), NAME, "indices", indices, "from 1 to 4096")?;
        require((1..=4096).contains(&analysts), NAME, "analysts", analysts, "from 1 to 4096")?;
        let shares = [("scan_share", self.scan_share), ("common_share", self.common_share)];
        for (key, share) in shares {
            require((0.0..=1.0).contains(&share), NAME, key, share, "from 0 to 1")?;
        }
        require(common_queries > 0, NAME, "common_queries", common_queries, "at least 1")?;
        let need = "at least 1 and at most the rows of the table";
        let fits = query_entries > 0 && u64::from(query_entries) <= self.entries();
        require(fits, NAME, "query_entries", query_entries, need)?;
        let need = "at least 1";
        require(self.request_blocks > 0, NAME, "request_blocks", self.request_blocks, need)?;
        for (key, duration) in [("think", self.think), ("pace", self.pace)] {
            let need = "below 2^40 ns (18 minutes)";
            require(duration.0 < 1 << 40, NAME, key, format!("{} ns", duration.0), need)?;
        }
        Ok(())
    }

    /// Entries of an index.
    fn entries(&self) -> u64 {
        u64::from(self.table_blocks) * BLOCK_ROWS
    }

    /// Leaves of an index, which is its file; the pages above are in memory.
    #[must_use]
    pub fn index_blocks(&self) -> u32 {
        // Below 2^31 * 81 / 341.
        self.entries().div_ceil(LEAF_ENTRIES) as u32
    }

    /// Loads that there are.
    #[must_use]
    pub fn loads(&self) -> u32 {
        self.queries.checked_div(self.load_every).unwrap_or(0)
    }
}

/// The decision support workload.
pub type DecisionSupport = ClientWorkload<DecisionSupportBehaviour>;

/// What analysts and the loader do.
#[derive(Debug, Clone)]
pub struct DecisionSupportBehaviour {
    parameters: DecisionSupportParameters,
    stream: Stream,
    /// First entry and index of each common query.
    common: Vec<(u64, u32)>,
    /// Of the table now.
    table_blocks: u32,
    analysts: Vec<Analyst>,
    loader: Loader,
    queries: u32,
}

/// What an analyst waits for.
#[derive(Debug, Clone, Copy)]
enum Analyst {
    Thinking,
    Asking,
    /// A query by index that is at `entry`; whether the leaf of that entry has been read.
    Following {
        index: u32,
        entry: u64,
        end: u64,
        leaf_read: bool,
    },
}

#[derive(Debug, Clone, Copy, Default)]
struct Loader {
    /// Loads finished.
    loads: u32,
    /// Whether the load under way has appended its rows.
    appended: bool,
    /// Leaves that it has updated, of all indices one after another.
    leaves: u64,
}

impl DecisionSupportBehaviour {
    fn transfer(&self, action: FileAction, file: u32, block: u32, blocks: u32) -> Step {
        let pace_ns = self.parameters.pace.0;
        Step::Transfer(Transfer { action, file, block, blocks, pace_ns })
    }

    fn any_range(&mut self) -> (u64, u32) {
        let first_max = self.parameters.entries() - u64::from(self.parameters.query_entries);
        let first = uniform_below(&mut self.stream, first_max + 1);
        (first, uniform_below(&mut self.stream, u64::from(self.parameters.indices)) as u32)
    }

    /// The block of the table that holds the row of an entry: the same for ever.
    fn block_of(&self, index: u32, entry: u64) -> u32 {
        let hash = mix(u64::from(index) << 40 | entry);
        ((u128::from(hash) * u128::from(self.parameters.table_blocks)) >> 64) as u32
    }

    /// Begins the next query: a scan is one step, a query by index is followed.
    fn ask(&mut self, analyst: usize) -> Step {
        if self.queries == self.parameters.queries {
            return Step::Done;
        }
        self.queries += 1;
        self.analysts[analyst] = Analyst::Thinking;
        if chance(&mut self.stream, self.parameters.scan_share) {
            return self.transfer(FileAction::Read, TABLE, 0, self.table_blocks);
        }
        let (entry, index) = if chance(&mut self.stream, self.parameters.common_share) {
            self.common[uniform_below(&mut self.stream, self.common.len() as u64) as usize]
        } else {
            self.any_range()
        };
        let end = entry + u64::from(self.parameters.query_entries);
        self.analysts[analyst] = Analyst::Following { index, entry, end, leaf_read: false };
        self.analyse(analyst)
    }

    fn analyse(&mut self, analyst: usize) -> Step {
        match self.analysts[analyst] {
            Analyst::Thinking => {
                self.analysts[analyst] = Analyst::Asking;
                let shortest = self.parameters.think.0.max(1);
                Step::Wait(over_doublings(&mut self.stream, shortest, 10))
            }
            Analyst::Asking => self.ask(analyst),
            Analyst::Following { index, entry, end, leaf_read } => {
                if !leaf_read {
                    let leaf_read = true;
                    self.analysts[analyst] = Analyst::Following { index, entry, end, leaf_read };
                    let leaf = (entry / LEAF_ENTRIES) as u32;
                    return self.transfer(FileAction::Read, 1 + index, leaf, 1);
                }
                let next = entry + 1;
                let leaf_read = !next.is_multiple_of(LEAF_ENTRIES);
                self.analysts[analyst] = if next == end {
                    Analyst::Thinking
                } else {
                    Analyst::Following { index, entry: next, end, leaf_read }
                };
                self.transfer(FileAction::Read, TABLE, self.block_of(index, entry), 1)
            }
        }
    }

    /// The loader looks every so often whether enough has been asked since the last load.
    fn load(&mut self) -> Step {
        let DecisionSupportParameters { load_every, load_blocks, load_leaves, .. } =
            self.parameters;
        if self.loader.loads == self.parameters.loads() {
            return Step::Done;
        }
        if u64::from(self.queries) < u64::from(load_every) * u64::from(self.loader.loads + 1) {
            return Step::Wait(self.parameters.think.0.max(1));
        }
        if !self.loader.appended {
            self.loader.appended = true;
            if load_blocks > 0 {
                let first = self.table_blocks;
                self.table_blocks += load_blocks;
                return self.transfer(FileAction::Write, TABLE, first, load_blocks);
            }
        }
        let leaves = u64::from(load_leaves) * u64::from(self.parameters.indices);
        if self.loader.leaves < leaves {
            let index = (self.loader.leaves / u64::from(load_leaves)) as u32;
            self.loader.leaves += 1;
            let pages = u64::from(self.parameters.index_blocks());
            let leaf = uniform_below(&mut self.stream, pages) as u32;
            return self.transfer(FileAction::Write, 1 + index, leaf, 1);
        }
        self.loader = Loader { loads: self.loader.loads + 1, ..Loader::default() };
        Step::Sync
    }
}

impl Behaviour for DecisionSupportBehaviour {
    fn next_step(&mut self, client: u32, _time_ns: u64) -> Step {
        if client < self.parameters.analysts { self.analyse(client as usize) } else { self.load() }
    }

    fn directory_of(&self, file: u32) -> u32 {
        if file == TABLE { 0 } else { INDEX_DIRECTORY }
    }

    fn initial(&self) -> Vec<InitialFile> {
        let index_blocks = self.parameters.index_blocks();
        let table = InitialFile { file: TABLE, blocks: self.parameters.table_blocks };
        let index = |index| InitialFile { file: 1 + index, blocks: index_blocks };
        std::iter::once(table).chain((0..self.parameters.indices).map(index)).collect()
    }
}

impl DecisionSupport {
    /// The workload that `parameters` describe.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &DecisionSupportParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        parameters.validate()?;
        let mut behaviour = DecisionSupportBehaviour {
            parameters: *parameters,
            stream: streams.stream("workload/decision-support/common"),
            common: Vec::new(),
            table_blocks: parameters.table_blocks,
            analysts: vec![Analyst::Thinking; parameters.analysts as usize],
            loader: Loader::default(),
            queries: 0,
        };
        behaviour.common = (0..parameters.common_queries).map(|_| behaviour.any_range()).collect();
        behaviour.stream = streams.stream("workload/decision-support");
        Ok(Self::over(behaviour, parameters.analysts + 1, parameters.request_blocks))
    }

    /// The parameters it was made of.
    #[must_use]
    pub fn parameters(&self) -> &DecisionSupportParameters {
        &self.behaviour().parameters
    }
}

#[cfg(test)]
mod tests;
