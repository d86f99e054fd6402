//! Devices that fail: what was acknowledged is there or named as damaged, never other data; nothing panics
//! or goes on for ever; after errors that pass, nothing is lost.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};

use agewell_core::{RandomStreams, Stream, mix, uniform_below};
use agewell_store::StoreError;
use agewell_store::device::{Disk, Fault, FaultDisk, FaultKind, Lasts, MemoryDisk, Piece, When};

use super::explorer::{prefix_of, prepare};
use super::load::{AnyStore, Load, Step, Versions, open_store, read_version, write};

const SECTOR_BYTES: u64 = 512;

/// A disk whose flushes fail now and then. What was written since the last is then on the medium or not,
/// sector by sector, and is not tried again by the next, as on Linux.
pub(crate) struct ForgetfulDisk {
    live: MemoryDisk,
    durable: MemoryDisk,
    state: Mutex<Forgetful>,
}

struct Forgetful {
    /// Sectors written since the last flush.
    dirty: BTreeSet<u64>,
    random: Stream,
    /// One of this number of flushes fails; 0 for none.
    one_in: u64,
}

impl ForgetfulDisk {
    pub(crate) fn new(image: &[u8], seed: u64) -> Self {
        let random = RandomStreams::new(seed).stream("forgetful");
        let state = Forgetful { dirty: BTreeSet::new(), random, one_in: 0 };
        let [live, durable] = [image, image].map(MemoryDisk::from_image);
        Self { live, durable, state: Mutex::new(state) }
    }

    /// One of this number of flushes fails from here on; 0 for none.
    pub(crate) fn fail_one_in(&self, one_in: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).one_in = one_in;
    }

    /// What was not flushed arrives in part: to `to`, and what does not is as it was before in `lost`.
    fn forget(
        state: &mut Forgetful,
        live: &MemoryDisk,
        durable: &MemoryDisk,
        forgets: bool,
    ) -> io::Result<()> {
        let mut bytes = [0; SECTOR_BYTES as usize];
        for sector in std::mem::take(&mut state.dirty) {
            let arrives = !forgets || uniform_below(&mut state.random, 2) == 1;
            let (from, to) = if arrives { (live, durable) } else { (durable, live) };
            from.read(sector * SECTOR_BYTES, &mut bytes)?;
            to.write(&[Piece { offset: sector * SECTOR_BYTES, data: &bytes }])?;
        }
        Ok(())
    }

    /// The power fails: what was not flushed is there or not.
    pub(crate) fn lose_power(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Self::forget(&mut state, &self.live, &self.durable, true).expect("memory does not fail");
    }
}

impl Disk for ForgetfulDisk {
    fn size_bytes(&self) -> u64 {
        self.live.size_bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.live.read(offset, into)
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        self.live.write(pieces)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in pieces {
            let first = piece.offset / SECTOR_BYTES;
            state.dirty.extend(first..first + piece.data.len() as u64 / SECTOR_BYTES);
        }
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let fails = state.one_in > 0 && {
            let one_in = state.one_in;
            uniform_below(&mut state.random, one_in) == 0
        };
        Self::forget(&mut state, &self.live, &self.durable, fails)?;
        if fails { Err(io::Error::other("a flush failed")) } else { Ok(()) }
    }
}

/// What a transaction, a sync or a collection may be tried before it counts as never to succeed: a hundred and
/// more pieces may have to be written, each of which fails one time in twenty.
const TRIES: u32 = 30_000;

/// Tries `work` until it succeeds; none if the device has failed each time.
fn patiently<T>(mut work: impl FnMut() -> Result<T, StoreError>) -> Result<Option<T>, String> {
    for _ in 0..TRIES {
        match work() {
            Ok(done) => return Ok(Some(done)),
            Err(StoreError::Device { .. }) => {}
            Err(error) => return Err(format!("says {error:?}")),
        }
    }
    Ok(None)
}

/// A store under a load, and what it has promised.
struct Worked<'a> {
    store: AnyStore<'a>,
    /// What the blocks hold, if nothing is lost.
    versions: Versions,
    /// What they held at the last sync that succeeded, and what was accepted since.
    acked: Versions,
    since: Vec<Step>,
    /// Whether the device let nothing more be done.
    is_stuck: bool,
}

impl<'a> Worked<'a> {
    fn new(store: AnyStore<'a>, versions: &[u64]) -> Self {
        let (versions, acked) = (versions.to_vec(), versions.to_vec());
        Self { store, versions, acked, since: Vec::new(), is_stuck: false }
    }

