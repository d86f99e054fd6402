//! A distribution of times in log-linear buckets.
//!
//! Values below 256 have a bucket each; above, every power of two is divided into 128, so a bucket
//! is at most 0.8 % wide. Counting is one shift and one increment; percentiles are the bucket's
//! upper edge, never below the true value and at most 0.8 % above it. (The layout is that of
//! HdrHistogram, Tene 2012.)

/// Counts of values by bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    counts: Vec<u64>,
    total: u64,
}

/// Sub-buckets in each power of two; chosen by us: 1/128 is finer than any model here is accurate.
const SUB_BUCKETS_LOG2: u32 = 7;
const BUCKETS: usize = bucket_of(u64::MAX) + 1;

const fn bucket_of(value: u64) -> usize {
    let significant_bits = 64 - value.leading_zeros();
    if significant_bits <= SUB_BUCKETS_LOG2 + 1 {
        return value as usize;
    }
    let shift = significant_bits - SUB_BUCKETS_LOG2 - 1;
    ((shift as usize) << SUB_BUCKETS_LOG2) + (value >> shift) as usize
}

fn upper_edge_of(bucket: usize) -> u64 {
    let direct = 1_usize << (SUB_BUCKETS_LOG2 + 1);
    if bucket < direct {
        return bucket as u64;
    }
    let shift = (bucket >> SUB_BUCKETS_LOG2) - 1;
    let mantissa = (bucket - (shift << SUB_BUCKETS_LOG2)) as u64;
    // Wraps to u64::MAX exactly for the topmost bucket.
    ((mantissa + 1) << shift).wrapping_sub(1)
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl Distribution {
    /// No values yet.
    #[must_use]
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }

    /// Counts `value`.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.counts[bucket_of(value)] += 1;
        self.total += 1;
    }

    /// Counts `value` `times` times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        self.counts[bucket_of(value)] += times;
        self.total += times;
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The upper edge of the bucket that holds the value at `per_mille` of the sorted values (500
    /// is the median), or `None` without values.
    ///
    /// # Panics
    /// If `per_mille` is above 1000.
    #[must_use]
    pub fn percentile(&self, per_mille: u64) -> Option<u64> {
        assert!(per_mille <= 1000, "{per_mille} per mille");
        if self.total == 0 {
            return None;
        }
        // Rank of the value that at least `per_mille` of all values do not exceed; widened against
        // overflow.
        let wide = (u128::from(self.total) * u128::from(per_mille)).div_ceil(1000);
        let rank = (wide as u64).max(1);
        let mut seen = 0;
        self.counts.iter().enumerate().find_map(|(bucket, count)| {
            seen += count;
            (seen >= rank).then(|| upper_edge_of(bucket))
        })
    }

    /// The buckets that hold anything: inclusive upper edge and count, in rising order.
    pub fn filled(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, count)| (upper_edge_of(bucket), *count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket_and_the_bucket_is_narrow(value: u64) {
            let bucket = bucket_of(value);
            let upper = upper_edge_of(bucket);
            prop_assert!(value <= upper);
            prop_assert!(u128::from(upper - value) * 128 <= u128::from(value));
            if bucket > 0 {
                prop_assert!(upper_edge_of(bucket - 1) < value);
            }
        }

        #[test]
        fn percentiles_agree_with_sorting(
            mut values in prop::collection::vec(0_u64..1 << 40, 1..200),
            per_mille in 0_u64..=1000,
        ) {
            let mut distribution = Distribution::new();
            for value in &values {
                distribution.record(*value);
            }
            values.sort_unstable();
            let rank = (values.len() as u64 * per_mille).div_ceil(1000).max(1) as usize;
            let exact = values[rank - 1];
            let found = distribution.percentile(per_mille).unwrap();
            prop_assert!(found >= exact && (found - exact) * 128 <= exact, "{found} for {exact}");
        }
    }

    #[test]
    fn an_empty_distribution_has_no_percentile() {
        assert_eq!(Distribution::new().percentile(500), None);
    }
}
