//! A host that runs a file system over one device: its driver's queue, its buffer cache, its time.
//!
//! A file system says what it reads and writes, and how urgently; the host says when. A synchronous
//! request holds the caller up until the device has done it. An asynchronous one waits in the
//! driver's queue while the caller goes on. A delayed write stays in the buffer cache until
//! [`FileHost::flush`], so that a bitmap that changes a hundred times is written once
//! (Seltzer et al. 1995, §1.1). Reads of a sequence of clusters are pipelined: the next cluster is
//! asked for while the one before is on its way, as the read-ahead of 4.4BSD does.
//!
//! One thread runs on the host, and the device serves one request at a time, so that nothing needs
//! an event queue: before the host does anything at a time, the device is brought up to it.
//!
//! Invariants: the host's time and the device's never run backwards; every request is served
//! exactly once; disk seconds are the sum over the requests.

mod accounts;
mod buffers;
mod device;
mod setup;

use agewell_core::{
    BlockRequest, Operation, SECTOR_BYTES, Sector, SectorCount, SimDuration, SimTime,
};
use agewell_disk::queue::{Discipline, Queue, QueueEntry};
use agewell_disk::{Device, DeviceModel};

pub use accounts::{Accounts, Spent};
use buffers::Buffers;
pub use setup::HostSetup;

/// Costs and sizes of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostParameters {
    /// How the driver orders waiting requests.
    pub discipline: Discipline,
    /// Sectors of asynchronous writes that may wait before their writer is held up.
    pub queue_sectors_max: u64,
    /// Sectors of the largest request; what is larger is split.
    pub transfer_sectors_max: u64,
    /// Sectors of a buffer of the cache: a block of the file system.
    pub buffer_sectors: u64,
    /// Buffers of the cache: none, or more than one request touches.
    pub buffers: usize,
    /// Processor time of one request, before it is issued.
    pub request_cpu: SimDuration,
    /// From the end of one request to the issue of the next that waits: interrupt and driver.
    pub turnaround: SimDuration,
    /// Bytes a second that the processor copies between a program and the cache; 0: for nothing.
    pub copy_bytes_per_s: u64,
    /// Whether a cluster is asked for while the one before it is read.
    pub read_ahead: bool,
    /// From one run of the update daemon to the next, which syncs everything; 0: it does not run.
    pub update_interval: SimDuration,
}

/// A request that was started and may still wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

/// A host, its device and its time.
#[derive(Debug, Clone)]
pub struct FileHost {
    parameters: HostParameters,
    device: DeviceModel,
    queue: Queue,
    buffers: Buffers,
    accounts: Accounts,
    now_ns: u64,
    /// When the device has finished what it was given.
    device_free_ns: u64,
    /// Numbers given out to requests.
    started: u64,
    /// Synchronous requests that were not waited for yet, and when each was done: one or two.
    awaited: Vec<(u64, Option<u64>)>,
    /// Sectors of asynchronous writes that wait.
    queued_sectors: u64,
    /// A cluster that was asked for and not waited for yet, and its bytes.
    ahead: Option<(Ticket, u64)>,
    /// When the update daemon ran last.
    updated_ns: u64,
}

impl FileHost {
    /// A host at time zero with an empty cache over `device` at rest.
    #[must_use]
    pub fn new(parameters: HostParameters, device: DeviceModel) -> Self {
        let keys = device.capacity().0.div_ceil(parameters.buffer_sectors) as usize;
        Self {
            queue: Queue::new(parameters.discipline),
            buffers: Buffers::new(parameters.buffers, keys, parameters.buffer_sectors),
            accounts: Accounts::default(),
            parameters,
            device,
            now_ns: 0,
            device_free_ns: 0,
            started: 0,
            awaited: Vec::with_capacity(2),
            queued_sectors: 0,
            ahead: None,
            updated_ns: 0,
        }
    }

    /// The host's time.
    pub fn now(&self) -> SimTime {
        SimTime(self.now_ns)
    }

