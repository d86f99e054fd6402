//! Files on a Fast File System that were made beside each other, removed in part, and made again.
//!
//!     cargo run -p agewell-layout --example fast_file_system
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_layout::ffs::{FastFileSystem, Parameters, Policies};
use agewell_layout::file_system::FileSystem;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // No device is listening: layouts alone.
    let device = &mut ();
    let mut system = FastFileSystem::new(&Parameters::smith_1996(Policies::PLAIN))?;
    let root = system.root();
    let directory = system.make_directory(root, device)?;
    let mut small = Vec::new();
    for _ in 0..2000 {
        let file = system.create(directory, device)?;
        system.write(file, 0, 8192, device)?;
        small.push(file);
    }
    println!("layout score {:.3} of small files", score(&system));
    for file in small.iter().step_by(2) {
        system.remove(*file, device)?;
    }
    for _ in 0..20 {
        let file = system.create(directory, device)?;
        system.write(file, 0, 400 << 10, device)?;
    }
    println!("layout score {:.3} with large ones in their holes", score(&system));
    Ok(())
}

/// The share of blocks that lie right behind the one before.
fn score(system: &FastFileSystem) -> f64 {
    let (behind, all) = system.layout_counts();
    if all == 0 { 1.0 } else { behind as f64 / all as f64 }
}
