//! The log: the map from blocks to slots, open segments, write buffers, and the order of events.
//!
//! A block is written to a buffer, or straight to the disk if buffers hold one block. Flushed
//! blocks are appended to the open segment of the log that the placement names. When that is full a
//! free segment is opened; when no more than the reserve is free, room is made first.
//!
//! Events come in an order that keeps the log atomic (Matthews 1999, §5.4.1): data is written to
//! slots that the map on disk does not name; then the map changes ([`BlockDevice::commit`]); then the
//! slots it named before are dead, and segments in which nothing is live become free. Deletions
//! take effect in the map at once, as all metadata here does without disk traffic.
//!
//! Invariants: [`Log::verify`].
//!
//! An operation that is refused because the log is full leaves it as it was: what was to be written
//! waits or is not there, and half-done collections are taken back. After deletions it goes on.
//!
//! Memory: 4 bytes a block (its place), 4 bytes and a bit a slot (its owner), some 60 bytes a
//! segment, and what the placement keeps; with the largest placement, 6 bytes a block, the process
//! grows by 15.3 bytes a live block at 85 % and segments of 512 blocks.
//!
//! What bounds it: the map, looked up at random: twice for a user write, once for a collected block,
//! 2.5 of which there are for each write at 85 %. Everything else is in the first cache or read in
//! order. The look-ups do not wait for each other where the loops around them are short, so loops
//! touch one table each, over a buffer or a segment at a time, and do not branch on what is in no
//! order (`deaths.rs`); who writes looks the map up beforehand, many at a time, or hands over
//! many blocks at once ([`Log::write_to_buffer`]). 2^18 blocks in buffers of a segment, random
//! updates, greedy cleaning, segments of 512, 85 % full: some 210 instructions a user write
//! (callgrind), of which 80 go to collected blocks, 70 to the old places of new ones, 45 to the index
//! of victims. Beside it the loop of twenty lines in `benches/layout.rs` (`naive_85`) waits for the
//! map for each slot of a victim, live or not.

use super::ages::BlockTimes;
use super::buffers::{Buffers, Waiting};
use super::changed_segments::ChangedSegments;
use super::counts::Counts;
use super::log_setting::{LogSetting, Trigger, ZoneUse};
use super::policy::mechanism::{Collect, Mechanism};
use super::policy::placement::Placement;
use super::reorganisation_log::Reorganisation;
use super::segment_table::{NONE, SegmentTable, State};
use super::shape::SLOTS_MAX;
use super::threading::ThreadedNext;
use super::victim_index::VictimIndex;
use crate::pending_discards::PendingDiscards;

use super::{BlockDevice, LogError, LogShape, Purpose, ShapeError, Sources, Transfer};

/// Set in a block's place while it waits in a buffer; the rest is the entry's number.
pub(crate) const WAITING: u32 = SLOTS_MAX as u32;

/// Bytes of a block's or a segment's header (Matthews 1999, §5.4.1: 512 bytes).
pub(crate) const HEADER_BYTES: u32 = 512;

/// A segment that takes blocks: the next slot and the one after the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    pub(crate) segment: u32,
    pub(crate) next: u32,
    pub(crate) end: u32,
}

const CLOSED: Open = Open { segment: NONE, next: 0, end: 0 };

