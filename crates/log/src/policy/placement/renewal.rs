//! Victim selection by renewal: the segment whose collection now costs least in the long run.
//!
//! Idea: the blocks of a segment die independently at rate r. Collected when a share u is live, a
//! segment costs u copies, and it held its space for -ln u / r. Balancing copies against space at a
//! price w a block and write, the best moment is where (1 - u) / u + ln u = r / w (the derivative
//! of [1 + w T] r / (1 - e^(-r T)) over the age T): the hotter a segment, the emptier it is let
//! become. So segments are ordered by ((1 - u) / u + ln u) / r, which needs no price.
//!
//! The rate is the deaths in the segment over the time that its blocks lived, shrunk towards the
//! rate of all victims by a gamma prior of k deaths. k is fitted to the victims of late: it is
//! their mean deaths over the dispersion of deaths about what one common rate would give (variance
//! over mean), less that of chance alone. Where all blocks are alike, k is large, rates are equal
//! and the choice is greedy, which is best then; where they differ k vanishes and age decides.
//!
//! Source: derived here. Menon and Stockmeyer ("An age-threshold algorithm for garbage collection
//! in log-structured arrays and file systems", 1998) argue for age in the same way. Rosenblum and
//! Ousterhout's (1 - u) age / (1 + u) is a guess at the same trade.
//!
//! Invariant: of two equally full segments the older is worth more, so that only the oldest segment
//! of each live count need be looked at.
//!
//! Cost: a logarithm an evaluated segment; four numbers in all.

use super::CollectedSegment;

/// Share of what was learned that survives each victim; chosen by us: about 500 victims are
/// remembered.
const REMEMBERED: f64 = 0.998;
/// Victims before rates are shrunk at all; chosen by us.
const FIRST_VICTIMS: f64 = 32.0;
/// Dispersion up to which all segments are taken to die alike. Chance alone gives 1; half as much
/// again covers what selection adds. Chosen by us.
const ALIKE: f64 = 1.5;
/// Least excess of the dispersion, so that the prior stays finite.
const LEAST_EXCESS: f64 = 1e-3;

/// Sums over victims, from which the spread of death rates between segments follows.
#[derive(Debug, Clone, Default)]
pub struct Renewal {
    deaths: f64,
    exposure: f64,
    dispersion: f64,
    victims: f64,
}

/// Deaths in a segment, and the block writes its blocks lived through, for a share of the `filled`
/// blocks live after `age` at a constant rate.
fn deaths_and_exposure(live: u32, filled: u32, age: u64) -> (f64, f64) {
    if live == filled {
        // Half a death, as one would have been counted; each has lived for the whole time.
        return (0.5, f64::from(filled) * (age + 1) as f64);
    }
    let deaths = f64::from(filled - live);
    let logarithm = libm::log(f64::from(filled) / f64::from(live));
    (deaths, deaths * (age + 1) as f64 / logarithm)
}

impl Renewal {
    /// Nothing learned yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// When the blocks of a segment were written, on average, as a clock.
    #[must_use]
    pub fn written_at(opened: u64, sealed: u64) -> u64 {
        opened + (sealed - opened) / 2
    }

