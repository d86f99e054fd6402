//! The greedy disciplines: SSTF by cylinders, SPTF by the device's own estimate of seek and rotation.

use agewell_core::{SimDuration, SimTime};

use super::QueueEntry;
use super::arrival::ArrivalOrder;
use super::cylinder_index::{CylinderIndex, Handle};
use crate::device::{Device, Moment};

/// SSTF: the nearest cylinder on either side; at equal distance the request that came first.
#[derive(Debug, Clone, Default)]
pub(super) struct NearestCylinder {
    waiting: CylinderIndex,
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

/// SPTF: the device estimates requests outwards from the nearest, until nothing further out can be
/// sooner.
///
/// A choice asks about as many requests as lie within the seek that the best one allows, and about those on cylinders
/// that are in the device's buffer; a device that knows no bound is asked about every one.
#[derive(Debug, Clone, Default)]
pub(super) struct NearestPosition {
    waiting: CylinderIndex,
    /// Requests that move no data (discard, flush) need no positioning.
    at_once: ArrivalOrder,
}

/// The best of the requests seen so far.
#[derive(Debug, Clone, Copy)]
struct Best {
    positioning: SimDuration,
    sequence: u64,
    handle: Handle,
}

impl NearestPosition {
    pub(super) fn push(&mut self, entry: QueueEntry) {
        if entry.request.operation.transfers_data() {
            self.waiting.push(entry);
        } else {
            self.at_once.push(entry);
        }
    }

    pub(super) fn pop(&mut self, now: SimTime, device: &impl Device) -> Option<QueueEntry> {
        if self.waiting.len() == 0 {
            return self.at_once.pop();
        }
        if let (Some(only), 1, 0) =
            (self.waiting.at_or_above(0), self.waiting.len(), self.at_once.len())
        {
            return Some(self.waiting.take(only));
        }
        let best = self.nearest(now, device)?;
        let at_once = self.at_once.next_sequence();
        if at_once
            .is_some_and(|first| (SimDuration::ZERO, first) < (best.positioning, best.sequence))
        {
            return self.at_once.pop();
        }
        Some(self.waiting.take(best.handle))
    }

    fn nearest(&self, now: SimTime, device: &impl Device) -> Option<Best> {
        let moment = device.moment(now);
        let mut best = None;
        device.buffered_cylinders(&moment, &mut |cylinder| {
            self.look_at(cylinder, SimDuration::ZERO, &moment, device, &mut best);
        });
        let cylinder = |handle: Handle| self.waiting.entry(handle).cylinder;
        let below_arm = moment.cylinder.checked_sub(1);
        let mut above = self.waiting.at_or_above(moment.cylinder).map(cylinder);
        let mut below = below_arm.and_then(|arm| self.waiting.at_or_below(arm)).map(cylinder);
        loop {
            let away = |cylinder: u32| cylinder.abs_diff(moment.cylinder);
            let next = match (above, below) {
                (Some(above), Some(below)) if away(below) < away(above) => below,
                (above, below) => above.or(below)?,
            };
            let least = device.positioning_at_least(&moment, away(next));
            if let Some(best) = best.filter(|best: &Best| best.positioning < least) {
                return Some(best);
            }
            self.look_at(next, least, &moment, device, &mut best);
            if above == Some(next) {
                above = next
                    .checked_add(1)
                    .and_then(|from| self.waiting.at_or_above(from))
                    .map(cylinder);
            } else {
                below = next
                    .checked_sub(1)
                    .and_then(|from| self.waiting.at_or_below(from))
                    .map(cylinder);
            }
            if above.is_none() && below.is_none() {
                return best;
            }
        }
    }

    /// Compares the requests on `cylinder` with the `best` so far. None of them is positioned for in less than `least`,
    /// so that the first to take no more, being the oldest of its cylinder that does, ends the search there.
    fn look_at(
        &self,
        cylinder: u32,
        least: SimDuration,
        moment: &Moment,
        device: &impl Device,
        best: &mut Option<Best>,
    ) {
        for handle in self.waiting.on(cylinder) {
            let entry = self.waiting.entry(handle);
            let positioning = device.positioning(moment, &entry.request);
            let claim = (positioning, entry.sequence);
            if best.is_none_or(|best| claim < (best.positioning, best.sequence)) {
                *best = Some(Best { positioning, sequence: entry.sequence, handle });
            }
            if positioning <= least {
                return;
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.at_once.len()
    }
}
