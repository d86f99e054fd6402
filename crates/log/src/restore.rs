//! A log that goes on from what a store has kept of it.
//!
//! The map says where every block lies. With the open segments, and how far they are filled, all else
//! follows from it: owners, live bits and counts, free segments, the index of victims. When segments
//! were opened and sealed are hints to policies; what is not known of them may be zero.

use super::log::{Log, Open};
use super::log_setting::LogSetting;
use super::policy::placement::Placement;
use super::segment_table::{NONE, SegmentTable, State};
use super::{Counts, LogError, ShapeError};

/// A segment that takes more blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSegment {
    /// Its number.
    pub segment: u32,
    /// The next slot to be filled.
    pub next: u32,
    /// The log that it is open for.
    pub log: u32,
}

/// When the data of a segment came, in new blocks placed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentTimes {
    /// When its first block was written.
    pub opened: u64,
    /// When it was full.
    pub sealed: u64,
    /// When its youngest data was new.
    pub youngest: u64,
    /// The log that wrote it.
    pub log: u8,
}

/// What a log is restored from.
#[derive(Debug, Clone, Default)]
pub struct Kept<'a> {
    /// The slot of each block, [`NONE`] for a block that does not exist.
    pub map: Vec<u32>,
    /// The open segments.
    pub open: &'a [OpenSegment],
    /// Times of segments; what is missing is zero.
    pub times: &'a [SegmentTimes],
    /// New blocks placed so far.
    pub clock: u64,
}

impl<P: Placement> Log<P> {
    /// The log that `kept` is of.
    ///
    /// # Errors
    /// If two blocks lie in one slot, a block or an open segment lies nowhere, or the setting leaves the
    /// log nothing to work with.
    pub fn restore(
        setting: LogSetting,
        placement: P,
        kept: Kept<'_>,
    ) -> Result<Self, RestoreError> {
        let table = SegmentTable::restore(&setting.shape, &kept.map)?;
        Self::restore_with(setting, placement, kept, table)
    }

    /// The same with what [`SegmentTable::restore`] has made of the map.
    pub(crate) fn restore_with(
        setting: LogSetting,
        placement: P,
        kept: Kept<'_>,
        (table, live): (SegmentTable, u64),
    ) -> Result<Self, RestoreError> {
        let Kept { mut map, open, times, clock } = kept;
        let blocks = map.len() as u32;
        map.resize(map.len().max(setting.blocks as usize), NONE);
        let mut log = Self::with(setting, placement, Vec::new(), table)?;
        if blocks > log.setting.blocks {
            log.ensure_blocks(blocks);
        }
        (log.map, log.live_blocks, log.clock) = (map, live, clock);
        for (segment, times) in times.iter().enumerate().take(log.table.live.len()) {
            log.table.opened[segment] = times.opened;
            log.table.sealed[segment] = times.sealed;
            log.table.youngest[segment] = times.youngest;
            log.table.log[segment] = times.log;
        }
        if !log.is_indifferent {
            let shape = &log.table.shape;
            log.placement.restored(&log.map, &|slot| shape.segment_of(slot), log.clock);
        }
        for open in open {
            log.reopen(*open)?;
        }
        log.seal_others();
        Ok(log)
    }

    fn reopen(&mut self, open: OpenSegment) -> Result<(), RestoreError> {
        let OpenSegment { segment, next, log } = open;
        let is_known = segment < self.table.shape.segments() && (log as usize) < self.open.len();
        let bounds = if is_known { self.table.bounds(segment) } else { (NONE, NONE) };
        let is_free = is_known && self.table.state[segment as usize] == State::FREE;
        let is_open = is_known && self.open[log as usize].segment != NONE;
        if !is_free || is_open || next < bounds.0 || next >= bounds.1 {
            return Err(RestoreError::Open { segment, next, log });
        }
        if self.table.next_live(next, bounds.1).is_some() {
            return Err(RestoreError::Open { segment, next, log });
        }
        self.open[log as usize] = Open { segment, next, end: bounds.1 };
        self.table.state[segment as usize] = State::OPEN;
        self.table.log[segment as usize] = log as u8;
        self.written_slots += u64::from(next - bounds.0);
        Ok(())
    }

    fn seal_others(&mut self) {
        self.free.iter_mut().for_each(std::collections::VecDeque::clear);
        for segment in 0..self.table.shape.segments() {
            if self.table.state[segment as usize] == State::OPEN {
                continue;
            }
            if self.table.live[segment as usize] == 0 {
                self.free[self.table.shape.zone_of(segment)].push_back(segment);
            } else {
                self.written_slots += u64::from(self.table.shape.segment_blocks(segment));
                let (opened, sealed) = (&self.table.opened, &mut self.table.sealed);
                // When it was sealed is not known if it was open when that was kept.
                sealed[segment as usize] = sealed[segment as usize].max(opened[segment as usize]);
                self.enter_index(segment);
            }
        }
    }

    /// Goes on counting from `counts`, those of a log in whose place this one is.
    pub fn count_on_from(&mut self, counts: Counts) {
        self.counts = counts;
    }

