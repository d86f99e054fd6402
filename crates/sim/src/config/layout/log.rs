//! The `[layout]` table of a log.

use agewell_config::{ConfigError, Keyed, Table};
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::{Ages, CollectedOrder, Victim};

use super::SEGMENT_BLOCKS_MAX;
use super::log_table::{CollectName, LogTable, PlacementChoice, TriggerName, VictimName};
use super::reorganise::Reorganise;

/// The log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLayout {
    /// Its keys, with what depends on others filled in.
    pub keys: LogTable,
    /// Which segments are collected.
    pub victim: Victim,
    /// How.
    pub collect: Collecting,
    /// When.
    pub trigger: LogTrigger,
    /// Which ages it uses.
    pub ages: Ages,
    /// Segments of another size for collected data, if any.
    pub two_sizes: Option<TwoSizes>,
    /// What is put together because it is read together, if anything.
    pub reorganise: Option<Reorganise>,
}

/// The rule that decides on the mechanism.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collecting {
    /// One mechanism, or the rule of Matthews 1999.
    Fixed(Collect),
    /// Whichever of these costs least, by look-ahead simulations on copies of the log.
    Adaptive(Vec<Mechanism>),
}

/// When collection begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LogTrigger {
    /// When no segment beyond the reserve is free and one is needed.
    NoFreeSegment,
    /// While more than this share of the written blocks is dead; the disk is as large as it takes.
    Garbage(f64),
    /// Besides, while less than this share of the room there is lies in free segments.
    FreeShare(f64),
}

/// Large segments for collected data beside the small ones for new data (Matthews 1999, §5.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoSizes {
    /// Bytes of a segment for collected data.
    pub collected_segment_bytes: u64,
    /// Share of the disk for collected data.
    pub collected_share: f64,
}

impl LogLayout {
    /// Reads the keys; others in `table` are left to other readers.
    ///
    /// # Errors
    /// If a value does not do, or some do not go together.
    pub fn read(table: &mut Table) -> Result<Self, ConfigError> {
        let mut keys = LogTable::read(table)?;
        let block_bytes = keys.block_bytes;
        let check_segment = |key: &str, segment_bytes: u64| {
            let blocks = segment_bytes / block_bytes;
            let is_whole = segment_bytes.is_multiple_of(block_bytes);
            if blocks == 0 || !is_whole || blocks > SEGMENT_BLOCKS_MAX {
                return Err(table.invalid(key, "must be from 1 to 2^24 whole blocks"));
            }
            Ok(())
        };
        check_segment("segment_size", keys.segment_bytes)?;
        if let Some(bytes) = keys.collected_segment_bytes {
            check_segment("collected_segment_size", bytes)?;
        }
        for zone in &keys.zones {
            check_segment("zones", zone.segment_bytes)?;
        }
        let reorganise = Reorganise::of(&mut keys, table)?;
        let layout = Self {
            victim: match keys.victim {
                VictimName::Plain(victim) => victim,
                VictimName::RandomGreedy => Victim::RandomGreedy { choices: keys.choices },
                VictimName::WindowedGreedy => Victim::WindowedGreedy { window: keys.window },
            },
            collect: match keys.collect {
                CollectName::Always(mechanism) => Collecting::Fixed(Collect::Always(mechanism)),
                CollectName::Matthews1999 => {
                    Collecting::Fixed(Collect::Matthews1999(keys.plug_candidate))
                }
                CollectName::Adaptive => Collecting::Adaptive(keys.mechanisms.clone()),
            },
            trigger: match keys.trigger {
                TriggerName::NoFreeSegment => LogTrigger::NoFreeSegment,
                TriggerName::Garbage => LogTrigger::Garbage(keys.garbage),
                TriggerName::FreeShare => LogTrigger::FreeShare(keys.free_share),
            },
            ages: Ages { segment: keys.segment_age, order: keys.collected_order },
            two_sizes: keys.collected_segment_bytes.map(|collected_segment_bytes| TwoSizes {
                collected_segment_bytes,
                collected_share: keys.collected_share,
            }),
            reorganise,
            keys,
        };
        layout.check(table)?;
        Ok(layout)
    }

    fn check(&self, table: &Table) -> Result<(), ConfigError> {
        if let Collecting::Adaptive(mechanisms) = &self.collect {
            if mechanisms.is_empty() {
                return Err(table.invalid("mechanisms", "must name at least one"));
            }
            for (place, mechanism) in mechanisms.iter().enumerate() {
                if mechanisms[..place].contains(mechanism) {
                    let name = mechanism.name();
                    let twice = format_args!("name '{name}' twice; name each once");
                    return Err(table.invalid("mechanisms", twice));
                }
            }
            if self.keys.placement == PlacementChoice::Oracle {
                return Err(table.invalid(
                    "placement",
                    "an oracle knows one log's writes, not its rehearsals'; use collect = \"clean\"",
                ));
            }
        }
        let least = self.keys.zones.iter().map(|zone| zone.segment_bytes / self.keys.block_bytes);
        let collected =
            self.keys.collected_segment_bytes.map(|bytes| bytes / self.keys.block_bytes);
        let least = least.chain(collected).chain([u64::from(self.segment_blocks())]).min();
        if u64::from(self.keys.record_blocks) >= least.unwrap_or(1) {
            return Err(table.invalid("record_blocks", "must leave room for data in a segment"));
        }
        if self.keys.record_blocks > 0 && self.reorganise.is_some() {
            return Err(table.invalid("record_blocks", "does not go with reorganise"));
        }
        let total: f64 = self.keys.zones.iter().map(|zone| zone.share).sum();
        let is_bad = self.keys.zones.iter().any(|zone| zone.share <= 0.0)
            || total.is_nan()
            || (total - 1.0).abs() > 1e-6;
        if !self.keys.zones.is_empty() && is_bad {
            return Err(table.invalid("zones", "must have shares above 0 that add up to 1"));
        }
        if self.two_sizes.is_some() && !self.keys.zones.is_empty() {
            return Err(table.invalid("zones", "do not go with collected_segment_size"));
        }
        if self.reorganise.is_some()
            && (self.keys.placement == PlacementChoice::Oracle
                || self.two_sizes.is_some()
                || !self.keys.zones.is_empty())
        {
            return Err(table.invalid(
                "reorganise",
                "goes neither with placement = \"oracle\" nor with segments of several sizes",
            ));
        }
        if self.reorganise.is_some() && self.ages.order == CollectedOrder::Age {
            return Err(table.invalid(
                "collected_order",
                "by age would take apart what reorganise puts together; use \"found\"",
            ));
        }
        if self.two_sizes.is_some() && self.keys.placement != PlacementChoice::UserCollected {
            return Err(table.invalid(
                "collected_segment_size",
                "needs placement = \"user-collected\", which keeps collected data apart",
            ));
        }
        Ok(())
    }

    /// Blocks of a segment for new data.
    #[must_use]
    pub fn segment_blocks(&self) -> u32 {
        (self.keys.segment_bytes / self.keys.block_bytes) as u32
    }
}
