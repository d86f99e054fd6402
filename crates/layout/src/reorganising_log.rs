//! A log that learns from reads: the reorganisation policy joined to the reorganisation log.
//!
//! Behind the seam of all layouts. What users read is read first; then the policy hears of it, and
//! what it chooses is moved before the next request. A group for which no room can be made stays
//! where it is, and the user's request is none the worse.
//!
//! Invariants: those of the log; a block is kept in the reorganisation log only if it was moved
//! there and has been tied to others since.
//!
//! Differences from Matthews 1999, §6.4: see [`crate::reorganise`] and its modules. Reads ahead of
//! time teach nothing until a user asks for what they brought.

mod control;

use control::ControlLog;

use agewell_log::policy::placement::{Placement, Regrouping};
use agewell_log::{AdaptiveLog, BlockDevice, Call, Counts, Log, Purpose, TransferTimes};
use agewell_regrouping::{PlaceView, RoomMade, StepView, room_ns};

use crate::block_layout::{BlockCounts, BlockLayout, FileBlock, LayoutError, Place, read_in_runs};
use crate::log_layout::{counts_of, place_of, recover};
use crate::reorganise::{Decide, Related, ReorganisationCounts, ReorganiseSetting, Reorganiser};

/// The cost of room is measured over this share of the disk's blocks written, and the one before;
/// chosen by us.
const ROOM_WINDOW_SHARE: u64 = 16;

/// A log with a reorganisation log, and the policy that fills it.
#[derive(Debug, Clone)]
pub struct ReorganisingLog<P> {
    log: AdaptiveLog<Regrouping<P>>,
    control: ControlLog<P>,
    reorganiser: Reorganiser,
    room: RoomCost,
    /// Where the blocks lay that are being read.
    slots: Vec<(u32, u32)>,
    latest: Latest,
    /// What the device has spent in all, ns, if that was noted before the next read.
    spent_ns: Option<u64>,
}

/// What users read last and was read ahead with it. How long that took is asked when they read next:
/// a drive may hold it together with other commands until then.
#[derive(Debug, Clone, Default)]
struct Latest {
    /// What the device had spent before it, ns.
    spent_ns: u64,
    /// What the log had spent on all else before it, by the model, ns.
    writing_ns: u64,
    blocks: u32,
    /// Of those, how many did not lie right behind the one before.
    jumps: u32,
    /// Blocks between them and what was read before, if that is known and nothing was read ahead.
    step_blocks: Option<i64>,
    /// Blocks between those of one call that do not follow each other.
    within: Vec<i64>,
}

/// What a block written cost in making room for it, lately.
#[derive(Debug, Clone, Default)]
struct RoomCost {
    before: Counts,
    since: Counts,
    made: RoomMade,
}

/// Blocks that take room which must be made.
fn written(counts: &Counts) -> u64 {
    counts.new_blocks + counts.regrouped_blocks
}

impl RoomCost {
    fn note<P: Placement>(&mut self, log: &Log<P>) {
        let counts = log.counts();
        let lately = counts.since(&self.before);
        self.made = RoomMade {
            read_blocks: lately.read_blocks,
            cleaned_blocks: lately.cleaned_blocks,
            plugged_blocks: lately.plugged_blocks,
            victim_live_blocks: lately.victim_live_blocks,
            victim_blocks: lately.victim_blocks,
            written_blocks: written(&lately),
        };
        let window = log.shape().capacity_blocks() / ROOM_WINDOW_SHARE;
        if written(&counts.since(&self.since)) > window {
            (self.before, self.since) = (self.since, *counts);
        }
    }
}

/// A log as the policy sees it.
struct View<'a, P> {
    log: &'a Log<Regrouping<P>>,
    control: &'a ControlLog<P>,
    made: RoomMade,
}

