//! A directory of a real mounted file system as a target.
//!
//! Operations become system calls below the given directory and nowhere else: every path starts at
//! its descriptor and follows no link. Files are called after their numbers (`f0000002a` in
//! `d00000003`), so that the order of names is the order of numbers.
//!
//! Operations are taken in segments. A segment ends at a sync, where a number of a directory or
//! file comes to stand for another one, and where it would need too many directories at once.
//! Within a segment directories are made first and removed last, and between that each stream does
//! its operations in order. Streams are divided among threads; where segments end does not depend
//! on their number. Cost: one or two system calls an operation, one a chunk of a write.
//!
//! Invariants: within a segment every file belongs to one stream; a directory is pinned (kept
//! open) as long as the segment lasts.

mod data;
mod lane;
mod layout;
mod places;
mod rollback;

pub(crate) use self::data::Pool;
pub(crate) use self::places::{directory_name, file_name};

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use self::lane::{Job, Lane, Shared, state};
use self::layout::Sample;
use self::places::{Places, Presence, is_ours};
use super::{DirectoryOptions, LayoutCounts, Outcome, Refusals, Target, Usage};
use crate::source::{self, TakeOptions};
use crate::{Action, AgeError, Operation, Snapshot};

/// The longest write call, chosen by us: each lane keeps a pool of this size.
const CHUNK_BYTES_MAX: u64 = 64 << 20;

/// The most writers at once, chosen by us: each has its share of the open files.
const THREADS_MAX: usize = 64;

/// Directories that a segment may need, chosen by us: two thirds of what is kept open, so that a
/// path's upper parts find room too.
const SEGMENT_DIRECTORIES_MAX: usize = 256;

/// What `mkfs.ext4` makes in every new file system.
const LOST_AND_FOUND: &[u8] = b"lost+found";

const NO_SEGMENT: u32 = 0;

#[derive(Debug, Clone, Copy)]
struct FilePlace {
    directory: u32,
    /// The last segment that touched it.
    segment: u32,
    /// The stream it belongs to: that which made it.
    stream: u16,
}

/// A directory of a mounted file system.
#[derive(Debug)]
pub struct DirectoryTarget {
    path: PathBuf,
    options: DirectoryOptions,
    places: Places,
    files: Vec<FilePlace>,
    states: Vec<AtomicU8>,
    lanes: Vec<Lane>,
    segment: u32,
    /// Directories to be removed at the end of the segment: where in the operations, which.
    removals: Vec<(u32, u32)>,
    /// The last segment that removed or made each directory.
    remade: Vec<u32>,
    sample: Sample,
}

impl DirectoryTarget {
    /// The directory at `path`, once it is seen to be fit for it.
    ///
    /// # Errors
    /// If it is not a directory, is on the system's own disk or not empty without being allowed to
    /// be, or cannot be opened; if the options make no sense.
    pub fn open(path: &Path, options: DirectoryOptions) -> Result<Self, AgeError> {
        let target = Self::reopen(path, options)?;
        refuse_occupied(path, &target.places, target.options.allow_occupied)?;
        Ok(target)
    }