/// A log-structured layout. See the module.
#[derive(Debug, Clone)]
pub struct Log<P> {
    pub(crate) setting: LogSetting,
    pub(crate) table: SegmentTable,
    pub(crate) map: Vec<u32>,
    pub(crate) free: Vec<std::collections::VecDeque<u32>>,
    pub(crate) open: Vec<Open>,
    pub(crate) buffers: Buffers,
    pub(crate) index: VictimIndex,
    /// What the index does not know yet and must know to choose.
    pub(crate) changed: ChangedSegments,
    /// Deaths that leave a segment this full or fuller are not reported to the index; at least 1.
    pub(crate) reported_below: u32,
    /// Segments that lost their last live block, while many blocks die.
    pub(super) emptied: Vec<u32>,
    /// Segments of places that many blocks have left.
    pub(super) left_segments: Vec<u32>,
    pub(crate) placement: P,
    /// Whether the placement need not be asked or notified: [`Placement::is_indifferent`].
    pub(crate) is_indifferent: bool,
    pub(crate) counts: Counts,
    /// When blocks were written, if that is asked for.
    pub(crate) block_times: BlockTimes,
    /// New blocks placed so far.
    pub(crate) clock: u64,
    pub(crate) live_blocks: u64,
    /// Slots written in open and full segments.
    pub(crate) written_slots: u64,
    /// Which blocks the host has in its cache, a bit each; nothing unless asked for.
    resident: Vec<u64>,
    /// Collected blocks that wait to be written, log by log, with the slot they come from.
    pub(crate) staged: Vec<Vec<(u32, u32)>>,
    /// Slots that holes were filled in, and blocks to fill them with, while that goes on.
    pub(crate) filled: Vec<u32>,
    pub(crate) threading: Vec<u32>,
    /// Whose holes are filled next, if that is chosen ahead.
    pub(super) threaded_next: ThreadedNext,
    /// Buffer entries to write, log by log.
    pub(super) outgoing: Vec<Vec<u32>>,
    /// Buffer entries being written: the placement has heard that their old copies are dead.
    pub(crate) sending: std::ops::Range<u32>,
    /// Whether it is this that makes room for whole syncs, and not whoever writes.
    pub(crate) makes_room_beforehand: bool,
    /// What the reorganisation log needs beside its open segment.
    pub(crate) reorganisation: Reorganisation,
    /// Free segments that have not been discarded on the device.
    pub(super) pending_discards: PendingDiscards,
}

impl<P: Placement> Log<P> {
    /// An empty log.
    ///
    /// # Errors
    /// If the reserve leaves nothing.
    ///
    /// # Panics
    /// If records leave no room for data in a segment.
    pub fn new(setting: LogSetting, placement: P) -> Result<Self, ShapeError> {
        let (map, table) = (vec![NONE; setting.blocks as usize], SegmentTable::new(&setting.shape));
        Self::with(setting, placement, map, table)
    }

    /// A log whose segments are all free but for what is in `table`.
    pub(crate) fn with(
        setting: LogSetting,
        placement: P,
        map: Vec<u32>,
        table: SegmentTable,
    ) -> Result<Self, ShapeError> {
        setting.check_fits(0, placement.logs())?;
        let least = (0..setting.shape.zones()).map(|zone| setting.shape.zone(zone).segment_blocks);
        assert!(least.min() > Some(setting.record_slots), "records leave no room for data");
        let shape = setting.shape.clone();
        let logs = placement.logs();
        let free = (0..shape.zones()).map(|zone| shape.segments_of_zone(zone).collect()).collect();
        let resident =
            if setting.tracks_cache { (setting.blocks as usize).div_ceil(64) } else { 0 };
        Ok(Self {
            map,
            free,
            open: vec![CLOSED; logs],
            buffers: Buffers::new(setting.clients, setting.buffer_blocks),
            index: VictimIndex::new(
                setting.victim,
                setting.ages.segment,
                setting.victim_policy.is_some(),
                &shape,
            ),
            table,
            changed: ChangedSegments::default(),
            reported_below: u32::MAX,
            emptied: Vec::new(),
            left_segments: Vec::new(),
            is_indifferent: placement.is_indifferent(),
            placement,
            counts: Counts::default(),
            block_times: BlockTimes::new(setting.ages.needs_block_times(), setting.blocks),
            clock: 0,
            live_blocks: 0,
            written_slots: 0,
            resident: vec![0; resident],
            staged: vec![Vec::new(); logs],
            filled: Vec::new(),
            threading: Vec::new(),
            threaded_next: ThreadedNext::default(),
            outgoing: vec![Vec::new(); logs],
            sending: 0..0,
            makes_room_beforehand: setting.whole_syncs,
            reorganisation: Reorganisation::default(),
            pending_discards: PendingDiscards::default(),
            setting,
        })
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Blocks that exist, in buffers or on disk.
    #[must_use]
    pub fn live_blocks(&self) -> u64 {
        self.live_blocks
    }

    /// How the disk is divided.
    #[must_use]
    pub fn shape(&self) -> &LogShape {
        &self.table.shape
    }

    /// The placement.
    #[must_use]
    pub fn placement(&self) -> &P {
        &self.placement
    }

    /// What it was made with, but for the mechanism, which may have changed.
    #[must_use]
    pub fn setting(&self) -> &LogSetting {
        &self.setting
    }

    /// Reads the map's entry of `block`, so that it is in the processor's cache when it is needed.
    #[must_use]
    #[inline]
    pub fn look_up(&self, block: u32) -> u32 {
        self.map.get(block as usize).copied().unwrap_or(NONE)
    }

    /// Blocks that may be numbered.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.map.len() as u32
    }

