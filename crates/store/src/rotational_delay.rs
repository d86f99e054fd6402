//! The rotational delay: how far behind the last sync the next one is placed, so that a disk's heads reach it
//! without another turn.
//!
//! Who syncs one small group after another and puts each right behind the last waits a whole turn each time: when
//! the next one comes the medium has moved on. FFS left room between the blocks of a file for that, for as long
//! as it takes to begin another transfer (McKusick et al. 1984, §3.3: "rotationally well-positioned"; `rotdelay`
//! in its superblock); eager writing goes on wherever the heads are (Wang, Anderson and Patterson 1999, §2). A log
//! may put new data anywhere, so it leaves a gap where that pays.
//!
//! The delay is said, or learnt: delays are tried in turn, and the one with the shortest syncs is taken if they
//! are much shorter than without. A device whose syncs never take as long as a part of a turn is left alone.

/// Delays that are tried, ns; chosen by us: the shortest passes a few blocks, the longest a quarter of a turn, and
/// those between are a quarter apart, so that one is not much longer than it must be.
const DELAYS_NS: [u64; 12] = [
    0, 100_000, 200_000, 300_000, 400_000, 500_000, 650_000, 800_000, 1_000_000, 1_250_000,
    1_600_000, 2_000_000,
];

/// Syncs that each delay has before delays are compared; chosen by us: one that misses a turn is seen by then.
const TRIED_MIN: u32 = 4;

/// Syncs that right behind the last have before others are tried; chosen by us: a device without turns may be slow
/// once, or twice.
const WITHOUT_TRIED_MIN: u32 = 8;

/// Syncs that a delay has which takes at most [`CLOSE`] as long as the best one; chosen by us: how long a sync
/// takes depends on more than its delay.
const CLOSE_TRIED_MIN: u32 = 16;
const CLOSE: f64 = 1.3;

/// One sync in this number at most tries another delay than the best, as long as trials have taken no more than
/// this share of all syncs' time longer; chosen by us: a trial may cost a turn.
const TRY_EVERY: u64 = 24;
const TRIALS_SHARE: f64 = 0.01;

/// A sync counts for this part of what those with its delay take; chosen by us.
const SHARE: f64 = 1.0 / 32.0;

/// Syncs shorter than this wait for no turn, ns: a quarter of a turn of a disk with 7,200 turns a minute.
const TURNS_FROM_NS: f64 = 2_000_000.0;

/// Syncs must become shorter by this factor; chosen by us: gaps cost room.
const GAIN: f64 = 0.7;

/// Time after the last sync, ns, from which on the heads may be anywhere; chosen by us: half a turn.
const LOST_AFTER_NS: u64 = 4_000_000;

/// Blocks of a group at most for which a gap is left, and by which delays are learnt; chosen by us: with more
/// the transfer takes longer than the turn.
const BLOCKS_MAX: u32 = 48;

/// How far apart what is written is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncGap {
    /// Slots left between syncs.
    pub gap_blocks: u32,
    /// Slots left between runs of holes that one sync fills: half of the gap, as the drive has all of them at
    /// once and takes what its heads reach.
    pub spacing_blocks: u32,
}

/// What is known of a delay.
#[derive(Debug, Clone, Copy, Default)]
struct Tried {
    syncs: u32,
    /// What a sync takes, by and by.
    mean_ns: f64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct RotationalDelay {
    bytes_per_s: u64,
    block_bytes: u64,
    said_ns: Option<u64>,
    tried: [Tried; DELAYS_NS.len()],
    syncs: u64,
    trials: u64,
    /// What all syncs have taken, and how much longer than with the best delay those took that tried others.
    all_ns: f64,
    lost_ns: f64,
    /// Which is tried now, if one is.
    trying: Option<usize>,
    /// Whether it was said that a delay gains.
    gains: bool,
    /// When the last sync was done, if nothing was transferred since.
    done_ns: Option<u64>,
}

impl RotationalDelay {
    /// On a device of `bytes_per_s`; `said_ns` where the delay is known.
    pub(crate) fn new(bytes_per_s: u64, block_bytes: u32, said_ns: Option<u64>) -> Self {
        Self {
            bytes_per_s,
            block_bytes: u64::from(block_bytes),
            said_ns,
            tried: [Tried::default(); DELAYS_NS.len()],
            syncs: 0,
            trials: 0,
            all_ns: 0.0,
            lost_ns: 0.0,
            trying: None,
            gains: false,
            done_ns: None,
        }
    }

