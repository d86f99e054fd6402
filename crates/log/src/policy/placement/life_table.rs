//! Life table: logs by death rates that are measured, not assumed.
//!
//! Idea: what is known of a block at small cost - how often it was written of late, and when last -
//! makes its state. The death rate of each state is measured while the log runs
//! (`life_table/mortality.rs`), and states are divided among the logs so that the predicted cost of
//! collection is least (`life_table/division.rs`). No rate, boundary or threshold is built in:
//! where counts predict deaths better than ages (a fixed skew) counts decide; where ages do (a hot
//! set that moves, blocks that live equally long) ages decide; where neither does all states have
//! the same rate and one log takes all.
//!
//! The price of space, which the division needs, is what victims show: one of age T with a share u
//! live was worth collecting at a price of (-ln u / T) / ((1 - u) / u + ln u), the rate of its
//! deaths over the gain (see [`Renewal`], which suits this placement best).
//!
//! Forgetting: a sweep goes round all blocks, two a user write. It counts live blocks by state and
//! decays their counts, to 1/e in sixteen rounds of live blocks. Where it begins late, in a store
//! that has numbers for more blocks than it holds, the round ends at the last that it has heard of,
//! and passes more a write where blocks are missing, so that a store half full is known as fast as
//! one that is full.
//!
//! Differences from what is known: DAC, FADaC, SFS and multi-log rank blocks by counts with
//! built-in steps; SepBIT by the last lifetime or the age with steps of a measured threshold. Here
//! both are used, and the steps follow from measured rates and cost.
//!
//! Measured (`rows.rs`; the load and rules of the SepBIT simulator; Zipf exponents 0, 0.6, 1; first
//! writes included; the best of the others with any selection is 3.242, 3.041, 1.842):
//!
//! | logs | renewal | cost-benefit | greedy |
//! |---|---|---|---|
//! | 6 | 3.238, 2.926, 1.729 | 3.242, 2.948, 1.786 | 3.237, 3.195, 2.347 |
//! | 8 | 3.237, 2.911, 1.709 | 3.241, 2.934, 1.760 | 3.237, 3.177, 2.300 |
//! | 10 | 3.237, 2.902, 1.698 | 3.241, 2.924, 1.748 | 3.237, 3.151, 2.234 |
//! | 12 | 3.237, 2.895, 1.693 | 3.241, 2.916, 1.739 | 3.237, 3.138, 2.206 |
//! | 16 | 3.237, 2.879, 1.686 | 3.241, 2.896, 1.728 | 3.237, 3.090, 2.151 |
//!
//! More logs cost open and reserved segments, which these rules do not charge: where they are more
//! than a few per cent of the spare space, six are better than twelve. Constants were chosen on
//! exponents 0.3, 0.8, 0.9, 1.1 and 1.2, hot and cold, and moving loads, where all results are flat
//! around them.
//!
//! Cost: six bytes a block; a user write touches its block's state and those of two neighbours in
//! turn. A new division sixteen times a round takes some 0.1 ms. Nothing is allocated after
//! construction. Logarithms and exponentials decide placements; they are those of `libm`, which are
//! the same on every platform.

mod division;
mod mortality;

use division::Division;
use mortality::{COUNT_UNIT, Mortality};

use super::{BeginsLate, CollectedSegment, Placement, Renewal};

/// Blocks that the sweep visits each user write; chosen by us: one to four change results by less
/// than 1 %.
const VISITS: f64 = 2.0;
/// Most numbers that the sweep passes a user write where few of them are live; chosen by us: numbers
/// without a block cost two bytes read in sequence.
const PASSED_MAX: f64 = 32.0;
/// Rounds in which counts decay to 1/e; chosen by us. From four to a thousand, results change by
/// less than 1 %: more suit loads that stay as they are, fewer those that change.
const FORGET_ROUNDS: f64 = 16.0;
/// New divisions a round; chosen by us.
const DIVISIONS_PER_ROUND: u64 = 16;
/// Fewest user writes between divisions, so that a small log does not spend its time dividing.
const LEAST_PERIOD: u64 = 2_048;
/// Share of a round that must have been seen, in deaths and in the sweep, before the first
/// division; chosen by us.
const FIRST_SHARE: f64 = 0.05;
/// Price of all live blocks' space for a round, in block writes, until victims show it. At 85 %
/// utilization and uniform updates victims show 16, with skew 2 to 16; chosen between.
const FIRST_PRICE: f64 = 6.0;
/// Where the price may go: uniform updates show 0.007 at 20 % utilization and 20,000 at 99.5 %.
const PRICE_BOUNDS: (f64, f64) = (1e-3, 1e5);
/// Their natural logarithms.
const LOG_PRICE_BOUNDS: (f64, f64) = (-6.907_755_278_982_137, 11.512_925_464_970_229);
/// Weight of the newest victim in the price; chosen by us: about 500 victims are remembered.
const PRICE_WEIGHT: f64 = 0.002;
/// Step of the rounding sequence: 2^16 over the golden ratio, odd, so that sixteen bits are met
/// evenly (Weyl).
const ROUNDING_STEP: u16 = 40_503;