    /// The slot of `block`, unless it does not exist or waits in a buffer.
    #[must_use]
    pub fn slot_of(&self, block: u32) -> Option<u32> {
        self.map.get(block as usize).copied().filter(|place| *place < WAITING)
    }

    /// Whether `block` exists.
    #[must_use]
    pub fn holds(&self, block: u32) -> bool {
        self.map.get(block as usize).is_some_and(|place| *place != NONE)
    }

    /// What has been written of segments that take more: first slot and blocks.
    pub fn open_parts(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let open = self.open.iter().filter(|open| open.segment != NONE);
        let parts = open.map(|open| (self.table.bounds(open.segment).0, open.next));
        parts.map(|(first, next)| (first, next - first)).filter(|(_, blocks)| *blocks > 0)
    }

    /// Changes the mechanism from the next opportunity on.
    pub fn set_collect(&mut self, collect: Collect) {
        self.setting.collect = collect;
    }

    /// Who decides on the mechanism now.
    #[must_use]
    pub fn collect_rule(&self) -> Collect {
        self.setting.collect
    }

    /// Lets blocks be numbered up to `blocks`.
    pub fn ensure_blocks(&mut self, blocks: u32) {
        if blocks as usize > self.map.len() {
            self.map.resize(blocks as usize, NONE);
            self.placement.ensure_blocks(blocks as usize);
            self.block_times.ensure_blocks(blocks);
            if self.setting.tracks_cache {
                self.resident.resize((blocks as usize).div_ceil(64), 0);
            }
        }
    }

    /// The user writes `block`. Where syncs are whole, whoever calls has made room for it: [`Log::carry_out`] does.
    ///
    /// # Errors
    /// If no room can be made for it.
    #[inline]
    pub fn write(
        &mut self,
        block: u32,
        client: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        self.counts.user_blocks += 1;
        if self.setting.buffer_blocks <= 1 {
            self.write_through(block, device)?;
        } else {
            self.write_buffered(block, client, device)?;
        }
        match self.setting.trigger {
            Trigger::NoFreeSegment => {}
            Trigger::GarbageShare(share) => self.collect_garbage(share, device)?,
            Trigger::FreeShare(share) => self.keep_free(share, device),
        }
        Ok(())
    }

    #[inline(never)]
    fn collect_garbage(
        &mut self,
        share: f64,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        // A policy that ignores utilization may meet full segments, but not in all of a round.
        let mut left = self.table.shape.segments();
        while self.dead_sealed() as f64 > share * self.written_slots as f64 && left > 0 {
            left -= 1;
            if !self.clean_ahead(1, device)? {
                break;
            }
        }
        Ok(())
    }

    /// Cleans until `share` of the room there is lies in free segments, or a round of all segments
    /// has not brought it about. What cannot be cleaned now is left to when room is needed.
    #[inline(never)]
    pub(super) fn keep_free(&mut self, share: f64, device: &mut impl BlockDevice) {
        for _ in 0..self.table.shape.segments() {
            let free = self.free_slots(self.all_zones());
            let room = self.table.shape.capacity_blocks().saturating_sub(self.live_blocks);
            if free as f64 >= share * room as f64 || self.clean_ahead(1, device) != Ok(true) {
                break;
            }
        }
    }

    /// Straight to the disk: the fast path of everything that has no buffers.
    #[inline]
    fn write_through(&mut self, block: u32, device: &mut impl BlockDevice) -> Result<(), LogError> {
        self.clock += 1;
        let mut log = 0;
        if !self.is_indifferent {
            let old = self.map[block as usize];
            if old != NONE {
                self.placement.died(block, self.table.shape.segment_of(old));
            }
            log = self.placement.place_new(block, old != NONE, self.clock) as usize;
        }
        if self.open[log].next == self.open[log].end
            && self.place_where_room_is(log, block, device)?
        {
            return Ok(());
        }
        self.append_one(log, block, device);
        Ok(())
    }

