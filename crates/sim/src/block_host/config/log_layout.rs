//! The `[layout]` table of a log.

use agewell_core::parse_bytes;
use agewell_log::policy::mechanism::{Collect, Mechanism, PlugCandidate};
use agewell_log::{Ages, CollectedOrder, Header, SegmentAge, Victim};
use serde_json::{Value, json};

use super::host::SEGMENT_BLOCKS_MAX;
use super::reorganise::Reorganise;
use super::{positive, small};
use crate::config::{ConfigError, Table};

/// The log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLayout {
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Which segments are collected.
    pub victim: Victim,
    /// How.
    pub collect: Collecting,
    /// When.
    pub trigger: LogTrigger,
    /// What it goes by when it goes by ages.
    pub ages: Ages,
    /// What filling a hole moves beside the block.
    pub header: Header,
    /// Whether neighbouring holes are filled by one transfer.
    pub join_holes: bool,
    /// Most segments that one cleaning reads; 0 for as many as free one.
    pub batch_segments: u32,
    /// Segments kept free.
    pub reserve_segments: u32,
    /// Which open log a block goes to.
    pub placement: PlacementChoice,
    /// Open logs of the placement.
    pub logs: u32,
    /// Segments of another size for collected data, if any.
    pub two_sizes: Option<TwoSizes>,
    /// Zones of the disk with segments of their own size, from its beginning on; none for one size.
    pub zones: Vec<ZoneSize>,
    /// What is put together because it is read together, if anything.
    pub reorganise: Option<Reorganise>,
}

/// A zone of the disk, for any data (Matthews 1999, §5.3: zones differ in bandwidth).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ZoneSize {
    /// Share of the disk.
    pub share: f64,
    /// Bytes of its segments.
    pub segment_bytes: u64,
}

/// Who decides on the mechanism.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collecting {
    /// One mechanism, or the rule of Matthews 1999.
    Fixed(Collect),
    /// Whichever of these costs least, as rehearsals on copies of the log show.
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

/// A placement by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementChoice {
    /// One log.
    None,
    /// New and collected data apart.
    UserCollected,
    /// Levels by age.
    MultiLog,
    /// Dynamic data clustering.
    Dac,
    /// Hotness of segments.
    Sfs,
    /// Fading average.
    Fadac,
    /// Inferred lifetimes.
    SepBit,
    /// Measured death rates; ours.
    LifeTable,
    /// The known time of each block's death.
    Oracle,
}

/// Large segments for collected data beside the small ones for new data (Matthews 1999, §5.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoSizes {
    /// Bytes of a segment for collected data.
    pub collected_segment_bytes: u64,
    /// Share of the disk for collected data.
    pub collected_share: f64,
}

const PLACEMENTS: &[(&str, PlacementChoice)] = &[
    ("none", PlacementChoice::None),
    ("user-collected", PlacementChoice::UserCollected),
    ("multi-log", PlacementChoice::MultiLog),
    ("dac", PlacementChoice::Dac),
    ("sfs", PlacementChoice::Sfs),
    ("fadac", PlacementChoice::Fadac),
    ("sepbit", PlacementChoice::SepBit),
    ("life-table", PlacementChoice::LifeTable),
    ("oracle", PlacementChoice::Oracle),
];

const HEADERS: &[(&str, Header)] =
    &[("none", Header::Free), ("block", Header::Block), ("segment", Header::Segment)];

const SEGMENT_AGES: &[(&str, SegmentAge)] =
    &[("data", SegmentAge::Data), ("block", SegmentAge::Block), ("segment", SegmentAge::Segment)];

const PLUG_CANDIDATES: &[(&str, PlugCandidate)] =
    &[("least-utilized", PlugCandidate::LeastUtilized), ("policy", PlugCandidate::Policy)];

const COLLECTED_ORDERS: &[(&str, CollectedOrder)] =
    &[("found", CollectedOrder::Found), ("age", CollectedOrder::Age)];

