//! Power-of-two bins.

/// The number of the bin `(2^(n-1), 2^n]` that holds `value`: 0 for 1, 1 for 2, 2 for 3 and 4, ...
pub(super) fn bin_up_to(value: u64) -> usize {
    debug_assert!(value > 0, "nothing to put in a bin");
    value.saturating_sub(1).checked_ilog2().map_or(0, |log| log as usize + 1)
}

/// The bounds of bin `number`, both included.
pub(super) fn bounds_up_to(number: usize) -> (u64, u64) {
    let upper = 1_u64 << number;
    (upper / 2 + 1, upper)
}

/// The lower median of `values`, which are reordered; `None` of nothing.
pub(super) fn median(values: &mut [u64]) -> Option<u64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// The mean of `values`, if there are any.
pub(super) fn mean(values: &[u64]) -> Option<f64> {
    let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
    (!values.is_empty()).then(|| sum as f64 / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::{bin_up_to, bounds_up_to, mean, median};

    #[test]
    fn every_value_lies_within_the_bounds_of_its_bin() {
        assert_eq!(bounds_up_to(0), (1, 1));
        assert_eq!(bounds_up_to(1), (2, 2));
        assert_eq!(bounds_up_to(2), (3, 4));
        for value in 1..=4097 {
            let (lower, upper) = bounds_up_to(bin_up_to(value));
            assert!((lower..=upper).contains(&value), "{value} in {lower}..={upper}");
        }
    }

    #[test]
    fn a_median_is_a_value_and_nothing_has_none() {
        assert_eq!(median(&mut [9, 1, 5]), Some(5));
        assert_eq!(median(&mut [9, 1]), Some(1));
        assert_eq!(median(&mut []), None);
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[u64::MAX, u64::MAX]), Some(u64::MAX as f64));
    }
}
