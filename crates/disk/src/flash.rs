//! A flash drive: dies behind channels, and a translation layer that writes out of place.
//!
//! Each die senses or programs one page at a time; channels carry pages between dies and controller;
//! one link carries data to and from the host. A request is cut into pages, and all of them start
//! at once: pages on different dies overlap, pages on one die wait for each other. Fragmentation
//! therefore costs time in the two ways that have been published, and each can be turned off:
//!
//! * *request splitting* (Park & Eom 2021, FragPicker, SOSP): a file in `n` pieces is read by `n`
//!   requests, and each costs the host and the command `request_overhead` one after another. With
//!   `request_overhead_ms = 0` and `command_ms = 0` it costs nothing;
//! * *die collisions* (Jun et al. 2024, FAST): pages written one after another go to one die after
//!   another; a file whose writes were interleaved with others has its pages on random dies, and
//!   several on the same one. With `placement = "collision-free"` what is read together is always
//!   found on different dies; with `"static"` neighbouring addresses are, however they were
//!   written; with one die every order is the same.
//!
//! Time line of a read: overheads; every page is sensed as soon as its die is free; pages cross their
//! channel in the order in which they were sensed, and the link a unit behind. Units of a page that is still
//! in the write buffer, and discarded ones, cross the link only. Of a write: data cross the link into
//! the write buffer, if there is room; a full page crosses the channel and is programmed when its
//! die is free; the request is reported with its last unit in the buffer, or, in a drive without
//! one, when all of it is programmed. Collection keeps a die busy: pages read and programmed inside
//! the die, and an erase.
//!
//! Sources: the two papers; the parts and their overlap as in NVMeVirt (Kim et al. 2023, FAST).
//! Differences: no read-ahead and no cache of read data inside the drive, no SLC cache, no
//! suspension of programs for reads, page times that do not depend on the page. Addresses that were
//! never written are timed as though they had been written in address order before, but take no
//! space.
//!
//! Invariants: see `flash/translation.rs`; nothing ends before it begins, no die, channel or link does
//! two things at once.
//!
//! Cost: see `flash/reads.rs` and `flash/translation.rs`; nothing is allocated in steady state.

mod reads;
mod translation;

#[cfg(test)]
mod tests;

use agewell_core::{
    BlockRequest, Operation, SECTOR_BYTES, Sector, SectorCount, SimDuration, SimTime,
};

use crate::parameters::FlashParameters;
use crate::{Device, LayoutAdvice, Moment, Service};

use reads::Reads;
use translation::{Place, Translation};

/// Counters of a flash drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlashCounts {
    /// Mapping units that the host wrote.
    pub host_units: u64,
    /// Mapping units that collection moved.
    pub moved_units: u64,
    /// Pages programmed, collection included.
    pub pages_programmed: u64,
    /// Pages sensed for reads of the host.
    pub pages_sensed: u64,
    /// Erase blocks collected.
    pub blocks_erased: u64,
}

impl FlashCounts {
    /// Units written to flash over units written by the host; `None` before the first.
    ///
    /// Units with which pages are filled up that had to be programmed early are not counted.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        (self.host_units > 0)
            .then(|| (self.host_units + self.moved_units) as f64 / self.host_units as f64)
    }
}

/// A flash drive and its state.
#[derive(Debug, Clone)]
pub struct Flash {
    parameters: FlashParameters,
    sectors_per_unit: u64,
    space: Translation,
    die_free_ns: Vec<u64>,
    channel_free_ns: Vec<u64>,
    link_free_ns: u64,
    buffer: WriteBuffer,
    /// Time over a channel by number of units, from 0 to a page, ns.
    channel_ns: Vec<u64>,
    link_unit_ps: u64,
    finished_ns: u64,
    counts: FlashCounts,
    reads: Reads,
    /// The die that senses next where reads do not collide.
    next_sense: u32,
}

/// Page numbers from here on are those of addresses that were never written.
const BY_ADDRESS: u64 = 1 << 40;

/// Pages that were reported, or accepted, before they were programmed: a ring of places.
#[derive(Debug, Clone)]
struct WriteBuffer {
    page: Vec<u64>,
    done_ns: Vec<u64>,
    next: usize,
    /// When the last of all programs ends.
    last_done_ns: u64,
}

impl WriteBuffer {
    fn new(pages: u64) -> Self {
        let pages = pages as usize;
        Self { page: vec![u64::MAX; pages], done_ns: vec![0; pages], next: 0, last_done_ns: 0 }
    }

    /// When the next page finds room.
    fn room_at_ns(&self) -> u64 {
        self.done_ns[self.next]
    }

    fn add(&mut self, page: u64, done_ns: u64) {
        self.page[self.next] = page;
        self.done_ns[self.next] = done_ns;
        self.last_done_ns = self.last_done_ns.max(done_ns);
        self.next += 1;
        if self.next == self.page.len() {
            self.next = 0;
        }
    }