    /// The open segments.
    pub fn open_segments(&self) -> impl Iterator<Item = OpenSegment> + '_ {
        let open = (0..).zip(&self.open).filter(|(_, open)| open.segment != NONE);
        open.map(|(log, open)| OpenSegment { segment: open.segment, next: open.next, log })
    }

    /// Free segments of the first zone in the order in which they are opened.
    pub fn free_segments(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.free[0].iter().copied()
    }

    /// When the data of `segment` came.
    #[must_use]
    pub fn segment_times(&self, segment: u32) -> SegmentTimes {
        let (table, segment) = (&self.table, segment as usize);
        SegmentTimes {
            opened: table.opened[segment],
            sealed: table.sealed[segment],
            youngest: table.youngest[segment],
            log: table.log[segment],
        }
    }

    /// New blocks placed so far.
    #[must_use]
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// The block that was last written to `slot`, whether it is still there, and its live segment
    /// mates aside: who lies where.
    #[must_use]
    pub fn owner_of(&self, slot: u32) -> Option<u32> {
        self.table.is_live(slot).then(|| self.table.owner[slot as usize])
    }

    /// Which blocks exist: bit `block % 64` of word `block / 64`.
    #[must_use]
    pub fn held_blocks(&self) -> Vec<u64> {
        let exists = |at: usize, place: &u32| u64::from(*place != NONE) << at;
        let word = |places: &[u32]| {
            (0..).zip(places).fold(0, |word, (at, place)| word | exists(at, place))
        };
        self.map.chunks(64).map(word).collect()
    }

    /// Slots of the open segment that new data may have, behind its record.
    #[must_use]
    pub fn open_rest(&self) -> u32 {
        self.rest_for_data(0)
    }

    /// Slots that new data of one log can have without a collection: the rest of its open segment and
    /// whole segments beyond the reserve, without what records take.
    #[must_use]
    pub fn room_without_collection(&self) -> u64 {
        let records = u64::from(self.setting.record_slots);
        let rest = |open: &Open| u64::from(open.end - open.next).saturating_sub(records);
        let open = if self.has_reserve() { self.open.first().map_or(0, rest) } else { 0 };
        let segment_blocks = u64::from(self.table.shape.segment_blocks_max());
        let free = self.free_slots(self.zones(false)) / segment_blocks;
        let whole = free.saturating_sub(u64::from(self.setting.reserve_segments));
        open + whole * (segment_blocks - records)
    }

    /// Holes in full segments.
    #[must_use]
    pub fn holes(&self) -> u64 {
        self.dead_sealed()
    }

    /// Makes room once, by the mechanism that the setting says, whether it is needed or not; false if
    /// that is threading, which needs none. At most `victims` are cleaned; 0 for as many as the setting
    /// says.
    ///
    /// # Errors
    /// If nothing can be freed.
    pub fn make_more_room(
        &mut self,
        victims: u32,
        device: &mut impl super::BlockDevice,
    ) -> Result<bool, LogError> {
        use super::policy::mechanism::{Collect, Mechanism};
        if self.setting.collect == Collect::Always(Mechanism::Thread) && self.has_hole() {
            return Ok(false);
        }
        let batch = self.setting.batch_segments;
        if victims > 0 {
            self.setting.batch_segments = victims;
        }
        let made = self.make_room(device);
        self.setting.batch_segments = batch;
        made.map(|()| true)
    }

    /// Makes room as [`make_more_room`](Self::make_more_room) does, but by cleaning, whatever the setting says.
    ///
    /// # Errors
    /// If nothing can be freed.
    pub fn make_room_by_cleaning(
        &mut self,
        device: &mut impl super::BlockDevice,
    ) -> Result<bool, LogError> {
        use super::policy::mechanism::{Collect, Mechanism};
        let rule = std::mem::replace(&mut self.setting.collect, Collect::Always(Mechanism::Clean));
        let made = self.make_more_room(0, device);
        self.setting.collect = rule;
        made
    }

    /// Makes room as [`make_more_room`](Self::make_more_room) does of one victim, but plugs no more than
    /// `blocks` blocks at a time: what is left of the victim is for the next time, and room comes with
    /// its last block.
    ///
    /// # Errors
    /// If nothing can be freed.
    pub fn make_room_in_parts(
        &mut self,
        blocks: u32,
        device: &mut impl super::BlockDevice,
    ) -> Result<bool, LogError> {
        use super::policy::mechanism::Mechanism;
        if self.choose_mechanism() == Mechanism::Plug && self.plug(blocks, device) {
            return Ok(true);
        }
        self.make_more_room(1, device)
    }
}

/// Why a log cannot be what was kept of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The setting.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A block lies outside.
    #[error("block {block} is said to lie in slot {slot}, which there is not")]
    Outside {
        /// The block.
        block: u32,
        /// The slot.
        slot: u32,
    },
    /// Two blocks lie in one place.
    #[error("blocks {other} and {block} are both said to lie in slot {slot}")]
    Twice {
        /// The later block.
        block: u32,
        /// The earlier one.
        other: u32,
        /// The slot.
        slot: u32,
    },
    /// An open segment cannot be.
    #[error("segment {segment} cannot be open for log {log} from slot {next} on")]
    Open {
        /// The segment.
        segment: u32,
        /// The slot said to be next.
        next: u32,
        /// The log.
        log: u32,
    },
}