    /// The directory at `path`, whatever an earlier replay left in it.
    ///
    /// # Errors
    /// As [`DirectoryTarget::open`], but for what is in it.
    pub fn reopen(path: &Path, options: DirectoryOptions) -> Result<Self, AgeError> {
        check(&options)?;
        let root = open_root(path, &options)?;
        let threads = options.threads;
        let lanes = (0..threads).map(|_| Lane::new(&options)).collect();
        Ok(Self {
            path: path.to_owned(),
            places: Places::new(path.to_owned(), root),
            files: Vec::new(),
            states: Vec::new(),
            lanes,
            segment: NO_SEGMENT,
            removals: Vec::new(),
            remade: Vec::new(),
            sample: Sample::default(),
            options,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it is used.
    #[must_use]
    pub fn options(&self) -> &DirectoryOptions {
        &self.options
    }

    /// Bytes of a block of the file system.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub fn block_bytes(&self) -> Result<u64, AgeError> {
        let facts = rustix::fs::fstatvfs(self.places.root())
            .map_err(|why| AgeError::io("ask", &self.path)(why.into()))?;
        Ok(facts.f_frsize.max(1))
    }

    /// How many of `operations`, from the first, make a segment; their jobs go to the lanes.
    fn begin_segment(
        &mut self,
        operations: &[Operation],
        outcomes: &mut [Outcome],
    ) -> Result<usize, AgeError> {
        self.segment += 1;
        self.places.begin_segment();
        self.removals.clear();
        for lane in &mut self.lanes {
            lane.jobs.clear();
        }
        for (index, operation) in operations.iter().enumerate() {
            if self.places.pinned > SEGMENT_DIRECTORIES_MAX || !self.fits(operation) {
                return Ok(index);
            }
            match operation.action {
                Action::Sync => return Ok(index.max(1)),
                Action::MakeDirectory => outcomes[index] = self.make_directory(operation)?,
                Action::RemoveDirectory => {
                    self.mark_remade(operation.file);
                    self.removals.push((index as u32, operation.file));
                }
                _ => self.hand_to_lane(index as u32, operation)?,
            }
        }
        Ok(operations.len())
    }

    /// Whether `operation` can be done within the segment without minding what came before in it,
    /// but for the operations of its own stream.
    fn fits(&self, operation: &Operation) -> bool {
        match operation.action {
            Action::MakeDirectory => self.remade_segment(operation.file) != self.segment,
            Action::Create => {
                let Some(file) = self.files.get(operation.file as usize) else { return true };
                file.segment != self.segment || file.stream == operation.stream
            }
            _ => true,
        }
    }

    fn remade_segment(&self, directory: u32) -> u32 {
        self.remade.get(directory as usize).copied().unwrap_or(NO_SEGMENT)
    }

    fn mark_remade(&mut self, directory: u32) {
        let index = directory as usize;
        if index >= self.remade.len() {
            self.remade.resize(index + 1, NO_SEGMENT);
        }
        self.remade[index] = self.segment;
    }

    fn make_directory(&mut self, operation: &Operation) -> Result<Outcome, AgeError> {
        let (directory, parent) = (operation.file, operation.directory);
        if !self.places.pin(parent)? {
            self.places.set(directory, parent, Presence::Refused);
            return Ok(Outcome::Skipped);
        }
        let (presence, outcome) = match self.places.make(directory, parent) {
            Ok(()) => (Presence::Live, Outcome::Done),
            Err(Errno::NOSPC | Errno::DQUOT) => (Presence::Refused, Outcome::NoSpace),
            Err(why) => {
                self.places.set(directory, parent, Presence::Absent);
                let path = self.places.path(directory);
                return Err(AgeError::io("make", &path)(why.into()));
            }
        };
        self.places.set(directory, parent, presence);
        Ok(outcome)
    }

    fn hand_to_lane(&mut self, index: u32, operation: &Operation) -> Result<(), AgeError> {
        let number = operation.file as usize;
        if number >= self.files.len() {
            let nowhere = FilePlace { directory: 0, segment: NO_SEGMENT, stream: 0 };
            self.files.resize(number + 1, nowhere);
            self.states.resize_with(number + 1, || AtomicU8::new(state::ABSENT));
        }
        let file = &mut self.files[number];
        if operation.action == Action::Create {
            file.stream = operation.stream;
            file.directory = operation.directory;
        }
        file.segment = self.segment;
        let job = Job { index, directory: file.directory, stream: file.stream };
        if operation.action == Action::Rename {
            file.directory = operation.directory;
            self.places.pin(operation.directory)?;
        }
        self.places.pin(job.directory)?;
        let lanes = self.lanes.len();
        self.lanes[usize::from(job.stream) % lanes].jobs.push(job);
        self.sample.note(operation);
        Ok(())
    }

    /// Lets the lanes do what they were handed.
    fn run_lanes(
        &mut self,
        operations: &[Operation],
        outcomes: &mut [Outcome],
    ) -> Result<(), AgeError> {
        let shared = Shared {
            places: &self.places,
            states: &self.states,
            operations,
            options: &self.options,
        };
        let busy = self.lanes.iter().filter(|lane| !lane.jobs.is_empty()).count();
        let results: Vec<Result<(), AgeError>> = if busy <= 1 {
            let waiting = self.lanes.iter_mut().filter(|lane| !lane.jobs.is_empty());
            waiting.map(|lane| lane.run(shared)).collect()
        } else {
            std::thread::scope(|scope| {
                let waiting = self.lanes.iter_mut().filter(|lane| !lane.jobs.is_empty());
                let threads: Vec<_> =
                    waiting.map(|lane| scope.spawn(move || lane.run(shared))).collect();
                let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
                joined.map(|done| done.expect("a lane does not panic")).collect()
            })
        };
        results.into_iter().collect::<Result<(), AgeError>>()?;
        for lane in &self.lanes {
            for (job, outcome) in lane.jobs.iter().zip(&lane.outcomes) {
                outcomes[job.index as usize] = *outcome;
            }
        }
        Ok(())
    }

    fn remove_directories(&mut self, outcomes: &mut [Outcome]) -> Result<(), AgeError> {
        for (index, directory) in std::mem::take(&mut self.removals) {
            outcomes[index as usize] = self.remove_directory(directory)?;
        }
        Ok(())
    }

    fn remove_directory(&mut self, directory: u32) -> Result<Outcome, AgeError> {
        let presence = self.places.presence(directory);
        if presence == Presence::Absent {
            return Err(AgeError::Input(format!(
                "{}: the workload removes directory {directory}, which it has not made; check it \
                 with agewell workload info",
                self.path.display()
            )));
        }
        let parent = self.places.parent(directory);
        let reachable = self.places.pin(parent)?;
        let mut removed = if reachable { self.places.remove(directory) } else { Err(Errno::NOENT) };
        if removed == Err(Errno::NOTEMPTY) && self.any_leftover() {
            // What could not be removed for want of room.
            self.empty(directory)?;
            removed = self.places.remove(directory);
        }
        let outcome = match removed {
            Ok(()) => Outcome::Done,
            Err(Errno::NOENT) if presence == Presence::Refused => Outcome::Skipped,
            Err(Errno::NOSPC | Errno::DQUOT) => return Ok(Outcome::NoSpace),
            Err(why) => {
                let path = self.places.path(directory);
                return Err(AgeError::io("remove", &path)(why.into()));
            }
        };
        self.places.set(directory, parent, Presence::Absent);
        Ok(outcome)
    }

    fn any_leftover(&self) -> bool {
        self.states.iter().any(|seen| seen.load(Ordering::Relaxed) == state::LEFTOVER)
    }

    /// Removes the files in `directory`, which are ours; directories in it are removed likewise.
    fn empty(&mut self, directory: u32) -> Result<(), AgeError> {
        let path = self.places.path(directory);
        let fail = |why: Errno| AgeError::io("empty", &path)(why.into());
        for lane in &mut self.lanes {
            lane.close_all();
        }
        if !self.places.pin(directory)? {
            return Ok(());
        }
        let Some(at) = self.places.descriptor(directory) else { return Ok(()) };
        remove_below(at).map_err(fail)
    }

    /// Everything so far to the device.
    fn sync(&mut self) -> Result<Outcome, AgeError> {
        match rustix::fs::syncfs(self.places.root()) {
            Ok(()) => Ok(Outcome::Done),
            Err(Errno::NOSPC | Errno::DQUOT) => Ok(Outcome::NoSpace),
            Err(why) => Err(AgeError::io("sync", &self.path)(why.into())),
        }
    }
}

/// Removes all that is below `at`, files with names like ours and directories.
pub(crate) fn remove_below(at: std::os::fd::BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let readable = rustix::fs::openat(at, ".", flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&readable)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    for name in names {
        match rustix::fs::unlinkat(&readable, &name, rustix::fs::AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR) => {
                let below = rustix::fs::openat(&readable, &name, flags, Mode::empty())?;
                remove_below(std::os::fd::AsFd::as_fd(&below))?;
                rustix::fs::unlinkat(&readable, &name, rustix::fs::AtFlags::REMOVEDIR)?;
            }
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

impl Target for DirectoryTarget {
    fn apply(&mut self, operation: &Operation) -> Result<Outcome, AgeError> {
        let mut outcomes = Vec::with_capacity(1);
        self.apply_all(std::slice::from_ref(operation), &mut outcomes)?;
        Ok(outcomes[0])
    }

    fn apply_all(
        &mut self,
        operations: &[Operation],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), AgeError> {
        outcomes.clear();
        outcomes.resize(operations.len(), Outcome::Done);
        let mut done = 0;
        while done < operations.len() {
            let rest = &operations[done..];
            let outcomes = &mut outcomes[done..];
            if rest[0].action == Action::Sync {
                outcomes[0] = self.sync()?;
                done += 1;
                continue;
            }
            let taken = self.begin_segment(rest, outcomes)?;
            self.run_lanes(&rest[..taken], outcomes)?;
            self.remove_directories(outcomes)?;
            done += taken;
        }
        Ok(())
    }

    fn assume(&mut self, operations: &[Operation]) -> Result<(), AgeError> {
        for operation in operations {
            match operation.action {
                Action::MakeDirectory => {
                    self.places.set(operation.file, operation.directory, Presence::Live);
                }
                Action::RemoveDirectory => {
                    self.places.set(operation.file, operation.directory, Presence::Absent);
                }
                Action::Sync => {}
                _ => self.assume_file(operation),
            }
        }
        Ok(())
    }

    fn roll_back(&mut self) -> Result<(), AgeError> {
        self.take_back()
    }

    fn finish(&mut self) -> Result<(), AgeError> {
        let missing = |seen: &&AtomicU8| seen.load(Ordering::Relaxed) == state::MISSING;
        let count = self.states.iter().filter(missing).count();
        if count == 0 {
            return Ok(());
        }
        Err(AgeError::Run(format!(
            "{}: {count} files were gone when the replay was resumed, and the workload does not \
             remove them; someone else did, or power was lost: empty the target and begin again",
            self.path.display()
        )))
    }

    fn refusals(&self) -> Refusals {
        let numbered = |wanted: u8| {
            let states = (0_u32..).zip(&self.states);
            states
                .filter(|(_, seen)| seen.load(Ordering::Relaxed) == wanted)
                .map(|(file, _)| file)
                .collect()
        };
        Refusals {
            files: numbered(state::REFUSED),
            short_files: numbered(state::SHORT),
            leftover_files: numbered(state::LEFTOVER),
            directories: self.places.refused(),
        }
    }

    fn restore(&mut self, refusals: &Refusals) {
        let marks = [
            (&refusals.files, state::REFUSED),
            (&refusals.short_files, state::SHORT),
            (&refusals.leftover_files, state::LEFTOVER),
        ];
        for (files, mark) in marks {
            for &file in files {
                if let Some(seen) = self.states.get(file as usize) {
                    seen.store(mark, Ordering::Relaxed);
                }
            }
        }
        for &directory in &refusals.directories {
            if self.places.presence(directory) == Presence::Live {
                self.places.set(directory, self.places.parent(directory), Presence::Refused);
            }
        }
    }

    fn usage(&mut self) -> Result<Usage, AgeError> {
        let facts = rustix::fs::fstatvfs(self.places.root())
            .map_err(|why| AgeError::io("ask", &self.path)(why.into()))?;
        // As df counts: what is kept for the system's own needs is no room at all.
        let used_bytes = facts.f_blocks.saturating_sub(facts.f_bfree) * facts.f_frsize;
        Ok(Usage { total_bytes: used_bytes + facts.f_bavail * facts.f_frsize, used_bytes })
    }

    fn layout_counts(&mut self) -> Result<LayoutCounts, AgeError> {
        self.sync()?;
        self.measure(false)
    }

    fn layout_estimate(&mut self) -> Result<LayoutCounts, AgeError> {
        self.measure(true)
    }

    fn snapshot(&mut self) -> Result<Snapshot, AgeError> {
        self.sync()?;
        let options = TakeOptions { now_ns: self.options.now_ns, ..TakeOptions::default() };
        source::take(&self.path, &options, &mut |_| Ok(()))
    }
}

impl DirectoryTarget {
    fn assume_file(&mut self, operation: &Operation) {
        let number = operation.file as usize;
        if number >= self.files.len() {
            let nowhere = FilePlace { directory: 0, segment: NO_SEGMENT, stream: 0 };
            self.files.resize(number + 1, nowhere);
            self.states.resize_with(number + 1, || AtomicU8::new(state::ABSENT));
        }
        let file = &mut self.files[number];
        let state = &self.states[number];
        match operation.action {
            Action::Create => {
                file.stream = operation.stream;
                file.directory = operation.directory;
                state.store(state::LIVE, Ordering::Relaxed);
            }
            Action::Rename => file.directory = operation.directory,
            Action::Delete => state.store(state::ABSENT, Ordering::Relaxed),
            _ => {}
        }
        self.sample.note(operation);
    }
}

fn check(options: &DirectoryOptions) -> Result<(), AgeError> {
    if !(1..=CHUNK_BYTES_MAX).contains(&options.chunk_bytes) {
        return Err(AgeError::Input(format!(
            "a write call of {} bytes; use 1 B to 64 MiB",
            options.chunk_bytes
        )));
    }
    if !(1..=THREADS_MAX).contains(&options.threads) {
        return Err(AgeError::Input(format!(
            "{} threads; use 1 to {THREADS_MAX}",
            options.threads
        )));
    }
    Ok(())
}

fn open_root(path: &Path, options: &DirectoryOptions) -> Result<OwnedFd, AgeError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(path, flags, Mode::empty()).map_err(|why| match why {
        Errno::NOENT => AgeError::Input(format!(
            "{}: there is no such directory; make it, or mount the file system first",
            path.display()
        )),
        Errno::NOTDIR => AgeError::Input(format!(
            "{}: not a directory; name a directory of the file system to age",
            path.display()
        )),
        why => AgeError::io("open", path)(why.into()),
    })?;
    let ask = |why: Errno| AgeError::io("ask", path)(why.into());
    let facts = rustix::fs::fstat(&root).map_err(ask)?;
    let system = rustix::fs::stat("/").map_err(ask)?;
    if facts.st_dev == system.st_dev && !options.allow_system_disk {
        return Err(AgeError::Input(format!(
            "{}: on the disk that the running system stands on, which would be filled and aged; \
             use another file system, or say --allow-system-disk",
            path.display()
        )));
    }
    Ok(root)
}

/// Refuses what is not empty; if that is allowed, what holds a name that could be taken for ours.
fn refuse_occupied(path: &Path, places: &Places, allowed: bool) -> Result<(), AgeError> {
    let list = |why: Errno| AgeError::io("list", path)(why.into());
    for entry in Dir::read_from(places.root()).map_err(list)? {
        let entry = entry.map_err(list)?;
        let name = entry.file_name().to_bytes();
        if allowed {
            if is_ours(name) {
                return Err(AgeError::Input(format!(
                    "{}: it holds '{}', a name such as the replay gives; use a directory without",
                    path.display(),
                    String::from_utf8_lossy(name)
                )));
            }
            continue;
        }
        if !matches!(name, b"." | b"..") && name != LOST_AND_FOUND {
            return Err(AgeError::Input(format!(
                "{}: not empty (it holds '{}'); empty it, go on with --resume, or say \
                 --allow-occupied to leave what is there alone",
                path.display(),
                String::from_utf8_lossy(name).escape_debug()
            )));
        }
    }
    Ok(())
}
