//! The explorer: runs whose every crash is looked at, crashes of recovery itself among them.
//!
//! A run is recorded on a small disk. Of each of its epochs states are drawn in which a loss of power may
//! have left the disk; each is opened, checked and held against the transactions. Many go on, are closed
//! or left, and opened again; and of some of these the second part is a run whose every crash is looked at.
//! A state has a name (`seed.epoch.state`, and `.epoch.state` again for a crash of what went on from it),
//! which is the same state each time.

use std::collections::HashSet;
use std::fmt;

use agewell_core::mix;
use agewell_store::device::{CrashDisk, Disk, Recording};
use agewell_store::{Store, StoreError};
use agewell_testkit::caught;
use rayon::prelude::*;

use super::load::{AnyStore, Driver, Load, Step, Versions, fill, open_store, read_version, write};

/// What versions of the first and second life begin above: they differ from all before.
const LIFE: u64 = 1 << 32;

/// Transactions before the last acknowledged whose blocks are read in each state.
const NEAR_TRANSACTIONS: usize = 8;

/// How much is looked at. All numbers are chosen by us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// States of each epoch of a run, at most.
    pub(crate) states: u64,
    /// One of this number of states goes on and is opened again.
    pub(crate) goes_on: u64,
    /// One of this number of states has its second life explored; a multiple of `goes_on`.
    pub(crate) deep: u64,
    /// States of each epoch of a second life.
    pub(crate) deep_states: u64,
}

impl Extent {
    /// What `make test` and `make explore` look at.
    pub(crate) const USUAL: Self = Self { states: 12, goes_on: 4, deep: 32, deep_states: 2 };
}

/// What has been looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) states: u64,
    /// Of those, crashes of what came after a crash.
    pub(crate) deep: u64,
    /// Of all, those in whose epoch or the two before holes were filled.
    pub(crate) active: u64,
    /// Groups that had not become whole.
    pub(crate) dropped: u64,
    pub(crate) replayed: u64,
    pub(crate) went_on: u64,
}

impl Tally {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            states: self.states + other.states,
            deep: self.deep + other.deep,
            active: self.active + other.active,
            dropped: self.dropped + other.dropped,
            replayed: self.replayed + other.replayed,
            went_on: self.went_on + other.went_on,
        }
    }
}

/// A state that is not as it must be.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) seed: u64,
    /// Epoch and state, of the first and perhaps of the second life.
    pub(crate) path: Vec<(usize, u64)>,
    pub(crate) what: String,
    /// Bytes that were written in the epoch and are not there.
    pub(crate) missing_bytes: u64,
    /// What was written in its epoch, and what of it is there.
    pub(crate) description: Vec<String>,
}

impl Violation {
    /// What `CRASH` takes.
    pub(crate) fn name(&self) -> String {
        let path = self.path.iter().map(|(epoch, state)| format!(".{epoch}.{state}"));
        format!("{}{}", self.seed, path.collect::<String>())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, what, missing) = (self.name(), &self.what, self.missing_bytes);
        writeln!(out, "CRASH={name}: {what}\n  {missing} bytes did not arrive")?;
        self.description.iter().try_for_each(|line| writeln!(out, "  {line}"))
    }
}

/// What is known at the moment of an epoch's crashes.
#[derive(Clone)]
struct Moment {
    /// Transactions whose durability was reported, and those that were begun.
    acked: usize,
    begun: usize,
    /// What the blocks held after those acknowledged.
    versions: Versions,
    /// The transactions that were begun since.
    maybe: Vec<Step>,
    /// Blocks that transactions not long before or since have named.
    near: Vec<u32>,
    is_active: bool,
}

/// A run on a disk that remembers.
pub(crate) struct Run {
    pub(crate) recording: Recording,
    moments: Vec<Moment>,
}

