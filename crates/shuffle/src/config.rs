//! The `[remap]` table of an experiment, checked and with its defaults filled in.
//!
//! Defaults are those of the report where it has them: whole cylinders, once a day, aged(0.8),
//! everything that was accessed, 8 KB blocks, no links, 1:1 interleave, moves in no time (Ruemmler
//! & Wilkes 1991, §4.3, §5).

use agewell_config::{
    ConfigError, Form, Keyed, Size, Table, choice, count, flag, keys, parsed, share, size, time,
};
use agewell_core::{DailyWindow, SECTOR_BYTES, SectorCount, SimDuration};
use serde_json::Value;

use crate::QuantumKind;

const DAY: SimDuration = SimDuration(86_400_000_000_000);
const DEFAULT_BLOCK: SectorCount = SectorCount(16);

/// What the remap stage does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemapKind {
    /// Nothing: every sector stays where it is.
    None,
    /// Organ-pipe shuffling, with or without links.
    Shuffle,
    /// A random permutation of all quanta.
    Random,
    /// Block copying into a hidden region in the middle.
    ReservedCopy,
    /// Block exchange with a region in the middle.
    ReservedExchange,
}

impl RemapKind {
    /// Every kind.
    pub const ALL: [RemapKind; 5] =
        [Self::None, Self::Shuffle, Self::Random, Self::ReservedCopy, Self::ReservedExchange];

    /// The name used in configurations and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Shuffle => "shuffle",
            Self::Random => "random",
            Self::ReservedCopy => "reserved-copy",
            Self::ReservedExchange => "reserved-exchange",
        }
    }
}

/// When the moves of a rearrangement happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveMode {
    /// At once and for nothing, as in the report (§4.3).
    Instant,
    /// As disk requests while the device is idle.
    Idle,
}

impl MoveMode {
    /// The name used in configurations and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Instant => "instant",
            Self::Idle => "idle",
        }
    }
}

/// A checked `[remap]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct ShuffleConfig {
    /// What to do.
    pub kind: RemapKind,
    /// Unit of counting and moving.
    pub quantum: QuantumKind,
    /// Time between rearrangements; `None` rearranges once.
    pub interval: Option<SimDuration>,
    /// When the first rearrangement comes.
    pub first_after: SimDuration,
    /// Weight of the most recent interval, 0 to 1.
    pub alpha: f64,
    /// Share of the accesses that the arranged quanta must cover, above 0 and up to 1.
    pub coverage: f64,
    /// Place link closures as units.
    pub links: bool,
    /// Distance in slots between successive members of a closure.
    pub interleave: u32,
    /// Arrange quanta that were never accessed as well.
    pub arrange_unaccessed: bool,
    /// When the moves happen.
    pub moves: MoveMode,
    /// File-system block that quanta are whole multiples of.
    pub block_size: SectorCount,
    /// Length of the fixed head before the first quantum: where file-system blocks begin.
    pub offset: SectorCount,
    /// How much of the device the workload addresses, from its start; `None` is all.
    pub logical_size: Option<SectorCount>,
    /// Share of the slots in the reserved region of block copying.
    pub reserved: f64,
    /// Part of the day in which requests are not counted.
    pub ignore_window: Option<DailyWindow>,
}

impl Default for ShuffleConfig {
    fn default() -> Self {
        Self {
            kind: RemapKind::None,
            quantum: QuantumKind::Cylinder,
            interval: Some(DAY),
            first_after: DAY,
            alpha: 0.8,
            coverage: 1.0,
            links: false,
            interleave: 1,
            arrange_unaccessed: false,
            moves: MoveMode::Instant,
            block_size: DEFAULT_BLOCK,
            offset: SectorCount(0),
            logical_size: None,
            reserved: 0.05,
            ignore_window: None,
        }
    }
}

/// A whole number of sectors, as a size with its unit.
#[derive(Debug, Clone, Copy)]
struct Sectors(Size);