    fn holds(&self, page: u64, now_ns: u64) -> bool {
        let mut entries = self.page.iter().zip(&self.done_ns);
        entries.any(|(held, done_ns)| *held == page && *done_ns > now_ns)
    }
}

impl Flash {
    /// A drive at rest that holds nothing.
    #[must_use]
    pub fn new(parameters: &FlashParameters) -> Self {
        let dies = parameters.dies() as usize;
        let per_page = parameters.units_per_page();
        let over = |bytes: u64, bytes_per_s: u64| {
            let rate = u128::from(bytes_per_s);
            // To the nearest nanosecond.
            let ns = (u128::from(bytes) * 1_000_000_000 + rate / 2) / rate;
            u64::try_from(ns).unwrap_or(u64::MAX >> 8)
        };
        let channel_ns = (0..=per_page)
            .map(|units| over(units * parameters.mapping_bytes, parameters.channel_bytes_per_s))
            .collect();
        let link_ps = u128::from(parameters.mapping_bytes) * 1_000_000_000_000
            / u128::from(parameters.link_bytes_per_s);
        // A drive that reports no write early still has a page a die on its way.
        let buffer_pages = match parameters.write_buffer_bytes / parameters.page_bytes {
            0 => u64::from(parameters.dies()),
            pages => pages,
        };
        Self {
            parameters: *parameters,
            sectors_per_unit: parameters.mapping_bytes / SECTOR_BYTES,
            space: Translation::new(parameters),
            die_free_ns: vec![0; dies],
            channel_free_ns: vec![0; parameters.channels as usize],
            link_free_ns: 0,
            buffer: WriteBuffer::new(buffer_pages),
            channel_ns,
            link_unit_ps: u64::try_from(link_ps).unwrap_or(u64::MAX >> 24),
            finished_ns: 0,
            counts: FlashCounts::default(),
            reads: Reads::new(dies),
            next_sense: 0,
        }
    }

