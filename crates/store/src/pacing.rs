//! How writers are slowed while room is made for them: the less there is, the more, and never all at once.

use std::sync::Arc;
use std::time::Duration;

use crate::background::Bell;

/// Delays are paid when this much has come together; chosen by us. A sleep lasts some 50 us longer than it was asked for
/// (`prctl`, PR_SET_TIMERSLACK), so that none is worth its call below; and who pays seldom waits long: with 250 us the
/// 99th percentile was twice what it is.
const SLEEP_MIN_NS: u64 = 20_000;

/// How much slower than room is made writers become at most; chosen by us: above 1, so that with any load
/// there is a room at which they are as fast as it is made.
const SLOWEST: f64 = 2.0;

/// What the front knows of who makes room.
#[derive(Debug)]
pub(crate) struct Pacing {
    pub(crate) bell: Arc<Bell>,
    /// Room below which more is made, blocks.
    pub(crate) wanted: u64,
    /// Room below which writers are slowed, blocks.
    pub(crate) slow_below: u64,
    /// What it takes to make room for a block.
    pub(crate) block_ns: f64,
    /// New blocks that there are to be before more room is looked for: none could be had.
    pub(crate) rests_until: u64,
    /// Whether any write is to ring.
    pub(crate) is_asleep: bool,
    /// Delays that are not paid yet.
    debt_ns: u64,
}

impl Pacing {
    pub(crate) fn new(bell: Arc<Bell>, wanted: u64) -> Self {
        Self {
            bell,
            wanted,
            slow_below: wanted / 2,
            block_ns: 0.0,
            rests_until: 0,
            is_asleep: false,
            debt_ns: 0,
        }
    }

    /// More room is made as soon as there is less than `wanted`, from here on.
    pub(crate) fn want(&mut self, wanted: u64) {
        (self.wanted, self.slow_below) = (wanted, wanted / 2);
        self.rests_until = 0;
    }

    /// The last of `written` new blocks were written by one who brought `blocks`, and there is `room` left:
    /// rings the bell if there is something to do, and says how long the writer is to wait.
    pub(crate) fn written(&mut self, written: u64, blocks: u32, room: u64) -> Duration {
        let is_resting = written < self.rests_until;
        if std::mem::take(&mut self.is_asleep) || room < self.wanted && !is_resting {
            self.bell.ring();
        }
        if is_resting { Duration::ZERO } else { self.delay(blocks, room) }
    }

    fn delay(&mut self, blocks: u32, room: u64) -> Duration {
        if room >= self.slow_below {
            self.debt_ns = 0;
            return Duration::ZERO;
        }
        let short = 1.0 - room as f64 / self.slow_below as f64;
        self.debt_ns += (f64::from(blocks) * self.block_ns * SLOWEST * short) as u64;
        if self.debt_ns < SLEEP_MIN_NS {
            return Duration::ZERO;
        }
        Duration::from_nanos(std::mem::take(&mut self.debt_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_as_room_goes_and_are_paid_when_they_can_be_slept() {
        let mut pacing = Pacing { block_ns: 1_000.0, ..Pacing::new(Arc::default(), 2_000) };
        assert_eq!(pacing.delay(64, 1_000), Duration::ZERO);
        // Halfway down a block is delayed by what it takes to make room for it.
        let paid: Duration = (0..1_000).map(|_| pacing.delay(64, 500)).sum();
        assert!((paid.as_secs_f64() - 0.064).abs() < 0.001, "{paid:?}");
        let paid: Duration = (0..1_000).map(|_| pacing.delay(64, 0)).sum();
        assert!((paid.as_secs_f64() - 0.128).abs() < 0.001, "{paid:?}");
        // What was left over is forgotten where there is room.
        assert_eq!(pacing.delay(8, 0), Duration::ZERO);
        assert_eq!(pacing.delay(64, 5_000), Duration::ZERO);
        assert_eq!(pacing.debt_ns, 0);
    }
}
