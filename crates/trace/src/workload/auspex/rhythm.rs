//! When in the week the work is done.
//!
//! The week begins on Monday at 0:00. Its hours have weights: an office hour of a working day does
//! five times the work of a night hour, an evening or a weekend hour twice (chosen by us: an
//! instructional department's rhythm; the paper says nothing of it). All in whole numbers.

/// Weight of an hour of a working day.
const WORKING_DAY: [u64; 24] =
    [1, 1, 1, 1, 1, 1, 1, 1, 3, 5, 5, 5, 5, 5, 5, 5, 5, 5, 3, 2, 2, 2, 2, 1];
/// Weight of an hour of the weekend.
const WEEKEND: [u64; 24] = [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1];

const HOURS: usize = 168;

/// Maps progress of the work to time.
#[derive(Debug, Clone)]
pub(in crate::workload) struct Rhythm {
    /// Weight of all hours before each one, and of all.
    before: [u64; HOURS + 1],
    duration_ns: u64,
    total_work: u64,
    /// The hour of the last answer; the questions only rise.
    hour: usize,
}

impl Rhythm {
    /// The rhythm of `total_work` >= 1 pieces of work over `duration_ns`, which stands for a week.
    pub(in crate::workload) fn new(duration_ns: u64, total_work: u64) -> Self {
        let mut before = [0; HOURS + 1];
        for hour in 0..HOURS {
            let day = if hour / 24 < 5 { WORKING_DAY } else { WEEKEND };
            before[hour + 1] = before[hour] + day[hour % 24];
        }
        Self { before, duration_ns, total_work, hour: 0 }
    }

    /// When piece `done` of the work begins, in nanoseconds; `done` must not fall.
    pub(in crate::workload) fn time_ns(&mut self, done: u64) -> u64 {
        let work = u128::from(self.total_work);
        // Weight passed, in units of 1 / total_work.
        let passed = u128::from(done.min(self.total_work)) * u128::from(self.before[HOURS]);
        while self.hour + 1 < HOURS && passed >= u128::from(self.before[self.hour + 1]) * work {
            self.hour += 1;
        }
        let (start, end) = (self.before[self.hour], self.before[self.hour + 1]);
        let within = passed - u128::from(start) * work;
        let whole = u128::from(end - start) * work;
        let hours = HOURS as u128;
        let duration = u128::from(self.duration_ns);
        // Below 2^64 * 2^8: no overflow for any duration and any work below 2^48.
        (duration * self.hour as u128 / hours + duration * within / (whole * hours)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK_NS: u64 = 604_800_000_000_000;

    #[test]
    fn time_rises_from_the_beginning_to_the_end() {
        let mut rhythm = Rhythm::new(WEEK_NS, 1_000_000);
        let times: Vec<u64> = (0..=1_000_000).map(|done| rhythm.time_ns(done)).collect();
        assert!(times.is_sorted());
        assert_eq!((times[0], times[1_000_000]), (0, WEEK_NS));
    }

    #[test]
    fn an_office_hour_does_five_times_the_work_of_a_night_hour() {
        let mut rhythm = Rhythm::new(WEEK_NS, 1_000_000);
        let mut work = [0_u32; HOURS];
        for done in 0..1_000_000 {
            work[(rhythm.time_ns(done) / 3_600_000_000_000) as usize] += 1;
        }
        let ratio = f64::from(work[35]) / f64::from(work[27]);
        assert!((ratio - 5.0).abs() < 0.01, "Tuesday 11:00 over 3:00 is {ratio}");
        assert!(work[130] < work[35] / 2, "Saturday is quiet");
    }
}
