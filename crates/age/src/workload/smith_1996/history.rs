//! The history of the long-lived files, as nightly snapshots would record it.
//!
//! The files of the end are planned first ([`super::survivors`]); what else the utilization asks
//! for is filled by files that come and go, day by day: some are made, in the few directories that
//! are active at the time, and when there is too much the files of whole directories are cleaned up.
//! So no more comes and goes from day to day than the published utilization, and the files that
//! stay, make room for.

use agewell_core::{DAY_NS, RandomStreams, Stream};

use super::directories::Directories;
use super::survivors::{self, Survivor};
use super::{Smith1996Parameters, allocated_bytes};
use crate::workload::draws::{geometric, log_normal_bytes, normal, pick};
use crate::workload::short_lived::working_time_ns;
use crate::workload::{DayChange, DayEvent};

/// Deviation of the changes of a directory about its time of the day, ns: 20 minutes.
const SESSION_NS: f64 = 1.2e12;
/// A file may exceed what is missing to the day's utilization by this much, bytes, and by no more
/// than this part of it; chosen by us so that large files exist and the utilization stays within a
/// percent, and within two percent of itself while it is low.
const OVERSHOOT_BYTES: u64 = 2 << 20;
/// See `OVERSHOOT_BYTES`.
const OVERSHOOT_PART: u64 = 64;

/// What happens to the long-lived files.
pub(super) struct History {
    /// Events of each day; directories are those of the workload, 1 for group 0.
    pub(super) days: Vec<Vec<DayEvent>>,
    /// Files made, each replacement counted.
    pub(super) files_made: u64,
    /// Bytes written.
    pub(super) written_bytes: u64,
}

impl History {
    pub(super) fn plan(parameters: &Smith1996Parameters, streams: RandomStreams) -> Self {
        let directories =
            Directories::plan(parameters, &mut streams.stream("directories of the history"));
        let (survivors, factor) =
            survivors::plan(parameters, &directories, &mut streams.stream("files of the end"));
        let mut planner = Planner::new(parameters, &directories, factor);
        let mut stream = streams.stream("files that come and go");
        planner.add_survivors(&survivors);
        for day in 0..parameters.days {
            planner.fill(day, &mut stream);
        }
        planner.finish(&mut streams.stream("times of the history"))
    }
}

/// A change of a file: key, directory (before grouping), length or none for a removal, and whether it
/// was there before.
type Change = (u32, u32, Option<u64>, bool);

/// A file that comes and goes.
#[derive(Debug, Clone, Copy)]
struct Guest {
    key: u32,
    directory: u32,
    allocated: u64,
}

struct Planner<'a> {
    parameters: &'a Smith1996Parameters,
    directories: &'a Directories,
    /// What lengths are multiplied by: files that go are as large as those that stay.
    factor: f64,
    /// Changes of each day.
    days: Vec<Vec<Change>>,
    /// Change of the bytes allocated to survivors on each day.
    survivors: Vec<i64>,
    survivor_bytes: i64,
    guests: Vec<Guest>,
    guest_bytes: u64,
    keys: u32,
}

impl<'a> Planner<'a> {
    fn new(parameters: &'a Smith1996Parameters, directories: &'a Directories, factor: f64) -> Self {
        let days = parameters.days as usize;
        Self {
            parameters,
            directories,
            factor,
            days: vec![Vec::new(); days],
            survivors: vec![0; days],
            survivor_bytes: 0,
            guests: Vec::new(),
            guest_bytes: 0,
            keys: 0,
        }
    }

    fn add_survivors(&mut self, survivors: &[Survivor]) {
        for survivor in survivors {
            let key = self.next_key();
            let mut before = 0;
            for (index, version) in survivor.versions.iter().enumerate() {
                let day = version.day as usize;
                let change = (key, survivor.directory, Some(version.bytes), index > 0);
                self.days[day].push(change);
                let allocated = allocated_bytes(version.bytes) as i64;
                self.survivors[day] += allocated - before;
                before = allocated;
            }
        }
    }

