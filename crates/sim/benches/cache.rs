//! References per second through each cache, on 20 million references drawn beforehand: Zipf 1.0
//! over a million objects, 100,000 blocks cached (libCacheSim's C tool on such a stream, on one
//! core of the same kind: LRU 4.9, ARC 6.2, S3-FIFO 3.5, FIFO 9.4, SIEVE 11.4 million a second,
//! reading its trace included).
//!
//! `ranked` numbers the objects by rank, as that stream does, so that what is asked for often lies
//! together; `scattered` numbers them at random, as blocks on a disk are. `scattered-hashed` is the
//! same through a hashed index. `many` is 236 client caches of 2048 blocks over one space of
//! 400,000 keys, each reference at another client: the index is hashed by its own rule.
//!
//! Bound: the latency of memory. A reference reads the index at a random place (4 MB dense), then
//! on a hit of LRU or ARC the slot and both its neighbours (1.2 to 2.4 MB); what does not fit the
//! second-level cache comes from the third. FIFO stops at the index on a hit, SIEVE and S3-FIFO at
//! one byte beside it.

use std::hint::black_box;

use agewell_core::{RandomStreams, uniform_below};
use agewell_sim::cache::{Cache, Eviction, IndexKind};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use rand_distr::{Distribution, Zipf};

const REFERENCES: usize = 20_000_000;
const OBJECTS: u32 = 1_000_000;
const CACHED: usize = 100_000;

const CLIENTS: usize = 236;
const CLIENT_BLOCKS: usize = 2048;
const CLIENT_KEYS: u32 = 400_000;

/// Ranks below `objects`, Zipf 1.0.
fn ranks(objects: u32) -> Vec<u32> {
    let zipf = Zipf::new(f64::from(objects), 1.0).expect("a positive number of objects");
    let mut random = RandomStreams::new(1).stream("zipf");
    (0..REFERENCES)
        .map(|_| {
            let rank: f64 = zipf.sample(&mut random);
            rank as u32 - 1
        })
        .collect()
}

/// The same references with the objects renumbered at random.
fn scatter(ranks: &[u32], objects: u32) -> Vec<u32> {
    let mut random = RandomStreams::new(1).stream("numbers");
    let mut numbers: Vec<u32> = (0..objects).collect();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, uniform_below(&mut random, last as u64 + 1) as usize);
    }
    ranks.iter().map(|rank| numbers[*rank as usize]).collect()
}

/// Hits of an empty cache over `references`.
fn hits(mut cache: Cache, references: &[u32]) -> usize {
    references.iter().filter(|key| cache.reference(**key).is_hit()).count()
}

fn measure(group: &mut BenchmarkGroup<WallTime>, name: &str, index: IndexKind, references: &[u32]) {
    for eviction in Eviction::ALL {
        group.bench_function(format!("{name}/{}", eviction.name()), |bencher| {
            bencher.iter(|| {
                let cache = Cache::with_index(eviction, CACHED, OBJECTS as usize, index);
                black_box(hits(cache, black_box(references)))
            });
        });
    }
}

fn measure_many(group: &mut BenchmarkGroup<WallTime>, references: &[u32]) {
    for eviction in Eviction::ALL {
        group.bench_function(format!("many/{}", eviction.name()), |bencher| {
            bencher.iter(|| {
                let cache = Cache::new(eviction, CLIENT_BLOCKS, CLIENT_KEYS as usize);
                let mut clients = vec![cache; CLIENTS];
                let mut hits = 0;
                for round in black_box(references).chunks(CLIENTS) {
                    for (key, client) in round.iter().zip(&mut clients) {
                        hits += usize::from(client.reference(*key).is_hit());
                    }
                }
                black_box(hits)
            });
        });
    }
}

fn references(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cache");
    group.sample_size(10);
    group.throughput(Throughput::Elements(REFERENCES as u64));
    let ranked = ranks(OBJECTS);
    measure(&mut group, "ranked", IndexKind::Dense, &ranked);
    let scattered = scatter(&ranked, OBJECTS);
    drop(ranked);
    measure(&mut group, "scattered", IndexKind::Dense, &scattered);
    measure(&mut group, "scattered-hashed", IndexKind::Hashed, &scattered);
    drop(scattered);
    measure_many(&mut group, &scatter(&ranks(CLIENT_KEYS), CLIENT_KEYS));
    group.finish();
}

criterion_group!(benches, references);
criterion_main!(benches);
