//! A window of the day, such as the nightly back-up that Ruemmler & Wilkes (1991, §5.1) leave out
//! of their analysis.

use std::fmt;
use std::str::FromStr;

use crate::SimTime;

/// Nanoseconds in a day.
pub const DAY_NS: u64 = 86_400_000_000_000;
const MINUTE_NS: u64 = 60_000_000_000;
const DAY_MINUTES: u32 = 24 * 60;

/// From one time of day up to, not including, another; it may run over midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DailyWindow {
    from_minute: u32,
    to_minute: u32,
}

/// Text that is no window of the day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no window of the day; write for example '03:00..06:00'")]
pub struct DailyWindowError(String);

impl DailyWindow {
    /// Whether `time` falls in the window, when the clock's zero is `midnight_offset_ns` after
    /// midnight.
    #[must_use]
    pub fn contains(&self, time: SimTime, midnight_offset_ns: u64) -> bool {
        let of_day_ns = (time.0 % DAY_NS + midnight_offset_ns % DAY_NS) % DAY_NS;
        let minute = (of_day_ns / MINUTE_NS) as u32;
        if self.from_minute <= self.to_minute {
            (self.from_minute..self.to_minute).contains(&minute)
        } else {
            minute >= self.from_minute || minute < self.to_minute
        }
    }
}

impl FromStr for DailyWindow {
    type Err = DailyWindowError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (from, to) = text.split_once("..")?;
            let window = Self { from_minute: minute_of(from)?, to_minute: minute_of(to)? };
            // A window that ends where it begins would hold nothing, or everything: ask which.
            (window.from_minute != window.to_minute).then_some(window)
        };
        parse().ok_or_else(|| DailyWindowError(text.to_owned()))
    }
}

fn minute_of(text: &str) -> Option<u32> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let minute = hours.checked_mul(60)?.checked_add(minutes)?;
    (minutes < 60 && minute <= DAY_MINUTES).then_some(minute)
}

impl fmt::Display for DailyWindow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = |minute: u32| (minute / 60, minute % 60);
        let ((from_h, from_m), (to_h, to_m)) = (clock(self.from_minute), clock(self.to_minute));
        write!(formatter, "{from_h:02}:{from_m:02}..{to_h:02}:{to_m:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 60 * MINUTE_NS;

    #[test]
    fn a_window_counts_from_the_midnight_before_the_trace() {
        let window: DailyWindow = "03:00..06:00".parse().unwrap();
        // The trace begins at 01:00, so the window is its hours 2 to 5, every day.
        let inside = |hour| window.contains(SimTime(hour * HOUR_NS), HOUR_NS);
        let hours: Vec<u64> = (0..48).filter(|hour| inside(*hour)).collect();
        assert_eq!(hours, [2, 3, 4, 26, 27, 28]);
    }

    #[test]
    fn a_window_may_run_over_midnight() {
        let window: DailyWindow = "22:30..01:00".parse().unwrap();
        assert!(window.contains(SimTime(23 * HOUR_NS), 0));
        assert!(window.contains(SimTime(0), 0));
        assert!(!window.contains(SimTime(HOUR_NS), 0));
        assert_eq!(window.to_string(), "22:30..01:00");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "3..6", "03:00-06:00", "25:00..26:00", "03:60..04:00", "03:00..03:00"] {
            assert!(text.parse::<DailyWindow>().is_err(), "{text}");
        }
    }
}
