//! A recording replayed on a modelled device: each request waits for what it waited for when it was
//! recorded.
//!
//! A recording says when each request was made and when it was done, on a device whose speed is of no
//! interest. What is kept of it is an order: a request is made once all those are done that had been done
//! when it was made. So a host that waited for a flush waits for it here, and what it sent together is sent
//! together. Nobody thinks between requests: what comes out is the time of the disk, not that of the
//! programs.
//!
//! The drive's write cache stands in front of the model, because the models of the catalogue keep no more
//! than one run of sectors: a write is done when it is in the cache, what is written over in it goes to the
//! medium once, and runs that touch are one. The medium is written when a flush asks for it or the cache is
//! full; the drive takes what its heads reach first of the commands that it may hold. Reads go before
//! writes. Without a cache every write goes to the device as it is made.
//!
//! Differences from real drives: a cache that is not full waits for a flush, however idle the drive; a
//! command that the cache takes costs nothing until it is on the medium.
//!
//! Invariants: every request is done once; behind a flush nothing is in the cache that was made before it.

use std::collections::BTreeMap;
use std::path::Path;

use agewell_core::{
    BlockRequest, Operation, SECTOR_BYTES, Sector, SectorCount, SimDuration, SimTime,
};
use agewell_disk::{Device, DeviceModel, DeviceParameters, Service};
use agewell_trace::{BlockBatch, ReadOptions, TIME_MISSING, open_block_trace};

use crate::drive::load::require_writes_anywhere;
use crate::error::RunError;

/// Where the recorded device lies on the modelled one, and what stands in front of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayOptions {
    /// The sector of the modelled device at which the recorded one begins.
    pub first_sector: u64,
    /// Size of the recorded device, in sectors: what lies on it before the first request.
    pub sectors: u64,
    /// Size of the drive's cache of writes, bytes; 0: none.
    pub write_cache_bytes: u64,
}

/// What requests of one operation have cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Requests as recorded.
    pub requests: u64,
    /// Sectors of them.
    pub sectors: u64,
    /// Commands that the medium was asked for.
    pub commands: u64,
    /// Sectors of those.
    pub command_sectors: u64,
    /// Time for which the device worked on them.
    pub time: SimDuration,
}

/// What a replay has come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Reads.
    pub reads: Cost,
    /// Writes; the time of the last ones before a flush is in that of the flush.
    pub writes: Cost,
    /// Flushes.
    pub flushes: Cost,
    /// Discards, which a drive without use for them is not asked for.
    pub discards: Cost,
    /// Requests of the recording that never reached the recorded device; they are left out.
    pub never_made: u64,
}

impl Replayed {
    /// Time for which the device worked.
    #[must_use]
    pub fn time(&self) -> SimDuration {
        let all = [self.reads, self.writes, self.flushes, self.discards];
        SimDuration(all.iter().map(|cost| cost.time.0).sum())
    }
}

/// A recorded request.
#[derive(Debug, Clone, Copy)]
struct Recorded {
    operation: Operation,
    sector: u64,
    sectors: u64,
    /// How many requests had been done when it was made.
    waits_for: usize,
    /// Which it was among those done, from 0.
    done_as: usize,
}

/// The requests of a recording in the order in which they were made.
fn read(
    path: &Path,
    options: &ReplayOptions,
    never_made: &mut u64,
) -> Result<Vec<Recorded>, RunError> {
    let mut trace = open_block_trace(path, &ReadOptions::default())?;
    let mut batch = BlockBatch::default();
    let mut requests = Vec::new();
    let mut times: Vec<(u64, u64)> = Vec::new();
    while trace.next_batch(&mut batch)? {
        for index in 0..batch.len() {
            let row = batch.row(index);
            let number = times.len();
            let refused = |what: &str| {
                RunError::Input(format!("{}: request {number} {what}", path.display()))
            };
            let operation = Operation::from_code(row.operation)
                .ok_or_else(|| refused("has an operation that is not known"))?;
            if row.finish_ns == TIME_MISSING {
                // Recordings keep what was asked of the block layer and never reached the device.
                if row.start_ns == TIME_MISSING {
                    *never_made += 1;
                    continue;
                }
                return Err(refused("has no time at which it was done"));
            }
            let sectors = u64::from(row.sectors);
            if operation != Operation::Flush && row.sector + sectors > options.sectors {
                return Err(refused("lies beyond the end of the recorded device"));
            }
            times.push((row.enqueue_ns, row.finish_ns));
            let sector = if operation == Operation::Flush { 0 } else { row.sector };
            requests.push(Recorded { operation, sector, sectors, waits_for: 0, done_as: 0 });
        }
    }
    let mut by_finish: Vec<usize> = (0..times.len()).collect();
    by_finish.sort_by_key(|number| (times[*number].1, *number));
    for (done_as, number) in by_finish.iter().enumerate() {
        requests[*number].done_as = done_as;
    }
    let finishes: Vec<u64> = by_finish.iter().map(|number| times[*number].1).collect();
    for (request, (enqueue, _)) in requests.iter_mut().zip(&times) {
        request.waits_for = finishes.partition_point(|finish| finish < enqueue);
    }
    Ok(requests)
}

