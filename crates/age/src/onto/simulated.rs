//! A simulated file system as a target.
//!
//! Files and directories of the workload are numbered by it, those of the file system by itself;
//! two flat tables lead from the one to the other. Nothing is timed: what the file system would
//! transfer goes to a device that ignores it. Cost: that of the file system and two table lookups
//! an operation.

use agewell_layout::file_system::{FileExtent, FileSystem, FileSystemError};

use super::{LayoutCounts, Outcome, Refusals, Target, Usage};
use crate::{
    Action, AgeError, Extent, ExtentFlags, FileKind, FileSystemFacts, FreeExtent, NO_TIME,
    Operation, Snapshot, SnapshotFile,
};

/// Bytes of a sector of the simulated disk.
const SECTOR_BYTES: u64 = 512;

/// A number of the workload that stands for nothing on the file system.
const NOWHERE: u32 = u32::MAX;

/// The workload's directory that is always there.
const ROOT: usize = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Absent,
    Live,
    Refused,
    Short,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Number on the file system.
    number: u32,
    /// Directory of the workload that it is in.
    directory: u32,
    presence: Presence,
    /// When it was made and last written, nanoseconds of the workload.
    made_ns: u64,
    written_ns: u64,
}

const ABSENT: Entry =
    Entry { number: NOWHERE, directory: 0, presence: Presence::Absent, made_ns: 0, written_ns: 0 };

/// A simulated file system that a workload is replayed onto.
#[derive(Debug)]
pub struct SimulatedTarget<F> {
    file_system: F,
    facts: FileSystemFacts,
    files: Vec<Entry>,
    directories: Vec<Entry>,
}

impl<F: FileSystem> SimulatedTarget<F> {
    /// `file_system`, which is empty, as a target; `facts` are what its snapshots say of it.
    #[must_use]
    pub fn new(file_system: F, facts: FileSystemFacts) -> Self {
        let root = Entry { number: file_system.root(), presence: Presence::Live, ..ABSENT };
        Self { file_system, facts, files: Vec::new(), directories: vec![root] }
    }

    /// The file system.
    #[must_use]
    pub fn file_system(&self) -> &F {
        &self.file_system
    }

    /// The file system, aged as it is.
    #[must_use]
    pub fn into_file_system(self) -> F {
        self.file_system
    }

    /// The number on the file system of `file` of the workload, if it is there.
    #[must_use]
    pub fn number_of(&self, file: u32) -> Option<u32> {
        let entry = self.files.get(file as usize)?;
        matches!(entry.presence, Presence::Live | Presence::Short).then_some(entry.number)
    }

    fn directory(&self, directory: u32) -> Entry {
        self.directories.get(directory as usize).copied().unwrap_or(ABSENT)
    }

    fn make_directory(&mut self, operation: &Operation) -> Result<Outcome, AgeError> {
        let parent = self.directory(operation.directory);
        let index = operation.file as usize;
        if index >= self.directories.len() {
            self.directories.resize(index + 1, ABSENT);
        }
        let mut entry = Entry {
            directory: operation.directory,
            presence: Presence::Refused,
            made_ns: operation.time_ns,
            written_ns: operation.time_ns,
            ..ABSENT
        };
        let mut outcome = Outcome::Skipped;
        if parent.presence == Presence::Live {
            outcome = settled(self.file_system.make_directory(parent.number, &mut ()), operation)
                .map(|made| {
                made.map_or(Outcome::NoSpace, |number| {
                    entry.number = number;
                    entry.presence = Presence::Live;
                    Outcome::Done
                })
            })?;
        }
        self.directories[index] = entry;
        Ok(outcome)
    }

    fn remove_directory(&mut self, operation: &Operation) -> Result<Outcome, AgeError> {
        let entry = self.directory(operation.file);
        let outcome = match entry.presence {
            Presence::Live => {
                done(self.file_system.remove_directory(entry.number, &mut ()), operation)?
            }
            Presence::Absent => return Err(out_of_order(operation)),
            _ => Outcome::Skipped,
        };
        self.directories[operation.file as usize] = ABSENT;
        Ok(outcome)
    }

    fn create(&mut self, operation: &Operation) -> Result<Outcome, AgeError> {
        let index = operation.file as usize;
        if index >= self.files.len() {
            self.files.resize(index + 1, ABSENT);
        }
        let directory = self.directory(operation.directory);
        let mut entry = Entry {
            directory: operation.directory,
            presence: Presence::Refused,
            made_ns: operation.time_ns,
            written_ns: operation.time_ns,
            ..ABSENT
        };
        let mut outcome = Outcome::Skipped;
        if directory.presence == Presence::Live {
            let made = settled(self.file_system.create(directory.number, &mut ()), operation)?;
            outcome = Outcome::NoSpace;
            if let Some(number) = made {
                entry.number = number;
                entry.presence = Presence::Live;
                outcome = Outcome::Done;
            }
        }
        self.files[index] = entry;
        Ok(outcome)
    }

