//! Sectors of a track, and by how much the next track is turned, out of the angles at which reads end.

use super::statistics::{fraction, mean, median, spread, wrap};

/// Where a read ended: its last sector's angle, if it came from the medium.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct End {
    /// First sector of the read; all reads of a series are equally long.
    pub(crate) sector: f64,
    /// When it was answered, ns.
    pub(crate) at_ns: f64,
}

/// What a series of reads says of the tracks there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrackFit {
    /// Sectors that pass in a turn.
    pub(crate) sectors: f64,
    /// By how much the time of a turn differed then, as a share of it.
    pub(crate) drift: f64,
    /// By how much each track is turned against the one before it, turns.
    pub(crate) skews: Vec<f64>,
    /// Share of the pairs of neighbours that agree with it.
    pub(crate) agreeing: f64,
    /// How far the ends lie from it, turns.
    pub(crate) spread: f64,
}

/// Spindles wander; in the time of one series by at most this much, as a share. Chosen by us.
const DRIFT_MAX: f64 = 0.002;

/// How far the number of sectors may be from what is known of it, as a share: the doubling of gaps is that
/// far off where late answers and skews meet. Chosen by us.
const REACH: f64 = 0.09;

/// Angles this near to each other agree, turns; chosen by us: a few times what a busy machine is late by.
const NEAR_TURNS: f64 = 0.012;

/// The angle between reads whose first sectors are `gap` apart, turns, from the ends of a descending series
/// of them; `expected` is what is known of it, or 0.
pub(crate) fn angle_of_gap(ends: &[End], period_ns: f64, expected: f64) -> Option<f64> {
    if ends.len() < 3 || period_ns <= 0.0 {
        return None;
    }
    let between = |pair: &[End]| (pair[0].at_ns - pair[1].at_ns) / period_ns;
    let off: Vec<f64> = ends.windows(2).map(|pair| wrap(between(pair) - expected)).collect();
    Some(expected + median(&off))
}

/// The tracks under `ends`, of which a turn holds about `near` sectors; `None` if nothing fits.
pub(crate) fn fit(ends: &[End], period_ns: f64, near: f64) -> Option<TrackFit> {
    if ends.len() < 8 || !(near > 1.0 && period_ns > 0.0) || !near.is_finite() {
        return None;
    }
    let middle = mean(&ends.iter().map(|end| end.at_ns).collect::<Vec<f64>>());
    let turns: Vec<f64> = ends.iter().map(|end| (end.at_ns - middle) / period_ns).collect();
    let mut pairs = Vec::new();
    for (i, one) in ends.iter().enumerate() {
        for (j, other) in ends.iter().enumerate() {
            let apart = one.sector - other.sector;
            if apart > 0.0 && apart < 0.6 * near {
                pairs.push((wrap(turns[i] - turns[j]), turns[i] - turns[j], apart));
            }
        }
    }
    if pairs.len() < 8 {
        return None;
    }
    // Pairs that agree, nearer ones more, by how fast angles grow with the sector and turns with time.
    let agreement = |sectors: f64, drift: f64| -> f64 {
        pairs
            .iter()
            .map(|(angle, apart_turns, apart)| {
                let off = wrap(angle - drift * apart_turns - apart / sectors) / NEAR_TURNS;
                apart / (1.0 + off * off)
            })
            .sum()
    };
    let mut best = (f64::MIN, near, 0.0);
    let (mut sectors_reach, mut drift_reach) = (REACH * near, DRIFT_MAX);
    for (sector_steps, drift_steps) in [(45_i32, 14_i32), (8, 8), (8, 8)] {
        let (sectors_at, drift_at) = (best.1, best.2);
        for number in -sector_steps..=sector_steps {
            let sectors = sectors_at + sectors_reach * f64::from(number) / f64::from(sector_steps);
            for other in -drift_steps..=drift_steps {
                let drift = drift_at + drift_reach * f64::from(other) / f64::from(drift_steps);
                let value = agreement(sectors, drift);
                if value > best.0 {
                    best = (value, sectors, drift);
                }
            }
        }
        sectors_reach *= 2.0 / f64::from(sector_steps);
        drift_reach *= 2.0 / f64::from(drift_steps);
    }
    let (_, sectors, drift) = best;
    let near_pairs = pairs.iter().filter(|(angle, apart_turns, apart)| {
        wrap(angle - drift * apart_turns - apart / sectors).abs() < 3.0 * NEAR_TURNS
    });
    let agreeing = near_pairs.count() as f64 / pairs.len() as f64;
    let mut flat: Vec<(f64, f64)> = ends
        .iter()
        .zip(&turns)
        .map(|(end, turn)| (end.sector, fraction(turn - drift * turn - end.sector / sectors)))
        .collect();
    flat.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (skews, spread) = jumps(&flat, sectors);
    Some(TrackFit { sectors, drift, skews, agreeing, spread })
}

/// The jumps between stretches of equal angles, turns, and how far angles lie from their stretch's.
fn jumps(flat: &[(f64, f64)], sectors: f64) -> (Vec<f64>, f64) {
    // Stretches begin where the angle leaves that of the stretch for at least two reads.
    let mut stretches: Vec<Vec<(f64, f64)>> = Vec::new();
    for (number, (sector, angle)) in flat.iter().enumerate() {
        let Some(current) = stretches.last_mut() else {
            stretches.push(vec![(*sector, *angle)]);
            continue;
        };
        let reference = current[0].1;
        let off: Vec<f64> = current.iter().map(|(_, other)| wrap(other - reference)).collect();
        let centre = reference + median(&off);
        let leaves = |angle: f64| wrap(angle - centre).abs() > 2.0 * NEAR_TURNS;
        if !leaves(*angle) {
            current.push((*sector, *angle));
            continue;
        }
        let next = flat.get(number + 1);
        let stays = next.is_some_and(|(_, next)| wrap(next - angle).abs() < 2.0 * NEAR_TURNS);
        if stays {
            stretches.push(vec![(*sector, *angle)]);
        }
    }
    stretches.retain(|stretch| stretch.len() >= 3);
    let centres: Vec<(f64, f64)> = stretches
        .iter()
        .map(|stretch| {
            let reference = stretch[0].1;
            let off: Vec<f64> = stretch.iter().map(|(_, angle)| wrap(angle - reference)).collect();
            let places: Vec<f64> = stretch.iter().map(|(sector, _)| *sector).collect();
            (median(&places), reference + median(&off))
        })
        .collect();
    let skews = centres
        .windows(2)
        // Neighbours alone: with a stretch missed in between there would be two jumps in one.
        .filter(|pair| pair[1].0 - pair[0].0 < 1.4 * sectors)
        .map(|pair| fraction(pair[1].1 - pair[0].1))
        .collect();
    let off: Vec<f64> = stretches
        .iter()
        .zip(&centres)
        .flat_map(|(stretch, centre)| stretch.iter().map(|(_, angle)| wrap(angle - centre.1)))
        .collect();
    (skews, spread(&off))
}
