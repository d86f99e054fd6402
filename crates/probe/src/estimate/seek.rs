//! The time to get from one sector to another at a distance, from reads that each bound it on both sides.
//!
//! A read ends when its sector has passed, the arm having arrived some time within the turn before that.
//! If it took `t` from end to end, its least time `s` is in `(t - T, t]`.

/// A read at a distance from the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bound {
    /// Distance, tracks.
    pub(crate) tracks: f64,
    /// Time from the end of the one before to its own, ns.
    pub(crate) taken_ns: f64,
}

/// The interval in which the least time lies, narrowed read by read.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(clippy::struct_field_names, reason = "each is a time in nanoseconds")]
pub(crate) struct Interval {
    period_ns: f64,
    pub(crate) low_ns: f64,
    pub(crate) high_ns: f64,
}

impl Interval {
    /// What one read says.
    pub(crate) fn new(taken_ns: f64, period_ns: f64) -> Self {
        Self { period_ns, low_ns: (taken_ns - period_ns).max(0.0), high_ns: taken_ns }
    }

    /// The time that the next read should take, to halve it.
    pub(crate) fn middle_ns(&self) -> f64 {
        f64::midpoint(self.low_ns, self.high_ns)
    }

    /// How wide it is.
    pub(crate) fn width_ns(&self) -> f64 {
        self.high_ns - self.low_ns
    }

    /// Takes one more read into account. Reads that contradict it (a late answer, another
    /// distance) open it again a little.
    pub(crate) fn narrow(&mut self, taken_ns: f64) {
        let low = (taken_ns - self.period_ns).max(0.0);
        if low >= self.high_ns {
            self.high_ns = (low + 0.1 * self.period_ns).min(self.low_ns + self.period_ns);
        } else if taken_ns <= self.low_ns {
            self.low_ns = (taken_ns - 0.1 * self.period_ns).max(0.0);
            self.high_ns = self.high_ns.min(taken_ns + 0.02 * self.period_ns);
        } else {
            self.low_ns = self.low_ns.max(low);
            self.high_ns = self.high_ns.min(taken_ns);
        }
    }
}

/// The least time that `bounds` agree on best: where as much is said against more as against less.
/// `None` without any.
pub(crate) fn least_time_ns(bounds: &[f64], period_ns: f64) -> Option<f64> {
    let bounds: Vec<f64> = bounds.iter().copied().filter(|taken| taken.is_finite()).collect();
    let turns = period_ns.is_finite() && period_ns > 0.0;
    if bounds.is_empty() || !turns {
        return None;
    }
    // The sum of what each read contradicts a value by is convex, with corners at `t` and `t - T`.
    let contradiction = |value: f64| -> f64 {
        bounds
            .iter()
            .map(|taken| {
                (value - taken).max(0.0) + (taken - period_ns - value).clamp(0.0, period_ns)
            })
            .sum()
    };
    let mut corners: Vec<f64> =
        bounds.iter().flat_map(|taken| [*taken, (taken - period_ns).max(0.0)]).collect();
    corners.retain(|corner| corner.is_finite());
    corners.sort_by(f64::total_cmp);
    let least = corners.iter().map(|corner| contradiction(*corner)).fold(f64::MAX, f64::min);
    // All values between the first and the last of the best corners are as good.
    let slack = 1e-6 * period_ns;
    let good: Vec<f64> =
        corners.iter().copied().filter(|corner| contradiction(*corner) <= least + slack).collect();
    Some(f64::midpoint(*good.first()?, *good.last()?))
}

/// Distances with their times, made to rise with the distance: neighbours that do not are
/// replaced by their mean, as many as it takes.
pub(crate) fn rising(points: &[(f64, f64, f64)]) -> Vec<(f64, f64)> {
    let mut blocks: Vec<(f64, f64, Vec<f64>)> = Vec::new();
    for (distance, time, weight) in points {
        blocks.push((*time, weight.max(1e-9), vec![*distance]));
        while blocks.len() > 1 && blocks[blocks.len() - 2].0 > blocks[blocks.len() - 1].0 {
            let (time, weight, distances) = blocks.pop().expect("two are there");
            let last = blocks.last_mut().expect("one is there");
            last.0 = (last.0 * last.1 + time * weight) / (last.1 + weight);
            last.1 += weight;
            last.2.extend(distances);
        }
    }
    blocks
        .into_iter()
        .flat_map(|(time, _, distances)| distances.into_iter().map(move |one| (one, time)))
        .collect()
}
