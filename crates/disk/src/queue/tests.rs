//! Every discipline against a reference that scans a plain list by the rule's definition.

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimDuration, SimTime};
use proptest::prelude::*;

use super::{Discipline, Queue, QueueEntry};
use crate::device::{Device, Moment, Service};

const SECTORS_PER_CYLINDER: u64 = 16;
const CYLINDERS: u32 = 200;

/// An arm and nothing else: positioning is a made-up function of address and time that is not monotone in distance, and
/// some cylinders are as good as in a buffer.
struct Arm {
    cylinder: u32,
}

fn is_buffered(cylinder: u32) -> bool {
    cylinder % 37 == 5
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
        let end = Sector(request.sector.0 + request.sectors.0 - 1);
        self.cylinder = self.cylinder_of(end);
        Service { finish: issue + SimDuration(1), ..Service::default() }
    }
    fn positioning(&self, moment: &Moment, request: &BlockRequest) -> SimDuration {
        let cylinder = self.cylinder_of(request.sector);
        if is_buffered(cylinder) && !request.sector.0.is_multiple_of(4) {
            return SimDuration(1 + request.sector.0 % 2);
        }
        let seek = u64::from(cylinder.abs_diff(self.cylinder));
        SimDuration(1 + seek / 8 + (request.sector.0 * 7 + moment.issue.0) % 5)
    }
    fn positioning_at_least(&self, _: &Moment, cylinders: u32) -> SimDuration {
        SimDuration(1 + u64::from(cylinders) / 8)
    }
    fn buffered_cylinders(&self, _: &Moment, visit: &mut dyn FnMut(u32)) {
        (0..CYLINDERS).filter(|cylinder| is_buffered(*cylinder)).for_each(visit);
    }
}

/// The rules word for word, over an unordered list; state as the rule needs it.
struct Reference {
    discipline: Discipline,
    waiting: Vec<QueueEntry>,
    upwards: bool,
    next_sector: u64,
}

impl Reference {
    fn pop(&mut self, now: SimTime, device: &Arm) -> Option<QueueEntry> {
        let arm = device.cylinder;
        let waiting = &self.waiting;
        let chosen = match self.discipline {
            Discipline::Fcfs => waiting.iter().min_by_key(|entry| entry.sequence),
            Discipline::Sstf => {
                waiting.iter().min_by_key(|entry| (entry.cylinder.abs_diff(arm), entry.sequence))
            }
            Discipline::Scan => {
                let ahead =
                    |upwards: bool| {
                        waiting
                            .iter()
                            .filter(move |entry| {
                                if upwards { entry.cylinder >= arm } else { entry.cylinder <= arm }
                            })
                            .min_by_key(|entry| (entry.cylinder.abs_diff(arm), entry.sequence))
                    };
                let found = ahead(self.upwards);
                if found.is_none() && !waiting.is_empty() {
                    self.upwards = !self.upwards;
                    ahead(self.upwards)
                } else {
                    found
                }
            }
            Discipline::CScan => waiting
                .iter()
                .min_by_key(|entry| (entry.cylinder < arm, entry.cylinder, entry.sequence)),
            Discipline::CLook => waiting.iter().min_by_key(|entry| {
                let sector = entry.request.sector.0;
                (sector < self.next_sector, sector, entry.sequence)
            }),
            Discipline::Sptf => waiting.iter().min_by_key(|entry| {
                let moves_data = entry.request.operation.transfers_data();
                let positioning = device.positioning(&device.moment(now), &entry.request);
                (if moves_data { positioning } else { SimDuration::ZERO }, entry.sequence)
            }),
        };
        let chosen = *chosen?;
        self.next_sector = chosen.request.sector.0 + chosen.request.sectors.0;
        self.waiting.retain(|entry| entry.sequence != chosen.sequence);
        Some(chosen)
    }
}

fn entry(sequence: u64, sector: u64, sectors: u64) -> QueueEntry {
    QueueEntry {
        sequence,
        cylinder: (sector / SECTORS_PER_CYLINDER) as u32,
        request: BlockRequest {
            enqueue: SimTime(sequence),
            sector: Sector(sector),
            sectors: SectorCount(sectors),
            operation: if sector % 11 == 7 { Operation::Flush } else { Operation::Read },
            synchronous: true,
        },
    }
}

/// Pops and serves; the arm stays where the request ends.
fn serve_next(queue: &mut Queue, arm: &mut Arm, now: u64) -> Option<u64> {
    let entry = queue.pop(SimTime(now), arm)?;
    arm.serve(SimTime(now), &entry.request);
    Some(entry.sequence)
}

fn order(discipline: Discipline, start: u32, cylinders: &[u32]) -> Vec<u32> {
    let mut queue = Queue::new(discipline);
    let mut arm = Arm { cylinder: start };
    for (sequence, cylinder) in cylinders.iter().enumerate() {
        queue.push(entry(sequence as u64, u64::from(*cylinder) * SECTORS_PER_CYLINDER, 1));
    }
    let mut served = Vec::new();
    while let Some(sequence) = serve_next(&mut queue, &mut arm, 0) {
        served.push(cylinders[sequence as usize]);
    }
    served
}

