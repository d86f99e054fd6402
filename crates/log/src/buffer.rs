//! Write buffers: blocks that have been written by a client and not yet sent to the disk.
//!
//! Each client has a buffer of as many blocks as the largest segment. A block written again while
//! it waits replaces itself. Until it is flushed the block's old place on disk stays live, because
//! a crash would fall back to it. A buffer is sent when it is full or synced; what cannot be
//! written because the log is full goes on waiting.

use super::buffers::Waiting;
use super::log::{Log, Open, WAITING};
use super::log_setting::Trigger;
use super::policy::placement::Placement;
use super::segment_table::NONE;
use super::{BlockDevice, LogError, Purpose, Sources};

fn waiting_blocks(entries: &[Waiting]) -> impl Iterator<Item = u32> + '_ {
    entries.iter().map(|waiting| waiting.block)
}

impl<P: Placement> Log<P> {
    /// Whether a write that only has to wait is nothing more than that.
    #[must_use]
    pub fn takes_many_writes(&self) -> bool {
        let each_waits =
            self.setting.trigger == Trigger::NoFreeSegment && !self.setting.whole_syncs;
        self.setting.buffer_blocks > 1 && each_waits
    }

    /// Entries that wait in the buffer of `client`, those of blocks deleted meanwhile among them.
    #[must_use]
    pub fn buffered(&self, client: u32) -> u32 {
        self.buffers.filled[client as usize]
    }

    /// The entry of `block`, if it waits in a buffer, and what is known of it.
    #[must_use]
    #[inline]
    pub fn entry_of(&self, block: u32) -> Option<(u32, Waiting)> {
        let place = self.look_up(block);
        // Waiting places are those from WAITING on, but for NONE.
        let waits = place != NONE && place & WAITING != 0;
        waits.then(|| (place & !WAITING, self.buffers.entries[(place & !WAITING) as usize]))
    }

    /// `client` writes the first of `blocks`, as many as only have to wait in its buffer; returns
    /// their number. The one that fills the buffer is not among them. Each is what [`Log::write`]
    /// would make of it, where [`Log::takes_many_writes`].
    ///
    /// # Panics
    /// If each write may ask for more than to wait.
    pub fn write_to_buffer(&mut self, blocks: &[u32], client: u32) -> usize {
        assert!(self.takes_many_writes(), "each write may ask for collection");
        let Self { map, buffers, .. } = self;
        let (first, room) = buffers.room_but_one(client);
        let (mut waiting, mut created, mut taken) = (0, 0, 0);
        for block in blocks {
            let place = &mut map[*block as usize];
            // Waiting places are those from WAITING on, but for NONE.
            if *place ^ WAITING < NONE ^ WAITING {
                taken += 1;
                continue;
            }
            let Some(entry) = room.get_mut(waiting) else { break };
            *entry = Waiting { block: *block, old: *place };
            created += u64::from(*place == NONE);
            *place = WAITING | (first + waiting as u32);
            waiting += 1;
            taken += 1;
        }
        buffers.filled[client as usize] += waiting as u32;
        self.live_blocks += created;
        self.counts.user_blocks += taken as u64;
        self.counts.absorbed_blocks += (taken - waiting) as u64;
        taken
    }

    #[inline]
    pub(super) fn write_buffered(
        &mut self,
        block: u32,
        client: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        let place = self.map[block as usize];
        if place != NONE && place & WAITING != 0 {
            self.counts.absorbed_blocks += 1;
            return Ok(());
        }
        if self.buffers.is_full(client) {
            // It could not be sent when it became full.
            self.sync(client, device)?;
        }
        // A collection may have moved it meanwhile.
        let place = self.map[block as usize];
        if place == NONE {
            self.live_blocks += 1;
        }
        let entry = self.buffers.push(client, Waiting { block, old: place });
        self.map[block as usize] = WAITING | entry;
        if self.buffers.is_full(client) {
            self.sync(client, device)?;
        }
        Ok(())
    }

    /// Sends what `client` has written to the disk.
    ///
    /// # Errors
    /// If no room can be made for it.
    #[inline(never)]
    pub fn sync(&mut self, client: u32, device: &mut impl BlockDevice) -> Result<(), LogError> {
        if self.setting.buffer_blocks <= 1 {
            return Ok(());
        }
        self.sending = self.buffers.range(client);
        let written = if self.is_indifferent && self.are_all_there(self.sending.clone()) {
            self.clock += u64::from(self.sending.end - self.sending.start);
            self.write_out_run(self.sending.clone(), device)
        } else {
            self.send_by_log(device)
        };
        let sent = std::mem::take(&mut self.sending);
        if written.is_err() {
            self.keep_waiting(sent);
            return written;
        }
        self.buffers.empty(client);
        if let Trigger::FreeShare(share) = self.setting.trigger {
            self.keep_free(share, device);
        }
        Ok(())
    }

    /// Sends what is to be sent to the log that the placement names for each block.
    fn send_by_log(&mut self, device: &mut impl BlockDevice) -> Result<(), LogError> {
        let mut outgoing = std::mem::take(&mut self.outgoing);
        let mut clock = self.clock;
        if !self.is_indifferent {
            self.announce_sending();
        }
        for entry in self.sending.clone() {
            let Waiting { block, old } = self.buffers.entries[entry as usize];
            if block == NONE {
                continue;
            }
            clock += 1;
            let mut log = 0;
            // Where no placement is asked, blocks go in the order in which they come.
            if !self.is_indifferent {
                if old != NONE {
                    self.placement.died(block, self.table.shape.segment_of(old));
                }
                log = self.placement.place_new(block, old != NONE, clock);
            }
            outgoing[log as usize].push(entry);
        }
        self.clock = clock;
        let mut written = Ok(());
        for (log, entries) in outgoing.iter_mut().enumerate() {
            if written.is_ok() {
                written = self.write_out(log, entries, device);
            }
            entries.clear();
        }
        self.outgoing = outgoing;
        written
    }

