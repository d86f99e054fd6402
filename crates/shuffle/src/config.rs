//! The `[remap]` table of an experiment, checked and with its defaults filled in.
//!
//! Defaults are those of the report where it has them: whole cylinders, once a day, aged(0.8),
//! everything that was accessed, 8 KB blocks, no links, 1:1 interleave, moves in no time (Ruemmler
//! & Wilkes 1991, §4.3, §5).

use agewell_core::{
    DailyWindow, SECTOR_BYTES, SectorCount, SimDuration, parse_bytes, parse_duration,
};
use serde::{Deserialize, Serialize};

use crate::{QuantumKind, ShuffleError};

const DAY: SimDuration = SimDuration(86_400_000_000_000);
const DEFAULT_BLOCK: SectorCount = SectorCount(16);
const DEFAULT_ALPHA: f64 = 0.8;
/// Chosen by us, see [`crate::ReservedRegion`].
const DEFAULT_RESERVED: f64 = 0.05;

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

    /// The kind called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RemapTableText", into = "RemapTableText")]
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
            alpha: DEFAULT_ALPHA,
            coverage: 1.0,
            links: false,
            interleave: 1,
            arrange_unaccessed: false,
            moves: MoveMode::Instant,
            block_size: DEFAULT_BLOCK,
            offset: SectorCount(0),
            logical_size: None,
            reserved: DEFAULT_RESERVED,
            ignore_window: None,
        }
    }
}

impl ShuffleConfig {
    /// The keys that a `[remap]` table may have.
    pub const KEYS: [&'static str; 15] = [
        "kind",
        "quantum",
        "interval",
        "first_after",
        "alpha",
        "coverage",
        "links",
        "interleave",
        "arrange_unaccessed",
        "moves",
        "block_size",
        "offset",
        "logical_size",
        "reserved",
        "ignore_window",
    ];

    /// Coverage in parts per million, as the policies take it.
    #[must_use]
    pub fn coverage_ppm(&self) -> u32 {
        (self.coverage * 1e6).round() as u32
    }
}

/// The table as it is written: every key may be absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct RemapTableText {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantum: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alpha: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<Share>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interleave: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrange_unaccessed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moves: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved: Option<Share>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_window: Option<String>,
}

/// A share: `"90 %"`, or 0.9.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Share {
    Text(String),
    Number(f64),
}

impl TryFrom<RemapTableText> for ShuffleConfig {
    type Error = ShuffleError;

    fn try_from(text: RemapTableText) -> Result<Self, ShuffleError> {
        let default = Self::default();
        let kind =
            named("kind", text.kind, RemapKind::from_name, &RemapKind::ALL.map(RemapKind::name))?;
        let quantum = named(
            "quantum",
            text.quantum,
            QuantumKind::from_name,
            &QuantumKind::ALL.map(QuantumKind::name),
        )?;
        let moves = |name: &str| {
            [MoveMode::Instant, MoveMode::Idle].into_iter().find(|mode| mode.name() == name)
        };
        let moves = named("moves", text.moves, moves, &["instant", "idle"])?;
        let interval = interval(text.interval)?;
        let first_after = duration("first_after", text.first_after)?;
        let config = Self {
            kind: kind.unwrap_or(default.kind),
            quantum: quantum.unwrap_or(default.quantum),
            interval,
            first_after: first_after.or(interval).unwrap_or(DAY),
            alpha: alpha(text.alpha)?.unwrap_or(default.alpha),
            coverage: share("coverage", text.coverage.as_ref())?.unwrap_or(default.coverage),
            links: text.links.unwrap_or(default.links),
            interleave: text.interleave.unwrap_or(default.interleave),
            arrange_unaccessed: text.arrange_unaccessed.unwrap_or(default.arrange_unaccessed),
            moves: moves.unwrap_or(default.moves),
            block_size: sectors("block_size", text.block_size)?.unwrap_or(default.block_size),
            offset: sectors("offset", text.offset)?.unwrap_or(default.offset),
            logical_size: sectors("logical_size", text.logical_size)?,
            reserved: share("reserved", text.reserved.as_ref())?.unwrap_or(default.reserved),
            ignore_window: window(text.ignore_window)?,
        };
        config.checked()
    }
}

impl ShuffleConfig {
    fn checked(self) -> Result<Self, ShuffleError> {
        let refuse = |key, given: String, expected: &str| {
            Err(ShuffleError::Value { key, given, expected: expected.to_owned() })
        };
        if self.block_size.0 == 0 {
            return refuse("block_size", "0".to_owned(), "at least one sector, as \"8 KiB\"");
        }
        if self.interleave == 0 {
            return refuse("interleave", "0".to_owned(), "1 for contiguous, or a larger step");
        }
        if self.arrange_unaccessed && self.coverage < 1.0 {
            return refuse(
                "arrange_unaccessed",
                "true".to_owned(),
                "false, or leave coverage at \"100 %\"",
            );
        }
        Ok(self)
    }
}

