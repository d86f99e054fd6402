//! A drive whose tracks overlap like shingles: it is written in order, zone by zone.
//!
//! Writing a track destroys part of the next one, so that a zone can only be appended to, or emptied
//! as a whole. Reads are those of the drive below. Two kinds of drive live with that:
//!
//! * *host-managed* (ZBC and ZAC; zones of 256 MiB are usual): the drive keeps a write pointer a
//!   zone and refuses what does not begin there. [`Device::check`] reports this before anything
//!   runs; a discard of whole zones empties them.
//! * *drive-managed*: any write is taken. What harms nothing above it is written in place; the rest
//!   goes to a cache on the medium, from where whole bands are rewritten: `zoned/media_cache.rs`.
//!
//! Invariants: the sectors of a zone before its pointer have been written since it was emptied, none
//! behind it has; a served write leaves the pointer at its end.
//!
//! Differences from the standards: no limit on open zones; emptying a zone costs a command; sectors
//! that were never written read like others (a drive may refuse that).
//!
//! Cost: one division and one addition a request, beside the drive below.

mod media_cache;

#[cfg(test)]
mod tests;

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimDuration, SimTime};

use crate::command_queue::{Held, serve_nearest_first};
use crate::parameters::{Management, ZonedDrive, ZonedParameters};
use crate::{
    Device, DeviceModel, LayoutAdvice, Mechanical, Moment, Refused, Service, Simple, WriteRule,
};

use media_cache::MediaCache;

/// A drive that is written zone by zone.
#[derive(Debug, Clone)]
pub struct Zoned {
    drive: DeviceModel,
    order: Order,
    held: Held,
}

#[derive(Debug, Clone)]
enum Order {
    Host(Zones),
    Drive(Box<MediaCache>),
}

/// Work of a drive-managed drive to keep its tracks in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ZonedCounts {
    /// Sectors that went to the cache on the medium.
    pub cached_sectors: u64,
    /// Bands rewritten.
    pub bands_rewritten: u64,
    /// Sectors read to rewrite bands.
    pub rewrite_read_sectors: u64,
    /// Sectors written to rewrite bands.
    pub rewrite_written_sectors: u64,
}

/// The zones of a host-managed drive and their write pointers.
#[derive(Debug, Clone)]
struct Zones {
    capacity: u64,
    zone_sectors: u64,
    first_sequential: u64,
    /// Sectors written of each zone, conventional ones included; theirs stay 0.
    written: Vec<u32>,
}

impl Zones {
    fn new(capacity: u64, zone_sectors: u64, conventional_zones: u32) -> Self {
        let zones = capacity.div_ceil(zone_sectors);
        Self {
            capacity,
            zone_sectors,
            first_sequential: u64::from(conventional_zones) * zone_sectors,
            written: vec![0; usize::try_from(zones).expect("the reader bounds the zones")],
        }
    }

    fn start(&self, zone: u64) -> u64 {
        zone * self.zone_sectors
    }

    fn end(&self, zone: u64) -> u64 {
        ((zone + 1) * self.zone_sectors).min(self.capacity)
    }

    fn pointer(&self, zone: u64) -> u64 {
        self.start(zone) + u64::from(self.written[zone as usize])
    }

    fn check(&self, request: &BlockRequest) -> Result<(), Refused> {
        let (first, end) = (request.sector.0, (request.sector + request.sectors).0);
        match request.operation {
            Operation::Read | Operation::Flush => Ok(()),
            Operation::Write => self.check_write(first, end),
            Operation::Discard => self.check_discard(first, end),
        }
    }

    fn check_write(&self, first: u64, end: u64) -> Result<(), Refused> {
        if end <= self.first_sequential {
            return Ok(());
        }
        let zone = first / self.zone_sectors;
        if end > self.end(zone) && first >= self.first_sequential {
            let (sector, sectors) = (first, end - first);
            return Err(Refused::AcrossZones { sector, sectors, zone, end: self.end(zone) });
        }
        if first < self.first_sequential {
            let (sector, sectors) = (first, end - first);
            return Err(Refused::AcrossZones { sector, sectors, zone, end: self.first_sequential });
        }
        let pointer = self.pointer(zone);
        if first == pointer {
            Ok(())
        } else {
            Err(Refused::OutOfOrder { sector: first, zone, pointer })
        }
    }

    fn check_discard(&self, first: u64, end: u64) -> Result<(), Refused> {
        // Conventional zones have no pointer; discards of them mean nothing to the drive.
        for edge in [first.max(self.first_sequential), end.max(self.first_sequential)] {
            if !edge.is_multiple_of(self.zone_sectors) && edge != self.capacity {
                let (sector, sectors) = (first, end - first);
                return Err(Refused::PartOfZone {
                    sector,
                    sectors,
                    zone: edge / self.zone_sectors,
                });
            }
        }
        Ok(())
    }

    fn advance(&mut self, request: &BlockRequest) {
        let (first, end) = (request.sector.0, (request.sector + request.sectors).0);
        if end <= self.first_sequential {
            return;
        }
        match request.operation {
            Operation::Write => {
                let zone = first / self.zone_sectors;
                self.written[zone as usize] += (end - first) as u32;
                assert!(self.pointer(zone) <= self.end(zone), "a pointer beyond its zone");
            }
            Operation::Discard => {
                let from = first.max(self.first_sequential) / self.zone_sectors;
                let to = end.div_ceil(self.zone_sectors);
                self.written[from as usize..to as usize].fill(0);
            }
            Operation::Read | Operation::Flush => {}
        }
    }
}

