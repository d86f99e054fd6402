//! Which files are hot: those modified shortly before a snapshot (Smith & Seltzer 1996, §5.2).

use crate::{FileKind, NO_TIME, Snapshot, SnapshotFile};

/// The time shortly before a snapshot was taken, or before the latest modification of a regular file
/// where that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotPeriod {
    /// Before when, nanoseconds since 1970; `None` where it is not known.
    pub until_ns: Option<i64>,
    /// How long before, ns.
    pub period_ns: u64,
}

impl HotPeriod {
    /// The period of `period_ns` before `snapshot`.
    #[must_use]
    pub fn before(snapshot: &Snapshot, period_ns: u64) -> Self {
        let regular = snapshot.files.iter().filter(|file| file.kind == FileKind::Regular);
        let latest = || regular.map(|file| file.modify_ns).filter(|time| *time != NO_TIME).max();
        let taken = snapshot.facts.taken_ns;
        let until_ns = if taken == NO_TIME { latest() } else { Some(taken) };
        Self { until_ns, period_ns }
    }

    /// Whether `file` was modified in it.
    #[must_use]
    pub fn holds(&self, file: &SnapshotFile) -> bool {
        let Some(until_ns) = self.until_ns else { return false };
        let since_ns = i128::from(until_ns) - i128::from(self.period_ns);
        file.modify_ns != NO_TIME && i128::from(file.modify_ns) >= since_ns
    }
}
