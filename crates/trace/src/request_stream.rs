//! Requests out of events that come one after another, for whoever records a live system.

use crate::error::Problem;
use crate::metadata::TraceMetadata;
use crate::pairing::{Event, Pairing};
use crate::record::BlockBatch;
use crate::reorder_window::{Order, Origin, ReorderWindow};

const EVENTS_LOST: &str = "events were lost by the kernel while it traced";

/// Pairs events into requests, and gives those in order of their enqueue times.
pub struct RequestStream {
    pairing: Pairing,
    window: ReorderWindow,
}

impl RequestStream {
    /// A stream whose time zero is `start_ns` on the clock of the events; `metadata` says on which
    /// devices.
    #[must_use]
    pub fn new(metadata: TraceMetadata, start_ns: u64) -> Self {
        let wall_ns = metadata.start_wall_ns;
        let mut window = ReorderWindow::new(metadata, Order::Window, Origin::ClockZero, true);
        window.disorder_is_normal = true;
        window.start_at(start_ns);
        window.metadata.start_wall_ns = wall_ns;
        Self { pairing: Pairing::default(), window }
    }

    /// Takes the next event. One that makes no sense is left out and counted.
    pub fn event(&mut self, event: Event) {
        if let Err(problem) = self.pairing.event(event, &mut self.window) {
            self.leave_out(problem);
        }
    }

    fn leave_out(&mut self, problem: Problem) {
        let metadata = &mut self.window.metadata;
        metadata.skipped_records += 1;
        metadata.first_skipped.get_or_insert_with(|| problem.0.into_string());
    }

    /// `count` events were lost, the last of them before `until_ns`.
    pub fn lost(&mut self, count: u64, until_ns: u64) {
        if count > 0 {
            self.window.metadata.warn_many(EVENTS_LOST, count);
        }
        self.pairing.lost(until_ns);
    }

    /// No event before `now_ns` comes any more: makes ready every request that none can precede.
    pub fn settle(&mut self, now_ns: u64) {
        self.window.release_before(self.pairing.earliest_open_ns(now_ns));
    }

    /// Ends the stream: what is still open becomes ready with the times it has.
    pub fn finish(&mut self) {
        if let Err(problem) = self.pairing.finish(&mut self.window) {
            self.leave_out(problem);
        }
        self.window.finish();
    }

    /// Moves requests that are ready into `batch`, as many as make one; `false` if there are none.
    pub fn take(&mut self, batch: &mut BlockBatch) -> bool {
        batch.clear();
        if !self.window.has_ready() {
            return false;
        }
        self.window.take(batch);
        true
    }

    /// What is known of the trace.
    pub fn metadata(&mut self) -> &mut TraceMetadata {
        &mut self.window.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::{EventKind, letters};
    use crate::record::TIME_MISSING;

    fn event(kind: EventKind, time_ns: u64, sector: u64) -> Event {
        let letters = letters(b"R").expect("letters");
        Event { kind, time_ns, device: 0, sector, sectors: 8, letters, client: 1 }
    }

    /// What is ready, as enqueue and finish times.
    fn ready(stream: &mut RequestStream) -> Vec<(u64, u64)> {
        let (mut batch, mut rows) = (BlockBatch::default(), Vec::new());
        while stream.take(&mut batch) {
            rows.extend(batch.enqueue_ns.iter().copied().zip(batch.finish_ns.iter().copied()));
        }
        rows
    }

    #[test]
    fn requests_wait_for_the_earliest_that_is_open() {
        let mut stream = RequestStream::new(TraceMetadata::default(), 1000);
        for (kind, time_ns, sector) in [
            (EventKind::Queue, 1010, 0),
            (EventKind::Issue, 1011, 0),
            (EventKind::Queue, 1020, 64),
            (EventKind::Issue, 1021, 64),
            (EventKind::Complete, 1030, 64),
        ] {
            stream.event(event(kind, time_ns, sector));
        }
        stream.settle(1040);
        assert_eq!(ready(&mut stream), [], "the first request may still complete");
        stream.event(event(EventKind::Complete, 1050, 0));
        stream.settle(1060);
        assert_eq!(ready(&mut stream), [(10, 50), (20, 30)]);
    }

    #[test]
    fn a_completion_that_was_lost_does_not_shift_those_of_later_requests_at_its_place() {
        let mut stream = RequestStream::new(TraceMetadata::default(), 0);
        stream.event(event(EventKind::Issue, 10, 0));
        // Its completion is among the events that were lost.
        stream.lost(3, 20);
        for time_ns in [30, 40, 50] {
            stream.event(event(EventKind::Issue, time_ns, 0));
            stream.event(event(EventKind::Complete, time_ns + 5, 0));
        }
        stream.finish();
        assert_eq!(ready(&mut stream), [(10, TIME_MISSING), (30, 35), (40, 45), (50, 55)]);
        assert_eq!(stream.metadata().warnings[EVENTS_LOST], 3);
    }
}
