//! Threaded logging: new data goes straight into the holes of a segment, and nothing is collected.
//!
//! The least utilized segment has the most holes, so that one seek serves the most blocks; they are
//! written in the order of their slots. F2FS does the same when free sections run out (Lee et al.
//! 2015, §2.6), by a threshold rather than by cost.

use std::collections::VecDeque;

use super::collection::Holes;
use super::log::Log;
use super::policy::placement::Placement;

use super::buffers::Waiting;
use super::{BlockDevice, Purpose, Sources};

/// How many times the holes of the segment behind the last one that one needs to be next in a sweep instead: one
/// that is not far away, and one anywhere. Chosen by us: a jump takes about as long as all of a segment, and what
/// is passed over has no fewer holes the next time. On recorded loads of mail and of a database on an ST2000DM006,
/// segments of 64 and 256 blocks, disk time is the same within 4 % from 4 and 5 to 12 and 15; with 2 and 2.5 it is
/// up to 5 % more, with 100 and 100 half as much again.
const NEAR_HOLES: f64 = 6.0;
const FAR_HOLES: f64 = 8.0;

/// Segments that a sweep passes over at most; chosen by us: farther on a disk's arm moves as long as anywhere.
const SWEEP_REACH: u32 = 32;

/// Segments whose holes are filled next, where they are chosen ahead.
#[derive(Debug, Clone, Default)]
pub(super) struct ThreadedNext {
    /// The first is being filled.
    segments: VecDeque<u32>,
    /// The slot of the first before which nothing is filled any more.
    from: u32,
    /// Slots left between runs of holes that are filled one after another, and between syncs.
    spacing: u32,
    sync_gap: u32,
    /// The last slot filled since the last sync, if any, and where new data would have been appended then.
    last: Option<u32>,
    append_at: u32,
}

impl<P: Placement> Log<P> {
    /// Whether a full segment has a dead block.
    pub(super) fn has_hole(&self) -> bool {
        self.dead_sealed() > 0
    }

    /// Writes buffer entries into the holes of one segment; as many as it has holes. It `goes_on` where others
    /// were filled with entries before these.
    pub(super) fn thread(
        &mut self,
        entries: &[u32],
        goes_on: bool,
        device: &mut impl BlockDevice,
    ) -> usize {
        let before = self.threads_ahead().next().filter(|_| goes_on);
        let Some(segment) = self.choose_thread_segment(device) else { return 0 };
        let mut blocks = std::mem::take(&mut self.threading);
        let mut filled = std::mem::take(&mut self.filled);
        blocks.extend(entries.iter().map(|entry| self.buffers.entries[*entry as usize].block));
        let waiting = std::mem::take(&mut self.buffers.entries);
        let sources = Sources::Entries(entries, &waiting);
        let sweeps =
            before.is_some_and(|before| (before..=before + SWEEP_REACH).contains(&segment));
        let holes = Holes { further: sweeps, ..self.holes_to_thread(segment) };
        self.fill_holes(&holes, blocks.drain(..), Purpose::Thread, sources, &mut filled, device);
        let is_over = filled.len() == entries.len();
        self.passed(&filled, if is_over { 0 } else { holes.spacing });
        self.buffers.entries = waiting;
        self.threaded(segment, filled.len(), device);
        for (entry, slot) in entries.iter().zip(&filled) {
            self.settle(*entry, *slot);
        }
        self.patch(device);
        let threaded = filled.len();
        filled.clear();
        (self.threading, self.filled) = (blocks, filled);
        threaded
    }

    /// Writes one block, which waits in no buffer, into a hole; false if there is none.
    pub(super) fn thread_one(&mut self, block: u32, device: &mut impl BlockDevice) -> bool {
        let Some(segment) = self.choose_thread_segment(device) else { return false };
        let mut filled = std::mem::take(&mut self.filled);
        let (once, old) = (std::iter::once(block), self.map[block as usize]);
        let sources = Sources::Through(Waiting { block, old });
        let holes = self.holes_to_thread(segment);
        self.fill_holes(&holes, once, Purpose::Thread, sources, &mut filled, device);
        self.passed(&filled, 0);
        self.threaded(segment, 1, device);
        self.lands(block, filled[0], device);
        filled.clear();
        self.filled = filled;
        true
    }

