//! Who waits for the medium: a thread flushes for all that wait at the same time, and answers them. It also
//! flushes what nobody asked for, once a second, and removes large files bit by bit.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agewell_fs::FileSystem;
use agewell_fuse::{Errno, Reply};
use agewell_store::device::Disk;

use crate::latencies::Latencies;
use crate::status::Requests;

/// What nobody asked to be flushed is lost in a crash if it is younger; chosen by us, less than the five
/// seconds of `ext4` and the thirty of `btrfs`.
const FLUSHES_EVERY: Duration = Duration::from_secs(1);

/// Requests that may wait; chosen by us: more than the kernel has under way.
const WAITING_MAX: usize = 1024;

enum Message {
    /// To be answered when everything done so far is on the medium.
    Sync(Reply, Instant),
    /// There is something to remove.
    Work,
    /// The end: likewise, and the file system is left as one that was unmounted.
    End(Reply),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Durable {
    messages: SyncSender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl Durable {
    pub(crate) fn start<D: Disk + 'static>(
        file_system: Arc<FileSystem<D>>,
        requests: Arc<Requests>,
    ) -> std::io::Result<Self> {
        let (messages, received) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("durable".into())
            .spawn(move || run(&file_system, &received, &requests.syncs))?;
        Ok(Self { messages, thread: Some(thread) })
    }

    /// Has `reply` answered when everything done so far is on the medium.
    #[expect(clippy::disallowed_methods, reason = "it measures what users wait for")]
    pub(crate) fn sync(&self, reply: Reply) {
        self.send(Message::Sync(reply, Instant::now()));
    }

    /// Has what was let go removed.
    pub(crate) fn work(&self) {
        // If many wait, it is not asleep.
        let _ = self.messages.try_send(Message::Work);
    }

    /// Ends: everything is on the medium when `reply` is answered.
    pub(crate) fn end(&self, reply: Reply) {
        self.send(Message::End(reply));
    }

    fn send(&self, message: Message) {
        // After the end a reply that is dropped says that it failed.
        let _ = self.messages.send(message);
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        let (none, _) = sync_channel(1);
        drop(std::mem::replace(&mut self.messages, none));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run<D: Disk>(file_system: &FileSystem<D>, received: &Receiver<Message>, latencies: &Latencies) {
    // A crash may have left something.
    let mut has_work = file_system.has_work();
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
                Message::End(reply) => end = Some(reply),
            }
        }
        if !replies.is_empty() || (is_idle && !has_work) {
            let result = synced(file_system, !replies.is_empty());
            for (reply, begin) in replies {
                latencies.count(begin.elapsed());
                reply.answer(result);
            }
        }
        if let Some(reply) = end {
            reply.answer(ended(file_system));
            return;
        }
        if has_work {
            has_work = file_system.work().unwrap_or(false);
        }
    }
}

/// Flushes, if anyone waits or there is anything.
fn synced<D: Disk>(file_system: &FileSystem<D>, is_awaited: bool) -> Result<(), Errno> {
    let is_changed = file_system.commit().map_err(|error| error.errno())?;
    if is_changed || is_awaited {
        file_system.store().sync().map_err(|_| Errno::IO)?;
    }
    Ok(())
}

fn ended<D: Disk>(file_system: &FileSystem<D>) -> Result<(), Errno> {
    if file_system.is_shut() {
        return Ok(());
    }
    while file_system.work().map_err(|error| error.errno())? {}
    file_system.commit().map_err(|error| error.errno())?;
    file_system.store().leave().map_err(|_| Errno::IO)
}
