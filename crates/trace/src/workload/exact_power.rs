//! Powers of whole numbers that are the same on every machine.
//!
//! `f64::powf` is whatever the platform's library makes of it, and one differing bit would change
//! a whole workload. These use only addition, multiplication and division, whose results IEEE 754
//! fixes to the bit. The relative error is a few units of the fifteenth digit (a test holds it
//! against the library).

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

/// Terms of the logarithm's series: the first left out is below 0.172^42 / 42 < 1e-33.
const LOGARITHM_TERMS: u32 = 20;
/// Terms of the exponential's series: the first left out is below 0.35^20 / 20! < 1e-27.
const EXPONENTIAL_TERMS: u32 = 20;

/// `base` to the power of `-exponent`, for a base of at least 1 and an exponent of 0 to 20.
pub(super) fn inverse_power(base: u32, exponent: f64) -> f64 {
    assert!(base > 0, "no power of zero");
    exponential(-exponent * natural_logarithm(f64::from(base)))
}

/// Logarithm of `value` >= 1, by the series of the area hyperbolic tangent.
fn natural_logarithm(value: f64) -> f64 {
    let (mut mantissa, mut doublings) = (value, 0.0);
    while mantissa > 2.0 * FRAC_1_SQRT_2 {
        mantissa *= 0.5;
        doublings += 1.0;
    }
    // ln m = 2 atanh((m - 1) / (m + 1)); the argument is at most 0.172.
    let argument = (mantissa - 1.0) / (mantissa + 1.0);
    let square = argument * argument;
    let mut sum = 0.0;
    for term in (0..LOGARITHM_TERMS).rev() {
        sum = sum * square + 1.0 / f64::from(2 * term + 1);
    }
    doublings * LN_2 + 2.0 * argument * sum
}

/// e to the power of `value` <= 0, by halving to |value| < 0.35 and Taylor's series.
fn exponential(value: f64) -> f64 {
    let halvings = (value / LN_2).round();
    let rest = value - halvings * LN_2;
    let mut sum = 1.0;
    for term in (1..=EXPONENTIAL_TERMS).rev() {
        sum = 1.0 + sum * rest / f64::from(term);
    }
    let mut count = halvings;
    while count < 0.0 {
        sum *= 0.5;
        count += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_agree_with_the_library_to_fourteen_digits() {
        for exponent in [0.0, 0.1, 0.6, 1.0, 1.37, 3.0] {
            for base in (1..3000).chain([65_536, 1_000_003, u32::MAX]) {
                let (ours, library) =
                    (inverse_power(base, exponent), f64::from(base).powf(-exponent));
                let error = (ours / library - 1.0).abs();
                assert!(error < 1e-14, "{base}^-{exponent}: {ours} against {library}");
            }
        }
    }

    #[test]
    fn the_bits_are_pinned() {
        assert_eq!(inverse_power(3, 0.6).to_bits(), PINNED_3_06);
        assert_eq!(inverse_power(262_144, 1.0).to_bits(), PINNED_262144_1);
    }

    const PINNED_3_06: u64 = 4_602_834_480_310_890_928;
    const PINNED_262144_1: u64 = 4_526_117_625_507_348_480;
}
