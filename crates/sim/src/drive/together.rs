//! Transfers that a layout issues together to a drive that holds several commands.
//!
//! They are queued until the layout waits, or turns from reading to writing, and are then issued at
//! one instant; what the drive makes of that is its own business (`Device::serve_together`). Each
//! transfer's share of the drive's time is that by which it delayed the end: from the completion
//! before it to its own. The shares add up to the time for which the drive was busy, however much of
//! it overlapped; on a drive that does one thing after another they are what each took.
//!
//! Cost: one sort of the completions a call; nothing is allocated once the lists have grown.

use agewell_core::{BlockRequest, Operation, SimTime};
use agewell_disk::{Device, DeviceModel, Service};
use agewell_log::Transfer;

/// What is queued.
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
    /// Keeps `transfer`, which asks the drive for `request`.
    pub(super) fn push(&mut self, transfer: Transfer, request: BlockRequest) {
        self.transfers.push(transfer);
        self.requests.push(request);
    }

    /// What all queued requests do, if there are any.
    pub(super) fn operation(&self) -> Option<Operation> {
        self.requests.first().map(|request| request.operation)
    }

    /// Has `device` serve what is queued, issued at `issue_ns`.
    pub(super) fn serve(&mut self, device: &mut DeviceModel, issue_ns: u64) {
        self.services.clear();
        device.serve_together(SimTime(issue_ns), &self.requests, &mut self.services);
        self.order.clear();
        let finishes = self.services.iter().map(|service| service.finish.0);
        self.order.extend(finishes.zip(0..));
        self.order.sort_unstable();
    }

    /// What was queued, in the order of the layout.
    pub(super) fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// When each was done, ns, and which it was, the first to be done first.
    pub(super) fn completions(&self) -> impl Iterator<Item = (u64, &Transfer)> {
        self.order.iter().map(|(finish_ns, number)| (*finish_ns, &self.transfers[*number as usize]))
    }

    /// The requests in the order of the layout, and when each was done, ns.
    pub(super) fn requests(&self) -> impl Iterator<Item = (&BlockRequest, u64)> {
        let finishes = self.services.iter().map(|service| service.finish.0);
        self.requests.iter().zip(finishes)
    }

    /// Forgets what was queued and served.
    pub(super) fn clear(&mut self) {
        self.transfers.clear();
        self.requests.clear();
    }
}