    /// The segment whose holes are filled now.
    fn choose_thread_segment(&mut self, device: &impl BlockDevice) -> Option<u32> {
        self.refresh_index();
        if self.setting.threads_ahead == 0 {
            return self.choose_emptiest(&[], device);
        }
        self.choose_threads_ahead(device);
        self.threaded_next.segments.front().copied()
    }

    /// Chooses the segments whose holes are filled next, as far ahead as the setting says: a sweep over those
    /// that are about as empty as the emptiest.
    pub fn choose_threads_ahead(&mut self, device: &impl BlockDevice) {
        let ahead = self.setting.threads_ahead as usize;
        let mut next = std::mem::take(&mut self.threaded_next);
        let before = next.segments.front().copied();
        // Others may have been collected since.
        next.segments.retain(|segment| self.table.state[*segment as usize].is_full());
        while let Some(first) = next.segments.front().copied() {
            let (begin, end) = self.table.bounds(first);
            let from = if before == Some(first) { next.from.clamp(begin, end) } else { begin };
            if self.next_fillable(from, end, device).is_some() {
                break;
            }
            next.segments.pop_front();
        }
        if next.segments.len() < ahead {
            self.refresh_index();
        }
        while next.segments.len() < ahead {
            let last = next.segments.back().copied().or(before);
            let Some(more) = self.choose_behind(last, next.segments.make_contiguous(), device)
            else {
                break;
            };
            next.segments.push_back(more);
        }
        if let Some(first) = next.segments.front().copied() {
            let (begin, end) = self.table.bounds(first);
            // The same may come again.
            let from = next.from.clamp(begin, end);
            if before != Some(first) || self.next_fillable(from, end, device).is_none() {
                next.from = begin;
            }
        }
        self.threaded_next = next;
    }

    /// The segment behind `last`, unless one near it has [`NEAR_HOLES`] times, or the emptiest of all
    /// [`FAR_HOLES`] times its holes; without those of `but`.
    fn choose_behind(
        &mut self,
        last: Option<u32>,
        but: &[u32],
        device: &impl BlockDevice,
    ) -> Option<u32> {
        let emptiest = self.choose_emptiest(but, device)?;
        let mut best = (f64::from(self.table.dead(emptiest)) / FAR_HOLES, emptiest);
        let Some(last) = last else { return Some(emptiest) };
        for behind in 1..=SWEEP_REACH {
            let segment = (last + behind) % self.table.shape.segments();
            if !self.table.state[segment as usize].is_full() {
                continue;
            }
            let dearer = if behind == 1 { 1.0 } else { NEAR_HOLES };
            let worth = f64::from(self.table.dead(segment)) / dearer;
            if worth > best.0 && !but.contains(&segment) && self.has_fillable(segment, device) {
                best = (worth, segment);
            }
        }
        Some(best.1)
    }

