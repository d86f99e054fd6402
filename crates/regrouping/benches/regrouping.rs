//! Block reads a second that the access graph and its partitions take, and writes.
//!
//! Block numbers are drawn beforehand: the graph is measured, not the workload. Each measurement
//! goes on from a graph that has seen as long a stream of the same kind. What it ends with is
//! printed, so that a change of behaviour is not mistaken for one of speed.
//!
//! Bound by: the node of the block before and the membership of the block, which is one access to
//! memory where the stream is random, and one more for the edge that is dropped.

#![allow(clippy::print_stderr, reason = "a benchmark prints what it did")]

use std::hint::black_box;

use agewell_core::{RandomStreams, uniform_below};
use agewell_regrouping::{AccessGraph, RelatedBlocks};
use agewell_testkit::zipf_draws;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// 8 GiB of 8 KiB blocks; graph and partitions take 40 MiB of it.
const BLOCKS: u32 = 1 << 20;
/// Reads that are measured; as many come before.
const READS: u32 = 1 << 21;
/// 256 KiB.
const LIMIT_BLOCKS: u32 = 32;

fn sequential() -> Vec<u32> {
    (0..2 * READS).map(|read| read % BLOCKS).collect()
}

fn random() -> Vec<u32> {
    let mut stream = RandomStreams::new(1).stream("reads");
    (0..2 * READS).map(|_| uniform_below(&mut stream, u64::from(BLOCKS)) as u32).collect()
}

fn record(graph: &mut AccessGraph, reads: &[u32]) -> u64 {
    let mut weight = 0;
    for pair in reads.windows(2) {
        if pair[0] != pair[1] {
            weight += u64::from(graph.record(pair[0], pair[1]).weight);
        }
    }
    weight
}

fn read(related: &mut RelatedBlocks, reads: &[u32]) {
    for block in reads {
        related.read(*block);
    }
}

fn streams(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reorganise");
    group.throughput(Throughput::Elements(u64::from(READS))).sample_size(10);
    let zipf = zipf_draws(&mut RandomStreams::new(1).stream("reads"), BLOCKS, 2 * READS);
    for (name, reads) in [("sequential", sequential()), ("random", random()), ("zipf", zipf)] {
        let (before, reads) = reads.split_at(READS as usize);
        let mut graph = AccessGraph::new(BLOCKS);
        let weight = record(&mut graph, before);
        eprintln!("reorganise/{name}: weights {weight}, graph {} bytes", graph.memory_bytes());
        group.bench_function(format!("graph/{name}"), |bencher| {
            bencher.iter_batched_ref(
                || graph.clone(),
                |graph| black_box(record(graph, reads)),
                BatchSize::LargeInput,
            );
        });
        let mut related = RelatedBlocks::new(BLOCKS, LIMIT_BLOCKS);
        read(&mut related, before);
        eprintln!(
            "reorganise/{name}: {} partitions, {} between them, {:.1} bytes a block",
            related.partitions().numbers().count(),
            related.partitions().weight_between(related.graph()),
            related.memory_bytes() as f64 / f64::from(BLOCKS)
        );
        group.bench_function(format!("partitions/{name}"), |bencher| {
            bencher.iter_batched_ref(
                || related.clone(),
                |related| {
                    read(related, reads);
                    black_box(related.memory_bytes())
                },
                BatchSize::LargeInput,
            );
        });
        let fresh = RelatedBlocks::new(BLOCKS, LIMIT_BLOCKS);
        group.bench_function(format!("first_reads/{name}"), |bencher| {
            bencher.iter_batched_ref(
                || fresh.clone(),
                |related| {
                    read(related, reads);
                    black_box(related.memory_bytes())
                },
                BatchSize::LargeInput,
            );
        });
        group.bench_function(format!("writes/{name}"), |bencher| {
            bencher.iter_batched_ref(
                || related.clone(),
                |related| {
                    for block in reads {
                        related.write(*block);
                    }
                    black_box(related.memory_bytes())
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, streams);
criterion_main!(benches);
