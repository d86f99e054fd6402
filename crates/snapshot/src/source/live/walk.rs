//! The walk over a mounted tree, on several threads.
//!
//! A job is a directory to list, or a chunk of the files of a listed one. Jobs wait on a stack, so
//! that the walk goes down before it goes on and few directories are open at a time. What is found
//! does not depend on which thread did what: parts are sorted when they are put together.
//!
//! The walk stays on one device and one mount, follows no link, opens regular files and
//! directories only, reads no data and leaves access times alone where it may (`O_NOATIME`).
//!
//! A file that changed within the last second is asked about before and after its extents; of any
//! other one answer is enough, since a change would have moved its inode change time to now.
//!
//! Cost: four system calls a regular file (open, FIEMAP, statx, close), one for any other; of ext4
//! read by root, one for the inodes of 16 to 64 neighbouring regular files that have not changed
//! lately and have at most four extents.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::checkpoint::{Finished, Record, Unit, UnitKey};
use super::extent_map::{ExtentMap, is_unsupported};
use super::found::{Found, Place};
use super::kernel;
use super::listing::{LIST_BYTES, ListedFile, Listing};
use super::settled_inodes::SettledInodes;
use super::status::Status;
use crate::source::image::TableWindow;
use crate::source::{Progress, TakeProgress};
use crate::{ExtentFlags, FileKind, SnapshotError};

/// Files in a job: some milliseconds of work, so that threads share the largest directory and the
/// stack is hardly ever fought over; chosen by us. Checkpoints number these chunks.
const CHUNK_FILES: usize = 1024;
/// Time between two calls of the progress function; chosen by us: smooth for the eye, nothing for
/// the walk.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Files without an extent map, before one with a map, that make a file system one without; above
/// what a few files of a special kind explain; chosen by us.
const UNSUPPORTED_MAX: u64 = 64;
/// `FS_XFLAG_REALTIME` of Linux `include/uapi/linux/fs.h`.
const REALTIME: u32 = 1;

/// What to walk and how.
pub(super) struct Walk<'a> {
    /// As the user named it, for messages.
    pub(super) path: &'a Path,
    /// Type of the file system, for messages.
    pub(super) kind: &'a str,
    pub(super) names: bool,
    pub(super) sync: bool,
    pub(super) threads: usize,
    pub(super) block_bytes: u64,
    /// Files may lie on a second device, whose addresses mean nothing here (xfs).
    pub(super) realtime: bool,
    pub(super) files_in_all: Option<u64>,
    /// Inodes that need not be asked for, if there are such.
    pub(super) settled: Option<&'a SettledInodes>,
    /// Work that an earlier run has done.
    pub(super) finished: &'a Finished,
    /// Where to record work that is done.
    pub(super) record: Option<&'a Record>,
}

enum Job {
    Directory { parent: Arc<OwnedFd>, name: Box<CStr>, place: Place },
    Files { listing: Arc<Listing>, chunk: u32 },
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    /// Threads that work on a job, which may bring new ones.
    busy: usize,
    /// Threads that have not ended.
    running: usize,
    failure: Option<SnapshotError>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// There are jobs, or there will be none.
    jobs_wait: Condvar,
    /// A thread has ended.
    ended: Condvar,
    stop: AtomicBool,
    files: AtomicU64,
    /// Whether any file had an extent map.
    mapped: AtomicBool,
    /// Files that had none.
    unsupported: AtomicU64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A thread that panicked has left the queue whole; its panic is passed on at the end.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs_wait.notify_all();
    }

    fn fail(&self, error: SnapshotError) {
        self.lock().failure.get_or_insert(error);
        self.stop();
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn push(&self, jobs: impl Iterator<Item = Job>) {
        self.lock().jobs.extend(jobs);
        self.jobs_wait.notify_all();
    }

    /// The next job; `None` if there will be none. `busy` says that the caller ends one.
    fn next(&self, busy: bool) -> Option<Job> {
        let mut queue = self.lock();
        queue.busy -= usize::from(busy);
        loop {
            if self.is_stopped() {
                return None;
            }
            if let Some(job) = queue.jobs.pop() {
                queue.busy += 1;
                return Some(job);
            }
            if queue.busy == 0 {
                self.jobs_wait.notify_all();
                return None;
            }
            queue = self.jobs_wait.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Notifies the others when its thread ends, also by a panic.
struct Leaving<'a>(&'a Shared);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
        self.0.lock().running -= 1;
        self.0.ended.notify_all();
    }
}

