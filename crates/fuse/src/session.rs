//! The loop: a request out of the kernel, the file system asked, the answer back.

mod answer;
mod pages;

use std::os::fd::OwnedFd;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use thiserror::Error;

use crate::device::Device;
use crate::file_system::FileSystem;
use crate::protocol::{
    self, Dialect, Initialise, Initialised, MAJOR, MINOR, MINOR_MIN, Operation, Validity,
    WRITE_HEADER, capability,
};
use crate::reply::Reply;
use answer::Worker;
use pages::{PAGE, Pages};

/// What is asked for, where the kernel has it.
///
/// Not among them: `ATOMIC_O_TRUNC`, for a file is opened without a request, so that cutting it off needs
/// one of its own; `WRITEBACK_CACHE`, because then the kernel owns sizes and times; `ASYNC_DIO`, with which
/// the kernel neither syncs behind an asynchronous direct write of an `O_DSYNC` file nor forgets what
/// others have read into the page cache meanwhile (Linux 6.18); locks, which the kernel
/// keeps by itself where nobody asks for them; `SUBMOUNTS`, `SPLICE_*`, and the older `HANDLE_KILLPRIV`,
/// which newer kernels do not offer together with its successor.
const WANTED: u64 = capability::ASYNC_READ
    | capability::EXPORT_SUPPORT
    | capability::BIG_WRITES
    | capability::DONT_MASK
    | capability::IOCTL_DIRECTORIES
    | capability::READ_DIRECTORY_PLUS
    | capability::READ_DIRECTORY_PLUS_AUTO
    | capability::NO_OPEN
    | capability::PARALLEL_DIRECTORIES
    | capability::POSIX_ACL
    | capability::MAX_PAGES
    | capability::CACHE_SYMLINKS
    | capability::NO_OPENDIR
    | capability::HANDLE_KILLPRIV_V2
    | capability::SETXATTR_EXTENDED
    | capability::INIT_EXTENDED
    | capability::ALLOW_IDMAP;

/// Without these nothing would be right: Linux 5.4 has them.
const NEEDED: u64 = capability::NO_OPEN | capability::NO_OPENDIR | capability::MAX_PAGES;

/// Requests that wait when the kernel asks for room and are answered first. It hands out eight others
/// before a `FORGET` that waits (`fuse_dev_do_read`, Linux 6.18), and what was removed just before is only free when
/// that is done.
const OVERTAKEN_MAX: usize = 16;

/// How requests are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Threads that read requests and answer them, at least 1. On two processors a second one costs more
    /// in waking than it gives (`docs/internals/fuse.md`); it pays where the file system waits.
    pub threads: usize,
    /// The longest write and read, bytes: whole pages. Kernels cut it to 256 pages.
    pub write_max: u32,
    /// For how long the kernel may believe names and attributes without asking again. All changes pass it,
    /// so this may be long; it is short only where something else changes files.
    pub validity: Duration,
    /// Requests at a time that nobody waits for, such as reading ahead.
    pub background_max: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 1,
            // 256 pages, the kernel's own limit (`fs.fuse.max_pages_limit`).
            write_max: 1 << 20,
            // A day, chosen by us: nothing but the kernel changes files.
            validity: Duration::from_secs(24 * 3600),
            // Chosen by us: 64 reads of 1 MiB keep any drive busy; the kernel's own is 12.
            background_max: 64,
        }
    }
}

/// Why a session could not be, or did not end well.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The kernel speaks another protocol.
    #[error("the kernel speaks FUSE {major}.{minor}; {MAJOR}.{MINOR_MIN} (Linux 5.4) is needed")]
    Version {
        /// Its version.
        major: u32,
        /// Likewise.
        minor: u32,
    },
    /// It lacks what is needed.
    #[error("the kernel lacks parts of FUSE that are needed (flags {missing:#x} of FUSE_INIT)")]
    Capabilities {
        /// [`capability`].
        missing: u64,
    },
    /// No request could be read.
    #[error("requests cannot be read from /dev/fuse: {0}")]
    Receive(Errno),
    /// The file system ended with an error: not all of it is on the medium.
    #[error("the end of the mount: {0}")]
    Destroy(Errno),
}

/// A mount that is served.
#[derive(Debug)]
pub struct Session {
    device: Arc<Device>,
    options: Options,
}

/// What its threads share.
#[derive(Debug, Default)]
struct Shared {
    /// The answer to the last request, if the kernel sent it.
    destroyed: Mutex<Option<Receiver<Result<(), Errno>>>>,
    /// Set by the first request.
    dialect: OnceLock<Dialect>,
}

impl Session {
    /// Over `/dev/fuse`, open and mounted ([`crate::mount::mount`]).
    ///
    /// # Panics
    ///
    /// Panics if there are no threads, or the longest write is not of whole pages.
    pub fn new(device: OwnedFd, options: Options) -> Self {
        assert!(options.threads > 0, "somebody answers");
        let pages = options.write_max as usize / PAGE;
        let is_whole = (options.write_max as usize).is_multiple_of(PAGE);
        assert!(is_whole && pages > 0, "writes are of whole pages");
        assert!(u16::try_from(pages).is_ok(), "the protocol counts up to 65535 pages");
        Self { device: Arc::new(Device::new(device)), options }
    }

