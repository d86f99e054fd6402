//! The tests tested: each bug that can be seeded is found by those who look for bugs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they say what they looked at")]
#![allow(
    clippy::disallowed_methods,
    reason = "it is looked for until a time, and nothing else follows"
)]

#[path = "../store/corruption.rs"]
mod corruption;
#[path = "../store/explorer.rs"]
mod explorer;
#[path = "../store/faults.rs"]
mod faults;
#[path = "../store/growing.rs"]
mod growing;
#[path = "../store/load.rs"]
mod load;

use std::time::Instant;

use agewell_store::SeededFault;
use agewell_store::device::MemoryDisk;
use agewell_testkit::{caught, every_fault_is_found};

use self::corruption::{AtRest, damage_every_block, swap_records};
use self::explorer::{Extent, explore_seeds};
use self::load::{Load, compare, write};

/// A store filled beyond what it has room for refuses, and takes overwrites still.
fn overfill(seed: u64) -> Result<(), String> {
    let load = Load { full: 1.0, ..Load::tiny(seed) };
    let (store, mut driver) =
        load::fill(MemoryDisk::new(load.device_bytes), &load).map_err(|error| error.to_string())?;
    let blocks = driver.versions.len() as u32;
    for more in 0..40 {
        if write(&store, &[(blocks + more, 1)]).is_ok() {
            return Err("takes more than it has room for".to_owned());
        }
        let step = driver.step(&load);
        let only_writes: Vec<_> = step.changes.into_iter().filter(|change| change.1 > 0).collect();
        write(&store, &only_writes).map_err(|error| error.to_string())?;
        driver.apply(&only_writes);
    }
    compare(&store, &driver.versions)
}

/// Who finds what is wrong with the store, and how.
fn find(end_by: Instant) -> Option<(&'static str, String)> {
    let seeds = |seeds: std::ops::Range<u64>, case: fn(u64) -> Result<(), String>| {
        seeds.into_iter().find_map(|seed| caught(|| case(seed)).err())
    };
    let load = |seed| Load { transactions: 40, ..Load::tiny(seed) };
    let explored =
        |seeds| explore_seeds(seeds, load, Extent::USUAL).err().map(|found| found.to_string());
    if let Some(what) = explored(0..8) {
        return Some(("crashes", what));
    }
    let growth = |seed| caught(|| growing::growth_cut_short(seed).map(|_| ())).err();
    if let Some(what) = (0..4).find_map(growth) {
        return Some(("growth", what));
    }
    if let Some(what) = caught(|| damage_every_block(&AtRest::closed(0), 4, 4)).err() {
        return Some(("damage", what));
    }
    if let Some(what) = caught(|| damage_every_block(&AtRest::crashed(0), 2, 2)).err() {
        return Some(("damage", what));
    }
    let left = |seed| caught(|| damage_every_block(&AtRest::crashed(seed), 1, 0)).err();
    if let Some(what) = (1..24).find_map(left) {
        return Some(("damage to a store that was left", what));
    }
    if let Some(what) =
        (0..4).find_map(|seed| caught(|| swap_records(&AtRest::crashed(seed))).err())
    {
        return Some(("records swapped", what));
    }
    if let Some(what) = seeds(0..60, faults::errors_that_stay) {
        return Some(("errors that stay", what));
    }
    if let Some(what) = seeds(0..10, faults::a_device_that_fills) {
        return Some(("a device that fills", what));
    }
    if let Some(what) = seeds(0..30, faults::one_lie) {
        return Some(("lies", what));
    }
    if let Some(what) = seeds(0..120, faults::errors_that_pass) {
        return Some(("errors", what));
    }
    if let Some(what) = seeds(0..4, overfill) {
        return Some(("room", what));
    }
    let (mut first, mut first_long) = (8, 8);
    while Instant::now() < end_by {
        if let Some(what) = explored(first..first + 16) {
            return Some(("crashes", what));
        }
        let seeds = first_long..first_long + 2;
        let of_long = explore_seeds(seeds, Load::long_segments, Extent::USUAL);
        if let Some(what) = of_long.err().map(|found| found.to_string()) {
            return Some(("crashes with long segments", what));
        }
        first_long += 2;
        first += 16;
    }
    None
}

/// One test, as a bug is in all stores of the program.
#[test]
fn every_seeded_fault_is_found() {
    assert!(SeededFault::ALL.len() >= 46);
    every_fault_is_found(SeededFault::ALL, SeededFault::choose, find);
}