impl<P: Placement + Clone> StepView for View<'_, P> {
    type Slot = u32;

    #[inline]
    fn slot_of(&self, block: u32) -> Option<u32> {
        self.log.slot_of(block)
    }

    #[inline]
    fn step_blocks(&self, slot: u32, next: u32) -> i64 {
        i64::from(next) - i64::from(slot) - 1
    }

    fn block_before(&self, slot: u32) -> Option<u32> {
        self.log.block_before(slot)
    }

    fn block_after(&self, slot: u32) -> Option<u32> {
        self.log.block_after(slot)
    }
}

impl<P: Placement + Clone> PlaceView for View<'_, P> {
    #[inline]
    fn follows(&self, slot: u32, next: u32) -> bool {
        slot + 1 == next
    }

    fn pieces_moved(&self, blocks: u32) -> u32 {
        self.log.pieces_regrouped(blocks)
    }

    fn is_outer(&self, slot: u32) -> bool {
        let segments = self.log.shape().segments();
        self.log.shape().segment_of(slot).abs_diff(segments / 2) > segments / 4
    }

    fn room_ns(&self, moved: f64) -> f64 {
        let segment_blocks = self.log.shape().segment_blocks_max();
        room_ns(&self.log.setting().disk, segment_blocks, &self.made, moved)
    }

    #[inline]
    fn home_of(&self, block: u32, slot: u32) -> u32 {
        self.control.slot_of(block).unwrap_or(slot)
    }

    fn moving_ns(&self) -> f64 {
        self.control.moving_ns()
    }
}

impl<P: Placement + Clone> ReorganisingLog<P> {
    /// `log`, reorganised as `setting` says.
    #[must_use]
    pub fn new(log: AdaptiveLog<Regrouping<P>>, setting: ReorganiseSetting) -> Self {
        let (blocks, disk) = (log.log().blocks(), log.log().setting().disk);
        let reorganiser = Reorganiser::new(setting, blocks, disk);
        let control = ControlLog::of(&log, setting.decide == Decide::Gain);
        Self {
            log,
            control,
            reorganiser,
            room: RoomCost::default(),
            slots: Vec::new(),
            latest: Latest::default(),
            spent_ns: None,
        }
    }

    /// The log itself.
    #[must_use]
    pub fn log(&self) -> &Log<Regrouping<P>> {
        self.log.log()
    }

    /// What the log has done so far.
    #[must_use]
    pub fn log_counts(&self) -> &Counts {
        self.log.log().counts()
    }

    /// What the reorganisation has done so far.
    #[must_use]
    pub fn reorganisation(&self) -> &ReorganisationCounts {
        self.reorganiser.counts()
    }