    /// The placement hears what is to be sent. Apart, so that the loop over it stays as short as it is.
    #[inline(never)]
    fn announce_sending(&mut self) {
        let sending = self.sending.start as usize..self.sending.end as usize;
        let there = self.buffers.entries[sending].iter().filter(|sent| sent.block != NONE);
        let mut there = there.map(|sent| (sent.block, sent.old != NONE));
        self.placement.will_write(&mut there, self.clock + 1);
    }

    /// Whether none of the blocks that waited as `entries` was deleted meanwhile.
    fn are_all_there(&self, entries: std::ops::Range<u32>) -> bool {
        let entries = &self.buffers.entries[entries.start as usize..entries.end as usize];
        entries.iter().all(|waiting| waiting.block != NONE)
    }

    /// Sends `entries`, which are all there, to the only log.
    fn write_out_run(
        &mut self,
        mut entries: std::ops::Range<u32>,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        while !entries.is_empty() {
            if self.rest_for_data(0) == 0 && !self.open_for_new_data(0, device)? {
                // The rest goes into holes, as many at a time as a segment has.
                let mut rest = std::mem::take(&mut self.outgoing[0]);
                rest.extend(entries);
                let written = self.write_out(0, &rest, device);
                rest.clear();
                self.outgoing[0] = rest;
                return written;
            }
            self.leave_record_slots(0);
            let room = self.open[0].end - self.open[0].next;
            let count = room.min(entries.end - entries.start);
            self.append_new_run(entries.start..entries.start + count, device);
            entries.start += count;
        }
        Ok(())
    }

    fn append_new_run(&mut self, entries: std::ops::Range<u32>, device: &mut impl BlockDevice) {
        let Open { segment, next: first, .. } = self.open[0];
        let (number, count, clock) = (entries.start, entries.end - entries.start, self.clock);
        let entries = entries.start as usize..entries.end as usize;
        let waiting = &self.buffers.entries[entries.clone()];
        self.table.fill_run(segment, first, waiting.iter().map(|waiting| waiting.block));
        self.table.youngest[segment as usize] = clock;
        self.send_appended(0, count, Purpose::NewData, Sources::Run(number, waiting), device);
        self.appended(0, count);
        self.counts.new_blocks += u64::from(count);
        self.block_times.written_all(waiting_blocks(&self.buffers.entries[entries.clone()]), clock);
        self.settle_run(entries, first);
    }

    /// Corrects the placement: blocks reported dead are live, because their new versions could not
    /// be written.
    #[cold]
    fn keep_waiting(&mut self, entries: std::ops::Range<u32>) {
        for entry in entries {
            let Waiting { block, old } = self.buffers.entries[entry as usize];
            if block != NONE && old != NONE {
                self.placement.placed(block, self.table.shape.segment_of(old));
            }
        }
    }

    /// Sends everything to the disk.
    ///
    /// # Errors
    /// If no room can be made for it.
    pub fn sync_all(&mut self, device: &mut impl BlockDevice) -> Result<(), LogError> {
        for client in 0..self.buffers.clients() {
            self.sync(client, device)?;
        }
        Ok(())
    }

    fn write_out(
        &mut self,
        log: usize,
        entries: &[u32],
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        let mut rest = entries;
        while !rest.is_empty() {
            if self.rest_for_data(log) == 0 && !self.open_for_new_data(log, device)? {
                let threaded = self.thread(rest, rest.len() < entries.len(), device);
                if threaded == 0 {
                    // The holes that there are may not be filled yet.
                    return Err(self.full());
                }
                rest = &rest[threaded..];
                continue;
            }
            self.leave_record_slots(log);
            let room = (self.open[log].end - self.open[log].next) as usize;
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.append_new(log, now, device);
            rest = later;
        }
        Ok(())
    }

    fn append_new(&mut self, log: usize, entries: &[u32], device: &mut impl BlockDevice) {
        let Open { segment, next: first, .. } = self.open[log];
        let waiting = &self.buffers.entries;
        let blocks = entries.iter().map(|entry| waiting[*entry as usize].block);
        self.table.fill_run(segment, first, blocks);
        if !self.is_indifferent {
            for entry in entries {
                self.placement.placed(self.buffers.entries[*entry as usize].block, segment);
            }
        }
        self.table.youngest[segment as usize] = self.clock;
        let (count, sources) =
            (entries.len() as u32, Sources::Entries(entries, &self.buffers.entries));
        self.send_appended(log, count, Purpose::NewData, sources, device);
        self.appended(log, count);
        self.counts.new_blocks += entries.len() as u64;
        for (slot, entry) in (first..).zip(entries) {
            self.settle(*entry, slot);
        }
        self.patch(device);
    }

    /// The block that waited as `entry` lies in `slot` now; a patch that is due is queued.
    #[inline]
    pub(crate) fn settle(&mut self, entry: u32, slot: u32) {
        let waiting = &mut self.buffers.entries[entry as usize];
        let Waiting { block, old } = *waiting;
        waiting.block = NONE;
        debug_assert_eq!(self.map[block as usize], WAITING | entry);
        self.map[block as usize] = slot;
        self.block_times.written(block, self.clock);
        if old == NONE {
            return;
        }
        if self.keeps_place(block, old) {
            self.reorganisation.patches.push((old, block));
        } else {
            self.kill(old);
        }
    }
}
