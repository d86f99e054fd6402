//! Reads of one block each, many at a time.
//!
//! Where nothing hangs on a read but caches, a disk that does one thing after another, and a few sums
//! (no reading ahead, no flush by time, no layout that learns from what users ask for), the sums are
//! added up once for many, and what serving any request asks about is not asked. The first request
//! that is none of these is served like any other, so everything is as if all were; a test holds one
//! against the other.
//!
//! Cost: some 60 instructions for a read that a cache answers, a third of them the cache's; that the
//! disk answers, twice as many if it has no mechanics. Serving takes some 400 and 700. It waits for the
//! index and the list of the cache, which are looked up beforehand.

use agewell_core::{FileAction, FileRequest};
use agewell_layout::block_layout::{BlockLayout, Place};
use agewell_log::{BlockDevice, Purpose, Transfer};

use super::block_host::{HostRun, LOOKED_UP_TOGETHER};
use super::throughput::ThroughputSeries;
use crate::cache::Access;
use crate::prefetch::Prefetch;

impl<L: BlockLayout> HostRun<L> {
    /// Whether it is worth asking for reads of one block, many at a time.
    pub(crate) fn takes_single_reads(&self) -> bool {
        (self.server.is_some() || !self.clients.is_empty())
            && self.layout.only_reads_in_runs()
            && !self.disk.gathers()
            && self.setting.idle_cleaning.is_none()
            && self.setting.prefetch == Prefetch::None
    }

    /// Serves the first of `requests`, as many as read one block that exists; how many. The one that
    /// ends an interval of the series is not among them.
    ///
    /// # Panics
    /// If there are more than [`LOOKED_UP_TOGETHER`].
    pub(crate) fn serve_single_reads(
        &mut self,
        requests: &[FileRequest],
        throughput: &ThroughputSeries,
    ) -> usize {
        let most = throughput.blocks_within(&self.counts).min(requests.len() as u64) as usize;
        let flush_ns =
            if self.setting.keys.flush_interval.0 > 0 { self.next_flush_ns } else { u64::MAX };
        let mut blocks = [0; LOOKED_UP_TOGETHER];
        let mut served = 0;
        for (request, block) in requests[..most].iter().zip(&mut blocks) {
            let is_one_block = request.action == FileAction::Read && request.blocks == 1;
            if !is_one_block || request.time.0 >= flush_ns {
                break;
            }
            let Some(number) = self.files.find(request.file, request.block) else { break };
            *block = number;
            served += 1;
        }
        if served == 0 {
            return 0;
        }
        let (requests, blocks) = (&requests[..served], &blocks[..served]);
        let mut missed = [false; LOOKED_UP_TOGETHER];
        if self.clients.is_empty() {
            self.ask_server(blocks, &mut missed[..served]);
        } else {
            self.look_up(requests);
            for ((request, block), missed) in requests.iter().zip(blocks).zip(&mut missed) {
                *missed = self.misses(request.client, *block);
            }
        }
        self.pass_single_reads(requests, blocks, &missed[..served]);
        self.counts.requests += served as u64;
        self.counts.read_blocks += served as u64;
        served
    }

    /// Lets time pass while `requests` to `blocks` are answered; those that `missed` every cache by the
    /// disk, if they do not wait to be written.
    fn pass_single_reads(&mut self, requests: &[FileRequest], blocks: &[u32], missed: &[bool]) {
        let place_read_ns = self.disk.place_read_ns();
        let (mut immediate, mut alike) = (0, 0);
        for ((request, block), missed) in requests.iter().zip(blocks).zip(missed) {
            self.disk.wait_until(request.time.0);
            if *missed {
                match (self.layout.place_of(*block), place_read_ns) {
                    (Place::Disk(_), Some(ns)) => {
                        self.disk.pass_reading(ns);
                        alike += 1;
                    }
                    (Place::Disk(place), None) => {
                        let transfer = Transfer::of_blocks(Purpose::Read, place, 1);
                        self.disk.transfer(&transfer, &[]);
                    }
                    _ => self.counts.waiting_hits += 1,
                }
            }
            let now_ns = self.disk.now_ns();
            let answered_ns = &mut self.answered_ns[request.client as usize];
            let response_ns = now_ns - request.time.0.max(*answered_ns);
            *answered_ns = now_ns;
            if response_ns == 0 {
                immediate += 1;
            } else {
                self.responses.record(response_ns);
                self.response_total_ns += u128::from(response_ns);
            }
        }
        self.disk.add_place_reads(alike, place_read_ns.unwrap_or(0));
        self.responses.record_many(0, immediate);
    }

    /// References to `blocks` in the server's cache, if there is one, and notes which it `missed`. What
    /// that looks at, and the layout for what is missed, is looked up first for all of them.
    fn ask_server(&mut self, blocks: &[u32], missed: &mut [bool]) {
        let Some(server) = &mut self.server else { return missed.fill(true) };
        server.ensure_keys(self.files.numbered() as usize);
        let mut found = [0; LOOKED_UP_TOGETHER];
        let mut seen = server.look_up(blocks, &mut found[..blocks.len()]);
        for (block, found) in blocks.iter().zip(found) {
            seen ^= self.layout.look_up(if found == 0 { *block } else { 0 });
        }
        std::hint::black_box(seen);
        let mut accesses = [Access::Hit; LOOKED_UP_TOGETHER];
        let accesses = &mut accesses[..blocks.len()];
        server.reference_all(blocks, accesses);
        for (access, missed) in accesses.iter().zip(missed) {
            *missed = !access.is_hit();
            self.counts.server_hits += u64::from(access.is_hit());
            if let Some(evicted) = access.evicted() {
                self.layout.set_resident(evicted, false);
            }
        }
    }

    /// Whether no cache has `block`, which `client` reads; the caches that it asked have it now.
    fn misses(&mut self, client: u32, block: u32) -> bool {
        let keys = self.files.numbered() as usize;
        if let Some(client) = self.clients.get_mut(client as usize) {
            client.ensure_keys(keys);
            if client.reference(block).is_hit() {
                self.counts.client_hits += 1;
                return false;
            }
        }
        let Some(server) = &mut self.server else { return true };
        server.ensure_keys(keys);
        let access = server.reference(block);
        self.counts.server_hits += u64::from(access.is_hit());
        if let Some(evicted) = access.evicted() {
            self.layout.set_resident(evicted, false);
        }
        !access.is_hit()
    }
}
