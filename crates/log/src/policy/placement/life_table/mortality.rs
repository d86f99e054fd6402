//! Death rates of blocks by what is known of them: a life table.
//!
//! A block is in a state: the group of its count of writes of late, and the group of its age since
//! the last write. Deaths are counted by state as they happen, the living by a sweep that visits
//! every block in turn. Deaths over living is the death rate of a state, measured and not assumed:
//! a count that says little, or an age that says much, shows in the table whatever the load is.
//!
//! What a block will cost depends on the states to come too. The effective rate of a state is the
//! constant rate with the same chance of death before an exponential time of rate w (the price of
//! space), from where collection looks ahead about as far. It follows from the oldest age group to
//! the youngest, a step each: with death rate h over an age group of width d, the chance is
//! h / (h + w) (1 - e^(-(h + w) d)) plus e^(-(h + w) d) times the chance of the group after it.
//!
//! Rates are smoothed, a state towards its count group and that towards the mean, by a few deaths,
//! so that what is rarely seen takes the rate of its like.
//!
//! Times are in rounds: as many user writes as there are live blocks. Rates are deaths a round.
//!
//! Source: actuarial life tables; the use for placement is ours.

use std::array;

/// Counts are kept in sixteenths of a write, so that forgetting can take parts of one.
pub(super) const COUNT_UNIT: u16 = 16;
/// Counts below this have a group each; above, eight groups share an octave. Chosen by us.
const SINGLE_COUNTS: u32 = 16;
const OCTAVE_GROUPS_LOG: u32 = 3;
/// Counts end below 2^12, so that there are 16 + 8 octaves of 8 groups.
const COUNT_GROUPS: usize = 80;
/// Age groups: the oldest begins at half a round, each other at half of the next; the youngest has
/// all below 1/128 round. Chosen by us; six or ten change results by less than 1 %.
pub(super) const AGE_GROUPS: usize = 8;
const OLDEST_FROM_ROUNDS: f64 = 0.5;
/// States in all.
const STATES: usize = COUNT_GROUPS * AGE_GROUPS;
/// Share of what was counted that is kept when new counts are taken in, sixteen times a round;
/// chosen by us: rates are of the last 0.6 rounds.
const REMEMBERED: f64 = 0.9;
/// Deaths by which a state is drawn to its count group, and a count group to the mean; chosen by
/// us.
const STATE_PRIOR: f64 = 2.0;
const GROUP_PRIOR: f64 = 1.0;

/// Deaths and living by state, and the rates that follow.
#[derive(Debug, Clone)]
pub(super) struct Mortality {
    new_deaths: [u32; STATES],
    new_living: [u32; STATES],
    deaths: [f64; STATES],
    living: [f64; STATES],
    writes: f64,
    rate: [f64; STATES],
    /// Clock difference at which each age group but the first begins.
    age_from: [u32; AGE_GROUPS - 1],
}

fn count_group(sixteenths: u16) -> usize {
    // Rounded to the nearest count, but not up to 2^12.
    let unit = u32::from(COUNT_UNIT);
    let count = ((u32::from(sixteenths) + unit / 2) / unit).min(u32::from(u16::MAX) / unit);
    if count < SINGLE_COUNTS {
        return count as usize;
    }
    let octave = count.ilog2();
    let part = (count >> (octave - OCTAVE_GROUPS_LOG)) & ((1 << OCTAVE_GROUPS_LOG) - 1);
    let first = SINGLE_COUNTS.ilog2();
    (SINGLE_COUNTS + ((octave - first) << OCTAVE_GROUPS_LOG) + part) as usize
}

/// Rounds from the beginning of age group `group` to its end; the oldest has none.
fn width_rounds(group: usize) -> f64 {
    let end = OLDEST_FROM_ROUNDS * libm::exp2(group as f64 + 2.0 - AGE_GROUPS as f64);
    if group == 0 { end } else { end / 2.0 }
}

impl Mortality {
    pub(super) fn new() -> Self {
        Self {
            new_deaths: [0; STATES],
            new_living: [0; STATES],
            deaths: [0.0; STATES],
            living: [0.0; STATES],
            writes: 0.0,
            rate: [0.0; STATES],
            age_from: [u32::MAX; AGE_GROUPS - 1],
        }
    }

    /// Sets the length of a round.
    pub(super) fn set_round(&mut self, live_blocks: u64) {
        let oldest_from = OLDEST_FROM_ROUNDS * live_blocks as f64;
        self.age_from = array::from_fn(|group| {
            // Casting saturates.
            (oldest_from * libm::exp2(group as f64 + 2.0 - AGE_GROUPS as f64)) as u32
        });
    }

    /// The state of a block with a count of `sixteenths` of a write, `age` writes after the last
    /// one.
    #[inline]
    pub(super) fn state(&self, sixteenths: u16, age: u32) -> usize {
        let group = self.age_from.iter().map(|from| usize::from(age >= *from)).sum::<usize>();
        count_group(sixteenths) * AGE_GROUPS + group
    }

    /// A block in `state` was written again.
    #[inline]
    pub(super) fn died(&mut self, state: usize) {
        self.new_deaths[state] += 1;
    }

    /// The sweep met a block in `state`.
    #[inline]
    pub(super) fn met(&mut self, state: usize) {
        self.new_living[state] += 1;
    }