    /// Carries `steps` out, each tried until it succeeds, and reads a block after each.
    fn work(&mut self, steps: &[Step], may_damage: bool) -> Result<(), String> {
        for (number, step) in (0_u64..).zip(steps) {
            let Some(()) = patiently(|| write(&self.store, &step.changes))? else {
                self.is_stuck = true;
                return Ok(());
            };
            step.apply(&mut self.versions);
            self.since.push(step.clone());
            if step.collects {
                patiently(|| self.store.collect())?;
                let blocks = step.together(self.store.geometry().blocks);
                patiently(|| self.store.put_together(&blocks))?;
            }
            if step.syncs {
                let Some(()) = patiently(|| self.store.sync())? else {
                    self.is_stuck = true;
                    return Ok(());
                };
                self.acked.clone_from(&self.versions);
                self.since.clear();
            }
            let block = mix(number) % self.versions.len() as u64;
            self.look_at(block as u32, may_damage)?;
        }
        Ok(())
    }

    /// Reads a block: it is as it must be, or damaged if that may be, or the device does not let it be read.
    fn look_at(&self, block: u32, may_damage: bool) -> Result<(), String> {
        let mut said = String::new();
        for _ in 0..8 {
            match read_version(&self.store, block) {
                Ok(version) if version == self.versions[block as usize] => return Ok(()),
                Ok(version) => {
                    let expected = self.versions[block as usize];
                    return Err(format!("block {block} has version {version}, not {expected}"));
                }
                Err(what) => said = what,
            }
        }
        if may_damage && !said.contains("never written") { Ok(()) } else { Err(said) }
    }

    fn look_at_all(&self, may_damage: bool) -> Result<(), String> {
        self.store.verify();
        (0..self.versions.len() as u32).try_for_each(|block| self.look_at(block, may_damage))
    }
}

fn load(seed: u64) -> Load {
    Load { transactions: 120, ..Load::tiny(seed) }
}

/// Errors of reads, writes and flushes that pass, and the power that fails in the end: nothing is lost.
pub(crate) fn errors_that_pass(seed: u64) -> Result<(), String> {
    let load = load(seed);
    let (prepared, steps) = prepare(&load);
    let faults = vec![
        Fault::new(FaultKind::ReadError, When::Chance(1, 100)),
        Fault::new(FaultKind::WriteError, When::Chance(1, 20)),
        Fault::new(FaultKind::FlippedBit, When::Chance(1, 200)),
    ];
    let disk = FaultDisk::new(ForgetfulDisk::new(&prepared.image, seed), faults, seed);
    disk.set_on(false);
    let open = || open_store(&disk, &load.open_options());
    let mut worked = Worked::new(open().map_err(|error| error.to_string())?, &prepared.versions);
    disk.set_on(true);
    disk.below().fail_one_in(5);
    // A third of the time the power fails when something has just been written.
    let until = if seed.is_multiple_of(3) { steps.len() - seed as usize % 20 } else { steps.len() };
    worked.work(&steps[..until], false)?;
    if worked.is_stuck {
        return Err("errors that pass let nothing be done".to_owned());
    }
    let Worked { store, acked, since, versions, .. } = worked;
    if seed.is_multiple_of(3) {
        drop(store);
        disk.below().lose_power();
        disk.below().fail_one_in(0);
        disk.set_on(false);
    } else if seed % 3 == 1 {
        // Only the process ends, and the errors go on.
        drop(store);
    } else {
        disk.set_on(false);
        disk.below().fail_one_in(0);
        store.sync().map_err(|error| format!("after the errors: {error}"))?;
        prefix_of(&store, &versions, &[]).map_err(|what| format!("after the errors: {what}"))?;
        store.close().map_err(|error| format!("after the errors: {error}"))?;
        let store = open().map_err(|error| format!("after closing: {error}"))?;
        return prefix_of(&store, &versions, &[]).map(drop);
    }
    // Most of what is read while a store is opened is not read twice: flips are left out. Some hundred reads,
    // and where the ring is full as many writes, all succeed in one of a few tries.
    let only_errors = vec![
        Fault::new(FaultKind::ReadError, When::Chance(1, 100)),
        Fault::new(FaultKind::WriteError, When::Chance(1, 16)),
    ];
    let disk = FaultDisk::new(disk.below(), only_errors, seed);
    disk.set_on(seed % 3 == 1);
    let opened = patiently(|| open_store(&disk, &load.open_options()))?;
    let Some(store) = opened else { return Err("does not open again".to_owned()) };
    disk.set_on(false);
    prefix_of(&store, &acked, &since).map(drop)
}

