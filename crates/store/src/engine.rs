//! The engine of the simulator, asked what a store is to do.
//!
//! The log decides where every block goes and what is collected, as in a simulation. What it would
//! transfer is written down as a [`Group`] and carried out by someone else ([`crate::medium`]), so the
//! engine is ahead of the medium, never waits for it, and cannot fail because of it.
//!
//! A slot that has died may still be what a crash brings back. Such slots are *held*: no hole is filled
//! there, and a group that writes over one says up to which group the medium must be ahead first. What
//! data lay in is held until the group in which it died is flushed; an inline record, until a checkpoint
//! that lasts has it.
//! Nothing is ever written over what died in the same group: before blocks are taken in, there is room
//! for them elsewhere, and a collection that writes where it has just read becomes another group.

mod recorder;

use std::collections::HashMap;
use std::sync::Arc;

use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::Placement as _;
use agewell_log::{
    AdaptiveLog, BlockDevice, Call, CostMeter, Kept, Log, LogError, LogSetting, LogShape, Outlook,
    ThoughtOver, Transfer, TransferTimes,
};

use crate::StoreError;
use crate::aligned::AlignedBytes;
use crate::format::{ANNOUNCED_FREE_MAX, ANNOUNCED_THREADED_MAX, Geometry, NONE};
use crate::group::{Group, Origin};
use crate::options::{Means, OpenOptions};
use crate::rotational_delay::SyncGap;
use crate::seeded::{SeededFault, is_seeded};
use crate::separation::Separation;
use recorder::Recorder;

/// Segments that are kept free to collect into.
const RESERVE_SEGMENTS: u32 = 2;

/// Of these the log keeps as its reserve. The other is what whole syncs keep beside it.
const LOG_RESERVE_SEGMENTS: u32 = RESERVE_SEGMENTS - 1;

/// Blocks that are plugged at once behind writers' backs; chosen by us: who waits for them waits no longer
/// than for a transaction of as many.
const PART_BLOCKS: u32 = 64;

/// What is collected at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What frees a segment, by the mechanism that is chosen.
    Segment,
    /// The same by cleaning, whatever is chosen.
    Cleaned,
    /// One victim, by the mechanism that is chosen.
    Victim,
    /// The same, a part at a time if it is plugged: the least that there is to wait for.
    Part,
}

/// The engine.
#[derive(Debug)]
pub(crate) struct Engine {
    log: AdaptiveLog<Separation>,
    recorder: Recorder,
    /// Data of the blocks that wait, entry by entry.
    data: AlignedBytes,
    block_bytes: usize,
    /// Free segments that are left to collections.
    kept_segments: u32,
    options: OpenOptions,
    is_in_zones: bool,
}

/// What writes down what is discarded.
#[derive(Debug, Default)]
struct Discards(Vec<(u32, u32)>);

impl BlockDevice for Discards {
    fn transfer(&mut self, _transfer: &Transfer, _contents: &[u32]) {
        unreachable!("a discard transfers nothing");
    }

    fn discard(&mut self, slot: u32, blocks: u32) {
        match self.0.last_mut() {
            Some((first, before)) if *first + *before == slot => *before += blocks,
            _ => self.0.push((slot, blocks)),
        }
    }
}

