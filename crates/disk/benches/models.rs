//! Requests per second of each model of a drive of today on one core.
//!
//! Reads and writes of 4 KiB, half of each, at random over the first 4 GiB (host-managed zones: reads
//! over them and writes at the pointers of sixteen zones in turn), one request after another. What
//! bounds them: flash, a chunk of the map and a block's owners a unit, out of cache; zones, the
//! mechanical drive below; the cache on the medium, its ordered map of extents, and rewriting
//! bands. The same in batches of 64: an arm's queue, which estimates the positioning of all
//! requests that it holds for each that it serves; flash, a heap of events.

use std::hint::black_box;
use std::path::Path;

use agewell_core::{BlockRequest, Operation, RandomStreams, Sector, SectorCount, SimTime};
use agewell_disk::{Device, DeviceModel, DeviceParameters, Service, WriteRule};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand_core::Rng;

const REQUESTS: u64 = 100_000;
const SPAN_SECTORS: u64 = 4 << 21;
const OPEN_ZONES: u64 = 16;

fn requests(rule: WriteRule) -> Vec<BlockRequest> {
    let mut stream = RandomStreams::new(1).stream("models");
    let mut written = 0;
    (0..REQUESTS)
        .map(|_| {
            let write = stream.next_u64().is_multiple_of(2);
            let anywhere = stream.next_u64() % (SPAN_SECTORS / 8) * 8;
            let sector = match rule {
                WriteRule::SequentialInZones { first_sequential, zone_sectors } if write => {
                    let (zone, place) = (written % OPEN_ZONES, written / OPEN_ZONES * 8);
                    written += 1;
                    first_sequential.0 + zone * zone_sectors.0 + place
                }
                _ => anywhere,
            };
            BlockRequest {
                enqueue: SimTime::ZERO,
                sector: Sector(sector),
                sectors: SectorCount(8),
                operation: if write { Operation::Write } else { Operation::Read },
                synchronous: true,
            }
        })
        .collect()
}

/// Serves all of them from `now` on; returns the last finish time, by which runs can be compared.
fn run(device: &mut DeviceModel, mut now: SimTime, requests: &[BlockRequest]) -> SimTime {
    for request in requests {
        now = device.serve(now, request).finish;
    }
    now
}

/// The same, in batches of 64.
fn run_together(
    device: &mut DeviceModel,
    mut now: SimTime,
    requests: &[BlockRequest],
    services: &mut Vec<Service>,
) -> SimTime {
    for call in requests.chunks(64) {
        services.clear();
        device.serve_together(now, call, services);
        now = services.iter().map(|service| service.finish).max().unwrap_or(now);
    }
    now
}

fn models(criterion: &mut Criterion) {
    let catalogue = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices");
    let mut group = criterion.benchmark_group("models");
    group.throughput(Throughput::Elements(REQUESTS));
    let names = [
        "samsung-970-pro",
        "flash-sata-tlc",
        "hgst-hus728t8tale6l4",
        "hgst-hsh721415ale6m0",
        "seagate-st8000as0002",
    ];
    for name in names {
        let Ok(parameters) = DeviceParameters::find(name, Path::new(catalogue)) else { continue };
        let mut model = DeviceModel::new(&parameters);
        let requests = requests(model.layout_advice().write_rule);
        let mut began = SimTime::ZERO;
        if model.layout_advice().write_rule == WriteRule::Anywhere {
            // A drive in use: on a shingled one, what is overwritten goes through its cache.
            let fill = BlockRequest {
                sector: Sector(0),
                sectors: SectorCount(SPAN_SECTORS),
                operation: Operation::Write,
                ..requests[0]
            };
            began = model.serve(SimTime::ZERO, &fill).finish;
        }
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                || model.clone(),
                |device| black_box(run(device, began, &requests)),
                criterion::BatchSize::LargeInput,
            );
        });
        let mut services = Vec::new();
        group.bench_function(format!("{name}, together"), |bencher| {
            bencher.iter_batched_ref(
                || model.clone(),
                |device| black_box(run_together(device, began, &requests, &mut services)),
                criterion::BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, models);
criterion_main!(benches);
