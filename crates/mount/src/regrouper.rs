//! A thread that puts together what is read together when nobody asks for anything.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use agewell_fs::FileSystem;
use agewell_log::policy::cost::CostModel;
use agewell_store::device::Disk;

use crate::regrouping::{Regrouped, Regrouping};
use crate::status::Requests;

/// How long nobody asks for anything before the disk counts as idle, and how often what was observed is
/// taken in; chosen by us: ten times what a collector waits, for what is moved can wait.
const IDLE_AFTER: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug)]
pub(crate) struct Regrouper {
    /// What it waits for the end of, and the thread.
    running: Mutex<Option<(SyncSender<()>, JoinHandle<()>)>>,
    done: Arc<Mutex<Regrouped>>,
}

impl Regrouper {
    /// Starts, with `memory_bytes` for what is observed, on a device that `disk` is like until its own
    /// times are known.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub(crate) fn start<D: Disk + 'static>(
        file_system: Arc<FileSystem<D>>,
        requests: Arc<Requests>,
        memory_bytes: u64,
        disk: CostModel,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = sync_channel(0);
        let done = Arc::new(Mutex::new(Regrouped::default()));
        let said = Arc::clone(&done);
        let thread = std::thread::Builder::new().name("regrouper".into()).spawn(move || {
            let regrouping = Regrouping::new(file_system, memory_bytes, disk);
            run(regrouping, &requests, &stopped, &said);
        })?;
        Ok(Self { running: Mutex::new(Some((stop, thread))), done })
    }

    /// What has become of it so far.
    pub(crate) fn done(&self) -> Regrouped {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops it: nothing is moved any more when this returns.
    pub(crate) fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = running {
            drop(stop);
            let _ = thread.join();
        }
    }
}

impl Drop for Regrouper {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run<D: Disk>(
    mut regrouping: Regrouping<D>,
    requests: &Requests,
    stopped: &Receiver<()>,
    said: &Mutex<Regrouped>,
) {
    let mut before = requests.count();
    while stopped.recv_timeout(IDLE_AFTER) == Err(RecvTimeoutError::Timeout) {
        regrouping.learn();
        let now = requests.count();
        if std::mem::replace(&mut before, now) == now {
            let mut is_idle = || {
                let is_over = stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Empty);
                !is_over && requests.count() == now
            };
            // Whoever asks for what cannot be read meets the error himself.
            let _ = regrouping.put_together(&mut is_idle);
        }
        *said.lock().unwrap_or_else(PoisonError::into_inner) = regrouping.done();
    }
}
