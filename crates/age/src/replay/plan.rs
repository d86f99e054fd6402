//! From a workload to the operations that are asked of a target: copies, syncs, and utilization.
//!
//! The plan depends on the workload, the options and the capacity at the start, and on nothing that
//! happens on the target. Hence the same seed gives the same operations on any number of threads,
//! and a replay that is resumed finds its way back by planning again from the start.
//!
//! **The rule that holds a utilization.** Counted are whole blocks of all files; where there are
//! fragments, the end of a file of at most 12 blocks takes fragments, as on the Fast File System.
//! Before a write that would exceed the limit, files of the workload are removed, chosen by
//! [`Hold`], until it fits. What the workload does to a removed file later is left out, until it
//! makes the file again or cuts it to nothing, which makes it again. A workload that is too small
//! for the limit does not reach it; copies of it may.

use std::collections::VecDeque;

use agewell_core::{DAY_NS, RandomStreams, Stream, mix, uniform_below};

use super::copies::Copies;
use super::{Hold, LiveLimit, ReplayOptions, StopReason, SyncEvery, Until};
use crate::{Action, AgeError, Operation};

/// Operations of one batch; chosen by us: progress, stopping and checkpoints come between batches.
pub(super) const BATCH_OPERATIONS: usize = 4096;

/// Bytes written by one batch beyond which it ends; chosen by us, a fraction of a second of a slow
/// disk.
const BATCH_BYTES: u64 = 16 << 20;

/// Blocks of a file that its inode leads to by itself; only files of no more have fragments
/// (4.4BSD).
const DIRECT_BLOCKS: u64 = 12;

/// What is known of a file of the workload.
#[derive(Debug, Clone, Copy, Default)]
struct File {
    size_bytes: u64,
    directory: u32,
    stream: u16,
    standing: Standing,
    /// Counts how often the number was used, so that what was queued for an earlier file is known.
    generation: u32,
    /// Where in the list of those that can be removed.
    place: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Standing {
    #[default]
    Absent,
    Live,
    /// Removed to hold the utilization.
    Removed,
}

/// How much is planned so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Planned {
    /// Operations asked of the target.
    pub operations: u64,
    /// Operations of the workload, its copies included, that were left out because their file was
    /// removed to hold the utilization.
    pub left_out: u64,
    /// Files removed to hold the utilization.
    pub removed: u64,
    /// Bytes that writes ask for.
    pub written_bytes: u64,
    /// Time of the workload, nanoseconds.
    pub time_ns: u64,
    /// Files that live by the workload.
    pub live_files: u64,
    /// Their bytes in whole blocks and, where the target has them, fragments.
    pub live_bytes: u64,
    /// A digest of their numbers, sizes and directories.
    pub live_digest: u64,
}

/// Makes the operations for a target.
pub(super) struct Planner<S> {
    source: Copies<S>,
    block_bytes: u64,
    fragment_bytes: u64,
    /// Live bytes that are not exceeded.
    limit_bytes: Option<u64>,
    hold: Hold,
    sync_every: Option<SyncEvery>,
    until: Vec<Until>,
    daily: bool,
    files: Vec<File>,
    /// Live files, for a choice at random.
    live: Vec<u32>,
    /// Live files and their generations in the order of their creation.
    queue: VecDeque<(u32, u32)>,
    random: Stream,
    waiting: Option<Operation>,
    since_sync: SinceSync,
    pub(super) planned: Planned,
    batch_bytes: u64,
    /// The day that the operations have come to.
    day: u64,
    /// The batch was the last of its day.
    day_over: bool,
    stop: Option<StopReason>,
}

#[derive(Debug, Clone, Copy, Default)]
struct SinceSync {
    operations: u64,
    bytes: u64,
    /// Day and night syncs are counted from the start.
    time_ns: u64,
}

