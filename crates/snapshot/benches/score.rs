//! Files per second of all layout metrics, and of the expected times of reading, on one core.
//!
//! The snapshot has 100,000 files in 100 directories and 300,000 extents, a third of the files
//! broken, names in another order than inodes, as after some aging.
//!
//! What bounds it: the passes over files and extents stream through memory; the sorts of files
//! within directories miss the cache on their ranks.

use std::hint::black_box;
use std::path::Path;

use agewell_core::{RandomStreams, uniform_below};
use agewell_disk::DeviceParameters;
use agewell_snapshot::score::{ScoreOptions, reorganising, score};
use agewell_snapshot::{
    Extent, ExtentFlags, FileKind, FileSystemFacts, FreeExtent, NO_TIME, Snapshot, SnapshotFile,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const FILES: u64 = 100_000;
const DIRECTORIES: u64 = 100;
const BLOCK: u64 = 4096;
const DEVICE_BYTES: u64 = 16 << 30;

fn file(inode: u64, kind: FileKind, directory: u64, rank: u32, extents: u32) -> SnapshotFile {
    SnapshotFile {
        inode,
        kind,
        links: 1,
        size_bytes: 0,
        birth_ns: inode as i64 * 1000,
        change_ns: NO_TIME,
        modify_ns: inode as i64 * 1000,
        directory,
        readdir_rank: rank,
        name_rank: rank,
        first_extent: 0,
        extents,
    }
}

fn aged() -> Snapshot {
    let mut stream = RandomStreams::new(1).stream("score");
    let mut snapshot = Snapshot {
        facts: FileSystemFacts {
            kind: "ext4".to_owned(),
            block_bytes: BLOCK as u32,
            fragment_bytes: BLOCK as u32,
            total_bytes: DEVICE_BYTES,
            free_bytes: DEVICE_BYTES / 4,
            group_bytes: 128 << 20,
            taken_ns: NO_TIME,
            free_map: true,
            ..FileSystemFacts::default()
        },
        ..Snapshot::default()
    };
    snapshot.files.push(file(2, FileKind::Directory, 2, 0, 0));
    for number in 1..=DIRECTORIES {
        snapshot.files.push(file(2 + number, FileKind::Directory, 2, number as u32, 0));
    }
    let mut next = 0;
    for number in 0..FILES {
        let directory = 3 + number % DIRECTORIES;
        let rank = uniform_below(&mut stream, 1 << 30) as u32;
        let extents = if number % 3 == 0 { 7 } else { 1 };
        let mut made = file(1000 + number, FileKind::Regular, directory, rank, extents);
        made.first_extent = snapshot.extents.len() as u32;
        let mut logical = 0;
        for _ in 0..extents {
            if uniform_below(&mut stream, 3) == 0 {
                next = uniform_below(&mut stream, DEVICE_BYTES / BLOCK - 64);
            }
            let blocks = 1 + uniform_below(&mut stream, 8);
            snapshot.extents.push(Extent {
                logical_bytes: logical * BLOCK,
                physical_bytes: next * BLOCK,
                length_bytes: blocks * BLOCK,
                flags: ExtentFlags::default(),
            });
            logical += blocks;
            next = (next + blocks) % (DEVICE_BYTES / BLOCK - 64);
        }
        made.size_bytes = logical * BLOCK;
        snapshot.files.push(made);
    }
    for number in 0..20_000 {
        let start = number * (DEVICE_BYTES / 20_000 / BLOCK) * BLOCK;
        let blocks = 1 + uniform_below(&mut stream, 64);
        snapshot.free.push(FreeExtent { physical_bytes: start, length_bytes: blocks * BLOCK });
    }
    snapshot
}

fn benchmark(criterion: &mut Criterion) {
    let snapshot = aged();
    let catalogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices");
    let device = DeviceParameters::find("seagate-st2000dm006", &catalogue)
        .expect("the catalogue has this device");
    let mut group = criterion.benchmark_group("score");
    group.throughput(Throughput::Elements(FILES));
    group.sample_size(20);
    group.bench_function("metrics", |bencher| {
        bencher.iter(|| score(black_box(&snapshot), &ScoreOptions::default()));
    });
    group.bench_function("reorganising", |bencher| {
        bencher.iter(|| reorganising(black_box(&snapshot), &device));
    });
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
