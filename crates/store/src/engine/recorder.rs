//! What the log would transfer, written down as groups; and which slots a crash may still bring back.
//!
//! See the module above for what is held, and for how long.

use std::collections::VecDeque;

use agewell_log::policy::cost::CostModel;
use agewell_log::{BlockDevice, CostMeter, Purpose, Sources, Transfer};

use crate::format::{Geometry, NONE};
use crate::group::{Group, Move, Needs, Origin, PlannedRun};
use crate::seeded::{SeededFault, is_seeded};

/// What writes down what the log does.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// What is planned now.
    pub(super) group: Group,
    /// Groups before it that nobody has taken.
    pub(super) finished: Vec<Group>,
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
    pub(super) meter: Option<CostMeter>,
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
    /// That of a store whose next group has number `next_sequence`, which reckons with `disk`.
    pub(super) fn new(
        geometry: &Geometry,
        next_sequence: u64,
        disk: CostModel,
        is_in_zones: bool,
    ) -> Self {
        Self {
            held: vec![0; (geometry.slots() as usize).div_ceil(64)],
            next_sequence,
            copies_max: geometry.copies_max() as usize,
            meter: Some(CostMeter::new(disk)),
            emptied_blocks: is_in_zones.then_some(geometry.segment_blocks),
            ..Self::default()
        }
    }

    /// There are the slots of `geometry` from here on, those before among them.
    pub(super) fn grow(&mut self, geometry: &Geometry) {
        self.held.resize((geometry.slots() as usize).div_ceil(64), 0);
        self.copies_max = geometry.copies_max() as usize;
    }

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
    pub(super) fn settled(&mut self, flushed: u64, covered: u64) {
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
    pub(super) fn close(&mut self) {
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
