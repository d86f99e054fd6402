//! The event loop against a reference that steps one event at a time.

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimDuration, SimTime};
use agewell_disk::queue::Discipline;
use agewell_disk::{Device, Moment, Service};
use agewell_sim::metrics::Metrics;
use agewell_sim::open_loop::remap::Remapper;
use agewell_sim::open_loop::replay::{Accounting, Disk};
use agewell_testkit::reference_replay;
use proptest::prelude::*;

const SECTORS: u64 = 1000;
const SECTORS_PER_CYLINDER: u64 = 10;

/// A device whose service time is plain arithmetic: 7 ns a cylinder moved, 3 a sector, 5 in any
/// case.
#[derive(Debug, Clone, Default)]
struct Ruler {
    cylinder: u32,
}

impl Ruler {
    fn service_ns(&mut self, request: &BlockRequest) -> (u64, u32) {
        let target = (request.sector.0 / SECTORS_PER_CYLINDER) as u32;
        let distance = target.abs_diff(self.cylinder);
        self.cylinder = ((request.sector.0 + request.sectors.0 - 1) / SECTORS_PER_CYLINDER) as u32;
        (5 + 7 * u64::from(distance) + 3 * request.sectors.0, distance)
    }
}

impl Device for Ruler {
    fn capacity(&self) -> SectorCount {
        SectorCount(SECTORS)
    }
    fn cylinders(&self) -> u32 {
        (SECTORS / SECTORS_PER_CYLINDER) as u32
    }
    fn cylinder_of(&self, sector: Sector) -> u32 {
        (sector.0 / SECTORS_PER_CYLINDER) as u32
    }
    fn current_cylinder(&self) -> u32 {
        self.cylinder
    }
    fn serve(&mut self, issue: SimTime, request: &BlockRequest) -> Service {
        let (ns, seek_cylinders) = self.service_ns(request);
        let transfer = SimDuration(ns);
        Service { finish: issue + transfer, seek_cylinders, transfer, ..Service::default() }
    }
    fn positioning(&self, _: &Moment, request: &BlockRequest) -> SimDuration {
        let target = (request.sector.0 / SECTORS_PER_CYLINDER) as u32;
        SimDuration(7 * u64::from(target.abs_diff(self.cylinder)))
    }
}

fn requests() -> impl Strategy<Value = Vec<BlockRequest>> {
    let one = (0_u64..200, 0_u64..SECTORS - 20, 1_u64..20, any::<bool>());
    prop::collection::vec(one, 1..120).prop_map(|rows| {
        let mut now = 0;
        rows.into_iter()
            .map(|(gap, sector, sectors, read)| {
                now += gap;
                BlockRequest {
                    enqueue: SimTime(now),
                    sector: Sector(sector),
                    sectors: SectorCount(sectors),
                    operation: if read { Operation::Read } else { Operation::Write },
                    synchronous: false,
                }
            })
            .collect()
    })
}

fn replay(requests: &[BlockRequest], discipline: Discipline) -> Metrics {
    let accounting = Accounting::default();
    let mut metrics = Metrics::new(100, SimDuration(1000));
    let mut disk = Disk::new(Ruler::default(), discipline, Remapper::Identity);
    for request in requests {
        disk.arrive(request, &accounting, &mut metrics);
    }
    disk.drain(&accounting, &mut metrics);
    metrics.verify();
    metrics
}

proptest! {
    #[test]
    fn first_come_first_served_agrees_with_the_reference(requests in requests()) {
        let mut ruler = Ruler::default();
        let served =
            reference_replay(&requests, |_| 0, |now, request| now + ruler.service_ns(request).0);
        check(&requests, &served, &replay(&requests, Discipline::Fcfs))?;
    }

    #[test]
    fn c_scan_agrees_with_the_reference(requests in requests()) {
        let cylinder_of = |index: usize| requests[index].sector.0 / SECTORS_PER_CYLINDER;
        // The arm rests where the last request ended; upwards from there, else from the bottom.
        let arm = std::cell::Cell::new(0_u64);
        let pick = |waiting: &[usize]| {
            let key = |place: &usize| {
                let cylinder = cylinder_of(waiting[*place]);
                (cylinder < arm.get(), cylinder, waiting[*place])
            };
            (0..waiting.len()).min_by_key(key).expect("something waits")
        };
        let mut ruler = Ruler::default();
        let served = reference_replay(&requests, pick, |now, request| {
            let finish = now + ruler.service_ns(request).0;
            arm.set(u64::from(ruler.cylinder));
            finish
        });
        check(&requests, &served, &replay(&requests, Discipline::CScan))?;
    }
}

fn check(
    requests: &[BlockRequest],
    served: &[agewell_testkit::Served],
    metrics: &Metrics,
) -> Result<(), TestCaseError> {
    let service: u64 = served.iter().map(|one| one.finish_ns - one.start_ns).sum();
    let response: u64 =
        served.iter().map(|one| one.finish_ns - requests[one.index].enqueue.0).sum();
    let last = served.iter().map(|one| one.finish_ns).max().unwrap_or(0);
    prop_assert_eq!(metrics.all().requests, requests.len() as u64);
    prop_assert_eq!(metrics.all().service_ns, u128::from(service));
    prop_assert_eq!(metrics.all().response_ns, u128::from(response));
    prop_assert_eq!(metrics.last_finish, SimTime(last));
    Ok(())
}
