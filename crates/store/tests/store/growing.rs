//! Stores that take the room of a device that has become larger: whole, or cut short at any write.

use agewell_core::mix;
use agewell_store::StoreError;
use agewell_store::device::{
    CrashDisk, Disk, Fault, FaultDisk, FaultKind, MemoryDisk, Piece, When,
};

use super::explorer::{longer, prepare};
use super::load::{Load, compare, open_store, write};

/// States of each epoch of a growth that are looked at; chosen by us.
const STATES: u64 = 12;

pub(crate) fn load(seed: u64) -> Load {
    Load { transactions: 24, wave_every: 0, grows_at: None, ..Load::tiny(seed) }
}

/// Cuts the growth of a store short wherever it can be; how many states were looked at. All that was in it
/// is there, it goes on, and no copy of the superblock is needed by itself.
pub(crate) fn growth_cut_short(seed: u64) -> Result<u64, String> {
    let load = load(seed);
    let (prepared, steps) = prepare(&load);
    let (before, after) = steps.split_at(12);
    let disk = CrashDisk::from_image(&longer(&prepared.image, 2), seed);
    let open = |error: StoreError| format!("does not open: {error}");
    let store = open_store(&disk, &load.open_options()).map_err(open)?;
    let mut versions = prepared.versions.clone();
    for step in before {
        write(&store, &step.changes).map_err(|error| format!("does not work: {error}"))?;
        step.apply(&mut versions);
    }
    store.sync().map_err(|error| format!("does not work: {error}"))?;
    let first = disk.recording().epochs() - 1;
    let capacity = store.geometry().capacity_blocks();
    store.grow().map_err(|error| format!("does not grow: {error}"))?;
    let recording = disk.recording();
    let (mut looked_at, mut grown) = (0, 0);
    for epoch in first..recording.epochs() {
        let all = recording.states(epoch).len();
        let step = (all / STATES).max(1);
        for number in (0..all.div_ceil(step)).map(|number| (number * step).min(all - 1)) {
            looked_at += 1;
            let at = |what: String| format!("seed {seed}, epoch {epoch}, state {number}: {what}");
            let state = recording.state(epoch, number);
            let disk = CrashDisk::over(&state, mix(number ^ (epoch as u64) << 32));
            let store = open_store(&disk, &load.open_options()).map_err(open).map_err(at)?;
            store.verify();
            compare(&store, &versions).map_err(at)?;
            grown += u64::from(store.geometry().capacity_blocks() > capacity);
            let mut versions = versions.clone();
            for step in after {
                write(&store, &step.changes)
                    .map_err(|error| at(format!("goes not on: {error}")))?;
                step.apply(&mut versions);
            }
            store.sync().map_err(|error| at(format!("goes not on: {error}")))?;
            drop(store);
            // Any one copy of the superblock may be lost.
            let block = vec![0; load.block_bytes as usize];
            let last = disk.size_bytes() - u64::from(load.block_bytes);
            for offset in [0, u64::from(load.block_bytes), last] {
                let mut kept = block.clone();
                disk.read(offset, &mut kept).map_err(|error| at(error.to_string()))?;
                let put = |data: &[u8]| disk.write(&[Piece { offset, data }]);
                put(&block).map_err(|error| at(error.to_string()))?;
                let store = open_store(&disk, &load.open_options()).map_err(open).map_err(at)?;
                compare(&store, &versions)
                    .map_err(|what| at(format!("without {offset}: {what}")))?;
                drop(store);
                put(&kept).map_err(|error| at(error.to_string()))?;
            }
        }
    }
    if grown == 0 || grown == looked_at {
        return Err(format!("{grown} of {looked_at} states are those of a store that has grown"));
    }
    Ok(looked_at)
}

/// Growths that a device has failed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Failed {
    pub(crate) at_all: u64,
    /// Of those, where the next opening finds a store that has grown.
    pub(crate) behind_the_first_superblock: u64,
}

impl Failed {
    pub(crate) fn add(&mut self, other: Self) {
        self.at_all += other.at_all;
        self.behind_the_first_superblock += other.behind_the_first_superblock;
    }
}

/// Has a store grow on a disk that fails once meanwhile, and goes on: nothing is lost, and it grows when it is
/// asked again.
pub(crate) fn growth_on_a_failing_disk(seed: u64) -> Result<Failed, String> {
    let kinds = [(FaultKind::WriteError, 12), (FaultKind::FlushError, 8)];
    let (kind, requests) = kinds[(seed % 2) as usize];
    let load = load(seed);
    let (prepared, steps) = prepare(&load);
    let fault = Fault::new(kind, When::At(vec![seed / 2 % requests]));
    let disk = MemoryDisk::from_image(&longer(&prepared.image, 2));
    let disk = FaultDisk::new(disk, vec![fault], seed);
    disk.set_on(false);
    let mut versions = prepared.versions;
    let at = |what: String| format!("seed {seed}: {what}");
    let error = |error: StoreError| at(error.to_string());
    let store = open_store(&disk, &load.open_options()).map_err(error)?;
    let before = store.geometry().blocks;
    disk.set_on(true);
    let is_refused = store.grow().is_err();
    disk.set_on(false);
    let mut failed = Failed { at_all: is_refused.into(), ..Failed::default() };
    for (number, step) in steps.iter().enumerate() {
        write(&store, &step.changes).map_err(error)?;
        step.apply(&mut versions);
        if number == 8 && is_refused {
            store.sync().map_err(error)?;
            let image = MemoryDisk::from_image(&disk.below().image());
            let left = open_store(image, &load.open_options()).map_err(error)?;
            compare(&left, &versions).map_err(|what| at(format!("left: {what}")))?;
            failed.behind_the_first_superblock += u64::from(left.geometry().blocks > before);
            store.grow().map_err(error)?;
        }
    }
    store.sync().map_err(error)?;
    let mut store = store;
    for _ in 0..2 {
        store.verify();
        if store.geometry().blocks <= before {
            return Err(at("it has not grown".into()));
        }
        compare(&store, &versions).map_err(at)?;
        drop(store);
        store = open_store(&disk, &load.open_options()).map_err(error)?;
    }
    Ok(failed)
}