/// The name of `value` in its table of names.
fn name_in<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    let found = names.iter().find(|(_, known)| known == value);
    found.expect("every value stands in its table of names").0
}

impl PlacementChoice {
    fn name(self) -> &'static str {
        name_in(PLACEMENTS, &self)
    }
}

impl LogLayout {
    /// What is left of the table when its kind has been read.
    pub(super) fn read(mut table: Table) -> Result<Self, ConfigError> {
        let block_bytes = super::layout::read_block_bytes(&mut table)?;
        let segment_bytes = table.bytes("segment_size")?.unwrap_or(256 << 10);
        Self::check_segment(&table, "segment_size", segment_bytes, block_bytes)?;
        let layout = Self {
            segment_bytes,
            block_bytes,
            victim: Self::read_victim(&mut table)?,
            collect: Self::read_collect(&mut table)?,
            trigger: Self::read_trigger(&mut table)?,
            ages: Ages {
                segment: table.choice("segment_age", SEGMENT_AGES, Some(SegmentAge::Data))?,
                order: table.choice(
                    "collected_order",
                    COLLECTED_ORDERS,
                    Some(CollectedOrder::Found),
                )?,
            },
            header: table.choice("header", HEADERS, Some(Header::Free))?,
            join_holes: table.boolean("join_holes")?.unwrap_or(true),
            batch_segments: small(&mut table, "batch_segments", 0)?,
            reserve_segments: positive(&mut table, "reserve_segments", 1)?,
            placement: table.choice("placement", PLACEMENTS, Some(PlacementChoice::None))?,
            logs: positive(&mut table, "logs", 6)?,
            two_sizes: Self::read_two_sizes(&mut table, block_bytes)?,
            zones: Self::read_zones(&mut table, block_bytes)?,
            reorganise: Reorganise::read(&mut table, segment_bytes, block_bytes)?,
        };
        if layout.two_sizes.is_some() && !layout.zones.is_empty() {
            return Err(table.invalid("zones", "do not go with collected_segment_size"));
        }
        if !(2..=256).contains(&layout.logs) {
            return Err(table.invalid("logs", "must be from 2 to 256"));
        }
        if matches!(layout.collect, Collecting::Adaptive(_))
            && layout.placement == PlacementChoice::Oracle
        {
            return Err(table.invalid(
                "placement",
                "an oracle knows one log's writes, not its rehearsals'; use collect = \"clean\"",
            ));
        }
        if layout.reorganise.is_some()
            && (layout.placement == PlacementChoice::Oracle
                || layout.two_sizes.is_some()
                || !layout.zones.is_empty())
        {
            return Err(table.invalid(
                "reorganise",
                "goes neither with placement = \"oracle\" nor with segments of several sizes",
            ));
        }
        if layout.reorganise.is_some() && layout.ages.order == CollectedOrder::Age {
            return Err(table.invalid(
                "collected_order",
                "by age would take apart what reorganise puts together; use \"found\"",
            ));
        }
        if layout.two_sizes.is_some() && layout.placement != PlacementChoice::UserCollected {
            return Err(table.invalid(
                "collected_segment_size",
                "needs placement = \"user-collected\", which keeps collected data apart",
            ));
        }
        table.finish()?;
        Ok(layout)
    }

    fn check_segment(
        table: &Table,
        key: &str,
        segment_bytes: u64,
        block_bytes: u64,
    ) -> Result<(), ConfigError> {
        let blocks = segment_bytes / block_bytes;
        if blocks == 0 || !segment_bytes.is_multiple_of(block_bytes) || blocks > SEGMENT_BLOCKS_MAX
        {
            return Err(table.invalid(key, "must be from 1 to 2^24 whole blocks"));
        }
        Ok(())
    }

