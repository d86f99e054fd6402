//! Metrics of a replay: totals, distributions, and a series by hour.
//!
//! Sums are integers (nanoseconds, cylinders, counts), so the order in which requests are accounted
//! never shows in a result; floats appear only when a finished sum is divided.

mod distribution;
mod series;

pub use distribution::Distribution;
pub use series::{Interval, IntervalSeries};

use std::collections::BTreeMap;

use agewell_core::{DAY_NS, Operation, SimDuration, SimTime};

/// One host request, completed: all its pieces served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    /// When the driver first saw it.
    pub enqueue: SimTime,
    /// When its last piece completed.
    pub finish: SimTime,
    /// Read or write.
    pub operation: Operation,
    /// Length in 512-byte sectors.
    pub sectors: u64,
    /// Time the device spent on it, all pieces together.
    pub service: SimDuration,
}

/// One disk I/O: a request, or a piece of one that remapping split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Physical {
    /// Enqueue time of the request it belongs to.
    pub enqueue: SimTime,
    /// Arm movement in cylinders.
    pub seek_cylinders: u32,
    /// Time in arm movement, head switch and settling.
    pub seek: SimDuration,
    /// Time waiting for the platter.
    pub rotation: SimDuration,
    /// Time moving data.
    pub transfer: SimDuration,
    /// Controller and command overhead.
    pub overhead: SimDuration,
    /// Served from the drive's buffer.
    pub buffer_hit: bool,
}

/// Sums over requests of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Requests.
    pub requests: u64,
    /// Sectors moved.
    pub sectors: u64,
    /// Service time, ns.
    pub service_ns: u128,
    /// Response time, ns.
    pub response_ns: u128,
}

impl Sums {
    fn add(&mut self, request: &Completed) {
        self.requests += 1;
        self.sectors += request.sectors;
        self.service_ns += u128::from(request.service.0);
        self.response_ns += u128::from((request.finish - request.enqueue).0);
    }

    /// Mean service time in ms, or `None` without requests.
    #[must_use]
    pub fn mean_service_ms(&self) -> Option<f64> {
        mean_ms(self.service_ns, self.requests)
    }

    /// Mean response time in ms, or `None` without requests.
    #[must_use]
    pub fn mean_response_ms(&self) -> Option<f64> {
        mean_ms(self.response_ns, self.requests)
    }
}

/// `sum_ns / count` in milliseconds, or `None` if `count` is zero.
pub(crate) fn mean_ms(sum_ns: u128, count: u64) -> Option<f64> {
    (count > 0).then(|| sum_ns as f64 / count as f64 / 1e6)
}

/// Everything counted in one replay.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Reads.
    pub reads: Sums,
    /// Writes.
    pub writes: Sums,
    /// Requests that remapping split.
    pub split_requests: u64,
    /// Disk I/Os, pieces counted singly.
    pub physical: u64,
    /// Disk I/Os that moved the arm not at all.
    pub zero_seeks: u64,
    /// Cylinders moved over.
    pub seek_cylinders: u128,
    /// Times by cause over all disk I/Os, ns: seek, rotation, transfer, overhead.
    pub parts_ns: [u128; 4],
    /// Disk I/Os served from the drive's buffer.
    pub buffer_hits: u64,
    /// Response times.
    pub response: Distribution,
    /// Service times.
    pub service: Distribution,
    /// By hour (or the interval asked for) of the enqueue time.
    pub series: IntervalSeries,
    /// Seek distances by day of the trace: `counts[distance]`.
    pub seek_distances: BTreeMap<u64, Vec<u64>>,
    /// Finish of the last request.
    pub last_finish: SimTime,
    current_day: u64,
    cylinders: usize,
}

impl Metrics {
    /// Nothing counted yet, for devices of up to `cylinders` cylinders and a series by `interval`.
    #[must_use]
    pub fn new(cylinders: u32, interval: SimDuration) -> Self {
        Self {
            reads: Sums::default(),
            writes: Sums::default(),
            split_requests: 0,
            physical: 0,
            zero_seeks: 0,
            seek_cylinders: 0,
            parts_ns: [0; 4],
            buffer_hits: 0,
            response: Distribution::new(),
            service: Distribution::new(),
            series: IntervalSeries::new(interval),
            seek_distances: BTreeMap::new(),
            last_finish: SimTime::ZERO,
            current_day: u64::MAX,
            cylinders: cylinders as usize,
        }
    }

