//! Crashes at every moment: whatever a loss of power leaves is opened, and what was acknowledged is
//! there, what was not is whole or absent, in order, and the store goes on working.

use std::time::Instant;

use super::explorer::{Extent, Tally, explore_seeds};
use super::load::Load;
use super::replay::{fail, replay};

/// Seeds of one stretch of a long exploration.
const STRETCH: u64 = 64;

fn load(seed: u64) -> Load {
    Load { transactions: 40, ..Load::tiny(seed) }
}

fn number_of(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| {
        text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}"))
    })
}

/// Explores stretches of seeds from `seed` on until `states` states were looked at.
fn explore(mut seed: u64, states: u64, mut progress: impl FnMut(u64, Tally)) -> Tally {
    let mut tally = Tally::default();
    while tally.states < states {
        match explore_seeds(seed..seed + STRETCH, load, Extent::USUAL) {
            Ok(more) => tally = tally.and(more),
            Err(violation) => fail(&load(violation.seed), violation),
        }
        seed += STRETCH;
        progress(seed, tally);
    }
    tally
}

#[test]
fn every_crash_leaves_a_prefix() {
    let begin = Instant::now();
    let tally = explore(0, 100_000, |_, _| {});
    println!("{tally:?} in {:.1} s", begin.elapsed().as_secs_f64());
    assert!(tally.active * 100 >= tally.states * 30, "{tally:?}: holes are filled in too few");
    assert!(
        tally.deep * 5 >= tally.states && tally.dropped > 1000 && tally.replayed > 100_000,
        "{tally:?}"
    );
}

#[test]
fn crashes_leave_a_prefix_where_segments_are_used_again_at_once() {
    let found = explore_seeds(0..6, Load::long_segments, Extent::USUAL);
    let tally = found.unwrap_or_else(|violation| panic!("{violation}"));
    assert!(tally.states > 3000 && tally.replayed > 10_000, "{tally:?}");
}

/// `make explore`: STATES states (ten millions) from seed SEED (a thousand, behind those of the other) on.
#[test]
#[ignore = "takes an hour"]
fn many_crashes_leave_a_prefix() {
    let begin = Instant::now();
    let tally = explore(number_of("SEED", 1000), number_of("STATES", 10_000_000), |seed, tally| {
        let per_s = tally.states as f64 / begin.elapsed().as_secs_f64();
        eprintln!("{} states, {per_s:.0} a second; SEED={seed} goes on from here", tally.states);
    });
    println!("{tally:?} in {:.0} s", begin.elapsed().as_secs_f64());
    assert!(tally.active * 100 >= tally.states * 30, "{tally:?}: holes are filled in too few");
}

/// `CRASH=seed.epoch.state` looks at that state again.
#[test]
#[ignore = "needs CRASH, the name of a state"]
fn one_crash_leaves_a_prefix() {
    let name = std::env::var("CRASH").expect("CRASH is the name of a state");
    let numbers: Vec<u64> =
        name.split('.').map(|number| number.parse().expect("numbers with dots between")).collect();
    let path: Vec<(usize, u64)> =
        numbers[1..].chunks_exact(2).map(|pair| (pair[0] as usize, pair[1])).collect();
    if let Err(violation) = replay(&load(numbers[0]), &path) {
        panic!("{violation}");
    }
}

/// The same seed is the same states: a name stands for one.
#[test]
fn exploring_is_deterministic() {
    let once =
        || explore_seeds(3..5, load, Extent::USUAL).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(once(), once());
}