    /// The entry of the operation's file, if it may be touched.
    #[inline]
    fn live(&self, operation: &Operation) -> Result<Option<Entry>, AgeError> {
        let entry = self.files.get(operation.file as usize).copied().unwrap_or(ABSENT);
        match entry.presence {
            Presence::Live => Ok(Some(entry)),
            Presence::Absent => Err(out_of_order(operation)),
            Presence::Refused | Presence::Short => Ok(None),
        }
    }

    #[inline]
    fn write(&mut self, operation: &Operation) -> Result<Outcome, AgeError> {
        let Some(entry) = self.live(operation)? else { return Ok(Outcome::Skipped) };
        let (offset, size) = (operation.offset_bytes, operation.size_bytes);
        let written = self.file_system.write(entry.number, offset, size, &mut ());
        let outcome = done(written, operation)?;
        let entry = &mut self.files[operation.file as usize];
        entry.written_ns = operation.time_ns;
        if outcome == Outcome::NoSpace {
            entry.presence = Presence::Short;
        }
        Ok(outcome)
    }

    fn truncate(&mut self, operation: &Operation) -> Result<Outcome, AgeError> {
        let index = operation.file as usize;
        if operation.offset_bytes == 0
            && let Some(entry) = self.files.get_mut(index)
            && entry.presence == Presence::Short
        {
            // A short file that is cut to nothing is as it should be again.
            entry.presence = Presence::Live;
        }
        let Some(entry) = self.live(operation)? else { return Ok(Outcome::Skipped) };
        let cut = self.file_system.truncate(entry.number, operation.offset_bytes, &mut ());
        let outcome = done(cut, operation)?;
        let entry = &mut self.files[index];
        entry.written_ns = operation.time_ns;
        if outcome == Outcome::NoSpace {
            entry.presence = Presence::Short;
        }
        Ok(outcome)
    }

    fn delete(&mut self, operation: &Operation) -> Result<Outcome, AgeError> {
        let entry = self.files.get(operation.file as usize).copied().unwrap_or(ABSENT);
        let outcome = match entry.presence {
            Presence::Live | Presence::Short => {
                done(self.file_system.remove(entry.number, &mut ()), operation)?
            }
            Presence::Refused => Outcome::Skipped,
            Presence::Absent => return Err(out_of_order(operation)),
        };
        self.files[operation.file as usize] = ABSENT;
        Ok(outcome)
    }

    fn rename(&mut self, operation: &Operation) -> Result<Outcome, AgeError> {
        let index = operation.file as usize;
        let entry = self.files.get(index).copied().unwrap_or(ABSENT);
        match entry.presence {
            Presence::Absent => return Err(out_of_order(operation)),
            Presence::Refused => return Ok(Outcome::Skipped),
            Presence::Live | Presence::Short => {}
        }
        let to = self.directory(operation.directory);
        let mut outcome = Outcome::Skipped;
        if to.presence == Presence::Live {
            let moved = self.file_system.rename(entry.number, to.number, &mut ());
            outcome = done(moved, operation)?;
        }
        if outcome == Outcome::Done {
            self.files[index].directory = operation.directory;
        } else {
            // It cannot be where the workload wants it, and must not be where it does not.
            done(self.file_system.remove(entry.number, &mut ()), operation)?;
            self.files[index] = Entry { presence: Presence::Refused, ..ABSENT };
        }
        Ok(outcome)
    }
}

impl<F: FileSystem> Target for SimulatedTarget<F> {
    #[inline]
    fn apply(&mut self, operation: &Operation) -> Result<Outcome, AgeError> {
        match operation.action {
            Action::Create => self.create(operation),
            Action::Write => self.write(operation),
            Action::Truncate => self.truncate(operation),
            Action::Delete => self.delete(operation),
            Action::MakeDirectory => self.make_directory(operation),
            Action::RemoveDirectory => self.remove_directory(operation),
            Action::Rename => self.rename(operation),
            Action::Sync => done(self.file_system.sync(&mut ()), operation),
            Action::SyncFile => {
                let Some(entry) = self.live(operation)? else { return Ok(Outcome::Skipped) };
                done(self.file_system.sync_file(entry.number, &mut ()), operation)
            }
            Action::Read => {
                let Some(entry) = self.live(operation)? else { return Ok(Outcome::Skipped) };
                let (offset, size) = (operation.offset_bytes, operation.size_bytes);
                done(self.file_system.read(entry.number, offset, size, &mut ()), operation)
            }
        }
    }

    /// Does them: what a simulated file system held is gone with the process that held it.
    fn assume(&mut self, operations: &[Operation]) -> Result<(), AgeError> {
        for operation in operations {
            self.apply(operation)?;
        }
        Ok(())
    }

    /// Nothing: it holds what it was given to assume, and what else there was is gone.
    fn roll_back(&mut self) -> Result<(), AgeError> {
        Ok(())
    }

