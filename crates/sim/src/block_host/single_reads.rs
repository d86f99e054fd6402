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
//! index and the list of the cache, which the host looks up beforehand.

use agewell_core::{FileAction, FileRequest};
use agewell_layout::block_device::{BlockDevice, Purpose, Transfer};
use agewell_layout::block_layout::{BlockLayout, Place};

use super::host::HostRun;
use super::series::ThroughputSeries;
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
    pub(crate) fn serve_single_reads(
        &mut self,
        requests: &[FileRequest],
        throughput: &ThroughputSeries,
    ) -> usize {
        let most = throughput.blocks_within(&self.counts).min(requests.len() as u64) as usize;
        let flush_ns =
            if self.setting.keys.flush_interval.0 > 0 { self.next_flush_ns } else { u64::MAX };
        let place_read_ns = self.disk.place_read_ns();
        let (mut served, mut immediate, mut alike) = (0, 0, 0);
        for request in &requests[..most] {
            let is_one_block = request.action == FileAction::Read && request.blocks == 1;
            if !is_one_block || request.time.0 >= flush_ns {
                break;
            }
            let Some(block) = self.files.find(request.file, request.block) else { break };
            self.disk.wait_until(request.time.0);
            if !self.has_cached(request.client, block) {
                match (self.layout.place_of(block), place_read_ns) {
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
            let answered_ns = &mut self.answered_ns[request.client as usize];
            let response_ns = self.disk.now_ns() - request.time.0.max(*answered_ns);
            *answered_ns = self.disk.now_ns();
            if response_ns == 0 {
                immediate += 1;
            } else {
                self.responses.record(response_ns);
                self.response_total_ns += u128::from(response_ns);
            }
            served += 1;
        }
        self.disk.add_place_reads(alike, place_read_ns.unwrap_or(0));
        self.responses.record_many(0, immediate);
        self.counts.requests += served as u64;
        self.counts.read_blocks += served as u64;
        served
    }

    /// Whether a cache has `block`, which `client` reads; the caches that it asked have it now.
    #[inline]
    fn has_cached(&mut self, client: u32, block: u32) -> bool {
        let keys = self.files.numbered() as usize;
        if let Some(client) = self.clients.get_mut(client as usize) {
            client.ensure_keys(keys);
            if client.reference(block).is_hit() {
                self.counts.client_hits += 1;
                return true;
            }
        }
        let Some(server) = &mut self.server else { return false };
        server.ensure_keys(keys);
        match server.reference(block) {
            Access::Hit => {
                self.counts.server_hits += 1;
                return true;
            }
            Access::Miss { evicted: Some(evicted) } => self.layout.set_resident(evicted, false),
            Access::Miss { evicted: None } => {}
        }
        false
    }
}
