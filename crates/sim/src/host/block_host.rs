//! The host: what happens to a file request before it reaches the layout.
//!
//! Reads go to the client's cache, then the server's, then to blocks that still wait in a write
//! buffer, then to the disk (Matthews 1999, §5.2.2). Writes go to a write buffer, and their data
//! stays in both caches. Deleted blocks leave them. Every request waits for the one before it.

use agewell_core::{FileAction, FileRequest};
use agewell_layout::block_layout::{BlockLayout, FileBlock, LayoutError, Place};
use agewell_log::{BlockDevice, Purpose, Unpriced};
use agewell_trace::workload::InitialFile;

use super::file_blocks::FileBlocks;
use super::read_ahead::ReadAhead;
use crate::cache::{Access, Cache};
use crate::config::{Host, IdleCleaning};
use crate::drive::TimedDisk;
use crate::metrics::Distribution;
use crate::prefetch::Prefetch;

/// Requests whose places are looked up together; chosen by us: more than a processor waits for at a
/// time, and what they bring in fits its first cache beside the rest.
pub(crate) const LOOKED_UP_TOGETHER: usize = 64;

/// What the host has counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HostCounts {
    /// File requests.
    pub(crate) requests: u64,
    /// Blocks written.
    pub(crate) written_blocks: u64,
    /// Blocks read.
    pub(crate) read_blocks: u64,
    /// Of those, found in the client's cache.
    pub(crate) client_hits: u64,
    /// Found in the server's.
    pub(crate) server_hits: u64,
    /// Found waiting to be written.
    pub(crate) waiting_hits: u64,
    /// Read although nothing was there: holes.
    pub(crate) hole_reads: u64,
    /// Disk time of collections in idle periods, ns, as far as nobody waited for them.
    pub(crate) hidden_ns: u64,
}

impl HostCounts {
    /// Blocks that were read from the disk for users.
    pub(crate) fn disk_read_blocks(&self) -> u64 {
        let found = self.client_hits + self.server_hits + self.waiting_hits + self.hole_reads;
        self.read_blocks - found
    }
}

/// A host, its layout and its disk.
pub(crate) struct HostRun<L> {
    pub(crate) layout: L,
    pub(crate) disk: TimedDisk,
    pub(crate) counts: HostCounts,
    /// How long requests took, from when a client could ask to the answer, ns: a client asks when
    /// the workload says so and its request before has been answered.
    pub(crate) responses: Distribution,
    pub(crate) response_total_ns: u128,
    /// When the last request of each client was answered.
    pub(super) answered_ns: Vec<u64>,
    /// Blocks that the read just served had to get from the disk.
    missed: Vec<u32>,
    pub(crate) ahead: ReadAhead,
    pub(super) setting: Host,
    pub(crate) files: FileBlocks,
    /// Numbers in the layout of blocks that are written together.
    pub(super) numbers: Vec<u32>,
    pub(super) clients: Vec<Cache>,
    pub(super) server: Option<Cache>,
    /// Writes of each client since its last sync by count.
    pub(super) unsynced: Vec<u32>,
    pub(super) next_flush_ns: u64,
    /// When the last collection in idle time ends.
    collecting_until_ns: u64,
}

impl<L: BlockLayout> HostRun<L> {
    /// A host of `clients`. Without `caches` nothing is kept, which is the same to a workload that
    /// never reads under a policy that never asks.
    pub(crate) fn new(
        layout: L,
        mut disk: TimedDisk,
        setting: Host,
        clients: u32,
        block_bytes: u64,
        caches: bool,
    ) -> Self {
        let cache = |bytes: u64| {
            let blocks = (bytes / block_bytes) as usize;
            (caches && blocks > 0).then(|| Cache::new(setting.keys.eviction, blocks, 0))
        };
        disk.set_read_overhead(setting.keys.read_overhead.0);
        Self {
            layout,
            disk,
            counts: HostCounts::default(),
            responses: Distribution::new(),
            response_total_ns: 0,
            answered_ns: vec![0; clients as usize],
            missed: Vec::new(),
            ahead: ReadAhead::new(setting.prefetch, clients),
            setting,
            files: FileBlocks::default(),
            numbers: Vec::new(),
            clients: (0..clients).filter_map(|_| cache(setting.keys.client_cache_bytes)).collect(),
            server: cache(setting.keys.server_cache_bytes),
            unsynced: vec![0; clients as usize],
            next_flush_ns: setting.keys.flush_interval.0,
            collecting_until_ns: 0,
        }
    }

