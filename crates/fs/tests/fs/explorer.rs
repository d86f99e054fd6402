//! Crashes at every moment: whatever a loss of power leaves is what there was after some of the operations,
//! in their order, up to the last that was synced at least; nothing of it is wrong, and it goes on working.

use std::collections::HashSet;

use agewell_core::mix;
use agewell_fs::{FileSystem, ROOT_INODE, Time};
use agewell_store::device::{CrashDisk, Disk, MemoryDisk, Recording};
use agewell_testkit::caught;
use rayon::prelude::*;

use super::compare::{Between, compare, is_clean};
use super::held::drawn;
use super::load::{AnyFileSystem, Operation, Shape, carry_out, close, step};
use super::model::{Maker, Model, New};

/// Bytes that are written in one step at least, in the file systems of these tests.
const STEP_BYTES: u64 = 64 << 10;

/// How much is looked at. All numbers are chosen by us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// States of each epoch, at most.
    pub(crate) states: u64,
    /// One of this number of states goes on, and its crashes are looked at too.
    pub(crate) goes_on: u64,
    /// States of each epoch of what goes on.
    pub(crate) deep_states: u64,
}

impl Extent {
    pub(crate) const USUAL: Self = Self { states: 12, goes_on: 24, deep_states: 2 };
}

/// What has been looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) states: u64,
    /// Of those, crashes of what came after a crash.
    pub(crate) deep: u64,
    /// Of those, with fewer operations than were begun, and with more than were acknowledged.
    pub(crate) shorter: u64,
    pub(crate) midway: u64,
    /// In the midst of an operation of several steps.
    pub(crate) between: u64,
}

impl Tally {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            states: self.states + other.states,
            deep: self.deep + other.deep,
            shorter: self.shorter + other.shorter,
            midway: self.midway + other.midway,
            between: self.between + other.between,
        }
    }
}

/// What is done, one after another; nothing when it is over.
pub(crate) type Next<'a> = &'a mut dyn FnMut(&Model, usize) -> Option<Operation>;

/// Operations on a disk that remembers, and what there is after each of them.
struct Life {
    recording: Recording,
    /// Before the first, and after each; without orphans, which no crash leaves.
    models: Vec<Model>,
    /// Whose data each operation changes in several steps.
    in_steps: Vec<Option<u64>>,
    /// Operations; for messages.
    operations: Vec<Operation>,
    /// Epochs before this one belong to the opening.
    opened: usize,
    /// Which were acknowledged and begun before it was opened.
    before: (usize, usize),
}

impl Life {
    /// Carries out what is `next` on `fs`, which lies on `disk` and is what `model` is.
    fn live(
        disk: &CrashDisk,
        fs: &AnyFileSystem<'_>,
        mut model: Model,
        next: Next<'_>,
        seconds: i64,
    ) -> Result<Self, String> {
        let opened = disk.recording().epochs() - 1;
        let mut models = vec![model.without_orphans()];
        let (mut in_steps, mut operations, mut refused) = (Vec::new(), Vec::new(), 0);
        while let Some(operation) = next(&model, operations.len()) {
            let number = operations.len() as u64 + 1;
            let now = Time { seconds: seconds + number as i64, nanoseconds: 0 };
            disk.mark(number * 2);
            let before = refused;
            step(fs, &mut model, &operation, now, &mut refused)?;
            if operation == Operation::Sync {
                disk.mark(number * 2 + 1);
            }
            models.push(model.without_orphans());
            let has_steps = operation.has_steps(STEP_BYTES) || refused > before;
            in_steps.push(operation.target().filter(|_| has_steps));
            operations.push(operation);
        }
        let recording = disk.recording();
        Ok(Self { recording, models, in_steps, operations, opened, before: (0, 0) })
    }

    /// Operations that are acknowledged, and begun, at the crashes of `epoch`.
    fn moment(&self, epoch: usize) -> (usize, usize) {
        if epoch < self.opened {
            return self.before;
        }
        let marks = self.recording.marks(epoch);
        let last = |odd: u64| {
            let marks = marks.iter().filter(|mark| **mark % 2 == odd);
            marks.max().map_or(0, |mark| (mark / 2) as usize)
        };
        (last(1), last(0))
    }

    /// The states of `epoch` that are looked at, at most `most`, none twice.
    fn states(&self, epoch: usize, most: u64) -> Vec<u64> {
        let states = self.recording.states(epoch);
        let all = states.len();
        let mut seen = HashSet::new();
        let step = (all / most).max(1);
        let first = mix(epoch as u64 ^ all) % step;
        let drawn = (0..all.div_ceil(step)).map(|number| (number * step + first).min(all - 1));
        drawn.filter(|number| seen.insert(states.fingerprint(*number))).collect()
    }

