//! A workload from snapshots of one file system, as Smith & Seltzer (1996, §3.1) made theirs.
//!
//! The files of the first snapshot are made first, by change time. Then one snapshot is held against
//! the next: what is new was made at its inode change time; what is another was removed and written
//! again; what is gone was removed at a random time within the activity of a day. A
//! [`super::DayMixer`] adds short-lived files, from a trace or from [`NfsLike`].
//!
//! Where files go: with `groups`, into one directory for each cylinder or block group, that of the
//! file's inode (§3.2); with `directories`, into the directories that the snapshot names, made and
//! removed as they come and go.
//!
//! Differences from the paper: a file whose data is as it was (same length and modification time,
//! where the snapshot knows it) is not rewritten for a change of mode; one that is in another
//! directory is moved; of a file with holes only what is allocated is written. Snapshots that are
//! further apart than a day stand for as many days as are between them, a removal then falls on one
//! of those with activity. Snapshots without a time (of images) count a day each. A directory that is
//! itself moved stays where it was first (counted). Links, devices and names are left out.
//!
//! Cost: two snapshots in memory, O(log n) a file.

#[cfg(test)]
mod tests;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use agewell_core::{DAY_NS, RandomStreams, Stream, uniform_below};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::draws::pick;
use super::short_lived::{NfsLike, ShortLivedDay, working_time_ns};
use super::trace::short_lived_days;
use super::{
    Allocation, DayChange, DayEvent, DayMixer, OperationSink, OperationWriter, SourceFacts,
    WorkloadFacts,
};
use agewell_snapshot::columns;

use crate::{AgeError, FileSystemFacts};
use crate::{FileKind, NO_TIME, Snapshot, SnapshotFile};

/// Snapshots a century apart are mangled.
const DAYS_MAX: u64 = 36_500;
/// No file system has more groups; a snapshot that says so is mangled.
const GROUPS_MAX: u64 = 1 << 20;

/// Into which directories files go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilePlacement {
    /// One for each group, by the inode.
    Groups,
    /// Those of the snapshot.
    #[default]
    Directories,
}

/// Where short-lived files come from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ShortLived {
    /// There are none.
    #[default]
    None,
    /// A generator.
    NfsLike {
        /// Files on a day, in the mean.
        files_a_day: u64,
        /// Bytes of one, in the mean.
        #[serde(deserialize_with = "super::quantity::bytes")]
        mean_bytes: u64,
        /// What they are like.
        #[serde(default)]
        model: NfsLike,
    },
    /// A trace of file operations.
    Trace {
        /// The trace.
        #[serde(deserialize_with = "crate::path_text::read")]
        trace: PathBuf,
    },
}

impl ShortLived {
    fn days(&self, streams: RandomStreams) -> Result<Vec<ShortLivedDay>, AgeError> {
        match self {
            Self::None => Ok(vec![ShortLivedDay::default()]),
            Self::NfsLike { files_a_day, mean_bytes, model } => {
                // Memory holds them all.
                if !(1..=10_000_000).contains(files_a_day) || *mean_bytes > model.bytes_max {
                    return Err(AgeError::Input(format!(
                        "short-lived files: files_a_day must be from 1 to 10,000,000 and \
                         mean_bytes at most {}, the longest",
                        model.bytes_max
                    )));
                }
                let files = files_a_day * u64::from(model.days);
                let once = vec![1; model.days as usize];
                Ok(model.make(&once, files, files.saturating_mul(*mean_bytes), streams))
            }
            Self::Trace { trace } => short_lived_days(trace),
        }
    }
}

/// How snapshots become a workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SnapshotsParameters {
    /// Into which directories files go.
    pub placement: FilePlacement,
    /// Inodes of a group, for snapshots that do not say (`groups`).
    pub inodes_per_group: Option<u64>,
    /// The short-lived files.
    pub short_lived: ShortLived,
}

/// Makes a workload of the snapshot files `paths`, in the order of time.
///
/// # Errors
/// If there are fewer than two, one cannot be read, they are not in order, or as the sink.
pub fn from_snapshots<S: OperationSink>(
    paths: &[PathBuf],
    parameters: &SnapshotsParameters,
    seed: u64,
    sink: S,
) -> Result<(WorkloadFacts, S), AgeError> {
    let [first, rest @ ..] = paths else {
        return Err(AgeError::Input("snapshots: give at least two".to_owned()));
    };
    if rest.is_empty() {
        return Err(AgeError::Input("snapshots: give at least two".to_owned()));
    }
    let streams = RandomStreams::new(seed);
    let short = parameters.short_lived.days(streams)?;
    let before = columns::read(first)?;
    let mut history = Snapshots::new(&before, parameters, streams, sink)?;
    history.begin(&before)?;
    let mut before = before.facts;
    for path in rest {
        let next = columns::read(path)?;
        let days = days_between(&before, &next.facts).ok_or_else(|| {
            AgeError::Input(format!(
                "{}: was not taken after the snapshot before it; give them in the order of time",
                path.display()
            ))
        })?;
        history.advance(&before, &next, days, &short)?;
        before = next.facts;
    }
    Ok(history.finish(paths.len(), parameters, seed))
}