    fn read_victim(table: &mut Table) -> Result<Victim, ConfigError> {
        let choices = positive(table, "choices", 10)?;
        let window = positive(table, "window", 100)?;
        let victims = [
            ("greedy", Victim::Greedy),
            ("cost-age", Victim::CostAge),
            ("cost-age-cache", Victim::CostAgeCache),
            ("benefit-root-age", Victim::BenefitRootAge),
            ("renewal", Victim::Renewal),
            ("fifo", Victim::Fifo),
            ("random-greedy", Victim::RandomGreedy { choices }),
            ("windowed-greedy", Victim::WindowedGreedy { window }),
        ];
        table.choice("victim", &victims, Some(Victim::Greedy))
    }

    fn read_collect(table: &mut Table) -> Result<Collecting, ConfigError> {
        #[derive(Clone, Copy)]
        enum Rule {
            Fixed(Collect),
            Adaptive,
        }
        let least = PlugCandidate::LeastUtilized;
        let candidate = table.choice("plug_candidate", PLUG_CANDIDATES, Some(least))?;
        let rules = [
            ("clean", Rule::Fixed(Collect::Always(Mechanism::Clean))),
            ("plug", Rule::Fixed(Collect::Always(Mechanism::Plug))),
            ("thread", Rule::Fixed(Collect::Always(Mechanism::Thread))),
            ("matthews-1999", Rule::Fixed(Collect::Matthews1999(candidate))),
            ("adaptive", Rule::Adaptive),
        ];
        let rule = table.choice("collect", &rules, Some(Rule::Adaptive))?;
        let names = table.strings("mechanisms")?;
        match rule {
            Rule::Fixed(collect) => Ok(Collecting::Fixed(collect)),
            Rule::Adaptive => {
                let all = || Mechanism::ALL.map(|mechanism| mechanism.name().to_owned()).to_vec();
                let mut mechanisms = Vec::new();
                for name in names.unwrap_or_else(all) {
                    let found = Mechanism::ALL.into_iter().find(|known| known.name() == name);
                    let found = found.ok_or_else(|| {
                        table.invalid("mechanisms", "are some of \"clean\", \"plug\", \"thread\"")
                    })?;
                    if mechanisms.contains(&found) {
                        let twice = format_args!("name '{name}' twice; name each once");
                        return Err(table.invalid("mechanisms", twice));
                    }
                    mechanisms.push(found);
                }
                if mechanisms.is_empty() {
                    return Err(table.invalid("mechanisms", "must name at least one"));
                }
                Ok(Collecting::Adaptive(mechanisms))
            }
        }
    }

    fn read_trigger(table: &mut Table) -> Result<LogTrigger, ConfigError> {
        let share = table.number("garbage", 0.001, 0.999)?.unwrap_or(0.15);
        // The cleaner of 4.4BSD-Lite: libexec/lfs_cleanerd/clean.h, BUSY_LIM.
        let free_share = table.number("free_share", 0.0, 0.95)?.unwrap_or(0.5);
        let triggers = [
            ("no-free-segment", LogTrigger::NoFreeSegment),
            ("garbage", LogTrigger::Garbage(share)),
            ("free-share", LogTrigger::FreeShare(free_share)),
        ];
        table.choice("trigger", &triggers, Some(LogTrigger::NoFreeSegment))
    }

    fn read_two_sizes(
        table: &mut Table,
        block_bytes: u64,
    ) -> Result<Option<TwoSizes>, ConfigError> {
        let collected_share = table.number("collected_share", 0.01, 0.99)?.unwrap_or(0.5);
        let Some(collected_segment_bytes) = table.bytes("collected_segment_size")? else {
            return Ok(None);
        };
        let key = "collected_segment_size";
        Self::check_segment(table, key, collected_segment_bytes, block_bytes)?;
        Ok(Some(TwoSizes { collected_segment_bytes, collected_share }))
    }

