//! The reorganisation log: blocks that are read together are written together.
//!
//! It is one more log, threaded through the same segments as the others (Matthews 1999, §6.4.2).
//! Its next segment is the one right behind its last, if that is free, so that what does not fit
//! into one segment goes on in the next. Where it is not, the source does not say which is taken:
//! here the first of the longest row of free segments, so that the log can go on from there.
//!
//! A block that is kept there and written again is written twice (§6.4.3): first to the main log,
//! as any other; then, while its data is in memory, over its place in the reorganisation log. In
//! between the map names the copy in the main log, so that the old place may be overwritten; then
//! it names the old place again, and the copy in the main log is dead. A crash between the two
//! finds the copy, one before the first the old version.
//!
//! Regrouping follows the order of all writes here: data to slots that the map on disk does not
//! name, then the map, then the old slots are dead. When room is short it is made by the log's own
//! mechanisms, threading excepted: new data threaded into holes leaves no room for whole segments,
//! so that a log that is threaded is cleaned for this.
//!
//! It takes no room from the others while free segments are short: what is left of its open segment
//! goes to new data before anything is collected, it has no share in the reserve, and blocks collected
//! from it go to the last of the users' logs if it could open no segment but with the reserve.
//!
//! Invariants: nothing waits to be patched between two calls; those of [`Log::verify`].
//!
//! Cost: a regrouping costs what its reads and writes cost, and time in proportion to its blocks;
//! finding the segment behind the last takes a look through the free ones, and a look at all
//! segments where it is not free.

use super::log::Log;
use super::policy::mechanism::{Collect, Mechanism};
use super::policy::placement::Placement;
use super::segment_table::{NONE, State};
use super::{BlockDevice, LogError, Purpose, Sources, Transfer};

impl<P: Placement> Log<P> {
    /// The placement, to change what is kept in the reorganisation log.
    pub fn placement_mut(&mut self) -> &mut P {
        &mut self.placement
    }

    /// Writes `blocks`, which are distinct, one behind the other into the reorganisation log, and
    /// returns how many were written: those that do not exist or wait in a write buffer stay as
    /// they are. Blocks that are not cached are read first, in the order in which they lie. If
    /// segments must be opened, the first will be one near the segment `aim`, or follow the last.
    ///
    /// Where the placement has no reorganisation log nothing is done.
    ///
    /// # Errors
    /// If no room can be made; the blocks before have been moved then.
    pub fn regroup(
        &mut self,
        blocks: &[u32],
        is_cached: impl Fn(u32) -> bool,
        aim: Option<u32>,
        device: &mut impl BlockDevice,
    ) -> Result<u32, LogError> {
        let Some(log) = self.placement.regroups_to() else { return Ok(0) };
        let mut members = std::mem::take(&mut self.reorganisation.members);
        members.clear();
        members.extend(blocks.iter().filter(|block| self.slot_of(**block).is_some()));
        self.reorganisation.aim = aim;
        self.read_members(&members, is_cached, device);
        let regrouped = self.write_together(usize::from(log), &members, device);
        self.reorganisation.aim = None;
        let moved = members.len() as u32;
        self.reorganisation.members = members;
        regrouped.map(|()| moved)
    }

    /// Writes `blocks`, which are distinct, on disk and in memory, one behind the other into the open
    /// segment of the first of the users' logs and those that are opened next, whatever the mechanism;
    /// how many were. Nothing is collected: it ends where new data would take the reserve.
    pub fn append_together(&mut self, blocks: &[u32], device: &mut impl BlockDevice) -> u32 {
        let mut rest = blocks;
        while !rest.is_empty() {
            let room = self.rest_for_data(0);
            if room > 0 && self.has_reserve() {
                let (now, later) = rest.split_at(rest.len().min(room as usize));
                self.leave_record_slots(0);
                self.append_regrouped(0, now, device);
                rest = later;
            } else if room == 0 && self.has_free_for_new_data() {
                self.leave_rest(0);
                self.open_segment(0, self.zones(false));
            } else {
                break;
            }
        }
        (blocks.len() - rest.len()) as u32
    }