/// Writes in the drive's cache, by their first sector; they neither touch nor overlap.
#[derive(Debug, Default)]
struct Cache {
    runs: BTreeMap<u64, u64>,
    sectors: u64,
}

impl Cache {
    fn take(&mut self, sector: u64, sectors: u64) {
        let (mut first, mut end) = (sector, sector + sectors);
        while let Some((at, length)) = self.runs.range(..=end).next_back() {
            let (at, until) = (*at, at + length);
            if until < first {
                break;
            }
            self.runs.remove(&at);
            self.sectors -= until - at;
            first = first.min(at);
            end = end.max(until);
        }
        self.runs.insert(first, end - first);
        self.sectors += end - first;
    }

    fn empty(&mut self) -> Vec<(u64, u64)> {
        self.sectors = 0;
        std::mem::take(&mut self.runs).into_iter().collect()
    }
}

/// Which of the first done have all been done, while requests are done in another order.
#[derive(Debug)]
struct Done {
    is_done: Vec<bool>,
    all_before: usize,
}

impl Done {
    fn add(&mut self, done_as: usize) {
        self.is_done[done_as] = true;
        while self.is_done.get(self.all_before) == Some(&true) {
            self.all_before += 1;
        }
    }
}

struct Replay<'a> {
    device: &'a mut DeviceModel,
    options: ReplayOptions,
    now: SimTime,
    cache: Cache,
    is_dirty: bool,
    wants_discards: bool,
    replayed: Replayed,
    services: Vec<Service>,
}

impl Replay<'_> {
    fn request(&self, operation: Operation, sector: u64, sectors: u64) -> BlockRequest {
        BlockRequest {
            enqueue: self.now,
            sector: Sector(self.options.first_sector + sector),
            sectors: SectorCount(sectors),
            operation,
            synchronous: true,
        }
    }

    /// Has the device serve ranges, all issued now; how long they take together.
    fn serve(&mut self, operation: Operation, ranges: &[(u64, u64)]) -> Cost {
        let requests: Vec<BlockRequest> =
            ranges.iter().map(|range| self.request(operation, range.0, range.1)).collect();
        self.services.clear();
        self.device.serve_together(self.now, &requests, &mut self.services);
        let begin = self.now;
        let finishes = self.services.iter().map(|service| service.finish);
        self.now = finishes.fold(begin, SimTime::max);
        Cost {
            commands: ranges.len() as u64,
            command_sectors: ranges.iter().map(|range| range.1).sum(),
            time: SimDuration(self.now.0 - begin.0),
            ..Cost::default()
        }
    }

    fn write_out(&mut self) {
        let runs = self.cache.empty();
        if !runs.is_empty() {
            let cost = self.serve(Operation::Write, &runs);
            self.replayed.writes.add(&cost);
        }
    }

    fn flush(&mut self) {
        self.write_out();
        // A drive that nothing was written to since the last flush is left alone.
        if std::mem::take(&mut self.is_dirty) {
            let before = self.now;
            // It names no sectors; one is asked for only because requests must not be empty.
            let request = self.request(Operation::Flush, 0, 1);
            self.now = self.device.serve(before, &request).finish;
            let time = SimDuration(self.now.0 - before.0);
            self.replayed.flushes.add(&Cost { commands: 1, time, ..Cost::default() });
        }
    }
}

impl Cost {
    fn add(&mut self, other: &Cost) {
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.commands += other.commands;
        self.command_sectors += other.command_sectors;
        self.time = SimDuration(self.time.0 + other.time.0);
    }

