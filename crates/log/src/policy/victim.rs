//! Victim selection: scores of how much a segment is worth collecting.
//!
//! The scores are functions of how full a segment is and how old its data is. Every one of them
//! prefers, of two segments that are equally full, the older, which is what lets the index of
//! segments find the best without looking at all.

/// Which segments are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// The least utilized segment.
    Greedy,
    /// The segment of least cost over age (Rosenblum & Ousterhout 1992, §3.6; so called by
    /// Matthews 1999, §5.2.2): the least (1 + u) / (age (1 - u)).
    CostAge,
    /// The same, but a segment wholly in the cache costs no read (Matthews 1999, §5.5): the least
    /// u / (age (1 - u)).
    CostAgeCache,
    /// The most (1 - u) / u times the square root of age, as the SepBIT simulator scores it.
    BenefitRootAge,
    /// The segment whose collection costs least in the long run, judged by how segments have been
    /// seen to empty ([`Renewal`](super::placement::Renewal)).
    Renewal,
    /// The segment sealed longest ago.
    Fifo,
    /// The least utilized of some drawn at random (Van Houdt 2013).
    RandomGreedy {
        /// Segments drawn.
        choices: u32,
    },
    /// The least utilized of those sealed longest ago (Hu et al. 2009).
    WindowedGreedy {
        /// Segments in the window.
        window: u32,
    },
}

impl Victim {
    /// The name in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Victim::Greedy => "greedy",
            Victim::CostAge => "cost-age",
            Victim::CostAgeCache => "cost-age-cache",
            Victim::BenefitRootAge => "benefit-root-age",
            Victim::Renewal => "renewal",
            Victim::Fifo => "fifo",
            Victim::RandomGreedy { .. } => "random-greedy",
            Victim::WindowedGreedy { .. } => "windowed-greedy",
        }
    }

    /// Whether the choice looks at ages within equally full segments.
    #[must_use]
    pub fn by_age(self) -> bool {
        matches!(
            self,
            Victim::CostAge | Victim::CostAgeCache | Victim::BenefitRootAge | Victim::Renewal
        )
    }

    /// Whether the choice needs the order in which segments were sealed.
    #[must_use]
    pub fn by_seal_order(self) -> bool {
        matches!(self, Victim::Fifo | Victim::WindowedGreedy { .. })
    }

    /// How much a segment with `live` of `blocks` blocks live, whose youngest block was written
    /// `age` block writes ago, is worth collecting: the highest is chosen. `cached` says that it
    /// need not be read.
    #[must_use]
    pub fn worth(self, live: u32, blocks: u32, age: u64, cached: bool) -> f64 {
        let utilization = f64::from(live) / f64::from(blocks);
        let age = age.max(1) as f64;
        match self {
            Victim::CostAge => age * (1.0 - utilization) / (1.0 + utilization),
            Victim::CostAgeCache => {
                let read = if cached { 0.0 } else { 1.0 };
                age * (1.0 - utilization) / (read + utilization)
            }
            Victim::BenefitRootAge => (1.0 - utilization) / utilization * age.sqrt(),
            // The state of renewal is not here: it scores by itself.
            Victim::Renewal
            | Victim::Greedy
            | Victim::Fifo
            | Victim::RandomGreedy { .. }
            | Victim::WindowedGreedy { .. } => 1.0 - utilization,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cached_segment_is_worth_more_by_the_read_it_saves() {
        // Matthews 1999, §5.5: the cost per age falls from (1 + u) to u over a (1 - u).
        let plain = Victim::CostAgeCache.worth(24, 32, 100, false);
        let cached = Victim::CostAgeCache.worth(24, 32, 100, true);
        assert!((1.0 / plain - 1.75 / (100.0 * 0.25)).abs() < 1e-12);
        assert!((1.0 / plain - 1.0 / cached - 1.0 / (100.0 * 0.25)).abs() < 1e-12);
        assert_eq!(plain.to_bits(), Victim::CostAge.worth(24, 32, 100, true).to_bits());
    }

    #[test]
    fn equally_full_segments_are_collected_oldest_first() {
        for victim in [Victim::CostAge, Victim::CostAgeCache, Victim::BenefitRootAge] {
            assert!(victim.worth(7, 10, 50, false) > victim.worth(7, 10, 49, false));
            assert!(victim.worth(6, 10, 50, false) > victim.worth(7, 10, 50, false));
        }
    }
}