/// Days from one snapshot to the next, at least one; none if they are not in order.
fn days_between(before: &FileSystemFacts, next: &FileSystemFacts) -> Option<u64> {
    if before.taken_ns == NO_TIME || next.taken_ns == NO_TIME {
        return Some(1);
    }
    let apart = i128::from(next.taken_ns) - i128::from(before.taken_ns);
    if apart <= 0 {
        return None;
    }
    let day = i128::from(DAY_NS);
    Some((((apart + day / 2) / day).max(1) as u64).min(DAYS_MAX))
}

/// A file as the snapshot before knew it.
#[derive(Debug, Clone, Copy)]
struct Held {
    key: u32,
    bytes: u64,
    birth_ns: i64,
    change_ns: i64,
    modify_ns: i64,
    directory: u32,
}

impl Held {
    /// Whether the content of `file` is another than it was.
    fn is_another(&self, file: &SnapshotFile, bytes: u64) -> bool {
        let differ = |old: i64, new: i64| old != NO_TIME && new != NO_TIME && old != new;
        let timeless = self.modify_ns == NO_TIME || file.modify_ns == NO_TIME;
        bytes != self.bytes
            || differ(self.modify_ns, file.modify_ns)
            || differ(self.birth_ns, file.birth_ns)
            || (timeless && differ(self.change_ns, file.change_ns))
    }
}

/// What is common to both placements: a way from a file to its directory.
enum Placement {
    Groups { inodes_per_group: u64, first_inode: u64, groups: u32 },
    Directories(BTreeMap<u64, u32>),
}

struct Snapshots<S> {
    writer: OperationWriter<S>,
    mixer: DayMixer,
    placement: Placement,
    files: BTreeMap<u64, Held>,
    keys: u32,
    day: u64,
    times: Stream,
    picks: Stream,
    moved_directories: u64,
    timeless: u64,
}

impl<S: OperationSink> Snapshots<S> {
    fn new(
        first: &Snapshot,
        parameters: &SnapshotsParameters,
        streams: RandomStreams,
        sink: S,
    ) -> Result<Self, AgeError> {
        let facts = &first.facts;
        let piece = u64::from(facts.fragment_bytes.max(1));
        let allocation = Allocation::Pieces(piece);
        let of_files: u64 = first
            .files
            .iter()
            .filter(|file| file.kind == FileKind::Regular)
            .map(|file| written_bytes(first, file).next_multiple_of(piece))
            .fold(0, u64::saturating_add);
        let mut writer = OperationWriter::new(sink);
        let placement = match parameters.placement {
            FilePlacement::Directories => Placement::Directories(BTreeMap::new()),
            FilePlacement::Groups => groups(facts, parameters)?,
        };
        if let Placement::Groups { groups, .. } = placement {
            for _ in 0..groups {
                writer.make_directory(0)?;
            }
        }
        Ok(Self {
            writer,
            mixer: DayMixer::new(allocation, of_files.saturating_add(facts.free_bytes)),
            placement,
            files: BTreeMap::new(),
            keys: 0,
            day: 0,
            times: streams.stream("times of changes"),
            picks: streams.stream("days of the traces"),
            moved_directories: 0,
            timeless: 0,
        })
    }

    /// Makes the files of the first snapshot in the order of their change times.
    fn begin(&mut self, first: &Snapshot) -> Result<(), AgeError> {
        self.make_directories(first)?;
        let mut regular: Vec<&SnapshotFile> =
            first.files.iter().filter(|file| file.kind == FileKind::Regular).collect();
        regular.sort_by_key(|file| (file.change_ns, file.inode));
        let count = regular.len().max(1) as u64;
        let mut events = Vec::with_capacity(regular.len());
        for (rank, file) in regular.into_iter().enumerate() {
            let bytes = written_bytes(first, file);
            let directory = self.directory_of(file);
            let key = self.hold(file, bytes, directory, None);
            let at_ns = (u128::from(DAY_NS) * rank as u128 / u128::from(count)) as u64;
            events.push(DayEvent { key, directory, change: DayChange::Create { at_ns, bytes } });
        }
        self.mixer.begin(&events, &mut self.times, &mut self.writer)
    }

