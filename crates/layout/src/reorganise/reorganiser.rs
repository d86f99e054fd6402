//! Which group is moved, and when: the joint policy over graph, history, decision and trust.
//!
//! It receives every read from disk, write and deletion, and chooses groups; its caller moves them
//! and reports back. A read that follows its predecessor on the disk shows that the two lie well,
//! so that only other reads trigger a look at a group. A group that was rejected is looked at again
//! only when its weight has grown by what may change the answer, or fallen.
//!
//! Cost: a read costs the graph, the history and a comparison of places; a look at a group of n
//! blocks costs in the order of n log n, and comes at most every few reads of a group whose value
//! exceeds 2 and which lies scattered.

use std::collections::VecDeque;

use super::groups::{Group, Groups};
use super::history::History;
use super::setting::{Decide, Related, ReorganiseSetting, When};
use crate::block_layout::FileBlock;
use agewell_log::policy::cost::CostModel;
use agewell_regrouping::{
    PlaceView, Proposal, ReadTimes, Trust, VALUE_MIN, is_moved, patch_pays, savings_ns,
};

/// Groups that wait for an idle moment or for memory to be short; more are forgotten.
const WAITING_MAX: usize = 1 << 16;

/// Counters of a reorganisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReorganisationCounts {
    /// Looks at groups whose value exceeds 2.
    pub considered: u64,
    /// Of those, groups that lay well.
    pub clustered: u64,
    /// Groups that were not all in memory, or were deferred until an idle moment.
    pub put_off: u64,
    /// Groups whose gain would not have exceeded their cost.
    pub declined: u64,
    /// Groups with a block that had been moved as often as it may be, or beyond the budget.
    pub bounded: u64,
    /// Groups for which no room could be made.
    pub refused: u64,
    /// Groups moved.
    pub moved: u64,
    /// Their blocks.
    pub moved_blocks: u64,
    /// Blocks whose patch was not worth it.
    pub unpatched_blocks: u64,
}

/// The whole policy.
#[derive(Debug, Clone)]
pub struct Reorganiser {
    setting: ReorganiseSetting,
    disk: CostModel,
    groups: Groups,
    history: History,
    trust: Trust,
    times: ReadTimes,
    /// Where the block lay that was read last.
    previous: Option<u32>,
    /// Where it would have lain if nothing had been moved.
    previous_home: Option<u32>,
    /// Its group, and whether a read within that made the arm move.
    current: Option<Group>,
    current_jumped: bool,
    waiting: VecDeque<Group>,
    /// The group chosen and its blocks, in the order to lay them out.
    chosen: Option<Group>,
    order: Vec<u32>,
    /// Its blocks that lie in rows with blocks that would not be moved.
    torn: u64,
    /// Slots at work.
    slots: Vec<u32>,
    counts: ReorganisationCounts,
    disk_reads: u64,
    /// Time to read a block right behind another, and elsewhere, ns.
    stream_ns: u64,
    jump_ns: u64,
}

impl Reorganiser {
    /// A policy that knows nothing yet of blocks numbered below `blocks`.
    #[must_use]
    pub fn new(setting: ReorganiseSetting, blocks: u32, disk: CostModel) -> Self {
        Self {
            setting,
            disk,
            groups: Groups::new(setting.related, blocks, setting.partition_blocks),
            history: History::new(blocks, setting.memory_blocks),
            trust: Trust::new(),
            times: ReadTimes::new(disk),
            previous: None,
            previous_home: None,
            current: None,
            current_jumped: false,
            waiting: VecDeque::new(),
            chosen: None,
            order: Vec::new(),
            torn: 0,
            slots: Vec::new(),
            counts: ReorganisationCounts::default(),
            disk_reads: 0,
            stream_ns: disk.streaming_ns(disk.block_bytes),
            jump_ns: disk.blocks_ns(1),
        }
    }

    /// Its setting.
    #[must_use]
    pub fn setting(&self) -> &ReorganiseSetting {
        &self.setting
    }

    /// Its counters so far.
    #[must_use]
    pub fn counts(&self) -> &ReorganisationCounts {
        &self.counts
    }

    /// Lets blocks be numbered up to `blocks`.
    pub fn ensure_blocks(&mut self, blocks: u32) {
        self.groups.ensure_blocks(blocks);
        self.history.ensure_blocks(blocks);
    }

    /// A file comes into being.
    pub fn create(&mut self, file: u32, directory: u32) {
        self.groups.create(file, directory);
    }

    /// A file is gone.
    pub fn remove(&mut self, file: u32) {
        self.groups.remove(file);
    }

    /// `block` is called `name`.
    #[inline]
    pub fn call(&mut self, block: u32, name: FileBlock) {
        self.groups.call(block, name);
    }

