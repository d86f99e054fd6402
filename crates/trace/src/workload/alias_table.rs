//! Draws from any discrete distribution with one random number and one look into memory.
//!
//! Walker's alias method (1977) as Vose (1991) builds it, in whole numbers throughout: every
//! column holds its own item up to a threshold and one other item above it. Invariant: summed over
//! the columns, an item's probability is its weight over the sum of all, to within 2^-32 of a
//! column's share. Cost: 8 bytes an item, O(items) to build, O(1) a draw; a draw is bound by the
//! one access to the table.

use agewell_core::Stream;
use rand_core::Rng;

/// A table of `u32` items drawn by weight.
#[derive(Debug, Clone)]
pub struct AliasTable {
    columns: Vec<Column>,
}

#[derive(Debug, Clone, Copy)]
struct Column {
    /// The column's own item has this share of the column, in units of 2^-32.
    threshold: u32,
    /// The item of the rest.
    alias: u32,
}

impl AliasTable {
    /// The table in which item `i` has weight `weights[i]`.
    ///
    /// # Panics
    /// If there are no weights, more than 2^32 - 1, or they sum to zero.
    #[must_use]
    pub fn new(weights: &[u64]) -> Self {
        let count = u128::from(u32::try_from(weights.len()).expect("items are numbered by u32"));
        let capacity: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
        assert!(capacity > 0, "some weight is above zero");
        // In units in which the mean is the capacity of a column; below 2^96, so nothing overflows.
        let mut rest: Vec<u128> = weights.iter().map(|w| u128::from(*w) * count).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..count as u32).partition(|item| rest[*item as usize] < capacity);
        let mut columns: Vec<Column> =
            (0..count as u32).map(|item| Column { threshold: u32::MAX, alias: item }).collect();
        while let Some(poor) = small.pop() {
            // In whole numbers nothing is lost: what is short on one side is over on the other.
            let rich = *large.last().expect("weights and columns sum to the same");
            let own = rest[poor as usize];
            columns[poor as usize] =
                Column { threshold: ((own << 32) / capacity) as u32, alias: rich };
            // The rich item fills what the poor one leaves free.
            rest[rich as usize] -= capacity - own;
            if rest[rich as usize] < capacity {
                large.pop();
                small.push(rich);
            }
        }
        Self { columns }
    }

    /// Items in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Never: a table has at least one item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// An item, drawn by weight.
    #[inline]
    #[must_use]
    pub fn draw(&self, stream: &mut Stream) -> u32 {
        // The high half of the product is uniform over the columns, the low half within one.
        let product = u128::from(stream.next_u64()) * self.columns.len() as u128;
        let item = (product >> 64) as u32;
        let within = (product >> 32) as u32;
        let column = self.columns[item as usize];
        if within < column.threshold { item } else { column.alias }
    }

    /// The probability of each item as the table gives it.
    #[must_use]
    pub fn probabilities(&self) -> Vec<f64> {
        let mut shares = vec![0_u64; self.columns.len()];
        for (item, column) in self.columns.iter().enumerate() {
            shares[item] += u64::from(column.threshold);
            shares[column.alias as usize] += (1 << 32) - u64::from(column.threshold);
        }
        let whole = 4_294_967_296.0 * self.columns.len() as f64;
        shares.into_iter().map(|share| share as f64 / whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use agewell_core::RandomStreams;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn every_item_has_the_probability_of_its_weight(
            weights in prop::collection::vec(prop_oneof![Just(0), 0_u64..10, any::<u64>()], 1..200)
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let total: f64 = weights.iter().map(|weight| *weight as f64).sum();
            let table = AliasTable::new(&weights);
            for (weight, probability) in weights.iter().zip(table.probabilities()) {
                let error = (probability - *weight as f64 / total).abs();
                // Each column rounds by less than 2^-32 of its share, and gives to one other item.
                prop_assert!(error < 2.4e-10, "{probability} for {weight} of {total}");
            }
        }
    }

    #[test]
    fn draws_follow_the_weights() {
        let weights = [1, 2, 3, 94];
        let table = AliasTable::new(&weights);
        let mut stream = RandomStreams::new(5).stream("alias");
        let mut counts = [0_u32; 4];
        for _ in 0..1_000_000 {
            counts[table.draw(&mut stream) as usize] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            let mean = 10_000.0 * weight as f64;
            // Six standard deviations of the count.
            assert!((f64::from(*count) - mean).abs() < 6.0 * mean.sqrt(), "{counts:?}");
        }
    }
}
