//! The `[remap]` table: what `agewell_shuffle` reads, and how long a disk must be quiet before a move.

use agewell_config::{Form, Key, Keyed, keys, time};
use agewell_core::{SimDuration, SimTime};
use agewell_shuffle::{RemapKind, ShuffleConfig, ShuffleTable};
use serde_json::{Map, Value, json};

use super::{ConfigError, Table};

/// The `[remap]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct RemapSetup {
    /// What is observed, placed and moved.
    pub shuffle: ShuffleConfig,
    /// With `moves = "idle"`: quiet time before a move begins.
    pub idle_wait: SimDuration,
}

keys! {
    /// What the simulator asks besides.
    struct IdleTable {
        // Long against a burst of requests (hplajw's median gap is 23 ms), short against the idle
        // minutes that follow one.
        /// with `moves = "idle"`: quiet time before a move begins
        idle_wait: SimDuration = "idle_wait" time().or(SimDuration(100_000_000));
    }
}

impl Default for RemapSetup {
    /// Nothing moves.
    fn default() -> Self {
        Self::read(json!({})).expect("no key is required")
    }
}

impl RemapSetup {
    /// Reads the table.
    ///
    /// # Errors
    /// If a key is unknown or a value does not do.
    pub fn read(value: Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[remap]", value)?;
        let shuffle = ShuffleConfig::read(&mut table)?;
        let idle_wait = IdleTable::read(&mut table)?.idle_wait;
        table.finish()?;
        Ok(Self { shuffle, idle_wait })
    }

    /// Whether anything can move at all.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.shuffle.kind == RemapKind::None
    }

    /// The table with every default filled in.
    #[must_use]
    pub fn resolved(&self) -> Value {
        if self.is_identity() {
            return json!({ "kind": "none" });
        }
        let mut table = Map::new();
        ShuffleTable::resolve(&self.shuffle, &mut table);
        IdleTable::resolve(&IdleTable { idle_wait: self.idle_wait }, &mut table);
        Value::Object(table)
    }

    /// The keys of the table.
    #[must_use]
    pub fn keys() -> Vec<Key> {
        [ShuffleTable::keys(), IdleTable::keys()].concat()
    }

    /// When the first rearrangement comes, if any does.
    #[must_use]
    pub fn first_rearrangement(&self) -> Option<SimTime> {
        (!self.is_identity()).then(|| SimTime::ZERO + self.shuffle.first_after)
    }
}