    /// The counters since the drive was new.
    #[must_use]
    pub fn counts(&self) -> FlashCounts {
        self.counts
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> &FlashParameters {
        &self.parameters
    }

    /// Mapping units that hold data.
    #[must_use]
    pub fn live_units(&self) -> u64 {
        self.space.live_units()
    }

    fn channel_of(&self, die: u32) -> u32 {
        die % self.parameters.channels
    }

    fn link_ns(&self, units: u64) -> u64 {
        units * self.link_unit_ps / 1000
    }

    /// The units that `request` touches: the first, and the one behind the last.
    fn units(&self, request: &BlockRequest) -> (u32, u32) {
        let end = (request.sector + request.sectors).0;
        assert!(request.sectors.0 > 0, "an empty request");
        assert!(end <= self.parameters.capacity_sectors, "request beyond the end of the device");
        let first = request.sector.0 / self.sectors_per_unit;
        (first as u32, end.div_ceil(self.sectors_per_unit) as u32)
    }

    /// Where the newest version of `unit` can be read at `now_ns`: its die and page, or `None` for
    /// the controller's memory.
    fn find(&self, unit: u32, now_ns: u64) -> Option<(u32, u64)> {
        match self.space.place(unit) {
            Place::NeverWritten => {
                let page = u64::from(unit / self.space.units_per_page());
                Some((self.space.die_by_address(unit), BY_ADDRESS + page))
            }
            Place::Discarded => None,
            Place::Page { die, page } => {
                let open = self.space.open_page(die) == (page, true);
                let buffered =
                    self.die_free_ns[die as usize] > now_ns && self.buffer.holds(page, now_ns);
                (!open && !buffered).then_some((die, page))
            }
        }
    }

    /// Senses `unit` for a write that covers it in part; when it is in the buffer.
    fn sense_for_write(&mut self, unit: u32, start_ns: u64) -> u64 {
        match self.find(unit, start_ns) {
            Some((die, page)) => self.sense(die, page, start_ns),
            None => start_ns,
        }
    }

    /// Takes the data of a write from `start_ns` on; when it is reported.
    fn write(&mut self, request: &BlockRequest, start_ns: u64) -> u64 {
        let units = self.units(request);
        let mut start_ns = start_ns;
        let end = (request.sector + request.sectors).0;
        let (head, tail) = (units.0, units.1 - 1);
        let whole_head = request.sector.0.is_multiple_of(self.sectors_per_unit);
        let whole_tail =
            end.is_multiple_of(self.sectors_per_unit) || end == self.parameters.capacity_sectors;
        if !whole_head || (head == tail && !whole_tail) {
            start_ns = self.sense_for_write(head, start_ns);
        }
        if head != tail && !whole_tail {
            start_ns = self.sense_for_write(tail, start_ns);
        }
        let mut from_ns = start_ns.max(self.link_free_ns);
        let mut taken = 0;
        let mut arrived_ns = from_ns;
        let mut programmed_ns = start_ns;
        for unit in units.0..units.1 {
            taken += 1;
            arrived_ns = from_ns + self.link_ns(taken);
            let die = self.space.replace(unit);
            while self.space.must_collect(die) {
                self.collect(die, arrived_ns);
            }
            self.counts.host_units += 1;
            if let Some(page) = self.space.append(die, unit) {
                let room_ns = self.buffer.room_at_ns();
                if room_ns > arrived_ns {
                    // The link stands still until a page of the buffer is programmed.
                    arrived_ns = room_ns;
                    from_ns = room_ns;
                    taken = 0;
                }
                programmed_ns = programmed_ns.max(self.program(die, page, arrived_ns));
            }
        }
        self.link_free_ns = arrived_ns;
        if self.parameters.write_buffer_bytes > 0 {
            return arrived_ns;
        }
        programmed_ns.max(self.complete_pages(arrived_ns)).max(arrived_ns)
    }

    /// Sends `page` to `die` and programs it; when that is done.
    fn program(&mut self, die: u32, page: u64, now_ns: u64) -> u64 {
        let channel = self.channel_of(die) as usize;
        let page_ns = self.channel_ns[self.space.units_per_page() as usize];
        let there_ns = self.channel_free_ns[channel].max(now_ns) + page_ns;
        self.channel_free_ns[channel] = there_ns;
        let done_ns = self.die_free_ns[die as usize].max(there_ns) + self.parameters.program_ns;
        self.die_free_ns[die as usize] = done_ns;
        self.buffer.add(page, done_ns);
        self.counts.pages_programmed += 1;
        done_ns
    }

    /// Programs every page that has been begun; when the last of them is done.
    fn complete_pages(&mut self, now_ns: u64) -> u64 {
        let mut done_ns = now_ns;
        for die in 0..self.parameters.dies() {
            if let Some(page) = self.space.complete_page(die) {
                let from_ns = now_ns.max(self.buffer.room_at_ns());
                done_ns = done_ns.max(self.program(die, page, from_ns));
            }
        }
        done_ns
    }

    fn collect(&mut self, die: u32, now_ns: u64) {
        let collected = self.space.collect(die);
        let free_ns = self.die_free_ns[die as usize].max(now_ns);
        let parameters = &self.parameters;
        self.die_free_ns[die as usize] = free_ns
            + u64::from(collected.pages_read) * parameters.read.mean_ns()
            + u64::from(collected.pages_programmed) * parameters.program_ns
            + parameters.erase_ns;
        self.counts.moved_units += u64::from(collected.units_moved);
        self.counts.pages_programmed += u64::from(collected.pages_programmed);
        self.counts.blocks_erased += 1;
    }

    fn discard(&mut self, request: &BlockRequest) {
        self.units(request);
        let end = (request.sector + request.sectors).0;
        // Units that are covered whole; the capacity's end may cut the last one.
        let first = request.sector.0.div_ceil(self.sectors_per_unit);
        let last = if end == self.parameters.capacity_sectors {
            end.div_ceil(self.sectors_per_unit)
        } else {
            end / self.sectors_per_unit
        };
        for unit in first..last {
            self.space.discard(unit as u32);
        }
    }

    /// Serves what is not a read, its command having reached the drive at `arrived_ns`.
    fn change(&mut self, request: &BlockRequest, start_ns: u64) -> u64 {
        match request.operation {
            Operation::Write => self.write(request, start_ns),
            Operation::Discard => {
                self.discard(request);
                start_ns
            }
            Operation::Flush => self.complete_pages(start_ns).max(self.buffer.last_done_ns),
            Operation::Read => unreachable!("reads are sensed and carried"),
        }
    }

    fn serve_batch(&mut self, issue: SimTime, requests: &[BlockRequest], out: &mut Vec<Service>) {
        assert!(issue.0 >= self.finished_ns, "a request issued before the one before it finished");
        let mut now_ns = issue.0;
        let reads = |request: &BlockRequest| request.operation == Operation::Read;
        for group in requests.chunk_by(|one, next| reads(one) == reads(next)) {
            if !reads(&group[0]) {
                now_ns = self.change_batch(group, issue.0, now_ns, out);
                continue;
            }
            let from = out.len();
            out.resize(from + group.len(), Service::default());
            let began_ns = now_ns;
            now_ns = self.read_together(group, began_ns, &mut out[from..]);
            for service in &mut out[from..] {
                service.overhead += SimDuration(began_ns - issue.0);
            }
        }
        self.finished_ns = now_ns;
    }

    /// Serves requests that are not reads: each is sent when the host has handled the one before,
    /// and is reported in order.
    fn change_batch(
        &mut self,
        requests: &[BlockRequest],
        issue_ns: u64,
        began_ns: u64,
        out: &mut Vec<Service>,
    ) -> u64 {
        let (mut sent_ns, mut latest_ns) = (began_ns, began_ns);
        for request in requests {
            sent_ns += self.parameters.request_overhead_ns;
            let start_ns = sent_ns + self.parameters.write_command_ns;
            let finish_ns = self.change(request, start_ns);
            latest_ns = latest_ns.max(finish_ns);
            out.push(Service {
                finish: SimTime(finish_ns),
                overhead: SimDuration(start_ns - issue_ns),
                transfer: SimDuration(finish_ns - start_ns),
                buffer_hit: request.operation == Operation::Write
                    && self.parameters.write_buffer_bytes > 0,
                ..Service::default()
            });
        }
        latest_ns
    }
}

impl Device for Flash {
    fn capacity(&self) -> SectorCount {
        SectorCount(self.parameters.capacity_sectors)
    }