    /// Something else was transferred since the last sync: the heads are elsewhere.
    pub(crate) fn moved(&mut self) {
        self.done_ns = None;
    }

    /// Slots to be left before a group of `blocks` blocks that is synced at `now_ns`.
    pub(crate) fn gap_blocks(&mut self, blocks: u32, now_ns: Option<u64>) -> u32 {
        self.trying = None;
        let Some(done_ns) = self.done_ns.filter(|_| blocks <= BLOCKS_MAX) else { return 0 };
        if let Some(said_ns) = self.said_ns {
            return self.passed_blocks(said_ns);
        }
        let Some(now_ns) = now_ns else { return 0 };
        let since_ns = now_ns.saturating_sub(done_ns);
        if since_ns > LOST_AFTER_NS {
            return 0;
        }
        let chosen = self.choose();
        self.trying = Some(chosen);
        if DELAYS_NS[chosen] == 0 { 0 } else { self.passed_blocks(DELAYS_NS[chosen] + since_ns) }
    }

    /// Whether a delay is known to make syncs shorter, said once.
    pub(crate) fn begins_to_gain(&mut self) -> bool {
        let is_known = !self.gains && self.said_ns.is_none() && self.best() > 0;
        self.gains |= is_known;
        is_known
    }

    /// What is usually left.
    pub(crate) fn usual(&self) -> SyncGap {
        let delay_ns = self.said_ns.unwrap_or_else(|| DELAYS_NS[self.best()]);
        let gap_blocks = self.passed_blocks(delay_ns);
        SyncGap { gap_blocks, spacing_blocks: gap_blocks / 2 }
    }

    /// There was no room for the gap: the sync says nothing of its delay.
    pub(crate) fn no_room(&mut self) {
        self.trying = self.trying.map(|_| 0);
    }

    /// The group was synced from `begin_ns` to `end_ns`.
    pub(crate) fn synced(&mut self, begin_ns: u64, end_ns: u64) {
        self.done_ns = Some(end_ns);
        let Some(index) = self.trying.take() else { return };
        let time_ns = end_ns.saturating_sub(begin_ns) as f64;
        self.all_ns += time_ns;
        let best = self.best();
        if index != best {
            self.lost_ns += (time_ns - self.tried[best].mean_ns).max(0.0);
        }
        let tried = &mut self.tried[index];
        tried.syncs = tried.syncs.saturating_add(1);
        tried.mean_ns += (time_ns - tried.mean_ns) * (1.0 / f64::from(tried.syncs)).max(SHARE);
    }

    /// The delay of the next sync, by its number.
    fn choose(&mut self) -> usize {
        self.syncs += 1;
        let [without, ..] = self.tried;
        if without.syncs < WITHOUT_TRIED_MIN || without.mean_ns < TURNS_FROM_NS {
            return 0;
        }
        // In turns, as syncs that are slow for other reasons come several at a time.
        let least_tried = |is_tried: &dyn Fn(&Tried) -> bool| {
            let numbers = (0..DELAYS_NS.len()).filter(|number| is_tried(&self.tried[*number]));
            numbers.min_by_key(|number| self.tried[*number].syncs)
        };
        if let Some(next) = least_tried(&|tried| tried.syncs < TRIED_MIN) {
            return next;
        }
        let best = self.best();
        let close_ns = self.tried[best].mean_ns * CLOSE;
        let is_close = |tried: &Tried| tried.syncs < CLOSE_TRIED_MIN && tried.mean_ns <= close_ns;
        if let Some(next) = least_tried(&is_close) {
            return next;
        }
        if self.syncs.is_multiple_of(TRY_EVERY) && self.lost_ns <= TRIALS_SHARE * self.all_ns {
            self.trials += 1;
            return (self.trials % DELAYS_NS.len() as u64) as usize;
        }
        best
    }

    /// The delay with the shortest syncs, as far as it is known; 0 where it gains too little.
    fn best(&self) -> usize {
        let shortest = |one: &usize, other: &usize| {
            self.tried[*one].mean_ns.total_cmp(&self.tried[*other].mean_ns)
        };
        let known = |index: &usize| self.tried[*index].syncs >= TRIED_MIN;
        let best = (0..DELAYS_NS.len()).filter(known).min_by(shortest).unwrap_or(0);
        if self.tried[best].mean_ns < GAIN * self.tried[0].mean_ns { best } else { 0 }
    }