    /// Answers until the mount is over, and until the file system has said that it is done with its end.
    ///
    /// # Panics
    ///
    /// If the file system panics, so does this; with several threads the process ends then, since nobody
    /// would answer what the others wait for.
    ///
    /// # Errors
    ///
    /// [`SessionError`]; the file system has been asked to end nevertheless, if it was asked anything.
    pub fn run(&self, file_system: &impl FileSystem) -> Result<(), SessionError> {
        let shared = Shared::default();
        let mut first = self.worker();
        if !self.initialise(&mut first, &shared)? {
            return Ok(());
        }
        let served = std::thread::scope(|scope| {
            let more: Vec<_> = (1..self.options.threads)
                .map(|_| {
                    scope.spawn(|| {
                        let _guard = EndsProcess;
                        self.serve(&mut self.worker(), &shared, file_system)
                    })
                })
                .collect();
            let guard = (self.options.threads > 1).then_some(EndsProcess);
            let mut served = self.serve(&mut first, &shared, file_system);
            drop(guard);
            for thread in more {
                served = served.and(thread.join().expect("a panic would have ended the process"));
            }
            served
        });
        let asked = shared.destroyed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let answer = asked.unwrap_or_else(|| {
            let (reply, answer) = Reply::channel();
            file_system.destroy(reply);
            answer
        });
        let ended = answer.recv().unwrap_or(Err(Errno::IO)).map_err(SessionError::Destroy);
        served.and(ended)
    }

    fn worker(&self) -> Worker {
        let write_max = self.options.write_max as usize;
        Worker {
            // What a write carries begins at a page.
            request: Pages::new(write_max + PAGE, WRITE_HEADER),
            reply: Pages::new(write_max, 0),
            value: Vec::new(),
            validity: Validity { entry: self.options.validity, attributes: self.options.validity },
        }
    }

    /// Agrees with the kernel; `false` if the mount is over before that.
    fn initialise(&self, worker: &mut Worker, shared: &Shared) -> Result<bool, SessionError> {
        loop {
            let message = worker.request.bytes_mut();
            let received = self.device.receive(message).map_err(SessionError::Receive)?;
            let Some(size) = received else { return Ok(false) };
            let request = match protocol::parse(&message[..size], Dialect::default()) {
                Ok(request) => request,
                Err(bad) => {
                    bad.unique.inspect(|&unique| self.device.send_result(unique, Err(Errno::IO)));
                    continue;
                }
            };
            let Operation::Initialise(offer) = request.operation else {
                self.device.send_result(request.unique, Err(Errno::IO));
                continue;
            };
            match self.agree(&offer) {
                Ok(agreed) => {
                    let setxattr_extended =
                        agreed.capabilities & capability::SETXATTR_EXTENDED != 0;
                    shared.dialect.get_or_init(|| Dialect { setxattr_extended });
                    let reply = protocol::initialised(&agreed);
                    self.device.send_pieces(request.unique, &[std::io::IoSlice::new(&reply)]);
                    // A newer kernel asks again, in this version.
                    if offer.major == MAJOR {
                        return Ok(true);
                    }
                }
                Err(error) => {
                    self.device.send_result(request.unique, Err(Errno::PROTO));
                    return Err(error);
                }
            }
        }
    }

    fn agree(&self, offer: &Initialise) -> Result<Initialised, SessionError> {
        let &Initialise { major, minor, .. } = offer;
        if major < MAJOR || (major == MAJOR && minor < MINOR_MIN) {
            return Err(SessionError::Version { major, minor });
        }
        let missing = NEEDED & !offer.capabilities;
        if major == MAJOR && missing != 0 {
            return Err(SessionError::Capabilities { missing });
        }
        let write_max = self.options.write_max;
        Ok(Initialised {
            minor: MINOR,
            capabilities: offer.capabilities & WANTED,
            // The kernel takes the least of this and its own, which may be raised after the mount.
            read_ahead_max: write_max,
            background_max: self.options.background_max,
            write_max,
            pages_max: (write_max as usize / PAGE) as u16,
        })
    }

    fn serve(
        &self,
        worker: &mut Worker,
        shared: &Shared,
        file_system: &impl FileSystem,
    ) -> Result<(), SessionError> {
        let dialect = *shared.dialect.get().expect("the first request was answered");
        let answer = |worker: &mut Worker, size| {
            let destroyed = worker.answer(size, dialect, &self.device, file_system);
            if destroyed.is_some() {
                *shared.destroyed.lock().unwrap_or_else(PoisonError::into_inner) = destroyed;
            }
        };
        loop {
            let received = self.device.receive(worker.request.bytes_mut());
            let Some(size) = received.map_err(SessionError::Receive)? else { return Ok(()) };
            if self.options.threads == 1
                && let Some(asked) = protocol::asks_for_space(&worker.request.bytes()[..size])
            {
                for _ in 0..OVERTAKEN_MAX {
                    let received = self.device.receive_at_hand(worker.request.bytes_mut());
                    let Some(size) = received.map_err(SessionError::Receive)? else { break };
                    answer(worker, size);
                }
                worker.request.bytes_mut()[..asked.len()].copy_from_slice(&asked);
            }
            answer(worker, size);
        }
    }
}

/// Ends the process when it is dropped by a panic.
struct EndsProcess;

impl Drop for EndsProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
