//! The engine of the simulator, asked what a store is to do.
//!
//! The log decides where every block goes and what is collected, as in a simulation. What it would
//! transfer is written down as a [`Group`] and carried out by someone else ([`crate::medium`]), so the
//! engine is ahead of the medium, never waits for it, and cannot fail because of it.
//!
//! A slot that has died may still be what a crash brings back. Such slots are *held*: no hole is filled
//! there, and a group that writes over one says up to which group the medium must be ahead first.
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
use crate::format::{ANNOUNCED_MAX, Geometry, NONE};
use crate::group::{Group, Move, Origin, PlannedRun};
use crate::options::{Means, OpenOptions};
use crate::seeded::{SeededFault, is_seeded};

/// Segments that are kept free to collect into.
const RESERVE_SEGMENTS: u32 = 2;

/// Of these the log keeps for itself. The other may be begun by what does not quite fit into the open
/// segment, and is made up for afterwards.
const LOG_RESERVE_SEGMENTS: u32 = 1;

/// What is collected at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What frees a segment, by the mechanism that is chosen.
    Segment,
    /// The same by cleaning, whatever is chosen.
    Cleaned,
    /// One victim, by the mechanism that is chosen: the least that there is to wait for.
    Victim,
}

/// The engine.
#[derive(Debug)]
pub(crate) struct Engine {
    log: AdaptiveLog<NoSeparation>,
    recorder: Recorder,
    /// Data of the blocks that wait, entry by entry.
    data: AlignedBytes,
    block_bytes: usize,
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
    /// Slots that died in the group.
    dying: Vec<u32>,
    /// Slots that died in groups before, and are held.
    deaths: VecDeque<(u64, Vec<u32>)>,
    /// A bit for each slot that is held.
    held: Vec<u64>,
    /// Moves of a group of copies at most, so that one record has them all.
    copies_max: usize,
    /// What the log would transfer, at the prices it was opened with.
    meter: Option<CostMeter>,
    /// Blocks of a segment, if all that is in one is lost when its first slot is written.
    emptied_blocks: Option<u32>,
}

impl Recorder {
    fn dies(&mut self, slot: u32) {
        self.held[(slot / 64) as usize] |= 1 << (slot % 64);
        self.dying.push(slot);
    }

    fn is_held(&self, slot: u32) -> bool {
        self.held[(slot / 64) as usize] >> (slot % 64) & 1 == 1
    }

    /// The records of all groups up to `sequence` last.
    fn covered(&mut self, sequence: u64) {
        let before = self.deaths.len();
        while let Some((_, died)) = self.deaths.front().filter(|(group, _)| *group <= sequence) {
            for slot in died {
                self.held[(slot / 64) as usize] &= !(1 << (slot % 64));
            }
            self.deaths.pop_front();
        }
        if self.deaths.len() < before {
            // What was reused since, and died again, is held for that.
            let later = self.deaths.iter().flat_map(|(_, died)| died);
            for slot in later.chain(&self.dying) {
                self.held[(slot / 64) as usize] |= 1 << (slot % 64);
            }
        }
    }

    /// The last group in which one of `slots` died, if one of them is held.
    fn death_of(&self, slots: std::ops::Range<u32>) -> u64 {
        if !slots.clone().any(|slot| self.is_held(slot)) {
            return 0;
        }
        let youngest = self.deaths.iter().rev();
        let mut found = youngest.filter(|(_, died)| died.iter().any(|slot| slots.contains(slot)));
        found.next().map_or(0, |(sequence, _)| *sequence)
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
        if slots.clone().any(|slot| self.is_held(slot))
            && self.dying.iter().any(|slot| slots.contains(slot))
        {
            let copies = self.group.runs.iter().all(|run| run.origin.copies());
            assert!(origin.copies() && copies, "reused within a group");
            self.close();
        }
        let first = self.group.moves.len() as u32;
        self.group.moves.extend_from_slice(moves);
        let needed = self.death_of(slots);
        self.group.needs_covered = self.group.needs_covered.max(needed);
        if record > 0 {
            // What stands there is needed until a record that lasts has it.
            self.dies(slot - record);
        }
        self.group.runs.push(PlannedRun { slot, first, blocks, origin });
        moves.iter().filter(|moved| moved.old != NONE).for_each(|moved| self.dies(moved.old));
    }