    /// The segments whose holes are filled next, if they are chosen ahead.
    pub fn threads_ahead(&self) -> impl Iterator<Item = u32> + '_ {
        self.threaded_next.segments.iter().copied()
    }

    /// Where a log leaves room for records and chooses ahead, gives a hole to the record of what has been written
    /// since the last sync, if all of it has gone into holes.
    pub(super) fn record_in_hole(&mut self, device: &mut impl BlockDevice) {
        let last = self.threaded_next.last.take();
        let append_at = self.open[0].next;
        let appended = std::mem::replace(&mut self.threaded_next.append_at, append_at) != append_at;
        let takes_records = self.setting.record_slots > 0 && self.setting.threads_ahead > 0;
        let Some(last) = last.filter(|_| takes_records && !appended) else { return };
        if let Some(hole) = self.hole_behind(last, device) {
            self.threaded_next.from = hole + 1;
            device.records_in(hole);
        }
    }

    /// A hole that may be filled, behind slot `last` in its segment, or else before it.
    fn hole_behind(&self, last: u32, device: &impl BlockDevice) -> Option<u32> {
        let (first, end) = self.table.bounds(self.table.shape.segment_of(last));
        let from = (last + 1).clamp(first, end);
        let joined = self.next_fillable(from, (from + 1).min(end), device);
        let spaced = (from + self.threaded_next.spacing).min(end);
        let behind = joined.or_else(|| self.next_fillable(spaced, end, device));
        behind.or_else(|| self.next_fillable(first, end, device))
    }

    /// Leaves `blocks` slots before what is written next: of the open segment and the one that is opened behind
    /// it, or else of the one whose holes are filled; false where none has them. They stay free, but those of
    /// open segments only until they are collected.
    pub fn leave_gap(&mut self, blocks: u32) -> bool {
        let rest = self.open[0].end - self.open[0].next;
        if self.rest_for_data(0) > blocks {
            self.appended(0, blocks);
            return true;
        }
        if self.has_free_for_new_data() {
            self.leave_rest(0);
            let zones = self.zones(false);
            let more = blocks.saturating_sub(rest);
            let has_room = self.open_segment(0, zones) && self.rest_for_data(0) > more;
            if has_room && more > 0 {
                self.appended(0, more);
            }
            return has_room;
        }
        let fills_holes = self.rest_for_data(0) == 0;
        if fills_holes {
            self.threaded_next.from = self.threaded_next.from.saturating_add(blocks);
        }
        fills_holes
    }

    /// From here on `spacing` slots at least lie between runs of holes that are filled one after another, so that
    /// a disk reaches the next before it has passed; `sync_gap` is what its host leaves between syncs.
    pub fn space_threads(&mut self, spacing: u32, sync_gap: u32) {
        (self.threaded_next.spacing, self.threaded_next.sync_gap) = (spacing, sync_gap);
    }

    /// Leaves the gap between syncs, if what comes goes into holes.
    pub(super) fn leave_sync_gap(&mut self) {
        if self.threaded_next.sync_gap > 0 && self.rest_for_data(0) == 0 {
            self.leave_gap(self.threaded_next.sync_gap);
        }
    }

    /// Holes of this pass have been filled; the next to be lies `spacing` slots behind them.
    fn passed(&mut self, filled: &[u32], spacing: u32) {
        let Some(last) = filled.last() else { return };
        self.threaded_next.from = last + 1 + spacing;
        self.threaded_next.last = Some(*last);
    }

    /// Which holes of `segment` are filled.
    fn holes_to_thread(&self, segment: u32) -> Holes {
        let (first, end) = self.table.bounds(segment);
        let ThreadedNext { from, spacing, .. } = self.threaded_next;
        let (from, spacing) = if self.setting.threads_ahead == 0 {
            (first, 0)
        } else {
            (from.clamp(first, end), spacing)
        };
        Holes { segment, from, spacing, further: false }
    }

    /// The emptiest segment with a hole that may be filled, without those of `but`.
    fn choose_emptiest(&mut self, but: &[u32], device: &impl BlockDevice) -> Option<u32> {
        let zones = self.all_zones();
        let any = device.unfillable_most() == 0;
        let may = |log: &Self, segment: u32| {
            !but.contains(&segment) && (any || log.has_fillable(segment, device))
        };
        let segment = self.emptiest_with_hole(zones.clone())?;
        if may(self, segment) {
            return Some(segment);
        }
        // It is left out of the index while the next is looked for.
        let mut left_out = vec![segment];
        let found = loop {
            let last = left_out[left_out.len() - 1];
            self.index.remove(last, self.table.shape.zone_of(last));
            match self.emptiest_with_hole(zones.clone()) {
                Some(segment) if !may(self, segment) => left_out.push(segment),
                found => break found,
            }
        };
        for segment in left_out {
            self.enter_index(segment);
        }
        found
    }

    fn has_fillable(&self, segment: u32, device: &impl BlockDevice) -> bool {
        let (first, end) = self.table.bounds(segment);
        self.next_fillable(first, end, device).is_some()
    }

    fn threaded(&mut self, segment: u32, blocks: usize, device: &mut impl BlockDevice) {
        device.commit();
        // The segment holds young data again; that the index still ranks it by its old age only
        // matters to policies by age, which see the new one when it is next sealed.
        self.table.youngest[segment as usize] = self.clock;
        self.counts.segments_threaded += 1;
        self.counts.threaded_blocks += blocks as u64;
        self.counts.new_blocks += blocks as u64;
    }
}
