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
//! sector with a live extent has its newest version there, any other one in its band; the oldest entry
//! has live sectors.
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

    /// The first request that the drive below would get for `request`.
    pub(super) fn first_access(&self, request: &BlockRequest) -> BlockRequest {
        let (first, end) = (request.sector.0, (request.sector + request.sectors).0);
        if request.operation != Operation::Write {
            let (place, sectors) = self.newest(first, end - first);
            return BlockRequest {
                sector: Sector(place),
                sectors: SectorCount(sectors),
                ..*request
            };
        }
        let in_place_to = self.in_place_to(first, end);
        if in_place_to > first {
            let (sector, sectors) = (self.home(request.sector), SectorCount(in_place_to - first));
            return BlockRequest { sector, sectors, ..*request };
        }
        let sectors = self.piece_end(first, end) - first;
        let (place, room) = self.next_entry(sectors);
        if self.taken + room <= self.log_sectors {
            let (sector, sectors) = (Sector(place), SectorCount(sectors));
            return BlockRequest { sector, sectors, ..*request };
        }
        // A band is rewritten first, which begins with reading it.
        let band = self.oldest_live() / self.band_sectors;
        BlockRequest {
            sector: self.home(Sector(band * self.band_sectors)),
            sectors: SectorCount(u64::from(self.written[band as usize])),
            operation: Operation::Read,
            ..*request
        }
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

    /// Where a write of `sector..end` is cut at the latest: bands are written one by one, and an entry must fit into
    /// the log, also where it leaves the log's end unused.
    fn piece_end(&self, sector: u64, end: u64) -> u64 {
        let band_end = (sector / self.band_sectors + 1) * self.band_sectors;
        end.min(band_end).min(sector + (self.log_sectors / 2).max(1))
    }

    /// How far from `first` on a write of `first..end` goes in place, harming nothing that stays.
    fn in_place_to(&self, first: u64, end: u64) -> u64 {
        let mut sector = first;
        // Sectors of its band that the pieces before this one have written.
        let (mut band, mut written) = (u64::MAX, 0);
        while sector < end {
            let start = sector / self.band_sectors * self.band_sectors;
            if band != start {
                (band, written) = (start, self.written_of(sector));
            }
            let to = self.piece_end(sector, end);
            let starts_behind = sector >= start + written;
            let covers_all = sector == start && to >= start + written;
            if !starts_behind && !covers_all {
                break;
            }
            written = written.max(to - start);
            sector = to;
        }
        sector
    }

    /// Sectors written of the band that holds `sector`.
    fn written_of(&self, sector: u64) -> u64 {
        u64::from(self.written[(sector / self.band_sectors) as usize])
    }

    fn write(&mut self, access: &mut Access<'_, impl Device>, request: &BlockRequest) {
        let end = (request.sector + request.sectors).0;
        let mut sector = request.sector.0;
        while sector < end {
            let in_place_to = self.in_place_to(sector, end);
            if in_place_to > sector {
                self.write_in_place(access, sector, in_place_to);
                sector = in_place_to;
                continue;
            }
            let to = self.piece_end(sector, end);
            self.append(access, sector, to - sector);
            sector = to;
        }
    }

    fn write_in_place(&mut self, access: &mut Access<'_, impl Device>, from: u64, to: u64) {
        self.forget(from, to);
        for band in from / self.band_sectors..to.div_ceil(self.band_sectors) {
            let start = band * self.band_sectors;
            let written = to.min(start + self.band_sectors) - start;
            let before = &mut self.written[band as usize];
            *before = (*before).max(written as u32);
        }
        access.serve(Operation::Write, self.log_sectors + from, to - from);
    }

    /// Where the next entry of the log goes if it holds `sectors`, and the room that it takes.
    fn next_entry(&self, sectors: u64) -> (u64, u64) {
        if self.head + sectors > self.log_sectors {
            (0, self.log_sectors - self.head + sectors)
        } else {
            (self.head, sectors)
        }
    }

    fn append(&mut self, access: &mut Access<'_, impl Device>, sector: u64, sectors: u64) {
        let (place, room) = self.next_entry(sectors);
        while self.taken + room > self.log_sectors {
            self.rewrite_band(access, self.oldest_live() / self.band_sectors);
        }
        access.serve(Operation::Write, place, sectors);
        let entry = self.oldest + self.entries.len() as u64;
        self.entries.push_back(Entry { sector, sectors, room, live: sectors });
        self.taken += room;
        self.forget(sector, sector + sectors);
        self.extents.insert(sector, Extent { sectors, place, entry });
        self.head = place + sectors;
        self.counts.cached_sectors += sectors;
    }

    /// The first sector of the oldest entry that is its newest version.
    fn oldest_live(&self) -> u64 {
        let oldest = *self.entries.front().expect("a log without room has entries");
        self.extents
            .range(oldest.sector..oldest.sector + oldest.sectors)
            .find(|(_, extent)| extent.entry == self.oldest)
            .map(|(start, _)| *start)
            .expect("the oldest entry is live")
    }

    fn rewrite_band(&mut self, access: &mut Access<'_, impl Device>, band: u64) {
        let start = band * self.band_sectors;
        let written = u64::from(self.written[band as usize]);
        access.serve(Operation::Read, self.log_sectors + start, written);
        self.counts.rewrite_read_sectors += written;
        // An extent that begins before the end of the written part may reach beyond it.
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

    /// `sectors` sectors of `entry` are no longer the newest; entries at the log's tail without a
    /// newest sector free their room.
    fn retire(&mut self, entry: u64, sectors: u64) {
        let entry = &mut self.entries[(entry - self.oldest) as usize];
        entry.live -= sectors;
        while let Some(entry) = self.entries.front().filter(|entry| entry.live == 0) {
            self.taken -= entry.room;
            self.entries.pop_front();
            self.oldest += 1;
        }
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