    /// One call read `blocks` blocks, of which `jumps` did not lie right behind the one before, in
    /// `time_ns`. `step_blocks` lay between them and what was read before, if that is known, and
    /// `within` between those that did not follow each other.
    pub fn took(
        &mut self,
        (jumps, blocks): (u32, u32),
        time_ns: u64,
        step_blocks: Option<i64>,
        within: &[i64],
    ) {
        self.times.note(jumps, blocks, time_ns, step_blocks, within);
    }

    /// Expected time to read `blocks` blocks with `jumps` jumps, ns.
    #[must_use]
    pub fn expected_ns(&self, jumps: u32, blocks: u32) -> u64 {
        let disk = self.times.observed();
        u64::from(jumps) * disk.access_ns + disk.streaming_ns(u64::from(blocks) * disk.block_bytes)
    }

    /// The arm has been elsewhere since the last read.
    pub fn interrupted(&mut self) {
        self.previous = None;
        self.previous_home = None;
    }

    /// Where the block lay that was read last.
    #[must_use]
    pub fn last_slot(&self) -> Option<u32> {
        self.previous
    }

    /// `block` was read from `slot`, `within` a call or as its first; whether a group is to be moved
    /// now, which [`Self::chosen`] names.
    #[inline]
    pub fn read(&mut self, block: u32, slot: u32, within: bool, view: &impl PlaceView) -> bool {
        self.disk_reads += 1;
        let previous = self.previous.replace(slot);
        let jumped = previous.is_none_or(|previous| !view.follows(previous, slot));
        let trial = if jumped { 0 } else { self.history.trial(block) };
        // An access is saved where the arm would have jumped had nothing been moved, and lost where
        // it would not.
        let home = view.home_of(block, slot);
        let earlier = self.previous_home.replace(home);
        if let (Some(earlier), Some(previous)) = (earlier, previous) {
            let step_ns = |one, next| self.times.step_ns(view.step_blocks(one, next), within);
            self.trust.credit(step_ns(earlier, home) - step_ns(previous, slot));
        }
        self.trust.read(trial, if jumped { self.jump_ns } else { self.stream_ns });
        let was_read = self.history.reads(block) > 0;
        let evicted = self.history.read(block);
        let on_record = self.groups.read(block);
        if let Some(times) = on_record {
            self.trust.made(times);
        }
        if jumped {
            self.trust.step(on_record.map_or(was_read, |times| times > 1));
        }
        match (self.setting.when, self.setting.decide) {
            (When::Eviction, _) => evicted.is_some_and(|evicted| self.is_worth_of(evicted, view)),
            (When::AtOnce, Decide::Gain) => self.leave(block, jumped, view),
            _ => jumped && self.is_worth_of(block, view),
        }
    }

    /// Whether the group that the read of `block` leaves, if it does, is to be moved. By then all that
    /// this pass reads of it is in memory, and costs nothing to read.
    #[inline]
    fn leave(&mut self, block: u32, jumped: bool, view: &impl PlaceView) -> bool {
        let group = self.groups.of(block);
        if group == self.current {
            self.current_jumped |= jumped;
            return false;
        }
        let had_jumped = std::mem::replace(&mut self.current_jumped, false);
        let left = std::mem::replace(&mut self.current, group);
        had_jumped && left.is_some_and(|left| self.is_worth(left, view))
    }

    /// `block` was written; returns whether it stays in its place among others if it has one.
    #[inline]
    pub fn write(&mut self, block: u32) -> bool {
        let reads = self.history.reads(block);
        let is_tied = self.groups.write(block);
        let pays = self.setting.decide == Decide::Value || patch_pays(reads, &self.disk);
        let keeps = is_tied && pays;
        self.counts.unpatched_blocks += u64::from(is_tied && !pays);
        self.history.write(block, keeps);
        keeps
    }

    /// `block` was deleted.
    pub fn delete(&mut self, block: u32) {
        self.groups.delete(block);
        self.history.delete(block);
    }

    /// The disk is idle: whether a group is to be moved, which [`Self::chosen`] names.
    pub fn rest(&mut self, view: &impl PlaceView) -> bool {
        while let Some(group) = self.waiting.pop_front() {
            // It may have changed, or be another by now.
            if self.groups.weight(group) > VALUE_MIN * self.groups.len(group)
                && self.consider(group, view, false)
            {
                return true;
            }
        }
        false
    }

    /// The blocks to be moved, in the order to lay them out.
    #[must_use]
    pub fn chosen(&self) -> &[u32] {
        &self.order
    }