impl Engine {
    /// The engine of a store of which `kept` was kept, and the mechanism that it had; the next
    /// group has number `next_sequence`.
    pub(crate) fn restore(
        geometry: &Geometry,
        (kept, mechanism): (Kept<'_>, Option<Mechanism>),
        next_sequence: u64,
        options: &OpenOptions,
        is_in_zones: bool,
    ) -> Result<Self, StoreError> {
        let log = Self::log_of(geometry, kept, options, is_in_zones)?;
        let block_bytes = geometry.block_bytes as usize;
        let buffer_bytes = geometry.buffer_blocks() as usize * block_bytes;
        let disk = CostModel { block_bytes: u64::from(geometry.block_bytes), ..options.prices };
        let mut engine = Self {
            log,
            recorder: Recorder::new(geometry, next_sequence, disk, is_in_zones),
            data: AlignedBytes::zeroed(buffer_bytes),
            block_bytes,
            kept_segments: geometry.reserve_segments + RESERVE_SEGMENTS,
            options: options.clone(),
            is_in_zones,
        };
        // What costs nothing beforehand comes first.
        let first = if geometry.scatters { Mechanism::Thread } else { Mechanism::Clean };
        engine.log.try_mechanism(mechanism.or(options.begins_by).unwrap_or(first));
        Ok(engine)
    }

    /// The log of a store with `geometry` of which `kept` was kept.
    fn log_of(
        geometry: &Geometry,
        kept: Kept<'_>,
        options: &OpenOptions,
        is_in_zones: bool,
    ) -> Result<AdaptiveLog<Separation>, StoreError> {
        let shape = LogShape::uniform(geometry.segments, geometry.segment_blocks)?;
        let disk = CostModel { block_bytes: u64::from(geometry.block_bytes), ..options.prices };
        let (mechanisms, collect): (&[Mechanism], _) = match options.means {
            Means::Fixed(collect) => (&[], collect),
            Means::Adaptive if is_in_zones => (&[], Collect::Always(Mechanism::Clean)),
            Means::Adaptive => (&Mechanism::ALL, Collect::Always(Mechanism::Clean)),
        };
        if is_in_zones && collect != Collect::Always(Mechanism::Clean) {
            let what = "the device is written in order, zone by zone, and its holes cannot be filled: \
                        open the store with cleaning";
            return Err(StoreError::Options(what.into()));
        }
        let setting = LogSetting {
            buffer_blocks: geometry.buffer_blocks(),
            reserve_segments: LOG_RESERVE_SEGMENTS,
            record_slots: 1,
            whole_syncs: true,
            lost_turn_ns: options.lost_turn_ns,
            threads_ahead: if geometry.scatters { ANNOUNCED_THREADED_MAX as u32 } else { 0 },
            collect,
            victim: Separation::victim(options, geometry),
            ..LogSetting::plain(shape, geometry.blocks, disk)
        };
        let placement = |blocks| Separation::new(options, geometry, blocks);
        let mut log = AdaptiveLog::restore(mechanisms, setting, placement, kept)?;
        log.log_mut().enable_discard();
        log.leave_decisions();
        Ok(log)
    }

    /// Goes on in a store divided as `geometry` says, which has more segments and numbers behind those that
    /// there were, with the same mechanism. Nothing may wait.
    pub(crate) fn grow(&mut self, geometry: &Geometry) {
        assert!(self.waiting() == 0 && !self.has_freed(), "what waits has its group first");
        let (log, mechanism) = (self.log.log(), self.mechanism());
        let (open, counts) = (log.open_segments().collect::<Vec<_>>(), *log.counts());
        let segments = 0..log.shape().segments();
        let times: Vec<_> = segments.map(|segment| log.segment_times(segment)).collect();
        let map = (0..log.blocks()).map(|block| log.look_up(block)).collect();
        let kept = Kept { map, open: &open, times: &times, clock: log.clock() };
        let grown = Self::log_of(geometry, kept, &self.options, self.is_in_zones);
        self.log = grown.expect("a log is in order, and has no less room");
        self.log.log_mut().count_on_from(counts);
        if let Some(mechanism) = mechanism {
            self.log.try_mechanism(mechanism);
        }
        self.recorder.grow(geometry);
        self.kept_segments = geometry.reserve_segments + RESERVE_SEGMENTS;
    }

    /// The log.
    pub(crate) fn log(&self) -> &Log<Separation> {
        self.log.log()
    }

    /// What the log has had transferred, at the prices it was opened with.
    pub(crate) fn meter(&self) -> &CostMeter {
        self.recorder.meter.as_ref().expect("a restored engine has one")
    }

    /// Checks what the log promises.
    pub(crate) fn verify(&self) {
        self.log.verify();
    }

    /// Blocks that wait to be written.
    pub(crate) fn waiting(&self) -> u32 {
        self.log.log().buffered(0)
    }

    /// Whether blocks were freed that are in no group yet.
    pub(crate) fn has_freed(&self) -> bool {
        !self.recorder.group.freed.is_empty()
    }

    /// Blocks that were freed and are in no group yet, and their slots.
    pub(crate) fn freed(&self) -> &[(u32, u32)] {
        &self.recorder.group.freed
    }

    /// Whether `blocks` more may be taken in, so that all that waits goes elsewhere than where its last
    /// versions are.
    pub(crate) fn can_take(&self, blocks: u32) -> bool {
        self.log.log().can_take(blocks, self.recorder.unfillable_most())
    }

    /// Whether `blocks` blocks can be put together, and then as much again be written, before room must be
    /// made.
    pub(crate) fn has_room_together(&self, blocks: u32) -> bool {
        let (_, free, opened) = self.log.log().appended_by(2 * u64::from(blocks));
        free > u64::from(RESERVE_SEGMENTS) + opened
    }

    fn segment_blocks(&self) -> u32 {
        self.log.log().shape().segment_blocks_max()
    }

    fn threads(&self) -> bool {
        self.log.log().collect_rule() == Collect::Always(Mechanism::Thread)
    }

    /// Whether there are as many holes that may be filled.
    fn has_holes(&self, blocks: u64) -> bool {
        self.log.log().holes() >= blocks + self.recorder.unfillable_most()
    }

    /// Whether its mechanism could fill more holes if none were held.
    pub(crate) fn waits_for_holes(&self) -> bool {
        let is_cleaned = self.log.log().collect_rule() == Collect::Always(Mechanism::Clean);
        // As many as a victim may have blocks.
        !is_cleaned && !self.is_covered() && !self.has_holes(u64::from(self.segment_blocks()))
    }

    /// Free segments that come first, and those whose holes will be filled.
    pub(crate) fn announced(&self) -> Vec<u32> {
        let free = self.log.log().free_segments().take(ANNOUNCED_FREE_MAX);
        free.chain(self.log.log().threads_ahead().filter(|_| self.threads())).collect()
    }

    /// Whether no slot is held.
    pub(crate) fn is_covered(&self) -> bool {
        self.recorder.unfillable_most() == 0
    }

    /// Goes on by threading until it is decided for the next time, because that loses no turns on this device.
    /// Nothing may wait.
    pub(crate) fn try_threads(&mut self) {
        assert!(self.waiting() == 0, "what waits goes where there was room for it");
        self.log.try_mechanism(Mechanism::Thread);
    }

    /// The mechanism at the moment; none if it is a rule that chooses.
    pub(crate) fn mechanism(&self) -> Option<Mechanism> {
        match self.collect_rule() {
            Collect::Always(mechanism) => Some(mechanism),
            Collect::Matthews1999(_) => None,
        }
    }

    /// Room is short, which the log itself never sees: the mechanism matters from here on.
    pub(crate) fn begin_choosing(&mut self) {
        self.log.begin_choosing();
    }

    /// Whether it is time to decide on the mechanism.
    pub(crate) fn is_choice_due(&self) -> bool {
        self.log.is_choice_due()
    }

    /// What the decision is made by, and what transfers have taken, to be thought over while it goes on;
    /// none if it is not time to decide.
    pub(crate) fn outlook(&mut self, times: Option<&TransferTimes>) -> Option<Outlook<Separation>> {
        self.log.outlook(times)
    }

    /// Goes on with what came of it. Nothing may wait: there is room for it by the mechanism that there
    /// was when it was taken in.
    pub(crate) fn adopt(&mut self, outlook: ThoughtOver) {
        assert!(self.waiting() == 0, "what waits goes where there was room for it");
        self.log.adopt(outlook);
    }

    /// The mechanism at the moment.
    pub(crate) fn collect_rule(&self) -> Collect {
        self.log.log().collect_rule()
    }

    /// Takes in `data` as the newest version of `block`; there must be room.
    pub(crate) fn write(&mut self, block: u32, data: &[u8]) -> Result<(), LogError> {
        self.log.carry_out(Call::Write { block, client: 0 }, &mut self.recorder)?;
        let (entry, _) =
            self.log.log().entry_of(block).expect("it waits: the buffer had room for two");
        let at = entry as usize * self.block_bytes;
        self.data[at..at + self.block_bytes].copy_from_slice(data);
        Ok(())
    }

    /// `block` is no more.
    pub(crate) fn free(&mut self, block: u32) {
        let deleted = self.log.carry_out(Call::Delete(block), &mut self.recorder);
        deleted.expect("a deletion needs no room");
    }

    /// The data of `block`, if it waits.
    pub(crate) fn waiting_data(&self, block: u32) -> Option<&[u8]> {
        let (entry, _) = self.log.log().entry_of(block)?;
        let at = entry as usize * self.block_bytes;
        Some(&self.data[at..at + self.block_bytes])
    }

    /// Where the last version of `block` is that left the buffer.
    pub(crate) fn slot_on_disk(&self, block: u32) -> u32 {
        match self.log.log().entry_of(block) {
            Some((_, waiting)) => waiting.old,
            None => self.log.log().look_up(block),
        }
    }

    /// Leaves `blocks` slots before what waits, and says whether it may: where that takes no room that somebody
    /// will miss. Holes may be filled later, and free segments there must be more of than collections keep.
    /// Who looks ahead leaves what is `usual`.
    pub(crate) fn leave_gap(&mut self, blocks: u32, usual: SyncGap) -> bool {
        self.log.log_mut().space_threads(usual.spacing_blocks, usual.gap_blocks);
        let waiting = u64::from(self.waiting());
        let (_, free, opened) = self.log.log().appended_by(waiting + u64::from(blocks));
        let is_roomy = free >= u64::from(self.kept_segments) + opened;
        let may = is_roomy || self.threads() && self.has_holes(waiting);
        blocks == 0 || may && self.log.log_mut().leave_gap(blocks)
    }

    /// Everything that waits, as a group.
    pub(crate) fn group_of_changes(
        &mut self,
        spare: &mut Vec<AlignedBytes>,
    ) -> Result<Option<Group>, LogError> {
        self.log.carry_out(Call::Sync { client: 0 }, &mut self.recorder)?;
        if self.recorder.group.is_empty() {
            return Ok(None);
        }
        let length = self.data.len();
        let data = std::mem::replace(&mut self.data, spare.pop().unwrap_or_default());
        self.recorder.group.data = Arc::new(data);
        self.data.set_length(length);
        let group = &mut self.recorder.group;
        if !group.freed.is_empty() {
            // What was freed and written again is only written, and lay where it was freed.
            let slots: HashMap<u32, u32> = group.freed.iter().copied().collect();
            let forgets = is_seeded(SeededFault::FreedAndWrittenForgotten);
            for moved in group.moves.iter_mut().filter(|moved| moved.old == NONE && !forgets) {
                moved.old = slots.get(&moved.block).copied().unwrap_or(NONE);
            }
            let mut written: Vec<u32> = group.moves.iter().map(|moved| moved.block).collect();
            written.sort_unstable();
            group.freed.retain(|freed| written.binary_search(&freed.0).is_err());
            group.freed.sort_unstable();
            group.freed.dedup_by_key(|freed| freed.0);
            if is_seeded(SeededFault::FreedNotRecorded) {
                group.freed.clear();
            }
        }
        Ok(self.take_groups().pop())
    }

    /// A group that writes `blocks`, which are on the medium, one behind the other; `data` is what is in
    /// them. Nothing may wait, and there must be room.
    pub(crate) fn group_of_blocks_together(
        &mut self,
        blocks: &[u32],
        data: AlignedBytes,
    ) -> Option<Group> {
        assert!(self.waiting() == 0 && !self.has_freed(), "what waits has its group first");
        self.log.log_mut().append_together(blocks, &mut self.recorder);
        self.recorder.group.data = Arc::new(data);
        let mut groups = self.take_groups();
        assert!(groups.len() <= 1, "they are not collected");
        groups.pop()
    }

    /// A collection, as groups, and whether it made room. Must not be asked for while freed blocks wait
    /// for theirs.
    pub(crate) fn groups_of_collection(
        &mut self,
        extent: Extent,
    ) -> (Vec<Group>, Result<bool, LogError>) {
        assert!(self.recorder.group.is_empty(), "a collection is a group of its own");
        let before = self.new_data_segment();
        let (log, recorder) = (self.log.log_mut(), &mut self.recorder);
        let made = match extent {
            Extent::Segment => log.make_more_room(0, recorder),
            Extent::Cleaned => log.make_room_by_cleaning(recorder),
            Extent::Victim => log.make_more_room(1, recorder),
            Extent::Part => log.make_room_in_parts(PART_BLOCKS, recorder),
        };
        let mut groups = self.take_groups();
        if self.log.log().placement().logs() > 1 {
            let of_new_data = [before, self.new_data_segment()];
            let segment_blocks = self.segment_blocks();
            for run in groups.iter_mut().flat_map(|group| &mut group.runs) {
                let is_behind_new = of_new_data.contains(&Some(run.slot / segment_blocks));
                if run.origin == Origin::Collected && !is_behind_new {
                    run.origin = Origin::Separated;
                }
            }
        }
        (groups, made)
    }

    /// The open segment of new data.
    fn new_data_segment(&self) -> Option<u32> {
        let open = self.log.log().open_segments().find(|open| open.log == 0);
        open.map(|open| open.segment)
    }

    /// Slots whose data is dead, in segments that came free: first and number of those side by side.
    /// Every group must be covered.
    pub(crate) fn discards(&mut self) -> Vec<(u32, u32)> {
        assert!(self.is_covered(), "what a crash may bring back is not discarded");
        let mut discards = Discards::default();
        self.log.log_mut().issue_discards(&mut discards);
        discards.0
    }

    /// Slots of free segments, whatever was in them: first and number of those side by side. Every group must
    /// be covered.
    pub(crate) fn free_runs(&self) -> Vec<(u32, u32)> {
        assert!(self.is_covered(), "what a crash may bring back is not discarded");
        let log = self.log.log();
        let mut segments: Vec<u32> = log.free_segments().collect();
        segments.sort_unstable();
        let mut runs = Discards::default();
        for slots in segments.into_iter().map(|segment| log.slots_of(segment)) {
            runs.discard(slots.start, slots.end - slots.start);
        }
        runs.0
    }

    fn take_groups(&mut self) -> Vec<Group> {
        self.recorder.close();
        self.recorder.group.reads.clear();
        let mut groups = std::mem::take(&mut self.recorder.finished);
        if let Some(last) = groups.last_mut() {
            last.announced = self.announced();
        }
        groups
    }

    /// All groups up to `flushed` are on the medium, and the records of those up to `covered` are in the ring,
    /// or the map: what died in them may be written over.
    pub(crate) fn settled(&mut self, flushed: u64, covered: u64) {
        self.recorder.settled(flushed, covered);
    }
}
