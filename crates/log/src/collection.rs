//! Collecting segments: cleaning and hole-plugging.
//!
//! Cleaning reads victims whole, copies their live blocks to the end of the logs that the placement
//! names, and goes on until it has freed as much as a segment, or has read as many as the batch
//! allows. Plugging reads one victim and copies its live blocks into the holes of the fullest
//! segments. Where collected blocks are to be sorted by age, cleaning reads its whole batch before
//! it writes any of it, or as much of it as surely fits into free segments. Both write first,
//! commit, and only then free the old copies.
//!
//! Collecting never needs more than the reserve, however blocks are divided among logs: what is
//! staged for a log without an open segment has a free one, and what is collected before room is
//! short leaves the reserve whole, because new data takes the rest of open segments unasked. Where
//! the logs share a reserve of fewer segments than there are logs, a log without room is lent that of
//! another: a reserve of one segment has room for what lives in any victim, and what was staged of
//! others is written, and has freed them, before a segment is short for it.

use std::collections::VecDeque;

use super::ages::{CollectedOrder, SegmentAge};
use super::buffers::Waiting;
use super::log::{HEADER_BYTES, Log, Open, WAITING};
use super::log_setting::Header;
use super::policy::mechanism::{
    Candidates, Collect, Mechanism, PlugCandidate, choose_matthews_1999,
};
use super::policy::placement::{CollectedSegment, Placement};
use super::segment_table::{NONE, State};
use super::{BlockDevice, LogError, Purpose, Sources, Transfer, Victim};

/// Holes that are to be filled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holes {
    pub(super) segment: u32,
    /// Its first slot that may be filled.
    pub(super) from: u32,
    /// Slots between runs of them at least.
    pub(super) spacing: u32,
    /// Whether the arm has not far to go from the last that was filled.
    pub(super) further: bool,
}

impl<P: Placement> Log<P> {
    /// Makes room for new data.
    pub(super) fn make_room(&mut self, device: &mut impl BlockDevice) -> Result<(), LogError> {
        let before = self.room();
        // A policy by age of sealing may meet segments without garbage; a round of all of them
        // that frees nothing shows that nothing can be freed.
        let by_seal_order = self.setting.victim.by_seal_order();
        let rounds = if by_seal_order { self.table.shape.segments() } else { 1 };
        for _ in 0..rounds {
            match self.choose_mechanism() {
                Mechanism::Plug if self.plug(u32::MAX, device) => {}
                _ => {
                    if !self.clean(self.setting.batch_segments, device)? {
                        return Err(self.full());
                    }
                }
            }
            // One victim of a small batch may free less than a segment; it leaves it open, or
            // nearly free, and the next goes on from there.
            if self.room() > before {
                return Ok(());
            }
        }
        Err(self.full())
    }

    /// Collects one batch in the background if fewer than `free_wanted` segments are free; false if
    /// there was nothing to do.
    ///
    /// # Errors
    /// If collected blocks find no place.
    pub fn collect_ahead(
        &mut self,
        free_wanted: u32,
        device: &mut impl BlockDevice,
    ) -> Result<bool, LogError> {
        let wanted = self.setting.reserve_segments + free_wanted;
        if self.has_free(self.zones(false), wanted) {
            return Ok(false);
        }
        match self.choose_mechanism() {
            Mechanism::Plug if self.plug(u32::MAX, device) => Ok(true),
            Mechanism::Thread => Ok(false),
            _ => self.clean_ahead(self.setting.batch_segments, device),
        }
    }

    /// Cleans while no room is needed, and goes on until the reserve is whole again; false if there
    /// was no victim.
    pub(super) fn clean_ahead(
        &mut self,
        batch: u32,
        device: &mut impl BlockDevice,
    ) -> Result<bool, LogError> {
        let cleaned = self.clean(batch, device)?;
        for _ in 0..self.table.shape.segments() {
            if self.has_reserve() || !self.clean(batch, device)? {
                break;
            }
        }
        Ok(cleaned)
    }

    /// Slots that can be written without another collection.
    fn room(&self) -> u64 {
        let open: u64 = self.open.iter().map(|open| u64::from(open.end - open.next)).sum();
        open + self.free_slots(self.all_zones())
    }

