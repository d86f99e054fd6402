//! Policies alone, over places that a test sets.

use super::*;
use agewell_regrouping::StepView;

const DISK: CostModel = CostModel {
    access_ns: 15_000_000,
    further_ns: 15_000_000,
    bandwidth_bytes_per_s: 5_000_000,
    block_bytes: 8192,
};

/// Blocks scattered over a disk; what is moved goes behind everything else.
struct Places {
    slots: Vec<u32>,
    end: u32,
}

impl Places {
    /// `blocks` blocks, none beside another.
    fn scattered(blocks: u32) -> Self {
        let apart = 1000;
        Self { slots: (0..blocks).map(|block| apart * block).collect(), end: apart * blocks }
    }

    fn move_together(&mut self, blocks: &[u32]) {
        for block in blocks {
            self.slots[*block as usize] = self.end;
            self.end += 1;
        }
        self.end += 1000;
    }
}

impl StepView for Places {
    type Slot = u32;

    fn slot_of(&self, block: u32) -> Option<u32> {
        self.slots.get(block as usize).copied()
    }

    fn step_blocks(&self, slot: u32, next: u32) -> i64 {
        i64::from(next) - i64::from(slot) - 1
    }

    fn block_before(&self, slot: u32) -> Option<u32> {
        let before = self.slots.iter().position(|other| other + 1 == slot);
        before.map(|block| block as u32)
    }

    fn block_after(&self, slot: u32) -> Option<u32> {
        let after = self.slots.iter().position(|other| *other == slot + 1);
        after.map(|block| block as u32)
    }
}

impl PlaceView for Places {
    fn follows(&self, slot: u32, next: u32) -> bool {
        slot + 1 == next
    }

    fn pieces_moved(&self, _blocks: u32) -> u32 {
        1
    }

    fn is_outer(&self, slot: u32) -> bool {
        slot < self.end / 2
    }

    fn room_ns(&self, _moved: f64) -> f64 {
        0.0
    }

    fn home_of(&self, _block: u32, slot: u32) -> u32 {
        slot
    }

    fn moving_ns(&self) -> f64 {
        0.0
    }
}

/// A policy, its places, and what it chose.
struct Subject {
    reorganiser: Reorganiser,
    places: Places,
    chosen: Vec<Vec<u32>>,
}

impl Subject {
    fn new(blocks: u32, setting: ReorganiseSetting) -> Self {
        let reorganiser = Reorganiser::new(setting, blocks, DISK);
        Self { reorganiser, places: Places::scattered(blocks), chosen: Vec::new() }
    }

    /// Names blocks: as many files of `file_blocks` each as there are blocks for.
    fn named(mut self, file_blocks: u32) -> Self {
        for block in 0..self.places.slots.len() as u32 {
            let name = FileBlock { file: block / file_blocks, block: block % file_blocks };
            self.reorganiser.call(block, name);
        }
        self
    }

    /// The same under a load that has repeated all of its steps so far.
    fn repeating(mut self) -> Self {
        (0..40_000).for_each(|_| self.reorganiser.trust.step(true));
        self
    }

    fn take(&mut self) {
        let blocks = self.reorganiser.chosen().to_vec();
        self.places.move_together(&blocks);
        self.reorganiser.settle(true, blocks.len() as u64);
        self.chosen.push(blocks);
    }

    fn read(&mut self, blocks: impl IntoIterator<Item = u32>) {
        for block in blocks {
            let slot = self.places.slots[block as usize];
            if self.reorganiser.read(block, slot, false, &self.places) {
                self.take();
            }
        }
    }

    fn rest(&mut self) {
        while self.reorganiser.rest(&self.places) {
            self.take();
        }
    }
}

fn setting(related: Related, decide: Decide, when: When) -> ReorganiseSetting {
    ReorganiseSetting { related, decide, when, ..ReorganiseSetting::matthews_1999(8) }
}

fn by_value(when: When) -> ReorganiseSetting {
    setting(Related::Blocks, Decide::Value, when)
}