fn sectors() -> Sectors {
    Sectors(size())
}

impl Form for Sectors {
    type Value = SectorCount;

    fn read(&self, given: &Value) -> Result<SectorCount, String> {
        let bytes = self.0.read(given)?;
        if !bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(": must be a whole number of 512-byte sectors".to_owned());
        }
        Ok(SectorCount(bytes / SECTOR_BYTES))
    }

    fn write(&self, value: &SectorCount) -> Value {
        self.0.write(&value.bytes())
    }

    fn describe(&self) -> String {
        "size, whole sectors".to_owned()
    }

    fn schema(&self) -> Value {
        self.0.schema()
    }
}

/// A time, or never again.
#[derive(Debug, Clone, Copy)]
struct Interval;

impl Form for Interval {
    type Value = Option<SimDuration>;

    fn read(&self, given: &Value) -> Result<Option<SimDuration>, String> {
        if given == "once" {
            return Ok(None);
        }
        time().positive().read(given).map(Some)
    }

    fn write(&self, value: &Option<SimDuration>) -> Value {
        value.as_ref().map_or_else(|| "once".into(), |value| time().write(value))
    }

    fn describe(&self) -> String {
        "time, or `\"once\"`".to_owned()
    }

    fn schema(&self) -> Value {
        serde_json::json!({"anyOf": [time().schema(), {"const": "once"}]})
    }
}

keys! {
    /// The keys of a `[remap]` table.
    pub struct ShuffleTable for ShuffleConfig, ..ShuffleConfig::default(), {
        /// how the data is rearranged; `"none"`: not at all
        kind = "kind" choice(&RemapKind::ALL.map(|each| (each.name(), each))).or(RemapKind::None);
        /// unit of counting and moving
        quantum = "quantum"
            choice(&QuantumKind::ALL.map(|each| (each.name(), each))).or(QuantumKind::Cylinder);
        /// time between rearrangements
        interval = "interval" Interval.or(Some(DAY));
        /// when the first one comes, if not after one interval
        first_after = "first_after" time().positive().or(DAY);
        /// weight of the most recent interval in the aged counts
        alpha = "alpha" share().or(0.8);
        /// share of the accesses that the arranged quanta must cover
        coverage = "coverage" share().or(1.0);
        /// place quanta that follow one another as units
        links = "links" flag().or(false);
        /// distance in slots between members of such a unit
        interleave = "interleave" count().or(1);
        /// also arrange quanta that were never accessed
        arrange_unaccessed = "arrange_unaccessed" flag().or(false);
        /// `"instant"`: at once and free, as in the report; `"idle"`: disk requests in quiet periods,
        /// counted
        moves = "moves" choice(&[
            (MoveMode::Instant.name(), MoveMode::Instant),
            (MoveMode::Idle.name(), MoveMode::Idle),
        ]).or(MoveMode::Instant);
        /// file-system block of which quanta are whole multiples
        block_size = "block_size" sectors().or(DEFAULT_BLOCK);
        /// where file-system blocks begin
        offset = "offset" sectors().or(SectorCount(0));
        /// how much of the device the workload addresses, from its start
        logical_size = "logical_size" sectors().or_else("all");
        // See `crate::ReservedRegion`.
        /// share of the slots in the reserved region of block copying
        reserved = "reserved" share().or(0.05);
        /// part of the day in which requests are not counted
        ignore_window = "ignore_window" parsed::<DailyWindow>("`\"03:00..06:00\"`").optional();
    }
}

impl ShuffleConfig {
    /// Reads the keys; others in `table` are left for somebody else.
    ///
    /// # Errors
    /// If a value does not do, or two do not go together.
    pub fn read(table: &mut Table) -> Result<Self, ConfigError> {
        let mut config = ShuffleTable::read(table)?;
        if !table.has("first_after") {
            config.first_after = config.interval.unwrap_or(DAY);
        }
        if config.block_size.0 == 0 {
            return Err(table.invalid("block_size", "must be at least one sector"));
        }
        if config.arrange_unaccessed && config.coverage < 1.0 {
            let why = "must be false, or leave coverage at \"100 %\"";
            return Err(table.invalid("arrange_unaccessed", why));
        }
        Ok(config)
    }

