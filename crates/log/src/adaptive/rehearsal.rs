//! Looking ahead: a copy of the log goes on with each mechanism under a forecast.
//!
//! Memory: one copy at a time. Cost: about one write of the log for each mechanism and write of the
//! forecast, less where a mechanism is given up: because it has spent more than another in all, or
//! because it falls behind too far to come back.

use super::history::Entry;
use crate::policy::mechanism::{Collect, Mechanism};
use crate::policy::placement::Placement;
use crate::{Call, CostMeter, Log};

/// Writes and syncs between two looks at what was spent; chosen by us: too few to matter if they
/// were in vain.
const ENTRIES_AT_ONCE: usize = 1024;

/// Share of the disk time of a rehearsal that a change of mechanism must save; chosen by us: half of
/// what a choice may cost. Differences below it are mostly those between forecast and future, and a
/// log that follows them pays for changes alone.
const LEAST_GAIN: f64 = 0.01;

/// Disk time over that of the best so far at which a mechanism is given up, if it is spent so since
/// the log went on and over the last pass alike; chosen by us: what a change costs is paid within a
/// pass, and no load tried closed a gap as wide later.
const TOO_FAR_BEHIND: f64 = 1.5;

/// A mechanism that is rehearsed.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) mechanism: Mechanism,
    /// At zero; it prices what a copy of the log does.
    pub(super) meter: CostMeter,
    /// Share of that price that counts.
    pub(super) hope: f64,
}

/// The mechanism that `log` goes on with in the least disk time, as it estimates that, if
/// `forecast` comes true; `chosen`, if there is one, unless another takes [`LEAST_GAIN`] less.
pub(super) fn rehearse<P: Placement + Clone>(
    log: &Log<P>,
    candidates: &[Candidate],
    chosen: Option<Mechanism>,
    forecast: &[Entry],
) -> Mechanism {
    let is_first = |mechanism| chosen.is_none_or(|chosen| chosen == mechanism);
    let first = candidates.iter().position(|one| is_first(one.mechanism)).unwrap_or(0);
    let mut best = Rehearsed {
        mechanism: candidates[first].mechanism,
        limit_ns: u64::MAX,
        spent_ns: Vec::new(),
    };
    let (earlier, later) = candidates.split_at(first);
    for candidate in later[..1].iter().chain(earlier).chain(&later[1..]) {
        if let Some(spent_ns) = best.spent_by(candidate, log, forecast) {
            best.take(candidate.mechanism, spent_ns);
            if chosen == Some(candidate.mechanism) {
                best.limit_ns = (best.limit_ns as f64 * (1.0 - LEAST_GAIN)) as u64;
            }
        }
    }
    best.mechanism
}

/// New blocks that went behind others, not into holes.
fn appended_blocks<P: Placement>(log: &Log<P>) -> u64 {
    log.counts().new_blocks - log.counts().threaded_blocks
}

/// The best mechanism so far.
struct Rehearsed {
    mechanism: Mechanism,
    /// Disk time that another must stay below.
    limit_ns: u64,
    /// What it had spent at each look.
    spent_ns: Vec<u64>,
}

impl Rehearsed {
    fn take(&mut self, mechanism: Mechanism, spent_ns: Vec<u64>) {
        self.mechanism = mechanism;
        self.limit_ns = spent_ns.last().copied().unwrap_or(0);
        self.spent_ns = spent_ns;
    }

    /// Disk time, ns, that `log` has spent with `candidate` at each look; none if it finds no room
    /// or is given up.
    fn spent_by<P: Placement + Clone>(
        &self,
        candidate: &Candidate,
        log: &Log<P>,
        forecast: &[Entry],
    ) -> Option<Vec<u64>> {
        let pass_looks = (log.live_blocks() as usize).div_ceil(ENTRIES_AT_ONCE);
        let mut log = log.clone();
        let is_whole = log.setting.whole_syncs;
        let mut meter = candidate.meter.clone();
        log.set_collect(Collect::Always(candidate.mechanism));
        if !meter.is_learnt() {
            // What gaps save, other prices do not show.
            log.space_threads(0, 0);
        }
        let mut turns_ns = 0;
        let mut spent_ns = Vec::with_capacity(forecast.len().div_ceil(ENTRIES_AT_ONCE));
        for entries in forecast.chunks(ENTRIES_AT_ONCE) {
            for entry in entries {
                meter.begin_call();
                let done = if entry.is_write() {
                    if is_whole {
                        log.make_room_beforehand(&mut meter).ok()?;
                    }
                    log.write(entry.block, entry.client, &mut meter)
                } else {
                    log.leave_sync_gap();
                    let before = appended_blocks(&log);
                    let synced = log.carry_out(Call::Sync { client: entry.client }, &mut meter);
                    // Holes are filled a gap apart.
                    let appends = appended_blocks(&log) > before;
                    turns_ns += if appends { log.setting.lost_turn_ns } else { 0 };
                    synced
                };
                done.ok()?;
            }
            let now_ns = ((meter.total_ns() + turns_ns) as f64 * candidate.hope) as u64;
            spent_ns.push(now_ns);
            if now_ns >= self.limit_ns || self.is_far_ahead_of(&spent_ns, pass_looks) {
                return None;
            }
        }
        Some(spent_ns)
    }

    /// Whether one that had spent so much at each look so far cannot be expected to come back.
    fn is_far_ahead_of(&self, spent_ns: &[u64], pass_looks: usize) -> bool {
        let now = spent_ns.len() - 1;
        let Some(pass_ago) = now.checked_sub(pass_looks) else { return false };
        let behind =
            |other_ns: u64, best_ns: u64| other_ns as f64 > best_ns as f64 * TOO_FAR_BEHIND;
        self.spent_ns.get(now).is_some_and(|best_ns| {
            behind(spent_ns[now], *best_ns)
                && behind(spent_ns[now] - spent_ns[pass_ago], best_ns - self.spent_ns[pass_ago])
        })
    }
}
