//! The estimate of a request's positioning against its service, on every device of the catalogue.

use agewell_core::{
    BlockRequest, Operation, RandomStreams, Sector, SectorCount, SimDuration, SimTime,
};
use agewell_disk::queue::{Discipline, Queue, QueueEntry};
use agewell_disk::{
    Device, DeviceKind, DeviceModel, DeviceParameters, Mechanical, Service, catalogue_names,
};
use rand_core::Rng;

/// Simulated time for which devices are asked and served at random.
const STEPS: u64 = 1500;

fn catalogue() -> Vec<(String, DeviceParameters)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices");
    let names = catalogue_names(folder.as_ref()).expect("the catalogue");
    let load = |name: String| {
        let parameters = DeviceParameters::load(format!("{folder}/{name}.toml")).expect("a device");
        (name, parameters)
    };
    names.into_iter().map(load).collect()
}

fn device(name: &str) -> DeviceModel {
    let (_, parameters) = catalogue().into_iter().find(|(other, _)| other == name).expect(name);
    DeviceModel::new(&parameters)
}

/// Requests as they come: next to one another, near, anywhere; with and without rests.
struct Load {
    random: agewell_core::Stream,
    capacity: u64,
    last: u64,
    sectors: u64,
    sectors_max: u64,
}

impl Load {
    fn new(name: &str, device: &impl Device, unit: u64, sectors_max: u64) -> Self {
        let random = RandomStreams::new(5).stream(name);
        Self { random, capacity: device.capacity().0, last: 0, sectors: unit, sectors_max }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    /// A request in whole units; `device` takes it.
    fn next(&mut self, device: &impl Device) -> BlockRequest {
        let units = self.capacity / self.sectors;
        let place = match self.below(8) {
            0..4 => self.last,
            4 => self.last.saturating_sub(self.below(200)),
            5 => self.last + self.below(2000),
            _ => self.below(units),
        }
        .min(units - 1);
        let length = 1 + self.below(self.sectors_max / self.sectors).min(self.below(64));
        let length = length.min(units - place);
        self.last = (place + length).min(units - 1);
        let mut request = BlockRequest {
            enqueue: SimTime::ZERO,
            sector: Sector(place * self.sectors),
            sectors: SectorCount(length * self.sectors),
            operation: if self.below(3) == 0 { Operation::Write } else { Operation::Read },
            synchronous: true,
        };
        if device.check(&request).is_err() {
            request.operation = Operation::Read;
        }
        request
    }

    fn rest_ns(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(40_000_000),
            1 => self.below(100_000),
            _ => 0,
        }
    }
}

/// The unit of requests that one access serves, and their longest.
fn lengths(device: &DeviceModel) -> (u64, u64) {
    match device {
        DeviceModel::Simple(_) | DeviceModel::Mechanical(_) => (1, 300),
        // What lies scattered is read in several accesses, of which the first counts.
        DeviceModel::Zoned(_) => (8, 8),
        DeviceModel::Flash(flash) => {
            let unit = flash.parameters().mapping_bytes / 512;
            (unit, unit)
        }
    }
}

fn waited(service: &Service) -> SimDuration {
    service.overhead + service.seek + service.rotation
}

fn reports_early(parameters: &DeviceParameters) -> bool {
    use agewell_disk::parameters::{FastWrite, ZonedDrive};
    let mechanical = match &parameters.kind {
        DeviceKind::Mechanical(mechanical) => mechanical,
        DeviceKind::Zoned(zoned) => match &zoned.drive {
            ZonedDrive::Mechanical(mechanical) => mechanical,
            ZonedDrive::Simple(..) => return false,
        },
        DeviceKind::Simple(_) | DeviceKind::Flash(_) => return false,
    };
    mechanical.buffer.fast_write != FastWrite::Never
}

