//! The `[layout]` table of write-anywhere.

use agewell_layout::write_anywhere::{CrashRecovery, Search};
use serde_json::{Map, Value, json};

use super::super::positive;
use super::read_block_bytes;
use crate::config::{ConfigError, Table};

/// Every version of a block in a new place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteAnywhereLayout {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// How the next free place is found.
    pub search: Search,
    /// How the map is found again after a crash.
    pub recovery: CrashRecovery,
    /// Blocks written between checkpoints or snapshots.
    pub checkpoint_blocks: u32,
}

/// Places of a stripe where nothing else is said; chosen by us: 256 KiB of 8 KiB blocks.
const STRIPE_BLOCKS: u32 = 32;

/// Places of a stripe at most: the counts of free places take memory for each number.
const STRIPE_BLOCKS_MAX: u32 = 4096;

/// Blocks between checkpoints where nothing else is said; chosen by us: at the 30 s that WAFL lets
/// pass between snapshots (Matthews 1999, §3.6), some 270 blocks a second.
const CHECKPOINT_BLOCKS: u32 = 8192;

#[derive(Clone, Copy, PartialEq)]
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

impl WriteAnywhereLayout {
    pub(super) fn read(table: &mut Table) -> Result<Self, ConfigError> {
        let block_bytes = read_block_bytes(table)?;
        let search = match table.choice("search", SEARCHES, Some(SearchName::Sweep))? {
            SearchName::Sweep => Search::Sweep,
            SearchName::Nearest => Search::Nearest,
            SearchName::Stripe => {
                let stripe_blocks = positive(table, "stripe_blocks", STRIPE_BLOCKS)?;
                if stripe_blocks > STRIPE_BLOCKS_MAX {
                    return Err(table.invalid("stripe_blocks", "must be at most 4096"));
                }
                Search::Stripe { stripe_blocks }
            }
        };
        let recovery = table.choice("recovery", RECOVERIES, Some(CrashRecovery::Scan))?;
        let checkpoint_blocks = match recovery {
            CrashRecovery::Scan => CHECKPOINT_BLOCKS,
            _ => positive(table, "checkpoint_blocks", CHECKPOINT_BLOCKS)?,
        };
        Ok(Self { block_bytes, search, recovery, checkpoint_blocks })
    }

    pub(super) fn resolved(self) -> Value {
        let (search, stripe_blocks) = match self.search {
            Search::Sweep => (SearchName::Sweep, None),
            Search::Nearest => (SearchName::Nearest, None),
            Search::Stripe { stripe_blocks } => (SearchName::Stripe, Some(stripe_blocks)),
        };
        let search = SEARCHES.iter().find(|(_, each)| *each == search);
        let recovery = RECOVERIES.iter().find(|(_, each)| *each == self.recovery);
        let mut table = Map::new();
        table.insert("kind".into(), json!("write-anywhere"));
        table.insert("block_size".into(), json!(format!("{} B", self.block_bytes)));
        table.insert("search".into(), json!(search.expect("every search has a name").0));
        if let Some(stripe_blocks) = stripe_blocks {
            table.insert("stripe_blocks".into(), json!(stripe_blocks));
        }
        table.insert("recovery".into(), json!(recovery.expect("every recovery has a name").0));
        if self.recovery != CrashRecovery::Scan {
            table.insert("checkpoint_blocks".into(), json!(self.checkpoint_blocks));
        }
        Value::Object(table)
    }
}
