//! Looking ahead: a copy of the log goes on with each mechanism under a forecast.
//!
//! Memory: one copy at a time. Cost: about one write of the log for each mechanism and write of the
//! forecast, less where a mechanism is given up because it has spent more than another in all.

use super::history::Entry;
use crate::lfs::policy::mechanism::{Collect, Mechanism};
use crate::lfs::policy::placement::Placement;
use crate::lfs::{CostMeter, Log};

/// Writes and syncs between two looks at what was spent; chosen by us: too few to matter if they
/// were in vain.
const ENTRIES_AT_ONCE: usize = 1024;

/// The mechanism that `log` goes on with in the least disk time, as it estimates that, if
/// `forecast` comes true; `current` if none takes less than that does.
pub(super) fn rehearse<P: Placement + Clone>(
    log: &Log<P>,
    mechanisms: &[Mechanism],
    current: Mechanism,
    forecast: &[Entry],
) -> Mechanism {
    let mut best = current;
    let mut least_ns = spent_ns(log, current, forecast, u64::MAX).unwrap_or(u64::MAX);
    for other in mechanisms.iter().filter(|other| **other != current) {
        if let Some(ns) = spent_ns(log, *other, forecast, least_ns) {
            (best, least_ns) = (*other, ns);
        }
    }
    best
}

/// Disk time, ns, that `log` spends with `mechanism`; none if it finds no room, or if that is
/// `limit_ns` or more.
fn spent_ns<P: Placement + Clone>(
    log: &Log<P>,
    mechanism: Mechanism,
    forecast: &[Entry],
    limit_ns: u64,
) -> Option<u64> {
    let mut log = log.clone();
    log.set_collect(Collect::Always(mechanism));
    let mut meter = CostMeter::new(log.setting.disk);
    for entries in forecast.chunks(ENTRIES_AT_ONCE) {
        for entry in entries {
            let done = if entry.is_write() {
                log.write(entry.block, entry.client, &mut meter)
            } else {
                log.sync(entry.client, &mut meter)
            };
            done.ok()?;
        }
        if meter.total_ns() >= limit_ns {
            return None;
        }
    }
    Some(meter.total_ns())
}
