//! Random draws that are the same on every machine.
//!
//! Only additions, multiplications and square roots take part, which IEEE 754 rounds in one way;
//! the logarithms and exponentials of a system's mathematical library differ in their last bit.

use agewell_core::{Stream, uniform_below};
use rand_core::Rng;

/// A number from 0 up to, not including, 1, in steps of 2^-53.
pub(crate) fn unit(stream: &mut Stream) -> f64 {
    (stream.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Two to the power of `exponent`, to within 2^-30 of it; the exponent is cut to -60 and 60.
pub(crate) fn power_of_two(exponent: f64) -> f64 {
    let exponent = exponent.clamp(-60.0, 60.0);
    let whole = exponent.floor();
    let mut rest = exponent - whole;
    let (mut root, mut power) = (2.0_f64, 1.0_f64);
    for _ in 0..30 {
        root = root.sqrt();
        rest *= 2.0;
        if rest >= 1.0 {
            rest -= 1.0;
            power *= root;
        }
    }
    // Powers of two are exact.
    let scale = (1_u64 << whole.abs() as u32) as f64;
    if whole < 0.0 { power / scale } else { power * scale }
}

/// A normal deviate of mean 0 and deviation 1 as the sum of twelve uniform ones (Irwin and Hall
/// 1927), which ends at 6 deviations.
pub(crate) fn normal(stream: &mut Stream) -> f64 {
    (0..12).map(|_| unit(stream)).sum::<f64>() - 6.0
}

/// A length whose doublings are normal: half of them below `median_bytes`, two thirds within
/// `doublings` doublings of it. At least 1.
pub(crate) fn log_normal_bytes(stream: &mut Stream, median_bytes: f64, doublings: f64) -> f64 {
    (median_bytes * power_of_two(doublings * normal(stream))).max(1.0)
}

/// A number from 1 to 2^`doublings`, each doubling equally likely.
pub(crate) fn log_uniform(stream: &mut Stream, doublings: f64) -> f64 {
    power_of_two(doublings * unit(stream))
}

/// A whole number of at least 1 whose mean is `mean`, each further step equally likely.
pub(crate) fn geometric(stream: &mut Stream, mean: f64) -> u32 {
    let go_on = 1.0 - 1.0 / mean.max(1.0);
    let mut count = 1;
    // The end is far beyond what any mean in use reaches.
    while count < 10_000 && unit(stream) < go_on {
        count += 1;
    }
    count
}

/// One of `count` things, the first ones more often: the i-th with weight 1 / (i + 1), to within
/// the rounding of doublings.
pub(crate) fn zipf(stream: &mut Stream, count: u32) -> u32 {
    let doublings = f64::from(32 - count.leading_zeros());
    loop {
        let picked = log_uniform(stream, doublings) as u64 - 1;
        if picked < u64::from(count) {
            return picked as u32;
        }
    }
}

/// One of `items`.
///
/// # Panics
/// If there is none.
pub(crate) fn pick<T: Copy>(stream: &mut Stream, items: &[T]) -> T {
    items[uniform_below(stream, items.len() as u64) as usize]
}

#[cfg(test)]
mod tests {
    use agewell_core::RandomStreams;

    use super::*;

    // Powers agree with the mathematical library.
    #[test]
    fn powers_are_right() {
        for step in -400..400 {
            let exponent = f64::from(step) / 7.0;
            let relative = power_of_two(exponent) / exponent.clamp(-60.0, 60.0).exp2() - 1.0;
            assert!(relative.abs() < 1e-8, "2^{exponent}: {relative}");
        }
    }

    // Means, deviations and medians are as named.
    #[test]
    fn draws_have_the_moments_they_name() {
        let mut stream = RandomStreams::new(1).stream("draws");
        let count = 100_000;
        let normals: Vec<f64> = (0..count).map(|_| normal(&mut stream)).collect();
        let mean = normals.iter().sum::<f64>() / f64::from(count);
        let square = normals.iter().map(|value| value * value).sum::<f64>() / f64::from(count);
        assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.02, "{mean} {square}");
        let below = (0..count).filter(|_| log_normal_bytes(&mut stream, 4096.0, 3.0) < 4096.0);
        assert!((f64::from(below.count() as u32) / f64::from(count) - 0.5).abs() < 0.01);
        let steps: u32 = (0..count).map(|_| geometric(&mut stream, 8.0)).sum();
        assert!((f64::from(steps) / f64::from(count) - 8.0).abs() < 0.2);
        let mut ranks = [0_u32; 20];
        (0..count).for_each(|_| ranks[zipf(&mut stream, 20) as usize] += 1);
        // Weights 1 and 1/2: log2(2/1) against log2(3/2).
        let ratio = f64::from(ranks[0]) / f64::from(ranks[1]);
        assert!((ratio - 1.0 / 1.5_f64.log2()).abs() < 0.1, "{ratio}");
    }
}