impl Run {
    /// The run that `disk` has recorded: `steps`, from `base` on. Holes were filled in the epochs
    /// `filled`. Until the store was open, in the epochs before `opened`, nobody had seen which of the
    /// transactions there are that were not acknowledged at the crash `before` it.
    fn new(
        disk: &CrashDisk,
        base: Versions,
        steps: &[Step],
        filled: &[usize],
        before: Option<(&Moment, usize)>,
    ) -> Self {
        let recording = disk.recording();
        let (mut versions, mut done) = (base, 0);
        let mut moments = Vec::with_capacity(recording.epochs());
        let begins_active = before.is_some_and(|(moment, _)| moment.is_active);
        for epoch in 0..recording.epochs() {
            if let Some((moment, _)) = before.filter(|(_, opened)| epoch < *opened) {
                moments.push(moment.clone());
                continue;
            }
            let marks = recording.marks(epoch);
            let begun =
                marks.iter().filter(|mark| **mark % 2 == 0).max().map_or(0, |mark| mark / 2);
            let acked =
                marks.iter().filter(|mark| **mark % 2 == 1).max().map_or(0, |mark| mark / 2);
            let (begun, acked) = (begun as usize, acked as usize);
            for step in &steps[done..acked] {
                step.apply(&mut versions);
            }
            done = acked;
            let near = &steps[acked.saturating_sub(NEAR_TRANSACTIONS)..begun];
            let mut near: Vec<u32> =
                near.iter().flat_map(|step| step.changes.iter().map(|change| change.0)).collect();
            near.sort_unstable();
            near.dedup();
            let is_active = filled.iter().any(|filled| (*filled..filled + 3).contains(&epoch))
                || begins_active && epoch < 2;
            let (versions, maybe) = (versions.clone(), steps[acked..begun].to_vec());
            moments.push(Moment { acked, begun, versions, maybe, near, is_active });
        }
        Self { recording, moments }
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
}

/// Carries `steps` out; the epochs in which holes were filled are added to `filled`.
fn carry_out(
    disk: &CrashDisk,
    store: &AnyStore<'_>,
    steps: &[Step],
    filled: &mut Vec<usize>,
) -> Result<(), StoreError> {
    let holes = |store: &AnyStore<'_>| {
        let counts = store.log_counts();
        counts.plugged_blocks + counts.threaded_blocks
    };
    let mut before = holes(store);
    for (number, step) in (1..).zip(steps) {
        let mut note = |store: &AnyStore<'_>, back: usize| {
            if holes(store) != before {
                before = holes(store);
                filled.push(disk.recording().epochs() - back);
            }
        };
        // Whatever of it reaches the disk, it does from here on.
        disk.mark(number * 2);
        write(store, &step.changes)?;
        note(store, 1);
        if step.grows {
            store.grow()?;
            // It syncs.
            disk.mark(number * 2 + 1);
            note(store, 2);
        }
        if step.collects {
            store.collect()?;
            note(store, 1);
            store.put_together(&step.together(store.geometry().blocks))?;
            note(store, 1);
            match number % 4 {
                0 => drop(store.discard()?),
                2 => drop(store.trim(0..u64::MAX, 0)?),
                _ => {}
            }
            note(store, 1);
        }
        if step.syncs {
            store.sync()?;
            disk.mark(number * 2 + 1);
            // A flush has ended the epoch in which that was.
            note(store, 2);
        }
    }
    Ok(())
}

/// `image` at the beginning of a device `times` as long, of which the rest holds older copies of it.
pub(crate) fn longer(image: &[u8], times: usize) -> Vec<u8> {
    image.repeat(times)
}

/// A store that was filled, has holes everywhere, and was closed; and what its blocks hold.
pub(crate) struct Prepared {
    pub(crate) image: Vec<u8>,
    pub(crate) versions: Versions,
}

/// A store as `load` says, and what will be done to it.
pub(crate) fn prepare(load: &Load) -> (Prepared, Vec<Step>) {
    let disk = agewell_store::device::MemoryDisk::new(load.device_bytes);
    let (store, mut driver) = fill(&disk, load).unwrap();
    for _ in 0..driver.versions.len() / 4 {
        let step = driver.step(load);
        write(&store, &step.changes).unwrap();
        step.apply(&mut driver.versions);
    }
    store.close().unwrap();
    let mut image = disk.image();
    let versions = driver.versions.clone();
    let mut steps: Vec<Step> = (0..load.transactions).map(|_| driver.step(load)).collect();
    if let Some(at) = load.grows_at {
        image = longer(&image, 2);
        steps[at as usize].grows = true;
    }
    (Prepared { image, versions }, steps)
}

/// `steps` on what was prepared. The crashes are of what comes after opening, which is one of them.
pub(crate) fn record(load: &Load, prepared: &Prepared, steps: &[Step]) -> Result<Run, String> {
    let disk = CrashDisk::from_image(&prepared.image, load.seed);
    let mut filled = Vec::new();
    let recorded = caught(|| {
        let store = open_store(&disk, &load.open_options())
            .map_err(|error| format!("does not open: {error}"))?;
        carry_out(&disk, &store, steps, &mut filled)
            .map_err(|error| format!("does not work: {error}"))
    });
    recorded?;
    Ok(Run::new(&disk, prepared.versions.clone(), steps, &filled, None))
}

