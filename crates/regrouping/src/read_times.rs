//! Measured read times: the price of reading a block elsewhere than right behind the last.
//!
//! The cost model has only an average seek and half a rotation. Data that is used lies closer
//! together than that, and a drive reads ahead, so that a jump costs less, or, where reads in
//! sequence miss a turn, gains less. Where the device reports the times of its transfers, the
//! model's access time is replaced: by the mean time of reads that jumped beyond streaming, less
//! that of reads that did not. The time of a step is learnt for each distance by itself, in powers
//! of two. Reads before which the arm was elsewhere give no information on distances. Within one
//! call a drive that holds several commands goes from place to place in its own order, so that
//! steps within calls are learnt separately, all of a call alike.
//!
//! Sums are halved when they are large, so that the mean follows the load. Deterministic: the times
//! are simulated ones.

use crate::trust::finite;
use agewell_log::policy::cost::CostModel;

/// Jumps observed before the model's access time is replaced; chosen by us.
const JUMPS_MIN: f64 = 64.0;

/// Jumps at which the sums are halved; chosen by us.
const JUMPS_MAX: f64 = 8192.0;

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum_ns: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, sum_ns: f64, count: f64) {
        self.sum_ns += sum_ns;
        self.count += count;
        if self.count >= JUMPS_MAX {
            self.sum_ns /= 2.0;
            self.count /= 2.0;
        }
    }

    fn value(self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum_ns / self.count)
    }
}

/// Reads over a distance before which the mean of all distances is used; chosen by us.
const OVER_MIN: f64 = 16.0;

/// Classes of distances: powers of two of blocks, forward and back.
const DISTANCES: usize = 2 * (u32::BITS as usize + 1);

/// Observed reads.
#[derive(Debug, Clone)]
pub struct ReadTimes {
    disk: CostModel,
    jumping: Mean,
    streaming: Mean,
    /// From the end of one call to the beginning of the next.
    between: [Mean; DISTANCES],
    /// Within a call.
    within: [Mean; DISTANCES],
}

impl ReadTimes {
    /// Nothing was observed of `disk` yet.
    #[must_use]
    pub fn new(disk: CostModel) -> Self {
        let none = Mean::default();
        Self {
            disk,
            jumping: none,
            streaming: none,
            between: [none; DISTANCES],
            within: [none; DISTANCES],
        }
    }

    /// One call read `blocks` blocks, of which `jumps` did not lie right behind the one before, in
    /// `time_ns`. `step_blocks` lay between them and what was read before, if that is known, and
    /// `within` between those that did not follow each other.
    pub fn note(
        &mut self,
        jumps: u32,
        blocks: u32,
        time_ns: u64,
        step_blocks: Option<i64>,
        within: &[i64],
    ) {
        let streaming_ns = self.disk.streaming_ns(u64::from(blocks) * self.disk.block_bytes);
        let moving_ns = time_ns as f64 - streaming_ns as f64;
        if jumps > 0 {
            self.jumping.add(moving_ns, f64::from(jumps));
        } else {
            self.streaming.add(moving_ns, 1.0);
        }
        match step_blocks {
            Some(step_blocks) if within.is_empty() && step_blocks != 0 => {
                self.between[distance(step_blocks)].add(moving_ns, 1.0);
            }
            Some(step_blocks) if !within.is_empty() => {
                let rest_ns = (moving_ns - self.step_ns(step_blocks, false)).max(0.0);
                let each_ns = rest_ns / within.len() as f64;
                for step in within {
                    self.within[distance(*step)].add(each_ns, 1.0);
                }
            }
            _ => {}
        }
    }

    /// What was observed as words, for a file.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        let means = [&self.jumping, &self.streaming].into_iter().chain(&self.between);
        let means = means.chain(&self.within);
        means.flat_map(|mean| [mean.sum_ns.to_bits(), mean.count.to_bits()]).collect()
    }

    /// What [`Self::words`] gave, of reads of `disk`; `None` if these are others.
    pub fn from_words(disk: CostModel, words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        let mut times = Self::new(disk);
        let means = [&mut times.jumping, &mut times.streaming].into_iter();
        for mean in means.chain(&mut times.between).chain(&mut times.within) {
            mean.sum_ns = finite(words.next()?)?;
            mean.count = finite(words.next()?).filter(|count| *count >= 0.0)?;
        }
        Some(times)
    }

    /// Whether enough was seen for the model's access time to be replaced.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.jumping.count >= JUMPS_MIN
    }

    /// The disk with the access time that was observed, if enough was.
    #[must_use]
    pub fn observed(&self) -> CostModel {
        if self.jumping.count < JUMPS_MIN {
            return self.disk;
        }
        let access_ns = self.jumping.value().map_or(0.0, |jump_ns| self.beyond_streaming(jump_ns));
        CostModel { access_ns: access_ns as u64, ..self.disk }
    }

    fn beyond_streaming(&self, time_ns: f64) -> f64 {
        (time_ns - self.streaming.value().unwrap_or(0.0)).max(0.0)
    }

    /// Time to read a block beyond streaming it, ns. `step_blocks` lie between it and the last,
    /// counted from -1 down if it lies before that; `within` a call or from one to the next.
    #[must_use]
    #[inline]
    pub fn step_ns(&self, step_blocks: i64, within: bool) -> f64 {
        if step_blocks == 0 {
            return 0.0;
        }
        let over = self.within[distance(step_blocks)];
        if within && over.count >= OVER_MIN {
            // The time of calls that do not jump was subtracted with the step to where they begin.
            return over.sum_ns / over.count;
        }
        let over = self.between[distance(step_blocks)];
        if over.count >= OVER_MIN {
            return self.beyond_streaming(over.sum_ns / over.count);
        }
        self.mean_step_ns(step_blocks)
    }

    /// Time to go where the drive has read nothing ahead, ns: the model's, if that is more than the
    /// observed one.
    #[must_use]
    pub fn elsewhere_ns(&self) -> f64 {
        self.observed().access_ns.max(self.disk.access_ns) as f64
    }

    /// The same by the mean over all distances.
    #[must_use]
    pub fn mean_step_ns(&self, step_blocks: i64) -> f64 {
        if step_blocks == 0 {
            return 0.0;
        }
        let access_ns = self.observed().access_ns;
        let step_ns = u64::try_from(step_blocks).map_or(access_ns, |gap_blocks| {
            let gap_bytes = gap_blocks.saturating_mul(self.disk.block_bytes);
            access_ns.min(self.disk.streaming_ns(gap_bytes))
        });
        step_ns as f64
    }
}

