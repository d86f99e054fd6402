//! Bytes a second of the devices of a store.

use agewell_store::device::{CrashDisk, Disk, FileDisk, FileOptions, MemoryDisk, Piece};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// A segment of a store; the disk is 64 of them, more than caches hold.
const SEGMENT_BYTES: u64 = 4 << 20;
const SEGMENTS: u64 = 64;

fn memory(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("memory");
    let disk = MemoryDisk::new(SEGMENTS * SEGMENT_BYTES);
    let data = vec![7_u8; 256 << 10];
    let mut into = vec![0_u8; 256 << 10];
    for offset in (0..disk.size_bytes()).step_by(data.len()) {
        disk.write(&[Piece { offset, data: &data }]).unwrap();
    }
    for bytes in [4_usize << 10, 256 << 10] {
        group.throughput(Throughput::Bytes(bytes as u64));
        let mut offset = 0;
        group.bench_function(format!("write {} KiB", bytes >> 10), |bencher| {
            bencher.iter(|| {
                disk.write(&[Piece { offset, data: &data[..bytes] }]).unwrap();
                offset = (offset + bytes as u64) % disk.size_bytes();
            });
        });
        group.bench_function(format!("read {} KiB", bytes >> 10), |bencher| {
            bencher.iter(|| {
                disk.read(offset, &mut into[..bytes]).unwrap();
                offset = (offset + bytes as u64) % disk.size_bytes();
            });
        });
    }
    group.finish();
}

/// Segments of 4 MiB in a file, in every way of opening one that its file system has: written whole and
/// flushed, written block by block, read in requests of 1 MiB or at once. `STORE_BENCH_FOLDER` says where it lies.
fn file(criterion: &mut Criterion) {
    let folder = std::env::var_os("STORE_BENCH_FOLDER").map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::tempdir_in(folder).expect("a folder for the file");
    let data = vec![7_u8; SEGMENT_BYTES as usize + 1];
    // Memory that is not aligned is copied.
    let data = &data[1..];
    let mut into = vec![0_u8; SEGMENT_BYTES as usize];
    for (name, is_direct, uses_io_uring) in [
        ("direct, io_uring", true, true),
        ("direct, threads", true, false),
        ("page cache", false, false),
    ] {
        let options = FileOptions { is_direct, uses_io_uring, ..FileOptions::default() };
        let path = folder.path().join(name);
        let disk = FileDisk::create(&path, SEGMENTS * SEGMENT_BYTES, options).expect("a file");
        if disk.is_direct() != is_direct || disk.uses_io_uring() != uses_io_uring {
            continue;
        }
        let mut group = criterion.benchmark_group(format!("file, {name}"));
        let mut segment = 0;
        group.throughput(Throughput::Bytes(SEGMENT_BYTES)).sample_size(20);
        group.bench_function("write a segment and flush", |bencher| {
            bencher.iter(|| {
                segment = (segment + 1) % SEGMENTS;
                disk.write(&[Piece { offset: segment * SEGMENT_BYTES, data }]).unwrap();
                disk.flush().unwrap();
            });
        });
        group.bench_function("write every second block of a segment", |bencher| {
            bencher.iter(|| {
                segment = (segment + 1) % SEGMENTS;
                let blocks = data.chunks(4096).zip(0_u64..).step_by(2);
                let pieces: Vec<Piece<'_>> = blocks
                    .map(|(data, at)| Piece { offset: segment * SEGMENT_BYTES + at * 4096, data })
                    .collect();
                disk.write(&pieces).unwrap();
            });
        });
        group.bench_function("read a segment", |bencher| {
            bencher.iter(|| {
                segment = (segment + 1) % SEGMENTS;
                for part in into.chunks_mut(1 << 20).zip(0_u64..) {
                    disk.read(segment * SEGMENT_BYTES + (part.1 << 20), part.0).unwrap();
                }
            });
        });
        group.bench_function("read a segment at once", |bencher| {
            bencher.iter(|| {
                segment = (segment + 1) % SEGMENTS;
                disk.read(segment * SEGMENT_BYTES, &mut into).unwrap();
            });
        });
        group.finish();
    }
}

/// States of a run on an image of 64 MiB, whose epochs are 14 writes of 4 KiB to 64 KiB; of each state
/// 64 KiB are read, half of them among what was written.
fn crash_states(criterion: &mut Criterion) {
    const WRITES: u64 = 14;
    let disk = CrashDisk::new(64 << 20, 1);
    let data = vec![7_u8; 64 << 10];
    for offset in (0..disk.size_bytes()).step_by(data.len()) {
        disk.write(&[Piece { offset, data: &data }]).unwrap();
    }
    disk.flush().unwrap();
    let places: Vec<u64> = (0..WRITES).map(|write| write * 7919 % 1024 * (64 << 10)).collect();
    for (write, offset) in places.iter().enumerate() {
        let data = vec![write as u8; 4096 << (write % 5)];
        disk.write(&[Piece { offset: *offset, data: &data }]).unwrap();
    }
    let states = disk.recording().states(1);
    let mut group = criterion.benchmark_group("crash states");
    group.throughput(Throughput::Elements(1));
    let mut into = vec![0_u8; 4096];
    let mut number = 0;
    group.bench_function("make, and read 64 KiB", |bencher| {
        bencher.iter(|| {
            let state = states.state(number);
            for (place, part) in places.iter().zip(0..8) {
                state.read(*place, &mut into).unwrap();
                state.read((number * 31 + part) % 16_000 * 4096, &mut into).unwrap();
            }
            number = (number + 1) % states.len();
            into[0]
        });
    });
    group.bench_function("fingerprint", |bencher| {
        bencher.iter(|| {
            number = (number + 1) % states.len();
            states.fingerprint(number)
        });
    });
    group.bench_function("make, write 64 KiB, and record again", |bencher| {
        bencher.iter(|| {
            number = (number + 1) % states.len();
            let again = CrashDisk::over(&states.state(number), number);
            again.write(&[Piece { offset: 0, data: &data }]).unwrap();
            again.flush().unwrap();
            again.recording().state(0, 1)
        });
    });
    group.finish();
}

criterion_group!(benches, memory, file, crash_states);
criterion_main!(benches);
