//! A lower bound for every rule that does not know how long a load goes on.
//!
//! A log that changes between mechanisms is held against the best single one, which is known only
//! afterwards. Where what is best for a short run is not best for a long one, and a change costs, a
//! run that may end at any time cannot be close to the best at every end. Here every sequence of
//! choices at given decision points is tried, with the writes known. The best of them has a ratio
//! at its worst end; no rule that chooses at those decision points does better without knowing the
//! end.

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{AdaptiveLog, Call, CostMeter, Header, Log, LogSetting, LogShape, Unpriced};

use crate::case::EVEN_DISK;

const BLOCKS: u32 = 20_000;
const SEGMENT_BLOCKS: u32 = 32;
/// In use, of the capacity: where cleaning is best for a pass and plugging for ten.
const UTILIZATION: f64 = 0.72;
/// The updates of Matthews 1999, §5.2.1.1, are ten for each block.
const PASSES: u32 = 10;
/// Decision points while the writes double.
const MOMENTS_PER_DOUBLING: u32 = 3;

fn setting() -> LogSetting {
    let segments = (f64::from(BLOCKS) / UTILIZATION / f64::from(SEGMENT_BLOCKS)).ceil();
    LogSetting {
        buffer_blocks: SEGMENT_BLOCKS,
        header: Header::Block,
        ..LogSetting::plain(
            LogShape::uniform(segments as u32, SEGMENT_BLOCKS).unwrap(),
            BLOCKS,
            EVEN_DISK,
        )
    }
}

/// Zipf updates of exponent 1, no two ranks in a row side by side.
fn zipf_updates() -> Vec<u32> {
    let mut stream = RandomStreams::new(1).stream("writes");
    let sums = (1..=BLOCKS).scan(0.0, |sum, rank| {
        *sum += 1.0 / f64::from(rank);
        Some(*sum)
    });
    let sums: Vec<f64> = sums.collect();
    let unit = 1_u64 << 52;
    let next = |_| {
        let drawn = uniform_below(&mut stream, unit) as f64 / unit as f64 * sums[sums.len() - 1];
        sums.partition_point(|sum| *sum <= drawn) as u32 * 7_919 % BLOCKS
    };
    (0..PASSES * BLOCKS).map(next).collect()
}

fn write_all(log: &mut Log<NoSeparation>, writes: &[u32], meter: &mut CostMeter) {
    for block in writes {
        log.write(*block, 0, meter).unwrap();
    }
}

/// Sequences of choices, and what the best single mechanism has spent where the load may end.
struct Schedules<'a> {
    writes: &'a [u32],
    /// Writes at which a choice begins, and the last end.
    moments: Vec<usize>,
    /// Time spent by the best single mechanism up to each decision point, ns.
    best_ns: Vec<f64>,
    /// The first decision point at which the load may end.
    first_end: usize,
}

impl Schedules<'_> {
    /// Whether some sequence of choices from decision point `now` on spends less than `bound` times
    /// what the best single mechanism does, at every end.
    fn any_within(
        &self,
        bound: f64,
        now: usize,
        last: Option<Mechanism>,
        log: &Log<NoSeparation>,
        meter: &CostMeter,
    ) -> bool {
        let Some(until) = self.moments.get(now + 1) else { return true };
        let mut choices = Mechanism::ALL;
        // The unchanged mechanism comes first: it is the answer most often.
        choices.sort_by_key(|mechanism| Some(*mechanism) != last);
        choices.into_iter().any(|mechanism| {
            let (mut log, mut meter) = (log.clone(), meter.clone());
            log.set_collect(Collect::Always(mechanism));
            write_all(&mut log, &self.writes[self.moments[now]..*until], &mut meter);
            let is_within = now + 1 < self.first_end
                || (meter.total_ns() as f64) < bound * self.best_ns[now + 1];
            is_within && self.any_within(bound, now + 1, Some(mechanism), &log, &meter)
        })
    }
}

/// Of Zipf updates that may end anywhere from one pass to ten. The bounds of the measured figure
/// (1.06 at these decision points) stand on both sides, which shows that the search finds it.
#[test]
fn nothing_within_three_per_cent_of_the_best_at_every_end() {
    let writes = zipf_updates();
    let mut log = Log::new(setting(), NoSeparation).unwrap();
    (0..BLOCKS).for_each(|block| log.preload(block, &mut Unpriced).unwrap());
    // Until room is short, all mechanisms do the same: new data into free segments.
    let free_blocks = log.shape().capacity_blocks() - u64::from(BLOCKS);
    let alike = free_blocks as usize - 3 * SEGMENT_BLOCKS as usize;
    let mut meter = CostMeter::new(EVEN_DISK);
    write_all(&mut log, &writes[..alike], &mut meter);

    let ratio = 2.0_f64.powf(1.0 / f64::from(MOMENTS_PER_DOUBLING));
    let half = f64::from(BLOCKS) / 2.0;
    let later = (0..).map(|step| (half * ratio.powi(step)).round() as usize);
    let later = later.take_while(|moment| *moment < writes.len());
    let moments: Vec<usize> = std::iter::once(alike).chain(later).chain([writes.len()]).collect();
    let first_end = moments.iter().position(|moment| *moment >= BLOCKS as usize).unwrap();
    let mut best_ns = vec![f64::INFINITY; moments.len()];
    for mechanism in Mechanism::ALL {
        let (mut log, mut meter) = (log.clone(), meter.clone());
        log.set_collect(Collect::Always(mechanism));
        for (span, best_ns) in moments.windows(2).zip(&mut best_ns[1..]) {
            write_all(&mut log, &writes[span[0]..span[1]], &mut meter);
            *best_ns = best_ns.min(meter.total_ns() as f64);
        }
    }
    let mut adaptive = AdaptiveLog::among(&Mechanism::ALL, setting(), |_| NoSeparation).unwrap();
    (0..BLOCKS).for_each(|block| adaptive.carry_out(Call::Preload(block), &mut Unpriced).unwrap());
    let (mut spent, mut ours) = (CostMeter::new(EVEN_DISK), 0.0_f64);
    for (write, block) in (1..).zip(&writes) {
        adaptive.carry_out(Call::Write { block: *block, client: 0 }, &mut spent).unwrap();
        if let Some(end) = moments[first_end..].iter().position(|moment| *moment == write) {
            ours = ours.max(spent.total_ns() as f64 / best_ns[first_end + end]);
        }
    }
    let schedules = Schedules { writes: &writes, moments, best_ns, first_end };
    assert!(!schedules.any_within(1.03, 0, None, &log, &meter), "within 3 %");
    assert!(schedules.any_within(1.10, 0, None, &log, &meter), "not within 10 %");
    assert!(1.03 < ours && ours < 1.25, "{ours} without knowing the end");
}
