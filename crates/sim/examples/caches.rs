//! How often a block cache misses on a stream of references, and how fast it is.
//!
//!     cargo run --release -p agewell-sim --example caches -- [FILE] [POLICY] [BLOCKS]
//!
//! FILE holds the numbers of the blocks that are asked for, each 32 bits with its lowest byte first. Without it a
//! small loop with a hot part stands in. One line of JSON a policy; `seconds` counts reading the file too.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows what it found"
)]

use std::error::Error;
use std::time::Instant;

use agewell_sim::cache::{Cache, Eviction};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let file = words.next();
    let policies = match words.next() {
        Some(name) => {
            vec![Eviction::from_name(&name).ok_or(format!("no policy is called {name}"))?]
        }
        None => Eviction::ALL.to_vec(),
    };
    let blocks: usize = words.next().map_or(Ok(64), |text| text.parse())?;
    for policy in policies {
        let began = Instant::now();
        let keys = match &file {
            Some(path) => std::fs::read(path)?
                .chunks_exact(4)
                .map(|key| u32::from_le_bytes([key[0], key[1], key[2], key[3]]))
                .collect(),
            None => hot_loop(),
        };
        let largest = keys.iter().max().map_or(0, |key| *key as usize);
        let mut cache = Cache::new(policy, blocks, largest + 1);
        let hits = keys.iter().filter(|key| cache.reference(**key).is_hit()).count();
        let seconds = began.elapsed().as_secs_f64();
        let (name, misses) = (policy.name(), keys.len() - hits);
        println!(r#"{{"policy": "{name}", "misses": {misses}, "seconds": {seconds:.6}}}"#);
    }
    Ok(())
}

/// Every other reference goes round in 16 blocks, the others go through 1000.
fn hot_loop() -> Vec<u32> {
    (0..20_000_u32)
        .map(|number| if number % 2 == 0 { number / 2 % 16 } else { 16 + number % 1000 })
        .collect()
}
