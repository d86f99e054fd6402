//! Faults of devices, and damage to what lies there.

use agewell_store::device::{Fault, FaultDisk, FaultKind, MemoryDisk, When};
use agewell_store::{Store, StoreError};
use agewell_testkit::caught;

use super::corruption::{AtRest, damage_every_block, swap_records};
use super::faults;
use super::load::{Load, data_of, open_store, read_version, write};

fn all(seeds: std::ops::Range<u64>, case: fn(u64) -> Result<(), String>) {
    let found = seeds.map(|seed| (seed, caught(|| case(seed))));
    let wrong: Vec<_> = found.filter_map(|(seed, found)| Some((seed, found.err()?))).collect();
    let (count, first) = (wrong.len(), wrong.first());
    assert!(wrong.is_empty(), "{count} seeds go wrong; the first: {first:?}");
}

#[test]
fn after_errors_that_pass_nothing_is_lost() {
    all(0..200, faults::errors_that_pass);
}

#[test]
fn errors_that_stay_take_nothing_else_with_them() {
    all(0..200, faults::errors_that_stay);
}

#[test]
fn a_lie_of_the_device_is_found() {
    all(0..300, faults::one_lie);
}

#[test]
fn a_device_that_fills_says_so() {
    all(0..60, faults::a_device_that_fills);
}

#[test]
fn what_a_failing_device_does_not_take_does_not_grow_in_memory() {
    for is_together in [false, true] {
        let load = Load { device_bytes: 512 * 64 * 1000, ..Load::long_segments(0) };
        let fault = Fault::new(FaultKind::WriteError, When::Always);
        let disk = FaultDisk::new(MemoryDisk::new(load.device_bytes), vec![fault], 0);
        disk.set_on(false);
        Store::format(&disk, &load.format_options()).unwrap();
        let store = open_store(&disk, &load.open_options()).unwrap();
        let blocks = store.transaction_blocks_max();
        let changes = |version| (0..blocks).map(|block| (block, version)).collect::<Vec<_>>();
        write(&store, &changes(1)).unwrap();
        store.sync().unwrap();
        disk.set_on(true);
        let (mut taken, mut refused, mut versions) = (0, 0, vec![1]);
        for version in 2..300 {
            let done = if is_together {
                let mut data = vec![0; (blocks * load.block_bytes) as usize];
                let contents = data.chunks_exact_mut(load.block_bytes as usize);
                (0..).zip(contents).for_each(|(block, into)| data_of(block, version, into));
                let contents = data.chunks_exact(load.block_bytes as usize);
                store.write_together((0..).zip(contents).collect())
            } else {
                write(&store, &changes(version))
            };
            match done {
                Ok(()) => (taken, versions) = (taken + 1, vec![version]),
                Err(StoreError::Device { .. }) => {
                    refused += 1;
                    // It may have been taken in all the same.
                    versions.push(version);
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(taken < 8 && refused > 200, "{taken} taken in, {refused} refused");
        disk.set_on(false);
        store.sync().unwrap();
        let found = read_version(&store, 0).unwrap();
        assert!(versions.contains(&found), "version {found}, and not one of {versions:?}");
        for block in 0..blocks {
            assert_eq!(read_version(&store, block), Ok(found));
        }
    }
}

#[test]
fn damage_to_a_closed_store_is_found_and_all_else_is_read() {
    let closed = AtRest::closed(0);
    let found = damage_every_block(&closed, 150, 90).unwrap_or_else(|what| panic!("{what}"));
    println!("{found:?}");
    assert!(
        found.injections > 60_000 && found.damaged > 10_000 && found.refused < 100,
        "{found:?}"
    );
}

#[test]
fn damage_to_a_crashed_store_is_found() {
    let mut injections = 0;
    for seed in 0..8 {
        let crashed = AtRest::crashed(seed);
        let alone = damage_every_block(&crashed, 12, 0).unwrap_or_else(|what| panic!("{what}"));
        println!("{alone:?}");
        assert!(alone.damaged > 100 && alone.refused > 10, "{alone:?}");
        let pairs = damage_every_block(&crashed, 0, 8).unwrap_or_else(|what| panic!("{what}"));
        println!("{pairs:?}");
        injections += alone.injections + pairs.injections;
        let swapped = swap_records(&crashed).unwrap_or_else(|what| panic!("{what}"));
        assert!(swapped.injections > 100, "{swapped:?}");
        injections += swapped.injections;
    }
    // What is damaged in the ring may have said where records behind it are: they are found all the same.
    let mut refused = 0;
    for seed in 0..100 {
        let crashed = AtRest::crashed(seed);
        let found = damage_every_block(&crashed, 1, 0).unwrap_or_else(|what| panic!("{what}"));
        refused += found.refused;
        injections += found.injections;
    }
    println!("{injections}, {refused} refused");
    assert!(injections > 40_000);
}
