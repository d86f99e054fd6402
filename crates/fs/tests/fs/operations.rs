//! Random operations, everything compared.

use std::sync::atomic::{AtomicU64, Ordering};

use agewell_core::mix;
use agewell_fs::{FsError, ROOT_INODE, Time};
use agewell_store::device::MemoryDisk;
use agewell_testkit::caught;
use proptest::prelude::*;

use super::full::fill_and_empty;
use super::held::{drawn, hold};
use super::lists::{
    ACCESS_LIST, DEFAULT_LIST, INVALID_WAYS, encode_list, invalid_list, mode_of, valid_list,
};
use super::load::{Draw, Shape};

fn draws(most: usize) -> impl Strategy<Value = Vec<Draw>> {
    let draw = (any::<u8>(), any::<[u8; 4]>(), any::<[u32; 2]>());
    prop::collection::vec(draw, 0..most)
}

static REFUSED: AtomicU64 = AtomicU64::new(0);

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn it_is_what_the_model_is(shape in 0..180u64, draws in draws(400)) {
        let refused = hold(Shape::of(shape), &draws, 60_000);
        prop_assert!(refused.is_ok(), "{}", refused.unwrap_err());
        REFUSED.fetch_add(refused.unwrap(), Ordering::Relaxed);
    }

    #[test]
    fn it_is_what_the_model_is_when_it_is_full(shape in 0..180u64, draws in draws(700)) {
        let shape = Shape { blocks: 3000, block_bytes: 1024, ..Shape::of(shape) };
        let refused = hold(shape, &draws, 400_000);
        prop_assert!(refused.is_ok(), "{}", refused.unwrap_err());
    }
}

/// Whatever is wrong with a list, nothing is changed; whatever is right, the mode shows it.
#[test]
fn lists_are_refused_or_shown_by_the_mode() {
    let shape = Shape::of(0);
    let fs = shape.make(MemoryDisk::new(shape.device_bytes())).unwrap();
    let set = |name, value: &[u8]| {
        fs.set_extended_attribute(ROOT_INODE, (name, value), (false, false), Time::default())
    };
    let mode = || fs.attributes(ROOT_INODE).unwrap().mode;
    for draw in 0..64_u64 {
        let drawn = mix(draw);
        let numbers = [drawn as u32, (drawn >> 32) as u32];
        let list = valid_list(numbers);
        for name in [ACCESS_LIST, DEFAULT_LIST] {
            set(name, &encode_list(&list)).unwrap();
            assert_eq!(mode() & 0o777, mode_of(&list), "{list:?}");
            let before = (mode(), fs.extended_attribute(ROOT_INODE, name).ok());
            for way in 0..INVALID_WAYS {
                let (value, expected) = invalid_list(numbers, way);
                let found = set(name, &value).unwrap_err();
                assert!(
                    matches!(found, FsError::Errno(found) if found == expected),
                    "{way}: {found}, {value:?}"
                );
            }
            assert_eq!((mode(), fs.extended_attribute(ROOT_INODE, name).ok()), before);
        }
    }
}

/// The fewest of `draws` that still fail, by leaving out ever shorter runs of them.
fn fewest(shape: Shape, mut draws: Vec<Draw>, size_max: u64) -> (Vec<Draw>, String) {
    let fails = |draws: &[Draw]| caught(|| hold(shape, draws, size_max)).err();
    let mut what = fails(&draws).unwrap();
    let mut run = draws.len() / 2;
    while run > 0 {
        let mut at = 0;
        while at < draws.len() {
            let mut fewer = draws.clone();
            fewer.drain(at..(at + run).min(fewer.len()));
            if let Some(found) = fails(&fewer) {
                (draws, what) = (fewer, found);
            } else {
                at += run;
            }
        }
        run /= 2;
    }
    (draws, what)
}

/// `make explore`: seeds from SEED on, for as many as SEEDS.
#[test]
#[ignore = "takes long"]
fn many_seeds_are_what_the_model_is() {
    let number = |name: &str, usual: u64| {
        std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
    };
    let begin = std::time::Instant::now();
    for seed in number("SEED", 0)..number("SEED", 0) + number("SEEDS", 1000) {
        let full = seed % 3 == 0;
        let mut shape = Shape::of(seed / 3);
        if full {
            shape = Shape { blocks: 3000, block_bytes: 1024, ..shape };
        }
        let size_max = if full { 400_000 } else { 60_000 };
        let draws = drawn(seed, 200 + seed % 5 * 200);
        if caught(|| hold(shape, &draws, size_max)).is_err() {
            let (draws, what) = fewest(shape, draws, size_max);
            panic!("SEED={seed}, {} operations of {shape:?}: {what}\n{draws:?}", draws.len());
        }
        if seed % 100 == 0 {
            eprintln!("{} seeds, {:.0} s", seed + 1, begin.elapsed().as_secs_f64());
        }
    }
}

#[test]
fn what_is_full_can_be_worked_on_and_emptied() {
    for seed in 0..24 {
        fill_and_empty(seed).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
}

/// Who reads a directory piece by piece while others change it gets what was there throughout, once.
#[test]
fn a_directory_is_read_while_it_changes() {
    use std::collections::BTreeSet;

    use agewell_core::mix;
    use agewell_fs::{Caller, New, ROOT_INODE, Rename, Time};
    use agewell_store::device::MemoryDisk;

    let caller = Caller::default();
    let new = New { mode: 0o100_644, device: 0, target: b"" };
    for seed in 0..60_u64 {
        let shape = Shape::of(seed);
        let fs = shape.make(MemoryDisk::new(shape.device_bytes())).unwrap();
        let name = |number: u64| format!("{number}").into_bytes();
        for number in 0..80 {
            fs.make_file(ROOT_INODE, &name(number), &new, &caller).unwrap();
        }
        // Those that are never touched, and what is seen of all.
        let mut untouched: BTreeSet<Vec<u8>> = (0..80).map(name).collect();
        let (mut seen, mut cookie, mut at_once) = (Vec::new(), 0, 0);
        for turn in 0.. {
            let before = seen.len();
            at_once = (at_once + seed) % 7 + 1;
            let mut rest = at_once;
            fs.read_directory(ROOT_INODE, cookie, |entry| {
                assert!(entry.next > cookie, "a reader goes forwards");
                seen.push(entry.name.to_vec());
                cookie = entry.next;
                rest -= 1;
                rest > 0
            })
            .unwrap();
            if seen.len() == before {
                break;
            }
            let draw = mix(seed << 32 | turn);
            let (one, other) = (name(draw % 80), name((draw >> 8) % 80));
            untouched.remove(&one);
            untouched.remove(&other);
            let now = Time::default();
            // What is not there any more is an error, and no matter.
            let _ = match draw >> 16 & 3 {
                0 => fs.unlink(ROOT_INODE, &one, now).map(|_| ()),
                1 => {
                    let (one, other) = ((ROOT_INODE, &*one), (ROOT_INODE, &*other));
                    fs.rename(one, other, Rename::Replaces, &caller).map(|_| ())
                }
                2 if turn < 40 => {
                    let name = name(1000 + turn);
                    fs.make_file(ROOT_INODE, &name, &new, &caller).map(|_| ())
                }
                _ => {
                    let (one, other) = ((ROOT_INODE, &*one), (ROOT_INODE, &*other));
                    fs.rename(one, other, Rename::Exchanges, &caller).map(|_| ())
                }
            };
        }
        for name in &untouched {
            let times = seen.iter().filter(|found| *found == name).count();
            assert_eq!(times, 1, "seed {seed}, {:?}", String::from_utf8_lossy(name));
        }
    }
}
