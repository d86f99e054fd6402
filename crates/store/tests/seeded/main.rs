//! The tests tested: each bug that can be seeded is found by those who look for bugs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they say what they looked at")]

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

use std::ops::Range;
use std::path::Path;

use agewell_store::SeededFault;
use agewell_store::device::MemoryDisk;
use agewell_testkit::{Look, every_fault_is_found};

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

/// The crashes of a run with `load`.
fn explored(load: &Load) -> Result<(), String> {
    let found = explore_seeds(load.seed..load.seed + 1, |_| load.clone(), Extent::USUAL);
    found.map(drop).map_err(|violation| violation.to_string())
}

/// Who looks for what is wrong with the store in a round, and at what. All take turns: a bug is met by the one
/// who finds it before the others have gone far, for all of them take about as long in a round.
fn looks(round: u64) -> Vec<Look> {
    let mut looks = Vec::new();
    let mut add = |who, seeds: Range<u64>, look: fn(u64) -> Result<(), String>| {
        looks.extend(seeds.map(|seed| Look::new(who, move || look(seed))));
    };
    // Seeds of those of which there are `count` in a round, or one in `count` rounds.
    let several = |count| round * count..(round + 1) * count;
    let one_in = |count| round.div_ceil(count)..(round + count) / count;
    add("crashes", several(2), |seed| explored(&Load { transactions: 40, ..Load::tiny(seed) }));
    add("a device that fills", several(4), faults::a_device_that_fills);
    add("errors that stay", several(16), faults::errors_that_stay);
    add("errors", several(24), faults::errors_that_pass);
    add("lies", several(8), faults::one_lie);
    add("damage to a store that was left", several(2), |seed| {
        damage_every_block(&AtRest::crashed(seed), 1, 0).map(drop)
    });
    add("growth", several(1), |seed| growing::growth_cut_short(seed).map(drop));
    add("growth that fails", several(4), |seed| growing::growth_on_a_failing_disk(seed).map(drop));
    add("room", several(4), overfill);
    add("records swapped", one_in(2), |seed| swap_records(&AtRest::crashed(seed)).map(drop));
    add("crashes with long segments", one_in(4), |seed| explored(&Load::long_segments(seed)));
    add("damage", one_in(4), |seed| {
        damage_every_block(&AtRest::closed(seed), 4, 4)?;
        damage_every_block(&AtRest::crashed(seed), 2, 2).map(drop)
    });
    looks
}

/// One test, as a bug is in all stores of the program.
#[test]
fn every_seeded_fault_is_found() {
    assert!(SeededFault::ALL.len() >= 48);
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeded/found.txt"));
    every_fault_is_found(SeededFault::ALL, SeededFault::choose, looks, path);
}