    fn recorded(&mut self, sectors: u64) {
        self.requests += 1;
        self.sectors += sectors;
    }
}

/// Replays the recording at `path` on a device at rest that `parameters` describe, and flushes at its end.
///
/// # Errors
/// If the recording cannot be read, says of a request not when it was done, or is of a device that does not
/// fit on this one; if this one takes writes in order alone; if `go_on`, which is given the requests that are
/// done, says no.
///
/// # Panics
/// Never: what has been made can be done.
pub fn replay(
    path: &Path,
    parameters: &DeviceParameters,
    options: &ReplayOptions,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Replayed, RunError> {
    let mut device = DeviceModel::new(parameters);
    require_writes_anywhere(&device, "a recorded file system")?;
    let (end, capacity) = (options.first_sector.checked_add(options.sectors), device.capacity().0);
    if end.is_none_or(|end| end > capacity) {
        return Err(RunError::Input(format!(
            "a recorded device of {} sectors from sector {} on does not fit on one of {capacity}",
            options.sectors, options.first_sector
        )));
    }
    let mut never_made = 0;
    let requests = read(path, options, &mut never_made)?;
    device.prefill(Sector(options.first_sector), SectorCount(options.sectors));
    let wants_discards = device.layout_advice().wants_discards;
    let mut replay = Replay {
        device: &mut device,
        options: *options,
        now: SimTime::ZERO,
        cache: Cache::default(),
        is_dirty: false,
        wants_discards,
        replayed: Replayed { never_made, ..Replayed::default() },
        services: Vec::new(),
    };
    let mut done = Done { is_done: vec![false; requests.len()], all_before: 0 };
    // Requests wait for the first of those done: the order in which they are made is that of what they wait
    // for, so that what can be made now is a stretch of it.
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|number| (requests[*number].waits_for, *number));
    let mut made = 0;
    while made < order.len() {
        if !go_on(made as u64) {
            return Err(RunError::Interrupted);
        }
        let ready = order[made..]
            .iter()
            .take_while(|number| requests[**number].waits_for <= done.all_before)
            .count();
        // What has been made can always be done: the first to be done waits for nobody.
        assert!(ready > 0, "a request waits for one that is made after it");
        let wave: Vec<Recorded> =
            order[made..made + ready].iter().map(|number| requests[*number]).collect();
        replay.wave(&wave);
        for request in &wave {
            done.add(request.done_as);
        }
        made += ready;
    }
    replay.flush();
    Ok(replay.replayed)
}

impl Replay<'_> {
    /// Requests that nothing keeps from being made together: reads first, then what is written, then
    /// flushes.
    fn wave(&mut self, wave: &[Recorded]) {
        let of = |operation: Operation| {
            wave.iter()
                .filter(move |request| request.operation == operation)
                .map(|request| (request.sector, request.sectors))
        };
        let reads: Vec<(u64, u64)> = of(Operation::Read).collect();
        for read in &reads {
            self.replayed.reads.recorded(read.1);
        }
        if !reads.is_empty() {
            let cost = self.serve(Operation::Read, &reads);
            self.replayed.reads.add(&cost);
        }
        let discards: Vec<(u64, u64)> = of(Operation::Discard).collect();
        for discard in &discards {
            self.replayed.discards.recorded(discard.1);
        }
        if self.wants_discards && !discards.is_empty() {
            let cost = self.serve(Operation::Discard, &discards);
            self.replayed.discards.add(&cost);
        }
        let writes: Vec<(u64, u64)> = of(Operation::Write).collect();
        for write in &writes {
            self.replayed.writes.recorded(write.1);
        }
        self.is_dirty |= !writes.is_empty();
        if self.options.write_cache_bytes == 0 && !writes.is_empty() {
            let cost = self.serve(Operation::Write, &writes);
            self.replayed.writes.add(&cost);
        } else {
            for (sector, sectors) in writes {
                self.cache.take(sector, sectors);
                if self.cache.sectors * SECTOR_BYTES > self.options.write_cache_bytes {
                    self.write_out();
                }
            }
        }
        let flushes = of(Operation::Flush).count();
        self.replayed.flushes.requests += flushes as u64;
        if flushes > 0 {
            self.flush();
        }
    }
}
