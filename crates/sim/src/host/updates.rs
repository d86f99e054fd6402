//! Updates of single blocks, many at a time.
//!
//! Most writes to a layout with write buffers only wait: no device is asked for anything, no clock
//! moves but the workload's. Where nothing else hangs on each of them, no cache, no flush by time, no
//! overhead, they go to the layout as block numbers, as many at a time as come before the next that
//! fills a buffer, is followed by a sync or ends an interval of the series. That one is served like
//! any other request, so everything is as if all were; a test holds one against the other.
//!
//! Cost: a few instructions a write, beside what the layout does, where serving takes some 250.

use agewell_core::FileRequest;
use agewell_layout::block_layout::{BlockLayout, LayoutError};

use super::block_host::HostRun;
use super::throughput::ThroughputSeries;

impl<L: BlockLayout> HostRun<L> {
    /// Whether it is worth asking for updates, many at a time.
    pub(crate) fn takes_updates(&self) -> bool {
        self.layout.takes_many_writes()
            && self.clients.is_empty()
            && self.server.is_none()
            && self.setting.idle_cleaning.is_none()
            && self.setting.keys.write_overhead.0 == 0
    }

    /// Serves writes of `blocks`, each as `update` says but for its block.
    ///
    /// # Errors
    /// If the layout finds no room.
    pub(crate) fn serve_updates(
        &mut self,
        update: &FileRequest,
        blocks: &[u32],
        directory_of: impl Fn(u32) -> u32,
        throughput: &mut ThroughputSeries,
    ) -> Result<(), LayoutError> {
        let mut rest = blocks;
        while !rest.is_empty() {
            let most = throughput.blocks_within(&self.counts).min(rest.len() as u64) as usize;
            rest = &rest[self.write_to_buffer(update, &rest[..most])..];
            if let Some((block, later)) = rest.split_first() {
                self.serve(&FileRequest { block: *block, ..*update }, &directory_of)?;
                throughput.note(&self.counts, &self.disk);
                rest = later;
            }
        }
        Ok(())
    }

    /// Serves writes of the first of `blocks`, as many as only wait in a buffer; how many.
    fn write_to_buffer(&mut self, update: &FileRequest, blocks: &[u32]) -> usize {
        let (time_ns, client) = (update.time.0, update.client as usize);
        let is_flush_due = self.setting.keys.flush_interval.0 > 0 && time_ns >= self.next_flush_ns;
        if is_flush_due || !self.files.is_created(update.file) {
            return 0;
        }
        // The write that is followed by a sync is not among them.
        let most = match self.setting.keys.sync_every {
            0 => blocks.len(),
            every => blocks.len().min((every - self.unsynced[client]).saturating_sub(1) as usize),
        };
        let Some((first, count)) = self.files.run_of(update.file) else { return 0 };
        let blocks = &blocks[..most];
        if blocks.iter().fold(0, |last, block| last.max(*block)) >= count {
            return 0;
        }
        self.layout.ensure_blocks(self.files.numbered());
        let buffer = self.buffer_of(update.client);
        let written = if first == 0 {
            self.layout.write_to_buffer(blocks, buffer)
        } else {
            self.numbers.clear();
            self.numbers.extend(blocks.iter().map(|block| first + block));
            self.layout.write_to_buffer(&self.numbers, buffer)
        };
        if written > 0 {
            self.count_waiting(update, written as u64);
        }
        written
    }

    /// `written` writes as `update` says have been served, all at once: each comes when the one
    /// before it has been answered, and takes no time.
    fn count_waiting(&mut self, update: &FileRequest, written: u64) {
        let client = update.client as usize;
        self.counts.requests += written;
        self.counts.written_blocks += written;
        if self.setting.keys.sync_every > 0 {
            self.unsynced[client] += written as u32;
        }
        let asked_ns = update.time.0.max(self.answered_ns[client]);
        self.disk.wait_until(update.time.0);
        let answered_ns = self.disk.now_ns();
        self.answered_ns[client] = answered_ns;
        self.responses.record(answered_ns - asked_ns);
        self.responses.record_many(0, written - 1);
        self.response_total_ns += u128::from(answered_ns - asked_ns);
    }
}
