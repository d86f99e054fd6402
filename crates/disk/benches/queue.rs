//! Push and pop of every discipline at the lengths that matter: a handful, and thousands.
//!
//! Bounded by cache misses into the slab and the cylinder table; SPTF by the device's positioning estimate, once per
//! waiting request near enough.

use std::hint::black_box;

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimDuration, SimTime};
use agewell_disk::queue::{Discipline, Queue, QueueEntry};
use agewell_disk::{Device, Moment, Service};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const CYLINDERS: u32 = 1962;
const SECTORS_PER_CYLINDER: u64 = 1368;

/// An arm that costs next to nothing, so that the queue is what is measured.
struct Arm {
    cylinder: u32,
}

impl Device for Arm {
    fn capacity(&self) -> SectorCount {
        SectorCount(u64::from(CYLINDERS) * SECTORS_PER_CYLINDER)
    }
    fn cylinders(&self) -> u32 {
        CYLINDERS
    }
    fn cylinder_of(&self, sector: Sector) -> u32 {
        (sector.0 / SECTORS_PER_CYLINDER) as u32
    }
    fn current_cylinder(&self) -> u32 {
        self.cylinder
    }
    fn serve(&mut self, issue: SimTime, request: &BlockRequest) -> Service {
        self.cylinder = self.cylinder_of(request.sector);
        Service { finish: issue + SimDuration(1), ..Service::default() }
    }
    fn positioning(&self, moment: &Moment, request: &BlockRequest) -> SimDuration {
        let distance = u64::from(self.cylinder_of(request.sector).abs_diff(self.cylinder));
        SimDuration(distance * 1000 + (request.sector.0 ^ moment.issue.0) % 1000)
    }
    fn positioning_at_least(&self, _: &Moment, cylinders: u32) -> SimDuration {
        SimDuration(u64::from(cylinders) * 1000)
    }
}

fn entry(sequence: u64) -> QueueEntry {
    // A multiplicative hash spreads the addresses without a generator in the measured loop.
    let sector = (sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20)
        % (u64::from(CYLINDERS) * SECTORS_PER_CYLINDER);
    QueueEntry {
        sequence,
        cylinder: (sector / SECTORS_PER_CYLINDER) as u32,
        request: BlockRequest {
            enqueue: SimTime(sequence),
            sector: Sector(sector),
            sectors: SectorCount(16),
            operation: Operation::Read,
            synchronous: true,
        },
    }
}

fn push_and_pop(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue");
    for discipline in Discipline::ALL {
        for length in [3_u64, 4096] {
            let mut queue = Queue::new(discipline);
            let mut arm = Arm { cylinder: 0 };
            let mut sequence = 0;
            while queue.len() < length as usize {
                queue.push(entry(sequence));
                sequence += 1;
            }
            group.throughput(Throughput::Elements(1000));
            group.bench_function(BenchmarkId::new(discipline.name(), length), |bencher| {
                bencher.iter(|| {
                    for _ in 0..1000 {
                        queue.push(entry(sequence));
                        sequence += 1;
                        let next = queue.pop(SimTime(sequence), &arm).expect("one was pushed");
                        arm.serve(SimTime(sequence), &next.request);
                        black_box(next.sequence);
                    }
                });
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = push_and_pop
}
criterion_main!(benches);
