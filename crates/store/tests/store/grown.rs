//! Stores that have grown, or were refused to: they are as they were, and take what there is room for.

use std::sync::Arc;

use agewell_store::StoreError;
use agewell_store::device::MemoryDisk;

use super::explorer::{Extent, explore_seeds, longer, prepare};
use super::growing::{Failed, growth_cut_short, growth_on_a_failing_disk, load};
use super::load::{Load, compare, open_store, write};

#[test]
fn growth_cut_short_leaves_the_store_as_it_was_or_as_it_will_be() {
    let looked_at =
        (0..24).map(|seed| growth_cut_short(seed).unwrap_or_else(|what| panic!("{what}")));
    assert!(looked_at.sum::<u64>() > 1_500);
}

#[test]
fn every_crash_of_a_store_that_grows_while_it_is_used_leaves_a_prefix() {
    let load = |seed| Load { transactions: 40, grows_at: Some(12), ..Load::tiny(seed) };
    let found = explore_seeds(0..24, load, Extent::USUAL);
    let tally = found.unwrap_or_else(|violation| panic!("{violation}"));
    assert!(tally.states > 10_000 && tally.went_on > 1_000, "{tally:?}");
}

#[test]
fn growth_goes_on_where_a_device_has_failed_it() {
    let mut failed = Failed::default();
    for seed in 0..160 {
        failed.add(growth_on_a_failing_disk(seed).unwrap_or_else(|what| panic!("{what}")));
    }
    assert!(failed.at_all > 80, "{failed:?}");
    assert!((10..failed.at_all - 10).contains(&failed.behind_the_first_superblock), "{failed:?}");
}

#[test]
fn a_store_grows_twice_and_takes_what_there_is_room_for() {
    for seed in 0..12 {
        let load = load(seed);
        let (prepared, steps) = prepare(&load);
        let mut disk = Arc::new(MemoryDisk::from_image(&prepared.image));
        let mut versions = prepared.versions;
        let mut store = open_store(Arc::clone(&disk), &load.open_options()).unwrap();
        for times in [2, 3] {
            let image = disk.image();
            let before = store.geometry().clone();
            drop(store);
            disk = Arc::new(MemoryDisk::from_image(&longer(&image, times)));
            store = open_store(Arc::clone(&disk), &load.open_options()).unwrap();
            store.grow().unwrap();
            if seed % 3 == 0 {
                store.close().unwrap();
                store = open_store(Arc::clone(&disk), &load.open_options()).unwrap();
                assert!(store.opened().was_closed);
            }
            store.verify();
            compare(&store, &versions).unwrap();
            let after = store.geometry();
            assert!(after.capacity_blocks() * 100 > before.capacity_blocks() * times as u64 * 95);
            assert!(after.blocks > before.blocks && after.generation == before.generation + 1);
            // The last numbers that there are not, as long as there is room.
            let room = (after.capacity_blocks() - store.live_blocks()) as usize;
            let absent: Vec<u32> = (0..after.blocks).rev().filter(|b| !store.holds(*b)).collect();
            versions.resize(after.blocks as usize, 0);
            for block in &absent[..room] {
                write(&store, &[(*block, 77)]).unwrap();
                versions[*block as usize] = 77;
            }
            let refused = write(&store, &[(absent[room], 1)]);
            assert!(matches!(refused, Err(StoreError::NoRoom { .. })));
            for step in &steps {
                let mut changes = step.changes.clone();
                changes.retain(|(block, version)| *version > 0 && versions[*block as usize] > 0);
                write(&store, &changes).unwrap();
                for (block, version) in changes {
                    versions[block as usize] = version;
                }
            }
            // Half of them go again, so that the next growth finds holes.
            for block in absent[..room].iter().step_by(2) {
                write(&store, &[(*block, 0)]).unwrap();
                versions[*block as usize] = 0;
            }
            store.sync().unwrap();
            store.verify();
            compare(&store, &versions).unwrap();
        }
    }
}

#[test]
fn a_device_that_is_not_larger_by_enough_is_refused_and_the_store_is_as_it_was() {
    let load = load(3);
    let (prepared, _) = prepare(&load);
    for more in [0, 1, 9] {
        let mut image = prepared.image.clone();
        image.resize(image.len() + more * load.block_bytes as usize, 0);
        let disk = MemoryDisk::from_image(&image);
        let error = open_store(&disk, &load.open_options()).unwrap().grow().unwrap_err();
        assert!(error.to_string().contains("make the device larger"), "{error}");
        let store = open_store(&disk, &load.open_options()).unwrap();
        compare(&store, &prepared.versions).unwrap();
    }
}