impl<S: Iterator<Item = Result<Operation, AgeError>>> Planner<S> {
    pub(super) fn new(
        source: S,
        options: &ReplayOptions,
        (block_bytes, fragment_bytes): (u64, u64),
        live_limit: Option<LiveLimit>,
    ) -> Self {
        Self {
            source: Copies::new(source, options.copies, options.streams),
            block_bytes: live_limit.map_or(block_bytes, |limit| limit.block_bytes).max(1),
            fragment_bytes: live_limit.map_or(fragment_bytes, |limit| limit.fragment_bytes).max(1),
            limit_bytes: live_limit.map(|limit| limit.bytes),
            hold: options.hold,
            sync_every: options.sync_every,
            until: options.until.clone(),
            daily: options.daily,
            files: Vec::new(),
            live: Vec::new(),
            queue: VecDeque::new(),
            random: RandomStreams::new(options.seed).stream("hold-utilization"),
            waiting: None,
            since_sync: SinceSync::default(),
            planned: Planned::default(),
            batch_bytes: 0,
            day: 0,
            day_over: false,
            stop: None,
        }
    }

    /// Puts the next operations into `batch`, which is cleared first; why it was the last, if it
    /// was. A batch ends behind a sync, and before a new day if days are counted.
    pub(super) fn fill(
        &mut self,
        batch: &mut Vec<Operation>,
    ) -> Result<Option<StopReason>, AgeError> {
        batch.clear();
        self.batch_bytes = 0;
        self.day_over = false;
        while batch.len() < BATCH_OPERATIONS && self.batch_bytes < BATCH_BYTES {
            if self.stop.is_some() {
                return Ok(self.stop);
            }
            let next = match self.waiting.take() {
                Some(operation) => Some(operation),
                None => self.source.next().transpose()?,
            };
            let Some(operation) = next else {
                self.stop = Some(StopReason::WorkloadEnd);
                continue;
            };
            if self.ends_before(&operation) {
                continue;
            }
            if self.daily && self.begins_day(&operation) {
                self.waiting = Some(operation);
                return Ok(None);
            }
            self.planned.time_ns = operation.time_ns;
            self.admit(&operation, batch)?;
            if batch.last().is_some_and(|last| last.action == Action::Sync) {
                return Ok(None);
            }
        }
        Ok(self.stop)
    }

    /// Whether the last batch was the last of its day.
    pub(super) fn is_day_over(&self) -> bool {
        self.day_over
    }

    /// Whether `operation` is the first of another day than those before it.
    fn begins_day(&mut self, operation: &Operation) -> bool {
        let day = operation.time_ns / DAY_NS;
        let before = std::mem::replace(&mut self.day, day);
        self.day_over = day != before && self.planned.operations > 0;
        self.day_over
    }

    /// Whether one of the ends that are asked for comes before `operation`; then it is the stop.
    fn ends_before(&mut self, operation: &Operation) -> bool {
        for until in &self.until {
            let reached = match *until {
                Until::Days(days) => operation.time_ns >= days.saturating_mul(DAY_NS),
                Until::WrittenBytes(bytes) => self.planned.written_bytes >= bytes,
                Until::Operations(operations) => self.planned.operations >= operations,
                Until::Score(_) | Until::Utilization(_) => false,
            };
            if reached {
                self.stop = Some(StopReason::Reached(*until));
                return true;
            }
        }
        false
    }

    fn admit(&mut self, operation: &Operation, batch: &mut Vec<Operation>) -> Result<(), AgeError> {
        match operation.action {
            Action::MakeDirectory | Action::RemoveDirectory => self.push(*operation, batch),
            Action::Sync => {
                self.since_sync = SinceSync { time_ns: operation.time_ns, ..SinceSync::default() };
                self.push(*operation, batch);
                return Ok(());
            }
            Action::Create => self.create(operation, batch)?,
            Action::Write => self.write(operation, batch)?,
            Action::Truncate => self.truncate(operation, batch)?,
            Action::Delete => self.delete(operation, batch)?,
            Action::Rename => {
                let file = self.file(operation)?;
                self.change(operation.file, File { directory: operation.directory, ..file });
                self.pass_on(operation, file.standing, batch);
            }
            Action::SyncFile | Action::Read => {
                let file = self.file(operation)?;
                self.pass_on(operation, file.standing, batch);
            }
        }
        self.sync_if_due(operation, batch);
        Ok(())
    }