    fn cylinders(&self) -> u32 {
        1
    }

    fn cylinder_of(&self, sector: Sector) -> u32 {
        let capacity = self.parameters.capacity_sectors;
        assert!(sector.0 < capacity, "sector {} is beyond the end", sector.0);
        0
    }

    fn current_cylinder(&self) -> u32 {
        0
    }

    fn serve(&mut self, issue: SimTime, request: &BlockRequest) -> Service {
        assert!(issue.0 >= self.finished_ns, "a request issued before the one before it finished");
        let request = std::slice::from_ref(request);
        if request[0].operation == Operation::Read {
            let mut service = [Service::default()];
            self.finished_ns = self.read_together(request, issue.0, &mut service);
            return service[0];
        }
        let start_ns =
            issue.0 + self.parameters.request_overhead_ns + self.parameters.write_command_ns;
        let finish_ns = self.change(&request[0], start_ns);
        self.finished_ns = finish_ns;
        Service {
            finish: SimTime(finish_ns),
            overhead: SimDuration(start_ns - issue.0),
            transfer: SimDuration(finish_ns - start_ns),
            buffer_hit: request[0].operation == Operation::Write
                && self.parameters.write_buffer_bytes > 0,
            ..Service::default()
        }
    }

    fn queue_depth(&self) -> u32 {
        self.parameters.queue_depth
    }

    fn serve_together(
        &mut self,
        issue: SimTime,
        requests: &[BlockRequest],
        services: &mut Vec<Service>,
    ) {
        self.serve_batch(issue, requests, services);
    }

    fn prefill(&mut self, first: Sector, sectors: SectorCount) {
        let end = (first + sectors).0;
        assert!(end <= self.parameters.capacity_sectors, "data beyond the end of the device");
        let units = first.0 / self.sectors_per_unit..end.div_ceil(self.sectors_per_unit);
        for unit in units {
            let die = self.space.replace(unit as u32);
            while self.space.must_collect(die) {
                self.space.collect(die);
            }
            self.space.append(die, unit as u32);
        }
    }

    fn layout_advice(&self) -> LayoutAdvice {
        let parameters = &self.parameters;
        let stripe = parameters.units_per_block() * u64::from(parameters.dies());
        LayoutAdvice {
            unit: Some(SectorCount(stripe * self.sectors_per_unit)),
            write_sectors: SectorCount(self.sectors_per_unit),
            wants_discards: true,
            ..LayoutAdvice::default()
        }
    }

    fn positioning(&self, moment: &Moment, request: &BlockRequest) -> SimDuration {
        let parameters = &self.parameters;
        let command_ns = match request.operation {
            Operation::Read => parameters.command_ns,
            Operation::Write => parameters.write_command_ns,
            Operation::Discard | Operation::Flush => return SimDuration::ZERO,
        };
        let overhead_ns = parameters.request_overhead_ns + command_ns;
        let start_ns = moment.issue.0 + overhead_ns;
        let found = (request.operation == Operation::Read)
            .then(|| self.find(self.units(request).0, start_ns))
            .flatten();
        SimDuration(match found {
            // Writes that the buffer accepts, and units that it holds.
            None => overhead_ns,
            Some((die, page)) => {
                let free_ns = self.die_free_ns[self.sensing_die(die) as usize];
                overhead_ns + free_ns.saturating_sub(start_ns) + self.read_ns(page)
            }
        })
    }

    fn positioning_at_least(&self, _moment: &Moment, _cylinders: u32) -> SimDuration {
        let parameters = &self.parameters;
        let command_ns = parameters.command_ns.min(parameters.write_command_ns);
        SimDuration(parameters.request_overhead_ns + command_ns)
    }
}