#[test]
fn at_once_is_in_the_second_pass_and_once() {
    let mut subject = Subject::new(16, by_value(When::AtOnce));
    subject.read(0..16);
    assert!(subject.chosen.is_empty(), "nothing is known after one pass");
    subject.read(0..16);
    assert_eq!(subject.chosen, [(0..8).collect::<Vec<_>>(), (8..16).collect()]);
    // It was chosen before it was all in memory: some had to be read for it.
    for _ in 0..4 {
        subject.read(0..16);
    }
    assert_eq!(subject.chosen.len(), 2, "what lies well is left alone");
}

#[test]
fn load_waits_until_all_is_in_memory() {
    let memory = ReorganiseSetting { memory_blocks: 8, ..by_value(When::Load) };
    let mut subject = Subject::new(16, memory);
    subject.read(0..16);
    subject.read(0..7);
    assert!(subject.chosen.is_empty());
    subject.read([7]);
    assert_eq!(subject.chosen, [(0..8).collect::<Vec<_>>()]);
    assert!(subject.reorganiser.counts().put_off > 0);
}

#[test]
fn idle_waits_until_nobody_asks() {
    let mut subject = Subject::new(16, by_value(When::Idle));
    for _ in 0..3 {
        subject.read(0..16);
    }
    assert!(subject.chosen.is_empty());
    subject.rest();
    assert_eq!(subject.chosen.len(), 2);
    subject.rest();
    assert_eq!(subject.chosen.len(), 2);
}

#[test]
fn eviction_is_when_a_member_leaves_memory() {
    let memory = ReorganiseSetting { memory_blocks: 12, ..by_value(When::Eviction) };
    let mut subject = Subject::new(64, memory);
    subject.read(0..8);
    subject.read(0..8);
    assert!(subject.chosen.is_empty());
    // The fifth other block pushes the first member out.
    subject.read([40, 43, 46, 49]);
    assert!(subject.chosen.is_empty());
    subject.read([52]);
    assert_eq!(subject.chosen, [(0..8).collect::<Vec<_>>()]);
}

#[test]
fn by_gain_is_when_reads_leave_the_group() {
    let mut subject = Subject::new(16, ReorganiseSetting::by_gain(8)).repeating();
    subject.read(0..16);
    subject.read(0..8);
    assert!(subject.chosen.is_empty());
    subject.read([8]);
    assert_eq!(subject.chosen, [(0..8).collect::<Vec<_>>()]);
}

#[test]
fn a_group_of_few_reads_and_a_large_price_is_declined() {
    let mut subject = Subject::new(16, ReorganiseSetting::by_gain(2)).repeating();
    // Two blocks in two pieces: a pass gains 15 ms, moving them takes 18.3 ms.
    subject.read([0, 1, 9, 0, 1, 9]);
    assert!(subject.chosen.iter().all(|group| group != &[0, 1]));
    subject.read([0, 1, 9]);
    subject.read([0, 1, 9]);
    assert!(subject.reorganiser.counts().moved > 0, "three passes pay for it");
}

#[test]
fn only_jumps_are_recorded_where_the_rest_follows_in_the_file() {
    let jumps = setting(Related::NonSequential, Decide::Value, When::AtOnce);
    let mut subject = Subject::new(32, jumps).named(32);
    for _ in 0..4 {
        subject.read(0..32);
    }
    // A sequence in the file is no news, but that its end is followed by its beginning is.
    assert_eq!(subject.chosen, [[31, 0]]);
    for _ in 0..4 {
        subject.read([3, 17, 9, 25]);
    }
    let mut group = subject.chosen.last().cloned().unwrap_or_default();
    group.sort_unstable();
    assert_eq!(group, [3, 9, 17, 25]);
}

#[test]
fn whole_files_are_moved_in_their_order_by_parts() {
    let whole = setting(Related::WholeFile, Decide::Value, When::Load);
    let mut subject = Subject::new(24, whole).named(12);
    // Read backwards, and laid out forwards.
    for _ in 0..3 {
        subject.read((0..12).rev());
    }
    assert_eq!(subject.chosen, [(8..12).collect::<Vec<_>>(), (0..8).collect()]);
}

