//! Quantities as people write them, and named streams of random numbers.
//!
//!     cargo run -p agewell-core --example times
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_core::{RandomStreams, SECTOR_BYTES, parse_bytes, parse_duration, uniform_below};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let block = parse_bytes("64 KiB")?;
    let access = parse_duration("8.5 ms")?;
    println!("{} sectors, {} ns", block / SECTOR_BYTES, access.0);
    // A stream depends on the seed and its name alone: a further one shifts nobody's numbers.
    let streams = RandomStreams::new(1);
    for name in ["sizes", "places"] {
        let mut stream = streams.stream(name);
        let drawn: Vec<u64> = (0..4).map(|_| uniform_below(&mut stream, 100)).collect();
        println!("{name}: {drawn:?}");
    }
    // What is meant is said in one line.
    println!("{}", parse_bytes("64 Kb").expect_err("no such unit"));
    Ok(())
}
