//! The sweeping disciplines: SCAN up and down, C-SCAN and C-LOOK upwards only.

use std::collections::BTreeMap;

use super::QueueEntry;
use super::cylinder_index::CylinderIndex;

/// SCAN: the arm keeps its direction while anything waits ahead of it. It starts upwards.
#[derive(Debug, Clone)]
pub(super) struct TwoWaySweep {
    waiting: CylinderIndex,
    upwards: bool,
}

impl Default for TwoWaySweep {
    fn default() -> Self {
        Self { waiting: CylinderIndex::default(), upwards: true }
    }
}

impl TwoWaySweep {
    pub(super) fn push(&mut self, entry: QueueEntry) {
        self.waiting.push(entry);
    }

    pub(super) fn pop(&mut self, arm: u32) -> Option<QueueEntry> {
        let above = self.waiting.at_or_above(arm);
        let below = self.waiting.at_or_below(arm);
        let (ahead, behind) = if self.upwards { (above, below) } else { (below, above) };
        let handle = ahead.or(behind)?;
        if ahead.is_none() {
            self.upwards = !self.upwards;
        }
        Some(self.waiting.take(handle))
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// C-SCAN: the next cylinder at or above the arm, else the lowest.
#[derive(Debug, Clone, Default)]
pub(super) struct SweepByCylinder {
    waiting: CylinderIndex,
}

impl SweepByCylinder {
    pub(super) fn push(&mut self, entry: QueueEntry) {
        self.waiting.push(entry);
    }

    pub(super) fn pop(&mut self, arm: u32) -> Option<QueueEntry> {
        let next = self.waiting.at_or_above(arm).or_else(|| self.waiting.at_or_above(0))?;
        Some(self.waiting.take(next))
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// C-LOOK: the next address at or above where the sweep has got to, else the lowest.
///
/// An ordered map and not the buckets of the others: a cylinder may hold any part of a long queue, and addresses come in
/// no order.
#[derive(Debug, Clone, Default)]
pub(super) struct SweepByAddress {
    /// Places in `entries` by first sector, then by sequence number.
    waiting: BTreeMap<(u64, u64), u32>,
    /// Apart from the map, whose nodes are searched and moved about.
    entries: Vec<QueueEntry>,
    free: Vec<u32>,
    /// The sector behind the last request handed out.
    reached: u64,
}

impl SweepByAddress {
    pub(super) fn push(&mut self, entry: QueueEntry) {
        let key = (entry.request.sector.0, entry.sequence);
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 waiting requests")
        });
        self.entries[place as usize] = entry;
        self.waiting.insert(key, place);
    }

    pub(super) fn pop(&mut self) -> Option<QueueEntry> {
        let ahead = self.waiting.range((self.reached, 0)..).next();
        let key = *ahead.or_else(|| self.waiting.first_key_value())?.0;
        let place = self.waiting.remove(&key)?;
        self.free.push(place);
        let entry = self.entries[place as usize];
        self.reached = entry.request.sector.0 + entry.request.sectors.0;
        Some(entry)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