    /// After how many operations `fs` is; none if it is in the midst of one.
    fn prefix<D: Disk>(&self, fs: &FileSystem<D>, epoch: usize) -> Result<Option<usize>, String> {
        let (acked, begun) = self.moment(epoch);
        let mut why = String::new();
        for done in (acked..=begun).rev() {
            match compare(fs, &self.models[done], None) {
                Ok(()) => return Ok(Some(done)),
                Err(what) => why = format!("{why}; after {done}: {what}"),
            }
        }
        for done in acked..begun {
            let (before, after) = (&self.models[done], &self.models[done + 1]);
            let Some(number) = self.in_steps[done] else { continue };
            if !before.files.contains_key(&number) || !after.files.contains_key(&number) {
                continue;
            }
            match compare(fs, after, Some(Between { number, before })) {
                Ok(()) => return Ok(None),
                Err(what) => why = format!("{why}; within {}: {what}", done + 1),
            }
        }
        let operations = &self.operations[acked..begun];
        Err(format!("no prefix from {acked} to {begun} is there{why}\n{operations:?}"))
    }
}

/// What is looked at: a shape, and names for its states.
struct Explored<'a> {
    shape: Shape,
    extent: Extent,
    seed: u64,
    life: &'a Life,
    seconds: i64,
    is_deep: bool,
}

impl Explored<'_> {
    /// Looks at a state.
    fn state(&self, epoch: usize, number: u64) -> Result<Tally, String> {
        let what = caught(|| self.state_of(epoch, number));
        what.map_err(|what| format!("CRASH={}.{epoch}.{number}: {what}", self.seed))
    }

    fn state_of(&self, epoch: usize, number: u64) -> Result<Tally, String> {
        let state = self.life.recording.state(epoch, number);
        let draw = mix(self.seed ^ mix(number ^ (epoch as u64) << 32));
        let (acked, begun) = self.life.moment(epoch);
        let tally = |done: Option<usize>| Tally {
            states: 1,
            deep: u64::from(self.is_deep),
            shorter: u64::from(done.is_some_and(|done| done < begun)),
            midway: u64::from(done.is_some_and(|done| done < begun && done > acked)),
            between: u64::from(done.is_none()),
        };
        let goes_on = !self.is_deep && draw.is_multiple_of(self.extent.goes_on);
        if !goes_on {
            let fs = self.shape.open(&state).map_err(|error| format!("does not open: {error}"))?;
            let done = self.life.prefix(&fs, epoch)?;
            is_clean(&fs)?;
            return Ok(tally(done));
        }
        let disk = CrashDisk::over(&state, draw);
        let fs = self.shape.open(&disk).map_err(|error| format!("does not open: {error}"))?;
        let done = self.life.prefix(&fs, epoch)?;
        is_clean(&fs)?;
        let Some(done) = done else { return Ok(tally(None)) };
        let draws = drawn(draw, 12);
        let mut next = |model: &Model, at: usize| {
            let draw = draws.get(at)?;
            Some(Operation::of(model, *draw, 20_000))
        };
        let model = self.life.models[done].clone();
        let seconds = self.seconds + 1_000_000;
        let mut life = Life::live(&disk, &fs, model, &mut next, seconds)?;
        is_clean(&fs)?;
        drop(fs);
        // Until it was open, it was what the first life has left.
        life.opened = life.opened.min(life.recording.epochs());
        life.before = (0, 0);
        let explored = Explored { is_deep: true, life: &life, seconds, ..*self };
        let mut all = tally(Some(done));
        for epoch in life.opened..life.recording.epochs() {
            for state in life.states(epoch, self.extent.deep_states) {
                let found = explored.state(epoch, state);
                let found = found.map_err(|what| format!("of {epoch}.{number}: {what}"))?;
                all = all.and(found);
            }
        }
        Ok(all)
    }

    fn all(&self) -> Result<Tally, String> {
        let epochs = self.life.opened..self.life.recording.epochs();
        let states: Vec<(usize, u64)> = epochs
            .flat_map(|epoch| {
                let states = self.life.states(epoch, self.extent.states);
                states.into_iter().map(move |state| (epoch, state))
            })
            .collect();
        states
            .into_par_iter()
            .map(|(epoch, state)| self.state(epoch, state))
            .try_reduce(Tally::default, |one, other| Ok(one.and(other)))
    }
}