impl From<ShuffleConfig> for RemapTableText {
    fn from(config: ShuffleConfig) -> Self {
        let bytes = |sectors: SectorCount| format!("{} B", sectors.bytes());
        Self {
            kind: Some(config.kind.name().to_owned()),
            quantum: Some(config.quantum.name().to_owned()),
            interval: Some(config.interval.map_or_else(|| "once".to_owned(), duration_text)),
            first_after: Some(duration_text(config.first_after)),
            alpha: Some(config.alpha),
            coverage: Some(Share::Number(config.coverage)),
            links: Some(config.links),
            interleave: Some(config.interleave),
            arrange_unaccessed: Some(config.arrange_unaccessed),
            moves: Some(config.moves.name().to_owned()),
            block_size: Some(bytes(config.block_size)),
            offset: Some(bytes(config.offset)),
            logical_size: config.logical_size.map(bytes),
            reserved: Some(Share::Number(config.reserved)),
            ignore_window: config.ignore_window.map(|window| window.to_string()),
        }
    }
}

fn named<T>(
    key: &'static str,
    text: Option<String>,
    find: impl Fn(&str) -> Option<T>,
    names: &[&str],
) -> Result<Option<T>, ShuffleError> {
    let Some(given) = text else { return Ok(None) };
    if let Some(found) = find(&given) {
        return Ok(Some(found));
    }
    let expected = format!("one of {}", names.join(", "));
    Err(ShuffleError::Value { key, given: format!("\"{given}\""), expected })
}

fn duration(key: &'static str, text: Option<String>) -> Result<Option<SimDuration>, ShuffleError> {
    let Some(given) = text else { return Ok(None) };
    match parse_duration(&given) {
        Ok(duration) if duration > SimDuration::ZERO => Ok(Some(duration)),
        _ => Err(ShuffleError::Value {
            key,
            given: format!("\"{given}\""),
            expected: "a time above zero with a unit, as \"1 day\" or \"4 h\"".to_owned(),
        }),
    }
}

fn interval(text: Option<String>) -> Result<Option<SimDuration>, ShuffleError> {
    if text.as_deref() == Some("once") {
        return Ok(None);
    }
    Ok(duration("interval", text)?.or(Some(DAY)))
}

fn alpha(given: Option<f64>) -> Result<Option<f64>, ShuffleError> {
    match given {
        Some(alpha) if !(alpha > 0.0 && alpha <= 1.0) => Err(ShuffleError::Value {
            key: "alpha",
            given: alpha.to_string(),
            expected: "a number above 0 and up to 1".to_owned(),
        }),
        given => Ok(given),
    }
}

fn share(key: &'static str, given: Option<&Share>) -> Result<Option<f64>, ShuffleError> {
    let (value, written) = match given {
        None => return Ok(None),
        Some(Share::Number(number)) => (Some(*number), number.to_string()),
        Some(Share::Text(text)) => {
            let percent = text.trim().strip_suffix('%');
            let value = percent.and_then(|number| number.trim().parse::<f64>().ok());
            (value.map(|percent| percent / 100.0), format!("\"{text}\""))
        }
    };
    match value {
        Some(share) if share > 0.0 && share <= 1.0 => Ok(Some(share)),
        _ => Err(ShuffleError::Value {
            key,
            given: written,
            expected: "a share above nothing and up to all, as \"90 %\" or 0.9".to_owned(),
        }),
    }
}

fn sectors(key: &'static str, text: Option<String>) -> Result<Option<SectorCount>, ShuffleError> {
    let Some(given) = text else { return Ok(None) };
    match parse_bytes(&given) {
        Ok(bytes) if bytes % SECTOR_BYTES == 0 => Ok(Some(SectorCount(bytes / SECTOR_BYTES))),
        _ => Err(ShuffleError::Value {
            key,
            given: format!("\"{given}\""),
            expected: "a whole number of 512-byte sectors with a unit, as \"8 KiB\"".to_owned(),
        }),
    }
}

fn window(text: Option<String>) -> Result<Option<DailyWindow>, ShuffleError> {
    let Some(given) = text else { return Ok(None) };
    given.parse().map(Some).map_err(|_| ShuffleError::Value {
        key: "ignore_window",
        given: format!("\"{given}\""),
        expected: "a part of the day, as \"03:00..06:00\"".to_owned(),
    })
}

/// The shortest text that reads back as exactly this duration.
fn duration_text(duration: SimDuration) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ];
    let fits = UNITS.iter().find(|(_, ns)| duration.0.is_multiple_of(*ns));
    let (unit, ns) = fits.copied().unwrap_or(("ns", 1));
    format!("{} {unit}", duration.0 / ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<ShuffleConfig, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
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
        let written = serde_json::to_string(&config).expect("plain values");
        assert_eq!(parse(&written), Ok(config));
    }

    #[test]
    fn a_value_of_the_wrong_form_is_refused_with_its_key_and_an_example() {
        for (json, part) in [
            (r#"{"kind": "shufle"}"#, "kind = \"shufle\""),
            (r#"{"quantum": "sector"}"#, "one of block, track"),
            (r#"{"interval": "24"}"#, "interval"),
            (r#"{"interval": "0 s"}"#, "above zero"),
            (r#"{"alpha": 1.5}"#, "alpha = 1.5"),
            (r#"{"coverage": 90}"#, "coverage = 90"),
            (r#"{"coverage": "90"}"#, "90 %"),
            (r#"{"offset": "100 B"}"#, "512-byte sectors"),
            (r#"{"block_size": "0 B"}"#, "block_size"),
            (r#"{"interleave": 0}"#, "interleave"),
            (r#"{"moves": "later"}"#, "instant, idle"),
            (r#"{"ignore_window": "3..6"}"#, "03:00..06:00"),
            (r#"{"arrange_unaccessed": true, "coverage": 0.5}"#, "coverage"),
        ] {
            let message = parse(json).expect_err(json);
            assert!(message.contains(part), "{json}: {message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
