//! What a log is made with: its division, its policies and its limits.

use agewell_core::{RandomStreams, Stream};

use super::ages::Ages;
use super::policy::cost::CostModel;
use super::policy::mechanism::{Collect, Mechanism};
use super::policy::victim_policy::OutsideVictim;
use super::{LogShape, ShapeError, Victim};

/// When collection begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trigger {
    /// When no segment beyond the reserve is free and one is needed.
    NoFreeSegment,
    /// After each write, while more than this share of the blocks on disk are dead in full segments
    /// (the rule of the SepBIT simulator); one segment a collection.
    GarbageShare(f64),
    /// When no segment beyond the reserve is free, and besides after each write and sync, while less
    /// than this share of the dead and never written blocks lies in free segments (the cleaner of
    /// 4.4BSD-Lite, libexec/lfs_cleanerd/clean.h: `BUSY_LIM` 0.5, `NUM_TO_CLEAN` 1); one segment a
    /// collection.
    FreeShare(f64),
}

/// Where the information about the blocks of a segment is kept, which filling a hole must update
/// (Matthews 1999, §5.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Its cost is left out.
    Free,
    /// 512 bytes beside every block that fills a hole.
    Block,
    /// One header a segment, read before and written after its holes are filled.
    Segment,
}

/// Which zones new and collected data go to, if the log has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneUse {
    /// Any data to any zone; the zone with the largest free share is used first.
    Any,
    /// New data to the first zone, collected data to the last; to any other where those have neither
    /// a free segment nor garbage.
    NewFirstCollectedLast,
}

/// Everything about a log but its content.
#[derive(Debug, Clone)]
pub struct LogSetting {
    /// Division of the disk.
    pub shape: LogShape,
    /// Blocks there may be, numbered from zero; [`Log::ensure_blocks`] raises it.
    pub blocks: u32,
    /// Clients, each with a write buffer.
    pub clients: u32,
    /// Blocks in a write buffer; 1 sends every write to the disk at once.
    pub buffer_blocks: u32,
    /// Which segments are collected.
    pub victim: Victim,
    /// How.
    pub collect: Collect,
    /// When.
    pub trigger: Trigger,
    /// Most segments that one cleaning reads; 0 for as many as free one segment.
    pub batch_segments: u32,
    /// Segments kept free for collected blocks to go to, in slots of the largest: one for each log they may
    /// go to, or fewer, at least one, that the logs share.
    pub reserve_segments: u32,
    /// Share of a segment that must be dead for age-aware and greedy policies to choose it.
    pub eligible_garbage: f64,
    /// What it goes by when it goes by ages.
    pub ages: Ages,
    /// Headers.
    pub header: Header,
    /// Whether neighbouring holes are filled by one transfer.
    pub join_holes: bool,
    /// Slots left before each run of new data, for a record of where it belongs; they hold nothing
    /// that is live.
    pub record_slots: u32,
    /// Segments whose holes are filled next, chosen this far ahead, each until it has none left; 0: at
    /// any time the emptiest. Who must say beforehand where holes will be filled asks for some.
    pub threads_ahead: u32,
    /// What is sent at once is there after a crash wholly or not at all: room for it is made before it is
    /// taken in, not amid it, for which a segment beside the reserve is kept. New data is one log.
    pub whole_syncs: bool,
    /// What a sync costs beside its transfers if it goes on where the one before ended, ns: the turn for which a
    /// disk waits. Only who looks ahead reckons with it.
    pub lost_turn_ns: u64,
    /// Use of zones.
    pub zone_use: ZoneUse,
    /// Whether it is known which blocks are in the host's cache.
    pub tracks_cache: bool,
    /// The disk as policies estimate it.
    pub disk: CostModel,
    /// Draws of random victim policies.
    pub stream: Stream,
    /// Who chooses among the segments that `victim` would choose among, if somebody else does.
    pub victim_policy: Option<Box<OutsideVictim>>,
}

impl LogSetting {
    /// A log of `blocks` blocks on `disk` by the plainest rules: one client without a buffer, the
    /// emptiest segments cleaned when none is free but one. Who wants another says what differs.
    #[must_use]
    pub fn plain(shape: LogShape, blocks: u32, disk: CostModel) -> Self {
        Self {
            shape,
            blocks,
            clients: 1,
            buffer_blocks: 1,
            victim: Victim::Greedy,
            collect: Collect::Always(Mechanism::Clean),
            trigger: Trigger::NoFreeSegment,
            batch_segments: 0,
            reserve_segments: 1,
            eligible_garbage: 0.0,
            ages: Ages::default(),
            header: Header::Free,
            join_holes: true,
            record_slots: 0,
            threads_ahead: 0,
            whole_syncs: false,
            lost_turn_ns: 0,
            zone_use: ZoneUse::Any,
            tracks_cache: false,
            disk,
            stream: RandomStreams::new(1).stream("victims"),
            victim_policy: None,
        }
    }

    /// Whether `live` blocks leave the log enough to work with.
    ///
    /// # Errors
    /// If they do not.
    pub fn check_fits(&self, live: u64, logs: usize) -> Result<(), ShapeError> {
        let beside = u32::from(self.whole_syncs);
        let spare = self.reserve_segments.saturating_add(logs as u32).saturating_add(beside);
        let kept = u64::from(spare) * u64::from(self.shape.segment_blocks_max());
        let capacity = self.shape.capacity_blocks();
        if live + kept > capacity || spare >= self.shape.segments() {
            let segments = self.shape.segments();
            return Err(ShapeError::TooFull { live, capacity, segments, spare });
        }
        Ok(())
    }
}
