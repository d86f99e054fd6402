//! What is asked for most, moved to the middle of a disk.
//!
//!     cargo run -p agewell-shuffle --example organ_pipe
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_core::{Operation, RandomStreams, Sector, SectorCount, SimDuration, SimTime};
use agewell_shuffle::{QuantumGrid, RemapKind, ShuffleConfig, Shuffler};

const BLOCK: SectorCount = SectorCount(16);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let all = SectorCount(1000 * BLOCK.0);
    let grid = QuantumGrid::new(all, all, Sector(0), BLOCK)?;
    let config = ShuffleConfig { kind: RemapKind::Shuffle, ..ShuffleConfig::default() };
    let streams = RandomStreams::new(1);
    let mut shuffler = Shuffler::on_grid(&config, grid, SimDuration::ZERO, &streams)?;
    // The tenth block is read often, the last one now and then.
    for number in 0..100 {
        let block = if number % 5 == 0 { 999 } else { 10 };
        shuffler.observe(SimTime::ZERO, Operation::Read, Sector(block * BLOCK.0), BLOCK);
    }
    shuffler.rearrange();
    while shuffler.next_step().is_some() {
        shuffler.complete_step();
    }
    for block in [10, 999, 500] {
        for piece in shuffler.map(Sector(block * BLOCK.0), BLOCK) {
            println!("block {block} lies at block {}", piece.sector.0 / BLOCK.0);
        }
    }
    Ok(())
}
