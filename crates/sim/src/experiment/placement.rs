//! A placement chosen by configuration: one type for all, so that the log under a host is compiled
//! once. A call costs one branch more than a placement of its own.

use agewell_core::RandomStreams;
use agewell_log::policy::placement::{
    Batched, CollectedSegment, Dac, Fadac, LifeTable, MultiLog, NewTogether, NoSeparation, Oracle,
    Placement, SepBit, Sfs, UserCollected,
};

use super::recorder::Recorder;
use crate::config::layout::PlacementChoice;

/// Any placement.
#[derive(Debug, Clone)]
pub(crate) enum AnyPlacement {
    None(NoSeparation),
    UserCollected(UserCollected),
    MultiLog(MultiLog),
    Dac(Dac),
    Sfs(Sfs),
    Fadac(Fadac),
    SepBit(SepBit),
    LifeTable(Box<LifeTable>),
    CollectedLifeTable(Box<NewTogether<LifeTable>>),
    Oracle(Oracle),
    Recorder(Recorder),
    Batched(Box<Batched>),
}

impl AnyPlacement {
    /// The placement called `choice` for `blocks` blocks; `deaths` are the oracle's knowledge.
    pub(crate) fn new(
        choice: PlacementChoice,
        blocks: u32,
        segment_blocks: u32,
        logs: u32,
        seed: u64,
        deaths: &[u32],
    ) -> Self {
        let (blocks, logs) = (blocks as usize, logs as usize);
        match choice {
            PlacementChoice::None => AnyPlacement::None(NoSeparation),
            PlacementChoice::UserCollected => AnyPlacement::UserCollected(UserCollected),
            PlacementChoice::MultiLog => {
                AnyPlacement::MultiLog(MultiLog::new(blocks, logs, &RandomStreams::new(seed)))
            }
            PlacementChoice::Dac => AnyPlacement::Dac(Dac::new(blocks, logs)),
            PlacementChoice::Sfs => AnyPlacement::Sfs(Sfs::new(blocks, segment_blocks, logs)),
            PlacementChoice::Fadac => AnyPlacement::Fadac(Fadac::new(blocks, logs)),
            PlacementChoice::SepBit => AnyPlacement::SepBit(SepBit::new(blocks, logs)),
            PlacementChoice::LifeTable => {
                AnyPlacement::LifeTable(Box::new(LifeTable::new(blocks, logs)))
            }
            PlacementChoice::CollectedLifeTable => {
                let placement =
                    NewTogether::by_lifetime(blocks as u32, logs as u32, segment_blocks);
                AnyPlacement::CollectedLifeTable(Box::new(placement))
            }
            PlacementChoice::Oracle => {
                AnyPlacement::Oracle(Oracle::new(deaths.to_vec(), blocks, segment_blocks, logs))
            }
        }
    }

    /// What has been recorded, by a placement that does so.
    pub(crate) fn events(&self) -> &[u32] {
        match self {
            AnyPlacement::Recorder(recorder) => &recorder.events,
            _ => &[],
        }
    }
}

macro_rules! each {
    ($any:expr, $placement:ident => $call:expr) => {
        match $any {
            AnyPlacement::None($placement) => $call,
            AnyPlacement::UserCollected($placement) => $call,
            AnyPlacement::MultiLog($placement) => $call,
            AnyPlacement::Dac($placement) => $call,
            AnyPlacement::Sfs($placement) => $call,
            AnyPlacement::Fadac($placement) => $call,
            AnyPlacement::SepBit($placement) => $call,
            AnyPlacement::LifeTable($placement) => $call,
            AnyPlacement::CollectedLifeTable($placement) => $call,
            AnyPlacement::Oracle($placement) => $call,
            AnyPlacement::Recorder($placement) => $call,
            AnyPlacement::Batched($placement) => $call,
        }
    };
}

impl Placement for AnyPlacement {
    fn logs(&self) -> usize {
        each!(self, placement => placement.logs())
    }

    fn is_indifferent(&self) -> bool {
        each!(self, placement => placement.is_indifferent())
    }

    #[inline]
    fn will_write(&mut self, blocks: &mut dyn Iterator<Item = (u32, bool)>, clock: u64) {
        if let AnyPlacement::Batched(placement) = self {
            placement.will_write(blocks, clock);
        }
    }

    #[inline]
    fn will_collect(
        &mut self,
        blocks: &mut dyn Iterator<Item = u32>,
        segment: &CollectedSegment,
        clock: u64,
    ) {
        if let AnyPlacement::Batched(placement) = self {
            placement.will_collect(blocks, segment, clock);
        }
    }

    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        each!(self, placement => placement.place_new(block, overwrites, clock))
    }

    fn place_collected(&mut self, block: u32, segment: &CollectedSegment, clock: u64) -> u8 {
        each!(self, placement => placement.place_collected(block, segment, clock))
    }

    fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        each!(self, placement => placement.collected(segment, clock));
    }

    fn deleted(&mut self, block: u32, clock: u64) {
        each!(self, placement => placement.deleted(block, clock));
    }

    fn placed(&mut self, block: u32, segment: u32) {
        each!(self, placement => placement.placed(block, segment));
    }

    fn died(&mut self, block: u32, segment: u32) {
        each!(self, placement => placement.died(block, segment));
    }

    fn freed(&mut self, segment: u32) {
        each!(self, placement => placement.freed(segment));
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        each!(self, placement => placement.ensure_blocks(blocks));
    }
}