/// The number of a distance.
#[inline]
fn distance(step_blocks: i64) -> usize {
    let magnitude = u32::try_from(step_blocks.unsigned_abs()).unwrap_or(u32::MAX);
    let power = (u32::BITS - magnitude.leading_zeros()) as usize;
    if step_blocks < 0 { DISTANCES / 2 + power } else { power }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: CostModel = CostModel {
        access_ns: 15_000_000,
        further_ns: 15_000_000,
        bandwidth_bytes_per_s: 8_192_000,
        block_bytes: 8192,
    };

    #[test]
    fn the_model_is_believed_until_enough_was_seen() {
        let mut times = ReadTimes::new(DISK);
        for _ in 0..63 {
            times.note(1, 1, 5_000_000, None, &[]);
            assert_eq!(times.observed(), DISK);
        }
        times.note(1, 1, 5_000_000, None, &[]);
        // A block streams in 1 ms.
        assert_eq!(times.observed().access_ns, 4_000_000);
        // Reads in sequence take 3 ms more than they stream, so that a jump takes 1 ms more.
        (0..100).for_each(|_| times.note(0, 2, 5_000_000, Some(0), &[]));
        assert_eq!(times.observed().access_ns, 1_000_000);
    }

    #[test]
    fn what_was_observed_survives_as_words() {
        let mut times = ReadTimes::new(DISK);
        (0..100).for_each(|_| times.note(1, 1, 3_000_000, Some(-3), &[]));
        (0..100).for_each(|_| times.note(3, 3, 20_000_000, Some(1000), &[500, -500]));
        let words = times.words();
        let again = ReadTimes::from_words(DISK, &mut words.iter().copied()).expect("its own");
        assert_eq!(format!("{again:?}"), format!("{times:?}"));
        assert!(ReadTimes::from_words(DISK, &mut words[1..].iter().copied()).is_none());
    }

    #[test]
    fn a_load_that_changes_is_followed() {
        let mut times = ReadTimes::new(DISK);
        (0..20_000).for_each(|_| times.note(1, 1, 21_000_000, None, &[]));
        assert_eq!(times.observed().access_ns, 20_000_000);
        (0..60_000).for_each(|_| times.note(1, 1, 3_000_000, None, &[]));
        assert!(times.observed().access_ns < 2_100_000);
    }

    #[test]
    fn a_short_gap_is_streamed_over_and_a_long_one_sought() {
        let times = ReadTimes::new(DISK);
        let steps =
            [(0, 0.0), (4, 4e6), (40, 15e6), (-1, 15e6), (i64::MAX, 15e6), (i64::MIN, 15e6)];
        for (step_blocks, step_ns) in steps {
            assert!((times.step_ns(step_blocks, false) - step_ns).abs() < 1e-9, "{step_blocks}");
        }
    }

    #[test]
    fn steps_cost_what_steps_over_their_distance_took() {
        let mut times = ReadTimes::new(DISK);
        (0..100).for_each(|_| times.note(1, 1, 3_000_000, Some(-3), &[]));
        (0..100).for_each(|_| times.note(1, 2, 12_000_000, Some(1000), &[]));
        let steps = [(-2, 2e6), (-3, 2e6), (1000, 10e6), (600, 10e6), (4, 4e6), (-4, 6e6)];
        for (step_blocks, step_ns) in steps {
            assert!((times.step_ns(step_blocks, false) - step_ns).abs() < 1e-9, "{step_blocks}");
        }
    }

    #[test]
    fn steps_within_a_call_are_learnt_apart() {
        let mut times = ReadTimes::new(DISK);
        (0..100).for_each(|_| times.note(1, 1, 12_000_000, Some(1000), &[]));
        // Three blocks, to the first of which it takes 11 ms; the two jumps take 3 ms each.
        (0..100).for_each(|_| times.note(3, 3, 20_000_000, Some(1000), &[500, -500]));
        assert!((times.step_ns(1000, false) - 11e6).abs() < 1e-6);
        assert!((times.step_ns(500, true) - 3e6).abs() < 1e-6);
        assert!((times.step_ns(-500, true) - 3e6).abs() < 1e-6);
        assert!((times.step_ns(1000, true) - 11e6).abs() < 1e-6);
    }
}
