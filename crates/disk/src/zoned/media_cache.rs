//! How a drive-managed shingled drive takes any write: through a cache on the medium.
//!
//! The front of the drive, its outermost tracks, is a log of what could not be written in place. The
//! rest is divided into bands with a fixed place for each sector. A write goes
//!
//! * in place, where the band holds nothing from its first sector on, or nothing that the write does
//!   not cover as well: no written track is harmed;
//! * to the end of the log otherwise. When the log has no room, the band of its oldest live extent is
//!   cleaned: the band is read, its extents in the log are read, and the band is written in order.
//!
//! Invariants: the live extents do not overlap and lie in the log, in pieces of log entries; a
//! sector with a live extent has its newest version there, any other one in its band.
//!
//! Source: the persistent cache, static mapping and band rewriting found in two drives by Aghayev &
//! Desnoyers 2015 (Skylight, FAST). Differences: rewriting happens in the foreground, when the log is
//! full, never while the drive is idle; a band is rewritten in place at once, without a second copy
//! in the log; sequential overwriting in requests shorter than a band is not recognised.
//!
//! Cost: a look-up in an ordered map a request; a rewrite is one or two requests of a band and one an
//! extent.

use std::collections::{BTreeMap, VecDeque};

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimTime};

use super::ZonedCounts;
use crate::{Device, Service};

/// A stretch of sectors whose newest version is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    sectors: u64,
    /// Where it lies in the log, which begins at the drive's sector 0.
    place: u64,
    /// The log entry it is a piece of.
    entry: u64,
}

/// One write to the log.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// First addressed sector.
    sector: u64,
    sectors: u64,
    /// Room taken in the log, with what was left over at its end.
    room: u64,
    /// Sectors of it that are still the newest version.
    live: u64,
}

#[derive(Debug, Clone)]
pub(super) struct MediaCache {
    /// Addressable sectors.
    capacity: u64,
    log_sectors: u64,
    band_sectors: u64,
    /// Up to where each band has been written, in sectors from its start.
    written: Vec<u32>,
    extents: BTreeMap<u64, Extent>,
    entries: VecDeque<Entry>,
    /// Number of the oldest entry.
    oldest: u64,
    /// Where the next entry goes.
    head: u64,
    /// Room that entries take.
    taken: u64,
    counts: ZonedCounts,
}