#[test]
fn the_textbook_queue_is_served_in_the_textbook_orders() {
    // Requests and starting cylinder of Silberschatz & Galvin, Operating System Concepts, disk scheduling chapter.
    let requests = [98, 183, 37, 122, 14, 124, 65, 67];
    assert_eq!(order(Discipline::Fcfs, 53, &requests), requests);
    assert_eq!(order(Discipline::Sstf, 53, &requests), [65, 67, 37, 14, 98, 122, 124, 183]);
    assert_eq!(order(Discipline::Scan, 53, &requests), [65, 67, 98, 122, 124, 183, 37, 14]);
    assert_eq!(order(Discipline::CScan, 53, &requests), [65, 67, 98, 122, 124, 183, 14, 37]);
}

#[test]
fn c_look_starts_at_address_zero_and_sorts_within_the_cylinder() {
    let mut arm = Arm { cylinder: 0 };
    let mut by_address = Queue::new(Discipline::CLook);
    let mut by_cylinder = Queue::new(Discipline::CScan);
    for (sequence, sector) in [(0, 40), (1, 35), (2, 3), (3, 44)] {
        by_address.push(entry(sequence, sector, 2));
        by_cylinder.push(entry(sequence, sector, 2));
    }
    let served: Vec<u64> =
        std::iter::from_fn(|| serve_next(&mut by_address, &mut arm, 0)).collect();
    assert_eq!(served, [2, 1, 0, 3]);
    arm.cylinder = 0;
    let served: Vec<u64> =
        std::iter::from_fn(|| serve_next(&mut by_cylinder, &mut arm, 0)).collect();
    assert_eq!(served, [2, 0, 1, 3]);
}

#[test]
fn a_late_arrival_behind_the_sweep_waits_for_the_next_one() {
    let mut queue = Queue::new(Discipline::CScan);
    let mut arm = Arm { cylinder: 100 };
    queue.push(entry(0, 110 * SECTORS_PER_CYLINDER, 1));
    queue.push(entry(1, 150 * SECTORS_PER_CYLINDER, 1));
    assert_eq!(serve_next(&mut queue, &mut arm, 0), Some(0));
    queue.push(entry(2, 105 * SECTORS_PER_CYLINDER, 1));
    assert_eq!(serve_next(&mut queue, &mut arm, 0), Some(1));
    assert_eq!(serve_next(&mut queue, &mut arm, 0), Some(2));
}

#[test]
fn sstf_starves_a_far_request_and_the_sweeps_do_not() {
    // Two near requests are always waiting; the far one comes first. After 50 services only the greedy rule has
    // not reached it.
    let reached = |discipline| {
        let mut queue = Queue::new(discipline);
        let mut arm = Arm { cylinder: 10 };
        queue.push(entry(0, 190 * SECTORS_PER_CYLINDER, 1));
        (1..50).any(|sequence| {
            queue.push(entry(sequence, (10 + sequence % 3) * SECTORS_PER_CYLINDER, 1));
            serve_next(&mut queue, &mut arm, sequence) == Some(0)
        })
    };
    assert!(!reached(Discipline::Sstf));
    assert!(reached(Discipline::Fcfs));
    assert!(reached(Discipline::CScan));
}

#[test]
fn names_are_unique_and_round_trip() {
    for discipline in Discipline::ALL {
        assert_eq!(Discipline::from_name(discipline.name()), Some(discipline));
        assert_eq!(Queue::new(discipline).discipline(), discipline);
    }
    assert_eq!(Discipline::from_name("cscan"), None);
}

fn steps() -> impl Strategy<Value = Vec<Option<(u64, u64, u64)>>> {
    let push = (0..u64::from(CYLINDERS) * SECTORS_PER_CYLINDER - 40, 1u64..40, 0u64..4);
    proptest::collection::vec(prop_oneof![3 => push.prop_map(Some), 2 => Just(None)], 1..300)
}

proptest! {
    #[test]
    fn every_discipline_agrees_with_its_definition(steps in steps()) {
        for discipline in Discipline::ALL {
            let mut queue = Queue::new(discipline);
            let mut reference =
                Reference { discipline, waiting: Vec::new(), upwards: true, next_sector: 0 };
            let mut arm = Arm { cylinder: 77 };
            let mut pushed = 0u64;
            let mut popped = Vec::new();
            // Ends with enough pops to empty the queue, one beyond.
            let drain = steps.iter().map(|_| &None).chain([&None]);
            for (now, step) in steps.iter().chain(drain).enumerate() {
                if let Some((sector, sectors, displacement)) = step {
                    // Sequence numbers are unique but not quite in order of arrival.
                    let new = entry(pushed * 4 + (3 - displacement) * 17 % 64 * 4, *sector, *sectors);
                    let new = QueueEntry { sequence: new.sequence * 1000 + pushed, ..new };
                    pushed += 1;
                    queue.push(new);
                    reference.waiting.push(new);
                } else {
                    let expected = reference.pop(SimTime(now as u64), &arm);
                    let got = queue.pop(SimTime(now as u64), &arm);
                    prop_assert_eq!(got, expected, "{}", discipline.name());
                    if let Some(got) = got {
                        popped.push(got.sequence);
                        arm.serve(SimTime(now as u64), &got.request);
                    }
                }
                prop_assert_eq!(queue.len(), reference.waiting.len());
                prop_assert_eq!(queue.is_empty(), reference.waiting.is_empty());
            }
            popped.sort_unstable();
            popped.dedup();
            prop_assert_eq!(popped.len() as u64, pushed, "{}", discipline.name());
        }
    }
}