    /// The group is whole. What has been read for the next is not yet used.
    fn close(&mut self) {
        let mut group = std::mem::take(&mut self.group);
        let dying = std::mem::take(&mut self.dying);
        if group.is_empty() {
            assert!(dying.is_empty(), "something died in no group");
            return;
        }
        group.sequence = self.next_sequence;
        self.next_sequence += 1;
        self.deaths.push_back((group.sequence, dying));
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

    fn may_fill(&self, slot: u32) -> bool {
        !self.is_held(slot) || is_seeded(SeededFault::HeldHolesFilled)
    }

    fn may_fill_all(&self) -> bool {
        if is_seeded(SeededFault::HeldHolesFilled) {
            return true;
        }
        self.deaths.is_empty() && self.dying.is_empty()
    }
}

impl Engine {
    /// The engine of a store of which `kept` was kept; the next group has number `next_sequence`.
    pub(crate) fn restore(
        geometry: &Geometry,
        kept: Kept<'_>,
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
        log.log_mut().enable_discard();
        log.leave_decisions();
        Ok(Self { log, recorder, data, block_bytes })
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
        if self.threads() && self.is_covered() && self.log.log().holes() >= needed {
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
        let segment_blocks = u64::from(log.shape().segment_blocks_max()) - 1;
        (rest, free, blocks.saturating_sub(rest).div_ceil(segment_blocks))
    }

    /// Whether `blocks` blocks can be put together, and then as much again be written, before room must be
    /// made.
    pub(crate) fn has_room_together(&self, blocks: u32) -> bool {
        let (_, free, opened) = self.appended(2 * u64::from(blocks));
        free > u64::from(RESERVE_SEGMENTS) + opened
    }

    fn threads(&self) -> bool {
        self.log.log().collect_rule() == Collect::Always(Mechanism::Thread)
    }

    /// Whether its mechanism fills holes.
    pub(crate) fn fills_holes(&self) -> bool {
        self.log.log().collect_rule() != Collect::Always(Mechanism::Clean)
    }

    /// Free segments that come first.
    pub(crate) fn first_free(&self) -> Vec<u32> {
        self.log.log().free_segments().take(ANNOUNCED_MAX).collect()
    }

    /// Whether no slot is held.
    pub(crate) fn is_covered(&self) -> bool {
        self.recorder.may_fill_all()
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
        let victims = u32::from(extent == Extent::Victim);
        let made = self.log.log_mut().make_more_room(victims, &mut self.recorder);
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

    fn take_groups(&mut self) -> Vec<Group> {
        self.recorder.close();
        self.recorder.group.reads.clear();
        let mut groups = std::mem::take(&mut self.recorder.finished);
        if let Some(last) = groups.last_mut() {
            last.free = self.first_free();
        }
        groups
    }

    /// The records of all groups up to `sequence` last: what died in them may be written over.
    pub(crate) fn covered(&mut self, sequence: u64) {
        self.recorder.covered(sequence);
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

    #[test]
    fn what_died_again_is_held_until_its_last_death_is_covered() {
        let mut recorder = Recorder { held: vec![0; 4], ..Recorder::default() };
        // Slot 70 dies, is reused by the next group while the first is not covered, and dies there again.
        for sequence in [1, 2] {
            recorder.dies(70);
            recorder.dies(100 + sequence as u32);
            let dying = std::mem::take(&mut recorder.dying);
            recorder.deaths.push_back((sequence, dying));
        }
        recorder.dies(5);
        assert_eq!(recorder.death_of(64..72), 2);
        recorder.covered(1);
        assert!(recorder.is_held(70) && recorder.is_held(102) && recorder.is_held(5));
        assert!(!recorder.is_held(101));
        assert_eq!(recorder.death_of(64..72), 2);
        recorder.covered(2);
        assert!(!recorder.is_held(70) && recorder.is_held(5));
        assert!(!recorder.may_fill_all());
    }

    #[test]
    fn a_segment_that_is_emptied_as_a_whole_needs_all_of_it_covered() {
        for (emptied_blocks, needed) in [(None, 0), (Some(64), 3)] {
            let mut recorder = Recorder {
                held: vec![0; 4],
                emptied_blocks,
                next_sequence: 4,
                ..Recorder::default()
            };
            recorder.dies(114);
            let dying = std::mem::take(&mut recorder.dying);
            recorder.deaths.push_back((3, dying));
            // A record in slot 64, the first of its segment, and a block behind it.
            let moves = [Move { block: 1, source: 0, old: NONE }];
            recorder.plan(65, Origin::Appended, &moves);
            assert_eq!(recorder.group.needs_covered, needed);
            // What goes on in a segment empties nothing.
            recorder.covered(3);
            recorder.dies(120);
            recorder.close();
            recorder.plan(67, Origin::Appended, &moves);
            assert_eq!(recorder.group.needs_covered, 0);
        }
    }
}
