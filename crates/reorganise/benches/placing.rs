//! Places chosen a second: 100,000 files of four blocks, scattered in single blocks over a device
//! that is four fifths full.

use std::hint::black_box;

use agewell_reorganise::{Arranger, Limits, Piece, Runs};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const BLOCK_BYTES: u64 = 4096;
const FILES: u64 = 100_000;
const FILE_BLOCKS: u64 = 4;

/// Every fifth block is free; the others belong to files at a stride that scatters them.
fn scattered() -> (Vec<Vec<Piece>>, Runs) {
    let used = FILES * FILE_BLOCKS;
    let place = |block: u64| {
        let block = block * 7919 % used;
        (block + block / 4) * BLOCK_BYTES
    };
    let piece = |file: u64, block: u64| Piece {
        logical_bytes: block * BLOCK_BYTES,
        physical_bytes: place(file * FILE_BLOCKS + block),
        length_bytes: BLOCK_BYTES,
    };
    let files = (0..FILES).map(|file| (0..FILE_BLOCKS).map(|block| piece(file, block)).collect());
    let free = (0..used / 4).map(|run| ((run * 5 + 4) * BLOCK_BYTES, BLOCK_BYTES));
    (files.collect(), free.collect())
}

/// Everything is laid; the moves that took.
fn arrange(files: &[Vec<Piece>], free: &Runs) -> u64 {
    let stays = vec![false; files.len()];
    let mut arranger = Arranger::new(files.to_vec(), &stays, Limits::default(), BLOCK_BYTES);
    let (mut free, mut count) = (free.clone(), 0);
    loop {
        let (_, moves) = arranger.next_batch(&free, &free);
        if moves.is_empty() {
            return count;
        }
        let mut left = Vec::new();
        for step in &moves {
            free.take(step.physical_bytes, step.length_bytes);
            left.extend(arranger.moved(step));
            count += 1;
        }
        for (start, length) in left {
            free.add(start, length);
        }
    }
}

fn placing(criterion: &mut Criterion) {
    let (files, free) = scattered();
    let moves = arrange(&files, &free);
    let mut group = criterion.benchmark_group("arranger");
    group.throughput(Throughput::Elements(moves)).sample_size(10);
    group.bench_function("moves", |bencher| {
        bencher.iter(|| assert_eq!(arrange(black_box(&files), &free), moves));
    });
    group.finish();
}

criterion_group!(benches, placing);
criterion_main!(benches);