#[test]
fn the_estimate_is_what_service_takes() {
    for (name, parameters) in catalogue() {
        let mut device = DeviceModel::new(&parameters);
        let (unit, most) = lengths(&device);
        let mut load = Load::new(&name, &device, unit, most);
        let early = reports_early(&parameters);
        let mut now = SimTime::ZERO;
        for step in 0..STEPS {
            now += SimDuration(load.rest_ns());
            let request = load.next(&device);
            let estimate = device.positioning(&device.moment(now), &request);
            let service = device.serve(now, &request);
            if !(early && request.operation == Operation::Write) {
                assert_eq!(estimate, waited(&service), "{name}, step {step}, {request:?}");
            }
            now = service.finish;
        }
    }
}

#[test]
fn of_a_write_reported_early_the_estimate_is_when_the_medium_begins() {
    for (name, parameters) in catalogue() {
        let DeviceKind::Mechanical(mechanical) = &parameters.kind else { continue };
        if !reports_early(&parameters) {
            continue;
        }
        let mut device = Mechanical::new(mechanical);
        let sectors = (mechanical.sector_bytes / 512).max(1).into();
        let mut load = Load::new(&name, &device, sectors, 64 * sectors);
        let mut now = SimTime::ZERO;
        for step in 0..STEPS {
            now += SimDuration(load.rest_ns());
            let request = load.next(&device);
            let first = BlockRequest { sectors: SectorCount(sectors), ..request };
            if request.operation == Operation::Write && step % 4 == 0 {
                let estimate = device.positioning(&device.moment(now), &first);
                let mut other = device.clone();
                let reported = other.serve(now, &first).finish;
                let flush = BlockRequest { operation: Operation::Flush, ..first };
                let written = other.serve(reported, &flush).finish;
                let block = first.sector.0 * 512 / u64::from(mechanical.sector_bytes);
                let width = device.geometry().locate(block).width as f64 / 2_f64.powi(64);
                let sector_ns = width * mechanical.rotation_period_ps as f64 / 1000.0;
                let begins = (written - now).0 as f64 - sector_ns;
                if written > reported {
                    assert!(
                        (begins - estimate.0 as f64).abs() < 2.0,
                        "{name}: {begins}, {estimate:?}"
                    );
                }
            }
            now = device.serve(now, &request).finish;
        }
    }
}

#[test]
fn no_request_is_positioned_for_sooner_than_its_cylinder_allows() {
    for (name, parameters) in catalogue() {
        let mut device = DeviceModel::new(&parameters);
        let (unit, most) = lengths(&device);
        let mut load = Load::new(&name, &device, unit, most);
        let mut now = SimTime::ZERO;
        for step in 0..STEPS / 3 {
            now += SimDuration(load.rest_ns());
            let moment = device.moment(now);
            let mut buffered = Vec::new();
            device.buffered_cylinders(&moment, &mut |cylinder| buffered.push(cylinder));
            let mut request = load.next(&device);
            for _ in 0..8 {
                let cylinder = device.cylinder_of(request.sector);
                let away = cylinder.abs_diff(moment.cylinder);
                let estimate = device.positioning(&moment, &request);
                assert!(
                    estimate >= device.positioning_at_least(&moment, away)
                        || buffered.contains(&cylinder),
                    "{name}, step {step}: {estimate:?} for {request:?}"
                );
                request = load.next(&device);
            }
            now = device.serve(now, &request).finish;
        }
        let moment = device.moment(now);
        let bounds = (0..device.cylinders()).map(|away| device.positioning_at_least(&moment, away));
        assert!(bounds.is_sorted(), "{name}");
    }
}

#[test]
fn the_parts_of_a_service_are_the_whole_of_it() {
    for (name, parameters) in catalogue() {
        let mut device = DeviceModel::new(&parameters);
        let most = if matches!(device, DeviceModel::Flash(_)) { 2048 } else { 300 };
        let mut load = Load::new(&name, &device, 1, most);
        let is_flash = matches!(device, DeviceModel::Flash(_));
        let (mut now, mut services) = (SimTime::ZERO, Vec::new());
        for step in 0..STEPS / 10 {
            now += SimDuration(load.rest_ns());
            let operation = load.next(&device).operation;
            let mut requests = Vec::new();
            for _ in 0..=load.below(40) {
                let request = BlockRequest { operation, ..load.next(&device) };
                // Of writes in order each depends on the one before; one at a time is enough.
                let may_be_sent = device.check(&request).is_ok() && requests.is_empty();
                if operation == Operation::Read || may_be_sent {
                    requests.push(request);
                }
            }
            services.clear();
            device.serve_together(now, &requests, &mut services);
            let mut done = services.clone();
            done.sort_by_key(|service| service.finish);
            let mut begun = now;
            for service in done {
                let parts = waited(&service) + service.transfer;
                assert_eq!(parts, service.finish - begun, "{name}, step {step}: {service:?}");
                // Only dies overlap; an arm does one thing after another.
                begun = if is_flash { now } else { service.finish };
            }
            now = services.iter().map(|service| service.finish).max().unwrap_or(now);
        }
    }
}

