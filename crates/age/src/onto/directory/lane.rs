//! One of the concurrent writers: it does the operations of its streams, each stream in order.
//!
//! A stream behaves like a program that works on one file at a time: the file stays open until the
//! stream turns to another. What a lane knows of files is shared with the others, but a file
//! belongs to one stream within a segment, and a stream to one lane, so no two lanes meet there.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use super::data::Pool;
use super::places::{Places, file_name};
use crate::onto::Outcome;
use crate::onto::{Allocation, DirectoryOptions};
use crate::{Action, AgeError, Operation};

/// Files that all lanes together keep open, chosen by us: with the directories well below the 1,024
/// descriptors that a process usually may have.
pub(super) const OPEN_FILES_MAX: usize = 256;

/// What is known of a file.
pub(super) mod state {
    /// Not there.
    pub(in super::super) const ABSENT: u8 = 0;
    /// There.
    pub(in super::super) const LIVE: u8 = 1;
    /// The workload made it, but there was no room.
    pub(in super::super) const REFUSED: u8 = 2;
    /// There, but without all that was written to it.
    pub(in super::super) const SHORT: u8 = 3;
    /// There, although the workload removed it: even that took room.
    pub(in super::super) const LEFTOVER: u8 = 4;
    /// Removed by an earlier replay that was killed; the operation that did so comes again, and
    /// whatever comes before it finds nothing to do.
    pub(in super::super) const MISSING: u8 = 5;
}

/// An operation that a lane is to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// Which of the segment's operations.
    pub(super) index: u32,
    /// The directory that the file is in when its turn comes.
    pub(super) directory: u32,
    /// The stream that the file belongs to.
    pub(super) stream: u16,
}

/// What all lanes look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared<'a> {
    pub(super) places: &'a Places,
    pub(super) states: &'a [AtomicU8],
    pub(super) operations: &'a [Operation],
    pub(super) options: &'a DirectoryOptions,
}

#[derive(Debug)]
struct OpenFile {
    stream: u16,
    file: u32,
    used: u64,
    descriptor: OwnedFd,
}

/// One writer and its open files.
#[derive(Debug)]
pub(super) struct Lane {
    pool: Pool,
    read: Vec<u8>,
    open: Vec<OpenFile>,
    open_max: usize,
    turn: u64,
    name: String,
    pub(super) jobs: Vec<Job>,
    /// One a job, in the order of the jobs.
    pub(super) outcomes: Vec<Outcome>,
    turns: Vec<Turn>,
}

/// Where a stream has come to, when streams take turns.
#[derive(Debug, Clone, Copy)]
struct Turn {
    next: u32,
    end: u32,
    /// Bytes of the write that it is at that are written.
    written: u64,
}

impl Lane {
    pub(super) fn new(options: &DirectoryOptions) -> Self {
        let chunk = options.chunk_bytes as usize;
        Self {
            pool: Pool::new(options.data, chunk, options.seed),
            read: Vec::new(),
            open: Vec::new(),
            open_max: (OPEN_FILES_MAX / options.threads.max(1)).max(1),
            turn: 0,
            name: String::new(),
            jobs: Vec::new(),
            outcomes: Vec::new(),
            turns: Vec::new(),
        }
    }

    /// Does all jobs.
    pub(super) fn run(&mut self, shared: Shared) -> Result<(), AgeError> {
        self.outcomes.clear();
        self.outcomes.resize(self.jobs.len(), Outcome::Done);
        if shared.options.allocation == Allocation::AppendInterleaved {
            return self.run_in_turns(shared);
        }
        for position in 0..self.jobs.len() {
            self.outcomes[position] = self.whole(shared, self.jobs[position])?;
        }
        Ok(())
    }

    /// Streams take turns: an operation each, or a chunk of a write.
    fn run_in_turns(&mut self, shared: Shared) -> Result<(), AgeError> {
        // A stable sort: within a stream the order stays.
        self.jobs.sort_by_key(|job| job.stream);
        self.turns.clear();
        for (position, job) in (0_u32..).zip(&self.jobs) {
            match self.turns.last_mut() {
                Some(turn) if self.jobs[turn.next as usize].stream == job.stream => turn.end += 1,
                _ => self.turns.push(Turn { next: position, end: position + 1, written: 0 }),
            }
        }
        let mut turns = std::mem::take(&mut self.turns);
        while !turns.is_empty() {
            for turn in &mut turns {
                self.take_turn(shared, turn)?;
            }
            turns.retain(|turn| turn.next < turn.end);
        }
        self.turns = turns;
        Ok(())
    }

