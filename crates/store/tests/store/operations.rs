//! Random operations and reopenings, without crashes.

use agewell_store::device::{Disk, MemoryDisk, Piece};
use agewell_store::{FormatOptions, OpenOptions, Store, StoreError, Transaction};

use super::faults::ForgetfulDisk;
use super::load::{AnyStore, Driver, Load, compare, fill, open_store, write};

/// Runs `load`; every transaction is accepted while there is room, and everything is there at any time.
fn run(load: &Load) {
    let (mut store, mut driver) = fill(MemoryDisk::new(load.device_bytes), load).unwrap();
    for step in 0..load.transactions {
        let changes = driver.transaction(load);
        write(&store, &changes).unwrap_or_else(|error| panic!("{load:?}: {error}"));
        driver.apply(&changes);
        if driver.is_sync_due(load) {
            store.sync().unwrap();
        }
        if step % 10 == 0 {
            store.verify();
            compare(&store, &driver.versions).unwrap_or_else(|what| panic!("{load:?}: {what}"));
        }
        if step % 37 == 0 {
            let disk = store.close().unwrap();
            store = open_store(disk, &load.open_options()).unwrap();
            assert!(store.opened().was_closed);
            store.verify();
            compare(&store, &driver.versions).unwrap_or_else(|what| panic!("{load:?}: {what}"));
        }
    }
}

#[test]
fn what_was_written_is_there() {
    for seed in 0..300 {
        run(&Load::tiny(seed));
    }
}

#[test]
fn a_full_store_takes_overwrites_and_deletions() {
    for seed in 0..8 {
        let load = Load { full: 1.0, ..Load::tiny(seed) };
        let disk = MemoryDisk::new(load.device_bytes);
        let geometry = Store::format(&disk, &load.format_options()).unwrap();
        let store = open_store(disk, &load.open_options()).unwrap();
        let blocks = geometry.capacity_blocks() as u32;
        let mut driver = Driver::new(&load, blocks);
        for change in driver.fill(blocks) {
            write(&store, &[change]).unwrap();
            driver.apply(&[change]);
        }
        let data = vec![1; load.block_bytes as usize];
        let more = Transaction { writes: vec![(blocks, &data)], frees: Vec::new() };
        assert!(matches!(store.write(&more), Err(StoreError::NoRoom { more: 1, .. })));
        for block in 0..blocks {
            let change = (block * 7 % blocks, 1_000_000 + u64::from(block));
            write(&store, &[change]).unwrap();
            driver.apply(&[change]);
            store.sync().unwrap();
        }
        compare(&store, &driver.versions).unwrap();
        // One out, one in, in one transaction.
        let swap = Transaction { writes: vec![(blocks, &data)], frees: vec![3] };
        store.write(&swap).unwrap();
        for block in (0..blocks).step_by(2) {
            write(&store, &[(block, 0)]).unwrap();
        }
        store.sync().unwrap();
        store.verify();
    }
}

#[test]
fn a_transaction_that_cannot_be_is_refused_and_changes_nothing() {
    let load = Load::tiny(0);
    let disk = MemoryDisk::new(load.device_bytes);
    let geometry = Store::format(&disk, &load.format_options()).unwrap();
    let store = open_store(disk, &load.open_options()).unwrap();
    let data = vec![1; load.block_bytes as usize];
    let short = vec![1; 9];
    let refused = |store: &AnyStore<'_>, transaction: Transaction<'_>, says: &str| {
        let error = store.write(&transaction).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    let writes = |blocks: &[u32]| blocks.iter().map(|block| (*block, &data[..])).collect();
    refused(&store, Transaction { writes: writes(&[1, 1]), frees: vec![] }, "block 1 twice");
    refused(&store, Transaction { writes: writes(&[1]), frees: vec![1] }, "block 1 twice");
    let beyond = geometry.blocks;
    refused(&store, Transaction { writes: writes(&[beyond]), frees: vec![] }, "beyond");
    let all: Vec<u32> = (0..=store.transaction_blocks_max()).collect();
    refused(&store, Transaction { writes: writes(&all), frees: vec![] }, "at most");
    refused(&store, Transaction { writes: vec![(2, &short)], frees: vec![] }, "9 bytes");
    assert_eq!(store.live_blocks(), 0);
}

#[test]
fn a_scrub_names_what_is_damaged_and_a_copy_of_it_stays_damaged() {
    let load = Load { full: 0.9, ..Load::tiny(0) };
    let disk = MemoryDisk::new(load.device_bytes);
    let geometry = Store::format(&disk, &load.format_options()).unwrap();
    let store = open_store(&disk, &load.open_options()).unwrap();
    let blocks = (geometry.capacity_blocks() as f64 * load.full) as u32;
    let mut driver = Driver::new(&load, blocks);
    for chunk in driver.fill(blocks).chunks(load.blocks_max as usize) {
        write(&store, chunk).unwrap();
        driver.apply(chunk);
    }
    store.sync().unwrap();
    assert!(store.scrub(0..u32::MAX).unwrap().is_empty());
    // Its bytes are found on the disk and one of them changed.
    let mut wanted = vec![0; load.block_bytes as usize];
    let block = blocks / 2;
    assert!(store.read(block, &mut wanted).unwrap());
    let image = disk.image();
    let at = image.chunks(wanted.len()).position(|chunk| chunk == wanted).unwrap() * wanted.len();
    wanted[100] ^= 1;
    disk.write(&[Piece { offset: at as u64, data: &wanted }]).unwrap();
    let is_damaged = |store: &AnyStore<'_>| {
        let mut into = vec![0; load.block_bytes as usize];
        matches!(store.read(block, &mut into), Err(StoreError::Damaged { .. }))
    };
    assert!(is_damaged(&store));
    assert_eq!(store.scrub(0..u32::MAX).unwrap(), [block]);
    // Collections take it along; all others stay whole.
    for step in 0..200 {
        let change = ((step * 3) % (blocks / 2), 5_000 + u64::from(step));
        write(&store, &[change]).unwrap();
        driver.apply(&[change]);
    }
    assert_eq!(store.scrub(0..u32::MAX).unwrap(), [block]);
    store.close().unwrap();
    let store = open_store(&disk, &load.open_options()).unwrap();
    assert!(is_damaged(&store));
    assert_eq!(store.scrub(0..u32::MAX).unwrap(), [block]);
    // Written again, it is whole.
    write(&store, &[(block, 9_999)]).unwrap();
    driver.apply(&[(block, 9_999)]);
    store.sync().unwrap();
    assert!(store.scrub(0..u32::MAX).unwrap().is_empty());
    compare(&store, &driver.versions).unwrap();
}

