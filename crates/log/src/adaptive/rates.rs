//! How often blocks will be written, from how often they have been.
//!
//! Under writes whose order means nothing, the count of a block is a Poisson draw around its rate.
//! The rates differ from block to block in a way that is not known, but that the counts of all
//! blocks show together: their distribution is fitted to the counts, and each block's rate is drawn
//! from what its own count then leaves likely. So of many blocks that were never written some are
//! expected to be written often, in the right number, though nobody knows which they are; taking
//! counts for rates would expect that of none, and of blocks written once too much.
//!
//! Sources: empirical Bayes, Robbins 1956; the distribution by its likelihood, Kiefer & Wolfowitz
//! 1956, on a grid by expectation and maximisation, Laird 1978; it begins as the gamma distribution
//! of the same mean and variance (Greenwood & Yule 1920).
//!
//! Blocks written [`COUNTS`] times or more need none of this: their count is taken for their rate.

/// Counts below this are smoothed; chosen by us: a greater count is known to a fifth.
pub(super) const COUNTS: usize = 32;

/// Rates of the grid; chosen by us: neighbours are 30 to 50 % apart.
const RATES: usize = 32;

/// The least rate of the grid, in writes over the whole history. Counts cannot distinguish a block that is
/// never written from one that is not written yet, and the likeliest is that many never are; chosen
/// by us, and low: the longer a history, the colder a block may prove to be.
const LEAST_RATE: f64 = 0.03;

/// The least rate over the mean, where that is more: a short history shows no cold blocks at all;
/// chosen by us, about the coldest of hot-and-cold and Zipf updates. Taking the cold for colder than
/// they are makes plugging look dear.
const LEAST_SHARE: f64 = 0.06;

/// Rounds of the fit; chosen by us: further ones change what is forecast by less than the draws do.
const ROUNDS: usize = 2000;

/// Standard errors by which the counts must vary more than those of blocks that are all alike, or
/// they are taken for alike.
const ERRORS: f64 = 3.0;

/// The distribution of rates, in writes over the whole history.
#[derive(Debug, Clone)]
pub(super) struct Rates {
    rates: Vec<f64>,
    /// For each count, the share of its blocks that have each rate or a lower one.
    cumulative: Vec<Vec<f64>>,
}

impl Rates {
    /// Fitted to how many blocks were written each number of times.
    pub(super) fn fitted(blocks: &[f64; COUNTS]) -> Self {
        let total: f64 = blocks.iter().sum();
        let moment = |power: fn(f64) -> f64| {
            let sum: f64 =
                (0..).map(f64::from).zip(blocks).map(|(count, blocks)| power(count) * blocks).sum();
            sum / total.max(1.0)
        };
        // Of Poisson draws around one rate, the mean of n (n - 1) is the square of that of n.
        let (mean, pairs) = (moment(|count| count), moment(|count| count * (count - 1.0)));
        let excess = pairs - mean * mean;
        let error = ((4.0 * mean * mean * mean + 2.0 * mean * mean) / total.max(1.0)).sqrt();
        if excess <= ERRORS * error {
            return Self { rates: vec![mean], cumulative: vec![vec![1.0]; COUNTS] };
        }
        let least = LEAST_RATE.min(mean * LEAST_SHARE);
        let most = 1.5 * COUNTS as f64;
        let step = libm::pow(most / least, 1.0 / (RATES - 1) as f64);
        let rates: Vec<f64> =
            (0..RATES).map(|place| least * libm::pow(step, place as f64)).collect();
        let shape = mean * mean / excess;
        let gamma = |rate: &f64| libm::exp(shape * (libm::log(rate / mean) - rate / mean));
        let begin = normalized(rates.iter().map(gamma).collect());
        let likelihoods: Vec<Vec<f64>> =
            (0..COUNTS).map(|count| likelihood(count, &rates)).collect();
        let shares = maximized(begin, &likelihoods, blocks);
        let cumulative = likelihoods.iter().map(|likelihood| {
            let mut sum = 0.0;
            let add = |share| {
                sum += share;
                sum
            };
            posterior(likelihood, &shares).into_iter().map(add).collect()
        });
        Self { cumulative: cumulative.collect(), rates }
    }

    /// The rates, each a class of blocks.
    pub(super) fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// The class of a block that was written `count` times; `drawn` is uniform from 0 to 1.
    pub(super) fn class(&self, count: usize, drawn: f64) -> usize {
        let place = self.cumulative[count].partition_point(|share| *share <= drawn);
        place.min(self.rates.len() - 1)
    }
}

/// The shares of the rates that make the counts likeliest, or nearly.
fn maximized(mut shares: Vec<f64>, likelihoods: &[Vec<f64>], blocks: &[f64; COUNTS]) -> Vec<f64> {
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; shares.len()];
        for (likelihood, blocks) in likelihoods.iter().zip(blocks) {
            for (next, share) in next.iter_mut().zip(posterior(likelihood, &shares)) {
                *next += share * blocks;
            }
        }
        shares = normalized(next);
    }
    shares
}

