//! Transactions of random blocks on a store in memory or in a file: how many a second, what they cost.
//!
//!     cargo run --release -p agewell-store --example transactions -- [memory|FILE] [GiB] [full %] [clean|plug|thread|adaptive]

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures and prints")]

use std::time::Instant;

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::mechanism::Mechanism;
use agewell_store::device::{Disk, MemoryDisk};
use agewell_store::{FormatOptions, OpenOptions, Store, Transaction};

const BLOCKS: usize = 64;

fn run<D: Disk>(disk: D, full: f64, options: &OpenOptions) {
    Store::format(&disk, &FormatOptions::new([5; 16])).expect("it can be formatted");
    let store = Store::open(disk, options).expect("it opens");
    let blocks = (store.geometry().capacity_blocks() as f64 * full) as u32;
    let data: Vec<u8> = (0..4096 * BLOCKS).map(|at| (at * 31 / 7) as u8).collect();
    let begun = Instant::now();
    for first in (0..blocks).step_by(BLOCKS) {
        let numbers = first..blocks.min(first + BLOCKS as u32);
        let writes = numbers.zip(data.chunks_exact(4096)).collect();
        store.write(&Transaction { writes, frees: Vec::new() }).expect("there is room");
    }
    store.sync().expect("the disk works");
    let filled = begun.elapsed().as_secs_f64();
    println!("filled {:.2} GB/s", f64::from(blocks) * 4096.0 / filled / 1e9);
    let mut random = RandomStreams::new(1).stream("updates");
    // Until it is steady: as often as there are blocks.
    for measured in [false, true] {
        let transactions = blocks as usize / BLOCKS;
        let (medium, log) = (store.medium_counts(), store.log_counts());
        let begun = Instant::now();
        for _ in 0..transactions {
            let mut writes: Vec<(u32, &[u8])> = Vec::with_capacity(BLOCKS);
            for data in data.chunks_exact(4096) {
                let block = uniform_below(&mut random, u64::from(blocks)) as u32;
                if writes.iter().all(|write| write.0 != block) {
                    writes.push((block, data));
                }
            }
            store.write(&Transaction { writes, frees: Vec::new() }).expect("there is room");
            store.sync().expect("the disk works");
        }
        let took = begun.elapsed().as_secs_f64();
        if measured {
            let now = store.medium_counts();
            let user = (now.new_blocks - medium.new_blocks) as f64;
            let moved = (now.moved_blocks - medium.moved_blocks) as f64;
            let inline = (now.inline_blocks - medium.inline_blocks) as f64;
            let ring = (now.ring_blocks - medium.ring_blocks) as f64;
            let map = (now.map_blocks - medium.map_blocks) as f64;
            let all = user + moved + inline + ring + map;
            println!(
                "{:.0} transactions/s, {:.3} GB/s of user data",
                transactions as f64 / took,
                user * 4096.0 / took / 1e9
            );
            println!(
                "moved {:.3} a block; metadata {:.2} % of bytes (inline {:.2}, ring {:.2}, map {:.2}); \
                 flushes {:.3} a transaction; checkpoints {}, maps {}",
                moved / user,
                (inline + ring + map) / all * 100.0,
                inline / all * 100.0,
                ring / all * 100.0,
                map / all * 100.0,
                (now.flushes - medium.flushes) as f64 / transactions as f64,
                now.checkpoints - medium.checkpoints,
                now.maps_written - medium.maps_written,
            );
            println!("segments cleaned {}", store.log_counts().since(&log).segments_cleaned);
        }
    }
    let begun = Instant::now();
    let disk = store.close().expect("it closes");
    println!("closed in {:.3} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    drop(Store::open(disk, options).expect("it opens"));
    println!("opened in {:.3} s", begun.elapsed().as_secs_f64());
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize, usual: &str| {
        arguments.get(place).cloned().unwrap_or_else(|| usual.to_owned())
    };
    let gib: f64 = argument(1, "1").parse().expect("GiB");
    let full: f64 = argument(2, "50").parse().expect("per cent");
    let options = match argument(3, "clean").as_str() {
        "plug" => OpenOptions::fixed(Mechanism::Plug),
        "thread" => OpenOptions::fixed(Mechanism::Thread),
        "adaptive" => OpenOptions::default(),
        _ => OpenOptions::fixed(Mechanism::Clean),
    };
    let bytes = (gib * f64::from(1 << 30)) as u64;
    run(MemoryDisk::new(bytes), full / 100.0, &options);
}