    /// New data of `block` lies in `slot` from now on, and no longer where it lay before.
    #[inline]
    pub(super) fn lands(&mut self, block: u32, slot: u32, device: &mut impl BlockDevice) {
        let old = std::mem::replace(&mut self.map[block as usize], slot);
        self.block_times.written(block, self.clock);
        if old == NONE {
            self.live_blocks += 1;
        } else if self.keeps_place(block, old) {
            self.reorganisation.patches.push((old, block));
            self.patch(device);
        } else {
            self.kill(old);
        }
    }

    /// Makes room for `block` in `log`, or threads it into a hole, which it says.
    #[cold]
    fn place_where_room_is(
        &mut self,
        log: usize,
        block: u32,
        device: &mut impl BlockDevice,
    ) -> Result<bool, LogError> {
        let old = self.map[block as usize];
        let mut threaded = false;
        while self.open[log].next == self.open[log].end && !threaded {
            match self.open_for_new_data(log, device) {
                Ok(true) => {}
                Ok(false) => threaded = self.thread_one(block, device),
                Err(full) => {
                    // The placement has heard that the old copy is dead, and it is not.
                    let place = self.map[block as usize];
                    if place == old && old != NONE {
                        self.placement.placed(block, self.table.shape.segment_of(old));
                    }
                    return Err(full);
                }
            }
        }
        let place = self.map[block as usize];
        if place != old && !threaded {
            // A collection has moved the old copy after the placement heard of its death.
            self.placement.died(block, self.table.shape.segment_of(place));
        }
        Ok(threaded)
    }

    /// Appends `block`, which waits in no buffer, to `log`, which has room.
    #[inline]
    pub(super) fn append_one(&mut self, log: usize, block: u32, device: &mut impl BlockDevice) {
        let Open { segment, next: slot, .. } = self.open[log];
        self.open[log].next += 1;
        self.written_slots += 1;
        self.counts.new_blocks += 1;
        self.table.fill(segment, slot, block);
        self.table.youngest[segment as usize] = self.clock;
        if !self.is_indifferent {
            self.placement.placed(block, segment);
        }
        let transfer = Transfer::of_blocks(Purpose::NewData, slot, 1);
        let old = self.map[block as usize];
        device.transfer_from(&transfer, &[block], Sources::Through(Waiting { block, old }));
        if self.open[log].next == self.open[log].end {
            self.seal(log);
        }
        device.commit();
        self.lands(block, slot, device);
    }

    /// `block` is deleted.
    pub fn delete(&mut self, block: u32, device: &mut impl BlockDevice) {
        let Some(place) = self.map.get(block as usize).copied().filter(|place| *place != NONE)
        else {
            return;
        };
        self.live_blocks -= 1;
        self.map[block as usize] = NONE;
        let slot = if place & WAITING == 0 {
            place
        } else {
            self.counts.absorbed_blocks += 1;
            let waiting = &mut self.buffers.entries[(place & !WAITING) as usize];
            waiting.block = NONE;
            waiting.old
        };
        device.deletes(block, (slot != NONE).then_some(slot));
        device.commit();
        if slot != NONE {
            self.placement.died(block, self.table.shape.segment_of(slot));
            self.kill(slot);
        }
        self.placement.deleted(block, self.clock);
    }

    /// Transfers and commits the next `blocks` slots of an open segment, which have been filled.
    #[inline]
    pub(crate) fn send_appended(
        &self,
        log: usize,
        blocks: u32,
        purpose: Purpose,
        sources: Sources<'_>,
        device: &mut impl BlockDevice,
    ) {
        let slot = self.open[log].next;
        let contents = &self.table.owner[slot as usize..(slot + blocks) as usize];
        device.transfer_from(&Transfer::of_blocks(purpose, slot, blocks), contents, sources);
        device.commit();
    }

    /// The next `blocks` slots of an open segment have been filled and sent: seals the segment if it
    /// is full.
    #[inline]
    pub(crate) fn appended(&mut self, log: usize, blocks: u32) {
        self.written_slots += u64::from(blocks);
        self.open[log].next += blocks;
        if self.open[log].next == self.open[log].end {
            self.seal(log);
        }
    }

    /// Slots of the open segment of `log` that new data may have, behind its record.
    #[inline]
    pub(crate) fn rest_for_data(&self, log: usize) -> u32 {
        (self.open[log].end - self.open[log].next).saturating_sub(self.setting.record_slots)
    }

