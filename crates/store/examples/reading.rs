//! How fast blocks are read: in runs, as they were written and as random updates have left them, and one
//! by one; and how long it takes to say which there are.
//!
//!     cargo run --release -p agewell-store --example reading -- [memory|FILE] [GiB] [full %]

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures and prints")]

use std::path::Path;
use std::time::Instant;

use agewell_core::{RandomStreams, uniform_below};
use agewell_store::device::{Disk, FileDisk, FileOptions, MemoryDisk};
use agewell_store::{FormatOptions, OpenOptions, Store, Transaction};

const BLOCK_BYTES: usize = 4096;
/// Blocks of a call: what the kernel asks a file system for at most.
const RUN: usize = 256;

fn read<D: Disk>(store: &Store<D>, blocks: u32, run: usize, what: &str) {
    let mut into = vec![0; run * BLOCK_BYTES];
    let begun = Instant::now();
    for first in (0..=blocks - run as u32).step_by(run) {
        if run == 1 {
            assert!(store.read(first, &mut into).expect("it is whole"));
        } else {
            assert!(store.read_run(first, &mut into).expect("all are whole").is_empty());
        }
    }
    let bytes = f64::from(blocks) * BLOCK_BYTES as f64;
    println!("{what}: {:.2} GB/s", bytes / 1e9 / begun.elapsed().as_secs_f64());
}

fn run<D: Disk>(disk: D, full: f64) {
    Store::format(&disk, &FormatOptions::new([5; 16])).expect("it can be formatted");
    let store = Store::open(disk, &OpenOptions::default()).expect("it opens");
    let blocks = (store.geometry().capacity_blocks() as f64 * full) as u32;
    let data = vec![7; BLOCK_BYTES];
    let put = |numbers: &mut dyn Iterator<Item = u32>| {
        let writes = numbers.map(|block| (block, &data[..])).collect();
        store.write(&Transaction { writes, frees: Vec::new() }).expect("there is room");
    };
    for first in (0..blocks).step_by(200) {
        put(&mut (first..blocks.min(first + 200)));
    }
    store.sync().expect("the disk works");
    read(&store, blocks, RUN, "in order");
    read(&store, blocks, RUN, "again");
    read(&store, blocks, 1, "one by one");
    let mut random = RandomStreams::new(1).stream("updates");
    for _ in 0..blocks / 4 {
        put(&mut std::iter::once(uniform_below(&mut random, u64::from(blocks)) as u32));
    }
    store.sync().expect("the disk works");
    read(&store, blocks, RUN, "after random updates of a quarter");
    let begun = Instant::now();
    let held: u32 = store.held_blocks().iter().map(|word| word.count_ones()).sum();
    let (ms, numbers) = (begun.elapsed().as_secs_f64() * 1e3, store.geometry().blocks);
    println!("{held} of {numbers} numbers held: {ms:.2} ms");
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().unwrap_or_else(|| "memory".to_owned());
    let mut number = |usual: f64| {
        arguments.next().map_or(usual, |number| number.parse().expect("a number is asked for"))
    };
    let bytes = (number(1.0) * f64::from(1 << 30)) as u64;
    let full = number(90.0) / 100.0;
    if place == "memory" {
        run(MemoryDisk::new(bytes), full);
    } else {
        let file = FileDisk::create(Path::new(&place), bytes, FileOptions::default());
        run(file.expect("the file can be made"), full);
    }
}