/// Sectors that cannot be read, until they are written or for good, or not be written, or no flush that
/// succeeds any more: all else is read, and nothing is wrong.
pub(crate) fn errors_that_stay(seed: u64) -> Result<(), String> {
    let load = load(seed);
    let (prepared, steps) = prepare(&load);
    let size = prepared.image.len() as u64;
    let first = mix(seed) % (size / 512) * 512;
    let within = first..first + 512 * (1 + mix(seed ^ 9) % 40);
    let fault = match seed % 4 {
        0 => Fault {
            within,
            lasts: Lasts::UntilWritten,
            ..Fault::new(FaultKind::ReadError, When::Chance(1, 2))
        },
        1 => Fault {
            within,
            lasts: Lasts::ForGood,
            ..Fault::new(FaultKind::ReadError, When::Chance(1, 2))
        },
        2 => Fault {
            within,
            lasts: Lasts::ForGood,
            ..Fault::new(FaultKind::WriteError, When::Chance(1, 2))
        },
        _ => Fault::new(FaultKind::FlushError, When::From(20 + seed % 50)),
    };
    let lasts = fault.lasts;
    let disk = FaultDisk::new(MemoryDisk::from_image(&prepared.image), vec![fault], seed);
    let store = match open_store(&disk, &load.open_options()) {
        Ok(store) => store,
        Err(StoreError::Device { .. } | StoreError::Format { .. }) => return Ok(()),
        Err(error) => return Err(format!("says {error:?}")),
    };
    let mut worked = Worked::new(store, &prepared.versions);
    worked.work(&steps, true)?;
    if worked.is_stuck && lasts == Lasts::UntilWritten {
        return Err(
            "sectors that cannot be read until they are written let nothing be done".to_owned()
        );
    }
    worked.look_at_all(true)?;
    let (acked, since) = (worked.acked.clone(), worked.since.clone());
    drop(worked);
    disk.set_on(false);
    let store = match open_store(&disk, &load.open_options()) {
        Ok(store) => store,
        Err(StoreError::Device { .. } | StoreError::Format { .. }) => return Ok(()),
        Err(error) => return Err(format!("opened again, says {error:?}")),
    };
    for block in 0..acked.len() as u32 {
        let changes = since.iter().flat_map(|step| &step.changes);
        let mut may = changes.filter(|change| change.0 == block).map(|change| change.1);
        match read_version(&store, block) {
            Ok(version) if version == acked[block as usize] || may.any(|may| may == version) => {}
            Ok(version) => {
                let expected = acked[block as usize];
                return Err(format!(
                    "opened again: block {block} has version {version}, not {expected}"
                ));
            }
            Err(what) if what.contains("never written") => return Err(what),
            Err(_) => {}
        }
    }
    Ok(())
}

/// One request that the device reports as done and has done otherwise: what it has hit is named, or is not
/// needed; all else is there.
pub(crate) fn one_lie(seed: u64) -> Result<(), String> {
    let load = load(seed);
    let (prepared, steps) = prepare(&load);
    let kinds = [
        FaultKind::TornWrite,
        FaultKind::DroppedWrite,
        FaultKind::MisdirectedWrite,
        FaultKind::MisdirectedRead,
        FaultKind::FlippedBit,
        FaultKind::IgnoredFlush,
    ];
    let kind = kinds[(seed % 6) as usize];
    let lasts = if (seed / 6).is_multiple_of(2) { Lasts::Once } else { Lasts::UntilWritten };
    let fault = Fault { lasts, ..Fault::new(kind, When::At(vec![mix(seed) % 120])) };
    let disk = FaultDisk::new(MemoryDisk::from_image(&prepared.image), vec![fault], seed);
    disk.set_on(false);
    let open = || open_store(&disk, &load.open_options());
    let mut worked = Worked::new(open().map_err(|error| error.to_string())?, &prepared.versions);
    disk.set_on(true);
    worked.work(&steps[..80], true)?;
    disk.set_on(false);
    worked.work(&steps[80..], true)?;
    for _ in 0..3 {
        worked.store.sync().map_err(|error| format!("does not sync: {error}"))?;
        let again = Step { syncs: true, ..steps[0].clone() };
        worked.work(&[again], true)?;
    }
    worked.look_at_all(true)?;
    let Worked { store, versions, .. } = worked;
    if (seed / 12).is_multiple_of(2) {
        drop(store);
    } else {
        store.close().map_err(|error| format!("does not close: {error}"))?;
    }
    let store = match open() {
        Ok(store) => store,
        Err(StoreError::Format { .. }) => return Ok(()),
        Err(error) => return Err(format!("opened again, says {error:?}")),
    };
    Worked::new(store, &versions).look_at_all(true).map_err(|what| format!("opened again: {what}"))
}

/// A device that has less room than it promises: it says so, and what was acknowledged is there.
pub(crate) fn a_device_that_fills(seed: u64) -> Result<(), String> {
    let load = load(seed);
    let (prepared, steps) = prepare(&load);
    let share = 3 + mix(seed) % 6;
    let room = load.device_bytes / 10 * share;
    let disk =
        FaultDisk::new(MemoryDisk::from_image(&prepared.image), Vec::new(), seed).with_room(room);
    let store = match open_store(&disk, &load.open_options()) {
        Ok(store) => store,
        Err(StoreError::Device { .. }) => return Ok(()),
        Err(error) => return Err(format!("says {error:?}")),
    };
    let mut worked = Worked::new(store, &prepared.versions);
    worked.work(&steps, false)?;
    worked.look_at_all(false)?;
    let (acked, since) = (worked.acked.clone(), worked.since.clone());
    drop(worked);
    let whole = MemoryDisk::from_image(&disk.below().image());
    let store = open_store(whole, &load.open_options())
        .map_err(|error| format!("opened again: {error}"))?;
    prefix_of(&store, &acked, &since).map(drop)
}
