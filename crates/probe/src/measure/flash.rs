//! Flash: what commands and transfers take, how many reads it works on at once, and which addresses are
//! in each other's way.

use super::session::{SMALL, Session};
use crate::disk::{Extent, ProbeError};
use crate::estimate::statistics::{quantile, undisturbed};

/// Random reads of each size, in each round.
const READS: usize = 160;

/// Rounds of all sizes and depths at least and at most, how many of them must agree, and by which factor; and the share of
/// the probe's time after which there are no more. Chosen by us.
const ROUNDS_MIN: usize = 8;
const ROUNDS_MAX: usize = 40;
const QUIET_ROUNDS: usize = 3;
const QUIET: f64 = 1.05;
const SHARE_FOR_ROUNDS: f64 = 0.25;

/// Time between them, ns: others' work comes in bursts of about a second. Chosen by us.
const PAUSE_NS: f64 = 5e8;

/// Reads of one size that follow each other.
const RUN: usize = 40;

/// Sectors of the sizes: 4, 16, 64, 256 KiB and 1 MiB.
pub(crate) const SIZES: [u64; 5] = [8, 32, 128, 512, 2048];

/// Reads outstanding.
pub(crate) const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// Reads for each of them.
const BATCH: usize = 96;

/// Distances of pairs that are read together, small reads, and repeats of each. Chosen by us: up to
/// 2 MiB, twice the largest stripe of the catalogue's drives.
const PAIRS: u64 = 512;
const PAIR_REPEATS: usize = 24;

/// What was seen.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_field_names, reason = "each is a time in nanoseconds")]
pub(crate) struct FlashSeen {
    /// Times of each of [`SIZES`], ns.
    pub(crate) by_size_ns: Vec<Vec<f64>>,
    /// Time a read at each of [`DEPTHS`], ns.
    pub(crate) by_depth_ns: Vec<f64>,
    /// For each distance from 1 on, in small reads, the time of the later of two reads together, ns: the middle.
    pub(crate) pairs_ns: Vec<f64>,
    /// Time a sector of long reads that follow each other, ns.
    pub(crate) sequential_sector_ns: f64,
}

/// Measures it.
pub(crate) fn measure(session: &mut Session<'_>) -> Result<FlashSeen, ProbeError> {
    let mut by_size_ns = vec![Vec::with_capacity(3 * READS); SIZES.len()];
    let mut by_depth: Vec<Vec<f64>> = vec![Vec::new(); DEPTHS.len()];
    let mut rounds_ns = Vec::new();
    // A disk that others use now and then is looked at until it was quiet a few times.
    for round in 0..ROUNDS_MAX {
        let is_known = round >= ROUNDS_MIN && are_quiet(&rounds_ns);
        if is_known || (round >= QUIET_ROUNDS && session.share_spent() > SHARE_FOR_ROUNDS) {
            break;
        }
        session.idle_ns(PAUSE_NS);
        let before = by_size_ns[0].len();
        sizes(session, &mut by_size_ns)?;
        depths(session, &mut by_depth)?;
        rounds_ns.push(undisturbed(&by_size_ns[0][before..]));
    }
    let pairs_ns = pairs(session)?;
    session.step("reads that follow each other")?;
    let mut rates = Vec::new();
    for _ in 0..8 {
        let place = session.place();
        let first = session.within(place, 16 * 2048).first;
        let mut times = Vec::new();
        for number in 0..16 {
            times.push(session.read(first + number * 2048, 2048)?.taken_ns());
        }
        rates.push(quantile(&times, 0.5) / 2048.0);
    }
    let sequential_sector_ns = quantile(&rates, 0.3);
    // The rounds in which nobody else was in the way.
    let by_depth_ns = by_depth.iter().map(|times| quantile(times, 0.1)).collect();
    Ok(FlashSeen { by_size_ns, by_depth_ns, pairs_ns, sequential_sector_ns })
}

/// Whether the quietest rounds agree, so that nobody was in their way.
fn are_quiet(rounds_ns: &[f64]) -> bool {
    let mut sorted = rounds_ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(QUIET_ROUNDS - 1).is_some_and(|third| *third <= QUIET * sorted[0])
}

/// Random reads of each size; the sizes take turns, run by run, so that none of them has a bad time for
/// itself. (Read by read a host's work on long ones would show in short ones.)
fn sizes(session: &mut Session<'_>, by_size_ns: &mut [Vec<f64>]) -> Result<(), ProbeError> {
    session.step("sizes of reads")?;
    for _ in 0..READS / RUN {
        for (number, sectors) in SIZES.into_iter().enumerate() {
            for _ in 0..RUN {
                let place = session.place();
                let place = session.within(place, sectors).first;
                by_size_ns[number].push(session.read(place, sectors)?.taken_ns());
            }
        }
    }
    Ok(())
}

/// Random reads at each depth.
fn depths(session: &mut Session<'_>, by_depth: &mut [Vec<f64>]) -> Result<(), ProbeError> {
    session.step("reads at the same time")?;
    for _ in 0..8 {
        for (number, depth) in DEPTHS.into_iter().enumerate() {
            let extents = session.small_extents(BATCH);
            let answers = session.read_together(&extents, depth)?;
            by_depth[number].push(busy_ns(&answers) / extents.len() as f64);
        }
    }
    Ok(())
}

/// Pairs of reads at growing distances.
fn pairs(session: &mut Session<'_>) -> Result<Vec<f64>, ProbeError> {
    session.step("pairs of reads")?;
    let mut pairs_ns = Vec::new();
    let reach = PAIRS.min(session.sectors() / SMALL / 4);
    for apart in 1..=reach {
        let mut times = Vec::new();
        for _ in 0..PAIR_REPEATS {
            let place = session.place();
            let first = session.within(place, (apart + 1) * SMALL).first;
            let pair = [first, first + apart * SMALL].map(|first| Extent { first, sectors: SMALL });
            let answers = session.read_together(&pair, 2)?;
            let begin = answers.iter().map(|answer| answer.begin.0).min().unwrap_or(0);
            let end = answers.iter().map(|answer| answer.end.0).max().unwrap_or(0);
            times.push((end - begin) as f64);
        }
        pairs_ns.push(quantile(&times, 0.5));
        if session.share_spent() > 0.7 {
            break;
        }
    }
    Ok(pairs_ns)
}

/// From the first request to the last answer, ns, the last twentieth left out: they may be late.
fn busy_ns(answers: &[crate::disk::Answer]) -> f64 {
    let begin = answers.iter().map(|answer| answer.begin.0).min().unwrap_or(0);
    let ends: Vec<f64> =
        answers.iter().map(|answer| answer.end.0.saturating_sub(begin) as f64).collect();
    quantile(&ends, 0.95) / 0.95
}
