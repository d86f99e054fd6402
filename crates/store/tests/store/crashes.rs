//! Crashes at every moment: whatever a loss of power leaves is opened, and what was acknowledged is
//! there, what was not is whole or absent, in order, and the store goes on working.

use agewell_store::device::{CrashDisk, Disk, Recording};
use agewell_store::{Store, StoreError};

use super::load::{Change, Driver, Load, Versions, compare, write};

/// A run on a disk that remembers, and what the blocks held after each transaction.
struct Run {
    recording: Recording,
    /// What the blocks hold at the beginning.
    base: Versions,
    transactions: Vec<Vec<Change>>,
}

/// Carries `load` out. The disk is filled and closed first, so that the crashes are of what comes after.
fn record(load: &Load) -> Run {
    let disk = CrashDisk::new(load.device_bytes, load.seed);
    let geometry = Store::format(&disk, &load.format_options()).unwrap();
    let mut store = Store::open(disk, &load.open_options()).unwrap();
    let blocks = (geometry.capacity_blocks() as f64 * load.full) as u32;
    let mut driver = Driver::new(load, blocks);
    for chunk in driver.fill(blocks).chunks(load.blocks_max as usize) {
        write(&mut store, chunk).unwrap();
        driver.apply(chunk);
    }
    // Holes everywhere.
    for _ in 0..blocks / 4 {
        let changes = driver.transaction(load);
        write(&mut store, &changes).unwrap();
        driver.apply(&changes);
    }
    let disk = store.close().unwrap();
    let mut image = vec![0; disk.size_bytes() as usize];
    disk.read(0, &mut image).unwrap();
    let disk = CrashDisk::from_image(&image, load.seed);
    let base = driver.versions.clone();
    let mut store = Store::open(&disk, &load.open_options()).unwrap();
    let mut transactions = Vec::new();
    for _ in 0..load.transactions {
        let changes = driver.transaction(load);
        transactions.push(changes.clone());
        // Whatever of it reaches the disk, it does from here on.
        disk.mark(transactions.len() as u64 * 2);
        write(&mut store, &changes).unwrap();
        if driver.is_sync_due(load) {
            store.sync().unwrap();
            disk.mark(transactions.len() as u64 * 2 + 1);
        }
        driver.apply(&changes);
    }
    Run { recording: disk.recording(), base, transactions }
}

/// What marks of the epochs up to `epoch` say: transactions begun, and acknowledged before it.
fn known(recording: &Recording, epoch: usize) -> (usize, usize) {
    let begun = (0..=epoch).flat_map(|epoch| recording.marks(epoch)).filter(|mark| **mark % 2 == 0);
    let begun = begun.max().map_or(0, |mark| mark / 2) as usize;
    let acked = (0..=epoch).flat_map(|epoch| recording.marks(epoch)).filter(|mark| **mark % 2 == 1);
    (begun, acked.max().map_or(0, |mark| mark / 2) as usize)
}

/// Holds `store` against every prefix of transactions from the acknowledged to the begun.
fn is_a_prefix<D: Disk>(
    store: &Store<D>,
    run: &Run,
    (begun, acked): (usize, usize),
) -> Result<Versions, String> {
    let mut versions = run.base.clone();
    let mut why = String::new();
    for done in 0..=begun {
        if done > 0 {
            for (block, version) in &run.transactions[done - 1] {
                versions[*block as usize] = *version;
            }
        }
        if done < acked {
            continue;
        }
        match compare(store, &versions) {
            Ok(()) => return Ok(versions),
            Err(what) => why = format!("{why}\n  after {done}: {what}"),
        }
    }
    Err(format!("no prefix from {acked} to {begun} is there:{why}"))
}

fn check_state(load: &Load, run: &Run, epoch: usize, number: u64) -> Result<(), String> {
    let states = run.recording.states(epoch);
    let state = states.state(number);
    let mut store = Store::open(state, &load.open_options())
        .map_err(|error: StoreError| format!("does not open: {error}"))?;
    store.verify();
    let mut versions = is_a_prefix(&store, run, known(&run.recording, epoch))?;
    // It goes on.
    let mut driver = Driver::new(&Load { seed: number, ..load.clone() }, versions.len() as u32);
    for _ in 0..4 {
        let mut changes = driver.transaction(load);
        changes.iter_mut().filter(|change| change.1 > 0).for_each(|change| change.1 += 1 << 32);
        write(&mut store, &changes).map_err(|error| format!("goes not on: {error}"))?;
        for (block, version) in changes {
            versions[block as usize] = version;
        }
    }
    store.sync().map_err(|error| format!("goes not on: {error}"))?;
    let state = store.close().map_err(|error| format!("does not close: {error}"))?;
    let store = Store::open(state, &load.open_options())
        .map_err(|error| format!("does not open again: {error}"))?;
    store.verify();
    compare(&store, &versions).map_err(|what| format!("after going on: {what}"))
}

fn explore(load: &Load, states_max: u64) -> u64 {
    let run = record(load);
    let mut checked = 0;
    let epochs = run.recording.epochs();
    let each = (states_max / epochs as u64).max(1);
    for epoch in 0..epochs {
        let states = run.recording.states(epoch);
        let all: Vec<u64> = states.distinct().map(|(number, _)| number).collect();
        let step = (all.len() as u64).div_ceil(each).max(1) as usize;
        for number in all.into_iter().step_by(step) {
            let checked_state = std::panic::catch_unwind(|| check_state(load, &run, epoch, number));
            match checked_state {
                Ok(Ok(())) => checked += 1,
                Ok(Err(what)) => panic!(
                    "seed {} epoch {epoch} state {number} ({}): {what}\n{load:?}",
                    load.seed,
                    states.describe(number)
                ),
                Err(_) => panic!("seed {} epoch {epoch} state {number}: panic", load.seed),
            }
        }
    }
    checked
}

#[test]
fn every_crash_leaves_a_prefix() {
    let seeds: u64 = std::env::var("SEEDS").map_or(12, |seeds| seeds.parse().unwrap());
    let first: u64 = std::env::var("SEED").map_or(0, |seed| seed.parse().unwrap());
    let mut checked = 0;
    for seed in first..first + seeds {
        let load = Load { transactions: 40, ..Load::tiny(seed) };
        checked += explore(&load, 400);
    }
    println!("{checked} states");
    assert!(checked > 500);
}
