//! Medians, quantiles and angles.

/// The `share` quantile of `values`, linear between neighbours; 0 for none.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    if sorted.is_empty() {
        return 0.0;
    }
    sorted.sort_by(f64::total_cmp);
    let at = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (at - at.floor())
}

/// The middle of `values`; 0 for none.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// How far `values` lie from their middle: half the distance of the quartiles.
pub(crate) fn spread(values: &[f64]) -> f64 {
    (quantile(values, 0.75) - quantile(values, 0.25)) / 2.0
}

/// What `times`, in the order in which they were taken, are while nobody else is in the way: the lowest
/// tenth of the middles of short stretches.
pub(crate) fn undisturbed(times: &[f64]) -> f64 {
    const STRETCH: usize = 8;
    let middles: Vec<f64> = times.chunks(STRETCH).map(median).collect();
    quantile(&middles, 0.1)
}

/// The arithmetic mean; 0 for none.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// `turns` without whole turns, in [-0.5, 0.5).
pub(crate) fn wrap(turns: f64) -> f64 {
    turns - (turns + 0.5).floor()
}

/// `turns` without whole turns, in [0, 1).
pub(crate) fn fraction(turns: f64) -> f64 {
    let rest = turns - turns.floor();
    if rest < 1.0 { rest } else { 0.0 }
}

/// The middle of angles that lie around `near`, turns.
pub(crate) fn median_angle(angles: &[f64], near: f64) -> f64 {
    let off: Vec<f64> = angles.iter().map(|angle| wrap(angle - near)).collect();
    near + median(&off)
}
