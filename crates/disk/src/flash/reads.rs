//! Reads of a flash drive, several at a time: from dies over channels and the link to the host.
//!
//! A small event simulation: a page is sensed when its die is free, crosses its channel when it has
//! been sensed, and the link a unit behind. The host sends one request after another, each taking
//! `request_overhead`; the drive takes the next one when fewer than `queue_depth` are in it. Events
//! at one instant happen in the order in which they were queued, so that runs are deterministic.
//!
//! Invariants: dies take requests in the order in which they were sent; a request is done when its
//! last page has arrived; the parts of its time add up to the whole.
//!
//! Cost: three events a page in a binary heap; nothing is allocated once it has grown.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use agewell_core::{BlockRequest, SimDuration, SimTime};

use super::Flash;
use crate::Service;
use crate::parameters::Placement;

/// The next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An access has been sensed, or its unit found in memory without a channel to cross.
    Sensed(u32),
    /// A channel has carried the first unit of an access.
    OnChannel(u32),
    /// A request is done.
    Done(u32),
}

/// One page, or a unit in memory, on its way to the host.
#[derive(Debug, Clone, Copy)]
struct Access {
    /// The request it belongs to.
    request: u32,
    page: u64,
    /// Its channel; none for data in memory.
    channel: Option<u32>,
    units: u32,
    /// When its channel has carried all of it; 0 for data in memory.
    carried_ns: u64,
    /// Waiting for the die, ns.
    wait_ns: u64,
}

/// Reads under way, kept between calls for its memory alone.
#[derive(Debug, Clone)]
pub(super) struct Reads {
    /// By time, then by number.
    events: BinaryHeap<Reverse<(u64, u32, Event)>>,
    foreseen: u32,
    accesses: Vec<Access>,
    /// For each die, its newest access.
    newest: Vec<u32>,
    /// Accesses that have not arrived, by request.
    missing: Vec<u32>,
}

const NO_ACCESS: u32 = u32::MAX;

impl Reads {
    pub(super) fn new(dies: usize) -> Self {
        Self {
            events: BinaryHeap::new(),
            foreseen: 0,
            accesses: Vec::new(),
            newest: vec![NO_ACCESS; dies],
            missing: Vec::new(),
        }
    }

    fn foresee(&mut self, time_ns: u64, event: Event) {
        self.events.push(Reverse((time_ns, self.foreseen, event)));
        self.foreseen += 1;
    }

    fn clear(&mut self) {
        assert!(self.events.is_empty(), "a read was left under way");
        self.foreseen = 0;
        self.accesses.clear();
        self.newest.fill(NO_ACCESS);
        self.missing.clear();
    }
}

impl Flash {
    /// Serves `requests`, all reads that the host begins to send at `issue_ns`; when the last is done.
    /// Overheads in `out` count from `issue_ns` too.
    pub(super) fn read_together(
        &mut self,
        requests: &[BlockRequest],
        issue_ns: u64,
        out: &mut [Service],
    ) -> u64 {
        let mut reads = std::mem::replace(&mut self.reads, Reads::new(0));
        reads.missing.resize(requests.len(), 0);
        let mut sent_ns = issue_ns;
        let depth = (self.parameters.queue_depth as usize).min(requests.len());
        for number in 0..depth {
            sent_ns = self.send(&mut reads, requests, number, (issue_ns, sent_ns), out);
        }
        let mut next = depth;
        let mut latest_ns = issue_ns;
        while let Some(Reverse((now_ns, _, event))) = reads.events.pop() {
            match event {
                Event::Sensed(access) => self.carry(&mut reads, access, now_ns),
                Event::OnChannel(access) => self.deliver(&mut reads, access, now_ns, out),
                Event::Done(_) => {
                    latest_ns = now_ns;
                    if next < requests.len() {
                        let host_ns = sent_ns.max(now_ns);
                        sent_ns = self.send(&mut reads, requests, next, (issue_ns, host_ns), out);
                        next += 1;
                    }
                }
            }
        }
        for service in out {
            let spent = service.overhead + service.seek + service.rotation;
            let total = service.finish - SimTime(issue_ns);
            service.transfer = SimDuration(total.0 - spent.0);
        }
        reads.clear();
        self.reads = reads;
        latest_ns
    }