    /// Coverage in parts per million, as the policies take it.
    #[must_use]
    pub fn coverage_ppm(&self) -> u32 {
        (self.coverage * 1e6).round() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<ShuffleConfig, String> {
        let value = serde_json::from_str(json).expect("it is JSON");
        let mut table = Table::new("[remap]", value).expect("a table");
        ShuffleConfig::read(&mut table).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_table_is_the_identity_with_the_defaults_of_the_report() {
        assert_eq!(parse("{}"), Ok(ShuffleConfig::default()));
    }

    #[test]
    fn every_key_is_read() {
        let config = parse(
            r#"{"kind": "shuffle", "quantum": "half-cylinder", "interval": "4 h", "alpha": 0.2,
                "coverage": "90 %", "links": true, "interleave": 2, "moves": "idle",
                "block_size": "4 KiB", "offset": "4096 B", "logical_size": "335 MiB",
                "reserved": 0.1, "ignore_window": "03:00..06:00"}"#,
        )
        .expect("well formed");
        assert_eq!(config.kind, RemapKind::Shuffle);
        assert_eq!(config.quantum, QuantumKind::HalfCylinder);
        assert_eq!(config.interval, Some(SimDuration(4 * 3_600_000_000_000)));
        assert_eq!(config.first_after, SimDuration(4 * 3_600_000_000_000));
        assert_eq!(config.coverage_ppm(), 900_000);
        assert_eq!(config.block_size, SectorCount(8));
        assert_eq!(config.offset, SectorCount(8));
        assert_eq!(config.moves, MoveMode::Idle);
        assert!(config.ignore_window.is_some());
    }

    #[test]
    fn once_comes_after_a_day_unless_told_otherwise() {
        let config = parse(r#"{"kind": "shuffle", "interval": "once"}"#).expect("well formed");
        assert_eq!((config.interval, config.first_after), (None, DAY));
        let config = parse(r#"{"interval": "once", "first_after": "2 h"}"#).expect("well formed");
        assert_eq!(config.first_after, SimDuration(7_200_000_000_000));
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let json = r#"{"kind": "reserved-copy", "quantum": "block", "interval": "90 min",
                       "first_after": "1500 us", "coverage": 0.6, "ignore_window": "23:00..01:30"}"#;
        let config = parse(json).expect("well formed");
        let written = ShuffleTable::resolved(&config).to_string();
        assert_eq!(parse(&written), Ok(config));
    }

    #[test]
    fn a_value_of_the_wrong_form_is_refused_with_its_key_and_an_example() {
        for (json, part) in [
            (r#"{"kind": "shufle"}"#, "did you mean 'shuffle'?"),
            (r#"{"quantum": "sector"}"#, "use one of block, track"),
            (r#"{"interval": "24"}"#, "interval"),
            (r#"{"interval": "0 s"}"#, "longer than nothing"),
            (r#"{"alpha": 1.5}"#, "alpha must be a share"),
            (r#"{"coverage": 90}"#, "coverage must be a share"),
            (r#"{"coverage": "90"}"#, "90 %"),
            (r#"{"offset": "100 B"}"#, "512-byte sectors"),
            (r#"{"block_size": "0 B"}"#, "block_size"),
            (r#"{"interleave": 0}"#, "interleave"),
            (r#"{"moves": "later"}"#, "use one of instant, idle"),
            (r#"{"ignore_window": "3..6"}"#, "ignore_window: "),
            (r#"{"arrange_unaccessed": true, "coverage": 0.5}"#, "coverage"),
        ] {
            let message = parse(json).expect_err(json);
            assert!(message.contains(part), "{json}: {message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
