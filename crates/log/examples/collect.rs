//! A log without a simulator: 2^16 blocks, updated at random until each has been written ten times.
//!
//!     cargo run --release -p agewell-log --example collect
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{CostMeter, Log, LogSetting, LogShape, Victim};

const BLOCKS: u32 = 1 << 16;
const SEGMENT_BLOCKS: u32 = 256;
const UTILIZATION: f64 = 0.85;

/// A hard disk of the nineties with blocks of 4 KiB.
const DISK: CostModel = CostModel {
    access_ns: 15_000_000,
    further_ns: 5_500_000,
    bandwidth_bytes_per_s: 5_000_000,
    block_bytes: 4096,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let segments = (f64::from(BLOCKS) / UTILIZATION / f64::from(SEGMENT_BLOCKS)).ceil() as u32;
    let shape = LogShape::uniform(segments, SEGMENT_BLOCKS)?;
    for victim in [Victim::Greedy, Victim::CostAge] {
        let plain = LogSetting::plain(shape.clone(), BLOCKS, DISK);
        let setting = LogSetting { victim, buffer_blocks: SEGMENT_BLOCKS, ..plain };
        let mut log = Log::new(setting, NoSeparation)?;
        // Whatever implements `BlockDevice` carries out what the log asks for; this one prices it.
        let mut device = CostMeter::new(DISK);
        let mut stream = RandomStreams::new(1).stream("updates");
        log.preload_run(0, BLOCKS)?;
        for _ in 0..10 * BLOCKS {
            let block = uniform_below(&mut stream, u64::from(BLOCKS)) as u32;
            log.write(block, 0, &mut device)?;
        }
        let amplification = log.counts().write_amplification().expect("blocks were written");
        let seconds = device.writing_ns() as f64 / 1e9;
        println!("{victim:?}: write amplification {amplification:.3}, {seconds:.0} s of disk time");
    }
    Ok(())
}