    fn push(&mut self, operation: Operation, batch: &mut Vec<Operation>) {
        self.planned.operations += 1;
        self.since_sync.operations += 1;
        if operation.action == Action::Write {
            // Copies of a workload that is checked may still exceed all numbers together.
            for sum in
                [&mut self.planned.written_bytes, &mut self.since_sync.bytes, &mut self.batch_bytes]
            {
                *sum = sum.saturating_add(operation.size_bytes);
            }
        }
        batch.push(operation);
    }

    fn pass_on(&mut self, operation: &Operation, standing: Standing, batch: &mut Vec<Operation>) {
        if standing == Standing::Live {
            self.push(*operation, batch);
        } else {
            self.planned.left_out += 1;
        }
    }

    fn sync_if_due(&mut self, operation: &Operation, batch: &mut Vec<Operation>) {
        let due = match self.sync_every {
            None => false,
            Some(SyncEvery::Operations(operations)) => self.since_sync.operations >= operations,
            Some(SyncEvery::Bytes(bytes)) => self.since_sync.bytes >= bytes,
            Some(SyncEvery::TimeNs(time_ns)) => {
                operation.time_ns.saturating_sub(self.since_sync.time_ns) >= time_ns
            }
        };
        if due {
            let sync = Operation {
                file: 0,
                directory: 0,
                offset_bytes: 0,
                size_bytes: 0,
                stream: 0,
                action: Action::Sync,
                ..*operation
            };
            self.push(sync, batch);
            self.since_sync = SinceSync { time_ns: operation.time_ns, ..SinceSync::default() };
        }
    }

    /// What is known of the operation's file, which exists by the workload.
    fn file(&self, operation: &Operation) -> Result<File, AgeError> {
        let file = self.files.get(operation.file as usize).copied().unwrap_or_default();
        if file.standing == Standing::Absent {
            return Err(out_of_order(operation, "which is not there then"));
        }
        Ok(file)
    }

    fn create(
        &mut self,
        operation: &Operation,
        batch: &mut Vec<Operation>,
    ) -> Result<(), AgeError> {
        let index = operation.file as usize;
        if index >= self.files.len() {
            self.files.resize(index + 1, File::default());
        }
        let before = self.files[index];
        if before.standing != Standing::Absent {
            return Err(out_of_order(operation, "which is there already"));
        }
        self.make_live(operation, operation.directory);
        self.push(*operation, batch);
        Ok(())
    }

    fn make_live(&mut self, operation: &Operation, directory: u32) {
        let before = self.files[operation.file as usize];
        let made = File {
            size_bytes: 0,
            directory,
            stream: operation.stream,
            standing: Standing::Live,
            generation: before.generation.wrapping_add(1),
            place: self.live.len() as u32,
        };
        self.change(operation.file, made);
        if self.limit_bytes.is_some() {
            self.live.push(operation.file);
            self.queue.push_back((operation.file, made.generation));
        }
    }

    fn write(&mut self, operation: &Operation, batch: &mut Vec<Operation>) -> Result<(), AgeError> {
        let file = self.file(operation)?;
        if file.standing == Standing::Removed {
            self.planned.left_out += 1;
            return Ok(());
        }
        let Some(end_bytes) = operation.offset_bytes.checked_add(operation.size_bytes) else {
            return Err(out_of_order(operation, "whose end is beyond all numbers"));
        };
        let size_bytes = file.size_bytes.max(end_bytes);
        let grows_bytes =
            self.in_blocks(size_bytes).saturating_sub(self.in_blocks(file.size_bytes));
        self.make_room(operation, grows_bytes, batch);
        let file = self.files[operation.file as usize];
        self.change(operation.file, File { size_bytes, ..file });
        self.push(*operation, batch);
        Ok(())
    }

    fn truncate(
        &mut self,
        operation: &Operation,
        batch: &mut Vec<Operation>,
    ) -> Result<(), AgeError> {
        let file = self.file(operation)?;
        if file.standing == Standing::Removed {
            if operation.offset_bytes > 0 {
                self.planned.left_out += 1;
                return Ok(());
            }
            let directory = file.directory;
            self.make_live(operation, directory);
            self.push(Operation { action: Action::Create, directory, ..*operation }, batch);
            return Ok(());
        }
        // A file that is made longer without writing has a hole, which takes no room; counted all
        // the same, because what is written into it later is not looked at block by block.
        self.change(operation.file, File { size_bytes: operation.offset_bytes, ..file });
        self.push(*operation, batch);
        Ok(())
    }