    /// Bytes that the reorganisation's knowledge takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.reorganiser.memory_bytes() + self.control.memory_bytes()
    }

    /// Moves what was chosen.
    fn move_chosen(&mut self, device: &mut impl BlockDevice) {
        let Self { log, control, reorganiser, .. } = self;
        let segments = log.log().shape().segments();
        let by_frequency = reorganiser.setting().related == Related::Frequency;
        let aim = by_frequency.then_some(segments / 2);
        let in_memory = |block: u32| reorganiser.is_in_memory(block);
        let before = log.log().counts().regrouped_blocks;
        let moved = control.watch(device, |device| {
            log.log_mut().regroup(reorganiser.chosen(), in_memory, aim, device)
        });
        let blocks = log.log().counts().regrouped_blocks - before;
        // A log without room goes on as it is: what was moved before it was full stays moved.
        for block in reorganiser.chosen() {
            log.log_mut().placement_mut().set_kept(*block, true);
        }
        reorganiser.settle(moved.is_ok(), blocks);
    }

    /// Notes what the device has done since users read last, now that it is done.
    fn note_times(&mut self) {
        let writing_ns = self.control.writing_ns();
        let mut latest = std::mem::take(&mut self.latest);
        if latest.writing_ns != writing_ns {
            // The arm has been elsewhere.
            self.reorganiser.interrupted();
        }
        if let Some(spent_ns) = self.spent_ns.take() {
            // The device may have begun to count again.
            let taken_ns = spent_ns.checked_sub(latest.spent_ns).unwrap_or(spent_ns);
            let Latest { jumps, blocks, step_blocks, .. } = latest;
            if latest.writing_ns == writing_ns {
                self.reorganiser.took((jumps, blocks), taken_ns, step_blocks, &latest.within);
            } else {
                let read_ns = self.reorganiser.expected_ns(jumps, blocks);
                self.control.took(taken_ns.saturating_sub(read_ns));
            }
            latest.spent_ns = spent_ns;
        }
        latest.within.clear();
        let Latest { spent_ns, within, .. } = latest;
        self.latest = Latest { spent_ns, writing_ns, within, ..Latest::default() };
    }

    /// Records what is being read, until it is known how long that takes. What is read ahead
    /// belongs to the read before it.
    fn note_read(&mut self, purpose: Purpose) {
        let view = View { log: self.log.log(), control: &self.control, made: RoomMade::default() };
        let Some((_, first)) = self.slots.first() else { return };
        let before = self.reorganiser.last_slot().filter(|_| purpose == Purpose::Read);
        let step = before.map(|before| view.step_blocks(before, *first));
        let steps = self.slots.windows(2).map(|pair| view.step_blocks(pair[0].1, pair[1].1));
        let latest = &mut self.latest;
        let known = latest.within.len();
        latest.within.extend(steps.filter(|step| *step != 0));
        latest.jumps += (latest.within.len() - known) as u32 + u32::from(step != Some(0));
        latest.step_blocks = step.filter(|_| latest.blocks == 0);
        self.latest.blocks += self.slots.len() as u32;
    }

    /// Learns from blocks that were read for users, and moves what that makes worth it.
    fn learn(&mut self, device: &mut impl BlockDevice) {
        self.room.note(self.log.log());
        let slots = std::mem::take(&mut self.slots);
        for (number, (block, slot)) in slots.iter().enumerate() {
            let view = View { log: self.log.log(), control: &self.control, made: self.room.made };
            if self.reorganiser.read(*block, *slot, number > 0, &view) {
                self.move_chosen(device);
            }
        }
        self.slots = slots;
        self.log.log_mut().issue_discards(device);
    }
}

impl<P: Placement + Clone> BlockLayout for ReorganisingLog<P> {
    fn ensure_blocks(&mut self, blocks: u32) {
        BlockLayout::ensure_blocks(&mut self.log, blocks);
        self.control.follow(Call::EnsureBlocks(blocks));
        self.reorganiser.ensure_blocks(blocks);
    }

    fn preload(&mut self, block: u32, name: FileBlock) -> Result<(), LayoutError> {
        BlockLayout::preload(&mut self.log, block, name)?;
        self.control.follow(Call::Preload(block));
        self.reorganiser.call(block, name);
        Ok(())
    }

    fn fragment(&mut self, first: u32, blocks: u32, chunk_blocks: u32) -> Result<(), LayoutError> {
        BlockLayout::fragment(&mut self.log, first, blocks, chunk_blocks)?;
        let blocks: Vec<u32> = (first..first + blocks).collect();
        self.control.follow(Call::Fragment { blocks: &blocks, chunk_blocks });
        Ok(())
    }

    fn create(
        &mut self,
        file: u32,
        directory: u32,
        _device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        self.reorganiser.create(file, directory);
        Ok(())
    }

    fn remove(&mut self, file: u32, _device: &mut impl BlockDevice) {
        self.reorganiser.remove(file);
    }

    fn write(
        &mut self,
        block: u32,
        name: FileBlock,
        client: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        self.reorganiser.call(block, name);
        let keeps = self.reorganiser.write(block);
        if !keeps {
            self.log.log_mut().placement_mut().set_kept(block, false);
        }
        let Self { log, control, .. } = self;
        control.follow(Call::Write { block, client });
        control.watch(device, |device| BlockLayout::write(log, block, name, client, device))
    }

