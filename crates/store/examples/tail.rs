//! How long durable transactions take while room is made: the median, the tail, and the worst.
//!
//!     cargo run --release -p agewell-store --example tail -- [memory|FILE] [GiB] [full %] [clean|plug|thread|adaptive] [behind|alone] [threads]

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures and prints")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::mechanism::Mechanism;
use agewell_store::device::{Disk, FileDisk, FileOptions, MemoryDisk};
use agewell_store::{Collector, CollectorOptions, FormatOptions, OpenOptions, Store, Transaction};

const BLOCKS: usize = 64;
const TRANSACTIONS: usize = 20_000;

fn transact<D: Disk>(store: &Store<D>, blocks: u32, thread: u32, count: usize) -> Vec<Duration> {
    let mut random = RandomStreams::new(1).stream(&format!("updates {thread}"));
    let data: Vec<u8> = (0..4096 * BLOCKS).map(|at| (at * 31 / 7) as u8).collect();
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let mut writes: Vec<(u32, &[u8])> = Vec::with_capacity(BLOCKS);
        for data in data.chunks_exact(4096) {
            let block = uniform_below(&mut random, u64::from(blocks)) as u32;
            if writes.iter().all(|write| write.0 != block) {
                writes.push((block, data));
            }
        }
        let begun = Instant::now();
        store.write(&Transaction { writes, frees: Vec::new() }).expect("there is room");
        store.sync().expect("the disk works");
        took.push(begun.elapsed());
    }
    took
}

fn run<D: Disk + Send + Sync + 'static>(
    disk: D,
    full: f64,
    options: &OpenOptions,
    (is_behind, threads): (bool, u32),
) {
    Store::format(&disk, &FormatOptions::new([5; 16])).expect("it can be formatted");
    let store = Arc::new(Store::open(disk, options).expect("it opens"));
    let blocks = (store.geometry().capacity_blocks() as f64 * full) as u32;
    let data = vec![7; 4096];
    for first in (0..blocks).step_by(BLOCKS) {
        let numbers = first..blocks.min(first + BLOCKS as u32);
        let writes = numbers.map(|block| (block, &data[..])).collect();
        store.write(&Transaction { writes, frees: Vec::new() }).expect("there is room");
    }
    store.sync().expect("the disk works");
    let start = || Collector::start(Arc::clone(&store), CollectorOptions { discards: false });
    let collector = is_behind.then(|| start().expect("there may be threads"));
    // Until it is steady.
    transact(&store, blocks, 1_000, blocks as usize / BLOCKS);
    let begun = Instant::now();
    let mut took: Vec<Duration> = std::thread::scope(|scope| {
        let count = TRANSACTIONS / threads as usize;
        let store = &store;
        let threads: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || transact(store, blocks, thread, count)))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it works")).collect()
    });
    let rate = took.len() as f64 / begun.elapsed().as_secs_f64();
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{rate:.0} transactions/s; median {:.3} ms, p90 {:.3}, p99 {:.3} ({:.1} x), p99.9 {:.3}, worst {:.3}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.99) / at(0.5),
        at(0.999),
        at(1.0)
    );
    if let Some(collector) = collector {
        println!("{:?}", collector.stop());
    }
    let counts = store.log_counts();
    println!(
        "cleaned {:.3} a new block, plugged {:.3}, threaded {:.3}",
        counts.cleaned_blocks as f64 / counts.new_blocks as f64,
        counts.plugged_blocks as f64 / counts.new_blocks as f64,
        counts.threaded_blocks as f64 / counts.new_blocks as f64
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().unwrap_or_else(|| "memory".to_owned());
    let mut number = |usual: f64| {
        arguments.next().map_or(usual, |number| number.parse().expect("a number is asked for"))
    };
    let bytes = (number(1.0) * f64::from(1 << 30)) as u64;
    let full = number(95.0) / 100.0;
    let options = match arguments.next().as_deref() {
        Some("clean") => OpenOptions::fixed(Mechanism::Clean),
        Some("plug") => OpenOptions::fixed(Mechanism::Plug),
        Some("thread") => OpenOptions::fixed(Mechanism::Thread),
        _ => OpenOptions::default(),
    };
    let is_behind = arguments.next().as_deref() != Some("alone");
    let threads = arguments.next().map_or(1, |threads| threads.parse().expect("a number"));
    if place == "memory" {
        run(MemoryDisk::new(bytes), full, &options, (is_behind, threads));
    } else {
        let file = FileDisk::create(Path::new(&place), bytes, FileOptions::default());
        run(file.expect("the file can be made"), full, &options, (is_behind, threads));
    }
}