/// Logs by measured death rates.
#[derive(Debug, Clone)]
pub struct LifeTable {
    logs: usize,
    open_log_blocks: f64,
    /// One more than the sixteenths of writes of late; zero for a block that is not live, or not heard of.
    count: Vec<u16>,
    last_write: Vec<u32>,
    live_blocks: u64,
    /// Live blocks that were not heard of.
    unheard_blocks: u64,
    mortality: Mortality,
    division: Division,
    /// The log of each state.
    log: Box<[u8]>,
    /// Whether there are several.
    is_divided: bool,
    /// Logarithm of the price.
    log_price: f64,
    /// User writes since the last attempt to divide, and how many are due before the next.
    period_writes: u64,
    period: u64,
    hand: usize,
    /// Whether the log had blocks before this did, and room for more than it has.
    is_begun_late: bool,
    /// The sweep goes round the numbers below.
    swept: usize,
    /// Numbers passed a user write, and the part of one that is due.
    visits: f64,
    due_visits: f64,
    /// Share of a count that a visit takes, in 1/65,536.
    decay: u32,
    rounding: u16,
}

impl LifeTable {
    /// For `blocks` blocks and at most `logs` logs.
    ///
    /// # Panics
    ///
    /// If `logs` is zero or above 256.
    #[must_use]
    pub fn new(blocks: usize, logs: usize) -> Self {
        assert!((1..=256).contains(&logs), "between 1 and 256 logs");
        Self {
            logs,
            open_log_blocks: 0.0,
            count: vec![0; blocks],
            last_write: vec![0; blocks],
            live_blocks: 0,
            unheard_blocks: 0,
            mortality: Mortality::new(),
            division: Division::new(logs),
            log: Box::new(Mortality::table(0)),
            is_divided: false,
            log_price: libm::log(FIRST_PRICE),
            period_writes: 0,
            period: LEAST_PERIOD,
            hand: 0,
            is_begun_late: false,
            swept: blocks,
            visits: VISITS,
            due_visits: 0.0,
            decay: 0,
            rounding: 0,
        }
    }

    /// The same, where each log in use costs the space of `blocks` blocks: half a segment where
    /// open segments come out of the spare space. A log is then used only if it saves more.
    #[must_use]
    pub fn with_open_log_cost(mut self, blocks: f64) -> Self {
        self.open_log_blocks = blocks;
        self
    }

    /// Checks that the live blocks are those with a count, and that every log exists.
    #[cfg(test)]
    pub(super) fn verify(&self) {
        let live = self.count.iter().filter(|count| **count > 0).count();
        assert_eq!(live as u64 + self.unheard_blocks, self.live_blocks, "live blocks");
        assert!(self.log.iter().all(|log| usize::from(*log) < self.logs), "logs in use");
        assert!(self.log_price.is_finite(), "the price is a number");
    }

    /// Whether live `block` is heard of only now: then it was written once, long ago.
    #[inline]
    fn hear_of(&mut self, block: usize) -> bool {
        let is_new = self.count[block] == 0;
        if is_new {
            self.count[block] = 1;
            self.swept = self.swept.max(block + 1);
            self.unheard_blocks = self.unheard_blocks.saturating_sub(1);
        }
        is_new
    }

    #[inline]
    fn state(&self, block: usize, clock: u64) -> usize {
        let age = (clock as u32).wrapping_sub(self.last_write[block]);
        self.mortality.state(self.count[block] - 1, age)
    }

    /// Counts the next block of the sweep as live, and decays its count.
    #[inline]
    fn visit(&mut self, clock: u64) {
        let block = self.hand;
        self.hand = if block + 1 >= self.swept { 0 } else { block + 1 };
        if self.count[block] == 0 {
            return;
        }
        let state = self.state(block, clock);
        self.mortality.met(state);
        let sixteenths = self.count[block] - 1;
        self.rounding = self.rounding.wrapping_add(ROUNDING_STEP);
        let lost = (u32::from(sixteenths) * self.decay + u32::from(self.rounding)) >> 16;
        self.count[block] = sixteenths - lost as u16 + 1;
    }

