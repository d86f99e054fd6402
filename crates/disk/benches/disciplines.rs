//! Disciplines on a deep queue: simulated time a request, and requests chosen a second of the
//! processor as the queue grows.
//!
//! `cargo bench -p agewell-disk --bench disciplines [-- DEVICE... DISCIPLINE...]`: the first table for these devices, the
//! second for these disciplines. The first is of the model and the same on every
//! machine; the second is of this machine, and says whether a choice costs more in a longer queue.

#![allow(clippy::print_stdout)] // A table is what it is for.

use std::time::Instant;

use agewell_core::{
    BlockRequest, Operation, RandomStreams, Sector, SectorCount, SimTime, uniform_below,
};
use agewell_disk::queue::{Discipline, Queue, QueueEntry};
use agewell_disk::{Device, DeviceModel, DeviceParameters};

const DEVICES: [&str; 4] =
    ["hp-97560", "hgst-hus728t8tale6l4", "seagate-st2000dm006", "seagate-st8000as0002"];

fn device(name: &str) -> DeviceModel {
    let path = format!("{}/../../devices/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    DeviceModel::new(&DeviceParameters::load(path).expect("a device of the catalogue"))
}

fn request(operation: Operation, sector: u64, sectors: u64) -> BlockRequest {
    BlockRequest {
        enqueue: SimTime::ZERO,
        sector: Sector(sector),
        sectors: SectorCount(sectors),
        operation,
        synchronous: true,
    }
}

/// `count` requests of 4 KiB at random places.
fn scattered(device: &DeviceModel, operation: Operation, count: u64) -> Vec<BlockRequest> {
    let mut stream = RandomStreams::new(1).stream("disciplines");
    let places = device.capacity().0 / 8;
    (0..count).map(|_| request(operation, uniform_below(&mut stream, places) * 8, 8)).collect()
}

/// `count` requests of 64 KiB side by side, from the middle of the device on.
fn sequential(device: &DeviceModel, operation: Operation, count: u64) -> Vec<BlockRequest> {
    let first = device.capacity().0 / 2 / 128 * 128;
    (0..count).map(|number| request(operation, first + number * 128, 128)).collect()
}

/// Serves `requests` with at most `depth` waiting; simulated ns in all.
fn serve(
    mut device: DeviceModel,
    discipline: Discipline,
    depth: usize,
    requests: &[BlockRequest],
) -> u64 {
    let mut queue = Queue::new(discipline);
    let (mut now, mut sent) = (SimTime::ZERO, 0);
    loop {
        while sent < requests.len() && queue.len() < depth {
            let request = requests[sent];
            let cylinder = device.cylinder_of(request.sector);
            queue.push(QueueEntry { sequence: sent as u64, cylinder, request });
            sent += 1;
        }
        let Some(entry) = queue.pop(now, &device) else { return now.0 };
        now = device.serve(now, &entry.request).finish;
    }
}

fn together(mut device: DeviceModel, requests: &[BlockRequest]) -> u64 {
    let mut services = Vec::new();
    device.serve_together(SimTime::ZERO, requests, &mut services);
    services.iter().map(|service| service.finish.0).max().unwrap_or(0)
}

fn print_simulated(name: &str) {
    let loads: [(&str, Vec<BlockRequest>); 4] = {
        let device = device(name);
        [
            ("random 4 KiB reads", scattered(&device, Operation::Read, 4000)),
            ("random 4 KiB writes", scattered(&device, Operation::Write, 4000)),
            ("sequential 64 KiB reads", sequential(&device, Operation::Read, 4000)),
            ("sequential 64 KiB writes", sequential(&device, Operation::Write, 4000)),
        ]
    };
    for (load, requests) in &loads {
        for depth in [32, 256, 4000] {
            print!("{name:22} {load:24} {depth:5} waiting, ms a request:");
            for discipline in Discipline::ALL {
                let ns = serve(device(name), discipline, depth, requests);
                print!(" {} {:.3}", discipline.name(), ns as f64 / 1e6 / requests.len() as f64);
            }
            println!();
        }
        let ns = together(device(name), requests);
        println!(
            "{name:22} {load:24} its own queue: {:.3}",
            ns as f64 / 1e6 / requests.len() as f64
        );
    }
}

fn print_choices(name: &str, disciplines: &[Discipline]) {
    for discipline in disciplines {
        print!("{name} {:6} requests a second of the processor:", discipline.name());
        for thousands in [4, 16, 64, 250, 500, 1000] {
            if *discipline == Discipline::Sptf && thousands > 64 {
                continue;
            }
            let disk = device(name);
            let requests = scattered(&disk, Operation::Read, thousands * 1000);
            let began = Instant::now();
            serve(disk, *discipline, requests.len(), &requests);
            let seconds = began.elapsed().as_secs_f64();
            print!(" {thousands} k waiting {:.0}", requests.len() as f64 / seconds);
        }
        println!();
    }
}

fn main() {
    // Cargo passes options of its own.
    let given: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let mut disciplines: Vec<Discipline> =
        given.iter().filter_map(|name| Discipline::from_name(name)).collect();
    let mut devices: Vec<&str> = given
        .iter()
        .map(String::as_str)
        .filter(|name| Discipline::from_name(name).is_none())
        .collect();
    if given.is_empty() {
        devices = DEVICES.to_vec();
        disciplines = Discipline::ALL.to_vec();
    }
    for name in devices {
        print_simulated(name);
    }
    print_choices("hp-97560", &disciplines);
}
