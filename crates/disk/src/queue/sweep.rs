//! The sweeping disciplines: SCAN up and down, C-SCAN and C-LOOK upwards only.

use super::QueueEntry;
use super::cylinder_index::{BucketOrder, CylinderIndex, Handle};

/// SCAN: the arm keeps its direction while anything waits ahead of it. It starts upwards.
#[derive(Debug, Clone)]
pub(super) struct TwoWaySweep {
    waiting: CylinderIndex,
    upwards: bool,
}

impl Default for TwoWaySweep {
    fn default() -> Self {
        Self { waiting: CylinderIndex::new(BucketOrder::Arrival), upwards: true }
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

/// C-SCAN and C-LOOK: the next one at or above the arm, else the lowest.
#[derive(Debug, Clone)]
pub(super) struct OneWaySweep {
    waiting: CylinderIndex,
    /// Where the sweep has got to within its cylinder: the sector after the last request handed out. `None` when
    /// requests to one cylinder leave in order of arrival.
    sector: Option<u64>,
    /// The cylinder of the last request handed out, where `sector` counts.
    cylinder: u32,
}

impl OneWaySweep {
    /// C-SCAN.
    pub(super) fn by_cylinder() -> Self {
        Self { waiting: CylinderIndex::new(BucketOrder::Arrival), sector: None, cylinder: 0 }
    }

    /// C-LOOK.
    pub(super) fn by_address() -> Self {
        Self { waiting: CylinderIndex::new(BucketOrder::Address), sector: Some(0), cylinder: 0 }
    }

    pub(super) fn push(&mut self, entry: QueueEntry) {
        self.waiting.push(entry);
    }

    pub(super) fn pop(&mut self, arm: u32) -> Option<QueueEntry> {
        let handle = match self.sector {
            None => self.waiting.at_or_above(arm).or_else(|| self.waiting.at_or_above(0))?,
            Some(sector) => self.beyond(sector).or_else(|| self.waiting.at_or_above(0))?,
        };
        let entry = self.waiting.take(handle);
        if self.sector.is_some() {
            self.sector = Some(entry.request.sector.0 + entry.request.sectors.0);
            self.cylinder = entry.cylinder;
        }
        Some(entry)
    }

    /// The first request at or after `sector`, searched from the cylinder of the last one handed out: its transfer may
    /// have ended in a later cylinder.
    fn beyond(&self, sector: u64) -> Option<Handle> {
        let mut cylinder = self.cylinder;
        loop {
            cylinder = self.waiting.entry(self.waiting.at_or_above(cylinder)?).cylinder;
            let found = self.waiting.within(cylinder, sector);
            if found.is_some() {
                return found;
            }
            cylinder = cylinder.checked_add(1)?;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
