//! Many threads in one store: each sees what it has written, syncs share flushes, and room is made behind.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_log::policy::mechanism::Mechanism;
use agewell_store::device::{Disk, MemoryDisk, Piece};
use agewell_store::{
    Carrier, Collector, CollectorOptions, FormatOptions, OpenOptions, Scrub, Store, Transaction,
};

const BLOCK_BYTES: usize = 512;
const THREADS: u32 = 4;

/// A disk in memory whose flushes take a while, and are counted.
#[derive(Debug)]
struct SlowlyFlushed {
    disk: MemoryDisk,
    flush: Duration,
    flushes: AtomicU64,
}

impl SlowlyFlushed {
    fn new(bytes: u64, flush: Duration) -> Self {
        Self { disk: MemoryDisk::new(bytes), flush, flushes: AtomicU64::new(0) }
    }
}

impl Disk for SlowlyFlushed {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, into)
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        self.disk.write(pieces)
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.disk.discard(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        thread::sleep(self.flush);
        self.disk.flush()
    }
}

/// A store on a disk of any kind, of which the compiler makes one.
type AnyStore = Store<Box<dyn Disk>>;

fn open(disk: impl Disk + 'static, options: &OpenOptions) -> AnyStore {
    Store::open(Box::new(disk) as Box<dyn Disk>, options).unwrap()
}

fn store(disk: impl Disk + 'static, options: &OpenOptions) -> Arc<AnyStore> {
    store_of(disk, options, 32)
}

fn store_of(
    disk: impl Disk + 'static,
    options: &OpenOptions,
    segment_blocks: u32,
) -> Arc<AnyStore> {
    let format = FormatOptions {
        block_bytes: BLOCK_BYTES as u32,
        segment_blocks,
        ..FormatOptions::new([9; 16])
    };
    Store::format(&disk, &format).unwrap();
    Arc::new(open(disk, options))
}

/// The data of version `version` of `block`; nothing else has it.
fn data(block: u32, version: u64) -> Vec<u8> {
    let word = u64::from(block) << 40 | version;
    word.to_le_bytes().repeat(BLOCK_BYTES / 8)
}

/// The blocks of one thread, and what it has made of them.
struct Owner {
    blocks: std::ops::Range<u32>,
    versions: BTreeMap<u32, u64>,
    random: Stream,
    next: u64,
}

impl Owner {
    fn new(thread: u32, blocks: u32) -> Self {
        let random = RandomStreams::new(17).stream(&format!("thread {thread}"));
        let blocks = thread * blocks..(thread + 1) * blocks;
        Self { blocks, versions: BTreeMap::new(), random, next: 1 }
    }

    fn draw(&mut self) -> u32 {
        let blocks = u64::from(self.blocks.end - self.blocks.start);
        self.blocks.start + uniform_below(&mut self.random, blocks) as u32
    }

    /// A transaction of up to eight blocks, of which some are freed.
    fn write(&mut self, store: &AnyStore) {
        let mut changes: BTreeMap<u32, Option<Vec<u8>>> = BTreeMap::new();
        for _ in 0..=uniform_below(&mut self.random, 8) {
            let block = self.draw();
            let is_freed = uniform_below(&mut self.random, 8) == 0;
            changes.insert(block, (!is_freed).then(|| data(block, self.next)));
        }
        let writes = changes.iter().filter_map(|(block, data)| Some((*block, data.as_deref()?)));
        let freed = changes.iter().filter(|change| change.1.is_none());
        let frees = freed.map(|change| *change.0).collect();
        store.write(&Transaction { writes: writes.collect(), frees }).unwrap();
        for (block, data) in changes {
            match data {
                Some(_) => self.versions.insert(block, self.next),
                None => self.versions.remove(&block),
            };
        }
        self.next += 1;
    }

    /// Reads all of its blocks at once.
    fn check_all(&self, store: &AnyStore) {
        let mut into = vec![1; self.blocks.len() * BLOCK_BYTES];
        let absent = store.read_run(self.blocks.start, &mut into).unwrap();
        let gone = self.blocks.clone().filter(|block| !self.versions.contains_key(block));
        assert!(gone.eq(absent));
        for (block, found) in self.blocks.clone().zip(into.chunks_exact(BLOCK_BYTES)) {
            let version = self.versions.get(&block);
            let written = version.map_or(vec![0; BLOCK_BYTES], |version| data(block, *version));
            assert_eq!(found, written, "block {block}");
        }
    }

    fn check(&self, store: &AnyStore, block: u32) {
        let mut into = vec![0; BLOCK_BYTES];
        let is_there = store.read(block, &mut into).unwrap();
        let version = self.versions.get(&block);
        assert_eq!(is_there, version.is_some(), "block {block}");
        if let Some(version) = version {
            assert_eq!(into, data(block, *version), "block {block}");
        }
    }
}

