//! Named random streams: one seed, many independent generators.
//!
//! A consumer asks for a stream by name. Adding a consumer never shifts the numbers another one
//! draws, because the stream is chosen by the name and not by the order of asking. The generator is
//! PCG XSL RR 128/64 (O'Neill 2014); the name selects its increment through FNV-1a, whose value is
//! fixed by its specification on every platform.

use rand_core::Rng;
use rand_pcg::Pcg64;

/// The generator behind every stream.
pub type Stream = Pcg64;

/// A seed from which named streams are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomStreams {
    seed: u64,
}

impl RandomStreams {
    /// Streams for `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream called `name`; the same seed and name always give the same numbers.
    #[must_use]
    pub fn stream(&self, name: &str) -> Stream {
        let increment = fnv1a(name.as_bytes());
        // The halves differ so that seeds 0 and 1 do not start in neighbouring states.
        let state = (u128::from(mix(self.seed)) << 64) | u128::from(mix(!self.seed));
        Pcg64::new(state, u128::from(increment))
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    // Offset basis and prime of the 64-bit variant (Fowler, Noll, Vo).
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A hash of `value` that spreads every bit of it over all 64: the step and the finaliser of
/// SplitMix64 (Steele, Lea, Flood 2014).
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A uniform number below `bound`, by widening multiplication (Lemire 2019); the bias is below
/// `bound / 2^64`.
#[must_use]
#[inline]
pub fn uniform_below(stream: &mut Stream, bound: u64) -> u64 {
    ((u128::from(stream.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// True with probability `share`, to within 2^-53.
#[must_use]
#[inline]
pub fn chance(stream: &mut Stream, share: f64) -> bool {
    // A product by a power of two is exact, so this comparison is the same everywhere.
    let threshold = (share * 9_007_199_254_740_992.0) as u64;
    (stream.next_u64() >> 11) < threshold
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_seed_fix_the_numbers() {
        let mut first = RandomStreams::new(7).stream("workload");
        let mut again = RandomStreams::new(7).stream("workload");
        let mut other_name = RandomStreams::new(7).stream("rotation");
        let mut other_seed = RandomStreams::new(8).stream("workload");
        let value = first.next_u64();
        assert_eq!(value, again.next_u64());
        assert_ne!(value, other_name.next_u64());
        assert_ne!(value, other_seed.next_u64());
    }

    #[test]
    fn the_numbers_are_pinned_so_that_an_upgrade_cannot_move_results_silently() {
        let mut stream = RandomStreams::new(1).stream("workload");
        let drawn: Vec<u64> = (0..3).map(|_| stream.next_u64()).collect();
        assert_eq!(drawn, PINNED);
    }

    const PINNED: [u64; 3] =
        [7_152_531_595_500_228_926, 10_865_561_965_296_360_578, 266_359_894_112_695_808];
}
