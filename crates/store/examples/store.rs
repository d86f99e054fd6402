//! Two blocks written together, all or nothing, and read back from what was closed.
//!
//!     cargo run -p agewell-store --example store
//!
//! In memory; `FileDisk` keeps the same in a file or on a block device.
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_store::device::MemoryDisk;
use agewell_store::{FormatOptions, OpenOptions, Store, Transaction};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let disk = MemoryDisk::new(16 << 20);
    Store::format(&disk, &FormatOptions::new([7; 16]))?;
    let store = Store::open(disk, &OpenOptions::default())?;
    let (one, two) = ([1; 4096], [2; 4096]);
    store.write(&Transaction { writes: vec![(10, &one), (11, &two)], frees: Vec::new() })?;
    // From here on both survive a crash.
    store.sync()?;
    let disk = store.close()?;
    let store = Store::open(disk, &OpenOptions::default())?;
    let mut read = [0; 4096];
    for block in [10, 11, 12] {
        let is_there = store.read(block, &mut read)?;
        println!(
            "block {block}: {}",
            if is_there { read[0].to_string() } else { "none".to_owned() }
        );
    }
    Ok(())
}