/// Every thread writes blocks of its own, reads them back, and syncs now and then.
fn work(store: &AnyStore, rounds: u32, blocks: u32) -> Vec<Owner> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut owner = Owner::new(thread, blocks);
                    for round in 0..rounds {
                        if round % 3 == thread % 3 {
                            // What is read before it is written over is not what is read afterwards.
                            let ahead: Vec<u32> = owner.blocks.clone().step_by(3).collect();
                            store.read_ahead(&ahead, &[], 0);
                        }
                        owner.write(store);
                        for _ in 0..4 {
                            let block = owner.draw();
                            owner.check(store, block);
                        }
                        if round % 16 == thread {
                            owner.check_all(store);
                        }
                        if round % 5 == thread {
                            store.sync().unwrap();
                        }
                        if round % 7 == thread {
                            // Others' blocks, too.
                            let from = owner.draw() ^ 1;
                            let listed: Vec<u32> = (0..24).map(|at| from ^ (at * 5 + 3)).collect();
                            store.put_together(&listed).unwrap();
                        }
                    }
                    owner
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn each_thread_sees_what_it_has_written_and_it_is_there_after_opening() {
    let fixed = Mechanism::ALL.map(OpenOptions::fixed);
    for options in fixed.into_iter().chain([OpenOptions::default()]) {
        for (is_collected, is_carried) in [(false, false), (true, false), (true, true)] {
            let disk = Arc::new(MemoryDisk::new(1 << 20));
            let store = store(Arc::clone(&disk), &options);
            let carrier = is_carried.then(|| Carrier::start(Arc::clone(&store)).unwrap());
            let collector = is_collected.then(|| {
                Collector::start(Arc::clone(&store), CollectorOptions::default()).unwrap()
            });
            // Nine tenths full, so that room is made all the time.
            let blocks = store.geometry().capacity_blocks() as u32 * 9 / 10 / THREADS;
            let owners = work(&store, 1_500, blocks);
            store.sync().unwrap();
            drop((collector, carrier));
            store.verify();
            let counts = store.log_counts();
            let made = counts.cleaned_blocks + counts.plugged_blocks + counts.threaded_blocks;
            assert!(made > 1_000, "{options:?}: {counts:?}");
            // As after a crash: it is not closed.
            drop(store);
            let store = open(disk, &options);
            store.verify();
            for owner in &owners {
                owner.blocks.clone().for_each(|block| owner.check(&store, block));
            }
        }
    }
}

#[test]
fn a_store_grows_while_threads_write() {
    for options in [OpenOptions::default(), OpenOptions::fixed(Mechanism::Clean)] {
        let small = Arc::new(MemoryDisk::new(1 << 20));
        drop(store(Arc::clone(&small), &options));
        let disk = Arc::new(MemoryDisk::from_image(&small.image().repeat(3)));
        let store = Arc::new(open(Arc::clone(&disk), &options));
        let carrier = Carrier::start(Arc::clone(&store)).unwrap();
        let collector = Collector::start(Arc::clone(&store), CollectorOptions::default()).unwrap();
        let before = store.geometry().capacity_blocks();
        let blocks = before as u32 * 9 / 10 / THREADS;
        let owners = thread::scope(|scope| {
            scope.spawn(|| {
                while store.log_counts().user_blocks < 3 * before {
                    thread::yield_now();
                }
                store.grow().unwrap();
            });
            work(&store, 1_500, blocks)
        });
        assert!(store.geometry().capacity_blocks() > before * 5 / 2);
        store.sync().unwrap();
        drop((collector, carrier));
        store.verify();
        drop(store);
        let store = open(disk, &options);
        store.verify();
        for owner in &owners {
            owner.blocks.clone().for_each(|block| owner.check(&store, block));
        }
    }
}