/// The likelihood of each rate given a count, over that of the likeliest.
fn likelihood(count: usize, rates: &[f64]) -> Vec<f64> {
    let logarithm = |rate: &f64| count as f64 * libm::log(*rate) - rate;
    let most = rates.iter().map(logarithm).fold(f64::NEG_INFINITY, f64::max);
    rates.iter().map(|rate| libm::exp(logarithm(rate) - most)).collect()
}

/// Shares of the rates among blocks of the count that `likelihood` belongs to.
fn posterior(likelihood: &[f64], shares: &[f64]) -> Vec<f64> {
    normalized(likelihood.iter().zip(shares).map(|(likely, share)| likely * share).collect())
}

/// `weights` over their sum; the same for all if they have none.
fn normalized(mut weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    let all = weights.len() as f64;
    for weight in &mut weights {
        *weight = if sum > 0.0 { *weight / sum } else { 1.0 / all };
    }
    weights
}

#[cfg(test)]
mod tests {
    use agewell_core::{RandomStreams, uniform_below};

    use super::*;

    const BLOCKS: u32 = 40_000;

    /// How many blocks were written each number of times, and the mean share of the writes that go
    /// to a block so often written, over that of all blocks.
    fn drawn(writes: u32, hot: u32, hot_percent: u32) -> ([f64; COUNTS], Vec<f64>) {
        let mut stream = RandomStreams::new(1).stream("writes");
        let mut counts = vec![0_usize; BLOCKS as usize];
        let mut below = |bound: u32| uniform_below(&mut stream, u64::from(bound)) as u32;
        for _ in 0..writes {
            let block =
                if below(100) < hot_percent { below(hot) } else { hot + below(BLOCKS - hot) };
            counts[block as usize] += 1;
        }
        let hot_rate = f64::from(hot_percent * BLOCKS) / f64::from(100 * hot);
        let cold_rate = f64::from((100 - hot_percent) * BLOCKS) / f64::from(100 * (BLOCKS - hot));
        let (mut blocks, mut rates) = ([0.0; COUNTS], [0.0; COUNTS]);
        for (block, count) in (0..BLOCKS).zip(counts) {
            blocks[count] += 1.0;
            rates[count] += if block < hot { hot_rate } else { cold_rate };
        }
        (
            blocks,
            rates.iter().zip(blocks).map(|(sum, blocks)| sum / f64::max(blocks, 1.0)).collect(),
        )
    }

    /// Mean rate of the class of a block written so often, over that of all blocks.
    fn fitted_rate(fitted: &Rates, count: usize, mean: f64) -> f64 {
        let draws = 10_000;
        let class = |draw| fitted.class(count, (f64::from(draw) + 0.5) / f64::from(draws));
        let sum: f64 = (0..draws).map(|draw| fitted.rates()[class(draw)]).sum();
        sum / f64::from(draws) / mean
    }

    #[test]
    fn blocks_that_are_alike_are_taken_for_alike_however_their_counts_differ() {
        for writes in [400, 4_000, 40_000, 80_000] {
            let (blocks, _) = drawn(writes, BLOCKS / 2, 50);
            let fitted = Rates::fitted(&blocks);
            assert_eq!(fitted.rates().len(), 1, "{writes}");
            let mean = f64::from(writes) / f64::from(BLOCKS);
            assert!((fitted.rates()[0] / mean - 1.0).abs() < 1e-9, "{writes}");
        }
    }

    #[test]
    fn blocks_never_written_and_written_once_get_the_rates_that_such_blocks_have() {
        for writes in [4_000, 20_000, 60_000] {
            let (blocks, expected) = drawn(writes, BLOCKS / 10, 90);
            let fitted = Rates::fitted(&blocks);
            let mean = f64::from(writes) / f64::from(BLOCKS);
            // Of few blocks the mean is chance.
            let counts = (0..COUNTS).filter(|count| blocks[*count] >= 300.0);
            for (count, expected) in counts.map(|count| (count, expected[count])) {
                let found = fitted_rate(&fitted, count, mean);
                assert!(
                    (found - expected).abs() < 0.2 * expected + 0.06,
                    "{writes} writes, {count} times: {found}, should be {expected}"
                );
            }
        }
    }

    #[test]
    fn nothing_written_and_no_blocks_are_no_trouble() {
        assert_eq!(Rates::fitted(&[0.0; COUNTS]).rates(), [0.0]);
        let mut blocks = [0.0; COUNTS];
        blocks[0] = 10.0;
        assert_eq!(Rates::fitted(&blocks).rates(), [0.0]);
        blocks[COUNTS - 1] = 1.0;
        let fitted = Rates::fitted(&blocks);
        for count in 0..COUNTS {
            for drawn in [0.0, 0.5, 1.0] {
                assert!(fitted.rates()[fitted.class(count, drawn)].is_finite());
            }
        }
    }
}