    #[inline]
    fn is_decision_due(&self) -> bool {
        self.log.is_decision_due() || self.control.is_decision_due()
    }

    fn sends_before_deciding(&self) -> bool {
        BlockLayout::sends_before_deciding(&self.log)
    }

    fn decide(&mut self, times: Option<&TransferTimes>) {
        self.control.decide(times);
        self.log.decide(times);
    }

    fn begin_read(&mut self, spent_ns: impl FnOnce() -> u64) {
        self.spent_ns = Some(spent_ns());
    }

    fn read(&mut self, blocks: &[u32], purpose: Purpose, device: &mut impl BlockDevice) {
        if purpose == Purpose::Read {
            self.note_times();
        }
        read_in_runs(blocks, purpose, |block| self.place_of(block), device);
        let log = self.log.log();
        self.slots.clear();
        self.slots.extend(blocks.iter().filter_map(|block| Some((*block, log.slot_of(*block)?))));
        self.note_read(purpose);
        if purpose == Purpose::Read {
            self.learn(device);
        }
    }

    fn foreseen(&mut self, block: u32, device: &mut impl BlockDevice) {
        self.slots.clear();
        self.slots.extend(self.log.log().slot_of(block).map(|slot| (block, slot)));
        self.learn(device);
    }

    fn delete(&mut self, block: u32, device: &mut impl BlockDevice) {
        let Self { log, control, .. } = self;
        control.watch(device, |device| BlockLayout::delete(log, block, device));
        control.follow(Call::Delete(block));
        self.reorganiser.delete(block);
    }

    fn sync(&mut self, client: u32, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        let Self { log, control, .. } = self;
        control.follow(Call::Sync { client });
        control.watch(device, |device| BlockLayout::sync(log, client, device))
    }

    fn sync_all(&mut self, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        let Self { log, control, .. } = self;
        control.work(AdaptiveLog::sync_all);
        control.watch(device, |device| BlockLayout::sync_all(log, device))
    }

    fn place_of(&self, block: u32) -> Place {
        place_of(self.log.log(), block)
    }

    fn cluster_of(&self, block: u32, cluster: &mut Vec<u32>) {
        let view = View { log: self.log.log(), control: &self.control, made: self.room.made };
        self.reorganiser.cluster_of(block, &view, cluster);
    }

    fn set_resident(&mut self, block: u32, resident: bool) {
        BlockLayout::set_resident(&mut self.log, block, resident);
        self.control.follow(Call::SetResident { block, resident });
    }

    fn work_ahead(
        &mut self,
        free_wanted: u32,
        device: &mut impl BlockDevice,
    ) -> Result<bool, LayoutError> {
        let Self { log, control, .. } = self;
        control
            .work(|control, meter| control.log_mut().collect_ahead(free_wanted, meter).map(|_| ()));
        if control.watch(device, |device| log.work_ahead(free_wanted, device))? {
            return Ok(true);
        }
        self.room.note(self.log.log());
        let view = View { log: self.log.log(), control: &self.control, made: self.room.made };
        let chosen = self.reorganiser.rest(&view);
        if chosen {
            self.move_chosen(device);
            self.log.log_mut().issue_discards(device);
        }
        Ok(chosen)
    }

    fn enable_discard(&mut self) {
        self.log.log_mut().enable_discard();
    }

    fn recover(&self, device: &mut impl BlockDevice) {
        recover(self.log.log(), device);
    }

    fn counts(&self) -> BlockCounts {
        counts_of(self.log.log())
    }

    fn live_blocks(&self) -> u64 {
        self.log.log().live_blocks()
    }

    fn verify(&self) {
        self.log.verify();
        self.control.verify();
        self.reorganiser.verify();
    }
}