    /// Lays out what was there before the first request; that costs nothing.
    ///
    /// # Errors
    /// If it does not fit.
    pub(crate) fn preload(
        &mut self,
        initial: &[InitialFile],
        directory_of: impl Fn(u32) -> u32,
    ) -> Result<(), LayoutError> {
        for file in initial {
            if self.files.is_created_by(file.file) {
                self.layout.create(file.file, directory_of(file.file), &mut Unpriced)?;
            }
            if let Some(first) = self.files.lay_out_run(*file) {
                let name = FileBlock { file: file.file, block: 0 };
                self.layout.preload_run(first, file.blocks, name)?;
                continue;
            }
            for (block, name) in self.files.lay_out(file) {
                self.layout.ensure_blocks(block + 1);
                self.layout.preload(block, name)?;
            }
        }
        Ok(())
    }

    /// Fragments the empty disk by `blocks` blocks in chunks of `chunk_blocks`; they are nobody's.
    ///
    /// # Errors
    /// If they do not fit.
    pub(crate) fn fragment(&mut self, blocks: u32, chunk_blocks: u32) -> Result<(), LayoutError> {
        let first = self.files.number_apart(blocks);
        self.layout.ensure_blocks(first + blocks);
        self.layout.fragment(first, blocks, chunk_blocks)
    }

    /// Has the drive hold every block that the layout has on it. Where a block lies in pieces it is
    /// taken to lie behind the first of them: enough for a drive that only counts what it holds.
    pub(crate) fn prefill(&mut self, block_bytes: u64) {
        if !self.disk.is_mechanical() {
            return;
        }
        for block in 0..self.files.numbered() {
            if let Place::Disk(place) = self.layout.place_of(block) {
                self.disk.prefill(place, block_bytes);
            }
        }
    }

    /// Looks up what serving `requests` will ask for, which changes nothing. Serving asks at random
    /// places of tables larger than the processor's caches, and does so much between two of them that
    /// it waits for each; here it waits for all of them together.
    ///
    /// # Panics
    /// If there are more than [`LOOKED_UP_TOGETHER`].
    pub(crate) fn look_up(&self, requests: &[FileRequest]) {
        let (mut asked, mut found) = ([0; LOOKED_UP_TOGETHER], [0; LOOKED_UP_TOGETHER]);
        let mut written = [false; LOOKED_UP_TOGETHER];
        let (mut seen, mut count) = (0, 0);
        for request in requests {
            let is_write = request.action == FileAction::Write;
            if !is_write && request.action != FileAction::Read {
                continue;
            }
            let Some(block) = self.files.find(request.file, request.block) else { continue };
            if let Some(client) = self.clients.get(request.client as usize) {
                seen ^= client.look_up(&[block], &mut [0]);
            }
            (asked[count], written[count]) = (block, is_write);
            count += 1;
        }
        let (asked, found) = (&asked[..count], &mut found[..count]);
        if let Some(server) = &self.server {
            seen ^= server.look_up(asked, found);
        }
        for ((block, found), is_write) in asked.iter().zip(found).zip(written) {
            // The layout is asked for what is written and for what no cache has. It is asked for
            // another block in place of the rest: that is there already, and saves a branch.
            seen ^= self.layout.look_up(if *found == 0 || is_write { *block } else { 0 });
        }
        std::hint::black_box(seen);
    }

