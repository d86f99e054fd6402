//! The keys of `[layout]` that make a log reorganise what is read.

use agewell_layout::reorganise::{Decide, Related, ReorganiseSetting, When};
use serde_json::{Value, json};

use super::small;
use crate::config::{ConfigError, Table};

/// What is put together, why and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reorganise {
    /// What belongs together.
    pub related: Related,
    /// Whether it is worth being moved.
    pub decide: Decide,
    /// When it is.
    pub when: When,
    /// Most bytes that are moved together.
    pub partition_bytes: u64,
    /// Most times that a block is moved before it is written again; 255 for no bound.
    pub moves_max: u8,
    /// Most blocks moved for each block read from disk, if there is a bound.
    pub budget: Option<f64>,
}

const DECIDES: [(&str, Decide); 2] = [("gain", Decide::Gain), ("value", Decide::Value)];

impl Reorganise {
    /// The keys of `table`; none where nothing is reorganised.
    pub(super) fn read(
        table: &mut Table,
        segment_bytes: u64,
        block_bytes: u64,
    ) -> Result<Option<Self>, ConfigError> {
        let mut related = vec![("none", None)];
        related.extend(Related::ALL.map(|each| (each.name(), Some(each))));
        let related = table.choice("reorganise", &related, Some(None))?;
        let decide = table.choice("decide", &DECIDES, Some(Decide::Gain))?;
        let by_gain = ReorganiseSetting::by_gain(1);
        let default = match decide {
            Decide::Value => ReorganiseSetting::matthews_1999(1),
            Decide::Gain => by_gain,
        };
        let moments = When::ALL.map(|when| (when.name(), when));
        let when = table.choice("when", &moments, Some(default.when))?;
        let partition_bytes = table.bytes("partition_size")?.unwrap_or(segment_bytes);
        let moves_max = small(table, "moves_max", u32::from(default.moves_max))?;
        let budget = table.number("budget", 0.0, 1e9)?;
        let Some(related) = related else { return Ok(None) };
        let Ok(moves_max) = u8::try_from(moves_max) else {
            return Err(table.invalid("moves_max", "must be 255 or less, which is no bound"));
        };
        if partition_bytes < 2 * block_bytes {
            return Err(table.invalid("partition_size", "must be two blocks or more"));
        }
        Ok(Some(Self { related, decide, when, partition_bytes, moves_max, budget }))
    }

    /// As the policy takes it, beside a cache of `memory_blocks`.
    pub(crate) fn setting(&self, block_bytes: u64, memory_blocks: u32) -> ReorganiseSetting {
        let partition_blocks =
            u32::try_from(self.partition_bytes / block_bytes).unwrap_or(u32::MAX);
        ReorganiseSetting {
            related: self.related,
            decide: self.decide,
            when: self.when,
            partition_blocks,
            moves_max: self.moves_max,
            memory_blocks,
            budget: self.budget.unwrap_or(f64::INFINITY),
        }
    }

    /// Adds the keys to `table`.
    pub(super) fn resolve(&self, table: &mut Value) {
        table["reorganise"] = json!(self.related.name());
        table["decide"] = json!(self.decide.name());
        table["when"] = json!(self.when.name());
        table["partition_size"] = json!(format!("{} B", self.partition_bytes));
        table["moves_max"] = json!(self.moves_max);
        if let Some(budget) = self.budget {
            table["budget"] = json!(budget);
        }
    }
}