    fn take_turn(&mut self, shared: Shared, turn: &mut Turn) -> Result<(), AgeError> {
        let job = self.jobs[turn.next as usize];
        let operation = shared.operations[job.index as usize];
        let outcome = if operation.action == Action::Write {
            let left = operation.size_bytes - turn.written;
            let part = left.min(shared.options.chunk_bytes);
            let from = operation.offset_bytes.saturating_add(turn.written);
            let outcome = self.write(shared, job, &operation, from, part)?;
            turn.written += part;
            if outcome == Outcome::Done && turn.written < operation.size_bytes {
                return Ok(());
            }
            outcome
        } else {
            self.whole(shared, job)?
        };
        self.outcomes[turn.next as usize] = outcome;
        turn.next += 1;
        turn.written = 0;
        Ok(())
    }

    fn whole(&mut self, shared: Shared, job: Job) -> Result<Outcome, AgeError> {
        let operation = shared.operations[job.index as usize];
        let seen = shared.states[operation.file as usize].load(Ordering::Relaxed);
        if seen == state::MISSING {
            if operation.action == Action::Delete {
                shared.states[operation.file as usize].store(state::ABSENT, Ordering::Relaxed);
            }
            return Ok(Outcome::Done);
        }
        match operation.action {
            Action::Create => self.create(shared, job, &operation, seen),
            Action::Write => {
                let (offset, size) = (operation.offset_bytes, operation.size_bytes);
                self.write(shared, job, &operation, offset, size)
            }
            Action::Truncate => self.truncate(shared, job, &operation, seen),
            Action::Delete => self.delete(shared, job, &operation, seen),
            Action::Rename => self.rename(shared, job, &operation, seen),
            Action::SyncFile => self.sync_file(shared, job, &operation, seen),
            Action::Read => self.read(shared, job, &operation, seen),
            Action::MakeDirectory | Action::RemoveDirectory | Action::Sync => {
                unreachable!("lanes are given operations on files")
            }
        }
    }

    fn create(
        &mut self,
        shared: Shared,
        job: Job,
        operation: &Operation,
        seen: u8,
    ) -> Result<Outcome, AgeError> {
        let set = |value| shared.states[operation.file as usize].store(value, Ordering::Relaxed);
        let Some(directory) = shared.places.descriptor(operation.directory) else {
            set(state::REFUSED);
            return Ok(Outcome::Skipped);
        };
        file_name(operation.file, &mut self.name);
        let mut flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        flags |= if seen == state::LEFTOVER {
            OFlags::TRUNC
        } else {
            // What is there and not ours stays as it is.
            OFlags::EXCL
        };
        let mode = Mode::from_raw_mode(0o644);
        match rustix::fs::openat(directory, self.name.as_str(), flags, mode) {
            Ok(descriptor) => {
                set(state::LIVE);
                self.keep_open(job.stream, operation.file, descriptor);
                Ok(Outcome::Done)
            }
            Err(Errno::NOSPC | Errno::DQUOT) => {
                set(state::REFUSED);
                Ok(Outcome::NoSpace)
            }
            Err(why) => Err(failed("create", shared, job, operation, why)),
        }
    }

    fn write(
        &mut self,
        shared: Shared,
        job: Job,
        operation: &Operation,
        from_bytes: u64,
        size_bytes: u64,
    ) -> Result<Outcome, AgeError> {
        let seen = shared.states[operation.file as usize].load(Ordering::Relaxed);
        if seen == state::MISSING {
            return Ok(Outcome::Done);
        }
        let Some(open) = self.open(shared, job, operation, seen)? else {
            return Ok(Outcome::Skipped);
        };
        let done = if shared.options.allocation == Allocation::Fallocate {
            self.allocate(open, from_bytes, size_bytes)
        } else {
            self.write_bytes(open, operation, from_bytes, size_bytes)
        };
        match done {
            Ok(()) => Ok(Outcome::Done),
            Err(Errno::NOSPC | Errno::DQUOT) => {
                shared.states[operation.file as usize].store(state::SHORT, Ordering::Relaxed);
                Ok(Outcome::NoSpace)
            }
            Err(Errno::OPNOTSUPP) => Err(AgeError::Input(format!(
                "{}: this file system has no fallocate; use --allocate write",
                shared.places.path(0).display()
            ))),
            Err(why) => Err(failed("write", shared, job, operation, why)),
        }
    }