impl Walk<'_> {
    /// Walks the tree of which `root` is the top, described by `status`.
    pub(super) fn run(
        &self,
        root: &Arc<OwnedFd>,
        status: &Status,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<Found>, SnapshotError> {
        let shared = Shared::default();
        shared.lock().running = self.threads;
        let mut top = Worker::new(self, &shared, status);
        let place = Place { directory: status.inode, readdir_rank: 0, name_rank: 0 };
        top.directory(root.clone(), place, c"");
        let (mut parts, mut result) = (vec![top.found], Ok(()));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads)
                .map(|_| scope.spawn(|| Worker::new(self, &shared, status).run()))
                .collect();
            result = self.tell(&shared, progress);
            for worker in workers {
                match worker.join() {
                    Ok(found) => parts.push(found),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        result?;
        if shared.unsupported.load(Ordering::Relaxed) > 0 && !shared.mapped.load(Ordering::Relaxed)
        {
            shared.fail(self.unsupported());
        }
        match shared.queue.into_inner().unwrap_or_else(PoisonError::into_inner).failure {
            Some(failure) => Err(failure),
            None => Ok(parts),
        }
    }

    fn unsupported(&self) -> SnapshotError {
        SnapshotError::Input(format!(
            "{}: {} does not tell where files lie (no FIEMAP); give a tree on a file system that \
             does (ext4, xfs, btrfs, ...) or an image",
            self.path.display(),
            self.kind
        ))
    }

    /// Reports how far the walk has come until every thread has ended, and once when they have: they
    /// may have ended before this begins.
    fn tell(&self, shared: &Shared, progress: &mut Progress<'_>) -> Result<(), SnapshotError> {
        let mut result = Ok(());
        let mut queue = shared.lock();
        loop {
            let running = queue.running > 0;
            if running {
                let waited = shared.ended.wait_timeout(queue, PROGRESS_INTERVAL);
                queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if result.is_ok() {
                drop(queue);
                let files = shared.files.load(Ordering::Relaxed);
                result = progress(&TakeProgress { files, files_in_all: self.files_in_all });
                if result.is_err() {
                    shared.stop();
                }
                queue = shared.lock();
            }
            if !running {
                return result;
            }
        }
    }
}

struct Worker<'a> {
    walk: &'a Walk<'a>,
    shared: &'a Shared,
    /// The device and mount that the walk stays on.
    device: (u32, u32),
    mount: u64,
    found: Found,
    /// Units of `found` that wait to be recorded.
    waiting: Vec<Unit>,
    map: ExtentMap,
    window: TableWindow,
    list_buffer: Vec<MaybeUninit<u8>>,
}

impl<'a> Worker<'a> {
    fn new(walk: &'a Walk<'a>, shared: &'a Shared, root: &Status) -> Self {
        Self {
            walk,
            shared,
            device: root.device,
            mount: root.mount,
            found: Found::default(),
            waiting: Vec::new(),
            map: ExtentMap::new(walk.sync),
            window: TableWindow::default(),
            list_buffer: vec![MaybeUninit::uninit(); LIST_BYTES],
        }
    }

    fn run(mut self) -> Found {
        let _leaving = Leaving(self.shared);
        let mut busy = false;
        while let Some(job) = self.shared.next(busy) {
            busy = true;
            match job {
                Job::Directory { parent, name, place } => self.entry(&parent, &name, place),
                Job::Files { listing, chunk } => self.chunk(&listing, chunk),
            }
        }
        if let Some(record) = self.walk.record
            && self.shared.is_stopped()
            && record.has_begun()
        {
            self.write_record(record);
        }
        self.found
    }

    /// Opens the directory `name` of `parent` and lists it.
    fn entry(&mut self, parent: &OwnedFd, name: &CStr, place: Place) {
        let status = match Status::of_entry(parent, name) {
            Ok(status) if self.is_elsewhere(&status) => {
                self.found.counts.elsewhere += 1;
                return;
            }
            Ok(status) if status.kind != FileKind::Directory => {
                self.found.counts.changed += 1;
                return;
            }
            Ok(status) => status,
            Err(error) => return self.missed(error),
        };
        match open_directory(parent, name) {
            Ok(directory) => self.directory(Arc::new(directory), place, name),
            Err(error) => {
                self.missed(error);
                if !is_vanished(error) {
                    self.push(&status, place, self.found.extents.len(), name);
                }
            }
        }
    }

    /// Takes in an open directory and makes jobs of its entries.
    fn directory(&mut self, directory: Arc<OwnedFd>, place: Place, name: &CStr) {
        let status = match Status::of_open(&*directory) {
            Ok(status) => status,
            Err(error) => return self.missed(error),
        };
        let first_extent = self.found.extents.len();
        // Directories of xfs and btrfs have no extent maps; that is no reason to complain.
        if self.map.read(&*directory, &mut self.found.extents).is_err() {
            self.found.extents.truncate(first_extent);
        }
        self.push(&status, place, first_extent, name);
        self.shared.files.fetch_add(1, Ordering::Relaxed);
        let listing = match Listing::read(directory, &status, &mut self.list_buffer) {
            Ok(listing) => Arc::new(listing),
            Err(error) => return self.missed(error),
        };
        let later = Status::of_open(&*listing.directory);
        if later.is_ok_and(|later| !status.unchanged(&later)) {
            self.found.counts.changed += 1;
        }
        let directories = listing.directories().map(|entry| Job::Directory {
            parent: listing.directory.clone(),
            name: entry.name.into(),
            place: entry.place,
        });
        let chunks = listing.file_count().div_ceil(CHUNK_FILES) as u32;
        let chunks = (0..chunks).rev().map(|chunk| Job::Files { listing: listing.clone(), chunk });
        self.shared.push(directories.chain(chunks));
    }

    /// Takes in a chunk of the files of a directory, or what an earlier run found of it.
    fn chunk(&mut self, listing: &Listing, chunk: u32) {
        let key = UnitKey { directory: listing.inode, change_ns: listing.change_ns, chunk };
        let (files, counts) = (self.found.files.len(), self.found.counts);
        if let Some(found) = self.walk.finished.get(&key) {
            self.found.absorb(found);
        } else {
            let start = chunk as usize * CHUNK_FILES;
            let settled_ns = settled_ns();
            // An inode is read after the name that leads to it: it may have become another file's.
            self.window.forget();
            for file in listing.files(start, CHUNK_FILES) {
                if self.shared.is_stopped() {
                    return;
                }
                self.file(&listing.directory, &file, settled_ns);
            }
            if let Some(record) = self.walk.record {
                self.waiting.push(Unit {
                    key,
                    files: files..self.found.files.len(),
                    counts: self.found.counts.since(counts),
                });
                if record.is_due(self.waiting.iter().map(|unit| unit.files.len()).sum()) {
                    self.write_record(record);
                }
            }
        }
        let added = self.found.files.len() - files;
        self.shared.files.fetch_add(added as u64, Ordering::Relaxed);
    }

    fn write_record(&mut self, record: &Record) {
        let units = std::mem::take(&mut self.waiting);
        if let Err(error) = record.append(&self.found, &units) {
            self.shared.fail(error);
        }
    }

    /// Takes in an entry that is no directory; what changed before `settled_ns` does not change
    /// while it is read.
    fn file(&mut self, directory: &OwnedFd, file: &ListedFile<'_>, settled_ns: i64) {
        let first_extent = self.found.extents.len();
        if file.is_regular {
            if let Some(status) = self.walk.settled.and_then(|settled| {
                settled.file(file.inode, &mut self.window, &mut self.found.extents)
            }) {
                return self.push(&status, file.place, first_extent, file.name);
            }
            match self.map_settled(directory, file.name, settled_ns) {
                Ok(Some(status)) if self.is_elsewhere(&status) => {
                    self.found.extents.truncate(first_extent);
                    self.found.counts.elsewhere += 1;
                    return;
                }
                Ok(Some(status)) => return self.push(&status, file.place, first_extent, file.name),
                Err(error) if is_unsupported(error) => self.count_unsupported(),
                Ok(None) | Err(_) => {}
            }
            self.found.extents.truncate(first_extent);
        }
        self.file_with_care(directory, file);
    }

    /// Appends the extents of a regular file and returns what it is, unless it changed so lately
    /// that the two may not belong together.
    fn map_settled(
        &mut self,
        directory: &OwnedFd,
        name: &CStr,
        settled_ns: i64,
    ) -> rustix::io::Result<Option<Status>> {
        let opened = open_file(directory, name)?;
        let consistent = self.map_file(&opened)?;
        let status = Status::of_open(&opened)?;
        let settled = consistent && status.change_ns < settled_ns;
        Ok((settled && status.kind == FileKind::Regular).then_some(status))
    }

    /// Takes in an entry that is no directory by asking what it is before and after its extents.
    fn file_with_care(&mut self, directory: &OwnedFd, file: &ListedFile<'_>) {
        let before = match Status::of_entry(directory, file.name) {
            Ok(status) if self.is_elsewhere(&status) => {
                self.found.counts.elsewhere += 1;
                return;
            }
            Ok(status) if status.kind == FileKind::Directory => {
                self.found.counts.changed += 1;
                return;
            }
            Ok(status) => status,
            Err(error) => return self.missed(error),
        };
        let first_extent = self.found.extents.len();
        let mut status = before;
        if before.kind == FileKind::Regular && before.allocated_bytes > 0 {
            match self.map_changing(directory, file.name, &before) {
                Ok(after) => status = after,
                Err(error) => {
                    self.missed(error);
                    if is_vanished(error) {
                        self.found.extents.truncate(first_extent);
                        return;
                    }
                    self.found.extents.truncate(first_extent);
                    let bytes = before.allocated_bytes.next_multiple_of(self.walk.block_bytes);
                    self.found.push_unknown(bytes);
                }
            }
        }
        self.push(&status, file.place, first_extent, file.name);
    }

    /// Appends the extents of the file `name`; returns what it is, after any change meanwhile.
    fn map_changing(
        &mut self,
        directory: &OwnedFd,
        name: &CStr,
        before: &Status,
    ) -> rustix::io::Result<Status> {
        let opened = open_file(directory, name)?;
        let consistent = self.map_file(&opened)?;
        let after = Status::of_open(&opened)?;
        if consistent && before.unchanged(&after) {
            return Ok(*before);
        }
        self.found.counts.changed += 1;
        Ok(after)
    }

    /// Appends the extents of an open file; `false` if they contradicted each other.
    fn map_file(&mut self, opened: &OwnedFd) -> rustix::io::Result<bool> {
        let first_extent = self.found.extents.len();
        let consistent = self.map.read(opened, &mut self.found.extents)?;
        if !self.shared.mapped.load(Ordering::Relaxed) {
            self.shared.mapped.store(true, Ordering::Relaxed);
        }
        if self.walk.realtime && kernel::attributes(opened)? & REALTIME != 0 {
            for extent in &mut self.found.extents[first_extent..] {
                extent.physical_bytes = 0;
                extent.flags = extent.flags.with(ExtentFlags::UNKNOWN);
            }
        }
        Ok(consistent)
    }

    fn count_unsupported(&self) {
        let before = self.shared.unsupported.fetch_add(1, Ordering::Relaxed);
        if before + 1 >= UNSUPPORTED_MAX && !self.shared.mapped.load(Ordering::Relaxed) {
            self.shared.fail(self.walk.unsupported());
        }
    }

    fn push(&mut self, status: &Status, place: Place, first_extent: usize, name: &CStr) {
        let name = self.walk.names.then_some(name.to_bytes());
        self.found.push(status, place, first_extent, name);
    }

    fn is_elsewhere(&self, status: &Status) -> bool {
        // The same device may be mounted below itself; what is there is found at its own place.
        status.device != self.device || status.mount != self.mount
    }

    /// Counts an entry that could not be read, or ends the walk where that cannot be the entry's
    /// fault.
    fn missed(&mut self, error: Errno) {
        if is_vanished(error) {
            self.found.counts.vanished += 1;
        } else if matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM) {
            self.shared.fail(SnapshotError::Run(format!(
                "{}: too many directories are open at a time ({error}); raise the limit of open \
                 files (ulimit -n)",
                self.walk.path.display()
            )));
        } else {
            self.found.counts.unreadable += 1;
        }
    }
}

