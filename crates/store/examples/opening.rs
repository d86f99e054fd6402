//! How long it takes to open a large store, closed in order and after a crash, and what of memory it takes.
//!
//!     cargo run --release -p agewell-store --example opening -- [FILE] [GiB] [full %]
//!
//! The file has holes where data is zero, so it needs a hundredth of its size. Blocks lie in no order. Each
//! state is opened several times, and then gone on from; a file that is there is only opened. What it takes of
//! the processor is that of both threads together, to a hundredth of a second.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures and prints")]

use std::io;
use std::path::Path;
use std::time::Instant;

use agewell_core::{RandomStreams, uniform_below};
use agewell_store::device::{Disk, FileDisk, FileOptions, Piece};
use agewell_store::{FormatOptions, OpenOptions, Store, Transaction};

/// Times that each state is opened.
const TIMES: usize = 5;

/// A file in which nothing is written where zeros would be, or nothing at all.
#[derive(Debug)]
struct Hollow(FileDisk, Written);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Kept,
    Forgotten,
}

impl Disk for Hollow {
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, into)
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        if self.1 == Written::Forgotten {
            return Ok(());
        }
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

/// What this process has taken of the processor, seconds.
fn processor_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |field: usize| {
        let field = behind_name.split_ascii_whitespace().nth(field);
        field.and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0)
    };
    // User and system, in hundredths of a second: USER_HZ of Linux.
    (ticks(11) + ticks(12)) / 100.0
}

/// Opens what is in the file at `path`, which stays as it is, and says what that took.
fn open(path: &Path, what: &str) {
    let (mut wall, mut processor) = ([0.0; TIMES], [0.0; TIMES]);
    let (mut live, mut replayed, mut bytes) = (0, 0, 0);
    for time in 0..TIMES {
        let disk = FileDisk::open(path, FileOptions::default()).expect("it is there");
        let disk = Hollow(disk, Written::Forgotten);
        let before = resident_bytes();
        let (begun, used) = (Instant::now(), processor_s());
        let store = Store::open(disk, &OpenOptions::default()).expect("it opens");
        wall[time] = begun.elapsed().as_secs_f64();
        processor[time] = processor_s() - used;
        (live, replayed) = (store.live_blocks(), store.opened().replayed);
        if time == 0 {
            bytes = resident_bytes() - before;
        }
    }
    wall.sort_by(f64::total_cmp);
    processor.sort_by(f64::total_cmp);
    println!(
        "{what}: {live} blocks, {replayed} groups behind the map; best {:.3} s, median {:.3}; of the processor \
         {:.2} and {:.2}; {:.1} bytes of memory a live block",
        wall[0],
        wall[TIMES / 2],
        processor[0],
        processor[TIMES / 2],
        bytes as f64 / live as f64
    );
}

/// Makes a store in a file of `bytes` at `path`, `full` per cent of which are in use, and closes it.
fn make(path: &Path, bytes: u64, full: f64) {
    let disk = FileDisk::create(path, bytes, FileOptions::default()).expect("a file can be made");
    Store::format(&disk, &FormatOptions::new([5; 16])).expect("it can be formatted");
    let disk = Hollow(disk, Written::Kept);
    let store = Store::open(disk, &OpenOptions::default()).expect("it opens");
    let capacity = store.geometry().capacity_blocks();
    let blocks = (capacity as f64 * full / 100.0) as u64;
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

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize, usual: f64| {
        arguments.get(place).map_or(usual, |text| text.parse().expect("a number"))
    };
    let path = arguments.first().map_or("opening.store", String::as_str);
    let bytes = (argument(1, 4.0) * f64::from(1 << 30)) as u64;
    let options = OpenOptions::default();
    let path = Path::new(path);
    if path.exists() {
        return open(path, "as it was left");
    }
    make(path, bytes, argument(2, 90.0));
    let disk = || {
        let disk = FileDisk::open(path, FileOptions::default());
        Hollow(disk.expect("it is there"), Written::Kept)
    };
    let data = vec![0; 4096];
    open(path, "closed in order");
    let store = Store::open(disk(), &options).expect("it opens");
    let live = store.live_blocks();
    for block in 0..10_000 {
        let writes = vec![((block * 7919 % live) as u32, &data[..])];
        store.write(&Transaction { writes, frees: Vec::new() }).expect("there is room");
    }
    store.sync().expect("the disk works");
    // Left as it is.
    drop(store);
    open(path, "after a crash");
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
    open(path, "after a crash, with the ring nearly full");
}
