//! The keys of `[layout]` that make a log reorganise what is read.

use agewell_config::{ConfigError, Table};
use agewell_layout::reorganise::{Decide, Related, ReorganiseSetting, When};

use super::log_table::LogTable;

/// Which blocks are put together, why and when.
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

impl Reorganise {
    /// The reorganisation of `keys` of `table`, defaults filled in; none where nothing is
    /// reorganised.
    pub(super) fn of(keys: &mut LogTable, table: &Table) -> Result<Option<Self>, ConfigError> {
        let default = match keys.decide {
            Decide::Value => ReorganiseSetting::matthews_1999(1),
            Decide::Gain => ReorganiseSetting::by_gain(1),
        };
        let when = *keys.when.get_or_insert(default.when);
        let moves_max = *keys.moves_max.get_or_insert(u32::from(default.moves_max));
        let partition_bytes = *keys.partition_bytes.get_or_insert(keys.segment_bytes);
        let Some(related) = keys.reorganise else { return Ok(None) };
        if partition_bytes < 2 * keys.block_bytes {
            return Err(table.invalid("partition_size", "must be two blocks or more"));
        }
        Ok(Some(Self {
            related,
            decide: keys.decide,
            when,
            partition_bytes,
            // The key's form bounds it.
            moves_max: moves_max as u8,
            budget: keys.budget,
        }))
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
}