    /// Leaves the slots of a record in the open segment of `log` before new data, which has room.
    #[inline]
    pub(crate) fn leave_record_slots(&mut self, log: usize) {
        if self.setting.record_slots > 0 {
            self.leave_slots(log, self.setting.record_slots);
        }
    }

    /// Seals the open segment of `log`, if there is one: its rest has no room for data behind a record.
    #[inline]
    pub(crate) fn leave_rest(&mut self, log: usize) {
        let rest = self.open[log].end - self.open[log].next;
        if rest > 0 {
            self.leave_slots(log, rest);
        }
    }

    /// Leaves the next `slots` slots of the open segment of `log` without a block.
    #[inline]
    fn leave_slots(&mut self, log: usize, slots: u32) {
        self.table.left[self.open[log].segment as usize] += slots;
        self.appended(log, slots);
    }

    #[cold]
    fn seal(&mut self, log: usize) {
        let segment = self.open[log].segment;
        self.open[log] = CLOSED;
        self.table.sealed[segment as usize] = self.clock;
        if self.table.live[segment as usize] == 0 {
            self.counts.segments_emptied += 1;
            self.release(segment);
            return;
        }
        self.enter_index(segment);
    }

    /// `segment` is full and may be collected from now on.
    pub(crate) fn enter_index(&mut self, segment: u32) {
        self.table.state[segment as usize] = State::SEALED;
        let zone = self.table.shape.zone_of(segment);
        let live = self.table.live[segment as usize];
        self.index.insert(segment, zone, live, self.time_of(segment), self.is_resident(segment));
    }

    /// What the victim policy takes for the time of a segment's data.
    pub(super) fn time_of(&self, segment: u32) -> u64 {
        let segment = segment as usize;
        let table = &self.table;
        self.index.time_of(table.opened[segment], table.sealed[segment], table.youngest[segment])
    }

    /// From here on free segments are discarded on the device, after each call.
    pub fn enable_discard(&mut self) {
        self.pending_discards.begin(self.table.shape.segments());
    }

    /// Discards segments that came free and are so still.
    #[inline]
    pub fn issue_discards(&mut self, device: &mut impl BlockDevice) {
        if self.pending_discards.is_wanted() {
            let table = &self.table;
            self.pending_discards.issue_as(device, |device, first, segments| {
                for segment in first..first + segments {
                    let (slot, end) = table.bounds(segment);
                    device.discard(slot, end - slot);
                }
            });
        }
    }

    /// Zones that new data or collected data goes to.
    pub(crate) fn zones(&self, collected: bool) -> std::ops::Range<usize> {
        let zones = self.table.shape.zones();
        match (self.setting.zone_use, collected) {
            (ZoneUse::Any, _) => 0..zones,
            (ZoneUse::NewFirstCollectedLast, false) => 0..1,
            (ZoneUse::NewFirstCollectedLast, true) => zones - 1..zones,
        }
    }

    /// All zones.
    pub(crate) fn all_zones(&self) -> std::ops::Range<usize> {
        0..self.table.shape.zones()
    }

    /// Whether the free segments of `zones` hold as many slots as `segments` of their largest.
    pub(crate) fn has_free(&self, zones: std::ops::Range<usize>, segments: u32) -> bool {
        let blocks = |zone| self.table.shape.zone(zone).segment_blocks;
        let largest = zones.clone().map(blocks).max().unwrap_or(0);
        self.free_slots(zones) >= u64::from(segments) * u64::from(largest)
    }

    /// Whether the reserve is whole: wherever it lies, a victim of any zone finds room in it.
    pub(crate) fn has_reserve(&self) -> bool {
        self.has_free(self.all_zones(), self.setting.reserve_segments)
    }

    /// Whether any segment may be opened and leaves the reserve whole.
    pub(crate) fn has_more_than_reserve(&self) -> bool {
        self.has_free(self.all_zones(), self.setting.reserve_segments + 1)
    }

    /// Whether a segment may be opened for new data, in its own zones, and leaves the reserve whole.
    pub(crate) fn has_free_for_new_data(&self) -> bool {
        self.has_more_than_reserve() && self.has_free(self.zones(false), 1)
    }

    /// Slots in the free segments of `zones`.
    pub(crate) fn free_slots(&self, zones: std::ops::Range<usize>) -> u64 {
        let slots = |zone| {
            let blocks = u64::from(self.table.shape.zone(zone).segment_blocks);
            self.free[zone].len() as u64 * blocks
        };
        zones.map(slots).sum()
    }

