//! Draws for benchmarks.

use agewell_core::{Stream, uniform_below};

/// `count` blocks below `blocks` with Zipf frequencies of exponent 1, ranks given to blocks at random.
#[must_use]
pub fn zipf_draws(stream: &mut Stream, blocks: u32, count: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..blocks).collect();
    for last in (1..blocks).rev() {
        order.swap(last as usize, uniform_below(stream, u64::from(last) + 1) as usize);
    }
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=blocks)
        .map(|rank| {
            sum += 1.0 / f64::from(rank);
            sum
        })
        .collect();
    let draw = |_| {
        let drawn = uniform_below(stream, 1 << 53) as f64 / (1_u64 << 53) as f64;
        order[sums.partition_point(|bound| *bound < drawn * sum).min(sums.len() - 1)]
    };
    (0..count).map(draw).collect()
}