#[test]
fn threads_that_wait_at_the_same_time_share_a_flush() {
    let disk = Arc::new(SlowlyFlushed::new(4 << 20, Duration::from_millis(2)));
    let store = store(Arc::clone(&disk), &OpenOptions::fixed(Mechanism::Clean));
    let before = disk.flushes.load(Ordering::Relaxed);
    let syncs: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || {
                    for version in 0..20 {
                        let data = data(thread, version);
                        let writes = vec![(thread, &data[..])];
                        store.write(&Transaction { writes, frees: Vec::new() }).unwrap();
                        store.sync().unwrap();
                    }
                    20
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let flushes = disk.flushes.load(Ordering::Relaxed) - before;
    // One at a time would be 160. Whoever comes while one is at it waits for the next.
    assert!(flushes < syncs / 2, "{flushes} flushes for {syncs} syncs");
}

#[test]
fn a_collector_keeps_room_ahead_and_rests_when_none_can_be_had() {
    let store = store(MemoryDisk::new(1 << 20), &OpenOptions::fixed(Mechanism::Clean));
    let collector = Collector::start(Arc::clone(&store), CollectorOptions::default()).unwrap();
    let blocks = store.geometry().capacity_blocks() as u32;
    let mut owner = Owner::new(0, blocks);
    for _ in 0..600 {
        owner.write(&store);
        store.sync().unwrap();
    }
    // Full to the last block, and nobody writes: it ends by itself.
    for chunk in (0..blocks).collect::<Vec<_>>().chunks(16) {
        let data: Vec<_> = chunk.iter().map(|block| data(*block, 1 << 30)).collect();
        let writes = chunk.iter().zip(&data).map(|(block, data)| (*block, &data[..])).collect();
        store.write(&Transaction { writes, frees: Vec::new() }).unwrap();
    }
    store.sync().unwrap();
    let mut before = store.log_counts();
    for _ in 0..200 {
        thread::sleep(Duration::from_millis(100));
        let now = store.log_counts();
        if now == before {
            break;
        }
        before = now;
    }
    thread::sleep(Duration::from_millis(300));
    assert_eq!(store.log_counts(), before, "it goes on for ever");
    let done = collector.stop();
    assert!(done.needed + done.idle > 0, "{done:?}");
    assert!(done.error.is_none(), "{done:?}");
    for block in 0..blocks {
        let mut into = vec![0; BLOCK_BYTES];
        assert!(store.read(block, &mut into).unwrap());
        assert_eq!(into, data(block, 1 << 30));
    }
}

/// Segments that are collected a part at a time, while others write; and then all at once, when nobody makes
/// room any more.
#[test]
fn long_segments_are_plugged_behind_in_parts() {
    let disk = Arc::new(MemoryDisk::new(8 << 20));
    let options = OpenOptions::fixed(Mechanism::Plug);
    let store = store_of(Arc::clone(&disk), &options, 512);
    let collector = Collector::start(Arc::clone(&store), CollectorOptions::default()).unwrap();
    let blocks = store.geometry().capacity_blocks() as u32 * 9 / 10 / THREADS;
    let owners = work(&store, 6_000, blocks);
    let done = collector.stop();
    assert!(done.error.is_none() && done.needed + done.idle > 10, "{done:?}");
    let counts = store.log_counts();
    assert!(counts.plugged_blocks > 2_000 && counts.cleaned_blocks == 0, "{counts:?}");
    let mut owners = owners.into_iter();
    let mut last = owners.next().expect("there are some");
    for _ in 0..1_000 {
        last.write(&store);
        store.sync().unwrap();
    }
    store.verify();
    // As after a crash: it is not closed.
    drop(store);
    let store = open(disk, &options);
    store.verify();
    last.check_all(&store);
    owners.for_each(|owner| owner.check_all(&store));
}

#[test]
fn a_scrub_finds_what_is_damaged_while_others_write() {
    let disk = Arc::new(MemoryDisk::new(1 << 20));
    let store = store(Arc::clone(&disk), &OpenOptions::fixed(Mechanism::Clean));
    let blocks = store.geometry().capacity_blocks() as u32 / 2;
    let mut owner = Owner::new(1, blocks / 2);
    for block in 0..blocks {
        let data = data(block, 1);
        let writes = vec![(block, &data[..])];
        store.write(&Transaction { writes, frees: Vec::new() }).unwrap();
    }
    store.sync().unwrap();
    // Of the blocks that nobody writes, every block of the disk that holds one of three.
    let mut bytes = vec![0; 1 << 20];
    disk.read(0, &mut bytes).unwrap();
    for block in [3, 77, 200] {
        let at = bytes.chunks(BLOCK_BYTES).position(|at| at == data(block, 1)).unwrap();
        let offset = (at * BLOCK_BYTES) as u64;
        disk.write(&[Piece { offset, data: &[0xee; BLOCK_BYTES] }]).unwrap();
    }
    let scrub = Scrub::start(Arc::clone(&store), 0, 64 << 20).unwrap();
    for _ in 0..200 {
        owner.write(&store);
    }
    let done = scrub.finish();
    assert!(done.is_done && done.error.is_none(), "{done:?}");
    assert_eq!(done.damaged, [3, 77, 200]);
    // Stopped at once, it has looked at a part.
    let done = Scrub::start(Arc::clone(&store), 0, 1).unwrap().stop();
    assert!(!done.is_done && done.next < store.geometry().blocks, "{done:?}");
}
