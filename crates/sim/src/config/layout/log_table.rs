//! The keys of the `[layout]` table of a log.

use std::fmt;
use std::str::FromStr;

use agewell_config::{
    Form, choice, count, flag, keys, list, natural, number, parsed, sectors, size,
};
use agewell_core::parse_bytes;
use agewell_layout::reorganise::{Decide, Related, When};
use agewell_log::policy::mechanism::{Mechanism, PlugCandidate};
use agewell_log::{CollectedOrder, Header, SegmentAge, Victim};

use super::BLOCK_BYTES;

/// A zone of the disk, for any data (Matthews 1999, §5.3: zones differ in bandwidth); as text its
/// share and the size of its segments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ZoneSize {
    /// Share of the disk.
    pub share: f64,
    /// Bytes of its segments.
    pub segment_bytes: u64,
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
    /// New data in one log, collected data by measured death rates, as in a store.
    CollectedLifeTable,
    /// The known time of each block's death.
    Oracle,
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
    ("collected-life-table", PlacementChoice::CollectedLifeTable),
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

const COLLECTS: &[(&str, CollectName)] = &[
    ("clean", CollectName::Always(Mechanism::Clean)),
    ("plug", CollectName::Always(Mechanism::Plug)),
    ("thread", CollectName::Always(Mechanism::Thread)),
    ("matthews-1999", CollectName::Matthews1999),
    ("adaptive", CollectName::Adaptive),
];

const VICTIMS: &[(&str, VictimName)] = &[
    ("greedy", VictimName::Plain(Victim::Greedy)),
    ("cost-age", VictimName::Plain(Victim::CostAge)),
    // The name of Rosenblum & Ousterhout 1992.
    ("cost-benefit", VictimName::Plain(Victim::CostAge)),
    ("cost-age-cache", VictimName::Plain(Victim::CostAgeCache)),
    ("benefit-root-age", VictimName::Plain(Victim::BenefitRootAge)),
    ("renewal", VictimName::Plain(Victim::Renewal)),
    ("fifo", VictimName::Plain(Victim::Fifo)),
    ("random-greedy", VictimName::RandomGreedy),
    ("windowed-greedy", VictimName::WindowedGreedy),
];

const TRIGGERS: &[(&str, TriggerName)] = &[
    ("no-free-segment", TriggerName::NoFreeSegment),
    ("garbage", TriggerName::Garbage),
    ("free-share", TriggerName::FreeShare),
];

/// A victim policy by name; the numbers of some stand in keys of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum VictimName {
    /// One without a number.
    Plain(Victim),
    /// With `choices`.
    RandomGreedy,
    /// With `window`.
    WindowedGreedy,
}

/// The rule that decides on the mechanism, by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CollectName {
    /// No decision: it is always the same.
    Always(Mechanism),
    /// The estimate of Matthews 1999.
    Matthews1999,
    /// Looking ahead.
    Adaptive,
}

/// When collection begins, by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TriggerName {
    /// When a segment is needed.
    NoFreeSegment,
    /// By the share of garbage.
    Garbage,
    /// By the share of what is free.
    FreeShare,
}

fn related() -> Vec<(&'static str, Option<Related>)> {
    let all = Related::ALL.map(|each| (each.name(), Some(each)));
    [("none", None)].into_iter().chain(all).collect()
}

