//! The `[layout]` table of write-anywhere.

use agewell_config::{Form, Key, Keyed, choice, count, keys, sectors};
use agewell_layout::write_anywhere::{CrashRecovery, Search};
use serde_json::{Map, Value};

use super::{BLOCK_BYTES, ConfigError, Table};

/// Every version of a block in a new place.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteAnywhereLayout {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// How the next free place is found.
    pub search: Search,
    /// How the map is found again after a crash.
    pub recovery: CrashRecovery,
    /// Blocks written between checkpoints or snapshots.
    pub checkpoint_blocks: u32,
    table: WriteAnywhereTable,
}

/// Places of a stripe at most: the counts of free places take memory for each number.
const STRIPE_BLOCKS_MAX: u32 = 4096;

#[derive(Debug, Clone, Copy, PartialEq)]
enum SearchName {
    Sweep,
    Nearest,
    Stripe,
}

const SEARCHES: &[(&str, SearchName)] = &[
    ("sweep", SearchName::Sweep),
    ("nearest", SearchName::Nearest),
    ("stripe", SearchName::Stripe),
];

const RECOVERIES: &[(&str, CrashRecovery)] = &[
    ("scan", CrashRecovery::Scan),
    ("checkpoint", CrashRecovery::Checkpoint),
    ("snapshot", CrashRecovery::Snapshot),
];

keys! {
    /// Its keys.
    struct WriteAnywhereTable {
        /// size of a block
        <"1999, section 5.2.2">
        block_bytes: u64 = "block_size" sectors().or(BLOCK_BYTES);
        /// how the next free place is found. `"sweep"`: one direction until the edge of the disk,
        /// then the other; `"nearest"`: either way; `"stripe"`: all holes of the stripe with the most
        <"1999, sections 3.6 and 6.2.2">
        search: SearchName = "search" choice(SEARCHES).or(SearchName::Sweep);
        // 256 KiB of 8 KiB blocks.
        /// with `search = "stripe"`: blocks of a stripe
        <"ours">
        stripe_blocks: u32 = "stripe_blocks" count().to(STRIPE_BLOCKS_MAX).or(32);
        /// how the map is found after a crash. `"scan"`: all of the disk is read, and old places are
        /// free at once; `"checkpoint"`, `"snapshot"`: they are free from the next one on
        <"1999, section 3.6">
        recovery: CrashRecovery = "recovery" choice(RECOVERIES).or(CrashRecovery::Scan);
        // At the 30 s that WAFL lets pass between snapshots (Matthews 1999, §3.6), some 270 blocks a
        // second.
        /// with those two: blocks written between them; earlier when nothing is free
        <"ours">
        checkpoint_blocks: u32 = "checkpoint_blocks" count().or(8192);
    }
}

impl WriteAnywhereLayout {
    pub(super) fn read(table: &mut Table) -> Result<Self, ConfigError> {
        let table = WriteAnywhereTable::read(table)?;
        Ok(Self {
            block_bytes: table.block_bytes,
            search: match table.search {
                SearchName::Sweep => Search::Sweep,
                SearchName::Nearest => Search::Nearest,
                SearchName::Stripe => Search::Stripe { stripe_blocks: table.stripe_blocks },
            },
            recovery: table.recovery,
            checkpoint_blocks: table.checkpoint_blocks,
            table,
        })
    }

    pub(super) fn resolve(&self, table: &mut Map<String, Value>) {
        WriteAnywhereTable::resolve(&self.table, table);
    }

    pub(super) fn keys() -> Vec<Key> {
        WriteAnywhereTable::keys()
    }
}
