//! The `[remap]` table: what `agewell_shuffle` reads, and how long a disk must be quiet before a move.

use agewell_core::{SimDuration, SimTime};
use agewell_shuffle::{RemapKind, ShuffleConfig};
use serde_json::{Value, json};

use super::{ConfigError, Table};

/// Quiet time after the last request before a move begins; chosen by us: long against a burst of
/// requests (hplajw's median gap is 23 ms), short against the idle minutes that follow one.
const IDLE_WAIT_DEFAULT: SimDuration = SimDuration(100_000_000);

/// The `[remap]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct RemapSetup {
    /// What is observed, placed and moved.
    pub shuffle: ShuffleConfig,
    /// With `moves = "idle"`: quiet time before a move begins.
    pub idle_wait: SimDuration,
}

impl RemapSetup {
    /// Reads the table.
    ///
    /// # Errors
    /// If a key is unknown or a value does not do.
    pub fn read(value: &Value) -> Result<Self, ConfigError> {
        let mut table = Table::new("[remap]", value.clone())?;
        let mut known = serde_json::Map::new();
        for key in ShuffleConfig::KEYS {
            if let Some(value) = table.value(key) {
                known.insert(key.to_owned(), value);
            }
        }
        let idle_wait = table.duration("idle_wait")?.unwrap_or(IDLE_WAIT_DEFAULT);
        table.finish()?;
        let shuffle = serde_json::from_value(Value::Object(known)).map_err(|error| {
            let text = error.to_string();
            // The crate's own errors name the table; those of the deserializer (a number for a
            // string) do not.
            let place = if text.starts_with("[remap]") { "" } else { "[remap]: " };
            ConfigError(format!("{place}{text}"))
        })?;
        Ok(Self { shuffle, idle_wait })
    }

    /// Nothing moves.
    #[must_use]
    pub fn identity() -> Self {
        Self { shuffle: ShuffleConfig::default(), idle_wait: IDLE_WAIT_DEFAULT }
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
        let mut value = json!(self.shuffle);
        value["idle_wait"] = json!(format!("{} ns", self.idle_wait.0));
        value
    }

    /// When the first rearrangement comes, if any does.
    #[must_use]
    pub fn first_rearrangement(&self) -> Option<SimTime> {
        (!self.is_identity()).then(|| SimTime::ZERO + self.shuffle.first_after)
    }
}
