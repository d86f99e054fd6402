//! What a modelled drive takes for requests of three sizes, in order and at random places.
//!
//!     cargo run -p agewell-disk --example drive -- [DEVICE.toml]
//!
//! Without a device file a disk stands in that is known by two numbers.
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_core::{
    BlockRequest, Operation, RandomStreams, Sector, SectorCount, SimTime, uniform_below,
};
use agewell_disk::{Device, DeviceModel, DeviceParameters};

const TWO_NUMBERS: &str = r#"
name = "two-numbers"
title = "A disk known by its access time and bandwidth"
kind = "simple"
capacity_sectors = 8388608

[sources]
capacity_sectors = "chosen for the example"
simple = "chosen for the example"

[simple]
access_time_ms = 10.0
bandwidth = "15 MB/s"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parameters = match std::env::args_os().nth(1) {
        Some(path) => DeviceParameters::load(path)?,
        None => DeviceParameters::from_toml("the example", TWO_NUMBERS)?,
    };
    for (name, is_random) in [("in order", false), ("at random", true)] {
        for sectors in [8, 128, 2048] {
            let mut device = DeviceModel::new(&parameters);
            let mut stream = RandomStreams::new(1).stream("places");
            let places = device.capacity().0 / sectors;
            let mut now = SimTime::ZERO;
            for number in 0..1000 {
                let place = if is_random { uniform_below(&mut stream, places) } else { number };
                let request = BlockRequest {
                    enqueue: now,
                    sector: Sector(place * sectors),
                    sectors: SectorCount(sectors),
                    operation: Operation::Read,
                    synchronous: true,
                };
                now = device.serve(now, &request).finish;
            }
            println!("{name}, {} KiB: {:.2} ms", sectors / 2, now.0 as f64 / 1e9);
        }
    }
    Ok(())
}
