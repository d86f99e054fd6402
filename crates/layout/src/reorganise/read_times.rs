//! What reads really take: the price of reading a block elsewhere than right behind the last.
//!
//! The cost model knows an average seek and half a rotation. Data that is used lies closer together
//! than that, and a drive reads ahead, so that a jump costs less, or, where reads in sequence miss
//! a turn, gains less. Where the device says what its transfers took, the mean of what reads that
//! jumped took beyond streaming, less that of reads that did not, replaces the model's access time.
//!
//! Sums are halved when they are large, so that the mean follows the load. Deterministic: the times
//! are simulated ones.

use crate::lfs::policy::cost::CostModel;

/// Jumps before which the model is believed; chosen by us.
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

/// Observed reads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadTimes {
    jumping: Mean,
    streaming: Mean,
}

impl ReadTimes {
    /// One call read `blocks` blocks, of which `jumps` did not lie right behind the one before, in
    /// `time_ns`.
    pub(crate) fn note(&mut self, disk: &CostModel, jumps: u32, blocks: u32, time_ns: u64) {
        let streaming_ns = disk.streaming_ns(u64::from(blocks) * disk.block_bytes);
        let beyond_ns = time_ns as f64 - streaming_ns as f64;
        if jumps > 0 {
            self.jumping.add(beyond_ns, f64::from(jumps));
        } else {
            self.streaming.add(beyond_ns, 1.0);
        }
    }

    /// `disk` with the access time that was observed, if enough was.
    pub(crate) fn observed(&self, disk: &CostModel) -> CostModel {
        if self.jumping.count < JUMPS_MIN {
            return *disk;
        }
        let streaming_ns = self.streaming.value().unwrap_or(0.0);
        let access_ns = self.jumping.value().map_or(0.0, |jump_ns| jump_ns - streaming_ns);
        CostModel { access_ns: access_ns.max(0.0) as u64, ..*disk }
    }
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
        let mut times = ReadTimes::default();
        for _ in 0..63 {
            times.note(&DISK, 1, 1, 5_000_000);
            assert_eq!(times.observed(&DISK), DISK);
        }
        times.note(&DISK, 1, 1, 5_000_000);
        // A block streams in 1 ms.
        assert_eq!(times.observed(&DISK).access_ns, 4_000_000);
        // Reads in sequence take 3 ms more than they stream, so that a jump takes 1 ms more.
        (0..100).for_each(|_| times.note(&DISK, 0, 2, 5_000_000));
        assert_eq!(times.observed(&DISK).access_ns, 1_000_000);
    }

    #[test]
    fn a_load_that_changes_is_followed() {
        let mut times = ReadTimes::default();
        (0..20_000).for_each(|_| times.note(&DISK, 1, 1, 21_000_000));
        assert_eq!(times.observed(&DISK).access_ns, 20_000_000);
        (0..60_000).for_each(|_| times.note(&DISK, 1, 1, 3_000_000));
        assert!(times.observed(&DISK).access_ns < 2_100_000);
    }
}
