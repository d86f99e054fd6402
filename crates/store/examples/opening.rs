//! How long it takes to open a large store, closed in order and after a crash, and what of memory it takes.
//!
//!     cargo run --release -p agewell-store --example opening -- [FILE] [GiB] [full %]
//!
//! The file has holes where data is zero, so it needs a hundredth of its size. Blocks lie in no order.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures and prints")]

use std::io;
use std::path::Path;
use std::time::Instant;

use agewell_core::{RandomStreams, uniform_below};
use agewell_store::device::{Disk, FileDisk, FileOptions, Piece};
use agewell_store::{FormatOptions, OpenOptions, Store, Transaction};

/// A file in which nothing is written where zeros would be.
#[derive(Debug)]
struct Hollow(FileDisk);

impl Disk for Hollow {
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, into)
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        let is_zero = |data: &[u8]| data.first() == Some(&0) && data[1..] == data[..data.len() - 1];
        let (zero, kept): (Vec<Piece<'_>>, Vec<Piece<'_>>) =
            pieces.iter().partition(|piece| is_zero(piece.data));
        let mut zero = zero.iter();
        zero.try_for_each(|piece| self.0.discard(piece.offset, piece.data.len() as u64))?;
        self.0.write(&kept)
    }

    fn discard(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    /// What a crash of the machine would leave is not asked for here.
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Memory of this process that is in use, bytes.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize, usual: f64| {
        arguments.get(place).map_or(usual, |text| text.parse().expect("a number"))
    };
    let path = arguments.first().map_or("opening.store", String::as_str);
    let bytes = (argument(1, 4.0) * f64::from(1 << 30)) as u64;
    let options = OpenOptions::default();
    if !Path::new(path).exists() {
        let disk = FileDisk::create(Path::new(path), bytes, FileOptions::default());
        let disk = disk.expect("a file can be made");
        Store::format(&disk, &FormatOptions::new([5; 16])).expect("it can be formatted");
        let store = Store::open(Hollow(disk), &options).expect("it opens");
        let capacity = store.geometry().capacity_blocks();
        let blocks = (capacity as f64 * argument(2, 90.0) / 100.0) as u64;
        let data = vec![0; 4096];
        for first in (0..blocks).step_by(200) {
            // A prime that no store is a multiple of: neighbours lie far from one another.
            let scattered = |number: u64| (number * 2_654_435_761 % blocks) as u32;
            let numbers = first..blocks.min(first + 200);
            let writes = numbers.map(|number| (scattered(number), &data[..])).collect();
            store.write(&Transaction { writes, frees: Vec::new() }).expect("there is room");
        }
        store.close().expect("it closes");
    }
    let disk = || {
        let disk = FileDisk::open(Path::new(path), FileOptions::default());
        Hollow(disk.expect("it is there"))
    };
    let data = vec![0; 4096];
    for what in ["closed in order", "after a crash"] {
        let disk = disk();
        let before = resident_bytes();
        let begun = Instant::now();
        let store = Store::open(disk, &options).expect("it opens");
        let took = begun.elapsed().as_secs_f64();
        let (live, memory) = (store.live_blocks(), resident_bytes() - before);
        let a_block = memory as f64 / live as f64;
        println!("{what}: {live} blocks, {took:.3} s, {a_block:.1} bytes of memory a live block");
        for block in 0..10_000 {
            let writes = vec![((block * 7919 % live) as u32, &data[..])];
            store.write(&Transaction { writes, frees: Vec::new() }).expect("there is room");
        }
        store.sync().expect("the disk works");
        // Left as it is.
        drop(store);
    }
    // The most that can be behind the map: until the ring is full, and nearly so again.
    let store = Store::open(disk(), &options).expect("it opens");
    let live = store.live_blocks();
    let mut random = RandomStreams::new(1).stream("updates");
    let mut write_some = || {
        let mut writes: Vec<(u32, &[u8])> = Vec::with_capacity(64);
        for _ in 0..64 {
            let block = uniform_below(&mut random, live) as u32;
            if writes.iter().all(|write| write.0 != block) {
                writes.push((block, &data));
            }
        }
        store.write(&Transaction { writes, frees: Vec::new() }).expect("there is room");
        store.sync().expect("the disk works");
    };
    let mut written = [0_u64; 2];
    for maps in [1, 2] {
        while store.medium_counts().maps_written < maps {
            write_some();
            written[maps as usize - 1] += 1;
        }
    }
    (0..written[1] * 19 / 20).for_each(|_| write_some());
    drop(store);
    let begun = Instant::now();
    let store = Store::open(disk(), &options).expect("it opens");
    let (replayed, took) = (store.opened().replayed, begun.elapsed().as_secs_f64());
    println!("after a crash, {replayed} groups behind the map: {live} blocks, {took:.3} s");
}
