//! Flash: what commands and transfers take, how many reads it works on at once, and which addresses are
//! in each other's way.

use super::session::{SMALL, Session};
use crate::disk::{Extent, ProbeError};
use crate::estimate::statistics::quantile;

/// Random reads of each size, at each of three times.
const READS: usize = 200;

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
    sizes(session, &mut by_size_ns)?;
    depths(session, &mut by_depth)?;
    let pairs_ns = pairs(session)?;
    sizes(session, &mut by_size_ns)?;
    depths(session, &mut by_depth)?;
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
    sizes(session, &mut by_size_ns)?;
    let sequential_sector_ns = quantile(&rates, 0.3);
    // The rounds in which nobody else was in the way.
    let by_depth_ns = by_depth.iter().map(|times| quantile(times, 0.2)).collect();
    Ok(FlashSeen { by_size_ns, by_depth_ns, pairs_ns, sequential_sector_ns })
}

/// Random reads of each size; the sizes take turns, so that none of them has a bad time for itself.
fn sizes(session: &mut Session<'_>, by_size_ns: &mut [Vec<f64>]) -> Result<(), ProbeError> {
    session.step("sizes of reads")?;
    for _ in 0..READS {
        for (number, sectors) in SIZES.into_iter().enumerate() {
            let place = session.place();
            let place = session.within(place, sectors).first;
            by_size_ns[number].push(session.read(place, sectors)?.taken_ns());
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
