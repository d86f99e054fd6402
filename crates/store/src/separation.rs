//! Where what is collected goes: placement by expected lifetime, where there is room for it.
//!
//! New data is one log, as what is synced at once is written to one place. What survives a collection is
//! divided by the simulator's life table, each log with an open segment of its own. Those are not in the
//! format: where their blocks lie is in the records of their groups, and after the next opening they are
//! segments like others.

use agewell_log::Victim;
use agewell_log::policy::placement::{
    self, CollectedSegment, LifeTable, NewTogether, NoSeparation, SepBit,
};

use crate::format::Geometry;
use crate::options::{COLLECTED_LOGS_MAX, OpenOptions, Placement};

/// Of the segments that a store keeps for collections, those there are for each log of collected blocks; chosen by
/// us: then open segments, half of which is unused, are a sixteenth of them at most.
const SEGMENTS_A_LOG: u32 = 8;
/// Logs of collected blocks at most; chosen by us: more bring less than 2 % on loads by Zipf's law, and nothing
/// on others.
const LOGS_MAX: u32 = 4;

/// Logs that `SepBit` has for new data, the first of its own.
const SEP_BIT_NEW_LOGS: usize = 2;

/// The placement of a store.
#[derive(Debug, Clone)]
pub(crate) enum Separation {
    /// Everything in one log.
    None(NoSeparation),
    /// New data in one, what is collected by measured death rates.
    Lifetime(Box<NewTogether<LifeTable>>),
    /// The same by age.
    SepBit(Box<NewTogether<SepBit>>),
}

impl Separation {
    /// That of `blocks` of the blocks of a store with `geometry`: all, or a sample.
    pub(crate) fn new(options: &OpenOptions, geometry: &Geometry, blocks: u32) -> Self {
        let logs = logs(options, geometry, blocks);
        match options.placement {
            Placement::Lifetime if logs > 0 => {
                let segment_blocks = geometry.segment_blocks;
                Self::Lifetime(Box::new(NewTogether::by_lifetime(blocks, logs, segment_blocks)))
            }
            Placement::SepBit if logs > 0 => {
                let within = SepBit::new(blocks as usize, logs as usize + SEP_BIT_NEW_LOGS);
                Self::SepBit(Box::new(NewTogether::new(within)))
            }
            _ => Self::None(NoSeparation),
        }
    }

    /// The victims that go with that of all blocks: what was put apart because it lives long is not collected as
    /// soon as it is the emptiest.
    pub(crate) fn victim(options: &OpenOptions, geometry: &Geometry) -> Victim {
        if logs(options, geometry, geometry.blocks) > 0 { Victim::Renewal } else { Victim::Greedy }
    }

    /// Logs of collected blocks; none if they go behind what is new.
    pub(crate) fn collected_logs(&self) -> usize {
        let new = if matches!(self, Self::SepBit(_)) { SEP_BIT_NEW_LOGS } else { 0 };
        placement::Placement::logs(self) - 1 - new
    }
}

/// Logs of collected blocks, of a log of `blocks` blocks; 0 if they go behind what is new.
fn logs(options: &OpenOptions, geometry: &Geometry, blocks: u32) -> u32 {
    let all = u64::from(geometry.blocks).max(1);
    let kept = (u64::from(geometry.reserve_segments) * u64::from(blocks) / all) as u32;
    let logs = match options.collected_logs {
        Some(logs) => logs.min(COLLECTED_LOGS_MAX).min(kept / 2),
        None => (kept / SEGMENTS_A_LOG).min(LOGS_MAX),
    };
    // One would do no more than part what is new from what is not.
    if logs < 2 || options.placement == Placement::None { 0 } else { logs }
}

macro_rules! each {
    ($any:expr, $placement:ident => $call:expr) => {
        match $any {
            Separation::None($placement) => $call,
            Separation::Lifetime($placement) => $call,
            Separation::SepBit($placement) => $call,
        }
    };
}

impl placement::Placement for Separation {
    fn logs(&self) -> usize {
        each!(self, within => within.logs())
    }

    fn is_indifferent(&self) -> bool {
        each!(self, within => within.is_indifferent())
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        each!(self, within => within.ensure_blocks(blocks));
    }

    fn restored(&mut self, map: &[u32], segment_of: &dyn Fn(u32) -> u32, clock: u64) {
        each!(self, within => within.restored(map, segment_of, clock));
    }

    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        each!(self, within => within.place_new(block, overwrites, clock))
    }

    fn place_collected(&mut self, block: u32, segment: &CollectedSegment, clock: u64) -> u8 {
        each!(self, within => within.place_collected(block, segment, clock))
    }

    fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        each!(self, within => within.collected(segment, clock));
    }

    fn deleted(&mut self, block: u32, clock: u64) {
        each!(self, within => within.deleted(block, clock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::FormatOptions;

    fn collected_logs(options: &OpenOptions, segments: u32, sampled: u32) -> usize {
        let format = FormatOptions { block_bytes: 512, ..FormatOptions::new([1; 16]) };
        let bytes = Geometry::device_bytes(&format, segments).unwrap();
        let geometry = Geometry::plan(bytes, &format).unwrap();
        Separation::new(options, &geometry, geometry.blocks / sampled).collected_logs()
    }

    #[test]
    fn there_are_as_many_logs_as_there_are_segments_kept_for() {
        let usual = OpenOptions::default();
        // 6.4 % of the segments are kept, eight at least.
        let found = [100, 300, 400, 600, 20_000].map(|all| collected_logs(&usual, all, 1));
        assert_eq!(found, [0, 2, 3, 4, 4]);
        assert_eq!(collected_logs(&usual, 20_000, 60), 2, "a sample has fewer");
        let said = OpenOptions { collected_logs: Some(9), ..OpenOptions::default() };
        assert_eq!([100, 500].map(|all| collected_logs(&said, all, 1)), [4, 9]);
        let sep_bit = OpenOptions { placement: Placement::SepBit, ..OpenOptions::default() };
        assert_eq!(collected_logs(&sep_bit, 400, 1), 3);
        let none = OpenOptions { placement: Placement::None, ..OpenOptions::default() };
        assert_eq!(collected_logs(&none, 20_000, 1), 0);
    }
}