impl Zoned {
    /// A drive at rest whose zones are all empty.
    #[must_use]
    pub fn new(parameters: &ZonedParameters) -> Self {
        let drive = match &parameters.drive {
            ZonedDrive::Simple(simple, sectors) => {
                DeviceModel::Simple(Simple::new(simple, SectorCount(*sectors)))
            }
            ZonedDrive::Mechanical(mechanical) => {
                DeviceModel::Mechanical(Box::new(Mechanical::new(mechanical)))
            }
        };
        let zone_sectors = parameters.zone_sectors;
        let order = match parameters.management {
            Management::Host { conventional_zones } => {
                Order::Host(Zones::new(drive.capacity().0, zone_sectors, conventional_zones))
            }
            Management::Drive { cache_sectors } => Order::Drive(Box::new(MediaCache::new(
                drive.capacity().0,
                cache_sectors,
                zone_sectors,
            ))),
        };
        Self { drive, order, held: Held::default() }
    }

    /// The write pointer of the zone that holds `sector`: where the next write to it must begin, or
    /// the zone's end when it is full. `None` on a drive-managed drive and in conventional zones.
    ///
    /// # Panics
    /// If `sector` is beyond the capacity.
    #[must_use]
    pub fn write_pointer(&self, sector: Sector) -> Option<Sector> {
        assert!(sector.0 < self.capacity().0, "sector {} is beyond the end", sector.0);
        match &self.order {
            Order::Host(zones) if sector.0 >= zones.first_sequential => {
                Some(Sector(zones.pointer(sector.0 / zones.zone_sectors)))
            }
            _ => None,
        }
    }

    /// Work of a drive-managed drive to keep its tracks in order; none on a host-managed one.
    #[must_use]
    pub fn counts(&self) -> ZonedCounts {
        match &self.order {
            Order::Host(_) => ZonedCounts::default(),
            Order::Drive(cache) => cache.counts(),
        }
    }
}

impl Device for Zoned {
    fn capacity(&self) -> SectorCount {
        match &self.order {
            Order::Host(zones) => SectorCount(zones.capacity),
            Order::Drive(cache) => SectorCount(cache.capacity()),
        }
    }

    fn cylinders(&self) -> u32 {
        self.drive.cylinders()
    }

    fn cylinder_of(&self, sector: Sector) -> u32 {
        match &self.order {
            Order::Host(_) => self.drive.cylinder_of(sector),
            Order::Drive(cache) => self.drive.cylinder_of(cache.home(sector)),
        }
    }

    fn current_cylinder(&self) -> u32 {
        self.drive.current_cylinder()
    }

    fn serve(&mut self, issue: SimTime, request: &BlockRequest) -> Service {
        let end = request.sector + request.sectors;
        assert!(end <= Sector(self.capacity().0), "request beyond the end of the device: {end:?}");
        match &mut self.order {
            Order::Host(zones) => {
                if let Err(refused) = zones.check(request) {
                    panic!("callers check before they write: {refused}");
                }
                zones.advance(request);
                self.drive.serve(issue, request)
            }
            Order::Drive(cache) => cache.serve(&mut self.drive, issue, request),
        }
    }

    fn queue_depth(&self) -> u32 {
        self.drive.queue_depth()
    }

    fn serve_together(
        &mut self,
        issue: SimTime,
        requests: &[BlockRequest],
        services: &mut Vec<Service>,
    ) {
        let mut held = std::mem::take(&mut self.held);
        let queue = (&mut held, self.queue_depth());
        // Zones that the host writes in order are written in its order.
        let is_hosts = matches!(self.order, Order::Host(_));
        let may_overtake = |operation| operation == Operation::Read || !is_hosts;
        serve_nearest_first(self, queue, issue, requests, services, may_overtake);
        self.held = held;
    }

    fn layout_advice(&self) -> LayoutAdvice {
        let below = self.drive.layout_advice();
        match &self.order {
            Order::Host(zones) => {
                let zone_sectors = SectorCount(zones.zone_sectors);
                LayoutAdvice {
                    write_rule: WriteRule::SequentialInZones {
                        first_sequential: Sector(zones.first_sequential),
                        zone_sectors,
                    },
                    unit: Some(zone_sectors),
                    wants_discards: true,
                    ..below
                }
            }
            Order::Drive(cache) => {
                LayoutAdvice { unit: Some(SectorCount(cache.band_sectors())), ..below }
            }
        }
    }

    fn check(&self, request: &BlockRequest) -> Result<(), Refused> {
        match &self.order {
            Order::Host(zones) => zones.check(request),
            Order::Drive(_) => Ok(()),
        }
    }

    fn moment(&self, issue: SimTime) -> Moment {
        self.drive.moment(issue)
    }

    fn positioning(&self, moment: &Moment, request: &BlockRequest) -> SimDuration {
        if !request.operation.transfers_data() {
            return SimDuration::ZERO;
        }
        match &self.order {
            Order::Host(_) => self.drive.positioning(moment, request),
            Order::Drive(cache) => self.drive.positioning(moment, &cache.first_access(request)),
        }
    }

    fn positioning_at_least(&self, moment: &Moment, cylinders: u32) -> SimDuration {
        match &self.order {
            Order::Host(_) => self.drive.positioning_at_least(moment, cylinders),
            // Requests to the drive below may lie anywhere.
            Order::Drive(_) => SimDuration::ZERO,
        }
    }

    fn buffered_cylinders(&self, moment: &Moment, visit: &mut dyn FnMut(u32)) {
        self.drive.buffered_cylinders(moment, visit);
    }
}
