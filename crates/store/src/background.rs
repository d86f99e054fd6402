//! Threads of a store's own: how they are woken and ended.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A thread that goes on until it is done, or ended; dropping ends it.
#[derive(Debug)]
pub(crate) struct Background {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts `body` in a thread called `name`, which heeds `bell`.
    pub(crate) fn start(
        name: &str,
        bell: Arc<Bell>,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let thread = Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Self { bell, thread: Some(thread) })
    }

    /// Waits until it is done.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }

    /// Has it end, and waits for that.
    pub(crate) fn end(&mut self) {
        self.bell.end();
        self.join();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end();
    }
}

/// What wakes a thread, and ends it.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    state: Mutex<Rung>,
    rings: Condvar,
}

/// Why it rings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rung {
    /// There is something to do.
    pub(crate) is_needed: bool,
    /// There is nothing to do ever after.
    pub(crate) is_over: bool,
}

impl Bell {
    fn state(&self) -> MutexGuard<'_, Rung> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ring(&self) {
        self.state().is_needed = true;
        self.rings.notify_one();
    }

    pub(crate) fn end(&self) {
        self.state().is_over = true;
        self.rings.notify_one();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Waits until it rings, or for as long as is said.
    pub(crate) fn wait(&self, most: Option<Duration>) -> Rung {
        let is_quiet = |rung: &mut Rung| !rung.is_needed && !rung.is_over;
        let state = self.state();
        let mut state = match most {
            None => self.rings.wait_while(state, is_quiet).unwrap_or_else(PoisonError::into_inner),
            Some(most) => {
                let waited = self.rings.wait_timeout_while(state, most, is_quiet);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        let rung = *state;
        state.is_needed = false;
        rung
    }
}
