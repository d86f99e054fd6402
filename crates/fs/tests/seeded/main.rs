//! The tests tested: each bug that can be seeded is found by those who look for bugs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they say what they looked at")]

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

use std::ops::Range;
use std::path::Path;

use agewell_fs::SeededFault;
use agewell_testkit::{Look, every_fault_is_found};

use self::explorer::{Extent, TRUNCATIONS, explore_seeds, explore_truncation};
use self::full::fill_and_empty;
use self::held::{drawn, hold};
use self::load::Shape;

/// Operations of a seed, held against the model.
fn held(seed: u64) -> Result<(), String> {
    let mut shape = Shape::of(seed / 3);
    let is_full = seed.is_multiple_of(3);
    if is_full {
        shape = Shape { blocks: 3000, block_bytes: 1024, ..shape };
    }
    let size_max = if is_full { 400_000 } else { 60_000 };
    hold(shape, &drawn(seed, 200 + seed % 5 * 200), size_max).map(drop)
}

/// Who looks for what is wrong with the file system in a round, and at what. All take turns: a bug is met by the
/// one who finds it before the others have gone far.
fn looks(round: u64) -> Vec<Look> {
    let mut looks = Vec::new();
    let mut add = |who, seeds: Range<u64>, look: fn(u64) -> Result<(), String>| {
        looks.extend(seeds.map(|seed| Look::new(who, move || look(seed))));
    };
    let several = |count| round * count..(round + 1) * count;
    add("operations", several(12), held);
    add("crashes", several(3), |seed| explore_seeds(seed..seed + 1, Extent::USUAL).map(drop));
    add("full ones", several(1), fill_and_empty);
    // Of few blocks only, and all of them in few rounds.
    let blocks =
        TRUNCATIONS.start + round * 12..TRUNCATIONS.end.min(TRUNCATIONS.start + round * 12 + 12);
    add("long truncations", blocks, |blocks| explore_truncation(blocks).map(drop));
    looks
}

/// One test, as a bug is in all file systems of the program.
#[test]
fn every_seeded_fault_is_found() {
    assert!(SeededFault::ALL.len() >= 21);
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeded/found.txt"));
    every_fault_is_found(SeededFault::ALL, SeededFault::choose, looks, path);
}
