//! The event loop: requests arrive, wait in the queue, are served, and are accounted.
//!
//! Disks do not disturb one another, so no global event queue is needed: each [`Disk`] is brought
//! up to the time of its next arrival, serving what it can before then. A completion at the very
//! instant of an arrival comes first.
//!
//! What bounds the loop: the device model itself (rotation and seek arithmetic), then the queue;
//! accounting is a few integer additions and two histogram increments a request. Nothing is
//! allocated per request in steady state.

use agewell_core::{BlockRequest, DailyWindow, SectorCount, SimDuration, SimTime};
use agewell_disk::queue::{Discipline, Queue, QueueEntry};
use agewell_disk::{Device, Refused, Service};

use super::load::OfferedLoad;
use super::remap::Remapper;
use crate::metrics::{Completed, Metrics, Physical};

/// Which requests count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Windows of the day left out.
    pub exclude_daily: Vec<DailyWindow>,
    /// The clock's zero, after midnight.
    pub midnight_offset_ns: u64,
    /// Requests enqueued before this are left out.
    pub from: SimTime,
}

impl Accounting {
    fn counts(&self, enqueue: SimTime) -> bool {
        let excluded = |window: &DailyWindow| window.contains(enqueue, self.midnight_offset_ns);
        enqueue >= self.from && !self.exclude_daily.iter().any(excluded)
    }
}

/// A request whose pieces have not all completed.
#[derive(Debug)]
struct Split {
    sequence: u64,
    pieces_left: u32,
    sectors: u64,
    service: SimDuration,
}

/// One disk with its remapping and its queue.
#[derive(Debug)]
pub struct Disk<D> {
    device: D,
    queue: Queue,
    remapper: Remapper,
    busy_until: SimTime,
    host_busy_until: SimTime,
    arrivals: u64,
    splits: Vec<Split>,
    refused: Option<Refused>,
    load: OfferedLoad,
}

impl<D: Device> Disk<D> {
    /// An idle disk.
    pub fn new(device: D, discipline: Discipline, remapper: Remapper) -> Self {
        Self {
            device,
            queue: Queue::new(discipline),
            remapper,
            busy_until: SimTime::ZERO,
            host_busy_until: SimTime::ZERO,
            arrivals: 0,
            splits: Vec::new(),
            refused: None,
            load: OfferedLoad::default(),
        }
    }

    /// The offered load.
    pub fn offered_load(&self) -> &OfferedLoad {
        &self.load
    }

    /// The first request that the device refused; nothing was served from then on.
    pub fn refused(&self) -> Option<&Refused> {
        self.refused.as_ref()
    }

    /// Addressable size of the device.
    pub fn capacity(&self) -> SectorCount {
        self.device.capacity()
    }

    /// The counters of remapping so far.
    pub fn remapper(&self) -> &Remapper {
        &self.remapper
    }

    /// Takes in `request`, having served all that the disk finished before its enqueue time.
    ///
    /// # Panics
    /// If arrivals run backwards in time or reach beyond the capacity: callers check both.
    pub fn arrive(&mut self, request: &BlockRequest, accounting: &Accounting, out: &mut Metrics) {
        let now = request.enqueue;
        while let Some(due) = self.remapper.due().filter(|due| *due <= now) {
            self.advance(due, accounting, out);
            self.remapper.rearrange();
        }
        self.advance(now, accounting, out);
        self.load.arrives(now, accounting.counts(now));
        self.remapper.observe(request);
        self.push_pieces(request, accounting, out);
        if self.busy_until <= now {
            self.serve_next(now, accounting, out);
        }
    }

    /// Discards the sectors of `request` on the device, after everything that arrived before it. It
    /// takes the device's time, and is in no metric.
    ///
    /// # Panics
    /// As [`Disk::arrive`].
    pub fn discard(&mut self, request: &BlockRequest, accounting: &Accounting, out: &mut Metrics) {
        self.advance(request.enqueue, accounting, out);
        // No discipline may move it past a write of the same sectors.
        self.drain(accounting, out);
        if self.refused.is_none() {
            self.refused = self.device.check(request).err();
        }
        if self.refused.is_none() {
            let start = self.busy_until.max(request.enqueue);
            self.busy_until = self.device.serve(start, request).finish;
        }
    }