    fn refusals(&self) -> Refusals {
        let of = |entries: &[Entry], wanted: Presence| {
            let numbered = (0_u32..).zip(entries);
            numbered
                .filter(|(_, entry)| entry.presence == wanted)
                .map(|(number, _)| number)
                .collect()
        };
        Refusals {
            files: of(&self.files, Presence::Refused),
            short_files: of(&self.files, Presence::Short),
            leftover_files: Vec::new(),
            directories: of(&self.directories, Presence::Refused),
        }
    }

    /// Nothing: doing the operations again left away the same.
    fn restore(&mut self, _refusals: &Refusals) {}

    fn fragment_bytes(&self) -> Option<u64> {
        Some(u64::from(self.facts.fragment_bytes))
    }

    fn usage(&mut self) -> Result<Usage, AgeError> {
        let (used_bytes, total_bytes) = self.file_system.usage_bytes();
        Ok(Usage { total_bytes, used_bytes })
    }

    fn layout_counts(&mut self) -> Result<LayoutCounts, AgeError> {
        let (optimal, counted) = self.file_system.layout_counts();
        Ok(LayoutCounts { optimal, counted })
    }

    fn snapshot(&mut self) -> Result<Snapshot, AgeError> {
        Ok(self.picture())
    }
}

impl<F: FileSystem> SimulatedTarget<F> {
    /// What it holds and where.
    fn picture(&self) -> Snapshot {
        let (used_bytes, total_bytes) = self.file_system.usage_bytes();
        let mut facts = self.facts.clone();
        facts.free_bytes = total_bytes.saturating_sub(used_bytes);
        facts.free_map = true;
        facts.taken_ns = NO_TIME;
        let mut snapshot = Snapshot { facts, ..Snapshot::default() };
        let mut rank = vec![0_u32; self.directories.len()];
        for (kind, entries) in
            [(FileKind::Directory, &self.directories), (FileKind::Regular, &self.files)]
        {
            for entry in entries {
                if matches!(entry.presence, Presence::Live | Presence::Short) {
                    let is_root = kind == FileKind::Directory
                        && entry.number == self.directories[ROOT].number;
                    let rank = &mut rank[entry.directory as usize];
                    self.put(&mut snapshot, kind, entry, *rank);
                    *rank += u32::from(!is_root);
                }
            }
        }
        snapshot.files.sort_by_key(|file| file.inode);
        let free = self.file_system.free_extents();
        snapshot.free = free
            .into_iter()
            .map(|(sector, sectors)| FreeExtent {
                physical_bytes: sector * SECTOR_BYTES,
                length_bytes: sectors * SECTOR_BYTES,
            })
            .collect();
        snapshot
    }

    /// `rank` is the place in the directory both by name and as listed: names are numbers.
    fn put(&self, snapshot: &mut Snapshot, kind: FileKind, entry: &Entry, rank: u32) {
        let first_extent = snapshot.extents.len() as u32;
        let extents = self.file_system.extents(entry.number);
        snapshot.extents.extend(extents.iter().map(|extent| self.extent(extent)));
        snapshot.files.push(SnapshotFile {
            inode: u64::from(entry.number),
            kind,
            links: 1,
            size_bytes: self.file_system.size_bytes(entry.number),
            birth_ns: entry.made_ns as i64,
            change_ns: entry.written_ns as i64,
            modify_ns: entry.written_ns as i64,
            directory: u64::from(self.directories[entry.directory as usize].number),
            readdir_rank: rank,
            name_rank: rank,
            first_extent,
            extents: extents.len() as u32,
        });
    }

    fn extent(&self, extent: &FileExtent) -> Extent {
        let block_bytes = u64::from(self.facts.block_bytes.max(1));
        let tail = !extent.bytes.is_multiple_of(block_bytes);
        Extent {
            logical_bytes: extent.offset_bytes,
            physical_bytes: extent.sector * SECTOR_BYTES,
            length_bytes: extent.bytes,
            flags: if tail { ExtentFlags::TAIL } else { ExtentFlags::default() },
        }
    }
}

/// What was made, nothing if there was no room.
fn settled<T>(
    result: Result<T, FileSystemError>,
    operation: &Operation,
) -> Result<Option<T>, AgeError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(FileSystemError::NoSpace | FileSystemError::NoInodes | FileSystemError::TooLarge) => {
            Ok(None)
        }
        Err(why) => Err(AgeError::Run(format!(
            "cannot {} number {} of the workload: {why}",
            operation.action.name(),
            operation.file
        ))),
    }
}

#[inline]
fn done(result: Result<(), FileSystemError>, operation: &Operation) -> Result<Outcome, AgeError> {
    match result {
        Ok(()) => Ok(Outcome::Done),
        refused => settled(refused, operation)
            .map(|done| done.map_or(Outcome::NoSpace, |()| Outcome::Done)),
    }
}

fn out_of_order(operation: &Operation) -> AgeError {
    AgeError::Input(format!(
        "the workload has a '{}' of number {}, which is not there then; check it with agewell \
         workload info",
        operation.action.name(),
        operation.file
    ))
}
