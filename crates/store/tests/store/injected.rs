//! Faults of devices, and damage to what lies there.

use agewell_testkit::caught;

use super::corruption::{AtRest, damage_every_block, swap_records};
use super::faults;

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
