//! What operations cost without the kernel above and a device below: on a store in memory.

#![allow(missing_docs, reason = "criterion's macros make functions without any")]

use std::hint::black_box;
use std::sync::Arc;

use agewell_core::mix;
use agewell_fs::{Caller, FileSystem, MakeOptions, MountOptions, New, ROOT_INODE, Rename, Time};
use agewell_store::device::MemoryDisk;
use agewell_store::{FormatOptions, OpenOptions, Store};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const FILE_BYTES: u64 = 128 << 20;
const NOW: Time = Time { seconds: 1, nanoseconds: 0 };

fn made() -> FileSystem<MemoryDisk> {
    let disk = MemoryDisk::new(512 << 20);
    Store::format(&disk, &FormatOptions::new([1; 16])).unwrap();
    let store = Store::open(disk, &OpenOptions::default()).unwrap();
    FileSystem::make(&store, &MakeOptions::default()).unwrap();
    FileSystem::open(Arc::new(store), &MountOptions::default()).unwrap()
}

fn operations(criterion: &mut Criterion) {
    let fs = made();
    let caller = Caller::default();
    let new = New { mode: 0o100_644, device: 0, target: b"" };
    let names: Vec<String> = (0..10_000).map(|number| format!("file {number}")).collect();
    for name in &names {
        fs.make_file(ROOT_INODE, name.as_bytes(), &new, &caller).unwrap();
    }
    let mut number = 0;
    criterion.bench_function("create and unlink", |bencher| {
        bencher.iter(|| {
            number += 1;
            let name = format!("new {number}");
            let made = fs.make_file(ROOT_INODE, name.as_bytes(), &new, &caller).unwrap();
            fs.unlink(ROOT_INODE, name.as_bytes(), NOW).unwrap();
            fs.let_go(made.inode);
        });
    });
    criterion.bench_function("lookup with attributes", |bencher| {
        bencher.iter(|| {
            number += 1;
            let name = &names[(mix(number) % 10_000) as usize];
            black_box(fs.lookup(ROOT_INODE, name.as_bytes()).unwrap())
        });
    });
    let file = fs.make_file(ROOT_INODE, b"large", &new, &caller).unwrap().inode;
    let mut data = vec![7; 1 << 20];
    let mut group = criterion.benchmark_group("a file of 128 MiB");
    group.throughput(Throughput::Bytes(1 << 20));
    group.bench_function("written, 1 MiB", |bencher| {
        bencher.iter(|| {
            number += 1;
            fs.write(file, (number << 20) % FILE_BYTES, &data, true, NOW).unwrap()
        });
    });
    for at in 0..FILE_BYTES >> 20 {
        fs.write(file, at << 20, &data, true, NOW).unwrap();
    }
    group.bench_function("read, 1 MiB", |bencher| {
        bencher.iter(|| {
            number += 1;
            fs.read(file, (number << 20) % FILE_BYTES, &mut data).unwrap()
        });
    });
    group.throughput(Throughput::Bytes(4096));
    group.bench_function("written anywhere, 4 KiB", |bencher| {
        bencher.iter(|| {
            number += 1;
            let at = mix(number) % (FILE_BYTES / 4096) * 4096;
            fs.write(file, at, &data[..4096], true, NOW).unwrap()
        });
    });
    group.finish();
}

/// Syncs of what has changed one node and several: the latter go to the journal, and from then on the former, too.
fn syncs(criterion: &mut Criterion) {
    let fs = made();
    let caller = Caller::default();
    let make = |name: String, mode| {
        let new = New { mode, device: 0, target: b"" };
        fs.make_file(ROOT_INODE, name.as_bytes(), &new, &caller).unwrap().inode
    };
    let directories: Vec<u64> =
        (0..64).map(|number| make(format!("directory {number}"), 0o040_755)).collect();
    let file = make("file".into(), 0o100_644);
    for number in 0..6400 {
        let new = New { mode: 0o100_644, device: 0, target: b"" };
        let name = format!("file {number}");
        fs.make_file(directories[number % 64], name.as_bytes(), &new, &caller).unwrap();
    }
    fs.write(file, 0, &vec![7; 1 << 20], true, NOW).unwrap();
    fs.checkpoint().unwrap();
    fs.sync().unwrap();
    let mut number = 0;
    let mut one = |name: &str| {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                number += 1;
                fs.write(file, mix(number) % 256 * 4096, &[8; 4096], true, NOW).unwrap();
                fs.sync().unwrap();
            });
        });
    };
    one("4 KiB written and synced");
    let [from, to] = [directories[7], directories[40]];
    fs.rename((from, b"file 7"), (to, b"moved"), Rename::default(), &caller).unwrap();
    fs.sync().unwrap();
    assert!(fs.journaled().nodes > 0);
    one("4 KiB written and synced, with a journal");
    let mut moves = 0_usize;
    criterion.bench_function(
        "a file moved to another directory and back, each synced",
        |bencher| {
            bencher.iter(|| {
                moves += 1;
                let [from, to] = [moves % 64, (moves + 9) % 64].map(|at| directories[at]);
                let name = format!("file {}", moves % 64 + 64);
                for (from, to) in [
                    ((from, name.as_bytes()), (to, &b"there"[..])),
                    ((to, &b"there"[..]), (from, name.as_bytes())),
                ] {
                    fs.rename(from, to, Rename::default(), &caller).unwrap();
                    fs.sync().unwrap();
                }
            });
        },
    );
}

criterion_group!(benches, operations, syncs);
criterion_main!(benches);