    /// Plays the days from one snapshot to the next.
    fn advance(
        &mut self,
        before: &FileSystemFacts,
        next: &Snapshot,
        days: u64,
        short: &[ShortLivedDay],
    ) -> Result<(), AgeError> {
        self.writer.set_time(self.writer.time_ns().max(self.day * DAY_NS));
        self.make_directories(next)?;
        let mut events: Vec<Vec<DayEvent>> = vec![Vec::new(); days as usize];
        let mut there = BTreeSet::new();
        for file in next.files.iter().filter(|file| file.kind == FileKind::Regular) {
            there.insert(file.inode);
            self.compare(before, next, file, &mut events);
        }
        self.delete_absent(&there, &mut events);
        for of_day in &events {
            let picked = uniform_below(&mut self.picks, short.len() as u64) as usize;
            let (mixer, writer) = (&mut self.mixer, &mut self.writer);
            mixer.play(self.day, of_day, &short[picked], &mut self.times, writer)?;
            self.day += 1;
        }
        self.remove_directories(next)
    }

    /// Adds what happened to `file`.
    fn compare(
        &mut self,
        before: &FileSystemFacts,
        next: &Snapshot,
        file: &SnapshotFile,
        events: &mut [Vec<DayEvent>],
    ) {
        let bytes = written_bytes(next, file);
        let held = self.files.get(&file.inode).copied();
        let mut directory = self.directory_of(file);
        let (day, at_ns) = self.time_of(before, file, events.len() as u64);
        let change = match held {
            None => DayChange::Create { at_ns, bytes },
            Some(held) if held.is_another(file, bytes) => DayChange::Replace { at_ns, bytes },
            Some(held) if held.directory != directory => DayChange::Move { at_ns },
            Some(held) => {
                directory = held.directory;
                self.hold(file, bytes, directory, Some(held.key));
                return;
            }
        };
        let key = self.hold(file, bytes, directory, held.map(|held| held.key));
        events[day].push(DayEvent { key, directory, change });
    }

    /// Day of the interval and time of day of the change of `file`.
    fn time_of(
        &mut self,
        before: &FileSystemFacts,
        file: &SnapshotFile,
        days: u64,
    ) -> (usize, u64) {
        if file.change_ns == NO_TIME {
            self.timeless += 1;
            let day = uniform_below(&mut self.times, days) as usize;
            return (day, working_time_ns(&mut self.times));
        }
        if before.taken_ns == NO_TIME {
            // The time of day is known, the day is the only one.
            return (0, file.change_ns.rem_euclid(DAY_NS as i64) as u64);
        }
        let since = i128::from(file.change_ns) - i128::from(before.taken_ns);
        let since = since.clamp(0, i128::from(days * DAY_NS) - 1) as u64;
        ((since / DAY_NS) as usize, since % DAY_NS)
    }

    /// Adds the removal of what is gone, on one of the days with activity.
    fn delete_absent(&mut self, there: &BTreeSet<u64>, events: &mut [Vec<DayEvent>]) {
        let mut active: Vec<usize> =
            (0..events.len()).filter(|&day| !events[day].is_empty()).collect();
        if active.is_empty() {
            active = (0..events.len()).collect();
        }
        let gone: Vec<u64> =
            self.files.keys().copied().filter(|inode| !there.contains(inode)).collect();
        for inode in gone {
            let held = self.files.remove(&inode).expect("it was just listed");
            let day = pick(&mut self.times, &active);
            events[day].push(DayEvent {
                key: held.key,
                directory: held.directory,
                change: DayChange::Delete,
            });
        }
    }

    /// Remembers `file`; returns its key.
    fn hold(&mut self, file: &SnapshotFile, bytes: u64, directory: u32, key: Option<u32>) -> u32 {
        let key = key.unwrap_or_else(|| {
            self.keys += 1;
            self.keys - 1
        });
        let held = Held {
            key,
            bytes,
            birth_ns: file.birth_ns,
            change_ns: file.change_ns,
            modify_ns: file.modify_ns,
            directory,
        };
        self.files.insert(file.inode, held);
        key
    }

    fn directory_of(&self, file: &SnapshotFile) -> u32 {
        match &self.placement {
            Placement::Groups { inodes_per_group, first_inode, groups } => {
                let group = file.inode.saturating_sub(*first_inode) / inodes_per_group;
                // An inode beyond the last group is a mangled one.
                group.min(u64::from(groups - 1)) as u32 + 1
            }
            Placement::Directories(numbers) => numbers.get(&file.directory).copied().unwrap_or(0),
        }
    }

