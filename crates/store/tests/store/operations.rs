//! Random operations and reopenings, without crashes.

use agewell_store::device::MemoryDisk;
use agewell_store::{Store, StoreError, Transaction};

use super::load::{Driver, Load, compare, fill, write};

/// Runs `load`; every transaction is accepted while there is room, and everything is there at any time.
fn run(load: &Load) {
    let (mut store, mut driver) = fill(MemoryDisk::new(load.device_bytes), load).unwrap();
    for step in 0..load.transactions {
        let changes = driver.transaction(load);
        write(&mut store, &changes).unwrap_or_else(|error| panic!("{load:?}: {error}"));
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
            store = Store::open(disk, &load.open_options()).unwrap();
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
        let mut store = Store::open(disk, &load.open_options()).unwrap();
        let blocks = geometry.capacity_blocks() as u32;
        let mut driver = Driver::new(&load, blocks);
        for change in driver.fill(blocks) {
            write(&mut store, &[change]).unwrap();
            driver.apply(&[change]);
        }
        let data = vec![1; load.block_bytes as usize];
        let more = Transaction { writes: vec![(blocks, &data)], frees: Vec::new() };
        assert!(matches!(store.write(&more), Err(StoreError::NoRoom { more: 1, .. })));
        for block in 0..blocks {
            let change = (block * 7 % blocks, 1_000_000 + u64::from(block));
            write(&mut store, &[change]).unwrap();
            driver.apply(&[change]);
            store.sync().unwrap();
        }
        compare(&store, &driver.versions).unwrap();
        // One out, one in, in one transaction.
        let swap = Transaction { writes: vec![(blocks, &data)], frees: vec![3] };
        store.write(&swap).unwrap();
        for block in (0..blocks).step_by(2) {
            write(&mut store, &[(block, 0)]).unwrap();
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
    let mut store = Store::open(disk, &load.open_options()).unwrap();
    let data = vec![1; load.block_bytes as usize];
    let short = vec![1; 9];
    let refused = |store: &mut Store<MemoryDisk>, transaction: Transaction<'_>, says: &str| {
        let error = store.write(&transaction).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    let writes = |blocks: &[u32]| blocks.iter().map(|block| (*block, &data[..])).collect();
    refused(&mut store, Transaction { writes: writes(&[1, 1]), frees: vec![] }, "block 1 twice");
    refused(&mut store, Transaction { writes: writes(&[1]), frees: vec![1] }, "block 1 twice");
    let beyond = geometry.blocks;
    refused(&mut store, Transaction { writes: writes(&[beyond]), frees: vec![] }, "beyond");
    let all: Vec<u32> = (0..=store.transaction_blocks_max()).collect();
    refused(&mut store, Transaction { writes: writes(&all), frees: vec![] }, "at most");
    refused(&mut store, Transaction { writes: vec![(2, &short)], frees: vec![] }, "9 bytes");
    assert_eq!(store.live_blocks(), 0);
}
