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

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{
    AdaptiveLog, BlockDevice, Call, CostMeter, Kept, Log, LogError, LogSetting, LogShape, Outlook,
    Purpose, Sources, ThoughtOver, Transfer, TransferTimes,
};

use crate::StoreError;
use crate::aligned::AlignedBytes;
use crate::format::{ANNOUNCED_FREE_MAX, ANNOUNCED_THREADED_MAX, Geometry, NONE};
use crate::group::{Group, Move, Needs, Origin, PlannedRun};
use crate::options::{Means, OpenOptions};
use crate::rotational_delay::SyncGap;
use crate::seeded::{SeededFault, is_seeded};

/// Segments that are kept free to collect into.
const RESERVE_SEGMENTS: u32 = 2;

/// Of these the log keeps for itself. The other may be begun by what does not quite fit into the open
/// segment, and is made up for afterwards.
const LOG_RESERVE_SEGMENTS: u32 = 1;

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
    log: AdaptiveLog<NoSeparation>,
    recorder: Recorder,
    /// Data of the blocks that wait, entry by entry.
    data: AlignedBytes,
    block_bytes: usize,
    /// Free segments that are left to collections.
    kept_segments: u32,
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

/// What writes down what the log does.
#[derive(Debug, Default)]
struct Recorder {
    group: Group,
    /// Groups before it that nobody has taken.
    finished: Vec<Group>,
    next_sequence: u64,
    /// Slots whose data died in the group, and those of its inline records.
    dying: Dead,
    /// Slots that died in groups before, and are held.
    deaths: Deaths,
    record_deaths: Deaths,
    /// A bit for each slot that is held.
    held: Vec<u64>,
    /// Moves of a group of copies at most, so that one record has them all.
    copies_max: usize,
    /// What the log would transfer, at the prices it was opened with.
    meter: Option<CostMeter>,
    /// Blocks of a segment, if all that is in one is lost when its first slot is written.
    emptied_blocks: Option<u32>,
}

/// Slots that died in one group.
#[derive(Debug, Default)]
struct Dead {
    data: Vec<u32>,
    records: Vec<u32>,
}

/// Slots that died, by the groups in which they did, the oldest first.
#[derive(Debug, Default)]
struct Deaths {
    by_group: VecDeque<(u64, Vec<u32>)>,
    slots: u64,
}

impl Deaths {
    fn push(&mut self, sequence: u64, slots: Vec<u32>) {
        if !slots.is_empty() {
            self.slots += slots.len() as u64;
            self.by_group.push_back((sequence, slots));
        }
    }

    /// The slots that died in groups up to `sequence`, of one group.
    fn pop(&mut self, sequence: u64) -> Option<Vec<u32>> {
        self.by_group.front().filter(|(group, _)| *group <= sequence)?;
        let (_, slots) = self.by_group.pop_front()?;
        self.slots -= slots.len() as u64;
        Some(slots)
    }

    fn all(&self) -> impl Iterator<Item = &u32> {
        self.by_group.iter().flat_map(|(_, slots)| slots)
    }

    /// The last group in which one of `slots` died; 0 if in none.
    fn last_of(&self, slots: &std::ops::Range<u32>) -> u64 {
        let youngest = self.by_group.iter().rev();
        let mut found = youngest.filter(|(_, died)| died.iter().any(|slot| slots.contains(slot)));
        found.next().map_or(0, |(sequence, _)| *sequence)
    }
}

impl Recorder {
    fn hold(held: &mut [u64], slot: u32) {
        held[(slot / 64) as usize] |= 1 << (slot % 64);
    }

    fn dies(&mut self, slot: u32) {
        Self::hold(&mut self.held, slot);
        self.dying.data.push(slot);
    }

    /// An inline record is to be in `slot`, needed until a checkpoint that lasts has it.
    fn record_dies(&mut self, slot: u32) {
        Self::hold(&mut self.held, slot);
        let is_data = is_seeded(SeededFault::RecordsDieAsData);
        let dying = if is_data { &mut self.dying.data } else { &mut self.dying.records };
        dying.push(slot);
    }