    /// The host sends request `number` when it is free at `host_ns`; when it is free again.
    fn send(
        &mut self,
        reads: &mut Reads,
        requests: &[BlockRequest],
        number: usize,
        (issue_ns, host_ns): (u64, u64),
        out: &mut [Service],
    ) -> u64 {
        let sent_ns = host_ns + self.parameters.request_overhead_ns;
        let start_ns = sent_ns + self.parameters.command_ns;
        out[number] = Service {
            finish: SimTime(start_ns),
            overhead: SimDuration(start_ns - issue_ns),
            buffer_hit: true,
            ..Service::default()
        };
        let units = self.units(&requests[number]);
        for unit in units.0..units.1 {
            self.begin(reads, number as u32, unit, start_ns);
        }
        sent_ns
    }

    /// Begins the way of `unit` to the host.
    fn begin(&mut self, reads: &mut Reads, request: u32, unit: u32, start_ns: u64) {
        let number = reads.accesses.len() as u32;
        let mut access =
            Access { request, page: u64::MAX, channel: None, units: 1, carried_ns: 0, wait_ns: 0 };
        let Some((die, page)) = self.find(unit, start_ns) else {
            reads.accesses.push(access);
            reads.missing[request as usize] += 1;
            reads.foresee(start_ns, Event::OnChannel(number));
            return;
        };
        // What the die has sensed for this request need not be sensed again.
        let newest = reads.newest[die as usize];
        if let Some(sensed) = reads.accesses.get_mut(newest as usize)
            && (sensed.page, sensed.request) == (page, request)
            && sensed.units < self.space.units_per_page()
        {
            sensed.units += 1;
            return;
        }
        reads.newest[die as usize] = number;
        let die = self.sensing_die(die);
        self.next_sense = self.sensed_next();
        let ready_ns = self.sense(die, page, start_ns);
        access.page = page;
        access.channel = Some(self.channel_of(die));
        access.wait_ns = ready_ns - self.read_ns(page) - start_ns;
        reads.accesses.push(access);
        reads.missing[request as usize] += 1;
        reads.foresee(ready_ns, Event::Sensed(number));
    }

    /// Time to sense `page`, ns.
    #[inline]
    pub(super) fn read_ns(&self, page: u64) -> u64 {
        self.parameters.read.of(page % u64::from(self.parameters.pages_per_block))
    }

    /// Has `die` sense `page` as soon as it can from `start_ns` on; when it has.
    pub(super) fn sense(&mut self, die: u32, page: u64, start_ns: u64) -> u64 {
        let read_ns = self.read_ns(page);
        let free_ns = &mut self.die_free_ns[die as usize];
        *free_ns = start_ns.max(*free_ns) + read_ns;
        self.counts.pages_sensed += 1;
        *free_ns
    }

    /// The die that senses a page of `die`, if it is the next to be sensed.
    pub(super) fn sensing_die(&self, die: u32) -> u32 {
        if self.parameters.placement == Placement::CollisionFree { self.sensed_next() } else { die }
    }

    /// The die behind the one that sensed last, where reads do not collide.
    fn sensed_next(&self) -> u32 {
        let next = self.next_sense + 1;
        if next == self.parameters.dies() { 0 } else { next }
    }

    fn carry(&mut self, reads: &mut Reads, number: u32, now_ns: u64) {
        let access = &mut reads.accesses[number as usize];
        let channel = access.channel.expect("only pages are sensed");
        let free_ns = &mut self.channel_free_ns[channel as usize];
        let begin_ns = now_ns.max(*free_ns);
        *free_ns = begin_ns + self.channel_ns[access.units as usize];
        access.carried_ns = *free_ns;
        // The link may follow one unit behind.
        reads.foresee(begin_ns + self.channel_ns[1], Event::OnChannel(number));
    }

    fn deliver(&mut self, reads: &mut Reads, number: u32, now_ns: u64, out: &mut [Service]) {
        let access = reads.accesses[number as usize];
        let begin_ns = now_ns.max(self.link_free_ns);
        self.link_free_ns = begin_ns + self.link_ns(u64::from(access.units));
        // A slow channel holds up its own page, not the link.
        let arrived_ns = self.link_free_ns.max(access.carried_ns + self.link_ns(1));
        let service = &mut out[access.request as usize];
        service.buffer_hit &= access.channel.is_none();
        // What arrives last is what the request waited for.
        if SimTime(arrived_ns) >= service.finish {
            service.finish = SimTime(arrived_ns);
            service.rotation = SimDuration(access.wait_ns);
            let sensing_ns = if access.channel.is_some() { self.read_ns(access.page) } else { 0 };
            service.seek = SimDuration(sensing_ns);
        }
        let missing = &mut reads.missing[access.request as usize];
        *missing -= 1;
        if *missing == 0 {
            reads.foresee(service.finish.0, Event::Done(access.request));
        }
    }
}
