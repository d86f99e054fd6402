//! Blocks that are put together lie one behind the other, and hold what they held.

use std::collections::BTreeSet;

use agewell_core::{RandomStreams, uniform_below};
use agewell_store::device::MemoryDisk;

use super::load::{Load, compare, fill, means, open_store, write};

fn a_load(seed: u64) -> Load {
    Load { full: 0.6, collect_every: 0, wave_every: 0, means: means(seed), ..Load::tiny(7 * seed) }
}

#[test]
fn they_lie_one_behind_the_other_by_every_mechanism_and_hold_what_they_held() {
    let mut all_pieces = 0;
    for seed in 0..14 {
        let load = a_load(seed);
        let disk = MemoryDisk::new(load.device_bytes);
        let (store, mut driver) = fill(&disk, &load).unwrap();
        for _ in 0..60 {
            let changes = driver.transaction(&load);
            write(&store, &changes).unwrap();
            driver.apply(&changes);
        }
        // What lies nowhere yet stays where it is.
        store.sync().unwrap();
        let mut random = RandomStreams::new(seed).stream("together");
        let held: Vec<u32> = (0..store.geometry().blocks).filter(|b| store.holds(*b)).collect();
        let drawn = (0..load.segment_blocks + 3)
            .map(|_| held[uniform_below(&mut random, held.len() as u64) as usize]);
        let mut listed: Vec<u32> = drawn.collect::<BTreeSet<u32>>().into_iter().collect();
        listed.reverse();
        let before = store.log_counts().regrouped_blocks;
        while !store.has_room_together(listed.len() as u32) {
            assert!(store.clean_for_together().unwrap(), "seed {seed}: nothing can be cleaned");
        }
        // The rest of a segment that is open, and whole ones, of which a record takes one block.
        let most = 1 + (listed.len() as u32).div_ceil(store.geometry().segment_blocks - 1);
        let moved = store.put_together(&listed).unwrap();
        assert!(moved > 0, "seed {seed}");
        assert_eq!(store.log_counts().regrouped_blocks - before, u64::from(moved));
        store.sync().unwrap();
        let place = |block: &u32| store.places(*block, 1)[0].unwrap();
        let bytes = u64::from(load.block_bytes);
        let places: Vec<u64> = listed[..moved as usize].iter().map(place).collect();
        let pieces = 1 + places.windows(2).filter(|pair| pair[0] + bytes != pair[1]).count() as u32;
        // A transaction ends where the next begins with a record.
        let transactions = moved.div_ceil(store.transaction_blocks_max());
        assert!(pieces <= most + 2 * transactions, "seed {seed}: {pieces} pieces");
        all_pieces += pieces;
        store.verify();
        compare(&store, &driver.versions).unwrap();
        // It holds over a crash, and goes on being written.
        drop(store);
        let store = open_store(&disk, &load.open_options()).unwrap();
        compare(&store, &driver.versions).unwrap();
        for _ in 0..60 {
            let changes = driver.transaction(&load);
            write(&store, &changes).unwrap();
            driver.apply(&changes);
        }
        store.verify();
        compare(&store, &driver.versions).unwrap();
    }
    assert!(all_pieces < 14 * 6, "{all_pieces} pieces");
}

#[test]
fn nobody_waits_for_the_room_that_it_takes() {
    let load = Load { full: 1.0, ..a_load(0) };
    let (store, driver) = fill(MemoryDisk::new(load.device_bytes), &load).unwrap();
    store.sync().unwrap();
    let before = store.log_counts();
    let listed: Vec<u32> = (0..driver.versions.len() as u32).rev().collect();
    let moved = store.put_together(&listed).unwrap();
    assert!(u64::from(moved) < store.live_blocks() / 4, "{moved} blocks");
    let counts = store.log_counts();
    assert_eq!(counts.cleaned_blocks, before.cleaned_blocks);
    compare(&store, &driver.versions).unwrap();
}

#[test]
fn what_is_not_what_the_store_has_stays_where_it_is() {
    let load = a_load(0);
    let (store, driver) = fill(MemoryDisk::new(load.device_bytes), &load).unwrap();
    store.sync().unwrap();
    let held: Vec<u32> = (0..store.geometry().blocks).filter(|b| store.holds(*b)).collect();
    let mut data: Vec<(u32, Vec<u8>)> = held[..6]
        .iter()
        .map(|block| {
            let mut into = vec![0; load.block_bytes as usize];
            store.read(*block, &mut into).unwrap();
            (*block, into)
        })
        .collect();
    data[3].1[0] ^= 1;
    assert!(store.make_room_together(6, &mut || true).unwrap());
    let places = || store.places_of(held[..6].iter().copied());
    let before = places();
    let listed: Vec<(u32, &[u8])> = data.iter().map(|(block, data)| (*block, &**data)).collect();
    assert_eq!(store.put_together_from_memory(&listed).unwrap(), 5);
    store.sync().unwrap();
    let stayed: Vec<bool> = before.iter().zip(places()).map(|(one, now)| *one == now).collect();
    assert_eq!(stayed, [false, false, false, true, false, false]);
    compare(&store, &driver.versions).unwrap();
}
