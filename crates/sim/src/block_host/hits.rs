//! Reads that a cache answers, many at a time.
//!
//! Such a read asks no device for anything and moves no clock but the workload's. Where nothing else
//! hangs on it, no reading ahead, no flush by time, no layout that learns from what users ask for,
//! it is a reference to the cache and a few sums, which are added up once for many. The first read
//! that is not answered like that is served like any other request, so everything is as if all were;
//! a test holds one against the other.
//!
//! Cost: some 60 instructions a read of one block, a third of them the cache's, where serving takes
//! some 400. It waits for the index and the list of the cache, which the host looks up beforehand.

use agewell_core::{FileAction, FileRequest};
use agewell_layout::block_layout::BlockLayout;

use super::host::HostRun;
use super::series::ThroughputSeries;
use crate::prefetch::Prefetch;

impl<L: BlockLayout> HostRun<L> {
    /// Whether it is worth asking for hits, many at a time.
    pub(crate) fn takes_hits(&self) -> bool {
        (self.server.is_some() || !self.clients.is_empty())
            && self.layout.ignores_empty_reads()
            && self.setting.idle_cleaning.is_none()
            && self.setting.prefetch == Prefetch::None
    }

    /// Serves the first of `requests`, as many as read one block that a cache has; how many. The one
    /// that ends an interval of the series is not among them.
    pub(crate) fn serve_hits(
        &mut self,
        requests: &[FileRequest],
        throughput: &ThroughputSeries,
    ) -> usize {
        let most = throughput.blocks_within(&self.counts).min(requests.len() as u64) as usize;
        let flush_ns =
            if self.setting.keys.flush_interval.0 > 0 { self.next_flush_ns } else { u64::MAX };
        let (mut served, mut now_ns, mut immediate) = (0, self.disk.now_ns(), 0);
        for request in &requests[..most] {
            let is_one_block = request.action == FileAction::Read && request.blocks == 1;
            if !is_one_block || request.time.0 >= flush_ns || !self.finds(request) {
                break;
            }
            let answered_ns = &mut self.answered_ns[request.client as usize];
            let asked_ns = request.time.0.max(*answered_ns);
            now_ns = now_ns.max(request.time.0);
            *answered_ns = now_ns;
            if now_ns == asked_ns {
                immediate += 1;
            } else {
                self.responses.record(now_ns - asked_ns);
                self.response_total_ns += u128::from(now_ns - asked_ns);
            }
            served += 1;
        }
        self.disk.wait_until(now_ns);
        self.responses.record_many(0, immediate);
        self.counts.requests += served as u64;
        self.counts.read_blocks += served as u64;
        served
    }

    /// Whether a cache that is asked first has the one block that `request` reads; then it has been
    /// referenced there. Nothing happens if not.
    #[inline]
    fn finds(&mut self, request: &FileRequest) -> bool {
        let Some(block) = self.files.find(request.file, request.block) else { return false };
        if let Some(client) = self.clients.get_mut(request.client as usize) {
            let is_hit = client.reference_resident(block);
            self.counts.client_hits += u64::from(is_hit);
            return is_hit;
        }
        let Some(server) = &mut self.server else { return false };
        let is_hit = server.reference_resident(block);
        self.counts.server_hits += u64::from(is_hit);
        is_hit
    }
}
