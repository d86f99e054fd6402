//! Random operations, everything compared.

use std::sync::atomic::{AtomicU64, Ordering};

use agewell_fs::Time;
use agewell_store::device::MemoryDisk;
use proptest::prelude::*;

use super::compare::{compare, is_clean};
use super::load::{Draw, Operation, Shape, close, step};
use super::model::Model;

fn draws(most: usize) -> impl Strategy<Value = Vec<Draw>> {
    let draw = (any::<u8>(), any::<[u8; 4]>(), any::<[u32; 2]>());
    prop::collection::vec(draw, 0..most)
}

/// Operations between two comparisons of everything; chosen by us.
const COMPARED_EVERY: usize = 24;

/// Carries the operations out on a store of that shape; how many found no room.
pub(crate) fn hold(shape: Shape, draws: &[Draw], size_max: u64) -> Result<u64, String> {
    let text = |error: agewell_fs::FsError| error.to_string();
    let mut fs = shape.make(MemoryDisk::new(shape.device_bytes())).map_err(text)?;
    let mut model = Model::new(u64::from(shape.block_bytes));
    let mut refused = 0;
    let mut now = Time::default();
    for (number, draw) in draws.iter().enumerate() {
        now.seconds += 1;
        if draw.0 == 255 {
            // Orphans are gone when it is opened again.
            let disk = close(fs).map_err(text)?;
            fs = shape.open(disk).map_err(text)?;
            while fs.work().map_err(text)? {}
            model = model.without_orphans();
            compare(&fs, &model, None).map_err(|what| format!("{number}, opened: {what}"))?;
            is_clean(&fs)?;
            continue;
        }
        let operation = Operation::of(&model, *draw, size_max);
        step(&fs, &mut model, &operation, now, &mut refused)
            .map_err(|what| format!("operation {number}: {what}"))?;
        if number % COMPARED_EVERY == COMPARED_EVERY - 1 {
            compare(&fs, &model, None).map_err(|what| format!("after {number}: {what}"))?;
        }
    }
    compare(&fs, &model, None).map_err(|what| format!("at the end: {what}"))?;
    is_clean(&fs)?;
    let disk = close(fs).map_err(text)?;
    let fs = shape.open(disk).map_err(text)?;
    compare(&fs, &model.without_orphans(), None).map_err(|what| format!("opened: {what}"))?;
    is_clean(&fs)?;
    Ok(refused)
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

/// Draws of a seed.
pub(crate) fn drawn(seed: u64, count: u64) -> Vec<Draw> {
    use agewell_core::mix;
    let draw = |at: u64| {
        let (first, second) = (mix(seed << 32 | at << 1), mix(seed << 32 | at << 1 | 1));
        let bytes = first.to_le_bytes();
        let numbers = [second as u32, (second >> 32) as u32];
        (bytes[0], [bytes[1], bytes[2], bytes[3], bytes[4]], numbers)
    };
    (0..count).map(draw).collect()
}

/// The fewest of `draws` that still fail, by leaving out ever shorter runs of them.
fn fewest(shape: Shape, mut draws: Vec<Draw>, size_max: u64) -> (Vec<Draw>, String) {
    let fails = |draws: &[Draw]| super::caught(|| hold(shape, draws, size_max)).err();
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
    for seed in number("SEED", 0)..number("SEED", 0) + number("SEEDS", 1000) {
        let full = seed % 3 == 0;
        let mut shape = Shape::of(seed / 3);
        if full {
            shape = Shape { blocks: 3000, block_bytes: 1024, ..shape };
        }
        let size_max = if full { 400_000 } else { 60_000 };
        let draws = drawn(seed, 200 + seed % 5 * 200);
        let begin = std::time::Instant::now();
        match super::caught(|| hold(shape, &draws, size_max)) {
            Ok(refused) => {
                eprintln!("{seed}: {refused} refused, {:.2} s", begin.elapsed().as_secs_f64());
            }
            Err(_) => {
                let (draws, what) = fewest(shape, draws, size_max);
                panic!("SEED={seed}, {} operations of {shape:?}: {what}\n{draws:?}", draws.len());
            }
        }
    }
}
