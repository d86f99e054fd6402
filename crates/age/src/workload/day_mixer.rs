//! One day of an aging workload out of what snapshots show and of short-lived files, mixed as
//! Smith & Seltzer (1996, §3.1) did.
//!
//! A file that is new in the evening was made at its change time; one that is another was removed
//! and written again; one that is gone was removed at a random time within the day's activity. The
//! short-lived files of a day go, directory by directory, to the directories that changed most
//! between the snapshots, and in each they are shifted in time so that their peak hour is that of
//! the directory's changes.
//!
//! Where the paper is silent, chosen by us: the busiest directory of the trace goes to the busiest
//! of the snapshots, the second to the second, and from the start again when there are more; a day
//! without changes uses the directories of the last day that had some; what would reach over
//! midnight ends at midnight. When a limit is given, a short-lived file that does not fit under it
//! lets the ones that would be removed next be removed at once (counted), so that a workload never
//! needs more room than the file system it imitates has.
//!
//! Cost: a day's events are sorted, and short-lived files wait for their removal in a heap:
//! O(log n) each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use agewell_core::{DAY_NS, Stream, uniform_below};

use super::short_lived::{ShortFile, ShortLivedDay};
use super::smith_1996::allocated_bytes;
use super::{OperationSink, OperationWriter};
use crate::AgeError;

const HOUR_NS: u64 = 3_600_000_000_000;
const HOURS: usize = 24;
const ABSENT: u32 = u32::MAX;

/// What a day does to a file that snapshots know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayChange {
    /// It is there in the evening and was not the evening before; made at this time, ns from
    /// midnight, with this length.
    Create {
        /// Nanoseconds from midnight.
        at_ns: u64,
        /// Its length, bytes.
        bytes: u64,
    },
    /// It is another than the evening before: removed and written again.
    Replace {
        /// Nanoseconds from midnight.
        at_ns: u64,
        /// Its length, bytes.
        bytes: u64,
    },
    /// It is as it was, in another directory.
    Move {
        /// Nanoseconds from midnight.
        at_ns: u64,
    },
    /// It is gone.
    Delete,
}

impl DayChange {
    /// When, ns from midnight, if it is known.
    fn at_ns(self) -> Option<u64> {
        match self {
            Self::Create { at_ns, .. } | Self::Replace { at_ns, .. } | Self::Move { at_ns } => {
                Some(at_ns)
            }
            Self::Delete => None,
        }
    }
}

/// A change of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayEvent {
    /// The file, by a number of the source's own.
    pub key: u32,
    /// The directory (by the workload's number) that it is in.
    pub directory: u32,
    /// What happens to it.
    pub change: DayChange,
}

/// What a file takes on the file system that is imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// As [`super::smith_1996::allocated_bytes`].
    Ffs,
    /// Whole pieces of this length, bytes.
    Pieces(u64),
}

impl Allocation {
    fn of(self, bytes: u64) -> u64 {
        match self {
            Self::Ffs => allocated_bytes(bytes),
            Self::Pieces(piece) => bytes.next_multiple_of(piece),
        }
    }
}

/// Mixes days; keeps which file is which.
pub struct DayMixer {
    /// The workload's number of each file of the source, or [`ABSENT`].
    numbers: Vec<u32>,
    /// Allocation of each file of the workload, by its number.
    allocated: Vec<u64>,
    allocation: Allocation,
    allocated_bytes: u64,
    limit_bytes: u64,
    /// Directories by their changes on the last day that had some, the busiest first, with their
    /// peak hour.
    busiest: Vec<(u32, usize)>,
    /// Short-lived files alive: time of removal, order, number.
    alive: BinaryHeap<Reverse<(u64, u64, u32)>>,
    order: u64,
    /// Short-lived files removed early to stay under the limit.
    pub removed_early: u64,
    /// Short-lived files made so far.
    pub short_files: u64,
}

/// Something that a day does at a time.
#[derive(Debug, Clone, Copy)]
struct Step {
    at_ns: u64,
    directory: u32,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Create { key: u32, bytes: u64 },
    Replace { key: u32, bytes: u64 },
    Move { key: u32 },
    Delete { key: u32 },
    Short { life_ns: u64, bytes: u64 },
}