    /// Makes the directories that `snapshot` has and were not there before.
    fn make_directories(&mut self, snapshot: &Snapshot) -> Result<(), AgeError> {
        let Placement::Directories(numbers) = &mut self.placement else { return Ok(()) };
        let parents: BTreeMap<u64, u64> = snapshot
            .files
            .iter()
            .filter(|file| file.kind == FileKind::Directory)
            .map(|file| (file.inode, file.directory))
            .collect();
        for &inode in parents.keys() {
            let mut missing = Vec::new();
            let mut at = inode;
            // A circle, in a mangled snapshot, ends at the root.
            while !numbers.contains_key(&at) && missing.len() <= parents.len() {
                let parent = parents.get(&at).copied();
                if parent == Some(at) {
                    numbers.insert(at, 0);
                    break;
                }
                let Some(parent) = parent else { break };
                missing.push(at);
                at = parent;
            }
            let mut number = numbers.get(&at).copied().unwrap_or(0);
            for inode in missing.into_iter().rev() {
                if let Entry::Vacant(slot) = numbers.entry(inode) {
                    number = self.writer.make_directory(number)?;
                    slot.insert(number);
                }
            }
            let parent = parents[&inode];
            let (number, of_parent) = (numbers[&inode], numbers.get(&parent).copied().unwrap_or(0));
            if number != 0 && self.writer.live_set().parent_of(number) != Some(of_parent) {
                self.moved_directories += 1;
            }
        }
        Ok(())
    }

    /// Removes the directories that `snapshot` does not have any more, from the bottom.
    fn remove_directories(&mut self, snapshot: &Snapshot) -> Result<(), AgeError> {
        let Placement::Directories(numbers) = &mut self.placement else { return Ok(()) };
        let there: BTreeSet<u64> = snapshot
            .files
            .iter()
            .filter(|file| file.kind == FileKind::Directory)
            .map(|file| file.inode)
            .collect();
        let mut gone: Vec<(u64, u32)> = numbers
            .iter()
            .filter(|&(inode, number)| *number != 0 && !there.contains(inode))
            .map(|(inode, number)| (*inode, *number))
            .collect();
        loop {
            let before = gone.len();
            let mut kept = Vec::new();
            for (inode, number) in gone {
                if self.writer.live_set().entries(number) > 0 {
                    kept.push((inode, number));
                } else {
                    self.writer.remove_directory(number)?;
                    numbers.remove(&inode);
                }
            }
            if kept.len() == before {
                return Ok(());
            }
            gone = kept;
        }
    }

    fn finish(
        self,
        count: usize,
        parameters: &SnapshotsParameters,
        seed: u64,
    ) -> (WorkloadFacts, S) {
        let groups = match self.placement {
            Placement::Groups { groups, .. } => Some(groups),
            Placement::Directories(_) => None,
        };
        let mut notes = BTreeMap::from([
            ("snapshots".to_owned(), count as u64),
            ("short-lived files".to_owned(), self.mixer.short_files),
        ]);
        for (note, count) in [
            ("short-lived files removed early for want of room", self.mixer.removed_early),
            ("directories that moved, left where they were", self.moved_directories),
            ("changes without a time, put at a random one", self.timeless),
        ] {
            if count > 0 {
                notes.insert(note.to_owned(), count);
            }
        }
        let parameters = BTreeMap::from([
            ("placement".to_owned(), json!(parameters.placement)),
            ("short_lived".to_owned(), json!(parameters.short_lived)),
        ]);
        self.writer.finish(SourceFacts {
            source: "snapshots".to_owned(),
            seed,
            groups,
            parameters,
            notes,
            ..SourceFacts::default()
        })
    }
}

/// What is written of a file: its length, or what is allocated to it where it has holes.
fn written_bytes(snapshot: &Snapshot, file: &SnapshotFile) -> u64 {
    let extents = snapshot.extents_of(file).iter();
    let held = extents.map(|extent| extent.length_bytes).fold(0, u64::saturating_add);
    file.size_bytes.min(held)
}

/// How inodes are assigned to groups.
fn groups(
    facts: &FileSystemFacts,
    parameters: &SnapshotsParameters,
) -> Result<Placement, AgeError> {
    let told = facts.parameters.get("inodes_per_group").and_then(|text| text.parse().ok());
    let inodes_per_group = parameters.inodes_per_group.or(told).filter(|&inodes| inodes > 0);
    let inodes_per_group = inodes_per_group.ok_or_else(|| {
        AgeError::Input(format!(
            "snapshots: {} does not say how many inodes a group has; give inodes_per_group, or \
             place files by directories",
            if facts.kind.is_empty() { "the file system" } else { &facts.kind }
        ))
    })?;
    let told = facts.parameters.get("groups").and_then(|text| text.parse::<u64>().ok());
    let by_size = facts.total_bytes.checked_div(facts.group_bytes);
    let groups = told.or(by_size.map(|groups| groups.max(1))).unwrap_or(0);
    if groups == 0 || groups > GROUPS_MAX {
        return Err(AgeError::Input(format!(
            "snapshots: {groups} groups cannot be; place files by directories"
        )));
    }
    // Inodes are numbered from 1 on ext2 to ext4, from 0 elsewhere.
    let first_inode = u64::from(facts.kind.starts_with("ext"));
    Ok(Placement::Groups { inodes_per_group, first_inode, groups: groups as u32 })
}
