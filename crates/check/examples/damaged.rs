//! A store that lost a sector is read by its format alone: what is damaged, and what can be had back.
//!
//!     cargo run -p agewell-check --example damaged
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use agewell_check::{CheckOptions, check};
use agewell_store::device::{Disk, MemoryDisk};
use agewell_store::{FormatOptions, OpenOptions, Store, Transaction};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let disk = MemoryDisk::new(16 << 20);
    Store::format(&disk, &FormatOptions::new([7; 16]))?;
    let store = Store::open(disk, &OpenOptions::default())?;
    let blocks: Vec<Vec<u8>> = (0..100).map(|number| vec![number; 4096]).collect();
    let writes = blocks.iter().enumerate().map(|(at, data)| (at as u32, data.as_slice())).collect();
    store.write(&Transaction { writes, frees: Vec::new() })?;
    store.sync()?;
    let disk = store.close()?;
    let mut image = vec![0; disk.size_bytes() as usize];
    disk.read(0, &mut image)?;
    // Block 42 is somewhere: it alone is full of 42.
    let hit = image.windows(512).position(|bytes| bytes == [42; 512]).expect("it was written");
    image[hit] ^= 1;
    let checked = check(&image, CheckOptions { data: true }, &mut |_, _| true)?;
    for finding in &checked.findings {
        println!("{finding}");
    }
    println!("damaged: {:?}", checked.affected().ranges());
    Ok(())
}