    /// Whether `block` is in memory.
    #[must_use]
    #[inline]
    pub fn is_in_memory(&self, block: u32) -> bool {
        self.history.is_in_memory(block)
    }

    /// The chosen group has been moved; `complete` unless there was no room for all, and `blocks`
    /// before it ran out.
    pub fn settle(&mut self, complete: bool, blocks: u64) {
        let Some(group) = self.chosen.take() else { return };
        self.look_again_after(group, 2 * self.groups.len(group));
        self.counts.moved_blocks += blocks;
        self.counts.refused += u64::from(!complete);
        self.counts.moved += u64::from(complete);
        let trial = self.trust.current();
        let mut expected = 0;
        for block in &self.order {
            expected += u64::from(self.history.reads(*block));
            self.history.moved(*block, trial);
        }
        // All but the first of a group are read right behind another.
        let members = self.order.len().max(1) as f64;
        if complete {
            self.trust.moved(self.torn, expected as f64 * (members - 1.0) / members);
        }
    }

    /// Whether the group of `block` is to be moved now.
    #[inline]
    fn is_worth_of(&mut self, block: u32, view: &impl PlaceView) -> bool {
        self.groups.of(block).is_some_and(|group| self.is_worth(group, view))
    }

    /// Whether `group` is to be moved now.
    fn is_worth(&mut self, group: Group, view: &impl PlaceView) -> bool {
        let weight = self.groups.weight(group);
        if weight <= VALUE_MIN {
            return false;
        }
        let (base, step) = unpack(self.groups.mark(group));
        if weight >= base && weight < base + step {
            return false;
        }
        let len = self.groups.len(group);
        if weight <= VALUE_MIN * len {
            return false;
        }
        match self.setting.when {
            When::AtOnce | When::Eviction => self.consider(group, view, false),
            When::Load => self.consider(group, view, true),
            When::Idle => {
                self.counts.put_off += 1;
                self.look_again_after(group, 2 * len);
                if self.waiting.len() < WAITING_MAX {
                    self.waiting.push_back(group);
                }
                false
            }
        }
    }

    /// The group is not looked at again before its weight has grown by `step`, or fallen.
    fn look_again_after(&mut self, group: Group, step: u64) {
        let weight = self.groups.weight(group);
        self.groups.set_mark(group, pack(weight, step.max(1)));
    }

    /// Whether `group` is to be moved; if it must be `in_memory`, only when it is.
    fn consider(&mut self, group: Group, view: &impl PlaceView, in_memory: bool) -> bool {
        self.counts.considered += 1;
        let mut order = std::mem::take(&mut self.order);
        self.groups.lay_out(group, &mut order);
        order.retain(|block| view.slot_of(*block).is_some());
        let proposal = self.propose(&order, view);
        self.order = order;
        let outer = self.setting.related == Related::Frequency
            && self
                .order
                .first()
                .and_then(|block| view.slot_of(*block))
                .is_some_and(|slot| view.is_outer(slot));
        // Priced by time, no limit is needed for how near is near enough.
        let lies_well = match self.setting.decide {
            Decide::Value => proposal.is_clustered(),
            Decide::Gain => proposal.saved_ns <= 0.0,
        };
        let pass = 2 * self.groups.len(group);
        let (count, step) = if lies_well && !outer {
            (&mut self.counts.clustered, pass)
        } else if in_memory && proposal.uncached_blocks > 0 {
            // Each block that comes into memory adds to the weight.
            (&mut self.counts.put_off, u64::from(proposal.uncached_blocks))
        } else if self.is_bounded() {
            (&mut self.counts.bounded, pass)
        } else if self.setting.decide == Decide::Gain && !self.pays(group, &proposal, view) {
            (&mut self.counts.declined, pass / 8)
        } else {
            self.chosen = Some(group);
            self.torn = self.torn_blocks(view);
            return true;
        };
        *count += 1;
        self.look_again_after(group, step);
        false
    }

    /// Whether a move pays at the present confidence, or may be made as exploration.
    fn pays(&mut self, group: Group, proposal: &Proposal, view: &impl PlaceView) -> bool {
        let disk = self.times.observed();
        let share = if self.groups.records_blocks() {
            // Each step counts at both of its ends.
            let ends = self.groups.weight(group) as f64 / self.groups.len(group).max(1) as f64;
            self.trust.share_after((ends / 2.0).round())
        } else {
            self.trust.share()
        };
        is_moved(proposal, &disk, share, view.moving_ns(), &mut self.trust)
    }