    /// Blocks that pass the heads in `time_ns`.
    fn passed_blocks(&self, time_ns: u64) -> u32 {
        let bytes = u128::from(time_ns) * u128::from(self.bytes_per_s) / 1_000_000_000;
        (bytes.div_ceil(u128::from(self.block_bytes))) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN_NS: u64 = 8_333_333;
    const BLOCKS_A_TURN: u64 = 400;

    /// Syncs of one block each on a track that turns, `overhead_ns` after the one before: what each takes, and
    /// the blocks that it goes on.
    fn turns(delay: &mut RotationalDelay, syncs: u32, overhead_ns: u64) -> (f64, u64) {
        let (mut now_ns, mut at) = (0, 0_u64);
        let block_ns = TURN_NS / BLOCKS_A_TURN;
        let (mut took_ns, mut went) = (0, 0);
        delay.synced(0, 0);
        for _ in 0..syncs {
            let gap = u64::from(delay.gap_blocks(1, Some(now_ns)));
            at += gap;
            went += gap + 1;
            let begin_ns = now_ns;
            now_ns += overhead_ns;
            let angle = now_ns / block_ns % BLOCKS_A_TURN;
            let wait = (at % BLOCKS_A_TURN + BLOCKS_A_TURN - angle) % BLOCKS_A_TURN;
            now_ns += (wait + 1) * block_ns;
            at += 1;
            delay.synced(begin_ns, now_ns);
            took_ns += now_ns - begin_ns;
        }
        (took_ns as f64 / f64::from(syncs), went)
    }

    fn delay(said_ns: Option<u64>) -> RotationalDelay {
        let bytes_per_s = BLOCKS_A_TURN * 4096 * 1_000_000_000 / TURN_NS;
        RotationalDelay::new(bytes_per_s, 4096, said_ns)
    }

    #[test]
    fn a_gap_is_learnt_where_each_sync_would_wait_a_turn() {
        for overhead_ns in [50_000, 300_000, 700_000] {
            let (without_ns, blocks) = turns(&mut delay(Some(0)), 2000, overhead_ns);
            assert!(without_ns > 0.9 * TURN_NS as f64 && blocks == 2000, "{without_ns}");
            let (took_ns, blocks) = turns(&mut delay(None), 2000, overhead_ns);
            // No longer than the next delay that is tried, and some trials.
            let least_ns = (2 * overhead_ns + 100_000) as f64;
            assert!(took_ns < least_ns + 0.04 * TURN_NS as f64, "{overhead_ns}: {took_ns}");
            assert!(blocks < 2000 * 2 * (overhead_ns + 150_000) / 20_833 + 2000, "{blocks}");
        }
    }

    #[test]
    fn nothing_is_left_on_a_device_that_waits_for_no_turn() {
        let mut delay = delay(None);
        for step in 0..1000_u64 {
            delay.synced(step * 2_000_000, step * 2_000_000 + 150_000);
            assert_eq!(delay.gap_blocks(1, Some(step * 2_000_000 + 200_000)), 0);
        }
    }

    #[test]
    fn nothing_is_left_for_long_on_a_device_without_turns_that_was_slow_at_first() {
        let mut delay = delay(None);
        let (mut now_ns, mut left) = (0, 0);
        delay.synced(0, 0);
        for step in 0..20_000 {
            let gap_blocks = delay.gap_blocks(1, Some(now_ns));
            let took_ns = if step < 12 { 5_000_000 } else { 150_000 };
            if step >= 10_000 {
                left += u32::from(gap_blocks > 0);
            }
            delay.synced(now_ns, now_ns + took_ns);
            now_ns += took_ns;
        }
        assert!(left <= 10_000 / TRY_EVERY as u32, "{left} gaps");
    }

    #[test]
    fn nothing_is_left_before_a_large_group_or_where_the_heads_are_elsewhere() {
        let mut delay = delay(Some(250_000));
        assert_eq!(delay.gap_blocks(1, None), 0);
        delay.synced(0, 0);
        assert_eq!(delay.gap_blocks(1, None), 12);
        assert_eq!(delay.gap_blocks(BLOCKS_MAX + 1, None), 0);
        delay.moved();
        assert_eq!(delay.gap_blocks(1, None), 0);
    }
}