    /// The block that lies right before `slot` on the disk, if there is one.
    #[must_use]
    pub fn block_before(&self, slot: u32) -> Option<u32> {
        let shape = &self.table.shape;
        let segment = shape.segment_of(slot);
        let before = if slot > shape.first_slot(segment) {
            slot - 1
        } else {
            let earlier = segment.checked_sub(1)?;
            shape.first_slot(earlier) + shape.segment_blocks(earlier) - 1
        };
        self.block_in(before)
    }

    /// The block that lies right behind `slot` on the disk, if there is one.
    #[must_use]
    pub fn block_after(&self, slot: u32) -> Option<u32> {
        let shape = &self.table.shape;
        let segment = shape.segment_of(slot);
        let is_last = slot + 1 == shape.first_slot(segment) + shape.segment_blocks(segment);
        if !is_last {
            return self.block_in(slot + 1);
        }
        let next = segment + 1;
        if next < shape.segments() { self.block_in(shape.first_slot(next)) } else { None }
    }

    /// The block that the map finds in `slot`.
    fn block_in(&self, slot: u32) -> Option<u32> {
        let block = self.table.owner[slot as usize];
        (self.table.is_live(slot) && self.slot_of(block) == Some(slot)).then_some(block)
    }

    /// Pieces in which `blocks` blocks will lie if they are regrouped now, as far as that can be
    /// foreseen: if they run over the end of a segment, the next follows it if it is free.
    #[must_use]
    pub fn pieces_regrouped(&self, blocks: u32) -> u32 {
        let Some(log) = self.placement.regroups_to() else { return blocks };
        let open = self.open[usize::from(log)];
        let rest = open.end - open.next;
        if rest >= blocks {
            return 1;
        }
        let (last, segments) = (self.reorganisation.last, self.table.shape.segments());
        let follows =
            |segment: u32| segment < segments && self.table.state[segment as usize] == State::FREE;
        let beyond = (blocks - rest).div_ceil(self.table.shape.segment_blocks_max());
        let row = (1..=beyond).take_while(|ahead| last != NONE && follows(last + ahead)).count();
        let breaks = beyond - row as u32;
        // Without a rest the first segment begins the first piece.
        if rest > 0 { 1 + breaks } else { breaks.max(1) }
    }

    /// Reads those of `members` that are not cached, as they lie.
    fn read_members(
        &mut self,
        members: &[u32],
        is_cached: impl Fn(u32) -> bool,
        device: &mut impl BlockDevice,
    ) {
        let mut slots = std::mem::take(&mut self.reorganisation.slots);
        slots.clear();
        let uncached = members.iter().filter(|block| !is_cached(**block));
        slots.extend(uncached.filter_map(|block| self.slot_of(*block)));
        slots.sort_unstable();
        self.counts.regroup_read_blocks += slots.len() as u64;
        let segment_of = |slot: u32| self.table.shape.segment_of(slot);
        let mut segment = NONE;
        device.begin_batch();
        for run in
            slots.chunk_by(|one, next| one + 1 == *next && segment_of(*one) == segment_of(*next))
        {
            let here = segment_of(run[0]);
            let further = here == std::mem::replace(&mut segment, here);
            let read = Transfer::of_blocks(Purpose::RegroupRead, run[0], run.len() as u32);
            device.transfer(&Transfer { further, ..read }, &[]);
        }
        device.end_batch();
        self.reorganisation.slots = slots;
    }

    fn write_together(
        &mut self,
        log: usize,
        members: &[u32],
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        let mut rest = members;
        while !rest.is_empty() {
            self.open_for_regrouping(log, device)?;
            let room = (self.open[log].end - self.open[log].next) as usize;
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.append_regrouped(log, now, device);
            rest = later;
        }
        Ok(())
    }