    /// Serves everything that waits and returns when the last of it finished.
    ///
    /// # Panics
    /// If a piece of a split request is missing: a bug of this module.
    pub fn drain(&mut self, accounting: &Accounting, out: &mut Metrics) -> SimTime {
        while !self.queue.is_empty() {
            self.serve_next(self.busy_until, accounting, out);
        }
        assert!(self.splits.is_empty(), "a split request lost a piece");
        self.host_busy_until
    }

    fn push_pieces(&mut self, request: &BlockRequest, accounting: &Accounting, out: &mut Metrics) {
        // The lowest bit of a sequence number says whether the entry is a piece of a split request.
        let sequence = self.arrivals << 1;
        self.arrivals += 1;
        let mut pieces = 0_u32;
        let (queue, device) = (&mut self.queue, &self.device);
        let whole = request.sectors;
        self.remapper.map(request.sector, request.sectors, |sector, sectors| {
            pieces += 1;
            let is_piece = u64::from(sectors != whole);
            queue.push(QueueEntry {
                sequence: sequence | is_piece,
                cylinder: device.cylinder_of(sector),
                request: BlockRequest { sector, sectors, ..*request },
            });
        });
        if pieces > 1 {
            out.split_requests += u64::from(accounting.counts(request.enqueue));
            self.splits.push(Split {
                sequence: sequence | 1,
                pieces_left: pieces,
                sectors: whole.0,
                service: SimDuration::ZERO,
            });
        }
    }

    /// Serves what can start before `until`: waiting requests first, then moves in idle time.
    fn advance(&mut self, until: SimTime, accounting: &Accounting, out: &mut Metrics) {
        while !self.queue.is_empty() && self.busy_until <= until {
            self.serve_next(self.busy_until, accounting, out);
        }
        if self.queue.is_empty() {
            self.move_while_idle(until);
        }
    }

    fn move_while_idle(&mut self, until: SimTime) {
        while let Some(idle_wait) = self.remapper.waits_to_move() {
            let start = self.busy_until.max(self.host_busy_until + idle_wait);
            if start >= until {
                return;
            }
            let device = &mut self.device;
            self.busy_until =
                self.remapper.move_one(start, |now, request| device.serve(now, request).finish);
        }
    }

    fn serve_next(&mut self, start: SimTime, accounting: &Accounting, out: &mut Metrics) {
        let entry = self.queue.pop(start, &self.device).expect("the caller saw a waiting request");
        if self.refused.is_none() {
            self.refused = self.device.check(&entry.request).err();
        }
        if self.refused.is_some() {
            // The run ends with that error; what waits is only taken off the queue.
            self.splits.clear();
            return;
        }
        let service = self.device.serve(start, &entry.request);
        assert!(service.finish >= start, "a request finished before it started");
        self.busy_until = service.finish;
        self.host_busy_until = service.finish;
        let counts = accounting.counts(entry.request.enqueue);
        if counts {
            out.physical(&physical(&entry.request, &service));
            self.load.served(service.finish - start);
        }
        if let Some(done) = self.completed(&entry, service.finish - start)
            && counts
        {
            out.complete(&done);
        }
    }

    /// The host request that `entry` completes, if it was the last piece.
    fn completed(&mut self, entry: &QueueEntry, service: SimDuration) -> Option<Completed> {
        let request = &entry.request;
        let mut done = Completed {
            enqueue: request.enqueue,
            finish: self.busy_until,
            operation: request.operation,
            sectors: request.sectors.0,
            service,
        };
        if entry.sequence & 1 == 1 {
            let place = self
                .splits
                .iter()
                .position(|split| split.sequence == entry.sequence)
                .expect("a piece belongs to a split request");
            let split = &mut self.splits[place];
            split.service += service;
            split.pieces_left -= 1;
            if split.pieces_left > 0 {
                return None;
            }
            done.service = split.service;
            done.sectors = split.sectors;
            self.splits.swap_remove(place);
        }
        Some(done)
    }
}

fn physical(request: &BlockRequest, service: &Service) -> Physical {
    Physical {
        enqueue: request.enqueue,
        seek_cylinders: service.seek_cylinders,
        seek: service.seek,
        rotation: service.rotation,
        transfer: service.transfer,
        overhead: service.overhead,
        buffer_hit: service.buffer_hit,
    }
}
