//! First come, first served: a ring buffer in order of sequence number.

use std::collections::VecDeque;

use super::QueueEntry;

#[derive(Debug, Clone, Default)]
pub(super) struct ArrivalOrder {
    entries: VecDeque<QueueEntry>,
}

impl ArrivalOrder {
    pub(super) fn push(&mut self, entry: QueueEntry) {
        if self.entries.back().is_none_or(|last| last.sequence < entry.sequence) {
            self.entries.push_back(entry);
        } else {
            let place = self.entries.partition_point(|other| other.sequence < entry.sequence);
            self.entries.insert(place, entry);
        }
    }

    pub(super) fn pop(&mut self) -> Option<QueueEntry> {
        self.entries.pop_front()
    }

    /// The sequence number of the next to leave.
    pub(super) fn next_sequence(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.sequence)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
