//! Waiting for the medium together: who comes first carries out what all have taken in, with one flush,
//! and the others wait for that.

use crate::locks::{Condvar, Mutex, lock};

/// Who waits, and for what.
#[derive(Debug)]
pub(crate) struct Commit {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Transactions that are on the medium.
    durable: u64,
    /// Whether someone carries transactions out.
    is_led: bool,
}

/// Who carries transactions out; the next may when it is gone, however it went.
struct Leading<'a> {
    commit: &'a Commit,
    durable: u64,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.commit.state);
        state.is_led = false;
        state.durable = state.durable.max(self.durable);
        self.commit.changed.notify_all();
    }
}

impl Commit {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State::default()), changed: Condvar::new() }
    }

    /// Returns when `taken` transactions are on the medium. If nobody is at it, `carry_out` is called, which
    /// gives how many are on it then: at least `taken`.
    pub(crate) fn wait<E>(
        &self,
        taken: u64,
        carry_out: impl FnOnce() -> Result<u64, E>,
    ) -> Result<(), E> {
        let mut state = lock(&self.state);
        while state.is_led && state.durable < taken {
            state = self.changed.wait(state).expect("whoever held it has not failed");
        }
        if state.durable >= taken {
            return Ok(());
        }
        state.is_led = true;
        drop(state);
        let mut leading = Leading { commit: self, durable: 0 };
        leading.durable = carry_out()?;
        Ok(())
    }
}
