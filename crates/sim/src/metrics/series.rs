//! Counts by interval of the trace (an hour unless asked otherwise), keyed by the enqueue time of
//! the request.

use agewell_core::{Operation, SimDuration};

use super::{Completed, Physical};

/// Sums over one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interval {
    /// Which interval, from 0 at the start of the trace.
    pub index: u64,
    /// Requests.
    pub requests: u64,
    /// Reads among them.
    pub reads: u64,
    /// Sectors moved.
    pub sectors: u64,
    /// Service time, ns.
    pub service_ns: u128,
    /// Response time, ns.
    pub response_ns: u128,
    /// Disk I/Os.
    pub physical: u64,
    /// Disk I/Os without arm movement.
    pub zero_seeks: u64,
    /// Cylinders moved over.
    pub seek_cylinders: u128,
}

/// Intervals that hold at least one request, in rising order.
#[derive(Debug, Clone)]
pub struct IntervalSeries {
    interval: SimDuration,
    rows: Vec<Interval>,
    current: usize,
}

impl IntervalSeries {
    /// An empty series.
    ///
    /// # Panics
    /// If `interval` is zero.
    #[must_use]
    pub fn new(interval: SimDuration) -> Self {
        assert!(interval.0 > 0, "an interval of no length");
        Self { interval, rows: Vec::new(), current: 0 }
    }

    /// Length of an interval.
    #[must_use]
    pub fn interval(&self) -> SimDuration {
        self.interval
    }

    /// The intervals that hold anything.
    #[must_use]
    pub fn rows(&self) -> &[Interval] {
        &self.rows
    }

    /// Requests over all intervals.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.rows.iter().map(|row| row.requests).sum()
    }

    pub(super) fn complete(&mut self, request: &Completed) {
        let row = self.row(request.enqueue.0);
        row.requests += 1;
        row.reads += u64::from(request.operation == Operation::Read);
        row.sectors += request.sectors;
        row.service_ns += u128::from(request.service.0);
        row.response_ns += u128::from((request.finish - request.enqueue).0);
    }

    pub(super) fn physical(&mut self, io: &Physical) {
        let row = self.row(io.enqueue.0);
        row.physical += 1;
        row.zero_seeks += u64::from(io.seek_cylinders == 0);
        row.seek_cylinders += u128::from(io.seek_cylinders);
    }

    fn row(&mut self, time_ns: u64) -> &mut Interval {
        let index = time_ns / self.interval.0;
        // Requests come nearly in order of time, so the row is almost always the last one used.
        if self.rows.get(self.current).is_none_or(|row| row.index != index) {
            self.current = match self.rows.binary_search_by_key(&index, |row| row.index) {
                Ok(found) => found,
                Err(place) => {
                    self.rows.insert(place, Interval { index, ..Interval::default() });
                    place
                }
            };
        }
        &mut self.rows[self.current]
    }
}

#[cfg(test)]
mod tests {
    use agewell_core::SimTime;

    use super::*;

    #[test]
    fn a_late_completion_still_counts_in_the_interval_of_its_enqueue() {
        let mut series = IntervalSeries::new(SimDuration(10));
        for enqueue in [5, 25, 7, 26] {
            series.complete(&Completed {
                enqueue: SimTime(enqueue),
                finish: SimTime(100),
                operation: Operation::Read,
                sectors: 1,
                service: SimDuration(1),
            });
        }
        let counted: Vec<_> = series.rows().iter().map(|row| (row.index, row.requests)).collect();
        assert_eq!(counted, [(0, 2), (2, 2)]);
    }
}