    fn is_held(&self, slot: u32) -> bool {
        self.held[(slot / 64) as usize] >> (slot % 64) & 1 == 1
    }

    /// All groups up to `flushed` are on the medium, and the records of those up to `covered` are in the
    /// ring, or the map.
    fn settled(&mut self, flushed: u64, covered: u64) {
        let before = self.held_most();
        let (deaths, records) = (&mut self.deaths, &mut self.record_deaths);
        let released = std::iter::from_fn(|| deaths.pop(flushed).or_else(|| records.pop(covered)));
        for slot in released.flatten() {
            self.held[(slot / 64) as usize] &= !(1 << (slot % 64));
        }
        if self.held_most() < before {
            // What was reused since, and died again, is held for that.
            let dying = self.dying.data.iter().chain(&self.dying.records);
            for slot in self.deaths.all().chain(self.record_deaths.all()).chain(dying) {
                Self::hold(&mut self.held, *slot);
            }
        }
    }

    /// Slots that are held, at most.
    fn held_most(&self) -> u64 {
        let dying = self.dying.data.len() + self.dying.records.len();
        self.deaths.slots + self.record_deaths.slots + dying as u64
    }

    /// The last group that must be flushed, and the last that must be covered, before `slots` are written.
    fn needs_of(&self, slots: &std::ops::Range<u32>) -> Needs {
        if !slots.clone().any(|slot| self.is_held(slot)) {
            return Needs::default();
        }
        Needs { flushed: self.deaths.last_of(slots), covered: self.record_deaths.last_of(slots) }
    }

    /// Plans `moves` to `slot` and those behind it, in as many groups as it takes.
    fn plan(&mut self, slot: u32, origin: Origin, moves: &[Move]) {
        if !origin.copies() {
            return self.plan_run(slot, origin, moves);
        }
        let mut rest = (slot, moves);
        while !rest.1.is_empty() {
            if self.group.moves.len() >= self.copies_max {
                self.close();
            }
            let fits = rest.1.len().min(self.copies_max - self.group.moves.len());
            self.plan_run(rest.0, origin, &rest.1[..fits]);
            rest = (rest.0 + fits as u32, &rest.1[fits..]);
        }
    }

    fn plan_run(&mut self, slot: u32, origin: Origin, moves: &[Move]) {
        let blocks = moves.len() as u32;
        let record = u32::from(origin == Origin::Appended);
        let mut slots = slot - record..slot + blocks;
        if let Some(segment_blocks) = self.emptied_blocks
            && slots.start.is_multiple_of(segment_blocks)
        {
            slots.end = slots.end.max(slots.start + segment_blocks);
        }
        let mut dying = self.dying.data.iter().chain(&self.dying.records);
        if slots.clone().any(|slot| self.is_held(slot)) && dying.any(|slot| slots.contains(slot)) {
            let copies = self.group.runs.iter().all(|run| run.origin.copies());
            assert!(origin.copies() && copies, "reused within a group");
            self.close();
        }
        let first = self.group.moves.len() as u32;
        self.group.moves.extend_from_slice(moves);
        self.group.needs = self.group.needs.and(self.needs_of(&slots));
        if record > 0 {
            self.record_dies(slot - record);
        }
        self.group.runs.push(PlannedRun { slot, first, blocks, origin });
        moves.iter().filter(|moved| moved.old != NONE).for_each(|moved| self.dies(moved.old));
    }

    /// The group is whole. What has been read for the next is not yet used.
    fn close(&mut self) {
        let mut group = std::mem::take(&mut self.group);
        let dying = std::mem::take(&mut self.dying);
        if group.is_empty() {
            let nothing_died = dying.data.is_empty() && dying.records.is_empty();
            assert!(nothing_died, "something died in no group");
            return;
        }
        group.sequence = self.next_sequence;
        self.next_sequence += 1;
        self.deaths.push(group.sequence, dying.data);
        self.record_deaths.push(group.sequence, dying.records);
        self.group.reads.clone_from(&group.reads);
        if group.runs.iter().any(|run| run.origin.copies()) {
            group.read_only_what_is_moved();
        }
        self.finished.push(group);
    }
}

