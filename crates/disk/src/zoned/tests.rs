//! Zones against the rule they state, and the cache on the medium against a disk with contents.

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimDuration, SimTime};
use proptest::prelude::*;

use super::Zoned;
use super::media_cache::MediaCache;
use crate::parameters::{Management, SimpleParameters, ZonedDrive, ZonedParameters};
use crate::{Device, Moment, Refused, Service, WriteRule};

const ZONE: u64 = 64;
/// Ten zones and a short one, the first two conventional.
const CAPACITY: u64 = 10 * ZONE + 20;

fn parameters(management: Management) -> ZonedParameters {
    let simple = SimpleParameters { access_time_ns: 1_000_000, bandwidth_bytes_per_s: 512_000_000 };
    ZonedParameters { drive: ZonedDrive::Simple(simple, CAPACITY), zone_sectors: ZONE, management }
}

fn host_managed() -> Zoned {
    Zoned::new(&parameters(Management::Host { conventional_zones: 2 }))
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

#[test]
fn the_rule_is_told_before_anything_runs() {
    let advice = host_managed().layout_advice();
    let rule = WriteRule::SequentialInZones {
        first_sequential: Sector(2 * ZONE),
        zone_sectors: SectorCount(ZONE),
    };
    assert_eq!(advice.write_rule, rule);
    assert_eq!(advice.unit, Some(SectorCount(ZONE)));
    let drive = Zoned::new(&parameters(Management::Drive { cache_sectors: 2 * ZONE }));
    assert_eq!(drive.layout_advice().write_rule, WriteRule::Anywhere);
    assert_eq!(drive.capacity(), SectorCount(CAPACITY - 2 * ZONE));
}

#[test]
fn a_zone_takes_writes_at_its_pointer_and_nowhere_else() {
    let mut drive = host_managed();
    let write = |sector, sectors| request(Operation::Write, sector, sectors);
    let zone = 3 * ZONE;
    assert_eq!(drive.write_pointer(Sector(zone + 5)), Some(Sector(zone)));
    let refused = Refused::OutOfOrder { sector: zone + 8, zone: 3, pointer: zone };
    assert_eq!(drive.check(&write(zone + 8, 8)), Err(refused));
    let first = drive.serve(SimTime::ZERO, &write(zone, 8));
    assert_eq!(first.finish, SimTime(1_000_000 + 8 * 1000));
    assert_eq!(drive.write_pointer(Sector(zone)), Some(Sector(zone + 8)));
    let refused = Refused::OutOfOrder { sector: zone, zone: 3, pointer: zone + 8 };
    assert_eq!(drive.check(&write(zone, 8)), Err(refused));
    let refused =
        Refused::AcrossZones { sector: zone + 8, sectors: ZONE, zone: 3, end: zone + ZONE };
    assert_eq!(drive.check(&write(zone + 8, ZONE)), Err(refused));
    assert_eq!(drive.check(&write(zone + 8, ZONE - 8)), Ok(()));
}

#[test]
fn conventional_zones_take_anything_but_no_write_runs_out_of_them() {
    let mut drive = host_managed();
    drive.serve(SimTime::ZERO, &request(Operation::Write, ZONE - 8, 16));
    assert_eq!(drive.check(&request(Operation::Write, 3, 8)), Ok(()));
    assert_eq!(drive.write_pointer(Sector(0)), None);
    let out = request(Operation::Write, 2 * ZONE - 8, 16);
    assert!(matches!(drive.check(&out), Err(Refused::AcrossZones { end: 128, .. })));
}

#[test]
fn discarding_whole_zones_empties_them_and_parts_are_refused() {
    let mut drive = host_managed();
    let mut now = SimTime::ZERO;
    for zone in [4, 5, 10] {
        let sectors = ZONE.min(CAPACITY - zone * ZONE);
        now = drive.serve(now, &request(Operation::Write, zone * ZONE, sectors)).finish;
    }
    let part = request(Operation::Discard, 4 * ZONE, ZONE + 8);
    assert!(matches!(drive.check(&part), Err(Refused::PartOfZone { zone: 5, .. })));
    let whole = request(Operation::Discard, 4 * ZONE, 2 * ZONE);
    now = drive.serve(now, &whole).finish;
    assert_eq!(drive.write_pointer(Sector(4 * ZONE)), Some(Sector(4 * ZONE)));
    assert_eq!(drive.write_pointer(Sector(5 * ZONE)), Some(Sector(5 * ZONE)));
    assert_eq!(drive.write_pointer(Sector(10 * ZONE)), Some(Sector(CAPACITY)));
    // The last zone is short; its end is the drive's.
    drive.serve(now, &request(Operation::Discard, 10 * ZONE, 20));
    assert_eq!(drive.write_pointer(Sector(10 * ZONE)), Some(Sector(10 * ZONE)));
}

#[test]
#[should_panic(expected = "callers check before they write")]
fn serving_what_is_refused_is_our_bug() {
    host_managed().serve(SimTime::ZERO, &request(Operation::Write, 3 * ZONE + 1, 1));
}

#[test]
fn overwriting_costs_a_drive_that_manages_itself_a_rewritten_band() {
    let mut drive = Zoned::new(&parameters(Management::Drive { cache_sectors: 2 * ZONE }));
    let mut now = SimTime::ZERO;
    // Filling a band in order is written in place, and so is overwriting it as a whole.
    for sectors in [ZONE / 2, ZONE] {
        for sector in (0..ZONE).step_by(sectors as usize) {
            let service = drive.serve(now, &request(Operation::Write, sector, sectors));
            assert_eq!((service.finish - now).0, 1_000_000 + sectors * 1000);
            now = service.finish;
        }
    }
    assert_eq!(drive.counts(), super::ZonedCounts::default());
    // Sixteen overwrites of 8 sectors fill the cache of two bands; the next one makes room.
    for number in 0..16 {
        let service = drive.serve(now, &request(Operation::Write, number % 2 * 16, 8));
        assert_eq!((service.finish - now).0, 1_000_000 + 8 * 1000);
        now = service.finish;
    }
    assert_eq!(drive.counts().bands_rewritten, 0);
    let service = drive.serve(now, &request(Operation::Write, 40, 8));
    // Only two entries are live: dead ones at the tail go first, and no band is rewritten.
    assert_eq!(drive.counts().bands_rewritten, 0);
    now = service.finish;
    for sector in (ZONE..2 * ZONE).step_by(8) {
        now = drive.serve(now, &request(Operation::Write, sector, 8)).finish;
    }
    let mut cached = 0;
    while drive.counts().bands_rewritten == 0 {
        now = drive.serve(now, &request(Operation::Write, ZONE + cached % 6 * 8, 8)).finish;
        cached += 1;
        assert!(cached < 40, "the oldest live entry must give way at last");
    }
    // The band is read, its three extents are read from the log, and it is written.
    let counts = drive.counts();
    assert_eq!(counts.rewrite_written_sectors, ZONE);
    assert_eq!(counts.rewrite_read_sectors, ZONE + 3 * 8);
}

/// Records the requests to the drive below.
#[derive(Default)]
struct Recorder(Vec<(Operation, usize, usize)>);

impl Device for Recorder {
    fn capacity(&self) -> SectorCount {
        SectorCount(CAPACITY)
    }
    fn cylinders(&self) -> u32 {
        1
    }
    fn cylinder_of(&self, _: Sector) -> u32 {
        0
    }
    fn current_cylinder(&self) -> u32 {
        0
    }
    fn serve(&mut self, issue: SimTime, request: &BlockRequest) -> Service {
        let (place, count) = (request.sector.0 as usize, request.sectors.0 as usize);
        assert!(count > 0 && place + count <= CAPACITY as usize);
        self.0.push((request.operation, place, count));
        Service { finish: issue, ..Service::default() }
    }
    fn positioning(&self, _: &Moment, _: &BlockRequest) -> SimDuration {
        SimDuration::ZERO
    }
}

/// A cache on a disk with contents: every write of a sector is another number.
struct Contents {
    cache: MediaCache,
    log_sectors: usize,
    /// The contents of the disk below, by its own sectors.
    disk: Vec<u64>,
    /// The latest version written, by sectors from above.
    newest: Vec<u64>,
    written: u64,
}

impl Contents {
    fn new(log_sectors: u64) -> Self {
        let cache = MediaCache::new(CAPACITY, log_sectors, ZONE);
        let newest = vec![0; cache.capacity() as usize];
        let log_sectors = log_sectors as usize;
        Self { cache, log_sectors, disk: vec![0; CAPACITY as usize], newest, written: 0 }
    }

    fn serve(&mut self, operation: Operation, sector: u64, sectors: u64) -> Vec<u64> {
        let mut below = Recorder::default();
        let asked = request(operation, sector, sectors);
        let first = self.cache.first_access(&asked);
        self.cache.serve(&mut below, SimTime::ZERO, &asked);
        // An estimate of positioning is that of the first request to the drive below.
        let first = (first.operation, first.sector.0 as usize, first.sectors.0 as usize);
        assert_eq!(below.0[0], first, "of {asked:?}");
        let mut read = Vec::new();
        // The next sector from above that the host's data goes to.
        let mut next = sector as usize;
        for (operation, place, count) in below.0 {
            let range = place..place + count;
            match operation {
                Operation::Read => read.extend_from_slice(&self.disk[range]),
                // Only a rewrite reads before it writes: it must have read all that it writes.
                Operation::Write if !read.is_empty() => {
                    let home = place - self.log_sectors;
                    let contents = &self.newest[home..home + count];
                    for number in contents {
                        assert!(read.contains(number), "a rewrite lost what was written");
                    }
                    self.disk[range].copy_from_slice(contents);
                    read.clear();
                }
                Operation::Write => {
                    for place in range {
                        self.written += 1;
                        self.disk[place] = self.written;
                        self.newest[next] = self.written;
                        next += 1;
                    }
                }
                Operation::Discard | Operation::Flush => {}
            }
        }
        if operation == Operation::Write {
            assert_eq!(next as u64, sector + sectors, "all of a write reaches the disk");
        }
        read
    }
}

#[test]
fn regression_what_went_on_behind_the_written_part_is_rewritten_too() {
    let mut contents = Contents::new(ZONE);
    for (sector, sectors) in [(0, 10), (5, 20), (ZONE, ZONE), (ZONE, 30), (ZONE + 30, 30)] {
        contents.serve(Operation::Write, sector, sectors);
    }
    // The last entry wraps, which takes the room of both before it.
    assert_eq!(contents.cache.counts().bands_rewritten, 2);
    assert_eq!(contents.serve(Operation::Read, 0, 100), contents.newest[..100]);
}

proptest! {
    #[test]
    fn what_was_written_last_is_read_whatever_was_rewritten(
        log_zones in 1_u64..4,
        writes in proptest::collection::vec((0_u64..CAPACITY, 1_u64..100), 1..200),
    ) {
        let mut contents = Contents::new(log_zones * ZONE);
        let capacity = contents.cache.capacity();
        for (sector, sectors) in writes {
            let sector = sector % capacity;
            let sectors = sectors.min(capacity - sector);
            contents.serve(Operation::Write, sector, sectors);
            prop_assert_eq!(
                contents.serve(Operation::Read, sector, sectors),
                contents.newest[sector as usize..(sector + sectors) as usize].to_vec()
            );
            // From the middle of it on, and over its end.
            let middle = sector + sectors / 2;
            let end = (middle + ZONE).min(capacity);
            prop_assert_eq!(
                contents.serve(Operation::Read, middle, end - middle),
                contents.newest[middle as usize..end as usize].to_vec()
            );
        }
        prop_assert_eq!(contents.serve(Operation::Read, 0, capacity), contents.newest);
    }

    #[test]
    fn pointers_follow_a_slow_model(
        operations in proptest::collection::vec((0_u8..4, 0_u64..11, 1_u64..40), 1..200),
    ) {
        let mut drive = host_managed();
        let mut now = SimTime::ZERO;
        // The slow model: for each zone, whether each sector was written since it was emptied.
        let mut written = vec![false; CAPACITY as usize];
        for (kind, zone, sectors) in operations {
            let (start, end) = (zone * ZONE, ((zone + 1) * ZONE).min(CAPACITY));
            let pointer = (start..end).find(|sector| !written[*sector as usize]).unwrap_or(end);
            let offered = match kind {
                0 => request(Operation::Discard, start, end - start),
                1 => request(Operation::Write, start, sectors.min(end - start)),
                _ => request(Operation::Write, pointer.min(end - 1), sectors.min(CAPACITY - end + 1)),
            };
            let (first, last) = (offered.sector.0, (offered.sector + offered.sectors).0);
            let conventional = last <= 2 * ZONE;
            let taken = match offered.operation {
                Operation::Discard => true,
                _ => conventional || (zone >= 2 && first == pointer && last <= end),
            };
            prop_assert_eq!(drive.check(&offered).is_ok(), taken, "{:?}", offered);
            if !taken {
                continue;
            }
            now = drive.serve(now, &offered).finish;
            if zone >= 2 {
                let set = offered.operation == Operation::Write;
                written[first as usize..last as usize].fill(set);
                let pointer =
                    (start..end).find(|sector| !written[*sector as usize]).unwrap_or(end);
                prop_assert_eq!(drive.write_pointer(Sector(start)), Some(Sector(pointer)));
            }
        }
    }
}
