//! How fast and for how long files are moved.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// How fast and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// No more bytes are moved in a second, on average.
    pub bytes_per_s: Option<u64>,
    /// It ends after so long.
    pub at_most: Option<Duration>,
}

/// A clock that work is paced by.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    pace: Pace,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "real work on a real disk is paced by real time")]
    pub(crate) fn new(pace: Pace) -> Self {
        Self { started: Instant::now(), pace }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether its time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.pace.at_most.is_some_and(|most| self.elapsed() >= most)
    }

    /// How long to wait before anything more is moved, after `bytes` in all.
    pub(crate) fn due_in(&self, bytes: u64) -> Duration {
        let due = self.pace.bytes_per_s.map(|rate| due_after(bytes, rate));
        due.map_or(Duration::ZERO, |due| due.saturating_sub(self.elapsed()))
    }
}

/// When `bytes` are due at a rate.
fn due_after(bytes: u64, bytes_per_s: u64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / bytes_per_s.max(1) as f64)
}

/// Waits, in parts short enough to be stopped in between; chosen by us.
pub(crate) fn wait_part(wait: Duration) {
    sleep(wait.min(Duration::from_millis(100)));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::due_after;

    /// So many bytes are due after their share of the rate.
    #[test]
    fn bytes_are_due_at_the_rate() {
        assert_eq!(due_after(3_000_000, 1_000_000), Duration::from_secs(3));
        assert_eq!(due_after(0, 0), Duration::ZERO);
    }
}
