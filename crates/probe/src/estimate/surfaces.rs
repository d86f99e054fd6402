//! How many surfaces a cylinder has, out of the skews of tracks that follow each other.

use super::statistics::{median, median_angle, spread, wrap};

/// Skews between tracks, in the order of the tracks: which of them are changes of the cylinder.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(clippy::struct_field_names, reason = "what it is of is what it is called")]
pub(crate) struct Surfaces {
    /// Tracks of a cylinder; 1 if no pattern is seen.
    pub(crate) surfaces: u32,
    /// Skew between tracks of a cylinder, turns.
    pub(crate) track_skew: f64,
    /// Skew between cylinders, turns.
    pub(crate) cylinder_skew: f64,
}

/// Most surfaces that are looked for; chosen by us: the largest drives of the catalogue have 21.
const SURFACES_MAX: usize = 24;

/// The pattern in `skews`, one a track, turns.
pub(crate) fn surfaces(skews: &[f64]) -> Surfaces {
    let all = median_angle(skews, skews.first().copied().unwrap_or(0.0));
    let flat = Surfaces { surfaces: 1, track_skew: all, cylinder_skew: all };
    if skews.len() < 8 {
        return flat;
    }
    let off: Vec<f64> = skews.iter().map(|skew| wrap(skew - all)).collect();
    let cost = |values: &[f64], centre: f64| -> f64 {
        // A few reads that were late must not decide.
        values.iter().map(|value| wrap(value - centre).abs().min(0.1)).sum()
    };
    let alone = cost(&off, median(&off));
    let mut best: Option<(f64, Surfaces, f64)> = None;
    for period in 2..=SURFACES_MAX.min(skews.len() / 3) {
        for first in 0..period {
            let (mut within, mut across) = (Vec::new(), Vec::new());
            for (number, value) in off.iter().enumerate() {
                if number % period == first { across.push(*value) } else { within.push(*value) }
            }
            let (inside, outside) = (median(&within), median_angle(&across, across[0]));
            let sum = cost(&within, inside) + cost(&across, outside);
            let found = Surfaces {
                surfaces: period as u32,
                track_skew: all + inside,
                cylinder_skew: all + outside,
            };
            let apart = wrap(outside - inside).abs();
            // Both kinds must be seen apart, and in more than half of all cylinders.
            let clear = apart > 0.015 && apart > 4.0 * spread(&within).max(spread(&across));
            if clear && best.is_none_or(|(least, ..)| sum < least) {
                best = Some((sum, found, apart));
            }
        }
    }
    match best {
        Some((sum, found, _)) if sum < 0.5 * alone => found,
        _ => flat,
    }
}
