//! Bytes a second of the devices of a store.

use agewell_store::device::{Disk, MemoryDisk, Piece};
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

criterion_group!(benches, memory);
criterion_main!(benches);
