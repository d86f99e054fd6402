//! Simulated time: integer nanoseconds, so that no event order ever depends on rounding.

use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// An instant, in nanoseconds from the start of the trace or simulation.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SimTime(pub u64);

/// A length of time in nanoseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SimDuration(pub u64);

impl SimTime {
    /// The start of simulated time.
    pub const ZERO: SimTime = SimTime(0);

    /// The later of two instants.
    #[must_use]
    #[inline]
    pub fn max(self, other: SimTime) -> SimTime {
        SimTime(self.0.max(other.0))
    }

    /// Time since `earlier`, or zero if `earlier` is in fact later.
    #[must_use]
    #[inline]
    pub fn saturating_since(self, earlier: SimTime) -> SimDuration {
        SimDuration(self.0.saturating_sub(earlier.0))
    }
}

impl SimDuration {
    /// No time at all.
    pub const ZERO: SimDuration = SimDuration(0);

    /// A duration from milliseconds, rounded to the nearest nanosecond.
    ///
    /// # Panics
    /// If `ms` is negative, not finite, or beyond 2^63 ns.
    #[must_use]
    pub fn from_ms(ms: f64) -> Self {
        let ns = (ms * 1e6).round();
        assert!(ns.is_finite() && ns >= 0.0, "a duration of {ms} ms");
        assert!(ns < 9.2e18, "a duration of {ms} ms");
        Self(ns as u64)
    }

    /// This duration in milliseconds.
    #[must_use]
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// This duration in seconds.
    #[must_use]
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<SimDuration> for SimTime {
    type Output = SimTime;
    #[inline]
    fn add(self, duration: SimDuration) -> SimTime {
        SimTime(self.0 + duration.0)
    }
}

impl AddAssign<SimDuration> for SimTime {
    #[inline]
    fn add_assign(&mut self, duration: SimDuration) {
        self.0 += duration.0;
    }
}

impl Sub for SimTime {
    type Output = SimDuration;
    #[inline]
    fn sub(self, earlier: SimTime) -> SimDuration {
        assert!(self.0 >= earlier.0, "time runs backwards: {} before {}", self.0, earlier.0);
        SimDuration(self.0 - earlier.0)
    }
}

impl Add for SimDuration {
    type Output = SimDuration;
    #[inline]
    fn add(self, other: SimDuration) -> SimDuration {
        SimDuration(self.0 + other.0)
    }
}

impl AddAssign for SimDuration {
    #[inline]
    fn add_assign(&mut self, other: SimDuration) {
        self.0 += other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_round_to_the_nearest_nanosecond() {
        assert_eq!(SimDuration::from_ms(1.1), SimDuration(1_100_000));
        assert_eq!(SimDuration::from_ms(0.000_000_6), SimDuration(1));
    }

    #[test]
    #[should_panic(expected = "time runs backwards")]
    fn elapsed_time_is_never_negative() {
        let _ = SimTime(1) - SimTime(2);
    }
}
