//! The time of a turn, from when reads of the same places end.

/// Slowest and fastest spindle that is looked for, turns a second: 900 to 36,000 turns a minute. Chosen by
/// us: wider than every drive that was sold.
const TURNS_PER_S: (f64, f64) = (15.0, 600.0);

/// Of several frequencies that explain the ends, the lowest with this share of the best's coherence is
/// the spindle: all its multiples explain them as well. Chosen by us.
const AS_GOOD: f64 = 0.8;

/// A spindle, as read off the ends of reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rotation {
    /// Time of a turn, ns.
    pub(crate) period_ns: f64,
    /// How well ends of the same place lie at the same angle: 0 not at all, 1 exactly.
    pub(crate) coherence: f64,
    /// Pairs of reads that it rests on.
    pub(crate) pairs: usize,
}

/// The spindle's turn out of times between ends of reads of the same place, ns; `None` if there are too
/// few to go by.
pub(crate) fn rotation(between_ns: &[f64]) -> Option<Rotation> {
    let between: Vec<f64> =
        between_ns.iter().copied().filter(|ns| ns.is_finite() && *ns > 0.0).collect();
    let longest_s = between.iter().copied().fold(0.0, f64::max) / 1e9;
    if between.len() < 16 || longest_s <= 0.0 || longest_s > 60.0 {
        return None;
    }
    let step = 0.12 / longest_s;
    let count = ((TURNS_PER_S.1 - TURNS_PER_S.0) / step) as usize;
    let at = |number: usize| TURNS_PER_S.0 + step * number as f64;
    let scanned: Vec<f64> = (0..=count).map(|number| coherence(&between, at(number))).collect();
    let best = scanned.iter().copied().fold(0.0, f64::max);
    let first = scanned.iter().position(|value| *value >= AS_GOOD * best)?;
    // The flank of a peak was found; its top is near.
    let reach = (first + 10).min(count);
    let top = (first..=reach).max_by(|a, b| scanned[*a].total_cmp(&scanned[*b]))?;
    let (mut low, mut high) = (at(top) - step, at(top) + step);
    for _ in 0..40 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if coherence(&between, left) < coherence(&between, right) {
            low = left;
        } else {
            high = right;
        }
    }
    let frequency = f64::midpoint(low, high);
    let coherence = coherence(&between, frequency);
    Some(Rotation { period_ns: 1e9 / frequency, coherence, pairs: between.len() })
}

/// Mean cosine of the angles between ends: those of one place are whole turns apart, which is 1.
fn coherence(between_ns: &[f64], turns_per_s: f64) -> f64 {
    let sum: f64 = between_ns
        .iter()
        .map(|ns| libm::cos(std::f64::consts::TAU * (ns / 1e9 * turns_per_s).fract()))
        .sum();
    (sum / between_ns.len() as f64).max(0.0)
}