    /// Opens a free segment of `zones` for `log`; false if there is none.
    pub(crate) fn open_segment(&mut self, log: usize, zones: std::ops::Range<usize>) -> bool {
        let share = |zone: &usize| {
            let all = self.table.shape.segments_of_zone(*zone).len() as f64;
            self.free[*zone].len() as f64 / all
        };
        let fullest = zones.clone().max_by(|one, other| share(one).total_cmp(&share(other)));
        let is_for_regrouping = self.placement.regroups_to() == Some(log as u8);
        let chosen = if is_for_regrouping { self.take_free_for_regrouping(zones) } else { None };
        let next = || fullest.and_then(|zone| self.free[zone].pop_front());
        let Some(segment) = chosen.or_else(next) else { return false };
        let (next, end) = self.table.bounds(segment);
        self.open[log] = Open { segment, next, end };
        self.table.state[segment as usize] = State::OPEN;
        self.pending_discards.used(segment);
        self.table.log[segment as usize] = log as u8;
        self.table.opened[segment as usize] = self.clock;
        self.table.youngest[segment as usize] = 0;
        self.table.left[segment as usize] = 0;
        true
    }

    /// Gives `log` an open segment with room, collecting first if need be; false if new data is to
    /// be threaded instead.
    pub(super) fn open_for_new_data(
        &mut self,
        log: usize,
        device: &mut impl BlockDevice,
    ) -> Result<bool, LogError> {
        loop {
            let zones = self.zones(false);
            // A collection may have left its last segment open on the same log. New data may have
            // the rest of it only when the reserve is whole again: the next collection needs both.
            let has_rest = self.rest_for_data(log) > 0;
            if has_rest && self.has_reserve() {
                return Ok(true);
            }
            if !has_rest && self.has_free_for_new_data() {
                self.leave_rest(log);
                self.open_segment(log, zones);
                return Ok(true);
            }
            let is_closed = self.open[log].next == self.open[log].end;
            if is_closed && self.take_over_regrouping(log, &zones) {
                continue;
            }
            if self.setting.collect == Collect::Always(Mechanism::Thread) && self.has_hole() {
                return Ok(false);
            }
            if let Err(full) = self.make_room(device) {
                return self.open_elsewhere(log).then_some(true).ok_or(full);
            }
        }
    }

    /// Gives `log` a segment with room although the zones of new data have neither a free one nor
    /// garbage: one that collections have left open, or one of another zone; false if there is none.
    #[cold]
    pub(super) fn open_elsewhere(&mut self, log: usize) -> bool {
        if self.rest_for_data(log) > 0 {
            return self.has_reserve();
        }
        self.has_more_than_reserve() && {
            self.leave_rest(log);
            self.open_segment(log, self.all_zones())
        }
    }

    /// Bytes that its map and its slots take; what a placement keeps comes on top.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let map = self.map.capacity() * size_of::<u32>();
        map + self.table.memory_bytes() + self.block_times.memory_bytes()
    }

    /// The host has `block` in its cache, or has dropped it.
    pub fn set_resident(&mut self, block: u32, resident: bool) {
        if !self.setting.tracks_cache {
            return;
        }
        let (word, bit) = ((block / 64) as usize, 1_u64 << (block % 64));
        if resident {
            self.resident[word] |= bit;
            return;
        }
        self.resident[word] &= !bit;
        if let Some(slot) = self.slot_of(block) {
            let segment = self.table.shape.segment_of(slot);
            // An open segment has no age yet, and is looked at again when it is sealed.
            if self.table.state[segment as usize].is_full() {
                let zone = self.table.shape.zone_of(segment);
                let time = self.time_of(segment);
                self.index.uncache(segment, zone, time);
            }
        }
    }

    /// Whether every live block of `segment` is in the host's cache.
    fn is_resident(&self, segment: u32) -> bool {
        if !self.setting.tracks_cache {
            return false;
        }
        let (first, end) = self.table.bounds(segment);
        (first..end).filter(|slot| self.table.is_live(*slot)).all(|slot| {
            let block = self.table.owner[slot as usize];
            self.resident[(block / 64) as usize] >> (block % 64) & 1 == 1
        })
    }
}