    /// Adds the counts of `writes` user writes to the sums, and returns the deaths and the living
    /// remembered by now.
    pub(super) fn take_in(&mut self, writes: u64) -> (f64, f64) {
        for (sum, new) in self.deaths.iter_mut().zip(&mut self.new_deaths) {
            *sum = *sum * REMEMBERED + f64::from(std::mem::take(new));
        }
        for (sum, new) in self.living.iter_mut().zip(&mut self.new_living) {
            *sum = *sum * REMEMBERED + f64::from(std::mem::take(new));
        }
        self.writes = self.writes * REMEMBERED + writes as f64;
        (self.deaths.iter().sum(), self.living.iter().sum())
    }

    /// Computes all rates for a `price` of space a round. Needs a death and a living block.
    pub(super) fn compute_rates(&mut self, price: f64) {
        let deaths: f64 = self.deaths.iter().sum();
        let living: f64 = self.living.iter().sum();
        assert!(deaths > 0.0 && living > 0.0, "rates follow from observations");
        let mean = deaths / self.writes;
        // The share of the sweep's meetings that found a state is the share of blocks that were in
        // it during the writes.
        let rounds = self.writes / living;
        for group in 0..COUNT_GROUPS {
            let states = group * AGE_GROUPS..(group + 1) * AGE_GROUPS;
            let deaths = &self.deaths[states.clone()];
            let living = &self.living[states.clone()];
            let (all_deaths, all_living) =
                (deaths.iter().sum::<f64>(), living.iter().sum::<f64>() * rounds);
            let group_rate = (all_deaths + GROUP_PRIOR) / (all_living + GROUP_PRIOR / mean);
            let mut chance = 0.0;
            for age in (0..AGE_GROUPS).rev() {
                let died = deaths[age] + STATE_PRIOR;
                let rate = died / (living[age] * rounds + STATE_PRIOR / group_rate);
                let ends = rate + price;
                if age == AGE_GROUPS - 1 {
                    chance = rate / ends;
                    self.rate[states.start + age] = rate;
                    continue;
                }
                let after = |width: f64, next: f64| {
                    let stays = libm::exp(-ends * width);
                    rate / ends * (1.0 - stays) + stays * next
                };
                // A block met in a group is halfway through it; one just written is at its start.
                let remaining = width_rounds(age) * if age == 0 { 1.0 } else { 0.5 };
                let dies = after(remaining, chance);
                self.rate[states.start + age] = price * dies / (1.0 - dies).max(f64::EPSILON);
                chance = after(width_rounds(age), chance);
            }
        }
    }

    /// For each state: the share of live blocks in it, and its effective rate.
    pub(super) fn states(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let living: f64 = self.living.iter().sum();
        self.living.iter().zip(&self.rate).map(move |(met, rate)| (met / living, *rate))
    }

    /// A table with an entry a state.
    pub(super) fn table<T: Copy>(value: T) -> [T; STATES] {
        [value; STATES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_groups_rise_without_gaps() {
        let mut last = 0;
        for sixteenths in 0..=u16::MAX {
            let group = count_group(sixteenths);
            assert!(group == last || group == last + 1, "at {sixteenths}");
            last = group;
        }
        assert!(last < COUNT_GROUPS);
        assert_eq!(count_group(7), 0);
        assert_eq!(count_group(8), 1);
    }

    #[test]
    fn ages_fall_into_halving_groups() {
        let mut table = Mortality::new();
        assert_eq!(table.state(0, 1_000), 0, "no ages are told apart before there is a round");
        table.set_round(12_800);
        let group = |age| table.state(0, age);
        assert_eq!(
            [0, 99, 100, 199, 200, 399, 6_399, 6_400, 1 << 31].map(group),
            [0, 0, 1, 1, 2, 2, 6, 7, 7]
        );
        let total: f64 = (0..AGE_GROUPS - 1).map(width_rounds).sum();
        assert!((total - OLDEST_FROM_ROUNDS).abs() < 1e-12);
    }

    #[test]
    fn a_constant_rate_is_found_whatever_the_price() {
        for price in [0.5, 8.0, 100.0] {
            let mut table = Mortality::new();
            table.set_round(1 << 20);
            let state = table.state(5 * COUNT_UNIT, 0);
            for age in 0..AGE_GROUPS {
                // Everyone dies 1.5 times a round: 2 rounds pass, 1,000 of 8,000 meetings each.
                (0..1_000).for_each(|_| table.met(state + age));
                (0..3_000).for_each(|_| table.died(state + age));
            }
            table.take_in(16_000);
            table.compute_rates(price);
            for age in 0..AGE_GROUPS {
                let rate = table.rate[state + age];
                assert!((rate / 1.5 - 1.0).abs() < 0.01, "age {age}: {rate}");
            }
        }
    }

    #[test]
    fn blocks_that_survived_their_burst_are_cold() {
        let mut table = Mortality::new();
        table.set_round(1 << 20);
        let young = table.state(5 * COUNT_UNIT, 0);
        for age in 0..AGE_GROUPS {
            (0..1_000).for_each(|_| table.met(young + age));
            let deaths = if age < 3 { 50_000 } else { 100 };
            (0..deaths).for_each(|_| table.died(young + age));
        }
        table.take_in(8_000);
        table.compute_rates(8.0);
        assert!(table.rate[young] > 5.0 * table.rate[young + 3]);
        assert!(table.rate[young + 3] < 0.2);
    }
}
