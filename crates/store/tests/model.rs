//! The commit path by the model checker: every order in which threads can take its locks, up to a number of
//! preemptions.
//!
//!     cargo test --release -p agewell-store --features model-checked --test model

#![allow(clippy::print_stdout, reason = "it says how many orders it has looked at")]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use agewell_log::policy::mechanism::Mechanism;
use agewell_store::device::{Disk, MemoryDisk, Piece};
use agewell_store::{FormatOptions, OpenOptions, Store, Transaction};

const BLOCK_BYTES: usize = 512;
const DISK_BYTES: u64 = 512 * 300;

/// A disk that knows what a loss of power would leave: what was written before the last flush.
#[derive(Debug)]
struct Powered {
    now: MemoryDisk,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    /// What was written since the last flush.
    pending: Vec<(u64, Vec<u8>)>,
    /// What would be left.
    left: MemoryDisk,
}

impl Disk for Powered {
    fn size_bytes(&self) -> u64 {
        self.now.size_bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.now.read(offset, into)
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        let written = pieces.iter().map(|piece| (piece.offset, piece.data.to_vec()));
        self.kept.lock().unwrap().pending.extend(written);
        self.now.write(pieces)
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.now.discard(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        let kept = &mut *self.kept.lock().unwrap();
        for (offset, data) in kept.pending.drain(..) {
            kept.left.write(&[Piece { offset, data: &data }])?;
        }
        Ok(())
    }
}

fn copy(disk: &impl Disk) -> MemoryDisk {
    let mut bytes = vec![0; disk.size_bytes() as usize];
    disk.read(0, &mut bytes).unwrap();
    let copy = MemoryDisk::new(disk.size_bytes());
    copy.write(&[Piece { offset: 0, data: &bytes }]).unwrap();
    copy
}

/// A store in which three quarters of what there may be is there, all of version 0, after `updates`.
fn example(updates: u32) -> MemoryDisk {
    // The locks of the model checker are in no other place.
    let made = Arc::new(Mutex::new(None));
    let into = Arc::clone(&made);
    model(0, move || *into.lock().unwrap() = Some(filled(updates)));
    made.lock().unwrap().take().unwrap()
}

fn filled(updates: u32) -> MemoryDisk {
    let disk = MemoryDisk::new(DISK_BYTES);
    let format = FormatOptions {
        block_bytes: BLOCK_BYTES as u32,
        segment_blocks: 8,
        ..FormatOptions::new([2; 16])
    };
    Store::format(&disk, &format).unwrap();
    let store = Store::open(disk, &OpenOptions::fixed(Mechanism::Clean)).unwrap();
    let blocks = store.geometry().capacity_blocks() as u32 * 3 / 4;
    for block in (0..blocks).chain((0..updates).map(|update| update * 7 % blocks)) {
        write(&store, block, 0);
        store.sync().unwrap();
    }
    store.close().unwrap()
}

fn powered(disk: &MemoryDisk) -> Arc<Powered> {
    Arc::new(Powered {
        now: copy(disk),
        kept: Mutex::new(Kept { pending: Vec::new(), left: copy(disk) }),
    })
}

fn write<D: Disk>(store: &Store<D>, block: u32, version: u8) {
    let data = [version; BLOCK_BYTES];
    let writes = vec![(block, &data[..])];
    store.write(&Transaction { writes, frees: Vec::new() }).unwrap();
}

fn version<D: Disk>(store: &Store<D>, block: u32) -> u8 {
    let mut into = [0; BLOCK_BYTES];
    assert!(store.read(block, &mut into).unwrap());
    assert!(into.iter().all(|byte| *byte == into[0]), "block {block} is torn");
    into[0]
}

/// Looks at every order with at most `preemptions`.
fn model(preemptions: usize, check: impl Fn() + Send + Sync + 'static) {
    let orders = Arc::new(AtomicU64::new(0));
    let (counted, check) = (Arc::clone(&orders), Arc::new(check));
    let check = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        spawn({
            let check = Arc::clone(&check);
            move || check()
        })
        .join()
        .unwrap();
    };
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.check(check);
    println!("{} orders", orders.load(Ordering::Relaxed));
}

/// A thread of the model, with room for what a collection calls.
fn spawn<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> loom::thread::JoinHandle<T> {
    loom::thread::Builder::new().stack_size(1 << 20).spawn(body).unwrap()
}

fn is_durable(disk: &Powered, block: u32, expected: u8) {
    let left = copy(&disk.kept.lock().unwrap().left);
    let store = Store::open(left, &OpenOptions::fixed(Mechanism::Clean)).unwrap();
    assert_eq!(version(&store, block), expected, "block {block} was acknowledged");
}

#[test]
fn who_syncs_finds_what_it_has_written_on_the_medium() {
    let image = example(0);
    model(8, move || {
        let disk = powered(&image);
        let options = OpenOptions::fixed(Mechanism::Clean);
        let store = Arc::new(Store::open(Arc::clone(&disk), &options).unwrap());
        let threads: Vec<_> = (1..3)
            .map(|thread| {
                let (store, disk) = (Arc::clone(&store), Arc::clone(&disk));
                spawn(move || {
                    write(&store, thread, thread as u8);
                    store.sync().unwrap();
                    is_durable(&disk, thread, thread as u8);
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        store.verify();
    });
}

#[test]
fn who_reads_while_room_is_made_finds_the_newest() {
    let image = example(40);
    model(4, move || {
        let disk = powered(&image);
        let options = OpenOptions::fixed(Mechanism::Clean);
        let store = Arc::new(Store::open(Arc::clone(&disk), &options).unwrap());
        let (writer, reader) = (Arc::clone(&store), Arc::clone(&store));
        let writes = spawn(move || {
            for block in 0..6 {
                write(&writer, block, 1);
            }
            writer.collect().unwrap();
            write(&writer, 0, 2);
            writer.sync().unwrap();
        });
        let reads = spawn(move || {
            let (first, second) = (version(&reader, 0), version(&reader, 0));
            assert!(first <= second, "{second} after {first}");
            // Of what one thread writes in order, nothing later is seen without the earlier.
            let (later, earlier) = (version(&reader, 5), version(&reader, 1));
            assert!(earlier >= later, "{later} without {earlier}");
        });
        writes.join().unwrap();
        reads.join().unwrap();
        assert_eq!(version(&store, 0), 2);
        is_durable(&disk, 0, 2);
        store.verify();
    });
}