keys! {
    /// The keys of a log.
    pub struct LogTable {
        /// size of a segment: 1 to 2^24 whole blocks
        <"1999, section 5.4">
        segment_bytes: u64 = "segment_size" size().or(256 << 10);
        /// size of a block
        <"1999, section 5.2.2">
        block_bytes: u64 = "block_size" sectors().or(BLOCK_BYTES);
        /// which segments are collected
        victim: VictimName = "victim" choice(VICTIMS).or(VictimName::Plain(Victim::Greedy));
        /// what the age of a segment counts from, for `cost-age` and `cost-age-cache`. `"data"`: when
        /// the youngest data ever written to it, or to the segments that its collected blocks came
        /// from, was new; `"block"`: when its youngest block was new; `"segment"`: when it was filled
        <"ours; Rosenblum & Ousterhout 1992 by the letter; by their figures">
        segment_age: SegmentAge = "segment_age" choice(SEGMENT_AGES).or(SegmentAge::Data);
        /// `"found"`: collected blocks are written as they are found; `"age"`: a cleaning reads all of
        /// `batch_segments`, as far as free segments hold what lives in them, and writes the oldest
        /// blocks first. Not with `reorganise`
        <"ours; Rosenblum & Ousterhout 1992, \"age sort\"">
        collected_order: CollectedOrder = "collected_order"
            choice(COLLECTED_ORDERS).or(CollectedOrder::Found);
        /// segments that `random-greedy` draws
        <"ours">
        choices: u32 = "choices" count().or(10);
        /// oldest segments among which `windowed-greedy` looks
        <"ours">
        window: u32 = "window" count().or(100);
        /// how room is made
        collect: CollectName = "collect" choice(COLLECTS).or(CollectName::Adaptive);
        /// with `matthews-1999`, the segment that the estimate of plugging is made for, and that is
        /// plugged: the least utilized, or the one that the policy would clean
        <"1999, section 5.4.2, which leaves it open">
        plug_candidate: PlugCandidate = "plug_candidate"
            choice(PLUG_CANDIDATES).or(PlugCandidate::LeastUtilized);
        /// what `adaptive` chooses among
        <"ours">
        mechanisms: Vec<Mechanism> = "mechanisms"
            list(choice(&Mechanism::ALL.map(|each| (each.name(), each))))
                .or(Mechanism::ALL.to_vec());
        /// what filling a hole moves beside the block: nothing, 512 bytes a block, or a header read and
        /// written a segment
        <"1999, section 5.4.1">
        header: Header = "header" choice(HEADERS).or(Header::Free);
        /// neighbouring holes are filled by one transfer; `false`: one a block, as the figures of 1999
        /// count
        <"ours">
        join_holes: bool = "join_holes" flag().or(true);
        /// blocks left before each run of new data, for a record of what lies where: a store of blocks
        /// (reference: [stores](store.md)) takes one. With `threads_ahead`, a sync that goes into holes alone
        /// has its record in one of them
        <"ours">
        record_blocks: u32 = "record_blocks" natural().or(0);
        /// segments whose holes are filled next, chosen this far ahead, in a sweep over those about as
        /// empty as the emptiest; 0: always the emptiest. A store of blocks chooses 40
        <"ours">
        threads_ahead: u32 = "threads_ahead" natural().or(0);
        /// what one sync writes is there after a crash wholly or not at all, as in a store of blocks: it
        /// fills no hole that it has itself made, and room for it is made before or after it, not amid it, for
        /// which one of the segments kept free is lent
        <"ours">
        atomic_syncs: bool = "atomic_syncs" flag().or(false);
        /// most segments that one cleaning reads; 0: as many as free one
        <"ours">
        batch_segments: u32 = "batch_segments" natural().or(0);
        /// segments kept free; at least one for each log of a placement, but for `collected-life-table`, whose logs share them
        <"ours">
        reserve_segments: u32 = "reserve_segments" count().or(1);
        /// when collection begins. `"no-free-segment"`: when one is needed; `"garbage"`: while more than
        /// `garbage` of the written blocks is dead, on a disk as large as that takes, whatever
        /// `utilization` says; `"free-share"`: besides, segments are cleaned while less than
        /// `free_share` of the room lies in free ones
        <"1999; the SepBIT simulator; the cleaner of 4.4BSD">
        trigger: TriggerName = "trigger" choice(TRIGGERS).or(TriggerName::NoFreeSegment);
        /// that share
        <"the SepBIT simulator">
        garbage: f64 = "garbage" number(0.001, 0.999).or(0.15);
        /// that share
        <"4.4BSD-Lite, `lfs_cleanerd`: `BUSY_LIM`">
        free_share: f64 = "free_share" number(0.0, 0.95).or(0.5);
        /// which open log a block goes to
        placement: PlacementChoice = "placement" choice(PLACEMENTS).or(PlacementChoice::None);
        /// open logs of a placement that takes any number; of `collected-life-table`, those beside that of new data
        <"the SepBIT simulator">
        logs: u32 = "logs" natural().from(2).to(256).or(6);
        /// segments of another size for collected data; needs `placement = "user-collected"`
        <"1999, section 5.3">
        collected_segment_bytes: Option<u64> = "collected_segment_size" size().optional();
        /// share of the disk that they take
        <"ours">
        collected_share: f64 = "collected_share" number(0.01, 0.99).or(0.5);
        /// zones of the disk with segments of their own size, from its beginning on; shares add up to 1
        <"1999, section 5.3">
        zones: Vec<ZoneSize> = "zones" list(parsed::<ZoneSize>("`\"0.5 512 KiB\"`")).or(Vec::new());
        /// what is read together is written together (concepts:
        /// [reorganisation](../concepts/reorganisation.md)). `"blocks"`: blocks read one after another;
        /// `"files"`: files read so; `"non-sequential"`: blocks read so that do not follow in their
        /// file; `"frequency"`: as blocks, and towards the middle of the disk
        <"1999, sections 6.4, 6.6, 7.2.1">
        reorganise: Option<Related> = "reorganise" choice(&related()).or(None);
        /// whether a group is moved: `"gain"`: as far as the disk itself shows that it pays;
        /// `"value"`: as 1999, section 6.4 has it
        <"ours; 1999, section 6.4">
        decide: Decide = "decide"
            choice(&Decide::ALL.map(|each| (each.name(), each))).or(Decide::Gain);
        /// when it is; `"load"`: all of it is in memory; `"eviction"`: a block of it is about to leave
        /// memory
        <"ours; 1999, section 6.4.2">
        when: Option<When> = "when" choice(&When::ALL.map(|each| (each.name(), each)))
            .or_else("`\"load\"`; with `decide = \"value\"` `\"at-once\"`");
        /// most that is moved together, two blocks or more
        <"ours">
        partition_bytes: Option<u64> = "partition_size" size().or_else("`segment_size`");
        /// how often a block is moved at most before it is written again; 255: no bound
        <"ours">
        moves_max: Option<u32> = "moves_max" natural().to(255)
            .or_else("`4`; with `decide = \"value\"` `255`");
        /// most blocks moved for each block read from disk
        <"ours">
        budget: Option<f64> = "budget" number(0.0, 1e9).optional();
    }
}

impl FromStr for ZoneSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.trim().split_once(' ');
        let share = parts.and_then(|(share, _)| share.parse::<f64>().ok());
        let size = parts.and_then(|(_, size)| parse_bytes(size).ok());
        match (share, size) {
            (Some(share), Some(segment_bytes)) => Ok(Self { share, segment_bytes }),
            _ => Err(format!("'{text}' is not a share and a size, for example \"0.5 512 KiB\"")),
        }
    }
}

impl fmt::Display for ZoneSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} B", self.share, self.segment_bytes)
    }
}
