//! A placement of your own, held against one log: a tenth of the blocks gets nine tenths of the writes.
//!
//!     cargo run --release -p agewell-log --example placement
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_core::{RandomStreams, chance, uniform_below};
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::placement::{CollectedSegment, NoSeparation, Placement};
use agewell_log::{Log, LogSetting, LogShape, Unpriced};

// --- the placement
/// Blocks that are written again soon go to log 0, all others to log 1.
struct Recent {
    /// The clock at which each block was written last.
    written: Vec<u64>,
    /// What is soon, in user block writes.
    soon_writes: u64,
}

impl Placement for Recent {
    fn logs(&self) -> usize {
        2
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        self.written.resize(blocks.max(self.written.len()), 0);
    }

    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        let last = std::mem::replace(&mut self.written[block as usize], clock);
        u8::from(!(overwrites && clock - last < self.soon_writes))
    }

    fn place_collected(&mut self, _block: u32, _segment: &CollectedSegment, _clock: u64) -> u8 {
        1
    }
}
// --- the end of the placement

const BLOCKS: u32 = 1 << 15;
const SEGMENT_BLOCKS: u32 = 128;
const DISK: CostModel = CostModel {
    access_ns: 15_000_000,
    further_ns: 5_500_000,
    bandwidth_bytes_per_s: 5_000_000,
    block_bytes: 4096,
};

/// Blocks written to the disk for each that the user writes, at a utilization of 80 %.
fn write_amplification(placement: impl Placement) -> Result<f64, Box<dyn std::error::Error>> {
    let shape = LogShape::uniform(BLOCKS / SEGMENT_BLOCKS * 5 / 4, SEGMENT_BLOCKS)?;
    let reserve_segments = placement.logs() as u32;
    let setting = LogSetting { reserve_segments, ..LogSetting::plain(shape, BLOCKS, DISK) };
    let mut log = Log::new(setting, placement)?;
    let mut stream = RandomStreams::new(1).stream("updates");
    log.preload_run(0, BLOCKS)?;
    for _ in 0..20 * BLOCKS {
        let range = if chance(&mut stream, 0.9) { BLOCKS / 10 } else { BLOCKS };
        let block = uniform_below(&mut stream, u64::from(range)) as u32;
        log.write(block, 0, &mut Unpriced)?;
    }
    Ok(log.counts().write_amplification().ok_or("nothing was written")?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recent = Recent { written: vec![0; BLOCKS as usize], soon_writes: u64::from(BLOCKS) / 4 };
    let (plain, apart) = (write_amplification(NoSeparation)?, write_amplification(recent)?);
    println!("write amplification {plain:.3} in one log, {apart:.3} with what is recent apart");
    Ok(())
}