    /// Accounts one completed request.
    pub fn complete(&mut self, request: &Completed) {
        match request.operation {
            Operation::Read => self.reads.add(request),
            Operation::Write => self.writes.add(request),
            Operation::Discard | Operation::Flush => unreachable!("only transfers are served"),
        }
        self.response.record((request.finish - request.enqueue).0);
        self.service.record(request.service.0);
        self.series.complete(request);
        self.last_finish = self.last_finish.max(request.finish);
    }

    /// Accounts one disk I/O.
    pub fn physical(&mut self, io: &Physical) {
        self.physical += 1;
        self.zero_seeks += u64::from(io.seek_cylinders == 0);
        self.seek_cylinders += u128::from(io.seek_cylinders);
        let parts = [io.seek, io.rotation, io.transfer, io.overhead];
        for (sum, part) in self.parts_ns.iter_mut().zip(parts) {
            *sum += u128::from(part.0);
        }
        self.buffer_hits += u64::from(io.buffer_hit);
        self.series.physical(io);
        self.count_distance(io);
    }

    fn count_distance(&mut self, io: &Physical) {
        let day = io.enqueue.0 / DAY_NS;
        let cylinders = self.cylinders;
        // Looking a day up is rare: consecutive requests nearly always share it.
        if day != self.current_day {
            self.seek_distances.entry(day).or_insert_with(|| vec![0; cylinders]);
            self.current_day = day;
        }
        if let Some(counts) = self.seek_distances.get_mut(&day) {
            let distance = io.seek_cylinders as usize;
            // A drive that empties its cache for a request moves the arm several times, together
            // further than it has cylinders.
            if distance >= counts.len() {
                counts.resize(distance + 1, 0);
            }
            counts[distance] += 1;
        }
    }

    /// Reads and writes together.
    #[must_use]
    pub fn all(&self) -> Sums {
        Sums {
            requests: self.reads.requests + self.writes.requests,
            sectors: self.reads.sectors + self.writes.sectors,
            service_ns: self.reads.service_ns + self.writes.service_ns,
            response_ns: self.reads.response_ns + self.writes.response_ns,
        }
    }

    /// Mean arm movement in cylinders per disk I/O, or `None` without any.
    #[must_use]
    pub fn mean_seek_cylinders(&self) -> Option<f64> {
        (self.physical > 0).then(|| self.seek_cylinders as f64 / self.physical as f64)
    }

    /// Checks what must hold between the counters.
    ///
    /// # Panics
    /// If it does not: a bug of this crate.
    pub fn verify(&self) {
        let all = self.all();
        assert_eq!(self.response.count(), all.requests, "a response time a request");
        assert_eq!(self.service.count(), all.requests, "a service time a request");
        assert!(self.physical >= all.requests, "a request is at least one disk I/O");
        let by_distance: u64 = self.seek_distances.values().flatten().sum();
        assert_eq!(by_distance, self.physical, "a seek distance a disk I/O");
        let parts_ns: u128 = self.parts_ns.iter().sum();
        assert_eq!(parts_ns, all.service_ns, "the parts of service are all of it");
        assert_eq!(self.series.requests(), all.requests, "every request in one interval");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shingled drive that merges bands for a request crosses its disk many times.
    #[test]
    fn the_arm_may_move_further_for_one_io_than_the_drive_is_wide() {
        let mut metrics = Metrics::new(100, SimDuration(1_000_000_000));
        for seek_cylinders in [0, 99, 250, 250] {
            metrics.physical(&Physical {
                enqueue: SimTime::ZERO,
                seek_cylinders,
                seek: SimDuration(0),
                rotation: SimDuration(0),
                transfer: SimDuration(0),
                overhead: SimDuration(0),
                buffer_hit: false,
            });
        }
        let counts = &metrics.seek_distances[&0];
        assert_eq!((counts[0], counts[99], counts[250]), (1, 1, 2));
        assert_eq!(counts.iter().sum::<u64>(), 4);
    }
}
