//! The greedy disciplines: SSTF by cylinders, SPTF by the device's own estimate of seek and rotation.

use agewell_core::{SimDuration, SimTime};

use super::QueueEntry;
use super::cylinder_index::{BucketOrder, CylinderIndex};
use crate::device::Device;

/// SSTF: the nearest cylinder on either side; at equal distance the request that came first.
#[derive(Debug, Clone)]
pub(super) struct NearestCylinder {
    waiting: CylinderIndex,
}

impl Default for NearestCylinder {
    fn default() -> Self {
        Self { waiting: CylinderIndex::new(BucketOrder::Arrival) }
    }
}

impl NearestCylinder {
    pub(super) fn push(&mut self, entry: QueueEntry) {
        self.waiting.push(entry);
    }

    pub(super) fn pop(&mut self, arm: u32) -> Option<QueueEntry> {
        let claim = |handle| {
            let entry = self.waiting.entry(handle);
            (entry.cylinder.abs_diff(arm), entry.sequence)
        };
        let handle = match (self.waiting.at_or_below(arm), self.waiting.at_or_above(arm)) {
            (Some(below), Some(above)) if claim(below) <= claim(above) => below,
            (below, above) => above.or(below)?,
        };
        Some(self.waiting.take(handle))
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// SPTF: asks the device about every waiting request, so a choice costs time in proportion to the queue.
#[derive(Debug, Clone, Default)]
pub(super) struct NearestPosition {
    waiting: Vec<QueueEntry>,
}

impl NearestPosition {
    pub(super) fn push(&mut self, entry: QueueEntry) {
        self.waiting.push(entry);
    }

    pub(super) fn pop(&mut self, now: SimTime, device: &impl Device) -> Option<QueueEntry> {
        // Requests that move no data (discard, flush) need no positioning.
        let positioning = |entry: &QueueEntry| {
            if entry.request.operation.transfers_data() {
                device.positioning(now, &entry.request)
            } else {
                SimDuration::ZERO
            }
        };
        let place = match self.waiting.len() {
            0 => return None,
            1 => 0,
            _ => {
                let claims = self.waiting.iter().map(|entry| (positioning(entry), entry.sequence));
                claims.enumerate().min_by_key(|(_, claim)| *claim)?.0
            }
        };
        Some(self.waiting.swap_remove(place))
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
