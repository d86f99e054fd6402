//! Requests per second of the mechanical disk on one core.
//!
//! The load is that of DiskSim's `synthopen`: three disks, Poisson-like arrivals, two thirds reads, a fifth sequential, a
//! third local, sizes of a few KiB, each disk with its own queue. DiskSim 4.0 itself serves about 50,000 a second of it.
//!
//! What bounds the loop: with C-SCAN the queue's ordered map; without, the zone search and three multiplications to turn
//! an angle into a time, all in cache. Nothing is allocated per request.

use std::hint::black_box;
use std::path::Path;

use agewell_core::{BlockRequest, Operation, RandomStreams, Sector, SectorCount, SimTime};
use agewell_disk::queue::{Discipline, Queue, QueueEntry};
use agewell_disk::{Device, DeviceModel, DeviceParameters};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand_core::Rng;

const REQUESTS: usize = 100_000;
const DISKS: usize = 3;
/// Mean time between arrivals over all disks, ns: keeps each disk about half busy.
const INTERARRIVAL_NS: f64 = 9e6;

struct Arrival {
    disk: usize,
    request: BlockRequest,
}

/// A fraction in 0..1 from the upper 53 bits of a draw.
fn fraction(stream: &mut impl Rng) -> f64 {
    (stream.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
}

fn synthopen(capacity: u64) -> Vec<Arrival> {
    let mut stream = RandomStreams::new(1).stream("synthopen");
    let mut now = 0.0;
    let mut ends = [0_u64; DISKS];
    (0..REQUESTS)
        .map(|_| {
            now += -INTERARRIVAL_NS * (1.0 - fraction(&mut stream)).ln();
            let disk = (stream.next_u64() % DISKS as u64) as usize;
            let sectors = 2 * (1 + stream.next_u64() % 16);
            let kind = fraction(&mut stream);
            let limit = capacity - sectors;
            let sector = if kind < 0.2 {
                ends[disk].min(limit)
            } else if kind < 0.5 {
                (ends[disk] + stream.next_u64() % 2000).min(limit)
            } else {
                stream.next_u64() % limit
            };
            ends[disk] = sector + sectors;
            let operation =
                if fraction(&mut stream) < 0.66 { Operation::Read } else { Operation::Write };
            let request = BlockRequest {
                enqueue: SimTime(now as u64),
                sector: Sector(sector),
                sectors: SectorCount(sectors),
                operation,
                synchronous: true,
            };
            Arrival { disk, request }
        })
        .collect()
}

/// Serves every arrival, each disk from its own queue; returns the sum of all finish times, by
/// which runs can be compared.
fn run(devices: &mut [DeviceModel], arrivals: &[Arrival], discipline: Discipline) -> u64 {
    let mut queues: Vec<Queue> = (0..DISKS).map(|_| Queue::new(discipline)).collect();
    let mut free = [SimTime::ZERO; DISKS];
    let mut sum = 0_u64;
    for (sequence, arrival) in arrivals.iter().enumerate() {
        let (disk, now) = (arrival.disk, arrival.request.enqueue);
        // What the disk could start before this arrival, it has started.
        while free[disk] <= now {
            let Some(entry) = queues[disk].pop(free[disk], &devices[disk]) else { break };
            let issue = free[disk].max(entry.request.enqueue);
            free[disk] = devices[disk].serve(issue, &entry.request).finish;
            sum = sum.wrapping_add(free[disk].0);
        }
        queues[disk].push(QueueEntry {
            sequence: sequence as u64,
            cylinder: devices[disk].cylinder_of(arrival.request.sector),
            request: arrival.request,
        });
    }
    sum
}

fn disks(criterion: &mut Criterion) {
    let catalogue = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices");
    let mut group = criterion.benchmark_group("synthopen");
    group.throughput(Throughput::Elements(REQUESTS as u64));
    for name in ["hp-c2247a", "seagate-st34501n", "hp-97560"] {
        let Ok(parameters) = DeviceParameters::find(name, Path::new(catalogue)) else { continue };
        let model = DeviceModel::new(&parameters);
        let arrivals = synthopen(model.capacity().0);
        for (label, discipline) in [("fcfs", Discipline::Fcfs), ("c-scan", Discipline::CScan)] {
            group.bench_function(format!("{name}/{label}"), |bencher| {
                bencher.iter_batched(
                    || vec![model.clone(); DISKS],
                    |mut devices| black_box(run(&mut devices, &arrivals, discipline)),
                    criterion::BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, disks);
criterion_main!(benches);
