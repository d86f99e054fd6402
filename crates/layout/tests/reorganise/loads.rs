//! A log under test, and what is done to it.

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_layout::block_layout::{BlockLayout, FileBlock};
use agewell_layout::reorganise::{Decide, Related, ReorganisationCounts, ReorganiseSetting, When};
use agewell_layout::reorganising_log::ReorganisingLog;
use agewell_log::Purpose;
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::{NoSeparation, Placement, Regrouping};
use agewell_log::{AdaptiveLog, LogSetting, LogShape};

use crate::bench_disk::{HP_97560, HeadDisk};

/// 256 KiB of 8 KiB blocks.
pub(crate) const SEGMENT_BLOCKS: u32 = 32;

/// A log, plain or reorganising, and its disk.
pub(crate) struct Subject<L> {
    pub(crate) log: L,
    pub(crate) disk: HeadDisk,
    pub(crate) random: Stream,
}

pub(crate) type Reorganising = Subject<ReorganisingLog<NoSeparation>>;
pub(crate) type Plain = Subject<AdaptiveLog<NoSeparation>>;

fn setting(blocks: u32, utilization: f64, logs: u32, collect: Collect) -> LogSetting {
    let capacity = f64::from(blocks) / utilization;
    let segments = (capacity / f64::from(SEGMENT_BLOCKS)).ceil() as u32 + 2 * logs;
    LogSetting {
        buffer_blocks: SEGMENT_BLOCKS,
        collect,
        reserve_segments: logs,
        ..LogSetting::plain(LogShape::uniform(segments, SEGMENT_BLOCKS).unwrap(), blocks, HP_97560)
    }
}

const COLLECT: Collect = Collect::Always(Mechanism::Clean);

pub(crate) fn plain(blocks: u32, utilization: f64) -> Plain {
    plain_with(blocks, utilization, COLLECT)
}

pub(crate) fn plain_with(blocks: u32, utilization: f64, collect: Collect) -> Plain {
    // As many segments as the log beside it that reorganises.
    let setting = setting(blocks, utilization, 2, collect);
    let disk = HeadDisk::new();
    let log = AdaptiveLog::fixed(setting, NoSeparation).unwrap();
    Subject { log, disk, random: RandomStreams::new(7).stream("load") }
}

pub(crate) fn reorganising(
    blocks: u32,
    utilization: f64,
    setting_of: ReorganiseSetting,
) -> Reorganising {
    reorganising_with(blocks, utilization, COLLECT, setting_of)
}

pub(crate) fn reorganising_with(
    blocks: u32,
    utilization: f64,
    collect: Collect,
    setting_of: ReorganiseSetting,
) -> Reorganising {
    let placement = Regrouping::new(NoSeparation, blocks).unwrap();
    let setting = setting(blocks, utilization, placement.logs() as u32, collect);
    let disk = HeadDisk::new();
    let log = AdaptiveLog::fixed(setting, placement).unwrap();
    let log = ReorganisingLog::new(log, setting_of);
    Subject { log, disk, random: RandomStreams::new(7).stream("load") }
}

/// The paper's way, moved at once.
pub(crate) fn matthews() -> ReorganiseSetting {
    ReorganiseSetting::matthews_1999(SEGMENT_BLOCKS)
}

/// Ours.
pub(crate) fn by_gain() -> ReorganiseSetting {
    ReorganiseSetting::by_gain(SEGMENT_BLOCKS)
}

pub(crate) fn with(related: Related, decide: Decide, when: When) -> ReorganiseSetting {
    let base = if decide == Decide::Gain { by_gain() } else { matthews() };
    ReorganiseSetting { related, decide, when, ..base }
}

impl<L: BlockLayout> Subject<L> {
    pub(crate) fn draw(&mut self, bound: u32) -> u32 {
        uniform_below(&mut self.random, u64::from(bound)) as u32
    }

    /// Any order of `0..blocks`.
    pub(crate) fn shuffled(&mut self, blocks: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..blocks).collect();
        for last in (1..blocks).rev() {
            let other = self.draw(last + 1);
            order.swap(last as usize, other as usize);
        }
        order
    }

    pub(crate) fn write(&mut self, blocks: &[u32]) {
        for block in blocks {
            let name = FileBlock { file: 0, block: *block };
            self.log.write(*block, name, 0, &mut self.disk).unwrap();
        }
        self.log.sync(0, &mut self.disk).unwrap();
    }

    /// One block after the other, as a server asks for what its cache does not have; disk time of
    /// the reads and of all that came with them, ns.
    pub(crate) fn read(&mut self, blocks: &[u32]) -> (u64, u64) {
        let (reads, total) = (self.disk.spent_ns(Purpose::Read), self.disk.total_ns());
        for block in blocks {
            self.log.begin_read(|| self.disk.total_ns());
            self.log.read(&[*block], Purpose::Read, &mut self.disk);
        }
        (self.disk.spent_ns(Purpose::Read) - reads, self.disk.total_ns() - total)
    }
}

impl Reorganising {
    pub(crate) fn counts(&self) -> ReorganisationCounts {
        *self.log.reorganisation()
    }
}
