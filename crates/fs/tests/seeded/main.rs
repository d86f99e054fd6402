//! The tests tested: each bug that can be seeded is found by those who look for bugs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they say what they looked at")]
#![allow(
    clippy::disallowed_methods,
    reason = "how long it takes is measured, and nothing else follows"
)]

#[path = "../fs/compare.rs"]
mod compare;
#[path = "../fs/explorer.rs"]
mod explorer;
#[path = "../fs/full.rs"]
mod full;
#[path = "../fs/held.rs"]
mod held;
#[path = "../fs/lists.rs"]
mod lists;
#[path = "../fs/load.rs"]
mod load;
#[path = "../fs/model.rs"]
mod model;

use std::time::{Duration, Instant};

use agewell_fs::SeededFault;
use rayon::prelude::*;

use self::explorer::{Extent, explore_seeds, explore_truncations};
use self::full::fill_and_empty;
use self::held::{caught, drawn, hold};
use self::load::Shape;

/// How long it may take to find a bug.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

/// Operations of these seeds, held against the model.
fn held_seeds(seeds: std::ops::Range<u64>) -> Option<String> {
    let case = |seed: u64| {
        let mut shape = Shape::of(seed / 3);
        let is_full = seed.is_multiple_of(3);
        if is_full {
            shape = Shape { blocks: 3000, block_bytes: 1024, ..shape };
        }
        let size_max = if is_full { 400_000 } else { 60_000 };
        caught(|| hold(shape, &drawn(seed, 200 + seed % 5 * 200), size_max)).err()
    };
    seeds.into_par_iter().find_map_any(case)
}

/// Who finds what is wrong with the file system, and how.
fn find(end_by: Instant) -> Option<(&'static str, String)> {
    let mut first = 0;
    if let Err(what) = explore_truncations() {
        return Some(("long truncations", what));
    }
    if let Some(what) = (0..4).find_map(|seed| caught(|| fill_and_empty(seed)).err()) {
        return Some(("full ones", what));
    }
    loop {
        if let Some(what) = held_seeds(first..first + 48) {
            return Some(("operations", what));
        }
        if let Err(what) = explore_seeds(first / 4..first / 4 + 12, Extent::USUAL) {
            return Some(("crashes", what));
        }
        first += 48;
        if Instant::now() > end_by {
            return None;
        }
    }
}

/// One test, as a bug is in all file systems of the program.
#[test]
fn every_seeded_fault_is_found() {
    // What goes wrong is said once.
    std::panic::set_hook(Box::new(|_| {}));
    let only = std::env::var("FAULT").ok();
    assert_eq!(find(Instant::now()), None, "nothing is found where nothing is wrong");
    let mut missed = Vec::new();
    for fault in SeededFault::ALL {
        if only.as_ref().is_some_and(|only| *only != format!("{fault:?}")) {
            continue;
        }
        SeededFault::choose(Some(*fault));
        let begin = Instant::now();
        let found = find(begin + FOUND_WITHIN);
        SeededFault::choose(None);
        let took = begin.elapsed().as_secs_f64();
        if let Some((by, what)) = found {
            let line: String = what.lines().next().unwrap_or_default().chars().take(120).collect();
            eprintln!("{fault:?}: {took:.1} s, {by}: {line}");
        } else {
            eprintln!("{fault:?}: NOT FOUND in {took:.1} s");
            missed.push(*fault);
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not found: {missed:?}");
    assert!(SeededFault::ALL.len() >= 17);
}