/// Carries `next` out on what `prepared` operations have made, and looks at its crashes.
pub(crate) fn explore_one(
    shape: Shape,
    seed: u64,
    prepared: &[super::load::Draw],
    extent: Extent,
    next: Next<'_>,
) -> Result<Tally, String> {
    let text = |error: agewell_fs::FsError| error.to_string();
    let memory = MemoryDisk::new(shape.device_bytes());
    let fs = shape.make(&memory).map_err(text)?;
    let mut model = Model::new(u64::from(shape.block_bytes));
    let mut refused = 0;
    for (number, draw) in prepared.iter().enumerate() {
        let operation = Operation::of(&model, *draw, 60_000);
        let now = Time { seconds: number as i64, nanoseconds: 0 };
        step(&fs, &mut model, &operation, now, &mut refused)?;
    }
    close(fs).map_err(text)?;
    let model = model.without_orphans();
    let disk = CrashDisk::from_image(&memory.image(), seed);
    let fs = shape.open(&disk).map_err(text)?;
    while fs.work().map_err(text)? {}
    carry_out(&fs, &Operation::Sync, Time::default()).map_err(text)?;
    let seconds = 1_000_000;
    let life = Life::live(&disk, &fs, model, next, seconds)?;
    drop(fs);
    Explored { shape, extent, seed, life: &life, seconds, is_deep: false }.all()
}

/// Looks at the crashes of random operations.
pub(crate) fn explore_seed(seed: u64, extent: Extent) -> Result<Tally, String> {
    let blocks = [3000, 3300, 6000][(seed % 3) as usize];
    let shape = Shape { blocks, block_bytes: 1024, ..Shape::of(seed * 7) };
    let prepared = drawn(seed ^ 1 << 40, [30, 250, 120, 500][(seed % 4) as usize]);
    let draws = drawn(seed, 80);
    // Sometimes each is handed over by itself, and sometimes many wait for a sync.
    let commits = seed % 3 == 1;
    let sync_every = [9, 16, 30, 5][(seed / 2 % 4) as usize];
    let size_max = [8_000, 200_000, 60_000, 500_000][(seed / 3 % 4) as usize];
    let mut next = |model: &Model, at: usize| {
        if at % sync_every == sync_every - 1 {
            return Some(Operation::Sync);
        }
        if commits && at % 2 == 1 {
            return Some(Operation::Commit);
        }
        let draw = draws.get(if commits { at / 2 } else { at })?;
        Some(Operation::of(model, *draw, size_max))
    };
    caught(|| explore_one(shape, seed, &prepared, extent, &mut next))
        .map_err(|what| format!("SEED={seed}: {what}"))
}

/// Looks at the seeds.
pub(crate) fn explore_seeds(seeds: std::ops::Range<u64>, extent: Extent) -> Result<Tally, String> {
    seeds
        .into_par_iter()
        .map(|seed| explore_seed(seed, extent))
        .try_reduce(Tally::default, |one, other| Ok(one.and(other)))
}

/// Looks at the crashes of a file with many extents that becomes short when `blocks` blocks of data wait: where
/// these nearly fill a transaction, its blocks are freed in several.
pub(crate) fn explore_truncation(blocks: u64) -> Result<Tally, String> {
    /// As many extents as are freed in several steps.
    const COMB: u64 = 120;
    let shape = Shape::small(0);
    let by = Maker { uid: 0, gid: 0, mask: 0 };
    let make = |name: &[u8]| {
        let new = New { mode: 0o100_644, device: 0, target: Vec::new() };
        Operation::Make { parent: ROOT_INODE, name: name.to_vec(), new, by }
    };
    let number = |model: &Model, name: &[u8]| model.entries(ROOT_INODE).expect("the root")[name];
    let write = |number: u64, block: u64, blocks: u64| {
        let data = vec![7; (blocks * 1024) as usize];
        Operation::Write { number, offset: block * 1024, data, drops: false }
    };
    let mut next = |model: &Model, at: usize| {
        let at = at as u64;
        Some(match at {
            0 => make(b"comb"),
            1..=COMB => write(number(model, b"comb"), 2 * at, 1),
            _ => match at - COMB {
                1 | 38 => Operation::Sync,
                2 => make(b"other"),
                3..=30 if (at - COMB - 3) * 8 < blocks => {
                    let begin = (at - COMB - 3) * 8;
                    write(number(model, b"other"), begin, (blocks - begin).min(8))
                }
                3..=30 => Operation::Work,
                31 => {
                    Operation::SetSize { number: number(model, b"comb"), size: 1024, drops: false }
                }
                32..=36 => write(number(model, b"other"), (at - COMB - 32) * 60, 60),
                37 => Operation::SetSize {
                    number: number(model, b"comb"),
                    size: 99_999,
                    drops: false,
                },
                _ => return None,
            },
        })
    };
    let extent = Extent { states: 8, goes_on: 8, deep_states: 1 };
    caught(|| explore_one(shape, blocks, &[], extent, &mut next))
        .map_err(|what| format!("{blocks} blocks wait: {what}"))
}

/// As many blocks as nearly fill a transaction.
pub(crate) const TRUNCATIONS: std::ops::Range<u64> = 100..160;