#[test]
fn files_that_are_read_together_are_moved_together() {
    let files = setting(Related::Files, Decide::Value, When::AtOnce);
    let mut subject = Subject::new(40, files).named(2);
    for _ in 0..4 {
        // Files 3, 11 and 7, and then one that is not related.
        subject.read([6, 7, 22, 23, 14, 15]);
    }
    let group = subject.chosen.last().expect("a group was chosen");
    assert_eq!(group, &[6, 7, 22, 23, 14, 15]);
}

#[test]
fn files_of_a_directory_are_moved_together() {
    let directory = setting(Related::Directory, Decide::Value, When::AtOnce);
    let mut subject = Subject::new(12, directory);
    for file in 0..6 {
        subject.reorganiser.create(file, file % 2);
    }
    subject = subject.named(2);
    for _ in 0..3 {
        subject.read(0..12);
    }
    assert_eq!(subject.chosen.len(), 2);
    assert!(subject.chosen.contains(&vec![0, 1, 4, 5, 8, 9]));
    assert!(subject.chosen.contains(&vec![2, 3, 6, 7, 10, 11]));
}

#[test]
fn by_frequency_what_lies_well_far_out_is_moved_to_the_middle() {
    let mut subject = Subject::new(32, setting(Related::Frequency, Decide::Value, When::AtOnce));
    // In sequence on the outer half, but entered from elsewhere.
    subject.places.slots = (0..32).collect();
    subject.places.end = 1000;
    for _ in 0..4 {
        subject.read([31]);
        subject.read(0..6);
    }
    assert!(!subject.chosen.is_empty());
}

#[test]
fn writes_lower_what_reads_raised() {
    for related in [Related::WholeFile, Related::Directory] {
        let lowered = setting(related, Decide::Value, When::AtOnce);
        let mut subject = Subject::new(8, lowered).named(8);
        for _ in 0..6 {
            subject.read(0..8);
            (0..8).for_each(|block| {
                subject.reorganiser.write(block);
            });
        }
        assert!(subject.chosen.is_empty(), "{related:?}: as many writes as reads");
    }
}

#[test]
fn bounds_hold() {
    let once = ReorganiseSetting { moves_max: 1, ..by_value(When::AtOnce) };
    let mut subject = Subject::new(16, once);
    subject.read((0..8).chain(0..8));
    assert_eq!(subject.chosen.len(), 1);
    // They are scattered again; they have been moved as often as they may.
    subject.places = Places::scattered(16);
    for _ in 0..4 {
        subject.read(0..8);
    }
    assert_eq!(subject.chosen.len(), 1);
    assert!(subject.reorganiser.counts().bounded > 0);
    let poor = ReorganiseSetting { budget: 0.25, ..by_value(When::AtOnce) };
    let mut subject = Subject::new(16, poor);
    subject.read((0..8).chain(0..8));
    assert!(subject.chosen.is_empty(), "eight blocks for sixteen reads are too many");
    subject.read((0..8).chain(0..8).chain(0..8));
    assert_eq!(subject.chosen.len(), 1);
}

#[test]
fn a_cluster_is_what_was_moved_and_lies_together() {
    let mut subject = Subject::new(16, by_value(When::AtOnce));
    let mut cluster = Vec::new();
    subject.reorganiser.cluster_of(3, &subject.places, &mut cluster);
    assert!(cluster.is_empty());
    subject.read((0..8).chain(0..8));
    subject.reorganiser.cluster_of(3, &subject.places, &mut cluster);
    assert_eq!(cluster, (0..8).collect::<Vec<_>>());
    // A block that was written elsewhere is not among them.
    subject.places.slots[5] = 0;
    subject.reorganiser.cluster_of(3, &subject.places, &mut cluster);
    assert_eq!(cluster, [0, 1, 2, 3, 4]);
}
