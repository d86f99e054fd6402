//! What was taken in brought to the medium: groups carried out in their order, a rotational delay apart, one flush
//! for all who wait, and the map.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Store, lock};
use crate::StoreError;
use crate::background::Bell;
use crate::device::Disk;
use crate::medium::Medium;
use crate::seeded::{SeededFault, is_seeded};

impl<D: Disk> Store<D> {
    /// Everything taken in is on the medium when this returns. Threads that wait at the same time share a
    /// flush.
    ///
    /// # Errors
    /// If the disk fails. Nothing is lost by that: what is not on the medium is tried again by the next.
    pub fn sync(&self) -> Result<(), StoreError> {
        let taken = lock(&self.front).taken;
        self.commit.wait(taken, || self.commit_all(&mut self.medium_at_once()))
    }

    /// Brings all that has been taken in to the medium; how many transactions that are.
    pub(super) fn commit_all(&self, medium: &mut Medium<D>) -> Result<u64, StoreError> {
        self.drain(medium)?;
        if self.has_moved.swap(false, Ordering::Relaxed) {
            medium.rotational_delay.moved();
        }
        let begin_ns = self.disk.now_ns();
        let mut front = lock(&self.front);
        let blocks = front.engine.waiting();
        if blocks > 0 && front.groups_waiting() == 0 {
            let gap_blocks = medium.rotational_delay.gap_blocks(blocks, begin_ns);
            if !front.engine.leave_gap(gap_blocks, medium.rotational_delay.usual()) {
                medium.rotational_delay.no_room();
            }
        }
        front.plan_changes()?;
        if medium.rotational_delay.begins_to_gain() {
            front.engine.try_threads();
        }
        let taken = front.taken;
        drop(front);
        self.drain(medium)?;
        if medium.flushed < medium.written && !is_seeded(SeededFault::SyncWithoutFlush) {
            medium.flush()?;
            let end_ns = self.disk.now_ns();
            medium.rotational_delay.synced(begin_ns.unwrap_or(0), end_ns.unwrap_or(0));
            self.settle(medium);
        }
        Ok(taken)
    }

    /// Has `carrier` woken when something is planned, or nobody any more; false if there is one already.
    pub(crate) fn set_carrier(&self, carrier: Option<Arc<Bell>>) -> bool {
        let mut front = lock(&self.front);
        let is_new = front.carrier.is_none() || carrier.is_none();
        if is_new {
            front.carrier = carrier;
        }
        is_new
    }

    /// Carries out what is planned.
    pub(crate) fn carry_out_waiting(&self) -> Result<(), StoreError> {
        self.drain(&mut lock(&self.medium))
    }

    /// Carries out what is planned, or leaves it to who is at it, if that is not much.
    pub(super) fn carry_out_some(&self) -> Result<(), StoreError> {
        let is_much = lock(&self.front).is_much_waiting();
        match self.medium.try_lock() {
            Ok(mut medium) => self.drain(&mut medium),
            Err(_) if is_much => self.drain(&mut self.medium_at_once()),
            Err(_) => Ok(()),
        }
    }

    /// Carries out what is planned before more is, if that is much: what a disk that fails does not take
    /// would go on growing in memory.
    pub(super) fn carry_out_much(&self) -> Result<(), StoreError> {
        if lock(&self.front).is_much_waiting() {
            self.drain(&mut self.medium_at_once())?;
        }
        Ok(())
    }

    /// What `medium` has done reaches the engine.
    pub(super) fn settle(&self, medium: &mut Medium<D>) {
        lock(&self.front).settled(medium.flushed, medium.covered, &mut medium.spare);
    }

    /// Carries out what is planned.
    pub(super) fn drain(&self, medium: &mut Medium<D>) -> Result<(), StoreError> {
        if medium.may_have_forgotten() {
            // What is moved is read from the device.
            medium.flush()?;
            self.settle(medium);
        }
        medium.write_due_superblocks()?;
        if medium.root_is_due {
            self.write_map(medium)?;
        }
        loop {
            let Some(group) = lock(&self.front).next_group() else { return Ok(()) };
            let runs_bytes = (group.moves.len() + group.freed.len()) * 20 + 12;
            if !medium.ring_has_room(runs_bytes) {
                self.write_map(medium)?;
            }
            medium.carry_out(&group)?;
            lock(&self.front).carried_out();
            drop(group);
            medium.relieve()?;
            self.settle(medium);
        }
    }

    /// Writes the map as the medium has it.
    pub(super) fn write_map(&self, medium: &mut Medium<D>) -> Result<(), StoreError> {
        let slots_of = |blocks: &mut dyn Iterator<Item = u32>, slots: &mut Vec<u32>| {
            lock(&self.front).slots_on_medium(blocks, slots);
        };
        let times = || {
            let front = lock(&self.front);
            let log = front.engine.log();
            (0..self.geometry().segments).map(|segment| log.segment_times(segment)).collect()
        };
        medium.mechanism = lock(&self.front).engine.mechanism();
        medium.write_map(&slots_of, &times)?;
        self.settle(medium);
        Ok(())
    }
}