    /// Work of the device so far, by direction.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// The processor is busy for `time`.
    pub fn compute(&mut self, time: SimDuration) {
        self.now_ns += time.0;
    }

    /// Copies `bytes` between a program and the cache.
    pub fn copy(&mut self, bytes: u64) {
        let time_ns = (u128::from(bytes) * 1_000_000_000)
            .checked_div(u128::from(self.parameters.copy_bytes_per_s));
        self.now_ns += time_ns.unwrap_or(0) as u64;
    }

    /// Writes `sectors` from `sector` and waits until they are on the medium.
    pub fn write_synchronously(&mut self, sector: u64, sectors: u64) {
        let dirty_out = self.buffers.written(sector, sectors);
        self.write_out(dirty_out);
        for (sector, sectors) in self.pieces(sector, sectors) {
            let ticket = self.start(Operation::Write, sector, sectors, true);
            self.wait(ticket);
        }
    }

    /// Gives the driver a write and goes on, unless too much waits already.
    pub fn write_asynchronously(&mut self, sector: u64, sectors: u64) {
        let dirty_out = self.buffers.written(sector, sectors);
        self.write_out(dirty_out);
        self.start_write(sector, sectors);
    }

    /// Leaves a write in the cache until the next flush.
    pub fn write_delayed(&mut self, sector: u64, sectors: u64) {
        let dirty_out = self.buffers.dirtied(sector, sectors);
        self.write_out(dirty_out);
    }

    /// Reads what is not in the cache, and waits for it.
    pub fn read(&mut self, sector: u64, sectors: u64) {
        self.finish_reading();
        if self.buffers.holds(sector, sectors) {
            return;
        }
        let dirty_out = self.buffers.filled(sector, sectors);
        self.write_out(dirty_out);
        for (sector, sectors) in self.pieces(sector, sectors) {
            let ticket = self.start(Operation::Read, sector, sectors, true);
            self.wait(ticket);
        }
    }

    /// Reads the next cluster of a sequence, and copies the one before to the program meanwhile; this
    /// one is on its way until the next call or [`FileHost::finish_reading`].
    pub fn read_next(&mut self, sector: u64, sectors: u64) {
        for (sector, sectors) in self.pieces(sector, sectors) {
            self.read_next_piece(sector, sectors);
        }
    }

    fn read_next_piece(&mut self, sector: u64, sectors: u64) {
        let bytes = sectors * SECTOR_BYTES;
        if self.buffers.holds(sector, sectors) {
            self.finish_reading();
            self.copy(bytes);
            return;
        }
        if !self.parameters.read_ahead {
            self.finish_reading();
        }
        let dirty_out = self.buffers.filled(sector, sectors);
        self.write_out(dirty_out);
        let ticket = self.start(Operation::Read, sector, sectors, true);
        self.finish_reading();
        self.ahead = Some((ticket, bytes));
    }

    /// Waits for the cluster that is on its way, if there is one, and copies it to the program.
    pub fn finish_reading(&mut self) {
        if let Some((ticket, bytes)) = self.ahead.take() {
            self.wait(ticket);
            self.copy(bytes);
        }
    }

    /// Writes every delayed write, and waits until nothing is left to do.
    pub fn flush(&mut self) {
        self.start_flush();
        self.drain();
    }

    /// Gives the driver every delayed write, as the update daemon does, and goes on.
    pub fn start_flush(&mut self) {
        for (sector, sectors) in self.buffers.take_dirty() {
            self.start_write(sector, sectors);
        }
    }

    /// Whether the update daemon is due, which counts as run then: the caller has the file system
    /// write what it holds back, and calls [`FileHost::start_flush`].
    pub fn update_due(&mut self) -> bool {
        let interval = self.parameters.update_interval.0;
        let due = interval > 0 && self.now_ns - self.updated_ns >= interval;
        if due {
            self.updated_ns = self.now_ns;
        }
        due
    }

