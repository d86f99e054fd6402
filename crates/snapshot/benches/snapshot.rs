//! Files a second: walking a mounted tree, and writing and reading the snapshot file.
//!
//! The tree is made in the temporary directory; where its file system has no FIEMAP the walk is
//! left out and said so. Everything is in the cache: what is measured is the system calls and what
//! agewell does between them, and the free map of the file system below the tree.
//!
//! Bound by: the walk by four system calls a file, of which agewell's own part is a tenth; as it comes,
//! on ext4 and as root, by listing and by copying and checking 256 bytes a file; the file by encoding a
//! dozen columns.

#![allow(clippy::print_stderr, reason = "a benchmark says what it leaves out")]

use std::fs;
use std::hint::black_box;
use std::path::Path;

use agewell_snapshot::columns;
use agewell_snapshot::source::{TakeOptions, take};
use agewell_snapshot::{
    Extent, ExtentFlags, FileKind, FileSystemFacts, FreeExtent, NO_TIME, Snapshot, SnapshotFile,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const FILES: u64 = 100_000;
const TREE_FILES: u64 = 20_000;

/// Files of one to four extents, and half as many free extents.
fn snapshot() -> Snapshot {
    let mut made = Snapshot {
        facts: FileSystemFacts {
            block_bytes: 4096,
            fragment_bytes: 4096,
            ..FileSystemFacts::default()
        },
        ..Snapshot::default()
    };
    let mut device_bytes = 0;
    for file in 0..FILES {
        let first_extent = made.extents.len() as u32;
        for piece in 0..=file % 4 {
            made.extents.push(Extent {
                logical_bytes: piece * 8192,
                physical_bytes: device_bytes,
                length_bytes: 8192,
                flags: ExtentFlags::default(),
            });
            device_bytes += 8192 + 4096 * (file % 7);
        }
        made.files.push(SnapshotFile {
            inode: file + 12,
            kind: FileKind::Regular,
            links: 1,
            size_bytes: (1 + file % 4) * 8192,
            birth_ns: NO_TIME,
            change_ns: file as i64 * 1_000_003,
            modify_ns: file as i64 * 1_000_003,
            directory: 2 + file / 1000,
            readdir_rank: (file % 1000) as u32,
            name_rank: (file * 7 % 1000) as u32,
            first_extent,
            extents: (1 + file % 4) as u32,
        });
    }
    made.free = (0..FILES / 2)
        .map(|place| FreeExtent { physical_bytes: place * 65_536, length_bytes: 4096 })
        .collect();
    made
}

fn file(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("snapshot.parquet");
    let snapshot = snapshot();
    let mut group = criterion.benchmark_group("snapshot file");
    group.sample_size(10).throughput(Throughput::Elements(FILES));
    group.bench_function("write", |bencher| {
        bencher.iter(|| columns::write(black_box(&snapshot), &path).expect("there is room"));
    });
    group.bench_function("read", |bencher| {
        bencher.iter(|| columns::read(black_box(&path)).expect("a snapshot"));
    });
    group.finish();
}

fn make_tree(top: &Path) {
    for directory in 0..TREE_FILES / 200 {
        let directory = top.join(format!("d{directory}"));
        fs::create_dir(&directory).expect("a directory");
        for file in 0..200 {
            fs::write(directory.join(format!("file-{file}")), [1; 5000]).expect("there is room");
        }
    }
}

fn walk(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    make_tree(folder.path());
    let mut group = criterion.benchmark_group("walk");
    group.sample_size(10).throughput(Throughput::Elements(TREE_FILES));
    // Data without a place yet have every file asked about; a file counts as settled after a second.
    rustix::fs::sync();
    std::thread::sleep(std::time::Duration::from_millis(1200));
    for (threads, calls_only) in [(1, true), (2, true), (1, false), (2, false)] {
        let options = TakeOptions { threads: Some(threads), calls_only, ..TakeOptions::default() };
        if let Err(why) = take(folder.path(), &options, &mut |_| Ok(())) {
            eprintln!("walk left out: {why}");
            return;
        }
        let how = if calls_only { "every file asked" } else { "as it comes" };
        group.bench_function(format!("{how}, {threads} threads"), |bencher| {
            bencher.iter(|| take(folder.path(), &options, &mut |_| Ok(())).expect("as before"));
        });
    }
    group.finish();
}

criterion_group!(benches, file, walk);
criterion_main!(benches);