    fn delete(
        &mut self,
        operation: &Operation,
        batch: &mut Vec<Operation>,
    ) -> Result<(), AgeError> {
        let file = self.file(operation)?;
        if file.standing == Standing::Live {
            self.drop_from_live(&file);
        }
        self.change(operation.file, File { standing: Standing::Absent, ..file });
        self.pass_on(operation, file.standing, batch);
        Ok(())
    }

    fn in_blocks(&self, size_bytes: u64) -> u64 {
        let is_small = size_bytes <= self.block_bytes.saturating_mul(DIRECT_BLOCKS);
        let unit_bytes = if is_small { self.fragment_bytes } else { self.block_bytes };
        size_bytes.div_ceil(unit_bytes).saturating_mul(unit_bytes)
    }

    /// Sets what is known of a file and what is summed up over all.
    fn change(&mut self, number: u32, now: File) {
        let before = std::mem::replace(&mut self.files[number as usize], now);
        for (file, made) in [(before, false), (now, true)] {
            if file.standing != Standing::Live {
                continue;
            }
            let bytes = self.in_blocks(file.size_bytes);
            let planned = &mut self.planned;
            planned.live_digest ^= digest(number, &file);
            if made {
                planned.live_files += 1;
                planned.live_bytes = planned.live_bytes.saturating_add(bytes);
            } else {
                planned.live_files -= 1;
                planned.live_bytes = planned.live_bytes.saturating_sub(bytes);
            }
        }
    }

    fn drop_from_live(&mut self, file: &File) {
        if self.limit_bytes.is_none() {
            return;
        }
        self.live.swap_remove(file.place as usize);
        if let Some(&moved) = self.live.get(file.place as usize) {
            self.files[moved as usize].place = file.place;
        }
    }

    /// Removes files until `grows_bytes` more fit.
    fn make_room(&mut self, operation: &Operation, grows_bytes: u64, batch: &mut Vec<Operation>) {
        let Some(limit_bytes) = self.limit_bytes else { return };
        while self.planned.live_bytes.saturating_add(grows_bytes) > limit_bytes {
            let Some(victim) = self.choose(operation.file) else { return };
            let file = self.files[victim as usize];
            self.drop_from_live(&file);
            self.change(victim, File { standing: Standing::Removed, ..file });
            self.planned.removed += 1;
            let removal = Operation {
                file: victim,
                directory: file.directory,
                offset_bytes: 0,
                size_bytes: 0,
                stream: file.stream,
                action: Action::Delete,
                ..*operation
            };
            self.push(removal, batch);
        }
    }

    /// The file to remove, another than `kept`, if there is one.
    fn choose(&mut self, kept: u32) -> Option<u32> {
        match self.hold {
            Hold::Random => {
                if self.live.len() < 2 {
                    return None;
                }
                let at = uniform_below(&mut self.random, self.live.len() as u64) as usize;
                let chosen = self.live[at];
                if chosen != kept {
                    return Some(chosen);
                }
                self.live.get(at + 1).or(self.live.first()).copied()
            }
            Hold::Oldest => {
                let mut set_aside = None;
                let chosen = loop {
                    let Some((number, generation)) = self.queue.pop_front() else { break None };
                    let file = &self.files[number as usize];
                    if file.generation != generation || file.standing != Standing::Live {
                        continue;
                    }
                    if number != kept {
                        break Some(number);
                    }
                    set_aside = Some((number, generation));
                };
                if let Some(kept) = set_aside {
                    self.queue.push_front(kept);
                }
                chosen
            }
        }
    }
}

fn digest(number: u32, file: &File) -> u64 {
    let place = (u64::from(number) << 32) | u64::from(file.directory);
    mix(mix(place) ^ file.size_bytes)
}

fn out_of_order(operation: &Operation, what: &str) -> AgeError {
    AgeError::Input(format!(
        "the workload has a '{}' of file {} at {} ns, {what}; check it with agewell workload info",
        operation.action.name(),
        operation.file,
        operation.time_ns
    ))
}
