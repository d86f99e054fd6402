//! How long requests take, counted in classes an eighth of a factor of two apart.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Classes in each factor of two.
const STEPS: u32 = 8;
/// Factors of two, from a nanosecond to ten minutes.
const OCTAVES: u32 = 40;

/// Times of requests of one kind. Any number of threads count at once.
#[derive(Debug)]
pub(crate) struct Latencies {
    counts: Vec<AtomicU64>,
    worst_ns: AtomicU64,
}

impl Default for Latencies {
    fn default() -> Self {
        let counts = (0..STEPS * OCTAVES).map(|_| AtomicU64::new(0)).collect();
        Self { counts, worst_ns: AtomicU64::new(0) }
    }
}

/// The class of a time.
fn class(ns: u64) -> usize {
    let ns = ns.max(u64::from(STEPS));
    let octave = ns.ilog2();
    // The bits behind the first one.
    let step = (ns >> (octave - STEPS.ilog2())) as u32 % STEPS;
    ((octave * STEPS + step).min(STEPS * OCTAVES - 1)) as usize
}

/// The longest time of a class, ns.
fn end_ns(class: usize) -> u64 {
    let (octave, step) = (class as u32 / STEPS, class as u32 % STEPS);
    (u64::from(STEPS + step + 1) << octave) / u64::from(STEPS)
}

impl Latencies {
    pub(crate) fn count(&self, took: Duration) {
        let ns = took.as_nanos() as u64;
        self.counts[class(ns)].fetch_add(1, Ordering::Relaxed);
        self.worst_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Requests, the longest, and times that the shares `of` of them do not exceed; us. An eighth too
    /// long at most.
    pub(crate) fn summary<const N: usize>(&self, of: [f64; N]) -> (u64, f64, [f64; N]) {
        let counts: Vec<u64> =
            self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let all: u64 = counts.iter().sum();
        let worst_us = self.worst_ns.load(Ordering::Relaxed) as f64 / 1e3;
        let times = of.map(|share| {
            let wanted = (share * all as f64).ceil() as u64;
            let mut seen = 0;
            let found = counts.iter().position(|count| {
                seen += count;
                seen >= wanted.max(1)
            });
            found.map_or(0.0, |class| (end_ns(class) as f64 / 1e3).min(worst_us))
        });
        (all, worst_us, times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_a_sorted_list_but_for_an_eighth() {
        let latencies = Latencies::default();
        let mut times: Vec<u64> = (0..5000_u64).map(|at| at * at * 37 % 3_000_017 + 9).collect();
        for time in &times {
            latencies.count(Duration::from_nanos(*time));
        }
        times.sort_unstable();
        let (all, worst_us, found) = latencies.summary([0.5, 0.99, 1.0]);
        assert_eq!((all, worst_us), (5000, times[4999] as f64 / 1e3));
        for (share, found) in [0.5, 0.99, 1.0].into_iter().zip(found) {
            let exact = times[(share * 5000.0) as usize - 1] as f64 / 1e3;
            assert!((exact..=exact * 1.126).contains(&found), "{share}: {found} for {exact}");
        }
    }
}
