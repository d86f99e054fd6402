//! Operations per second of the primitives that stand in hot loops.
//!
//! Bound: drawing from a stream is one 128-bit multiplication; a daily window two 64-bit divisions.

use std::hint::black_box;

use agewell_core::{DailyWindow, RandomStreams, SimTime};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand_core::Rng;

fn primitives(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("core");
    group.throughput(Throughput::Elements(1000));
    let mut stream = RandomStreams::new(1).stream("bench");
    group.bench_function("stream/next_u64", |bencher| {
        bencher.iter(|| (0..1000).fold(0_u64, |sum, _| sum ^ stream.next_u64()));
    });
    let window: DailyWindow = "03:00..06:00".parse().expect("a well-formed window");
    group.bench_function("daily_window/contains", |bencher| {
        bencher.iter(|| {
            let step_ns = black_box(60_000_000_000);
            (0..1000).filter(|minute| window.contains(SimTime(minute * step_ns), 7)).count()
        });
    });
    group.finish();
}

criterion_group!(benches, primitives);
criterion_main!(benches);
