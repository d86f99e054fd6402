//! The front of a store: it takes transactions in and plans what becomes of them.
//!
//! What is planned waits in a queue until whoever has the medium carries it out. So the front never waits
//! for a device, and knows of every block where it is: in the buffer, in the queue, or on the medium.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use agewell_log::LogError;

use crate::aligned::AlignedBytes;
use crate::background::Bell;
use crate::engine::{Engine, Extent};
use crate::format::NONE;
use crate::group::{Group, PlannedRun};
use crate::pacing::Pacing;
use crate::seeded::{SeededFault, is_seeded};

/// Groups that may wait while another thread has the medium; chosen by us: two of a megabyte, as one is
/// written and one is filled.
const GROUPS_WAITING_MAX: usize = 2;

/// Where the newest data of a block is.
pub(crate) enum Newest {
    /// There is no such block.
    Nowhere,
    /// Here: it has been copied.
    Here,
    /// In a slot.
    InSlot(u32),
}

/// The front. See the module.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) engine: Engine,
    /// Groups that are not carried out yet.
    queue: VecDeque<Arc<Group>>,
    /// Buffers that are not in use.
    spare: Vec<AlignedBytes>,
    /// Transactions that were taken in.
    pub(crate) taken: u64,
    /// How writers are slowed, if somebody makes room for them.
    pub(crate) pacing: Option<Pacing>,
    /// What wakes who carries out what is planned, if somebody does but those who plan.
    pub(crate) carrier: Option<Arc<Bell>>,
}

impl Front {
    pub(crate) fn new(engine: Engine) -> Self {
        let (queue, spare) = (VecDeque::new(), Vec::new());
        Self { engine, queue, spare, taken: 0, pacing: None, carrier: None }
    }

    /// Room that is there without a collection, blocks.
    pub(crate) fn room(&self) -> u64 {
        self.engine.log().room_without_collection()
    }

    /// Users' blocks that were placed since the store was opened.
    pub(crate) fn new_blocks(&self) -> u64 {
        self.engine.log().counts().new_blocks
    }

    /// Blocks that were plugged since the store was opened.
    pub(crate) fn plugged_blocks(&self) -> u64 {
        self.engine.log().counts().plugged_blocks
    }

    /// How long who brought the last `blocks` is to wait, if somebody makes room; wakes that one if there is
    /// something to do.
    pub(crate) fn delay(&mut self, blocks: u32) -> Duration {
        if self.pacing.is_none() {
            return Duration::ZERO;
        }
        let (new_blocks, room) = (self.new_blocks(), self.room());
        let pacing = self.pacing.as_mut().expect("it has been looked at");
        pacing.written(new_blocks, blocks, room)
    }

    /// Whether whoever asks is to decide on the mechanism; if it is time to and somebody makes room, that
    /// one is woken for it.
    pub(crate) fn is_choice_due_here(&self) -> bool {
        let is_due = self.engine.is_choice_due();
        match &self.pacing {
            Some(pacing) if is_due => pacing.bell.ring(),
            _ => return is_due,
        }
        false
    }

    /// Whether no more room can be had until more has been written.
    pub(crate) fn is_resting(&self) -> bool {
        let new_blocks = self.new_blocks();
        self.pacing.as_ref().is_some_and(|pacing| new_blocks < pacing.rests_until)
    }

    /// Plans everything that waits, as a group.
    pub(crate) fn plan_changes(&mut self) -> Result<(), LogError> {
        let group = self.engine.group_of_changes(&mut self.spare)?;
        self.queue.extend(group.map(Arc::new));
        Ok(())
    }

    /// Plans to write `blocks`, whose data is `data`, one behind the other; how many. Nothing may wait.
    pub(crate) fn plan_together(&mut self, blocks: &[u32], data: AlignedBytes) -> u32 {
        let group = self.engine.group_of_blocks_together(blocks, data);
        let planned = group.as_ref().map_or(0, |group| group.moves.len() as u32);
        self.queue.extend(group.map(Arc::new));
        planned
    }

    /// Plans a collection, and says whether it makes room.
    pub(crate) fn plan_collection(&mut self, extent: Extent) -> Result<bool, LogError> {
        // The log itself is never short of room.
        self.engine.begin_choosing();
        let (groups, made) = self.engine.groups_of_collection(extent);
        self.queue.extend(groups.into_iter().map(Arc::new));
        made
    }

    /// The group that comes next.
    pub(crate) fn next_group(&self) -> Option<Arc<Group>> {
        self.queue.front().cloned()
    }

    /// Groups that are not carried out yet.
    pub(crate) fn groups_waiting(&self) -> usize {
        self.queue.len()
    }

    /// Leaves what is planned to who carries it out; false if nobody does, or it is much.
    pub(crate) fn leave_to_carrier(&self) -> bool {
        let carrier = self.carrier.as_ref().filter(|_| !self.is_much_waiting());
        carrier.inspect(|bell| bell.ring()).is_some()
    }

    /// Whether they are many.
    pub(crate) fn is_much_waiting(&self) -> bool {
        self.queue.len() > GROUPS_WAITING_MAX
    }

    /// The first group has been carried out.
    pub(crate) fn carried_out(&mut self) {
        self.queue.pop_front();
    }

    /// All groups up to `flushed` are on the medium, the records of those up to `covered` in the ring or the
    /// map, and `spare` are buffers of those that are done with.
    pub(crate) fn settled(&mut self, flushed: u64, covered: u64, spare: &mut Vec<AlignedBytes>) {
        self.engine.settled(flushed, covered);
        if self.spare.is_empty() {
            self.spare.extend(spare.pop());
        }
    }

    /// Where the newest data of `block` is; it is copied to `into` if it is not on the medium.
    pub(crate) fn newest(&self, block: u32, into: &mut [u8]) -> Newest {
        if let Some(data) = self.engine.waiting_data(block) {
            into.copy_from_slice(data);
            return Newest::Here;
        }
        let mut slot = self.engine.log().look_up(block);
        if slot == NONE {
            return Newest::Nowhere;
        }
        // What is planned lies elsewhere still.
        for group in self.queue.iter().rev() {
            let of_slot = |run: &&PlannedRun| (run.slot..run.slot + run.blocks).contains(&slot);
            let Some(run) = group.runs.iter().find(of_slot) else { continue };
            let source = group.moves_of(run)[(slot - run.slot) as usize].source;
            if run.origin.copies() {
                slot = source;
                continue;
            }
            let at = source as usize * into.len();
            into.copy_from_slice(&group.data[at..at + into.len()]);
            return Newest::Here;
        }
        Newest::InSlot(slot)
    }

    /// The slots of `blocks` as the medium has them: what is planned has not been done.
    pub(crate) fn slots_on_medium(&self, blocks: impl Iterator<Item = u32>, slots: &mut Vec<u32>) {
        // The last that is done comes first.
        let mut before: HashMap<u32, u32> = self.engine.freed().iter().copied().collect();
        let planned = self.queue.iter().rev().filter(|_| !is_seeded(SeededFault::PlannedInMap));
        for group in planned {
            before.extend(group.freed.iter().copied());
            before.extend(group.moves.iter().map(|moved| (moved.block, moved.old)));
        }
        slots.clear();
        slots.extend(blocks.map(|block| match before.get(&block) {
            Some(slot) => *slot,
            None => self.engine.slot_on_disk(block),
        }));
    }
}