impl BlockDevice for Recorder {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        self.meter.iter_mut().for_each(|meter| meter.transfer(transfer, contents));
        assert_eq!(transfer.purpose, Purpose::CollectRead, "a store does nothing else unnamed");
        let read = transfer.slot..transfer.slot + transfer.blocks;
        if self.group.runs.iter().any(|run| read.contains(&run.slot)) {
            // What the group writes is read for the next: a group moves a block once.
            assert!(self.group.runs.iter().all(|run| run.origin.copies()), "read in its group");
            self.close();
        }
        self.group.reads.push((read.start, transfer.blocks));
    }

    fn transfer_from(&mut self, transfer: &Transfer, contents: &[u32], sources: Sources<'_>) {
        self.meter.iter_mut().for_each(|meter| meter.transfer(transfer, contents));
        let slot = transfer.slot;
        let origin = match transfer.purpose {
            Purpose::NewData | Purpose::RegroupWrite => Origin::Appended,
            Purpose::Thread => Origin::Threaded,
            Purpose::CollectWrite => Origin::Collected,
            Purpose::Plug => Origin::Plugged,
            _ => unreachable!("nothing else has its data named"),
        };
        let moves: Vec<Move> = match sources {
            Sources::Run(first, waiting) => (first..)
                .zip(waiting)
                .map(|(source, waiting)| Move { block: waiting.block, source, old: waiting.old })
                .collect(),
            Sources::Entries(entries, all) => entries
                .iter()
                .map(|entry| (*entry, all[*entry as usize]))
                .map(|(source, waiting)| Move { block: waiting.block, source, old: waiting.old })
                .collect(),
            Sources::Copies(copies) if transfer.purpose == Purpose::RegroupWrite => copies
                .iter()
                // Their data is in memory, in their order.
                .zip(self.group.moves.len() as u32..)
                .map(|((block, old), source)| Move { block: *block, source, old: *old })
                .collect(),
            Sources::Copies(copies) => copies
                .iter()
                .map(|(block, source)| Move { block: *block, source: *source, old: *source })
                .collect(),
            Sources::Unnamed | Sources::Through(_) => unreachable!("a store's log has buffers"),
        };
        debug_assert!(moves.iter().map(|moved| moved.block).eq(contents.iter().copied()));
        self.plan(slot, origin, &moves);
    }

    fn deletes(&mut self, block: u32, slot: Option<u32>) {
        if let Some(slot) = slot {
            self.dies(slot);
            self.group.freed.push((block, slot));
        }
    }

    fn records_in(&mut self, slot: u32) {
        self.group.record = Some(slot);
        if !is_seeded(SeededFault::RecordHoleNotHeld) {
            self.record_dies(slot);
        }
    }

    fn may_fill(&self, slot: u32) -> bool {
        !self.is_held(slot) || is_seeded(SeededFault::HeldHolesFilled)
    }

    fn unfillable_most(&self) -> u64 {
        if is_seeded(SeededFault::HeldHolesFilled) { 0 } else { self.held_most() }
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
            lost_turn_ns: options.lost_turn_ns,
            threads_ahead: if geometry.scatters { ANNOUNCED_THREADED_MAX as u32 } else { 0 },
            collect,
            ..LogSetting::plain(shape, geometry.blocks, disk)
        };
        let block_bytes = geometry.block_bytes as usize;
        let recorder = Recorder {
            held: vec![0; (geometry.slots() as usize).div_ceil(64)],
            next_sequence,
            copies_max: geometry.copies_max() as usize,
            meter: Some(CostMeter::new(disk)),
            emptied_blocks: is_in_zones.then_some(geometry.segment_blocks),
            ..Recorder::default()
        };
        let data = AlignedBytes::zeroed(setting.buffer_blocks as usize * block_bytes);
        let mut log = AdaptiveLog::restore(mechanisms, setting, |_| NoSeparation, kept)?;
        // What costs nothing beforehand comes first.
        let first = if geometry.scatters { Mechanism::Thread } else { Mechanism::Clean };
        log.try_mechanism(mechanism.or(options.begins_by).unwrap_or(first));
        log.log_mut().enable_discard();
        log.leave_decisions();
        let kept_segments = geometry.reserve_segments + RESERVE_SEGMENTS;
        Ok(Self { log, recorder, data, block_bytes, kept_segments })
    }

    /// The log.
    pub(crate) fn log(&self) -> &Log<NoSeparation> {
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
        let needed = u64::from(self.waiting() + blocks);
        if self.threads() && self.has_holes(needed) {
            return true;
        }
        let (rest, free, opened) = self.appended(needed);
        let reserve = u64::from(RESERVE_SEGMENTS);
        // A simulated log collects when the open segment is full, amid what it writes. What is all or
        // nothing cannot; it goes before or after, whichever is nearer.
        free >= reserve + opened || (free == reserve && opened == 1 && rest * 2 >= needed)
    }

    /// What is left of the open segment, the free segments, and how many of those are opened if `blocks`
    /// blocks are appended.
    fn appended(&self, blocks: u64) -> (u64, u64, u64) {
        let log = self.log.log();
        let (rest, free) = (u64::from(log.open_rest()), log.free_segments().len() as u64);
        let segment_blocks = u64::from(self.segment_blocks()) - 1;
        (rest, free, blocks.saturating_sub(rest).div_ceil(segment_blocks))
    }

    /// Whether `blocks` blocks can be put together, and then as much again be written, before room must be
    /// made.
    pub(crate) fn has_room_together(&self, blocks: u32) -> bool {
        let (_, free, opened) = self.appended(2 * u64::from(blocks));
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
    pub(crate) fn outlook(
        &mut self,
        times: Option<&TransferTimes>,
    ) -> Option<Outlook<NoSeparation>> {
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
        let (_, free, opened) = self.appended(waiting + u64::from(blocks));
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
        let rule = self.log.log().collect_rule();
        if extent == Extent::Cleaned {
            self.log.log_mut().set_collect(Collect::Always(Mechanism::Clean));
        }
        let (log, recorder) = (self.log.log_mut(), &mut self.recorder);
        let made = match extent {
            Extent::Segment | Extent::Cleaned => log.make_more_room(0, recorder),
            Extent::Victim => log.make_more_room(1, recorder),
            Extent::Part => log.make_room_in_parts(PART_BLOCKS, recorder),
        };
        self.log.log_mut().set_collect(rule);
        (self.take_groups(), made)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FormatOptions, RING_RECORD_BLOCKS_MAX, RingRecord};

    #[test]
    fn a_collection_of_the_longest_segment_is_groups_that_a_record_has_room_for() {
        let segment_blocks = 1 << 20;
        let options =
            FormatOptions { block_bytes: 512, segment_blocks, ..FormatOptions::new([1; 16]) };
        let geometry = Geometry::plan(16 << 29, &options).unwrap();
        let mut recorder = Recorder {
            held: vec![0; (geometry.slots() as usize).div_ceil(64)],
            next_sequence: 5,
            copies_max: geometry.copies_max() as usize,
            ..Recorder::default()
        };
        let source = |block: u32| 3 * segment_blocks + block;
        let of_block = |block| Move { block, source: source(block), old: source(block) };
        let moves: Vec<Move> = (0..segment_blocks).map(of_block).collect();
        recorder.group.reads.push((3 * segment_blocks, segment_blocks));
        recorder.plan(7 * segment_blocks, Origin::Collected, &moves);
        recorder.close();
        let (mut next, mut sequence) = (0, 5);
        for group in &recorder.finished {
            assert_eq!(group.sequence, sequence);
            sequence += 1;
            let runs_bytes = (group.moves.len() + group.freed.len()) * 20 + 12;
            let blocks = RingRecord::blocks_for(&geometry, runs_bytes);
            assert!(blocks <= RING_RECORD_BLOCKS_MAX, "{blocks} blocks");
            assert_eq!(group.reads, [(3 * segment_blocks + next, group.moves.len() as u32)]);
            for run in &group.runs {
                assert_eq!(run.slot, 7 * segment_blocks + next);
                assert!(
                    group.moves_of(run).iter().map(|moved| moved.block).eq(next..next + run.blocks)
                );
                next += run.blocks;
            }
        }
        assert_eq!(next, segment_blocks);
    }

    /// Has what died since belong to group `sequence`.
    fn end_group(recorder: &mut Recorder, sequence: u64) {
        let dying = std::mem::take(&mut recorder.dying);
        recorder.deaths.push(sequence, dying.data);
        recorder.record_deaths.push(sequence, dying.records);
    }

    #[test]
    fn what_died_again_is_held_until_its_last_death_is_flushed() {
        let mut recorder = Recorder { held: vec![0; 4], ..Recorder::default() };
        let flushed = |flushed| Needs { flushed, covered: 0 };
        // Slot 70 dies, is reused by the next group while the first is not flushed, and dies there again.
        for sequence in [1, 2] {
            recorder.dies(70);
            recorder.dies(100 + sequence as u32);
            end_group(&mut recorder, sequence);
        }
        recorder.dies(5);
        assert_eq!(recorder.needs_of(&(64..72)), flushed(2));
        recorder.settled(1, 0);
        assert!(recorder.is_held(70) && recorder.is_held(102) && recorder.is_held(5));
        assert!(!recorder.is_held(101));
        assert_eq!((recorder.needs_of(&(64..72)), recorder.held_most()), (flushed(2), 3));
        recorder.settled(2, 0);
        assert!(!recorder.is_held(70) && recorder.is_held(5));
        assert_eq!(recorder.unfillable_most(), 1);
    }

    #[test]
    fn data_is_held_until_it_is_flushed_and_inline_records_until_they_are_covered() {
        let mut recorder = Recorder { held: vec![0; 4], next_sequence: 3, ..Recorder::default() };
        let of_block = |block, old| Move { block, source: 0, old };
        // A record in slot 10 and two blocks behind it, one of which lay in slot 40.
        recorder.plan(11, Origin::Appended, &[of_block(1, NONE), of_block(2, 40)]);
        recorder.close();
        assert_eq!(recorder.needs_of(&(40..41)), Needs { flushed: 3, covered: 0 });
        assert_eq!(recorder.needs_of(&(8..48)), Needs { flushed: 3, covered: 3 });
        assert_eq!(recorder.needs_of(&(11..13)), Needs::default());
        recorder.settled(3, 2);
        assert!(recorder.is_held(10) && !recorder.is_held(40));
        assert_eq!(recorder.needs_of(&(8..48)), Needs { flushed: 0, covered: 3 });
        assert!(!recorder.may_fill(10) && recorder.may_fill(40));
        recorder.settled(3, 3);
        assert_eq!((recorder.is_held(10), recorder.unfillable_most()), (false, 0));
    }

    #[test]
    fn a_segment_that_is_emptied_as_a_whole_needs_all_of_it() {
        for (emptied_blocks, flushed) in [(None, 0), (Some(64), 3)] {
            let mut recorder = Recorder {
                held: vec![0; 4],
                emptied_blocks,
                next_sequence: 4,
                ..Recorder::default()
            };
            recorder.dies(114);
            end_group(&mut recorder, 3);
            // A record in slot 64, the first of its segment, and a block behind it.
            let moves = [Move { block: 1, source: 0, old: NONE }];
            recorder.plan(65, Origin::Appended, &moves);
            assert_eq!(recorder.group.needs, Needs { flushed, covered: 0 });
            // What goes on in a segment empties nothing.
            recorder.settled(3, 3);
            recorder.dies(120);
            recorder.close();
            recorder.plan(67, Origin::Appended, &moves);
            assert_eq!(recorder.group.needs, Needs::default());
        }
    }
}
