//! Reads files that lie scattered in sweeps over the disk, in a thread of its own: a sweep takes seconds, and others
//! are to be answered meanwhile. Who reads on in such a file waits for the sweep: what it reads then is in memory.

use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agewell_fs::{FileSystem, SweepDue};
use agewell_fuse::LaterData;
use agewell_store::device::Disk;

use crate::status::Requests;

/// What a sweep has read is forgotten when nobody has asked for any of it for so long; chosen by us: readers are
/// seldom so slow, and memory is given back soon.
const FORGETS_AFTER: Duration = Duration::from_secs(10);

enum Message {
    Sweep(SweepDue),
    /// A read that waits for the sweeps before it: of an inode, from a byte on, asked for at a time.
    Read(u64, u64, LaterData, Instant),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Sweeper<D: Disk + 'static> {
    swept: Arc<Swept<D>>,
    running: Mutex<Option<(Sender<Message>, JoinHandle<()>)>>,
}

/// What the thread works on.
#[derive(Debug)]
struct Swept<D> {
    file_system: Arc<FileSystem<D>>,
    requests: Arc<Requests>,
    /// Files that are swept or will be, and their number, so that who reads need not lock where there are none.
    inodes: Mutex<Vec<u64>>,
    count: AtomicUsize,
    is_over: AtomicBool,
}

impl<D: Disk> Swept<D> {
    /// Makes the sweep that is `due`. What cannot be read is left to who asks for it.
    fn sweep(&self, due: SweepDue) {
        let goes_on = || {
            self.requests.sweep_parts.fetch_add(1, Ordering::Relaxed);
            !self.is_over.load(Ordering::Relaxed)
        };
        if self.file_system.sweep(due, goes_on).unwrap_or(false) {
            self.requests.sweeps.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn inodes(&self) -> MutexGuard<'_, Vec<u64>> {
        self.inodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, inode: u64) {
        self.inodes().push(inode);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn end(&self, inode: u64) {
        let mut inodes = self.inodes();
        if let Some(at) = inodes.iter().position(|one| *one == inode) {
            inodes.swap_remove(at);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<D: Disk + 'static> Sweeper<D> {
    pub(crate) fn start(
        file_system: Arc<FileSystem<D>>,
        requests: Arc<Requests>,
    ) -> std::io::Result<Self> {
        let (inodes, count, is_over) =
            (Mutex::default(), AtomicUsize::new(0), AtomicBool::new(false));
        let swept = Arc::new(Swept { file_system, requests, inodes, count, is_over });
        let (messages, received) = channel();
        let of_thread = Arc::clone(&swept);
        let thread = std::thread::Builder::new()
            .name("sweeper".into())
            .spawn(move || run(&of_thread, &received))?;
        Ok(Self { swept, running: Mutex::new(Some((messages, thread))) })
    }

    /// Makes the sweep that is `due`, later.
    pub(crate) fn sweep(&self, due: SweepDue) {
        self.swept.begin(due.inode());
        if !self.send(Message::Sweep(due)) {
            self.swept.end(due.inode());
        }
    }

    /// Whether the file `inode` is being swept: who reads it is answered [later](Self::read).
    pub(crate) fn is_swept(&self, inode: u64) -> bool {
        self.swept.count.load(Ordering::Relaxed) > 0 && self.swept.inodes().contains(&inode)
    }

    /// Answers who asks for what `inode` has from `offset` on, when the sweeps are done.
    #[expect(clippy::disallowed_methods, reason = "it measures what users wait for")]
    pub(crate) fn read(&self, inode: u64, offset: u64, reply: LaterData) {
        // At the end a reply that is dropped says that it failed.
        self.send(Message::Read(inode, offset, reply, Instant::now()));
    }

    fn send(&self, message: Message) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().is_some_and(|(messages, _)| messages.send(message).is_ok())
    }

    /// Ends the sweep that is under way, and the thread when it has answered who waits.
    pub(crate) fn stop(&self) {
        self.swept.is_over.store(true, Ordering::Relaxed);
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((messages, thread)) = running {
            drop(messages);
            let _ = thread.join();
        }
    }
}

impl<D: Disk + 'static> Drop for Sweeper<D> {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run<D: Disk>(swept: &Swept<D>, received: &Receiver<Message>) {
    let file_system = &swept.file_system;
    let mut keeps_any = false;
    loop {
        let message = if keeps_any {
            received.recv_timeout(FORGETS_AFTER)
        } else {
            received.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match message {
            Ok(Message::Sweep(due)) => {
                swept.sweep(due);
                swept.end(due.inode());
                keeps_any = true;
            }
            Ok(Message::Read(inode, offset, reply, begin)) => {
                let mut data = vec![0; reply.size()];
                let mut due = None;
                match file_system.read_noting(inode, offset, &mut data) {
                    Ok((bytes, found)) => {
                        due = found;
                        reply.send(&[IoSlice::new(&data[..bytes])]);
                    }
                    Err(error) => reply.fail(error.errno()),
                }
                swept.requests.reads.count(begin.elapsed());
                if let Some(due) = due {
                    swept.sweep(due);
                    keeps_any = true;
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                keeps_any = file_system.store().forget_unused_sweeps();
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
