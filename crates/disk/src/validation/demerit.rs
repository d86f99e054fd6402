//! The demerit figure: RMS horizontal distance between two distributions (Ruemmler & Wilkes 1994).
//!
//! [`binned`] is DiskSim's tool to the letter, so that figures compare: response times in integer microseconds fall
//! into 1750 buckets that grow by 1 %, a bucket is labelled with its upper edge, cumulative fractions are rounded to six
//! decimals, and the two curves are read at 10,000 levels with straight lines between points. [`exact`] takes the
//! samples' own quantiles.

const BUCKETS: usize = 1750;
const LEVELS: usize = 10_000;

/// Upper edges of the buckets, microseconds: 0, 1, ... 100, 102, ... growing by 1 %.
fn edges_us() -> Vec<u64> {
    let mut edge = 0_u64;
    (0..BUCKETS)
        .map(|_| {
            let this = edge;
            edge += 1 + edge / 100;
            this
        })
        .collect()
}

struct Curve {
    value_ms: Vec<f64>,
    fraction: Vec<f64>,
}

impl Curve {
    fn new(samples_ns: &[u64], edges_us: &[u64]) -> Self {
        let mut counts = vec![0_u64; edges_us.len()];
        for sample in samples_ns {
            let us = sample / 1000;
            let bucket = edges_us.partition_point(|edge| *edge <= us).min(edges_us.len() - 1);
            counts[bucket] += 1;
        }
        let total = samples_ns.len() as f64;
        let mut curve = Curve { value_ms: Vec::new(), fraction: Vec::new() };
        let mut before = 0.0;
        for (edge, count) in edges_us.iter().zip(counts) {
            before += count as f64 / total;
            let fraction = (before * 1e6).round() / 1e6;
            curve.value_ms.push(*edge as f64 / 1000.0);
            curve.fraction.push(fraction);
            if fraction >= 1.0 {
                break;
            }
        }
        curve
    }

    fn at(&self, level: f64) -> f64 {
        let last = self.fraction.len() - 1;
        let above = self.fraction.partition_point(|fraction| *fraction < level).min(last);
        if above == 0 {
            return self.value_ms[0];
        }
        let (f0, f1) = (self.fraction[above - 1], self.fraction[above]);
        let (v0, v1) = (self.value_ms[above - 1], self.value_ms[above]);
        if f1 > f0 { v0 + (level - f0) / (f1 - f0) * (v1 - v0) } else { v1 }
    }
}

/// The demerit of two sets of samples (ns) as DiskSim computes it, ms; `None` if either is empty.
pub fn binned(one_ns: &[u64], other_ns: &[u64]) -> Option<f64> {
    if one_ns.is_empty() || other_ns.is_empty() {
        return None;
    }
    let edges = edges_us();
    let (one, other) = (Curve::new(one_ns, &edges), Curve::new(other_ns, &edges));
    let sum: f64 = (1..=LEVELS)
        .map(|level| level as f64 / LEVELS as f64)
        .map(|level| (one.at(level) - other.at(level)).powi(2))
        .sum();
    Some((sum / LEVELS as f64).sqrt())
}

/// The demerit of two sets of samples (ns) from their exact quantiles, ms; `None` if either is empty.
pub fn exact(one_ns: &[u64], other_ns: &[u64]) -> Option<f64> {
    if one_ns.is_empty() || other_ns.is_empty() {
        return None;
    }
    let sorted = |samples: &[u64]| {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        sorted
    };
    let (one, other) = (sorted(one_ns), sorted(other_ns));
    let quantile = |samples: &[u64], level: f64| {
        samples[((level * samples.len() as f64) as usize).min(samples.len() - 1)] as f64 / 1e6
    };
    let sum: f64 = (0..LEVELS)
        .map(|level| (level as f64 + 0.5) / LEVELS as f64)
        .map(|level| (quantile(&one, level) - quantile(&other, level)).powi(2))
        .sum();
    Some((sum / LEVELS as f64).sqrt())
}
