//! How long it takes to open a large store, closed in order and after a crash.
//!
//!     cargo run --release -p agewell-store --example opening -- [GiB] [full %]

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures and prints")]

use std::time::Instant;

use agewell_store::device::MemoryDisk;
use agewell_store::{FormatOptions, OpenOptions, Store, Transaction};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize, usual: f64| {
        arguments.get(place).map_or(usual, |text| text.parse().expect("a number"))
    };
    let bytes = (argument(0, 4.0) * f64::from(1 << 30)) as u64;
    let options = OpenOptions::default();
    let disk = MemoryDisk::new(bytes);
    Store::format(&disk, &FormatOptions::new([5; 16])).expect("it can be formatted");
    let store = Store::open(&disk, &options).expect("it opens");
    let blocks = (store.geometry().capacity_blocks() as f64 * argument(1, 90.0) / 100.0) as u32;
    let data = vec![0; 4096];
    for first in (0..blocks).step_by(200) {
        let writes = (first..blocks.min(first + 200)).map(|block| (block, &data[..])).collect();
        store.write(&Transaction { writes, frees: Vec::new() }).expect("there is room");
    }
    store.close().expect("it closes");
    for what in ["closed in order", "after a crash"] {
        let begun = Instant::now();
        let store = Store::open(&disk, &options).expect("it opens");
        println!("{what}: {blocks} blocks, {:.3} s", begun.elapsed().as_secs_f64());
        for block in 0..10_000 {
            let writes = vec![(block * 17 % blocks, &data[..])];
            store.write(&Transaction { writes, frees: Vec::new() }).expect("there is room");
        }
        store.sync().expect("the disk works");
        // Left as it is.
        drop(store);
    }
}