    pub(super) fn full(&self) -> LogError {
        LogError::Full { live: self.live_blocks, capacity: self.table.shape.capacity_blocks() }
    }

    /// Reports to the index what died since its last choice.
    pub(super) fn refresh_index(&mut self) {
        for segment in self.changed.listed() {
            let state = &mut self.table.state[*segment as usize];
            if *state == State::CHANGED {
                *state = State::SEALED;
                let zone = self.table.shape.zone_of(*segment);
                self.index.update(*segment, zone, self.table.live[*segment as usize]);
            }
        }
        self.changed.forget();
        self.limit_reports();
    }

    /// Cleaning the emptiest segments, and threading into them, need no exact counts of the others:
    /// then most deaths are not reported to the index.
    fn limit_reports(&mut self) {
        let order = &mut self.index.utilization[0];
        let only_emptiest = self.setting.victim == Victim::Greedy
            && self.table.shape.zones() == 1
            && matches!(
                self.setting.collect,
                Collect::Always(Mechanism::Clean | Mechanism::Thread)
            );
        if only_emptiest != order.only_emptiest() || order.is_exhausted() {
            order.rebuild(only_emptiest, |segment| self.table.live[segment as usize]);
            self.reported_below = if only_emptiest { order.exact_below() } else { u32::MAX };
        }
    }

    pub(super) fn choose_mechanism(&mut self) -> Mechanism {
        match self.setting.collect {
            Collect::Always(mechanism) => mechanism,
            Collect::Matthews1999(candidate) => {
                self.refresh_index();
                let clean = self.choose_victim();
                let plug = match candidate {
                    PlugCandidate::LeastUtilized => self.emptiest_with_hole(self.victim_zones()),
                    PlugCandidate::Policy => clean,
                };
                match (clean, plug) {
                    (Some(clean), Some(plug)) => choose_matthews_1999(
                        &self.candidate(clean),
                        &self.candidate(plug),
                        &self.setting.disk,
                        if self.setting.header == Header::Free { 0 } else { HEADER_BYTES },
                    ),
                    (None, Some(_)) => Mechanism::Plug,
                    _ => Mechanism::Clean,
                }
            }
        }
    }

    fn candidate(&self, segment: u32) -> Candidates {
        Candidates {
            segments: 1,
            blocks: self.table.shape.segment_blocks(segment),
            live: self.table.live[segment as usize],
            cached: u32::from(self.index.is_cached(segment)),
        }
    }

    fn choose_victim(&mut self) -> Option<u32> {
        if let Some(victim) = self.ask_for_victim() {
            return Some(victim);
        }
        let zones = self.victim_zones();
        let (shape, garbage) = (&self.table.shape, self.setting.eligible_garbage);
        let live_max = |zone| eligible_live(shape.zone(zone).segment_blocks, garbage);
        self.index.choose(zones, live_max, &self.table, self.clock, &mut self.setting.stream)
    }

    /// Most live blocks of a segment of `zone` that policies by utilization may choose.
    pub(super) fn eligible_live(&self, zone: usize) -> u32 {
        eligible_live(self.table.shape.zone(zone).segment_blocks, self.setting.eligible_garbage)
    }

    fn choose_plug_victim(&mut self) -> Option<u32> {
        if self.setting.collect == Collect::Matthews1999(PlugCandidate::Policy) {
            return self.choose_victim();
        }
        self.emptiest_with_hole(self.victim_zones())
    }

    /// The least utilized segment of `zones`, unless even that is full.
    pub(super) fn emptiest_with_hole(&self, zones: std::ops::Range<usize>) -> Option<u32> {
        let (table, shape) = (&self.table, &self.table.shape);
        let live_max = |zone| shape.zone(zone).segment_blocks - 1;
        self.index.emptiest(zones, live_max, |segment| table.opened[segment as usize])
    }

    /// Zones whose segments are to be collected now: all, unless only the zones of new data are short
    /// of free segments.
    pub(super) fn victim_zones(&self) -> std::ops::Range<usize> {
        if self.has_more_than_reserve() && !self.has_free(self.zones(false), 1) {
            self.zones(false)
        } else {
            self.all_zones()
        }
    }

