//! Bytes an hour: what may be moved now, whatever was moved before. A plain value of given times.

use std::collections::VecDeque;

/// An hour, ns.
const HOUR_NS: i64 = 3_600_000_000_000;

/// A budget of bytes that holds for every hour, wherever it begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HourlyBudget {
    per_hour_bytes: Option<u64>,
    /// When how much was moved, ascending, none older than an hour.
    spent: VecDeque<(i64, u64)>,
    /// The latest time that was seen: a clock that is set back frees nothing, then or later.
    latest_ns: i64,
}

/// Times nearer to each other than this are one entry; chosen by us: 361 entries at most, and a budget
/// that is free again ten seconds late.
const GRAIN_NS: i64 = HOUR_NS / 360;

impl HourlyBudget {
    /// Nothing was moved yet; `None` for no bound.
    pub(crate) fn new(per_hour_bytes: Option<u64>) -> Self {
        Self { per_hour_bytes, spent: VecDeque::new(), latest_ns: i64::MIN }
    }

    /// The same with what was moved before, by another budget perhaps.
    pub(crate) fn with_spent(per_hour_bytes: Option<u64>, spent: Vec<(i64, u64)>) -> Self {
        let mut budget = Self::new(per_hour_bytes);
        for (at_ns, bytes) in spent {
            budget.spend(at_ns, bytes);
        }
        budget
    }

    /// What was moved, and when.
    pub(crate) fn spent(&self) -> impl ExactSizeIterator<Item = (i64, u64)> + '_ {
        self.spent.iter().copied()
    }

    /// Bytes that may be moved at `now_ns`.
    pub(crate) fn allowance(&mut self, now_ns: i64) -> u64 {
        self.latest_ns = self.latest_ns.max(now_ns);
        let old = |entry: &(i64, u64)| self.latest_ns.saturating_sub(entry.0) > HOUR_NS;
        while self.spent.front().is_some_and(old) {
            self.spent.pop_front();
        }
        let spent = self.spent.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.1));
        self.per_hour_bytes.map_or(u64::MAX, |bytes| bytes.saturating_sub(spent))
    }

    /// `bytes` were moved at `now_ns`.
    pub(crate) fn spend(&mut self, now_ns: i64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.latest_ns = self.latest_ns.max(now_ns);
        let last_ns = self.latest_ns;
        // An entry has the time of the last that is in it, so that none is forgotten early.
        match self.spent.iter().rev().nth(1) {
            Some(before) if last_ns.saturating_sub(before.0) < GRAIN_NS => {
                if let Some(last) = self.spent.back_mut() {
                    *last = (last_ns, last.1.saturating_add(bytes));
                }
            }
            _ => self.spent.push_back((last_ns, bytes)),
        }
        self.allowance(last_ns);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is asked for and whenever, in no hour more is moved than the budget, the clock may be
        /// set back, and the memory is bounded.
        #[test]
        fn no_hour_has_more_than_the_budget(
            budget_bytes in 0_u64..1_000_000,
            asked in prop::collection::vec((-60_000_000_000_i64..600_000_000_000, 0_u64..400_000), 0..300),
        ) {
            let mut budget = HourlyBudget::new(Some(budget_bytes));
            let (mut clock_ns, mut true_ns) = (0_i64, i64::MIN);
            let mut moved: Vec<(i64, u64)> = Vec::new();
            for (step_ns, bytes) in asked {
                clock_ns += step_ns;
                true_ns = true_ns.max(clock_ns);
                let bytes = bytes.min(budget.allowance(clock_ns));
                budget.spend(clock_ns, bytes);
                moved.push((true_ns, bytes));
                prop_assert!(budget.spent().len() <= 363);
                let again = HourlyBudget::with_spent(Some(budget_bytes), budget.spent().collect());
                prop_assert_eq!(again.clone().allowance(clock_ns), budget.allowance(clock_ns));
            }
            for (number, (from_ns, _)) in moved.iter().enumerate() {
                let hour = moved[number..].iter().take_while(|(at_ns, _)| at_ns - from_ns <= HOUR_NS);
                prop_assert!(hour.map(|entry| entry.1).sum::<u64>() <= budget_bytes);
            }
        }
    }

    #[test]
    fn what_was_moved_an_hour_ago_is_free_again() {
        let mut budget = HourlyBudget::new(Some(100));
        budget.spend(0, 60);
        assert_eq!(budget.allowance(HOUR_NS), 40);
        assert_eq!(budget.allowance(HOUR_NS + 1), 100);
        assert_eq!(HourlyBudget::new(None).allowance(0), u64::MAX);
    }
}