/// Whether an error says that the entry is not there any more, or something else in its place.
fn is_vanished(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::STALE | Errno::LOOP | Errno::NOTDIR)
}

/// Opens the file `name` of `directory` for reading.
fn open_file(directory: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    // NONBLOCK: what was a regular file a moment ago may be a pipe that no one writes.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty())
}

/// A time such that a file whose inode changed before it has not been changed since now: one
/// second ago, many ticks of the coarse clock that file systems stamp with; chosen by us.
#[expect(
    clippy::disallowed_methods,
    reason = "decides only whether a file is asked about once or twice"
)]
pub(super) fn settled_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let settled = now.saturating_sub(Duration::from_secs(1));
    i64::try_from(settled.as_nanos()).unwrap_or(i64::MIN)
}

/// Opens the directory `name` of `parent` without touching its access time, if that is allowed.
pub(super) fn open_directory(parent: impl AsFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(&parent, name, flags | OFlags::NOATIME, Mode::empty()) {
        // Only its owner and root may leave the access time alone.
        Err(Errno::PERM) => openat(&parent, name, flags, Mode::empty()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::mem::MaybeUninit;
    use std::sync::Arc;

    use super::{Finished, LIST_BYTES, Listing, Shared, Status, Walk, Worker, open_directory};

    /// Entries that go, or become something else, between the listing and the look at them are
    /// counted and left out; the rest are there.
    #[test]
    fn entries_that_go() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| folder.path().join(name);
        for name in ["gone", "link", "directory", "stays"] {
            fs::write(path(name), b"").expect("there is room");
        }
        let finished = Finished::new();
        let walk = Walk {
            path: folder.path(),
            kind: "any",
            names: true,
            sync: false,
            threads: 1,
            block_bytes: 4096,
            realtime: false,
            files_in_all: None,
            settled: None,
            finished: &finished,
            record: None,
        };
        let name = std::ffi::CString::new(folder.path().to_str().expect("text")).expect("no zero");
        let directory = Arc::new(open_directory(rustix::fs::CWD, &name).expect("it is there"));
        let status = Status::of_open(&*directory).expect("it is open");
        let mut buffer = vec![MaybeUninit::uninit(); LIST_BYTES];
        let listing = Listing::read(directory, &status, &mut buffer).expect("it can be listed");
        for name in ["gone", "link", "directory"] {
            fs::remove_file(path(name)).expect("it was made");
        }
        std::os::unix::fs::symlink("stays", path("link")).expect("there is room");
        fs::create_dir(path("directory")).expect("there is room");
        let shared = Shared::default();
        let mut worker = Worker::new(&walk, &shared, &status);
        worker.chunk(&listing, 0);
        let counts = worker.found.counts;
        assert_eq!((counts.vanished, counts.changed), (1, 1));
        let names: Vec<_> =
            (0..worker.found.files.len()).map(|file| worker.found.name(file)).collect();
        // A link in place of a file is reported as the link that it is.
        assert_eq!(names.len(), 2);
        assert!(names.contains(&&b"stays"[..]) && names.contains(&&b"link"[..]));
    }
}