/// An empty store.
fn empty<D: Disk>(disk: &D, block_bytes: u32, segment_blocks: u32) -> AnyStore<'_> {
    let options = FormatOptions { block_bytes, segment_blocks, ..FormatOptions::new([5; 16]) };
    Store::format(disk, &options).unwrap();
    open_store(disk, &OpenOptions::default()).unwrap()
}

/// More than goes into one record: it is refused at once or found again, never half.
#[test]
fn blocks_freed_by_the_ten_thousands_stay_freed_after_a_crash() {
    let disk = MemoryDisk::new(512 * 90_000);
    let store = empty(&disk, 512, 256);
    let (blocks, data) = (75_000, [7; 512]);
    for first in (0..blocks).step_by(250) {
        let writes = (first..first + 250).map(|block| (block, &data[..])).collect();
        store.write(&Transaction { writes, frees: Vec::new() }).unwrap();
    }
    store.sync().unwrap();
    let all = Transaction { writes: Vec::new(), frees: (0..blocks).collect() };
    let most = store.transaction_frees_max();
    assert!(store.write(&all).unwrap_err().to_string().contains("frees at most"));
    assert_eq!(store.live_blocks(), u64::from(blocks));
    for first in (0..blocks).step_by(most as usize) {
        let frees = (first..(first + most).min(blocks)).collect();
        store.write(&Transaction { writes: Vec::new(), frees }).unwrap();
    }
    store.sync().unwrap();
    drop(store);
    let store = open_store(&disk, &OpenOptions::default()).unwrap();
    assert_eq!(store.live_blocks(), 0);
    assert!(store.opened().replayed > 0, "the records were read, not a map behind them");
}

/// What is written without a sync is flushed now and then; that this fails does not write a group twice.
#[test]
fn a_flush_that_fails_between_syncs_is_tried_again() {
    let failed: u32 = (0..4).map(flushes_that_fail_between_syncs).sum();
    assert!(failed > 0, "nothing was flushed but by syncs");
}

fn flushes_that_fail_between_syncs(seed: u64) -> u32 {
    let disk = ForgetfulDisk::new(&vec![0; 4096 * 40_000], seed);
    // A flush is due after 64 MiB.
    let store = empty(&disk, 4096, 200);
    disk.fail_one_in(2);
    let (mut failed, data) = (0, [3; 4096]);
    for first in (0..35_000).step_by(175) {
        let writes = (first..first + 175).map(|block| (block, &data[..])).collect();
        let transaction = Transaction { writes, frees: Vec::new() };
        while store.write(&transaction).is_err() {
            failed += 1;
        }
    }
    disk.fail_one_in(0);
    store.sync().unwrap();
    store.verify();
    assert_eq!(store.live_blocks(), 35_000);
    drop(store);
    let store = open_store(&disk, &OpenOptions::default()).unwrap();
    assert_eq!(store.live_blocks(), 35_000);
    failed
}

/// Copies of a segment that one record has no room for: in several groups, found again after a crash.
#[test]
fn segments_longer_than_a_ring_record_are_collected() {
    let load = Load {
        block_bytes: 512,
        segment_blocks: 1 << 13,
        device_bytes: 512 * (40 << 13),
        blocks_max: 200,
        full: 1.0,
        free_every: 0,
        ..Load::tiny(0)
    };
    let disk = MemoryDisk::new(load.device_bytes);
    let (store, mut driver) = fill(&disk, &load).unwrap();
    for _ in 0..2500 {
        let step = driver.step(&load);
        write(&store, &step.changes).unwrap();
        step.apply(&mut driver.versions);
    }
    store.sync().unwrap();
    let (log, medium) = (store.log_counts(), store.medium_counts());
    assert!(log.segments_cleaned > 1 && medium.moved_blocks > 20_000, "{log:?} {medium:?}");
    drop(store);
    let store = open_store(&disk, &load.open_options()).unwrap();
    assert!(store.opened().replayed > 3, "{:?}", store.opened());
    store.verify();
    compare(&store, &driver.versions).unwrap();
}