    /// Blocks to be moved that lie beside others that came into being right before or behind them
    /// and will not be moved. If they are read in that order as well, that will take longer.
    fn torn_blocks(&self, view: &impl PlaceView) -> u64 {
        let mut moving = self.order.clone();
        moving.sort_unstable();
        let stays = |block: u32| moving.binary_search(&block).is_err();
        let is_torn = |block: &&u32| {
            let slot = view.slot_of(**block);
            let before = slot.and_then(|slot| view.block_before(slot));
            let after = slot.and_then(|slot| view.block_after(slot));
            before.is_some_and(|before| before + 1 == **block && stays(before))
                || after.is_some_and(|after| **block + 1 == after && stays(after))
        };
        self.order.iter().filter(is_torn).count() as u64
    }

    /// Time that the reads on record would have saved if `order` had lain in one piece, ns.
    fn saved_ns(&self, order: &[u32], view: &impl PlaceView) -> f64 {
        if self.groups.records_blocks() {
            return savings_ns(&self.groups, order, &self.times, view);
        }
        // Where no steps are on record, blocks are taken to be read in their order, each time.
        let slots = order.iter().map(|block| view.slot_of(*block));
        let steps = slots.clone().zip(slots.skip(1));
        let step = |(one, next): (Option<u32>, Option<u32>)| {
            one.zip(next)
                .map_or(0.0, |(one, next)| self.times.mean_step_ns(view.step_blocks(one, next)))
        };
        let pass_ns: f64 = steps.map(step).sum();
        let reads: u64 = order.iter().map(|block| u64::from(self.history.reads(*block))).sum();
        pass_ns * reads as f64 / order.len().max(1) as f64
    }

    /// Whether a bound of the setting forbids moving the chosen blocks.
    fn is_bounded(&self) -> bool {
        let moves = self.order.iter().map(|block| self.history.moves(*block));
        let moved = self.counts.moved_blocks + self.order.len() as u64;
        let bound = self.setting.moves_max;
        (bound < u8::MAX && moves.max().is_some_and(|most| most >= bound))
            || moved as f64 > self.setting.budget * self.disk_reads as f64
    }

    fn propose(&mut self, order: &[u32], view: &impl PlaceView) -> Proposal {
        let by_gain = self.setting.decide == Decide::Gain;
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        let (mut pieces, mut previous) = (0, None);
        for block in order {
            let slot = view.slot_of(*block);
            let joined = previous.zip(slot).is_some_and(|(one, next)| view.follows(one, next));
            pieces += u32::from(!joined);
            previous = slot;
            if !self.history.is_in_memory(*block) {
                slots.extend(slot);
            }
        }
        slots.sort_unstable();
        let breaks = slots.windows(2).filter(|pair| !view.follows(pair[0], pair[1])).count();
        let proposal = Proposal {
            blocks: order.len() as u32,
            pieces,
            pieces_moved: view.pieces_moved(order.len() as u32),
            uncached_blocks: slots.len() as u32,
            uncached_pieces: if slots.is_empty() { 0 } else { breaks as u32 + 1 },
            saved_ns: if by_gain { self.saved_ns(order, view) } else { 0.0 },
            room_ns: view.room_ns(self.trust.moved_share()),
        };
        self.slots = slots;
        proposal
    }

    /// Blocks on the disk side by side with `block` that were moved together with it, and `block`
    /// among them, in the order of the disk; none if it was not moved since it was written.
    pub fn cluster_of(&self, block: u32, view: &impl PlaceView, cluster: &mut Vec<u32>) {
        cluster.clear();
        let Some(place) = view.slot_of(block).filter(|_| self.history.trial(block) > 0) else {
            return;
        };
        let Some(group) = self.groups.of(block) else { return };
        let mut order = Vec::new();
        self.groups.lay_out(group, &mut order);
        let mut slots: Vec<(u32, u32)> =
            order.iter().filter_map(|block| Some((view.slot_of(*block)?, *block))).collect();
        slots.sort_unstable();
        let runs = slots.chunk_by(|one, next| view.follows(one.0, next.0));
        let mut around = runs.filter(|run| run.iter().any(|member| member.0 == place));
        cluster.extend(around.next().unwrap_or_default().iter().map(|member| member.1));
    }

    /// Bytes it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.groups.memory_bytes() + self.history.memory_bytes()
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// If one does not hold, which is a bug.
    pub fn verify(&self) {
        self.groups.verify();
    }
}

/// Bits of a mark that hold the step; the rest hold the weight.
const STEP_BITS: u32 = 24;

fn pack(base: u64, step: u64) -> u64 {
    let most = (1 << STEP_BITS) - 1;
    (base.min(u64::MAX >> STEP_BITS) << STEP_BITS) | step.min(most)
}

fn unpack(mark: u64) -> (u64, u64) {
    (mark >> STEP_BITS, mark & ((1 << STEP_BITS) - 1))
}

#[cfg(test)]
mod tests;
