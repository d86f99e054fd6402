//! Who waits for the medium: a thread flushes for all that wait at the same time, and answers them. It also
//! flushes what nobody asked for, once a second, and removes large files bit by bit. Where a flush is no more
//! than a call (a file in memory), whoever asks does it: to wake another thread would take longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agewell_fs::FileSystem;
use agewell_fuse::{Errno, Reply};
use agewell_store::device::Disk;

use crate::status::Requests;

/// What nobody asked to be flushed is lost in a crash if it is younger; chosen by us, less than the five
/// seconds of `ext4` and the thirty of `btrfs`.
const FLUSHES_EVERY: Duration = Duration::from_secs(1);

/// Flushes that take less are done by who asks; chosen by us: what it takes to wake a thread and to be woken.
const AT_ONCE_BELOW: Duration = Duration::from_micros(30);

/// The weight of the last flush in what flushes take; chosen by us: some eight count.
const LAST_WEIGHT: u64 = 8;

/// Requests that may wait; chosen by us: more than the kernel has under way.
const WAITING_MAX: usize = 1024;

enum Message {
    /// To be answered when everything done so far is on the medium.
    Sync(Reply, Instant),
    /// There is something to remove.
    Work,
    /// The end: likewise, and the file system is left as one that was unmounted.
    End(Reply, bool),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Durable<D> {
    messages: SyncSender<Message>,
    thread: Option<JoinHandle<()>>,
    flushed: Arc<Flushed<D>>,
}

/// What flushes, and what that takes.
#[derive(Debug)]
struct Flushed<D> {
    file_system: Arc<FileSystem<D>>,
    requests: Arc<Requests>,
    /// What the last ones took, ns; none yet: 0 would be too good.
    typical_ns: AtomicU64,
}

impl<D: Disk + 'static> Durable<D> {
    pub(crate) fn start(
        file_system: Arc<FileSystem<D>>,
        requests: Arc<Requests>,
    ) -> std::io::Result<Self> {
        let (messages, received) = sync_channel(WAITING_MAX);
        let typical_ns = AtomicU64::new(u64::MAX / 2);
        let flushed = Arc::new(Flushed { file_system, requests, typical_ns });
        let flushes = Arc::clone(&flushed);
        let thread = std::thread::Builder::new()
            .name("durable".into())
            .spawn(move || run(&flushes, &received))?;
        Ok(Self { messages, thread: Some(thread), flushed })
    }

    /// Has `reply` answered when everything done so far is on the medium.
    #[expect(clippy::disallowed_methods, reason = "it measures what users wait for")]
    pub(crate) fn sync(&self, reply: Reply) {
        let begin = Instant::now();
        let typical_ns = self.flushed.typical_ns.load(Ordering::Relaxed);
        if u128::from(typical_ns) < AT_ONCE_BELOW.as_nanos() {
            let result = self.flushed.flush();
            self.flushed.requests.syncs.count(begin.elapsed());
            reply.answer(result);
        } else {
            self.send(Message::Sync(reply, begin));
        }
    }

    /// Has what was let go removed.
    pub(crate) fn work(&self) {
        // If many wait, it is not asleep.
        let _ = self.messages.try_send(Message::Work);
    }

    /// Ends: everything is on the medium when `reply` is answered, and nodes lie together if it `regroups`.
    pub(crate) fn end(&self, reply: Reply, regroups: bool) {
        self.send(Message::End(reply, regroups));
    }

    fn send(&self, message: Message) {
        // After the end a reply that is dropped says that it failed.
        let _ = self.messages.send(message);
    }
}

impl<D> Drop for Durable<D> {
    fn drop(&mut self) {
        let (none, _) = sync_channel(1);
        drop(std::mem::replace(&mut self.messages, none));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl<D: Disk> Flushed<D> {
    /// Has everything done so far on the medium.
    #[expect(clippy::disallowed_methods, reason = "it measures what users wait for")]
    fn flush(&self) -> Result<(), Errno> {
        let begin = Instant::now();
        self.file_system.sync().map_err(|error| error.errno())?;
        let took_ns = begin.elapsed().as_nanos() as u64;
        let before_ns = self.typical_ns.load(Ordering::Relaxed).min(1 << 32);
        let typical_ns = (before_ns * (LAST_WEIGHT - 1) + took_ns) / LAST_WEIGHT;
        self.typical_ns.store(typical_ns, Ordering::Relaxed);
        Ok(())
    }

    /// The same at the end of a mount, and the store is left as one that was closed. Whoever has waited
    /// for the end may mount it again at once, before this process is gone.
    fn end(&self, regroups: bool) -> Result<(), Errno> {
        let is_left = if self.file_system.is_shut() { Ok(()) } else { self.leave(regroups) };
        self.file_system.store().release();
        is_left
    }

    fn leave(&self, regroups: bool) -> Result<(), Errno> {
        while self.file_system.work().map_err(|error| error.errno())? {}
        self.file_system.commit().map_err(|error| error.errno())?;
        if regroups {
            // Whatever fails is met again below, or leaves nodes where they are.
            let _ = self.file_system.put_nodes_together();
        }
        self.file_system.checkpoint().map_err(|error| error.errno())?;
        self.file_system.store().leave().map_err(|_| Errno::IO)
    }
}

fn run<D: Disk>(flushes: &Flushed<D>, received: &Receiver<Message>) {
    let file_system = &flushes.file_system;
    // A crash may have left something.
    let mut has_work = file_system.has_work();
    let mut is_due = true;
    loop {
        let waits = if has_work { Duration::ZERO } else { FLUSHES_EVERY };
        let first = match received.recv_timeout(waits) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let is_idle = first.is_none();
        let mut replies = Vec::new();
        let mut end = None;
        for message in first.into_iter().chain(received.try_iter()) {
            match message {
                Message::Sync(reply, begin) => replies.push((reply, begin)),
                Message::Work => has_work = true,
                Message::End(reply, regroups) => end = Some((reply, regroups)),
            }
        }
        if !replies.is_empty() {
            let result = flushes.flush();
            is_due = result.is_err();
            for (reply, begin) in replies {
                flushes.requests.syncs.count(begin.elapsed());
                reply.answer(result);
            }
        } else if is_idle && !has_work {
            // What failed is tried again.
            is_due |= file_system.commit().unwrap_or(true);
            if is_due {
                is_due = flushes.flush().is_err();
            }
        }
        if let Some((reply, regroups)) = end {
            reply.answer(flushes.end(regroups));
            return;
        }
        if has_work {
            has_work = file_system.work().unwrap_or(false);
        }
    }
}