    /// Serves `request`; a file that it makes is made in `directory_of` it.
    ///
    /// # Errors
    /// If the log finds no room.
    pub(crate) fn serve(
        &mut self,
        request: &FileRequest,
        directory_of: impl Fn(u32) -> u32,
    ) -> Result<(), LayoutError> {
        self.counts.requests += 1;
        let asked_ns = request.time.0.max(self.answered_ns[request.client as usize]);
        self.rest_until(request.time.0)?;
        let rested_ns = self.disk.idle_since_ns();
        self.flush_by_time(request.time.0)?;
        let mut answered_ns = None;
        match request.action {
            FileAction::Write => self.write(request, directory_of)?,
            FileAction::Read => answered_ns = self.read(request),
            FileAction::Delete => {
                self.cut(request.file, 0);
                if self.files.is_removed_by(request.file) {
                    self.layout.remove(request.file, &mut self.disk);
                }
            }
            FileAction::Truncate => self.cut(request.file, request.block),
            FileAction::Sync => {
                self.disk.begin_call();
                self.layout.sync(self.buffer_of(request.client), &mut self.disk)?;
            }
        }
        if self.disk.idle_since_ns() != rested_ns {
            // Someone needed the disk: what collection was still at then was not hidden.
            self.counts.hidden_ns -= self.collecting_until_ns.saturating_sub(request.time.0);
            self.collecting_until_ns = 0;
        }
        let is_read_ahead = answered_ns.is_some();
        let answered_ns = answered_ns.unwrap_or(self.disk.now_ns());
        let response_ns = answered_ns - asked_ns;
        self.answered_ns[request.client as usize] = answered_ns;
        self.responses.record(response_ns);
        self.response_total_ns += u128::from(response_ns);
        if request.action == FileAction::Read && !is_read_ahead {
            self.read_ahead_of(request);
        }
        Ok(())
    }

    /// The end of the workload: what still waits is written.
    ///
    /// # Errors
    /// If the log finds no room.
    pub(crate) fn finish(&mut self) -> Result<(), LayoutError> {
        self.disk.begin_call();
        self.layout.sync_all(&mut self.disk)?;
        self.disk.drain();
        Ok(())
    }

    pub(super) fn buffer_of(&self, client: u32) -> u32 {
        if self.setting.keys.buffers_per_client { client } else { 0 }
    }

    /// Nothing is asked until `time`: the disk may collect.
    fn rest_until(&mut self, time_ns: u64) -> Result<(), LayoutError> {
        if let Some(IdleCleaning { after, segments }) = self.setting.idle_cleaning
            && time_ns > self.disk.idle_since_ns() + after.0
        {
            self.disk.wait_until(self.disk.idle_since_ns() + after.0);
            while self.disk.now_ns() < time_ns {
                let before_ns = self.disk.now_ns();
                if !self.layout.work_ahead(segments, &mut self.disk)? {
                    break;
                }
                let after_ns = self.disk.now_ns();
                self.counts.hidden_ns += after_ns - before_ns;
                self.collecting_until_ns = after_ns;
                if after_ns == before_ns {
                    break;
                }
            }
        }
        self.disk.wait_until(time_ns);
        Ok(())
    }

    /// Flushes every buffer when its time has come. Time is the workload's own: a saturated workload,
    /// all of whose requests come at zero, is never flushed by time.
    fn flush_by_time(&mut self, time_ns: u64) -> Result<(), LayoutError> {
        if self.setting.keys.flush_interval.0 == 0 || time_ns < self.next_flush_ns {
            return Ok(());
        }
        self.next_flush_ns =
            (time_ns / self.setting.keys.flush_interval.0 + 1) * self.setting.keys.flush_interval.0;
        self.disk.begin_call();
        self.layout.sync_all(&mut self.disk)
    }

    fn write(
        &mut self,
        request: &FileRequest,
        directory_of: impl Fn(u32) -> u32,
    ) -> Result<(), LayoutError> {
        if self.files.is_created_by(request.file) {
            let directory = directory_of(request.file);
            self.layout.create(request.file, directory, &mut self.disk)?;
        }
        self.counts.written_blocks += u64::from(request.blocks);
        for block in request.block..request.block + request.blocks {
            let name = FileBlock { file: request.file, block };
            let block = self.files.make(request.file, block);
            self.layout.ensure_blocks(self.files.numbered());
            self.keep(request.client, block);
            let buffer = self.buffer_of(request.client);
            if self.layout.is_decision_due() {
                if self.layout.sends_before_deciding() {
                    self.layout.sync(buffer, &mut self.disk)?;
                }
                self.layout.decide(self.disk.transfer_times());
            }
            self.disk.begin_call();
            self.layout.write(block, name, buffer, &mut self.disk)?;
            self.disk.host_busy(self.setting.keys.write_overhead.0);
            if self.setting.keys.sync_every > 0 {
                let unsynced = &mut self.unsynced[request.client as usize];
                *unsynced += 1;
                if *unsynced >= self.setting.keys.sync_every {
                    *unsynced = 0;
                    self.disk.begin_call();
                    self.layout.sync(buffer, &mut self.disk)?;
                }
            }
        }
        Ok(())
    }