    /// Cleans until a segment's worth of blocks is freed, or `batch` segments (if not 0) have been
    /// read; false if there was no victim.
    pub(super) fn clean(
        &mut self,
        batch: u32,
        device: &mut impl BlockDevice,
    ) -> Result<bool, LogError> {
        // Victims that are read before anything is written are read together.
        device.begin_batch();
        let cleaned = self.clean_batch(batch, device);
        device.end_batch();
        if cleaned.is_err() {
            self.abandon_collection();
        }
        cleaned
    }

    /// Blocks that could not be moved stay where they are.
    #[cold]
    fn abandon_collection(&mut self) {
        self.staged.iter_mut().for_each(Vec::clear);
        for segment in 0..self.table.shape.segments() {
            if self.table.state[segment as usize] == State::COLLECTING {
                self.enter_index(segment);
            }
        }
    }

    fn clean_batch(&mut self, batch: u32, device: &mut impl BlockDevice) -> Result<bool, LogError> {
        let (mut freed, mut read) = (0, 0);
        let sorts = self.setting.ages.order == CollectedOrder::Age;
        // The larger a sorted batch, the better it separates ages.
        let ends_with_a_segment = !sorts || batch == 0;
        while read == 0 || (batch == 0 || read < batch) {
            self.refresh_index();
            let Some(victim) = self.choose_victim() else { break };
            if sorts && read > 0 && !self.has_room_to_stage(self.table.live[victim as usize]) {
                break;
            }
            let blocks = self.table.shape.segment_blocks(victim);
            freed += self.table.dead(victim);
            read += 1;
            self.gather(victim, device)?;
            self.counts.segments_cleaned += 1;
            // A policy that ignores utilization may meet full segments only; a round of all of them
            // that frees nothing shows that nothing can be freed.
            if (freed >= blocks && ends_with_a_segment) || read > self.table.shape.segments() {
                break;
            }
        }
        for log in 0..self.staged.len() {
            if sorts {
                self.block_times.sort(&mut self.staged[log]);
            }
            self.write_staged(log, device)?;
        }
        Ok(read > 0)
    }

    /// Whether there are fewer segments in reserve than logs.
    fn shares_reserve(&self) -> bool {
        (self.setting.reserve_segments as usize) < self.open.len()
    }

    /// The open log with the most room.
    fn roomiest(&self) -> Option<usize> {
        let rest = |log: &usize| self.open[*log].end - self.open[*log].next;
        (0..self.open.len()).max_by_key(rest).filter(|log| rest(log) > 0)
    }

    /// Whether `live` more blocks can be staged so that everything staged surely finds room in open
    /// and free segments, whichever logs they go to.
    fn has_room_to_stage(&self, live: u32) -> bool {
        let least = self.all_zones().map(|zone| self.table.shape.zone(zone).segment_blocks).min();
        let segment_blocks = least.expect("a log has a zone");
        let logs = self.staged.iter().zip(&self.open);
        let segments = logs.map(|(staged, open)| {
            (staged.len() as u32).saturating_sub(open.end - open.next).div_ceil(segment_blocks)
        });
        // Each log may need one more segment than its share of the blocks fills.
        let more = live.div_ceil(segment_blocks) + self.staged.len() as u32 - 1;
        let free: usize = self.free.iter().map(VecDeque::len).sum();
        (segments.sum::<u32>() + more) as usize <= free
    }

    /// Reads `victim` and stages its live blocks.
    fn gather(&mut self, victim: u32, device: &mut impl BlockDevice) -> Result<(), LogError> {
        self.take_victim(victim, device);
        let (first, end) = self.table.bounds(victim);
        let view = CollectedSegment {
            log: self.table.log[victim as usize],
            blocks: end - first,
            filled: self.table.filled(victim),
            live: self.table.live[victim as usize],
            opened: self.table.opened[victim as usize],
            sealed: self.table.sealed[victim as usize],
        };
        if !self.is_indifferent {
            let table = &self.table;
            let mut after = first;
            let mut live = std::iter::from_fn(|| {
                let live = table.next_live(after, end)?;
                after = live + 1;
                Some(table.owner[live as usize])
            });
            self.placement.will_collect(&mut live, &view, self.clock);
        }
        // Word by word, because blocks that are written on the way leave holes behind.
        let mut slot = first;
        while slot < end {
            let (mut bits, next) = self.table.live_word(slot, end);
            if self.is_indifferent {
                self.stage_word(slot, bits, device)?;
            } else {
                while bits != 0 {
                    let live = slot + bits.trailing_zeros();
                    bits &= bits - 1;
                    self.stage(live, &view, device)?;
                }
            }
            slot = next;
        }
        self.placement.collected(&view, self.clock);
        self.index.collected(&view, self.clock);
        Ok(())
    }

