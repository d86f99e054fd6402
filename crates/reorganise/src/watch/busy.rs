//! Whether others use the disk: looked at while nothing of ours is under way.

use std::thread::sleep;
use std::time::Duration;

use agewell_record::Disk;
use agewell_snapshot::SnapshotError;

use super::now_ns;

/// Share of a look for which a disk may be busy with others; chosen by us: beyond it a queue forms.
const BUSY_SHARE: f64 = 0.5;
/// How long a look is, before anything is moved; chosen by us.
const LONG: Duration = Duration::from_secs(1);
/// And between moves.
const SHORT: Duration = Duration::from_millis(300);
/// How long our own last requests may take.
const SETTLE: Duration = Duration::from_millis(100);
/// Time of moves between two looks; chosen by us: looks take less than a tenth.
const BETWEEN_NS: i64 = 5_000_000_000;
/// How long is waited before it is given up for this round, at most; chosen by us.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Waits for others to leave the disk alone.
pub(crate) struct Quiet<'a> {
    disk: &'a Disk,
    looked_ns: i64,
    paused: Duration,
}

type Ask<'a> = dyn FnMut() -> Result<(), SnapshotError> + 'a;

impl<'a> Quiet<'a> {
    pub(crate) fn new(disk: &'a Disk) -> Self {
        Self { disk, looked_ns: now_ns(), paused: Duration::ZERO }
    }

    /// How long it has waited.
    pub(crate) fn paused(&self) -> Duration {
        self.paused
    }

    /// The share of `time` for which the disk was busy; none where the kernel does not tell.
    fn busy_share(&self, time: Duration, ask: &mut Ask<'_>) -> Result<f64, SnapshotError> {
        let (before, began_ns) = (self.disk.busy_ms(), now_ns());
        rest(time, ask)?;
        let elapsed_ms = (now_ns() - began_ns) as f64 / 1e6;
        let busy = before.zip(self.disk.busy_ms());
        Ok(busy.map_or(0.0, |(before, after)| f64::from(after.wrapping_sub(before)) / elapsed_ms))
    }

    /// Waits until the disk is quiet, no longer than `most`, which is the time between rounds; how busy it is, per
    /// cent, if it does not become so.
    pub(crate) fn wait(
        &self,
        most: Duration,
        ask: &mut Ask<'_>,
    ) -> Result<Option<f64>, SnapshotError> {
        let mut share = 0.0;
        let looks = most.min(WAIT_MAX).as_secs().max(1);
        for _ in 0..looks {
            share = self.busy_share(LONG, ask)?;
            if share <= BUSY_SHARE {
                return Ok(None);
            }
        }
        Ok(Some(100.0 * share.min(1.0)))
    }

    /// Between two moves: now and then looks whether others use the disk, and waits while they do.
    pub(crate) fn between(&mut self, ask: &mut Ask<'_>) -> Result<(), SnapshotError> {
        let began_ns = now_ns();
        if began_ns - self.looked_ns < BETWEEN_NS {
            return Ok(());
        }
        rest(SETTLE, ask)?;
        let mut time = SHORT;
        while self.busy_share(time, ask)? > BUSY_SHARE {
            time = LONG;
        }
        self.looked_ns = now_ns();
        self.paused += Duration::from_nanos((self.looked_ns - began_ns) as u64);
        Ok(())
    }
}

/// Waits, in parts short enough to be stopped in between.
fn rest(time: Duration, ask: &mut Ask<'_>) -> Result<(), SnapshotError> {
    let end_ns = now_ns() + time.as_nanos() as i64;
    loop {
        ask()?;
        let left_ns = end_ns - now_ns();
        if left_ns <= 0 {
            return Ok(());
        }
        sleep(Duration::from_nanos(left_ns as u64).min(SETTLE));
    }
}
