//! Draws that several workloads share, in whole numbers.

use agewell_core::{Stream, uniform_below};

/// A whole number from `low` to `high`, all equally likely; `low` must not be above `high`.
pub(super) fn between(stream: &mut Stream, low: u32, high: u32) -> u32 {
    low + uniform_below(stream, u64::from(high - low) + 1) as u32
}

/// A number from `low` to below `low * 2^doublings`: each doubling equally likely, and within it
/// every number. The median is `low * 2^(doublings / 2)`.
pub(super) fn over_doublings(stream: &mut Stream, low: u64, doublings: u32) -> u64 {
    let start = low << uniform_below(stream, u64::from(doublings));
    start + uniform_below(stream, start)
}

#[cfg(test)]
mod tests {
    use agewell_core::RandomStreams;

    use super::*;

    #[test]
    fn every_number_between_is_drawn_and_no_other() {
        let mut stream = RandomStreams::new(1).stream("draws");
        let mut counts = [0_u32; 5];
        for _ in 0..10_000 {
            counts[between(&mut stream, 3, 7) as usize - 3] += 1;
        }
        // Mean 2000, deviation 40.
        assert!(counts.iter().all(|count| (1760..2240).contains(count)), "{counts:?}");
        assert_eq!(between(&mut stream, 9, 9), 9);
    }

    #[test]
    fn each_doubling_is_equally_likely() {
        let mut stream = RandomStreams::new(1).stream("draws");
        let mut counts = [0_u32; 6];
        for _ in 0..12_000 {
            counts[(over_doublings(&mut stream, 100, 6) / 100).ilog2() as usize] += 1;
        }
        assert!(counts.iter().all(|count| (1760..2240).contains(count)), "{counts:?}");
    }
}