impl DayMixer {
    /// A mixer that lets no short-lived file raise the allocation above `limit_bytes`.
    #[must_use]
    pub fn new(allocation: Allocation, limit_bytes: u64) -> Self {
        Self {
            numbers: Vec::new(),
            allocated: Vec::new(),
            allocation,
            allocated_bytes: 0,
            limit_bytes,
            busiest: Vec::new(),
            alive: BinaryHeap::new(),
            order: 0,
            removed_early: 0,
            short_files: 0,
        }
    }

    /// Bytes allocated now.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        self.allocated_bytes
    }

    /// Plays day `day`: the changes of long-lived files, and the short-lived ones.
    ///
    /// # Errors
    /// As the sink.
    ///
    /// # Panics
    /// If an event is of a file that is not there, or makes one that is: the source's bug.
    pub fn play<S: OperationSink>(
        &mut self,
        day: u64,
        events: &[DayEvent],
        short: &ShortLivedDay,
        stream: &mut Stream,
        writer: &mut OperationWriter<S>,
    ) -> Result<(), AgeError> {
        self.rank(events);
        let mut steps = Self::steps(events, stream);
        self.place(short, &mut steps);
        // Equal times keep their order: the sort is stable.
        steps.sort_by_key(|step| step.at_ns);
        let midnight_ns = day * DAY_NS;
        for step in &steps {
            self.remove_until(step.at_ns, midnight_ns, writer)?;
            writer.set_time(midnight_ns + step.at_ns);
            self.take(step, writer)?;
        }
        self.remove_until(DAY_NS, midnight_ns, writer)
    }

    /// Makes the files of the first snapshot, one after another by the time that they were made: they
    /// are there before the first day's activity, which uses their directories.
    ///
    /// # Errors
    /// As the sink.
    ///
    /// # Panics
    /// As [`DayMixer::play`].
    pub fn begin<S: OperationSink>(
        &mut self,
        events: &[DayEvent],
        stream: &mut Stream,
        writer: &mut OperationWriter<S>,
    ) -> Result<(), AgeError> {
        self.rank(events);
        let mut steps = Self::steps(events, stream);
        steps.sort_by_key(|step| step.at_ns);
        for step in &steps {
            self.take(step, writer)?;
        }
        Ok(())
    }

    /// Finds the directories that change most on a day, and when.
    fn rank(&mut self, events: &[DayEvent]) {
        let highest = events.iter().map(|event| event.directory).max();
        let Some(highest) = highest else { return };
        let mut hours = vec![[0_u32; HOURS]; highest as usize + 1];
        let mut changes = vec![0_u32; highest as usize + 1];
        for event in events {
            changes[event.directory as usize] += 1;
            if let Some(at_ns) = event.change.at_ns() {
                hours[event.directory as usize][(at_ns / HOUR_NS) as usize % HOURS] += 1;
            }
        }
        let all_hours = hours.iter().fold([0_u32; HOURS], |mut sum, of_directory| {
            for (sum, hour) in sum.iter_mut().zip(of_directory) {
                *sum += hour;
            }
            sum
        });
        self.busiest.clear();
        for (directory, &count) in changes.iter().enumerate() {
            if count > 0 {
                let of_directory = &hours[directory];
                // A directory that only loses files has no times of its own.
                let known = of_directory.iter().any(|&hour| hour > 0);
                let hour = peak_hour(if known { of_directory } else { &all_hours });
                self.busiest.push((directory as u32, hour));
            }
        }
        self.busiest
            .sort_by_key(|(directory, _)| (u32::MAX - changes[*directory as usize], *directory));
    }

    /// Times of the changes of long-lived files.
    fn steps(events: &[DayEvent], stream: &mut Stream) -> Vec<Step> {
        let times = events.iter().filter_map(|event| event.change.at_ns());
        let (first, last) =
            times.fold((DAY_NS - 1, 0), |(first, last), at_ns| (first.min(at_ns), last.max(at_ns)));
        // A day of removals alone has no times: the whole day then.
        let (first, last) = if first > last { (0, DAY_NS - 1) } else { (first, last) };
        let step = |event: &DayEvent| {
            let key = event.key;
            let (at_ns, what) = match event.change {
                DayChange::Create { at_ns, bytes } => (at_ns, What::Create { key, bytes }),
                DayChange::Replace { at_ns, bytes } => (at_ns, What::Replace { key, bytes }),
                DayChange::Move { at_ns } => (at_ns, What::Move { key }),
                DayChange::Delete => {
                    (first + uniform_below(stream, last - first + 1), What::Delete { key })
                }
            };
            Step { at_ns: at_ns.min(DAY_NS - 1), directory: event.directory, what }
        };
        events.iter().map(step).collect()
    }

    /// Puts the short-lived files into the directories that change most, at their peak.
    fn place(&self, short: &ShortLivedDay, steps: &mut Vec<Step>) {
        if self.busiest.is_empty() {
            return;
        }
        for (rank, files) in short.directories.iter().enumerate() {
            let (directory, hour) = self.busiest[rank % self.busiest.len()];
            let from_hour = peak_hour_of(files);
            for file in files {
                let at_ns = (file.create_ns + hour as u64 * HOUR_NS)
                    .saturating_sub(from_hour as u64 * HOUR_NS)
                    .min(DAY_NS - 1);
                let what = What::Short { life_ns: file.life_ns, bytes: file.bytes };
                steps.push(Step { at_ns, directory, what });
            }
        }
    }

    fn take<S: OperationSink>(
        &mut self,
        step: &Step,
        writer: &mut OperationWriter<S>,
    ) -> Result<(), AgeError> {
        match step.what {
            What::Create { key, bytes } => {
                let number = self.create(step.directory, bytes, writer)?;
                if self.numbers.len() <= key as usize {
                    self.numbers.resize(key as usize + 1, ABSENT);
                }
                let before = std::mem::replace(&mut self.numbers[key as usize], number);
                assert_eq!(before, ABSENT, "file {key} is made twice");
            }
            What::Replace { key, bytes } => {
                self.delete(self.numbers[key as usize], writer)?;
                self.numbers[key as usize] = self.create(step.directory, bytes, writer)?;
            }
            What::Move { key } => {
                writer.rename(self.numbers[key as usize], step.directory)?;
            }
            What::Delete { key } => {
                let number = std::mem::replace(&mut self.numbers[key as usize], ABSENT);
                self.delete(number, writer)?;
            }
            What::Short { life_ns, bytes } => {
                let needed = self.allocation.of(bytes);
                while self.allocated_bytes + needed > self.limit_bytes {
                    let Some(Reverse((_, _, number))) = self.alive.pop() else { break };
                    self.removed_early += 1;
                    self.delete(number, writer)?;
                }
                let number = self.create(step.directory, bytes, writer)?;
                self.order += 1;
                self.short_files += 1;
                let end_ns = (step.at_ns + life_ns).min(DAY_NS - 1);
                self.alive.push(Reverse((end_ns, self.order, number)));
            }
        }
        Ok(())
    }

    /// Removes the short-lived files whose time has come.
    fn remove_until<S: OperationSink>(
        &mut self,
        until_ns: u64,
        midnight_ns: u64,
        writer: &mut OperationWriter<S>,
    ) -> Result<(), AgeError> {
        while let Some(&Reverse((end_ns, _, number))) = self.alive.peek()
            && end_ns < until_ns
        {
            self.alive.pop();
            writer.set_time(midnight_ns + end_ns);
            self.delete(number, writer)?;
        }
        Ok(())
    }

    fn create<S: OperationSink>(
        &mut self,
        directory: u32,
        bytes: u64,
        writer: &mut OperationWriter<S>,
    ) -> Result<u32, AgeError> {
        let number = writer.create_whole(directory, bytes)?;
        if self.allocated.len() <= number as usize {
            self.allocated.resize(number as usize + 1, 0);
        }
        self.allocated[number as usize] = self.allocation.of(bytes);
        self.allocated_bytes += self.allocated[number as usize];
        Ok(number)
    }

    fn delete<S: OperationSink>(
        &mut self,
        number: u32,
        writer: &mut OperationWriter<S>,
    ) -> Result<(), AgeError> {
        self.allocated_bytes -= self.allocated[number as usize];
        writer.delete(number)
    }
}

/// The hour with most changes, the first among equals.
fn peak_hour(hours: &[u32; HOURS]) -> usize {
    let most = hours.iter().max().copied().unwrap_or(0);
    hours.iter().position(|&hour| hour == most).unwrap_or(0)
}

fn peak_hour_of(files: &[ShortFile]) -> usize {
    let mut hours = [0_u32; HOURS];
    for file in files {
        hours[(file.create_ns / HOUR_NS) as usize % HOURS] += 1;
    }
    peak_hour(&hours)
}