impl MediaCache {
    pub(super) fn new(drive_sectors: u64, log_sectors: u64, band_sectors: u64) -> Self {
        let capacity = drive_sectors - log_sectors;
        let bands =
            usize::try_from(capacity.div_ceil(band_sectors)).expect("the reader bounds the bands");
        Self {
            capacity,
            log_sectors,
            band_sectors,
            written: vec![0; bands],
            extents: BTreeMap::new(),
            entries: VecDeque::new(),
            oldest: 0,
            head: 0,
            taken: 0,
            counts: ZonedCounts::default(),
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn band_sectors(&self) -> u64 {
        self.band_sectors
    }

    pub(super) fn counts(&self) -> ZonedCounts {
        self.counts
    }

    /// The place of a sector in its band, as the drive below counts.
    pub(super) fn home(&self, sector: Sector) -> Sector {
        Sector(self.log_sectors + sector.0)
    }

    /// The part of `request` that the drive below would be asked for first.
    pub(super) fn first_access(&self, request: &BlockRequest) -> BlockRequest {
        let (sector, sectors) = match request.operation {
            Operation::Write if !self.fits_in_place(request.sector.0, request.sectors.0) => {
                (Sector(self.head.min(self.log_sectors - 1)), SectorCount(1))
            }
            _ => {
                let (place, sectors) = self.newest(request.sector.0, request.sectors.0.max(1));
                (Sector(place), SectorCount(sectors))
            }
        };
        BlockRequest { sector, sectors, ..*request }
    }

    pub(super) fn serve(
        &mut self,
        drive: &mut impl Device,
        issue: SimTime,
        request: &BlockRequest,
    ) -> Service {
        let mut access = Access { drive, now: issue, total: Service::default(), parts: 0 };
        match request.operation {
            Operation::Read => self.read(&mut access, request),
            Operation::Write => self.write(&mut access, request),
            // The drives described have no use for discards; a flush waits for the drive's buffer.
            Operation::Discard | Operation::Flush => {
                access.serve(request.operation, 0, 1);
            }
        }
        access.total
    }

    /// Where the newest version of `sector` is, and how many of `sectors` lie there side by side.
    fn newest(&self, sector: u64, sectors: u64) -> (u64, u64) {
        if let Some((start, extent)) = self.extents.range(..=sector).next_back()
            && start + extent.sectors > sector
        {
            let inside = sector - start;
            return (extent.place + inside, (extent.sectors - inside).min(sectors));
        }
        let next = self.extents.range(sector..).next().map_or(u64::MAX, |(start, _)| *start);
        (self.log_sectors + sector, sectors.min(next - sector))
    }

    fn read(&self, access: &mut Access<'_, impl Device>, request: &BlockRequest) {
        let (mut sector, end) = (request.sector.0, (request.sector + request.sectors).0);
        while sector < end {
            let (place, sectors) = self.newest(sector, end - sector);
            access.serve(Operation::Read, place, sectors);
            sector += sectors;
        }
    }

    /// Whether writing this stretch of one band in place harms nothing that stays.
    fn fits_in_place(&self, sector: u64, sectors: u64) -> bool {
        let band = sector / self.band_sectors;
        let end_in_band = sector + sectors - band * self.band_sectors;
        let written = u64::from(self.written[band as usize]);
        let starts_behind = sector >= band * self.band_sectors + written;
        starts_behind || (sector == band * self.band_sectors && end_in_band >= written)
    }

    fn write(&mut self, access: &mut Access<'_, impl Device>, request: &BlockRequest) {
        let end = (request.sector + request.sectors).0;
        let mut sector = request.sector.0;
        // Where what is written in place, and not yet asked of the drive, begins.
        let mut in_place_from = sector;
        while sector < end {
            let band_end = (sector / self.band_sectors + 1) * self.band_sectors;
            // An entry must fit into the log, also where it leaves the log's end unused.
            let to = end.min(band_end).min(sector + (self.log_sectors / 2).max(1));
            if self.fits_in_place(sector, to - sector) {
                self.forget(sector, to);
                let band = (sector / self.band_sectors) as usize;
                let written = to - band as u64 * self.band_sectors;
                self.written[band] = self.written[band].max(written as u32);
            } else {
                self.write_in_place(access, in_place_from, sector);
                self.append(access, sector, to - sector);
                in_place_from = to;
            }
            sector = to;
        }
        self.write_in_place(access, in_place_from, end);
    }

    fn write_in_place(&self, access: &mut Access<'_, impl Device>, from: u64, to: u64) {
        if from < to {
            access.serve(Operation::Write, self.log_sectors + from, to - from);
        }
    }

    fn append(&mut self, access: &mut Access<'_, impl Device>, sector: u64, sectors: u64) {
        let wraps = self.head + sectors > self.log_sectors;
        let left_over = if wraps { self.log_sectors - self.head } else { 0 };
        let room = left_over + sectors;
        self.make_room(access, room);
        let place = if wraps { 0 } else { self.head };
        access.serve(Operation::Write, place, sectors);
        self.forget(sector, sector + sectors);
        let entry = self.oldest + self.entries.len() as u64;
        self.entries.push_back(Entry { sector, sectors, room, live: sectors });
        self.extents.insert(sector, Extent { sectors, place, entry });
        self.head = place + sectors;
        self.taken += room;
        self.counts.cached_sectors += sectors;
    }

    fn make_room(&mut self, access: &mut Access<'_, impl Device>, room: u64) {
        loop {
            while let Some(entry) = self.entries.front().filter(|entry| entry.live == 0) {
                self.taken -= entry.room;
                self.entries.pop_front();
                self.oldest += 1;
            }
            if self.taken + room <= self.log_sectors {
                return;
            }
            let oldest = *self.entries.front().expect("a log without room has entries");
            let live = self
                .extents
                .range(oldest.sector..oldest.sector + oldest.sectors)
                .find(|(_, extent)| extent.entry == self.oldest)
                .map(|(start, _)| *start)
                .expect("a live entry has extents");
            self.rewrite_band(access, live / self.band_sectors);
        }
    }

    fn rewrite_band(&mut self, access: &mut Access<'_, impl Device>, band: u64) {
        let start = band * self.band_sectors;
        let written = u64::from(self.written[band as usize]);
        access.serve(Operation::Read, self.log_sectors + start, written);
        self.counts.rewrite_read_sectors += written;
        // What began before the end of the written part may have gone on behind it.
        let mut written = written;
        for (first, extent) in self.extents.range(start..start + self.band_sectors) {
            access.serve(Operation::Read, extent.place, extent.sectors);
            self.counts.rewrite_read_sectors += extent.sectors;
            written = written.max(first + extent.sectors - start);
        }
        self.written[band as usize] = written as u32;
        access.serve(Operation::Write, self.log_sectors + start, written);
        self.counts.rewrite_written_sectors += written;
        self.counts.bands_rewritten += 1;
        self.forget(start, start + self.band_sectors);
    }

    /// Drops what the log holds of `from..to`.
    fn forget(&mut self, from: u64, to: u64) {
        if let Some((&start, &extent)) = self.extents.range(..from).next_back()
            && start + extent.sectors > from
        {
            let end = start + extent.sectors;
            let kept = Extent { sectors: from - start, ..extent };
            self.extents.insert(start, kept);
            self.retire(extent.entry, end.min(to) - from);
            if end > to {
                let place = extent.place + (to - start);
                self.extents.insert(to, Extent { sectors: end - to, place, ..extent });
            }
        }
        while let Some((&start, &extent)) = self.extents.range(from..to).next() {
            self.extents.remove(&start);
            let end = start + extent.sectors;
            self.retire(extent.entry, end.min(to) - start);
            if end > to {
                let place = extent.place + (to - start);
                self.extents.insert(to, Extent { sectors: end - to, place, ..extent });
            }
        }
    }

    fn retire(&mut self, entry: u64, sectors: u64) {
        let entry = &mut self.entries[(entry - self.oldest) as usize];
        entry.live -= sectors;
    }
}

/// Requests to the drive below for one request from above, one after another.
struct Access<'a, D> {
    drive: &'a mut D,
    now: SimTime,
    total: Service,
    parts: u32,
}

impl<D: Device> Access<'_, D> {
    fn serve(&mut self, operation: Operation, sector: u64, sectors: u64) {
        let request = BlockRequest {
            enqueue: self.now,
            sector: Sector(sector),
            sectors: SectorCount(sectors),
            operation,
            synchronous: true,
        };
        let part = self.drive.serve(self.now, &request);
        self.now = part.finish;
        let total = &mut self.total;
        total.finish = part.finish;
        total.seek_cylinders = total.seek_cylinders.saturating_add(part.seek_cylinders);
        total.overhead += part.overhead;
        total.seek += part.seek;
        total.rotation += part.rotation;
        total.transfer += part.transfer;
        total.buffer_hit = part.buffer_hit && (self.parts == 0 || total.buffer_hit);
        self.parts += 1;
    }
}
