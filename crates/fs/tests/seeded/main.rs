//! The tests tested: each bug that can be seeded is found by those who look for bugs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they say what they looked at")]
#![allow(
    clippy::disallowed_methods,
    reason = "it is looked for until a time, and nothing else follows"
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

use std::time::Instant;

use agewell_fs::SeededFault;
use agewell_testkit::{caught, every_fault_is_found};
use rayon::prelude::*;

use self::explorer::{Extent, explore_seeds, explore_truncations};
use self::full::fill_and_empty;
use self::held::{drawn, hold};
use self::load::Shape;

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
    assert!(SeededFault::ALL.len() >= 17);
    every_fault_is_found(SeededFault::ALL, SeededFault::choose, find);
}
