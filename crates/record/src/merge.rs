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