#[test]
fn shortest_positioning_first_chooses_as_a_look_at_every_request_does() {
    for name in ["hp-97560", "hp-c3323a", "seagate-st2000dm006", "seagate-st8000as0002"] {
        let mut device = device(name);
        let (unit, most) = lengths(&device);
        let mut load = Load::new(name, &device, unit, most);
        let mut queue = Queue::new(Discipline::Sptf);
        let mut waiting: Vec<QueueEntry> = Vec::new();
        let mut now = SimTime::ZERO;
        for sequence in 0..STEPS {
            let request = load.next(&device);
            let cylinder = device.cylinder_of(request.sector);
            let entry = QueueEntry { sequence, cylinder, request };
            queue.push(entry);
            waiting.push(entry);
            if sequence < 300 {
                continue;
            }
            now += SimDuration(load.rest_ns());
            let moment = device.moment(now);
            let claim =
                |entry: &QueueEntry| (device.positioning(&moment, &entry.request), entry.sequence);
            let nearest = *waiting.iter().min_by_key(|entry| claim(entry)).expect("some wait");
            assert_eq!(queue.pop(now, &device), Some(nearest), "{name}");
            waiting.retain(|entry| entry.sequence != nearest.sequence);
            now = device.serve(now, &nearest.request).finish;
        }
    }
}

/// Simulated time of `requests`, `depth` of them waiting.
fn served_ns(
    parameters: &DeviceParameters,
    how: (Discipline, usize),
    requests: &[BlockRequest],
) -> u64 {
    let (discipline, depth) = how;
    let mut device = DeviceModel::new(parameters);
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

/// Of 128 scattered reads that wait, the nearest are sooner served than any sweep does, whatever the overhead; and reads
/// that follow one another stay in order, or nearly: a jump over the end of a track is all there is to gain.
#[test]
fn shortest_positioning_first_is_the_fastest_on_every_drive_with_an_arm() {
    for (name, parameters) in catalogue() {
        if !matches!(parameters.kind, DeviceKind::Mechanical(_)) {
            continue;
        }
        let mut random = RandomStreams::new(3).stream("scattered");
        let read = |sector: u64, sectors: u64| BlockRequest {
            enqueue: SimTime::ZERO,
            sector: Sector(sector),
            sectors: SectorCount(sectors),
            operation: Operation::Read,
            synchronous: true,
        };
        let places = parameters.capacity_sectors / 8;
        let device = DeviceModel::new(&parameters);
        let places = places.min(device.capacity().0 / 8);
        let scattered: Vec<BlockRequest> =
            (0..1000).map(|_| read(random.next_u64() % places * 8, 8)).collect();
        let ns = |discipline, requests: &[BlockRequest]| {
            served_ns(&parameters, (discipline, 128), requests) as f64
        };
        let nearest = ns(Discipline::Sptf, &scattered);
        for discipline in [Discipline::Sstf, Discipline::Scan, Discipline::CScan, Discipline::CLook]
        {
            let other = ns(discipline, &scattered);
            assert!(nearest < 0.95 * other, "{name}: {nearest}, {} {other}", discipline.name());
        }
        let middle = places / 2 * 8;
        let in_sequence: Vec<BlockRequest> =
            (0..500).map(|number| read(middle + number * 128, 128)).collect();
        let nearest = ns(Discipline::Sptf, &in_sequence);
        let in_order = ns(Discipline::Fcfs, &in_sequence);
        assert!(nearest < 1.05 * in_order, "{name}: {nearest}, in order {in_order}");
    }
}