    /// Learns from `segment`, collected at `clock`.
    pub fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        if segment.live == 0 || segment.live == segment.filled {
            return;
        }
        let age = clock - Self::written_at(segment.opened, segment.sealed);
        let (deaths, exposure) = deaths_and_exposure(segment.live, segment.filled, age);
        self.deaths = self.deaths * REMEMBERED + deaths;
        self.exposure = self.exposure * REMEMBERED + exposure;
        self.victims = self.victims * REMEMBERED + 1.0;
        let expected = exposure * self.deaths / self.exposure;
        let excess = (deaths - expected) * (deaths - expected) / expected;
        self.dispersion = self.dispersion * REMEMBERED + excess;
    }

    /// The prior: deaths, and the block writes lived through for them.
    fn prior(&self) -> (f64, f64) {
        if self.victims < FIRST_VICTIMS {
            return (0.0, 0.0);
        }
        let excess = (self.dispersion / self.victims - ALIKE).max(LEAST_EXCESS);
        let deaths = self.deaths / self.victims / excess;
        (deaths, deaths * self.exposure / self.deaths)
    }

    /// How much a segment of `blocks` slots is worth collecting, in which `live` of `filled` blocks are
    /// live `age` user block writes after [`written_at`](Self::written_at): the highest is chosen. An
    /// empty one is worth infinitely much, one with a block in every slot that lives nothing.
    ///
    /// Slots that were left without a block are freed as those of dead blocks are, so they count for the
    /// gain; that nothing lives in them says nothing about how fast blocks die.
    #[must_use]
    pub fn worth(&self, live: u32, filled: u32, blocks: u32, age: u64) -> f64 {
        if live == 0 {
            return f64::INFINITY;
        }
        if live == blocks {
            return 0.0;
        }
        let share = f64::from(live) / f64::from(blocks);
        let gain = (1.0 - share) / share + libm::log(share);
        let (deaths, exposure) = deaths_and_exposure(live, filled, age);
        let (prior_deaths, prior_exposure) = self.prior();
        gain * (exposure + prior_exposure) / (deaths + prior_deaths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn victim(live: u32, age: u64) -> CollectedSegment {
        CollectedSegment {
            log: 0,
            blocks: 512,
            filled: 512,
            live,
            opened: 0,
            sealed: 1_000_000 - age,
        }
    }

    #[test]
    fn older_and_emptier_segments_are_worth_more() {
        let renewal = Renewal::new();
        assert!(renewal.worth(300, 512, 512, 2_000) > renewal.worth(300, 512, 512, 1_999));
        assert!(renewal.worth(300, 512, 512, 2_000) > renewal.worth(301, 512, 512, 2_000));
        assert!(renewal.worth(0, 512, 512, 0) > renewal.worth(1, 512, 512, 1 << 40));
        assert!(renewal.worth(511, 512, 512, 1) > renewal.worth(512, 512, 512, 1 << 40));
    }

    #[test]
    fn the_gain_is_where_the_cost_of_collecting_later_is_least() {
        // At price w the cost rate (1 + w T) r / (1 - e^(-r T)) is least where gain = r / w.
        let (rate, price) = (0.002_f64, 0.000_5_f64);
        let cost = |age: f64| (1.0 + price * age) * rate / -(-rate * age).exp_m1();
        let best = (1..20_000).map(f64::from).min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
        let share = (-rate * best.expect("there are ages")).exp();
        let gain = (1.0 - share) / share + share.ln();
        assert!((gain / (rate / price) - 1.0).abs() < 0.01, "gain {gain}");
    }

    #[test]
    fn alike_segments_are_collected_greedily_and_unlike_ones_by_age() {
        let mut alike = Renewal::new();
        let mut unlike = Renewal::new();
        for turn in 0..200 {
            alike.collected(&victim(360 + turn % 7, 500_000), 1_000_000);
            unlike.collected(&victim(360, 1_000 << (turn % 10)), 1_000_000);
        }
        // 3 blocks emptier against twice as old.
        assert!(alike.worth(357, 512, 512, 500_000) > alike.worth(360, 512, 512, 1_000_000));
        assert!(unlike.worth(357, 512, 512, 500_000) < unlike.worth(360, 512, 512, 1_000_000));
    }

    #[test]
    fn slots_without_a_block_count_as_room_and_not_as_deaths() {
        let renewal = Renewal::new();
        // As much would be freed; fewer blocks have died, so they die more slowly.
        assert!(renewal.worth(300, 400, 512, 1_000) > renewal.worth(300, 512, 512, 1_000));
        let nothing_died = renewal.worth(400, 400, 512, 1_000);
        assert!(nothing_died.is_finite() && nothing_died > renewal.worth(400, 401, 512, 1_000));
        let mut seen = Renewal::new();
        seen.collected(&CollectedSegment { filled: 360, ..victim(360, 1_000) }, 1_000_000);
        assert!(seen.victims.abs() < f64::EPSILON, "nothing died");
    }
}
