//! Quantiles of response times as they come.

/// Bins of one doubling; a quantile is within 6 % of the truth.
const BINS: u32 = 8;

/// A histogram of times, eight bins each doubling.
#[derive(Debug, Clone)]
pub(crate) struct Latencies {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: vec![0; (64 * BINS) as usize], total: 0 }
    }
}

fn bin(time_ns: u64) -> usize {
    let time_ns = time_ns.max(u64::from(BINS));
    let doubling = time_ns.ilog2();
    let within = (time_ns >> (doubling - BINS.ilog2())) as u32 - BINS;
    (doubling * BINS + within) as usize
}

impl Latencies {
    #[inline]
    pub(crate) fn add(&mut self, time_ns: u64) {
        self.counts[bin(time_ns)] += 1;
        self.total += 1;
    }

    /// The time that `share` of all are within, ms: the middle of its bin.
    pub(crate) fn quantile_ms(&self, share: f64) -> Option<f64> {
        let wanted = (self.total as f64 * share).ceil() as u64;
        let mut below = 0;
        let bin = self.counts.iter().position(|&count| {
            below += count;
            count > 0 && below >= wanted
        })? as u32;
        let step = 2_f64.powi((bin / BINS) as i32) / f64::from(BINS);
        Some(step * (f64::from(BINS + bin % BINS) + 0.5) / 1e6)
    }

    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Latencies;

    #[test]
    fn quantiles_are_within_a_bin() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile_ms(0.5), None);
        for time_us in 1..=1000_u64 {
            latencies.add(time_us * 1000);
        }
        for (share, expected_ms) in [(0.5, 0.5), (0.99, 0.99), (0.001, 0.001)] {
            let found = latencies.quantile_ms(share).unwrap();
            assert!((found / expected_ms - 1.0).abs() < 0.07, "{share}: {found}");
        }
        latencies.add(0);
        latencies.add(u64::MAX);
        latencies.clear();
        assert_eq!(latencies.quantile_ms(0.5), None);
    }
}
