//! Divides blocks of known death rates among logs so that collection costs least.
//!
//! A log whose segments are collected at age T writes, for each of its blocks of death rate r, once
//! in min(life, T): r / (1 - e^(-r T)) a write on average, and each slot is occupied for T. With a
//! price w for a slot and write, a log with n(r) blocks of each rate costs
//!
//! ```text
//! min over T of (1 + w T) * sum over r of n(r) r / (1 - e^(-r T))
//! ```
//!
//! For one rate this is the closed form of FIFO collection (v = e^(-r T) live in a victim, write
//! amplification 1 / (1 - v), utilization (v - 1) / ln v), and it holds for mixtures too. Rates are
//! put into bands of a quarter octave; the cheapest division of the bands into at most as many runs
//! as there are logs is found by dynamic programming over a fixed ladder of ages.
//!
//! Source: derived here; the closed form is Menon 1995's and Desnoyers 2012's. Stoica and Ailamaki
//! (VLDB 2013) divide the spare space by the same closed form without mixtures.
//!
//! Cost: bands^2 (ages + logs) / 2 steps, some 0.1 ms; nothing is allocated after construction.

/// Bands of rates.
const BANDS: usize = 80;
/// Bands an octave.
const OCTAVE_BANDS: f64 = 4.0;
/// Octaves above one death a block in as many writes as there are blocks where the bands begin. The
/// last band is 2^-8 of that: a block that dies once in 256 rewrites of everything.
const TOP_OCTAVE: f64 = 12.0;
/// Blocks that never died are taken to die once in a thousand million rounds, to keep sums finite.
const LEAST_RATE: f64 = 1e-9;
/// Ages on the ladder, and their ratio in octaves; they reach from e^-11.6 to e^2.7 of 1 / price.
/// Chosen by us: finer ones change no result by more than chance does.
const AGES: usize = 60;
const AGE_OCTAVES: f64 = 0.35;
const AGES_BELOW_PRICE: f64 = 48.0;

/// A division, and the room to make another.
#[derive(Debug, Clone)]
pub(super) struct Division {
    logs: usize,
    /// Live blocks of each band and their deaths a write.
    blocks: [f64; BANDS],
    deaths: [f64; BANDS],
    /// The log of each band; a band without blocks has that of the next hotter one.
    log: [u8; BANDS],
    /// For each age, the sum of the cost of all bands before each.
    before: Vec<[f64; BANDS + 1]>,
    /// Cost of a run, by its first band and the one after its last.
    run: Vec<[f64; BANDS + 1]>,
    /// Least cost of the first bands by number of logs, and where the last log begins.
    best: Vec<[f64; BANDS + 1]>,
    start: Vec<[u8; BANDS + 1]>,
}

impl Division {
    /// Everything in log 0 of `logs`, of which no more are used than there are bands.
    pub(super) fn new(logs: usize) -> Self {
        let logs = logs.min(BANDS);
        Self {
            logs,
            blocks: [0.0; BANDS],
            deaths: [0.0; BANDS],
            log: [0; BANDS],
            before: vec![[0.0; BANDS + 1]; AGES],
            run: vec![[0.0; BANDS + 1]; BANDS],
            best: vec![[0.0; BANDS + 1]; logs + 1],
            start: vec![[0; BANDS + 1]; logs + 1],
        }
    }

    /// The band of `relative_rate`: deaths a block in as many writes as there are live blocks.
    fn band(relative_rate: f64) -> usize {
        let octave = TOP_OCTAVE - libm::log2(relative_rate);
        // Casting saturates, also at infinity.
        ((octave * OCTAVE_BANDS) as usize).min(BANDS - 1)
    }

    /// The log for blocks of `relative_rate`.
    pub(super) fn log_of(&self, relative_rate: f64) -> u8 {
        self.log[Self::band(relative_rate)]
    }

    /// Forgets the blocks counted so far.
    pub(super) fn clear(&mut self) {
        self.blocks.fill(0.0);
        self.deaths.fill(0.0);
    }

    /// Counts a share `blocks` of the live blocks with `relative_rate`.
    pub(super) fn count(&mut self, blocks: f64, relative_rate: f64) {
        let relative_rate = relative_rate.max(LEAST_RATE);
        let band = Self::band(relative_rate);
        self.blocks[band] += blocks;
        self.deaths[band] += blocks * relative_rate;
    }

    /// Divides the blocks counted. `price` is that of all live blocks' space for as many writes as
    /// there are live blocks; `open_log` the space an open log costs, as a share of live blocks.
    pub(super) fn divide(&mut self, price: f64, open_log: f64) {
        self.sum_costs(price);
        self.cost_runs(price * open_log);
        self.find_best();
        self.assign();
    }

