//! Write buffers: blocks that have been written by a client and not yet sent to the disk.
//!
//! Each client has a buffer of as many blocks as the largest segment. A block written again while
//! it waits replaces itself. Until it is flushed the block's old place on disk stays live, because
//! that is what a crash would go back to. A buffer is sent when it is full or synced; what cannot be
//! written because the log is full goes on waiting.
//!
//! Invariants: a block waits in at most one buffer; `old` is its place on disk, if it has one.

use super::log::{Log, Open, Trigger, WAITING};
use super::policy::placement::Placement;
use super::segment_table::NONE;
use super::{BlockDevice, LogError, Purpose};

/// A block that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    /// The block; none if it was deleted while it waited, or has been written.
    pub(crate) block: u32,
    /// Where its last version lies on disk.
    pub(crate) old: u32,
}

/// The buffers of all clients.
#[derive(Debug, Clone)]
pub(crate) struct Buffers {
    blocks: u32,
    filled: Vec<u32>,
    /// Entry `client * blocks + place`.
    pub(crate) entries: Vec<Waiting>,
}

impl Buffers {
    pub(crate) fn new(clients: u32, blocks: u32) -> Self {
        let entries = if blocks > 1 { (clients * blocks) as usize } else { 0 };
        Self {
            blocks,
            filled: vec![0; clients as usize],
            entries: vec![Waiting { block: NONE, old: NONE }; entries],
        }
    }

    /// Adds a block to a client's buffer, which must have room; gives the entry's number.
    #[inline]
    pub(crate) fn push(&mut self, client: u32, waiting: Waiting) -> u32 {
        let place = self.filled[client as usize];
        debug_assert!(place < self.blocks, "the buffer of client {client} is full");
        self.filled[client as usize] = place + 1;
        let entry = client * self.blocks + place;
        self.entries[entry as usize] = waiting;
        entry
    }

    /// Whether a client's buffer has no room left.
    #[inline]
    pub(crate) fn is_full(&self, client: u32) -> bool {
        self.filled[client as usize] == self.blocks
    }

    /// The entries in use by a client.
    #[inline]
    pub(crate) fn range(&self, client: u32) -> std::ops::Range<u32> {
        let first = client * self.blocks;
        first..first + self.filled[client as usize]
    }

    /// Everything of a client's has been sent.
    pub(crate) fn empty(&mut self, client: u32) {
        self.filled[client as usize] = 0;
    }

    /// Clients.
    pub(crate) fn clients(&self) -> u32 {
        self.filled.len() as u32
    }
}

impl<P: Placement> Log<P> {
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
        let mut outgoing = std::mem::take(&mut self.outgoing);
        self.sending = self.buffers.range(client);
        // Where nobody has to be asked the blocks go as they come.
        let asked = if self.is_indifferent { 0..0 } else { self.sending.clone() };
        if self.is_indifferent {
            let waits = |entry: &u32| self.buffers.entries[*entry as usize].block != NONE;
            outgoing[0].extend(self.sending.clone().filter(waits));
            self.clock += outgoing[0].len() as u64;
        }
        for entry in asked {
            let Waiting { block, old } = self.buffers.entries[entry as usize];
            if block != NONE {
                self.clock += 1;
                if old != NONE {
                    self.placement.died(block, self.table.shape.segment_of(old));
                }
                let log = self.placement.place_new(block, old != NONE, self.clock);
                outgoing[log as usize].push(entry);
            }
        }
        let mut written = Ok(());
        for (log, entries) in outgoing.iter_mut().enumerate() {
            if written.is_ok() {
                written = self.write_out(log, entries, device);
            }
            entries.clear();
        }
        self.outgoing = outgoing;
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

    /// Tells the placement that what it took for dead is not, because what was to replace it could
    /// not be written.
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
            let mut room = (self.open[log].end - self.open[log].next) as usize;
            if room == 0 {
                if !self.open_for_new_data(log, device)? {
                    let threaded = self.thread(rest, device);
                    rest = &rest[threaded..];
                    continue;
                }
                room = (self.open[log].end - self.open[log].next) as usize;
            }
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
        self.appended(log, entries.len() as u32, Purpose::NewData, device);
        self.counts.new_blocks += entries.len() as u64;
        for (slot, entry) in (first..).zip(entries) {
            self.settle(*entry, slot);
        }
        self.patch(device);
    }

    /// What waited as `entry` lies in `slot` now; what is to be patched is noted.
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
