//! Crashes at every moment, of random operations and of the workloads of others.

use rayon::prelude::*;

use super::explorer::{Extent, TRUNCATIONS, Tally, explore_seeds, explore_truncation};
use super::sequences::{explore_workloads, workloads};

#[test]
fn every_crash_leaves_a_prefix() {
    let begin = std::time::Instant::now();
    let (mut tally, mut seed) = (Tally::default(), 0);
    while tally.states < 20_000 {
        let found = explore_seeds(seed..seed + 16, Extent::USUAL);
        tally = tally.and(found.unwrap_or_else(|what| panic!("{what}")));
        seed += 16;
    }
    println!("{tally:?} of {seed} seeds in {:.1} s", begin.elapsed().as_secs_f64());
    assert!(tally.deep * 20 >= tally.states && tally.shorter * 5 >= tally.states, "{tally:?}");
}

fn number_of(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| {
        text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}"))
    })
}

/// `make explore`: STATES states (a million) from seed SEED (a thousand) on.
#[test]
#[ignore = "takes an hour"]
fn many_crashes_leave_a_prefix() {
    let begin = std::time::Instant::now();
    let (mut tally, mut seed) = (Tally::default(), number_of("SEED", 1000));
    while tally.states < number_of("STATES", 1_000_000) {
        let found = explore_seeds(seed..seed + 64, Extent::USUAL);
        tally = tally.and(found.unwrap_or_else(|what| panic!("{what}")));
        seed += 64;
        let per_s = tally.states as f64 / begin.elapsed().as_secs_f64();
        eprintln!("{} states, {per_s:.0} a second; SEED={seed} goes on from here", tally.states);
    }
    println!("{tally:?} in {:.0} s", begin.elapsed().as_secs_f64());
}

/// The same seed is the same states: a name stands for one.
#[test]
fn exploring_is_deterministic() {
    let once = || explore_seeds(3..5, Extent::USUAL).unwrap_or_else(|what| panic!("{what}"));
    assert_eq!(once(), once());
}

#[test]
fn every_crash_of_the_workloads_leaves_a_prefix() {
    let begin = std::time::Instant::now();
    let Some(workloads) = workloads() else {
        println!("skipped: the workloads are not there");
        return;
    };
    let extent = Extent { states: 40, goes_on: 100, deep_states: 1 };
    let found = explore_workloads(&workloads, extent);
    let tally = found.unwrap_or_else(|what| panic!("{what}"));
    println!("{tally:?} of {} in {:.1} s", workloads.len(), begin.elapsed().as_secs_f64());
    assert!(workloads.len() > 400 && tally.states > 20_000, "{tally:?}");
}

#[test]
fn a_crash_within_a_long_truncation_leaves_it_to_be_gone_on_with() {
    let found = TRUNCATIONS
        .into_par_iter()
        .map(explore_truncation)
        .try_reduce(Tally::default, |one, other| Ok(one.and(other)));
    let tally = found.unwrap_or_else(|what| panic!("{what}"));
    println!("{tally:?}");
    assert!(tally.states > 1000 && tally.midway > 300, "{tally:?}");
}