    fn allocate(&self, open: usize, from_bytes: u64, size_bytes: u64) -> Result<(), Errno> {
        if size_bytes == 0 {
            return Ok(());
        }
        let descriptor = &self.open[open].descriptor;
        rustix::fs::fallocate(descriptor, FallocateFlags::empty(), from_bytes, size_bytes)
    }

    fn write_bytes(
        &mut self,
        open: usize,
        operation: &Operation,
        from_bytes: u64,
        size_bytes: u64,
    ) -> Result<(), Errno> {
        let descriptor = &self.open[open].descriptor;
        let mut done = 0;
        while done < size_bytes {
            let at = from_bytes + done;
            let bytes = self.pool.bytes(operation.file, at, operation.time_ns, size_bytes - done);
            match rustix::io::pwrite(descriptor, bytes, at) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(written) => done += written as u64,
                Err(Errno::INTR) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    fn truncate(
        &mut self,
        shared: Shared,
        job: Job,
        operation: &Operation,
        seen: u8,
    ) -> Result<Outcome, AgeError> {
        let cut_to_nothing = operation.offset_bytes == 0;
        // A short file that is cut to nothing is as it should be again.
        let seen_as = if seen == state::SHORT && cut_to_nothing { state::LIVE } else { seen };
        let Some(open) = self.open(shared, job, operation, seen_as)? else {
            return Ok(Outcome::Skipped);
        };
        match rustix::fs::ftruncate(&self.open[open].descriptor, operation.offset_bytes) {
            Ok(()) => {
                shared.states[operation.file as usize].store(state::LIVE, Ordering::Relaxed);
                Ok(Outcome::Done)
            }
            Err(Errno::NOSPC | Errno::DQUOT) => {
                shared.states[operation.file as usize].store(state::SHORT, Ordering::Relaxed);
                Ok(Outcome::NoSpace)
            }
            Err(why) => Err(failed("truncate", shared, job, operation, why)),
        }
    }

    fn delete(
        &mut self,
        shared: Shared,
        job: Job,
        operation: &Operation,
        seen: u8,
    ) -> Result<Outcome, AgeError> {
        self.close(operation.file);
        let set = |value| shared.states[operation.file as usize].store(value, Ordering::Relaxed);
        if seen == state::REFUSED {
            set(state::ABSENT);
            return Ok(Outcome::Skipped);
        }
        file_name(operation.file, &mut self.name);
        let removed = match shared.places.descriptor(job.directory) {
            Some(directory) => {
                rustix::fs::unlinkat(directory, self.name.as_str(), AtFlags::empty())
            }
            None => Err(Errno::NOENT),
        };
        match removed {
            Ok(()) => set(state::ABSENT),
            // A copy-on-write file system needs room even for this.
            Err(Errno::NOSPC | Errno::DQUOT) => {
                set(state::LEFTOVER);
                return Ok(Outcome::NoSpace);
            }
            Err(why) => return Err(failed("remove", shared, job, operation, why)),
        }
        Ok(Outcome::Done)
    }

    fn rename(
        &mut self,
        shared: Shared,
        job: Job,
        operation: &Operation,
        seen: u8,
    ) -> Result<Outcome, AgeError> {
        if seen == state::REFUSED {
            return Ok(Outcome::Skipped);
        }
        if job.directory == operation.directory {
            // Its name is its number, and stays.
            return Ok(Outcome::Done);
        }
        file_name(operation.file, &mut self.name);
        let from = shared.places.descriptor(job.directory);
        let to = shared.places.descriptor(operation.directory);
        let name = self.name.as_str();
        let moved = match (from, to) {
            (Some(from), Some(to)) => rustix::fs::renameat(from, name, to, name),
            _ => Err(Errno::NOENT),
        };
        match moved {
            Ok(()) => Ok(Outcome::Done),
            Err(why) => {
                let full = matches!(why, Errno::NOSPC | Errno::DQUOT);
                let no_place = to.is_none() && why == Errno::NOENT;
                if !full && !no_place {
                    return Err(failed("move", shared, job, operation, why));
                }
                // It cannot be where the workload wants it, and must not be where it does not.
                let outcome = self.delete(shared, job, operation, seen)?;
                let states = &shared.states[operation.file as usize];
                if outcome == Outcome::Done {
                    states.store(state::REFUSED, Ordering::Relaxed);
                }
                Ok(if full { Outcome::NoSpace } else { Outcome::Skipped })
            }
        }
    }

    fn sync_file(
        &mut self,
        shared: Shared,
        job: Job,
        operation: &Operation,
        seen: u8,
    ) -> Result<Outcome, AgeError> {
        let Some(open) = self.open(shared, job, operation, seen)? else {
            return Ok(Outcome::Skipped);
        };
        match rustix::fs::fsync(&self.open[open].descriptor) {
            Ok(()) => Ok(Outcome::Done),
            Err(Errno::NOSPC | Errno::DQUOT) => Ok(Outcome::NoSpace),
            Err(why) => Err(failed("sync", shared, job, operation, why)),
        }
    }

    fn read(
        &mut self,
        shared: Shared,
        job: Job,
        operation: &Operation,
        seen: u8,
    ) -> Result<Outcome, AgeError> {
        let Some(open) = self.open(shared, job, operation, seen)? else {
            return Ok(Outcome::Skipped);
        };
        self.read.resize(shared.options.chunk_bytes as usize, 0);
        let mut done = 0;
        while done < operation.size_bytes {
            let length = (self.read.len() as u64).min(operation.size_bytes - done) as usize;
            let descriptor = &self.open[open].descriptor;
            let into = &mut self.read[..length];
            match rustix::io::pread(descriptor, into, operation.offset_bytes + done) {
                Ok(0) => break,
                Ok(got) => done += got as u64,
                Err(Errno::INTR) => {}
                Err(why) => return Err(failed("read", shared, job, operation, why)),
            }
        }
        Ok(Outcome::Done)
    }

    /// Where in `self.open` the file of `operation` is, opened if it was not; nothing if it is not
    /// to be touched.
    fn open(
        &mut self,
        shared: Shared,
        job: Job,
        operation: &Operation,
        seen: u8,
    ) -> Result<Option<usize>, AgeError> {
        if seen != state::LIVE {
            if seen == state::ABSENT {
                return Err(failed("use", shared, job, operation, Errno::NOENT));
            }
            return Ok(None);
        }
        self.turn += 1;
        let file = operation.file;
        if let Some(at) = self.open.iter().position(|open| open.file == file) {
            self.open[at].used = self.turn;
            return Ok(Some(at));
        }
        file_name(file, &mut self.name);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match shared.places.descriptor(job.directory) {
            Some(directory) => {
                rustix::fs::openat(directory, self.name.as_str(), flags, Mode::empty())
            }
            None => Err(Errno::NOENT),
        };
        match opened {
            Ok(descriptor) => Ok(Some(self.keep_open(job.stream, file, descriptor))),
            Err(why) => Err(failed("open", shared, job, operation, why)),
        }
    }

    /// Keeps `descriptor` in place of what its stream had open.
    fn keep_open(&mut self, stream: u16, file: u32, descriptor: OwnedFd) -> usize {
        self.turn += 1;
        let kept = OpenFile { stream, file, used: self.turn, descriptor };
        let mut place = self.open.iter().position(|open| open.stream == stream);
        if place.is_none() && self.open.len() >= self.open_max {
            place = (0..self.open.len()).min_by_key(|&at| self.open[at].used);
        }
        if let Some(at) = place {
            self.open[at] = kept;
            return at;
        }
        self.open.push(kept);
        self.open.len() - 1
    }

    fn close(&mut self, file: u32) {
        if let Some(at) = self.open.iter().position(|open| open.file == file) {
            self.open.swap_remove(at);
        }
    }

    /// Closes all files.
    pub(super) fn close_all(&mut self) {
        self.open.clear();
    }
}

fn failed(
    doing: &'static str,
    shared: Shared,
    job: Job,
    operation: &Operation,
    why: Errno,
) -> AgeError {
    let path = shared.places.file_path(job.directory, operation.file);
    AgeError::io(doing, &path)(why.into())
}