    /// Takes in what was counted and divides again.
    fn end_period(&mut self) {
        let round = self.live_blocks.max(1);
        let (deaths, living) = self.mortality.take_in(self.period_writes);
        self.period_writes = 0;
        self.period = (round / DIVISIONS_PER_ROUND).max(LEAST_PERIOD);
        let enough = FIRST_SHARE * round as f64;
        if deaths.min(living) >= enough.max(1.0) {
            self.divide();
        }
        self.mortality.set_round(round);
        let numbers_a_round = self.swept as f64 / round as f64;
        if self.is_begun_late {
            self.visits = (VISITS * numbers_a_round).min(PASSED_MAX);
        }
        // The sweep visits a block once in blocks / visits writes.
        let rounds = numbers_a_round / self.visits;
        let lost = -libm::expm1(-rounds / FORGET_ROUNDS);
        self.decay = (lost * 65_536.0) as u32;
    }

    fn divide(&mut self) {
        let price = libm::exp(self.log_price);
        self.mortality.compute_rates(price);
        self.division.clear();
        for (share, rate) in self.mortality.states() {
            if share > 0.0 {
                self.division.count(share, rate);
            }
        }
        self.division.divide(price, self.open_log_blocks / self.live_blocks.max(1) as f64);
        for (log, (_, rate)) in self.log.iter_mut().zip(self.mortality.states()) {
            *log = self.division.log_of(rate);
        }
        self.is_divided = self.log.iter().any(|log| *log != self.log[0]);
    }
}

impl BeginsLate for LifeTable {
    fn begin(&mut self, live_blocks: u64) {
        self.live_blocks += live_blocks;
        self.unheard_blocks += live_blocks;
        self.is_begun_late = true;
        self.swept = 1;
    }

    fn divides(&self) -> bool {
        self.is_divided
    }
}

impl Placement for LifeTable {
    fn logs(&self) -> usize {
        self.logs
    }

    fn ensure_blocks(&mut self, blocks: usize) {
        if blocks > self.count.len() {
            self.count.resize(blocks, 0);
            self.last_write.resize(blocks, 0);
            if !self.is_begun_late {
                self.swept = blocks;
            }
        }
    }

    #[inline]
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        self.due_visits += self.visits;
        while self.due_visits >= 1.0 {
            self.due_visits -= 1.0;
            self.visit(clock);
        }
        let index = block as usize;
        // Those not heard of are not met either: rates are of the others.
        let is_heard_of = !overwrites || !self.hear_of(index);
        self.period_writes += u64::from(is_heard_of);
        if self.period_writes >= self.period {
            self.end_period();
        }
        if overwrites {
            if is_heard_of {
                let state = self.state(index, clock);
                self.mortality.died(state);
            }
            self.count[index] = self.count[index].saturating_add(COUNT_UNIT);
        } else {
            self.count[index] = 1;
            self.live_blocks += 1;
            self.swept = self.swept.max(index + 1);
        }
        self.last_write[index] = clock as u32;
        self.log[self.mortality.state(self.count[index] - 1, 0)]
    }

    #[inline]
    fn place_collected(&mut self, block: u32, _segment: &CollectedSegment, clock: u64) -> u8 {
        let _ = self.hear_of(block as usize);
        self.log[self.state(block as usize, clock)]
    }

    fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        let share = f64::from(segment.live) / f64::from(segment.blocks);
        let gain = (1.0 - share) / share + libm::log(share);
        if !(gain.is_finite() && gain > 0.0) {
            return;
        }
        let age = clock + 1 - Renewal::written_at(segment.opened, segment.sealed);
        let log_share = libm::log(f64::from(segment.live) / f64::from(segment.filled));
        let rate_a_round = -log_share / age as f64 * self.live_blocks as f64;
        let shown = libm::log((rate_a_round / gain).max(PRICE_BOUNDS.0));
        self.log_price += PRICE_WEIGHT * (shown - self.log_price);
        self.log_price = self.log_price.clamp(LOG_PRICE_BOUNDS.0, LOG_PRICE_BOUNDS.1);
    }

    fn deleted(&mut self, block: u32, _clock: u64) {
        if self.unheard_blocks > 0 {
            let _ = self.hear_of(block as usize);
        }
        let count = std::mem::take(&mut self.count[block as usize]);
        self.live_blocks = self.live_blocks.saturating_sub(u64::from(count > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithms_are_those_of_the_bounds() {
        let logarithms = (libm::log(PRICE_BOUNDS.0), libm::log(PRICE_BOUNDS.1));
        assert_eq!(LOG_PRICE_BOUNDS, logarithms);
    }
}