    fn next_key(&mut self) -> u32 {
        self.keys += 1;
        self.keys - 1
    }

    fn level(&self) -> u64 {
        self.survivor_bytes as u64 + self.guest_bytes
    }

    /// Files that come and go on `day`.
    fn fill(&mut self, day: u32, stream: &mut Stream) {
        self.survivor_bytes += self.survivors[day as usize];
        let wanted = self.parameters.path_bytes(day);
        // Nothing is removed on the day that it is made: nightly snapshots do not see such files.
        self.clean_up(day, wanted, stream);
        if day + 1 == self.parameters.days {
            // What is left in the last evening is what was planned to be.
            for guest in std::mem::take(&mut self.guests) {
                self.remove(day, &guest);
            }
            return;
        }
        // An evening is within a percent or so of the path.
        while self.level() < wanted {
            self.add_batch(day, wanted, stream);
        }
    }

    fn remove(&mut self, day: u32, guest: &Guest) {
        self.days[day as usize].push((guest.key, guest.directory, None, false));
        self.guest_bytes -= guest.allocated;
    }

    /// Removes the files of whole directories until no more than `wanted` is allocated; the last of
    /// the directories keeps some.
    fn clean_up(&mut self, day: u32, wanted: u64, stream: &mut Stream) {
        while self.level() > wanted && !self.guests.is_empty() {
            let directory = pick(stream, &self.guests).directory;
            let guests = std::mem::take(&mut self.guests);
            for guest in guests {
                if guest.directory == directory && self.level() > wanted {
                    self.remove(day, &guest);
                } else {
                    self.guests.push(guest);
                }
            }
        }
    }

    fn add_batch(&mut self, day: u32, wanted: u64, stream: &mut Stream) {
        let directories = self.directories;
        let directory = directories.active_on(day, stream);
        let kind = directories.kind(directory);
        for _ in 0..geometric(stream, kind.batch_files) {
            let missing = wanted.saturating_sub(self.level());
            if missing == 0 {
                return;
            }
            let drawn = log_normal_bytes(stream, kind.median_bytes, kind.size_doublings);
            let drawn = ((drawn * self.factor) as u64).max(1);
            let overshoot = OVERSHOOT_BYTES.min(wanted / OVERSHOOT_PART);
            let bytes = drawn.min(self.parameters.bytes_max).min(missing + overshoot);
            let allocated = allocated_bytes(bytes);
            let key = self.next_key();
            self.guests.push(Guest { key, directory, allocated });
            self.guest_bytes += allocated;
            self.days[day as usize].push((key, directory, Some(bytes), false));
        }
    }

    /// Gives every change its time and its group.
    fn finish(self, stream: &mut Stream) -> History {
        let (mut files_made, mut written_bytes) = (0, 0);
        let mut centres = vec![0_u64; self.parameters.directories as usize];
        let days = self.days.iter().map(|changes| {
            for &(_, directory, ..) in changes {
                centres[directory as usize] = 0;
            }
            let event = |&(key, directory, bytes, replaces): &Change| {
                let centre = &mut centres[directory as usize];
                if *centre == 0 {
                    *centre = working_time_ns(stream);
                }
                let at_ns = (*centre as f64 + SESSION_NS * normal(stream))
                    .clamp(0.0, (DAY_NS - 1) as f64) as u64;
                let change = match bytes {
                    None => DayChange::Delete,
                    Some(bytes) => {
                        files_made += 1;
                        written_bytes += bytes;
                        if replaces {
                            DayChange::Replace { at_ns, bytes }
                        } else {
                            DayChange::Create { at_ns, bytes }
                        }
                    }
                };
                DayEvent { key, directory: self.directories.group(directory) + 1, change }
            };
            changes.iter().map(event).collect()
        });
        let days = days.collect();
        History { days, files_made, written_bytes }
    }
}