/// Which transactions `store` has, of those that it may have: what its blocks hold.
///
/// All blocks are read if `all`, else those that were near, and some.
fn is_a_prefix<D: Disk>(
    store: &Store<D>,
    moment: &Moment,
    draw: u64,
    all: bool,
) -> Result<Versions, String> {
    let blocks = moment.versions.len() as u64;
    let some = (0..16).map(|number| (mix(draw ^ number) % blocks) as u32);
    let looked_at: Vec<u32> = if all {
        (0..blocks as u32).collect()
    } else {
        moment.near.iter().copied().chain(some).collect()
    };
    let mut found = Vec::with_capacity(looked_at.len());
    for block in looked_at {
        found.push((block, read_version(store, block)?));
    }
    let mut versions = moment.versions.clone();
    let mut why = Vec::new();
    for done in moment.acked..=moment.begun {
        if done > moment.acked {
            moment.maybe[done - 1 - moment.acked].apply(&mut versions);
        }
        let live = versions.iter().filter(|version| **version > 0).count() as u64;
        let differs = found.iter().find(|(block, version)| versions[*block as usize] != *version);
        match differs {
            None if live == store.live_blocks() => return Ok(versions),
            None => {
                let counted = store.live_blocks();
                why.push(format!("after {done}: {counted} blocks, not {live}"));
            }
            Some((block, version)) => {
                let expected = versions[*block as usize];
                why.push(format!(
                    "after {done}: block {block} has version {version}, not {expected}"
                ));
            }
        }
    }
    let (acked, begun, why) = (moment.acked, moment.begun, why.join("; "));
    Err(format!("no prefix from {acked} to {begun} is there: {why}"))
}

/// Holds all blocks of `store` against `versions`, and those after each of the transactions `maybe`.
pub(crate) fn prefix_of<D: Disk>(
    store: &Store<D>,
    versions: &[u64],
    maybe: &[Step],
) -> Result<Versions, String> {
    let (versions, maybe) = (versions.to_vec(), maybe.to_vec());
    let (begun, near) = (maybe.len(), Vec::new());
    let moment = Moment { acked: 0, begun, versions, maybe, near, is_active: false };
    is_a_prefix(store, &moment, 0, true)
}

/// Looks at state `number` of `epoch` of `run`; what goes on from it is a run as well, if `goes_on`.
pub(crate) fn check_state(
    load: &Load,
    run: &Run,
    (epoch, number): (usize, u64),
    life: u64,
    goes_on: bool,
    tally: &mut Tally,
) -> Result<Option<Run>, String> {
    let moment = &run.moments[epoch];
    let draw = mix(number ^ mix(epoch as u64 ^ life << 32));
    let state = run.recording.state(epoch, number);
    tally.states += 1;
    tally.deep += u64::from(life > 1);
    tally.active += u64::from(moment.is_active);
    if !goes_on {
        let store = open_store(&state, &load.open_options())
            .map_err(|error| format!("does not open: {error}"))?;
        tally.replayed += store.opened().replayed;
        tally.dropped += store.opened().dropped;
        store.verify();
        is_a_prefix(&store, moment, draw, draw.is_multiple_of(8))?;
        return Ok(None);
    }
    let disk = CrashDisk::over(&state, draw);
    let store = open_store(&disk, &load.open_options())
        .map_err(|error| format!("does not open: {error}"))?;
    let opened = disk.recording().epochs() - 1;
    tally.replayed += store.opened().replayed;
    tally.dropped += store.opened().dropped;
    store.verify();
    tally.went_on += 1;
    let base = is_a_prefix(&store, moment, draw, true)?;
    // It goes on.
    let mut driver = Driver::new(&Load { seed: draw, ..load.clone() }, base.len() as u32);
    let mut steps: Vec<Step> = (0..4).map(|_| driver.step(load)).collect();
    let written = steps.iter_mut().flat_map(|step| &mut step.changes).filter(|change| change.1 > 0);
    written.for_each(|change| change.1 += LIFE * life);
    let last = steps.last_mut().expect("there are four");
    (last.syncs, last.collects) = (true, true);
    let mut filled = Vec::new();
    carry_out(&disk, &store, &steps, &mut filled)
        .map_err(|error| format!("goes not on: {error}"))?;
    store.verify();
    if draw & 1 == 0 {
        store.close().map_err(|error| format!("does not close: {error}"))?;
    }
    let next = Run::new(&disk, base, &steps, &filled, Some((moment, opened)));
    let store = open_store(&disk, &load.open_options())
        .map_err(|error| format!("does not open again: {error}"))?;
    store.verify();
    let last = next.moments.last().expect("there is an epoch");
    is_a_prefix(&store, last, draw, draw.is_multiple_of(5))
        .map_err(|what| format!("after going on: {what}"))?;
    Ok(Some(next))
}