    /// Waits until the device has done all its requests.
    pub fn drain(&mut self) {
        self.finish_reading();
        while self.serve_one() {}
        self.now_ns = self.now_ns.max(self.device_free_ns);
    }

    /// Forgets what the cache holds, as unmounting does, after writing what is delayed.
    pub fn drop_cache(&mut self) {
        self.flush();
        self.buffers.clear();
    }

    fn write_out(&mut self, dirty: Vec<(u64, u64)>) {
        for (sector, sectors) in dirty {
            self.start_write(sector, sectors);
        }
    }

    fn start_write(&mut self, sector: u64, sectors: u64) {
        for (sector, sectors) in self.pieces(sector, sectors) {
            self.start_one_write(sector, sectors);
        }
    }

    /// A transfer, split into requests that the device takes.
    fn pieces(&self, sector: u64, sectors: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (end, most) = (sector + sectors, self.parameters.transfer_sectors_max.max(1));
        (sector..end).step_by(most as usize).map(move |first| (first, most.min(end - first)))
    }

    fn start_one_write(&mut self, sector: u64, sectors: u64) {
        self.start(Operation::Write, sector, sectors, false);
        self.queued_sectors += sectors;
        while self.queued_sectors > self.parameters.queue_sectors_max {
            // The writer goes on when the device takes one of them, not when it is done with it.
            self.now_ns = self.now_ns.max(self.device_free_ns);
            let served = self.serve_one();
            assert!(served, "what is queued waits in the queue");
        }
    }

    fn start(
        &mut self,
        operation: Operation,
        sector: u64,
        sectors: u64,
        synchronous: bool,
    ) -> Ticket {
        self.now_ns += self.parameters.request_cpu.0;
        self.advance();
        let sequence = self.started;
        self.started += 1;
        let request = BlockRequest {
            enqueue: SimTime(self.now_ns),
            sector: Sector(sector),
            sectors: SectorCount(sectors),
            operation,
            synchronous,
        };
        if synchronous {
            self.awaited.push((sequence, None));
        }
        if self.queue.is_empty() {
            self.device_free_ns = if self.device_free_ns > self.now_ns {
                self.device_free_ns + self.parameters.turnaround.0
            } else {
                self.now_ns
            };
        }
        let cylinder = self.device.cylinder_of(Sector(sector));
        self.queue.push(QueueEntry { sequence, cylinder, request });
        Ticket(sequence)
    }

    /// Lets the device work up to the host's time.
    fn advance(&mut self) {
        while self.device_free_ns <= self.now_ns && self.serve_one() {}
    }

    /// Has the device serve one of the waiting requests; returns whether there was one.
    fn serve_one(&mut self) -> bool {
        let Some(entry) = self.queue.pop(SimTime(self.device_free_ns), &self.device) else {
            return false;
        };
        let issue = SimTime(self.device_free_ns);
        let finish = self.device.serve(issue, &entry.request).finish;
        self.accounts.add(&entry.request, finish.saturating_since(issue));
        if !entry.request.synchronous {
            self.queued_sectors -= entry.request.sectors.0;
        }
        let awaited = self.awaited.iter_mut().find(|(sequence, _)| *sequence == entry.sequence);
        if let Some((_, finished)) = awaited {
            *finished = Some(finish.0);
        }
        self.device_free_ns = finish.0;
        if !self.queue.is_empty() {
            self.device_free_ns += self.parameters.turnaround.0;
        }
        true
    }

    fn wait(&mut self, ticket: Ticket) {
        let at = self.awaited.iter().position(|(sequence, _)| *sequence == ticket.0);
        let at = at.expect("a synchronous request is waited for once");
        while self.awaited[at].1.is_none() {
            let served = self.serve_one();
            assert!(served, "a request that was started is in the queue or done");
        }
        let (_, finished) = self.awaited.remove(at);
        self.now_ns = self.now_ns.max(finished.expect("the loop ended"));
    }
}

#[cfg(test)]
mod tests;