    /// Stages the blocks in the slots from `slot` on whose bits are set in `bits` for the only log,
    /// and writes what is staged whenever that fills a segment. What [`Log::stage`] does when no
    /// placement is asked: one log needs no free segment for another.
    #[inline]
    fn stage_word(
        &mut self,
        slot: u32,
        mut bits: u64,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        while bits != 0 {
            let is_sorted = self.setting.ages.order == CollectedOrder::Age;
            let room = if is_sorted { u32::MAX } else { self.staged_room(0) };
            let staged = &mut self.staged[0];
            let begin = staged.len();
            // One block at least, as `stage` would.
            let left = (room as usize).saturating_sub(begin).max(1);
            let count = left.min(bits.count_ones() as usize);
            staged.resize(begin + count, (NONE, NONE));
            let last = (slot + 64).min(self.table.owner.len() as u32);
            let owners = &self.table.owner[slot as usize..last as usize];
            for place in &mut staged[begin..] {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                *place = (owners[bit as usize], slot + bit);
            }
            if self.staged[0].len() >= room as usize {
                self.write_staged(0, device)?;
            }
        }
        Ok(())
    }

    /// Stages the live block of `segment` in `slot`, and writes what is staged for its log if that
    /// fills a segment.
    #[inline]
    fn stage(
        &mut self,
        slot: u32,
        segment: &CollectedSegment,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        let block = self.table.owner[slot as usize];
        let mut log = self.placement.place_collected(block, segment, self.clock) as usize;
        if self.placement.regroups_to() == Some(log as u8)
            && !self.has_room_for_kept(log, device)?
        {
            log -= 1;
        }
        let staged = &mut self.staged[log];
        staged.push((block, slot));
        let blocks = staged.len() as u32;
        if blocks == 1 {
            self.keep_free_for_staged(log, device)?;
        }
        // A full segment's worth is written at once, so that its sources can be freed, unless it is
        // to be sorted with what is still to come.
        if blocks >= self.staged_room(log) && self.setting.ages.order == CollectedOrder::Found {
            self.write_staged(log, device)?;
        }
        Ok(())
    }

    /// Sees to it that a segment is free for each log that has something staged and none open, of
    /// which `log` has become one: else writes what the others have staged, so that its sources come
    /// free.
    #[inline(never)]
    fn keep_free_for_staged(
        &mut self,
        log: usize,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        let needs_segment =
            |(staged, open): &(&Vec<_>, &Open)| !staged.is_empty() && open.next == open.end;
        let needed = self.staged.iter().zip(&self.open).filter(needs_segment).count();
        let free: usize = self.free.iter().map(VecDeque::len).sum();
        if free >= needed {
            return Ok(());
        }
        for other in (0..self.staged.len()).filter(|other| *other != log) {
            self.write_staged(other, device)?;
        }
        Ok(())
    }

    /// Takes `victim` out of the index and reads it.
    fn take_victim(&mut self, victim: u32, device: &mut impl BlockDevice) {
        let (slot, end) = self.table.bounds(victim);
        self.counts.victim_live_blocks += u64::from(self.table.live[victim as usize]);
        self.counts.victim_blocks += u64::from(end - slot);
        self.take_part(victim, (slot, end - slot), device);
    }

    /// Takes `victim` out of the index and reads `blocks` blocks of it from `slot` on.
    fn take_part(
        &mut self,
        victim: u32,
        (slot, blocks): (u32, u32),
        device: &mut impl BlockDevice,
    ) {
        self.index.remove(victim, self.table.shape.zone_of(victim));
        self.table.state[victim as usize] = State::COLLECTING;
        if self.index.is_cached(victim) {
            self.counts.segments_from_cache += 1;
            return;
        }
        self.counts.read_blocks += u64::from(blocks);
        device.transfer(&Transfer::of_blocks(Purpose::CollectRead, slot, blocks), &[]);
    }