    /// Gives the reorganisation log an open segment with room.
    fn open_for_regrouping(
        &mut self,
        log: usize,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        loop {
            // As for new data: the reserve belongs to collections.
            let has_rest = self.open[log].next < self.open[log].end;
            if has_rest && self.has_reserve() {
                return Ok(());
            }
            if !has_rest && self.has_free_for_new_data() {
                self.open_segment(log, self.zones(false));
                return Ok(());
            }
            if let Err(full) = self.make_room_for_regrouping(device) {
                return self.open_elsewhere(log).then_some(()).ok_or(full);
            }
        }
    }

    /// Gives `log` what is left of the open segment of the reorganisation log, if that lies in
    /// `zones`; false if there is nothing left.
    pub(super) fn take_over_regrouping(
        &mut self,
        log: usize,
        zones: &std::ops::Range<usize>,
    ) -> bool {
        let Some(regrouping) = self.placement.regroups_to().map(usize::from) else { return false };
        let open = self.open[regrouping];
        if open.next == open.end || !zones.contains(&self.table.shape.zone_of(open.segment)) {
            return false;
        }
        self.open.swap(log, regrouping);
        true
    }

    /// Whether one more block of the reorganisation log `log` that is being collected finds room
    /// there without taking the reserve from what the others need.
    pub(super) fn has_room_for_kept(
        &mut self,
        log: usize,
        device: &mut impl BlockDevice,
    ) -> Result<bool, LogError> {
        let has_room = |this: &Self| {
            let open = this.open[log];
            (this.staged[log].len() as u32) < open.end - open.next
        };
        if has_room(self) {
            return Ok(true);
        }
        self.write_staged(log, device)?;
        if self.has_more_than_reserve() {
            self.open_segment(log, self.zones(true));
        }
        Ok(has_room(self))
    }