    /// Zones as texts of share and segment size: "0.5 512 KiB".
    fn read_zones(table: &mut Table, block_bytes: u64) -> Result<Vec<ZoneSize>, ConfigError> {
        let mut zones = Vec::new();
        for text in table.strings("zones")?.unwrap_or_default() {
            let parts = text.trim().split_once(' ');
            let share = parts.and_then(|(share, _)| share.parse::<f64>().ok());
            let size = parts.and_then(|(_, size)| parse_bytes(size).ok());
            let (Some(share), Some(segment_bytes)) = (share, size) else {
                return Err(table.invalid(
                    "zones",
                    format_args!("'{text}' is not a share and a size, for example \"0.5 512 KiB\""),
                ));
            };
            Self::check_segment(table, "zones", segment_bytes, block_bytes)?;
            zones.push(ZoneSize { share, segment_bytes });
        }
        let total: f64 = zones.iter().map(|zone| zone.share).sum();
        let bad = zones.iter().any(|zone| zone.share <= 0.0)
            || total.is_nan()
            || (total - 1.0).abs() > 1e-6;
        if !zones.is_empty() && bad {
            return Err(table.invalid("zones", "must have shares above 0 that add up to 1"));
        }
        Ok(zones)
    }

    /// Blocks of a segment for new data.
    #[must_use]
    pub fn segment_blocks(&self) -> u32 {
        (self.segment_bytes / self.block_bytes) as u32
    }

    pub(super) fn resolved(&self) -> Value {
        let (collect, mechanisms) = match &self.collect {
            Collecting::Fixed(Collect::Always(mechanism)) => (mechanism.name(), None),
            Collecting::Fixed(Collect::Matthews1999(_)) => ("matthews-1999", None),
            Collecting::Adaptive(mechanisms) => ("adaptive", Some(mechanisms)),
        };
        let mut table = json!({
            "kind": "lfs",
            "segment_size": format!("{} B", self.segment_bytes),
            "block_size": format!("{} B", self.block_bytes),
            "victim": self.victim.name(),
            "collect": collect,
            "segment_age": name_in(SEGMENT_AGES, &self.ages.segment),
            "collected_order": name_in(COLLECTED_ORDERS, &self.ages.order),
            "header": name_in(HEADERS, &self.header),
            "join_holes": self.join_holes,
            "batch_segments": self.batch_segments,
            "reserve_segments": self.reserve_segments,
            "placement": self.placement.name(),
            "logs": self.logs,
        });
        match &self.reorganise {
            None => table["reorganise"] = json!("none"),
            Some(reorganise) => reorganise.resolve(&mut table),
        }
        match self.victim {
            Victim::RandomGreedy { choices } => table["choices"] = json!(choices),
            Victim::WindowedGreedy { window } => table["window"] = json!(window),
            _ => {}
        }
        if let Some(mechanisms) = mechanisms {
            let names: Vec<&str> = mechanisms.iter().map(|mechanism| mechanism.name()).collect();
            table["mechanisms"] = json!(names);
        }
        if let Collecting::Fixed(Collect::Matthews1999(candidate)) = self.collect {
            table["plug_candidate"] = json!(name_in(PLUG_CANDIDATES, &candidate));
        }
        match self.trigger {
            LogTrigger::NoFreeSegment => table["trigger"] = json!("no-free-segment"),
            LogTrigger::Garbage(share) => {
                table["trigger"] = json!("garbage");
                table["garbage"] = json!(share);
            }
            LogTrigger::FreeShare(share) => {
                table["trigger"] = json!("free-share");
                table["free_share"] = json!(share);
            }
        }
        if let Some(sizes) = self.two_sizes {
            let size = format!("{} B", sizes.collected_segment_bytes);
            table["collected_segment_size"] = json!(size);
            table["collected_share"] = json!(sizes.collected_share);
        }
        if !self.zones.is_empty() {
            let texts =
                self.zones.iter().map(|zone| format!("{} {} B", zone.share, zone.segment_bytes));
            table["zones"] = json!(texts.collect::<Vec<_>>());
        }
        table
    }
}