    fn sum_costs(&mut self, price: f64) {
        for (index, before) in self.before.iter_mut().enumerate() {
            let age = libm::exp2((index as f64 - AGES_BELOW_PRICE) * AGE_OCTAVES) / price;
            for band in 0..BANDS {
                let mut cost = 0.0;
                if self.blocks[band] > 0.0 {
                    let rate = self.deaths[band] / self.blocks[band];
                    let writes = self.deaths[band] / -libm::expm1(-rate * age);
                    cost = (1.0 + price * age) * writes;
                }
                before[band + 1] = before[band] + cost;
            }
        }
    }

    fn cost_runs(&mut self, open_log_cost: f64) {
        for (first, run) in self.run.iter_mut().enumerate() {
            run.fill(f64::INFINITY);
            for before in &self.before {
                for (cost, sum) in run[first + 1..].iter_mut().zip(&before[first + 1..]) {
                    *cost = cost.min(sum - before[first]);
                }
            }
            for cost in &mut run[first + 1..] {
                *cost += open_log_cost;
            }
        }
    }

    fn find_best(&mut self) {
        self.best[0].fill(f64::INFINITY);
        self.best[0][0] = 0.0;
        for logs in 1..=self.logs {
            let (fewer, more) = self.best.split_at_mut(logs);
            let (fewer, more) = (&fewer[logs - 1], &mut more[0]);
            more.fill(f64::INFINITY);
            let starts = &mut self.start[logs];
            for (end, (least, start)) in more.iter_mut().zip(starts).enumerate().skip(1) {
                for (first, (cost, run)) in fewer.iter().zip(&self.run).take(end).enumerate() {
                    let cost = cost + run[end];
                    if cost < *least {
                        *least = cost;
                        *start = first as u8;
                    }
                }
            }
        }
    }

    fn assign(&mut self) {
        // The fewest logs that reach the least cost, so that none is opened for nothing.
        let least =
            (1..=self.logs).map(|logs| self.best[logs][BANDS]).fold(f64::INFINITY, f64::min);
        let mut logs = (1..=self.logs)
            .find(|logs| self.best[*logs][BANDS] <= least * (1.0 + 1e-9))
            .unwrap_or(1);
        let mut end = BANDS;
        while logs > 0 {
            let first = usize::from(self.start[logs][end]);
            self.log[first..end].fill(logs as u8 - 1);
            (logs, end) = (logs - 1, first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Least cost of a run by a fine search over ages.
    fn run_cost(groups: &[(f64, f64)], price: f64) -> f64 {
        let cost = |age: f64| {
            let writes =
                groups.iter().map(|(blocks, rate)| blocks * rate / -(-rate * age).exp_m1());
            (1.0 + price * age) * writes.sum::<f64>()
        };
        (0..4_000)
            .map(|step| cost((f64::from(step) * 0.005 - 12.0).exp() / price))
            .fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn the_division_is_the_cheapest_of_all() {
        let groups = [(0.05, 40.0), (0.1, 5.0), (0.2, 1.3), (0.3, 0.6), (0.35, 0.1)];
        let price = 8.0;
        for logs in 1..=5 {
            let mut division = Division::new(logs);
            for (blocks, rate) in groups {
                division.count(blocks, rate);
            }
            division.divide(price, 0.0);
            // Every division into runs, by the bits of where a run ends.
            let mut least = f64::INFINITY;
            for ends in 0..16_u32 {
                if ends.count_ones() as usize >= logs {
                    continue;
                }
                let (mut cost, mut first) = (0.0, 0);
                for end in 1..=5 {
                    if end == 5 || ends & (1 << (end - 1)) != 0 {
                        cost += run_cost(&groups[first..end], price);
                        first = end;
                    }
                }
                least = least.min(cost);
            }
            let mut found = 0.0;
            for log in 0..logs as u8 {
                let chosen: Vec<_> =
                    groups.into_iter().filter(|group| division.log_of(group.1) == log).collect();
                found += if chosen.is_empty() { 0.0 } else { run_cost(&chosen, price) };
            }
            assert!(found < least * 1.005, "{logs} logs: {found} against {least}");
        }
    }

    #[test]
    fn equal_rates_need_one_log() {
        let mut division = Division::new(6);
        division.count(1.0, 1.0);
        division.divide(10.0, 0.0);
        assert!((-20..20).all(|octave| division.log_of(f64::from(octave).exp2()) == 0));
    }

    #[test]
    fn a_dear_log_is_not_opened() {
        let logs = |open_log: f64| {
            let mut division = Division::new(6);
            for octave in 0..8 {
                division.count(0.125, (4.0 - f64::from(octave)).exp2());
            }
            division.divide(8.0, open_log);
            division.log_of(0.0) + 1
        };
        assert_eq!(logs(0.0), 6);
        assert!((2..6).contains(&logs(0.01)), "{}", logs(0.01));
        assert_eq!(logs(10.0), 1);
    }
}
