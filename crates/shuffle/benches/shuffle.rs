//! Requests mapped and observed a second, and how long one rearrangement of 8 KB quanta on 1.3 GB
//! takes.
//!
//! Bound by: mapping and observing by one division and one or two cache misses into arrays of 640
//! KB each (forward table; counts; four link columns); a rearrangement by passes over all quanta,
//! then by sorting the active ones.

use agewell_core::{Operation, RandomStreams, Sector, SectorCount, SimDuration, SimTime};
use agewell_shuffle::{QuantumGrid, RemapKind, ShuffleConfig, Shuffler};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rand_core::Rng;

/// HP 97560: 1.3 GB as 8 KB blocks.
const QUANTA: u64 = 162_000;
const BLOCK: u64 = 16;
const REQUESTS: usize = 100_000;

/// Requests of one block, three quarters of them to a tenth of the disk, some across a block
/// boundary.
fn requests() -> Vec<(Sector, SectorCount)> {
    let mut stream = RandomStreams::new(1).stream("bench");
    let mut draw = |bound: u64| ((u128::from(stream.next_u64()) * u128::from(bound)) >> 64) as u64;
    (0..REQUESTS)
        .map(|_| {
            let span = if draw(4) < 3 { QUANTA / 10 } else { QUANTA - 2 };
            let offset = if draw(8) == 0 { 8 } else { 0 };
            (Sector(draw(span) * BLOCK + offset), SectorCount(BLOCK))
        })
        .collect()
}

fn shuffler(links: bool) -> Shuffler {
    let all = SectorCount(QUANTA * BLOCK);
    let grid = QuantumGrid::new(all, all, Sector(0), SectorCount(BLOCK)).expect("it fits");
    let config = ShuffleConfig { kind: RemapKind::Shuffle, links, ..ShuffleConfig::default() };
    Shuffler::on_grid(&config, grid, SimDuration::ZERO, &RandomStreams::new(1)).expect("it fits")
}

fn observe_all(shuffler: &mut Shuffler, requests: &[(Sector, SectorCount)]) {
    for (sector, sectors) in requests {
        shuffler.observe(SimTime::ZERO, Operation::Read, *sector, *sectors);
    }
}

fn shuffle(criterion: &mut Criterion) {
    let requests = requests();
    let mut group = criterion.benchmark_group("shuffle");
    group.throughput(Throughput::Elements(REQUESTS as u64));
    let mut shuffled = shuffler(false);
    observe_all(&mut shuffled, &requests);
    shuffled.rearrange();
    group.bench_function("map", |bencher| {
        bencher.iter(|| {
            let pieces =
                requests.iter().flat_map(|(sector, sectors)| shuffled.map(*sector, *sectors));
            pieces.fold(0, |sum, piece| sum ^ piece.sector.0)
        });
    });
    for (name, links) in [("observe", false), ("observe_links", true)] {
        let mut observer = shuffler(links);
        group
            .bench_function(name, |bencher| bencher.iter(|| observe_all(&mut observer, &requests)));
    }
    group.throughput(Throughput::Elements(QUANTA));
    for (name, links) in [("rearrange", false), ("rearrange_links", true)] {
        let mut prepared = shuffler(links);
        observe_all(&mut prepared, &requests);
        group.sample_size(20);
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || prepared.clone(),
                |mut shuffler| shuffler.rearrange(),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, shuffle);
criterion_main!(benches);
