//! What is held against one another, behind one trait.

mod agewell;
mod ceiling;
mod fjall;
mod overwritten;
mod redb;
mod sqlite;

use std::error::Error;
use std::path::Path;

use agewell_log::policy::mechanism::Mechanism;
use serde_json::Value;

use crate::load::{BLOCK_BYTES, TRANSACTION_BLOCKS};

/// Whatever went wrong: it is printed, and ends a trial.
pub type Failure = Box<dyn Error + Send + Sync>;

/// What writes 64 random blocks at once.
pub trait Store: Send + Sync {
    /// Gives `writes` their new data, all or nothing but where the store says otherwise; they are on the
    /// medium when it returns.
    fn write(&self, writes: &[(u32, &[u8])]) -> Result<(), Failure>;

    /// Fills `into` with the data of `block`; false if there is none.
    fn read(&self, block: u32, into: &mut [u8]) -> Result<bool, Failure>;

    /// Blocks that one `write` may have.
    fn write_blocks_max(&self) -> usize {
        // Chosen by us: large enough that filling takes no time, small enough to leave no great holes.
        16 * TRANSACTION_BLOCKS
    }

    /// Whether what was written can be read.
    fn keeps(&self) -> bool {
        true
    }

    /// What it counts itself.
    fn counts(&self) -> Value {
        Value::Null
    }

    /// Closes it in order.
    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// All of them, in the order of the table: name, and what it does for one transaction.
pub const NAMES: [(&str, &str); 12] = [
    ("ceiling", "one write of 260 KiB past the page cache, one flush; keeps nothing"),
    ("agewell-clean", "agewell, segments cleaned"),
    ("agewell-plug", "agewell, holes plugged"),
    ("agewell-thread", "agewell, holes threaded"),
    ("agewell-adaptive", "agewell, as it chooses"),
    ("agewell-clean-behind", "agewell, segments cleaned by a thread behind"),
    ("agewell-plug-behind", "agewell, holes plugged by a thread behind"),
    ("redb", "redb, durability Immediate (one flush)"),
    ("fjall", "fjall, batch with SyncData"),
    ("fjall-separated", "the same, values apart from keys"),
    ("sqlite", "SQLite, WAL, synchronous=FULL, pages of 4096 bytes"),
    ("overwritten", "a file overwritten in place, past the page cache, one flush; not atomic"),
];

/// Whether `name` is one of ours.
pub fn is_ours(name: &str) -> bool {
    name.starts_with("agewell")
}

/// Whether `name` is a store: atomic, and it keeps what it is given.
pub fn is_store(name: &str) -> bool {
    !matches!(name, "ceiling" | "overwritten")
}

/// Blocks that are live in stores that are `full` per cent full on `budget_bytes`: that share of what
/// users of an agewell store of this size may have.
pub fn live_blocks(budget_bytes: u64, full_percent: f64) -> Result<u32, Failure> {
    Ok((agewell::capacity_blocks(budget_bytes)? as f64 * full_percent / 100.0) as u32)
}

/// Makes the store `name` in `folder`, for `blocks` blocks on `budget_bytes`.
pub fn create(
    name: &str,
    folder: &Path,
    budget_bytes: u64,
    blocks: u32,
) -> Result<Box<dyn Store>, Failure> {
    let path = folder.join("store");
    let mechanism = name.strip_prefix("agewell-").map(|how| how.trim_end_matches("-behind"));
    let agewell = |mechanism: Option<Mechanism>| {
        agewell::create(&path, budget_bytes, mechanism, name.ends_with("-behind"))
    };
    match mechanism.unwrap_or(name) {
        "clean" => agewell(Some(Mechanism::Clean)),
        "plug" => agewell(Some(Mechanism::Plug)),
        "thread" => agewell(Some(Mechanism::Thread)),
        "adaptive" => agewell(None),
        "redb" => redb::create(&path, budget_bytes),
        "fjall" => fjall::create(&path, budget_bytes, false),
        "fjall-separated" => fjall::create(&path, budget_bytes, true),
        "sqlite" => sqlite::create(&path, budget_bytes),
        "overwritten" => overwritten::create(&path, blocks),
        "ceiling" => ceiling::create(&path, u64::from(blocks) * BLOCK_BYTES as u64),
        _ => Err(format!("no store is called {name:?}").into()),
    }
}