    /// Writes what is staged for the reorganisation log, so that its sources are freed; false if
    /// nothing is staged, or `log` is that log.
    pub(super) fn write_staged_kept(
        &mut self,
        log: usize,
        device: &mut impl BlockDevice,
    ) -> Result<bool, LogError> {
        match self.placement.regroups_to().map(usize::from) {
            Some(regrouping) if regrouping != log && !self.staged[regrouping].is_empty() => {
                self.write_staged(regrouping, device)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn make_room_for_regrouping(&mut self, device: &mut impl BlockDevice) -> Result<(), LogError> {
        let collect = self.setting.collect;
        if collect == Collect::Always(Mechanism::Thread) {
            self.setting.collect = Collect::Always(Mechanism::Clean);
        }
        let made = self.make_room(device);
        self.setting.collect = collect;
        made
    }

    /// Appends `blocks`, all on disk and in memory, to the reorganisation log, which has room.
    fn append_regrouped(&mut self, log: usize, blocks: &[u32], device: &mut impl BlockDevice) {
        let super::log::Open { segment, next: first, .. } = self.open[log];
        self.table.fill_run(segment, first, blocks.iter().copied());
        let mut youngest = self.table.youngest[segment as usize];
        for block in blocks {
            let source = self.table.shape.segment_of(self.map[*block as usize]);
            youngest = youngest.max(self.table.youngest[source as usize]);
            self.placement.died(*block, source);
            self.placement.placed(*block, segment);
        }
        self.table.youngest[segment as usize] = youngest;
        let count = blocks.len() as u32;
        let copies: Vec<(u32, u32)> =
            blocks.iter().map(|block| (*block, self.map[*block as usize])).collect();
        let sources = Sources::Copies(&copies);
        self.send_appended(log, count, Purpose::RegroupWrite, sources, device);
        self.appended(log, count);
        self.counts.regrouped_blocks += blocks.len() as u64;
        for (slot, block) in (first..).zip(blocks) {
            let old = std::mem::replace(&mut self.map[*block as usize], slot);
            self.kill(old);
        }
    }

    /// Takes a free segment of `zones` for the reorganisation log out of those that are free.
    #[cold]
    pub(super) fn take_free_for_regrouping(
        &mut self,
        zones: std::ops::Range<usize>,
    ) -> Option<u32> {
        let last = self.reorganisation.last;
        let is_free = |segment: &u32| {
            *segment < self.table.shape.segments()
                && self.table.state[*segment as usize] == State::FREE
                && zones.contains(&self.table.shape.zone_of(*segment))
        };
        let aimed = self.reorganisation.aim.take().and_then(|aim| {
            let segments = 0..self.table.shape.segments();
            segments.filter(is_free).min_by_key(|segment| segment.abs_diff(aim))
        });
        let behind = (last != NONE).then(|| last + 1).filter(is_free);
        let chosen =
            aimed.or(behind).or_else(|| first_of_longest_row(self.table.shape.segments(), is_free));
        let segment = chosen?;
        let free = &mut self.free[self.table.shape.zone_of(segment)];
        let place = free.iter().position(|other| *other == segment);
        free.remove(place.expect("a free segment stands among those of its zone"));
        self.reorganisation.last = segment;
        Some(segment)
    }

    /// Whether `block`, written again, is also to be written over `old`, where it lay.
    #[inline]
    pub(super) fn keeps_place(&self, block: u32, old: u32) -> bool {
        // To all but a reorganising log this is a constant.
        !self.is_indifferent && self.placement.regroups_to().is_some() && {
            let segment = self.table.shape.segment_of(old);
            self.placement.keeps_place(block, self.table.log[segment as usize])
        }
    }

    /// Writes what has just been written to the main log over its old places.
    #[inline]
    pub(super) fn patch(&mut self, device: &mut impl BlockDevice) {
        if !self.reorganisation.patches.is_empty() {
            self.patch_noted(device);
        }
    }

    #[cold]
    fn patch_noted(&mut self, device: &mut impl BlockDevice) {
        let mut patches = std::mem::take(&mut self.reorganisation.patches);
        let mut slots = std::mem::take(&mut self.reorganisation.slots);
        patches.sort_unstable();
        let shape = &self.table.shape;
        device.begin_batch();
        for in_segment in
            patches.chunk_by(|one, next| shape.segment_of(one.0) == shape.segment_of(next.0))
        {
            slots.clear();
            slots.extend(in_segment.iter().map(|patch| patch.0));
            self.transfer_filled(&slots, false, Purpose::Patch, Sources::Unnamed, device);
        }
        device.end_batch();
        device.commit();
        self.counts.patched_blocks += patches.len() as u64;
        for (slot, block) in patches.drain(..) {
            let segment = self.table.shape.segment_of(slot);
            let copy = std::mem::replace(&mut self.map[block as usize], slot);
            self.placement.died(block, self.table.shape.segment_of(copy));
            self.placement.placed(block, segment);
            self.table.youngest[segment as usize] = self.clock;
            self.kill(copy);
        }
        self.reorganisation.slots = slots;
        self.reorganisation.patches = patches;
    }
}

/// The first of the longest row of segments that are free, the first such row if there are several.
fn first_of_longest_row(segments: u32, is_free: impl Fn(&u32) -> bool) -> Option<u32> {
    let (mut longest, mut best, mut length) = (0, None, 0);
    for segment in 0..segments {
        length = if is_free(&segment) { length + 1 } else { 0 };
        if length > longest {
            (longest, best) = (length, Some(segment + 1 - length));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_row_is_found_and_the_first_of_equals() {
        let find = |free: &[u32]| first_of_longest_row(10, |segment| free.contains(segment));
        assert_eq!(find(&[]), None);
        assert_eq!(find(&[3]), Some(3));
        assert_eq!(find(&[0, 2, 3, 7, 8]), Some(2));
        assert_eq!(find(&[0, 2, 3, 7, 8, 9]), Some(7));
    }
}
