//! A disk is measured by reading it; here a modelled one, on its own clock, which is known exactly.
//!
//!     cargo run --release -p agewell-probe --example modelled -- [DEVICE.toml]
//!
//! Without a device file a disk stands in that is known by two numbers. [`agewell_probe::RealDisk`] takes the place
//! of the modelled one for a disk of this machine.
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_core::SimDuration;
use agewell_disk::DeviceParameters;
use agewell_probe::{Disturbance, ModelledDisk, ProbeOptions, probe};

const TWO_NUMBERS: &str = r#"
name = "two-numbers"
title = "A disk known by its access time and bandwidth"
kind = "simple"
capacity_sectors = 8388608

[sources]
capacity_sectors = "chosen for the example"
simple = "chosen for the example"

[simple]
access_time_ms = 0.1
bandwidth = "400 MB/s"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parameters = match std::env::args_os().nth(1) {
        Some(path) => DeviceParameters::load(path)?,
        None => DeviceParameters::from_toml("the example", TWO_NUMBERS)?,
    };
    let disturbance = Disturbance { late_answers: true, wander: 0.001, seed: 1 };
    let mut disk = ModelledDisk::new(&parameters, disturbance);
    let options =
        ProbeOptions { time: SimDuration(10_000_000_000), seed: 1, despite_others: false };
    let found = probe(&mut disk, options, &mut |_, _| true)?;
    println!("{} by {} requests", found.class.name(), found.requests);
    println!("{}", found.parameters.to_toml());
    Ok(())
}