    /// Written data stays in the caches.
    fn keep(&mut self, client: u32, block: u32) {
        let keys = self.files.numbered() as usize;
        if let Some(cache) = self.clients.get_mut(client as usize) {
            cache.ensure_keys(keys);
            cache.insert(block);
        }
        if let Some(server) = &mut self.server {
            server.ensure_keys(keys);
            if let Some(evicted) = server.insert(block) {
                self.ahead.forget(evicted);
                self.layout.set_resident(evicted, false);
            }
            self.layout.set_resident(block, true);
        }
    }

    /// Reads what no cache has. A drive that holds several commands is sent what is worth reading
    /// ahead with it; then, when the user was answered.
    fn read(&mut self, request: &FileRequest) -> Option<u64> {
        let mut missed = std::mem::take(&mut self.missed);
        missed.clear();
        for block in request.block..request.block + request.blocks {
            self.counts.read_blocks += 1;
            missed.extend(self.missed_block(request.client, request.file, block));
        }
        self.disk.begin_batch();
        self.layout.begin_read(|| self.disk.spent_ns());
        self.layout.read(&missed, Purpose::Read, &mut self.disk);
        self.missed = missed;
        let is_under_way = self.disk.has_gathered();
        let read_ns = self.disk.now_ns();
        if is_under_way {
            self.read_ahead_of(request);
        }
        self.disk.end_batch();
        is_under_way.then(|| self.disk.answered_ns().max(read_ns))
    }

    fn read_ahead_of(&mut self, request: &FileRequest) {
        if self.setting.prefetch != Prefetch::None {
            let Self { ahead, files, layout, server, disk, missed, .. } = self;
            ahead.follow(request, missed, files, layout, server.as_mut(), disk);
        }
    }

    /// The block of the layout that `block` of `file` is, if the disk must be asked for it.
    fn missed_block(&mut self, client: u32, file: u32, block: u32) -> Option<u32> {
        let Some(block) = self.files.find(file, block) else {
            self.counts.hole_reads += 1;
            return None;
        };
        let keys = self.files.numbered() as usize;
        if let Some(cache) = self.clients.get_mut(client as usize) {
            cache.ensure_keys(keys);
            if cache.reference(block).is_hit() {
                self.counts.client_hits += 1;
                return None;
            }
        }
        if let Some(server) = &mut self.server {
            server.ensure_keys(keys);
            match server.reference(block) {
                Access::Hit => {
                    self.counts.server_hits += 1;
                    if self.ahead.asked_for(block) {
                        self.layout.foreseen(block, &mut self.disk);
                    }
                    return None;
                }
                // Segments that come back into the cache are not looked for (Matthews 1999, §5.5),
                // so only the one that leaves matters.
                Access::Miss { evicted: Some(evicted) } => {
                    self.ahead.forget(evicted);
                    self.layout.set_resident(evicted, false);
                }
                Access::Miss { evicted: None } => {}
            }
        }
        let is_on_disk = matches!(self.layout.place_of(block), Place::Disk(_));
        self.counts.waiting_hits += u64::from(!is_on_disk);
        is_on_disk.then_some(block)
    }

    fn cut(&mut self, file: u32, kept: u32) {
        let Self { files, layout, disk, clients, server, ahead, .. } = self;
        files.cut(file, kept, |block| {
            layout.delete(block, disk);
            for cache in &mut *clients {
                if (block as usize) < cache.keys() {
                    cache.remove(block);
                }
            }
            if let Some(server) = server
                && (block as usize) < server.keys()
            {
                server.remove(block);
                ahead.forget(block);
                layout.set_resident(block, false);
            }
        });
    }
}
