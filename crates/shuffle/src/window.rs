//! Daily windows, for the nightly back-ups that the report leaves out of its second analysis
//! (Ruemmler & Wilkes 1991, table 4: 0300-0600 on hplajw, 0600-0900 on cello).

use agewell_core::{SimDuration, SimTime};

const MINUTE_NS: u64 = 60_000_000_000;
const DAY_NS: u64 = 24 * 60 * MINUTE_NS;

/// A part of every day, from one time of day up to but excluding another; it may reach past
/// midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DailyWindow {
    from_minute: u32,
    to_minute: u32,
}

impl DailyWindow {
    /// From text such as `03:00-06:00`; `None` if it is not of that form or the window is empty.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let window = Self { from_minute: minute_of_day(from)?, to_minute: minute_of_day(to)? };
        (window.from_minute != window.to_minute).then_some(window)
    }

    /// The text that [`DailyWindow::parse`] reads.
    #[must_use]
    pub fn text(&self) -> String {
        let clock = |minute: u32| format!("{:02}:{:02}", minute / 60, minute % 60);
        format!("{}-{}", clock(self.from_minute), clock(self.to_minute))
    }

    /// Whether `now` falls into the window, where simulated time zero was `start_of_day` after
    /// midnight.
    #[must_use]
    pub fn contains(&self, now: SimTime, start_of_day: SimDuration) -> bool {
        let of_day = (now.0 % DAY_NS + start_of_day.0 % DAY_NS) % DAY_NS;
        let from = u64::from(self.from_minute) * MINUTE_NS;
        let to = u64::from(self.to_minute) * MINUTE_NS;
        if from < to { (from..to).contains(&of_day) } else { of_day >= from || of_day < to }
    }
}

fn minute_of_day(text: &str) -> Option<u32> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let minute = hours.checked_mul(60)?.checked_add(minutes)?;
    (minutes < 60 && minute <= 24 * 60).then_some(minute % (24 * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 60 * MINUTE_NS;

    #[test]
    fn the_back_up_window_holds_its_start_and_not_its_end() {
        let window = DailyWindow::parse("03:00-06:00").expect("well formed");
        let midnight = SimDuration::ZERO;
        assert!(!window.contains(SimTime(3 * HOUR - 1), midnight));
        assert!(window.contains(SimTime(3 * HOUR), midnight));
        assert!(window.contains(SimTime(5 * DAY_NS + 6 * HOUR - 1), midnight));
        assert!(!window.contains(SimTime(6 * HOUR), midnight));
        assert_eq!(window.text(), "03:00-06:00");
    }

    #[test]
    fn the_trace_may_start_at_any_time_of_day() {
        let window = DailyWindow::parse("03:00-06:00").expect("well formed");
        assert!(window.contains(SimTime(0), SimDuration(4 * HOUR)));
        assert!(window.contains(SimTime(7 * HOUR), SimDuration(20 * HOUR)));
    }

    #[test]
    fn a_window_may_cross_midnight() {
        let window = DailyWindow::parse("22:30-01:00").expect("well formed");
        assert!(window.contains(SimTime(23 * HOUR), SimDuration::ZERO));
        assert!(window.contains(SimTime(HOUR - 1), SimDuration::ZERO));
        assert!(!window.contains(SimTime(12 * HOUR), SimDuration::ZERO));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "03:00", "3-6", "25:00-26:00", "03:60-04:00", "03:00-03:00", "0:0-24:0"] {
            assert_eq!(DailyWindow::parse(text), None, "{text}");
        }
    }
}
