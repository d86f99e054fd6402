//! Events of all processors in the order of their times.

use agewell_trace::Event;

/// Holds events back until no earlier one can come.
#[derive(Debug, Default)]
pub struct Merge {
    held: Vec<Event>,
    /// Events of this time and later are held.
    released_ns: u64,
    late: u64,
}

impl Merge {
    /// Takes an event; those of one processor come in the order of their times.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.late += u64::from(event.time_ns < self.released_ns);
        self.held.push(event);
    }

    /// Hands over every event before `time_ns`, in order; of one time, as a request has them.
    pub fn release(&mut self, time_ns: u64, take: impl FnMut(Event)) {
        // A stable sort finds the runs of the processors and merges them.
        self.held.sort_by_key(|event| (event.time_ns, event.kind));
        let count = self.held.partition_point(|event| event.time_ns < time_ns);
        self.held.drain(..count).for_each(take);
        self.released_ns = self.released_ns.max(time_ns);
    }

    /// Events that came after later ones had been handed over.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use agewell_trace::{EventKind, letters};

    use super::*;

    fn event(time_ns: u64, kind: EventKind) -> Event {
        let letters = letters(b"R").expect("letters");
        Event { kind, time_ns, device: 0, sector: 0, sectors: 8, letters, client: 0 }
    }

    #[test]
    fn events_of_several_processors_come_in_order_and_none_before_its_time() {
        let mut merge = Merge::default();
        for time_ns in [10, 30, 50] {
            merge.push(event(time_ns, EventKind::Complete));
        }
        for time_ns in [20, 30, 40, 60] {
            merge.push(event(time_ns, EventKind::Issue));
        }
        let mut seen = Vec::new();
        merge.release(50, |event| seen.push((event.time_ns, event.kind)));
        let (issue, complete) = (EventKind::Issue, EventKind::Complete);
        // Of one time the issue comes first: its completion may have the same.
        let expected = [(10, complete), (20, issue), (30, issue), (30, complete), (40, issue)];
        assert_eq!(seen, expected);
        merge.push(event(45, issue));
        merge.push(event(50, issue));
        assert_eq!(merge.late(), 1);
        seen.clear();
        merge.release(u64::MAX, |event| seen.push((event.time_ns, event.kind)));
        assert_eq!(seen.iter().map(|seen| seen.0).collect::<Vec<_>>(), [45, 50, 50, 60]);
    }
}