    /// Blocks that `log` can take in one transfer.
    #[inline]
    fn staged_room(&self, log: usize) -> u32 {
        let room = self.open[log].end - self.open[log].next;
        if room > 0 { room } else { self.table.shape.zone(self.zones(true).start).segment_blocks }
    }

    #[inline(never)]
    pub(super) fn write_staged(
        &mut self,
        log: usize,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        let mut staged = std::mem::take(&mut self.staged[log]);
        let mut done = 0;
        while done < staged.len() {
            let mut into = log;
            if self.open[log].next == self.open[log].end
                && !self.open_segment(log, self.zones(true))
                && !self.open_segment(log, self.all_zones())
            {
                if let Some(lender) = self.roomiest().filter(|_| self.shares_reserve()) {
                    into = lender;
                } else if self.write_staged_kept(log, device)? {
                    continue;
                } else {
                    return Err(self.full());
                }
            }
            let room = (self.open[into].end - self.open[into].next) as usize;
            let now = &staged[done..staged.len().min(done + room)];
            self.append_collected(into, now, device);
            done += now.len();
        }
        staged.clear();
        self.staged[log] = staged;
        Ok(())
    }

    fn append_collected(
        &mut self,
        log: usize,
        blocks: &[(u32, u32)],
        device: &mut impl BlockDevice,
    ) {
        let Open { segment, next: first, .. } = self.open[log];
        self.table.fill_run(segment, first, blocks.iter().map(|staged| staged.0));
        if !self.is_indifferent {
            for (block, _) in blocks {
                self.placement.placed(*block, segment);
            }
        }
        let mut youngest = self.table.youngest[segment as usize];
        if self.setting.ages.segment == SegmentAge::Block {
            for (block, _) in blocks {
                youngest = youngest.max(self.block_times.of(*block));
            }
        } else {
            let mut rest = blocks;
            while let Some((source, from_one, others)) = self.of_one_source(rest) {
                debug_assert!(!from_one.is_empty(), "the rest becomes less");
                youngest = youngest.max(self.table.youngest[source as usize]);
                rest = others;
            }
        }
        self.table.youngest[segment as usize] = youngest;
        let count = blocks.len() as u32;
        self.send_appended(log, count, Purpose::CollectWrite, Sources::Copies(blocks), device);
        self.appended(log, count);
        self.counts.cleaned_blocks += blocks.len() as u64;
        if self.is_indifferent && self.setting.ages.order == CollectedOrder::Found {
            // Nothing was staged for another log, and segments were staged from end to end.
            self.moved_all(blocks, first);
        } else {
            self.moved(blocks, first..first + blocks.len() as u32);
        }
    }