/// The violation at `path` of `run`, in which a state was found wrong.
pub(crate) fn violation(
    load: &Load,
    run: &Run,
    path: Vec<(usize, u64)>,
    what: String,
) -> Violation {
    let (epoch, number) = *path.last().expect("a state has a name");
    let states = run.recording.states(epoch);
    let moment = &run.moments[epoch];
    let mut description = vec![
        format!("{load:?}"),
        format!(
            "acknowledged {}, begun {}; {}",
            moment.acked,
            moment.begun,
            states.describe(number)
        ),
    ];
    let pieces = run.recording.pieces(epoch).enumerate();
    description.extend(pieces.map(|(number, (offset, data))| {
        let what = match data {
            Some(data) if data[..2] == *b"AW" || data[..4] == *b"AGEW" => {
                String::from_utf8_lossy(&data[..4]).into_owned()
            }
            Some(_) => "data".to_owned(),
            None => "discard".to_owned(),
        };
        format!("piece {number}: {what}, {} bytes at byte {offset}", data.map_or(0, <[u8]>::len))
    }));
    let missing_bytes = states.missing_bytes(number);
    Violation { seed: load.seed, path, what, missing_bytes, description }
}

/// Looks at the crashes of `run`, and of what goes on from some.
pub(crate) fn explore_run(
    load: &Load,
    run: &Run,
    extent: Extent,
    tally: &mut Tally,
) -> Result<(), Violation> {
    let mut counter = mix(load.seed);
    for epoch in 0..run.moments.len() {
        for number in run.states(epoch, extent.states) {
            counter += 1;
            let goes_on = counter.is_multiple_of(extent.goes_on);
            let checked = caught(|| check_state(load, run, (epoch, number), 1, goes_on, tally));
            let path = vec![(epoch, number)];
            let next = checked.map_err(|what| violation(load, run, path.clone(), what))?;
            let Some(next) = next.filter(|_| counter.is_multiple_of(extent.deep)) else { continue };
            for deep_epoch in 0..next.moments.len() {
                for deep_number in next.states(deep_epoch, extent.deep_states) {
                    let at = (deep_epoch, deep_number);
                    counter += 1;
                    let goes_on = counter.is_multiple_of(2 * extent.goes_on);
                    let checked = caught(|| check_state(load, &next, at, 2, goes_on, tally));
                    let path = || [&path[..], &[at]].concat();
                    checked.map_err(|what| violation(load, &next, path(), what))?;
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn unrecorded(load: &Load, what: String) -> Violation {
    let description = vec![format!("{load:?}")];
    Violation { seed: load.seed, path: Vec::new(), what, missing_bytes: 0, description }
}

/// Looks at the crashes of the run with `load`.
pub(crate) fn explore(load: &Load, extent: Extent) -> Result<Tally, Violation> {
    let (prepared, steps) = caught(|| Ok(prepare(load))).map_err(|what| unrecorded(load, what))?;
    let run = record(load, &prepared, &steps).map_err(|what| unrecorded(load, what))?;
    let mut tally = Tally::default();
    explore_run(load, &run, extent, &mut tally)?;
    Ok(tally)
}

/// Looks at the crashes of the runs with `seeds`; the violation of the first of them in which there is one.
pub(crate) fn explore_seeds(
    seeds: std::ops::Range<u64>,
    load: impl Fn(u64) -> Load + Sync,
    extent: Extent,
) -> Result<Tally, Violation> {
    let found: Vec<_> = seeds.into_par_iter().map(|seed| explore(&load(seed), extent)).collect();
    found.into_iter().try_fold(Tally::default(), |sum, tally| Ok(sum.and(tally?)))
}
