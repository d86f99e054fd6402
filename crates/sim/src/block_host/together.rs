//! Transfers that a layout issues together to a drive that holds several commands.
//!
//! They are gathered until the layout waits, or turns from reading to writing, and are then issued at
//! one instant; what the drive makes of that is its own business (`Device::serve_together`). Each
//! transfer's share of the drive's time is that by which it put off the end: from the completion
//! before it to its own. The shares add up to the time for which the drive was busy, however much of
//! it overlapped; on a drive that does one thing after another they are what each took.
//!
//! Cost: one sort of the completions a call; nothing is allocated once the lists have grown.

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimTime};
use agewell_disk::{Device, Service};
use agewell_log::Comes;
use agewell_log::{Purpose, Transfer};
use agewell_trace::record::{BlockRow, flag};

use super::disk::{TimedDisk, Timing, operation_of};

/// What has been gathered.
#[derive(Clone)]
pub(super) struct Together {
    /// Commands that the drive holds.
    queue_depth: u32,
    brackets: u32,
    transfers: Vec<Transfer>,
    requests: Vec<BlockRequest>,
    services: Vec<Service>,
    /// Completions and the transfers they belong to.
    order: Vec<(u64, u32)>,
}

impl Together {
    pub(super) fn new(queue_depth: u32) -> Self {
        Self {
            queue_depth,
            brackets: 0,
            transfers: Vec::new(),
            requests: Vec::new(),
            services: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Commands that the drive holds.
    pub(super) fn queue_depth(&self) -> u32 {
        self.queue_depth
    }

    /// Whether it makes a difference that a transfer is issued together with others.
    #[inline]
    pub(super) fn is_gathering(&self) -> bool {
        self.brackets > 0 && self.queue_depth > 1
    }

    pub(super) fn begin(&mut self) {
        self.brackets += 1;
    }

    /// Closes a bracket; whether it was the outermost.
    pub(super) fn end(&mut self) -> bool {
        self.brackets = self.brackets.checked_sub(1).expect("brackets are closed once");
        self.brackets == 0
    }
}

impl TimedDisk {
    /// Keeps `transfer` for later; false, with nothing kept, if it has to be carried out by itself.
    pub(super) fn gather(&mut self, transfer: &Transfer) -> bool {
        let is_apart = self.goes_apart(transfer);
        let operation = operation_of(transfer.purpose);
        let gathered = self.together.requests.first().map(|request| request.operation);
        if is_apart || gathered.is_some_and(|gathered| gathered != operation) {
            self.settle();
        }
        if is_apart {
            return false;
        }
        let (sector, sectors) = self.sectors_of(transfer);
        let issue = SimTime(self.now_ns());
        self.together.transfers.push(*transfer);
        self.together.requests.push(BlockRequest {
            enqueue: issue,
            sector: Sector(sector),
            sectors: SectorCount(sectors),
            operation,
            synchronous: true,
        });
        true
    }

    /// Whether transfers have been gathered that are yet to be carried out.
    pub(super) fn has_gathered(&self) -> bool {
        !self.together.requests.is_empty()
    }

    /// Carries out what has been gathered.
    pub(super) fn settle(&mut self) {
        if !self.together.requests.is_empty() {
            self.settle_gathered();
        }
    }

    fn settle_gathered(&mut self) {
        let mut together = std::mem::replace(&mut self.together, Together::new(0));
        self.turn_to_first();
        let (issue_ns, comes) = (self.now_ns(), self.next_comes());
        together.services.clear();
        let Timing::Mechanical(device) = &mut self.timing else {
            unreachable!("a disk without mechanics holds one command")
        };
        device.serve_together(SimTime(issue_ns), &together.requests, &mut together.services);
        together.order.clear();
        let finishes = together.services.iter().map(|service| service.finish.0);
        together.order.extend(finishes.zip(0..));
        together.order.sort_unstable();
        let (mut done_ns, mut read_blocks, mut answered_ns) = (issue_ns, 0, None);
        for (done, (finish_ns, number)) in together.order.iter().enumerate() {
            let transfer = &together.transfers[*number as usize];
            self.meter.add(transfer, finish_ns - done_ns);
            if let Some(times) = &mut self.times {
                // In the order of the layout, whose first transfer stands for the first that is done.
                let comes = if done == 0 { comes } else { Comes::Together };
                times.note(&together.transfers[done], finish_ns - done_ns, comes);
            }
            done_ns = *finish_ns;
            if transfer.purpose == Purpose::Read {
                read_blocks += u64::from(transfer.blocks);
                answered_ns = Some(*finish_ns);
            }
        }
        for (request, service) in together.requests.iter().zip(&together.services) {
            self.record_transfer(0, issue_ns, service.finish.0, request);
        }
        self.pass(done_ns - issue_ns);
        self.turn_back();
        if together.requests[0].operation == Operation::Write {
            self.flushes.note(0, self.is_behind());
        }
        if let Some(answered_ns) = answered_ns {
            // The host looks at what users asked for while the drive goes on with the rest.
            self.answer(answered_ns + self.read_overhead_ns * read_blocks);
        }
        together.transfers.clear();
        together.requests.clear();
        self.together = together;
    }

    /// Takes down a request that disk `number` began at `issue_ns`, if requests are.
    pub(super) fn record_transfer(
        &mut self,
        number: u32,
        issue_ns: u64,
        finish_ns: u64,
        request: &BlockRequest,
    ) {
        let asked_ns = if number == 0 { self.asked_ns() } else { issue_ns };
        if let Some(recorded) = &mut self.recorded {
            recorded.push(BlockRow {
                enqueue_ns: asked_ns,
                start_ns: issue_ns,
                finish_ns,
                device: number,
                sector: request.sector.0,
                sectors: request.sectors.0 as u32,
                operation: request.operation as u8,
                flags: flag::SYNCHRONOUS,
                ..BlockRow::default()
            });
        }
    }
}