    /// The segment that the first of staged `blocks` comes from, those before the first that comes
    /// from another, and the rest.
    #[expect(clippy::type_complexity, reason = "a slice divided in two, and a number")]
    #[inline]
    fn of_one_source<'a>(
        &self,
        blocks: &'a [(u32, u32)],
    ) -> Option<(u32, &'a [(u32, u32)], &'a [(u32, u32)])> {
        let source = self.table.shape.segment_of(blocks.first()?.1);
        let (first, end) = self.table.bounds(source);
        let is_of_source = |(_, from): &(u32, u32)| (first..end).contains(from);
        let count = match self.setting.ages.order {
            // A segment is staged once, and whole.
            CollectedOrder::Found => blocks.partition_point(is_of_source),
            CollectedOrder::Age => blocks.iter().take_while(|block| is_of_source(block)).count(),
        };
        let (from_one, others) = blocks.split_at(count);
        Some((source, from_one, others))
    }

    /// The data of staged `blocks`, which was in segments that are being collected, is in `slots`
    /// now.
    fn moved(&mut self, blocks: &[(u32, u32)], slots: impl IntoIterator<Item = u32>) {
        let (mut rest, mut slots) = (blocks, slots.into_iter());
        while let Some((segment, from_one, others)) = self.of_one_source(rest) {
            for ((block, from), slot) in from_one.iter().zip(&mut slots) {
                let place = &mut self.map[*block as usize];
                if *place == *from {
                    *place = slot;
                } else {
                    self.moved_below_buffer(*block, *from, slot);
                }
            }
            let live = self.table.clear_all(segment, from_one.iter().map(|block| block.1));
            self.let_go(segment, live);
            rest = others;
        }
    }

    /// The same where the slots follow one another, and everything live between the first and the
    /// last block of a segment is among `blocks`.
    fn moved_all(&mut self, blocks: &[(u32, u32)], first: u32) {
        let (mut rest, mut slot) = (blocks, first);
        while let Some((segment, from_one, others)) = self.of_one_source(rest) {
            let mut left = from_one;
            loop {
                let moved = point_to(&mut self.map, left, slot);
                slot += moved as u32;
                let Some(((block, from), later)) = left[moved..].split_first() else { break };
                self.moved_below_buffer(*block, *from, slot);
                slot += 1;
                left = later;
            }
            if let [(_, first), .., (_, last)] | [(_, first @ last)] = from_one {
                let live = self.table.clear_between(segment, *first, *last, from_one.len() as u32);
                self.let_go(segment, live);
            }
            rest = others;
        }
    }

    /// `segment`, which is being collected, has `live` blocks left.
    fn let_go(&mut self, segment: u32, live: u32) {
        debug_assert_eq!(self.table.state[segment as usize], State::COLLECTING);
        if live == 0 {
            self.release(segment);
        }
    }

    /// The same for a block of which a newer version waits to be written.
    #[cold]
    fn moved_below_buffer(&mut self, block: u32, from: u32, slot: u32) {
        let place = self.map[block as usize];
        assert!(place != NONE && place & WAITING != 0, "block {block} is in two places");
        let entry = place & !WAITING;
        let Waiting { old, .. } = &mut self.buffers.entries[entry as usize];
        assert_eq!(*old, from, "block {block} is in two places");
        *old = slot;
        if self.sending.contains(&entry) {
            self.placement.died(block, self.table.shape.segment_of(slot));
        }
    }

    /// Copies the live blocks of the least utilized segment, or of the policy's victim if the rule
    /// says so, into holes of the most utilized, `most` of them at most; false if there are not enough
    /// holes for all.
    pub(super) fn plug(&mut self, most: u32, device: &mut impl BlockDevice) -> bool {
        self.refresh_index();
        let Some(victim) = self.choose_plug_victim() else { return false };
        let live = self.table.live[victim as usize];
        let holes = self.dead_sealed() - u64::from(self.table.dead(victim));
        if holes < u64::from(live) + device.unfillable_most() {
            return false;
        }
        let mut moves = std::mem::take(&mut self.staged[0]);
        let (first, end) = self.table.bounds(victim);
        let mut slot = first;
        while moves.len() < most as usize
            && let Some(live) = self.table.next_live(slot, end)
        {
            moves.push((self.table.owner[live as usize], live));
            slot = live + 1;
        }
        let is_part = live > most;
        if is_part {
            self.counts.victim_live_blocks += u64::from(most);
            self.take_part(victim, (moves[0].1, slot - moves[0].1), device);
        } else {
            // What came before of it was read, and is not live in it any more.
            self.take_victim(victim, device);
            self.counts.segments_plugged += 1;
        }
        self.counts.plugged_blocks += moves.len() as u64;
        let mut filled = std::mem::take(&mut self.filled);
        let mut left_out = Vec::new();
        device.begin_batch();
        while filled.len() < moves.len() {
            // Holes were counted over all zones, so this finds one.
            let found = self.index.fullest_with_hole(0..self.table.shape.zones());
            let segment = found.expect("the holes that were counted are there");
            let done = filled.len();
            let rest = &moves[done..];
            let blocks = rest.iter().map(|moved| moved.0);
            let sources = Sources::Copies(rest);
            let all =
                Holes { segment, from: self.table.bounds(segment).0, spacing: 0, further: false };
            self.fill_holes(&all, blocks, Purpose::Plug, sources, &mut filled, device);
            if filled.len() == done {
                // None of its holes may be filled: it is left out of the index while others are looked for.
                self.index.remove(segment, self.table.shape.zone_of(segment));
                left_out.push(segment);
                continue;
            }
            self.rejuvenate(segment, self.table.youngest[victim as usize]);
        }
        device.end_batch();
        device.commit();
        for segment in left_out {
            self.enter_index(segment);
        }
        self.moved(&moves, filled.iter().copied());
        if is_part {
            // It is the least utilized still.
            self.enter_index(victim);
        }
        filled.clear();
        self.filled = filled;
        moves.clear();
        self.staged[0] = moves;
        true
    }

    /// `segment` holds data now that was new at `time`.
    fn rejuvenate(&mut self, segment: u32, time: u64) {
        let youngest = &mut self.table.youngest[segment as usize];
        if time > *youngest {
            *youngest = time;
            let zone = self.table.shape.zone_of(segment);
            let time = self.time_of(segment);
            self.index.renew(segment, zone, time);
        }
    }

    /// Writes `blocks` into `holes`, as many as there are, in the order of the slots, which it adds to
    /// `filled`. The map is the caller's to change.
    pub(super) fn fill_holes(
        &mut self,
        holes: &Holes,
        blocks: impl Iterator<Item = u32>,
        purpose: Purpose,
        sources: Sources<'_>,
        filled: &mut Vec<u32>,
        device: &mut impl BlockDevice,
    ) {
        let Holes { segment, from, spacing, further } = *holes;
        let end = self.table.bounds(segment).1;
        let mut slot = from;
        let begin = filled.len();
        for block in blocks {
            let Some(hole) = self.next_fillable(slot, end, device) else { break };
            self.table.fill(segment, hole, block);
            self.placement.placed(block, segment);
            filled.push(hole);
            slot = hole + 1;
            if spacing > 0 && self.next_fillable(slot, (slot + 1).min(end), device).is_none() {
                slot = (slot + spacing).min(end);
            }
        }
        let zone = self.table.shape.zone_of(segment);
        self.index.update(segment, zone, self.table.live[segment as usize]);
        if filled.len() > begin {
            self.transfer_filled(&filled[begin..], further, purpose, sources, device);
        }
    }

    /// The first hole from `slot` on, before `end`, that may be filled.
    #[inline]
    pub(super) fn next_fillable(
        &self,
        mut slot: u32,
        end: u32,
        device: &impl BlockDevice,
    ) -> Option<u32> {
        loop {
            let hole = self.table.next_hole(slot, end)?;
            if device.may_fill(hole) {
                return Some(hole);
            }
            slot = hole + 1;
        }
    }

    pub(super) fn transfer_filled(
        &self,
        slots: &[u32],
        mut further: bool,
        purpose: Purpose,
        sources: Sources<'_>,
        device: &mut impl BlockDevice,
    ) {
        device.begin_batch();
        let mut send = |purpose, slot, blocks: u32, header_bytes: u32, sources| {
            let transfer = Transfer { purpose, slot, blocks, header_bytes, further };
            let contents = &self.table.owner[slot as usize..(slot + blocks) as usize];
            device.transfer_from(&transfer, contents, sources);
            further = true;
        };
        if self.setting.header == Header::Segment {
            send(Purpose::HeaderRead, slots[0], 0, HEADER_BYTES, Sources::Unnamed);
        }
        let per_block = if self.setting.header == Header::Block { HEADER_BYTES } else { 0 };
        let joined = |one: &u32, next: &u32| self.setting.join_holes && one + 1 == *next;
        let mut done = 0;
        for run in slots.chunk_by(joined) {
            let (blocks, sources) = (run.len() as u32, sources.part(done..done + run.len()));
            send(purpose, run[0], blocks, per_block * blocks, sources);
            done += run.len();
        }
        if self.setting.header == Header::Segment {
            send(Purpose::HeaderWrite, slots[0], 0, HEADER_BYTES, Sources::Unnamed);
        }
        device.end_batch();
    }
}

/// Most live blocks of a segment of `blocks` of which a share of `garbage`, and one block at least, is
/// dead.
fn eligible_live(blocks: u32, garbage: f64) -> u32 {
    (f64::from(blocks) * (1.0 - garbage)).floor().min(f64::from(blocks - 1)) as u32
}

/// Notes in `map` that staged `blocks` are in the slots from `first` on now; how many, up to the
/// first that is not where it was staged from. The loop of the whole log that is gone through most
/// often: it waits for the map alone, and for several places of it at a time.
#[inline(never)]
fn point_to(map: &mut [u32], blocks: &[(u32, u32)], first: u32) -> usize {
    for (moved, ((block, from), slot)) in blocks.iter().zip(first..).enumerate() {
        let place = &mut map[*block as usize];
        if *place != *from {
            return moved;
        }
        *place = slot;
    }
    blocks.len()
}
