//! How far what was expected of groups that were moved came true.
//!
//! A group that is moved is expected to be read as often again as it was read before. Groups are
//! counted in trials: all that are moved between two moments, which are spaced geometrically by
//! reads, for what is known doubles with the past. A trial is judged when as many reads have gone
//! by again: blocks of it that were read since, over what was expected. What was judged last is
//! believed; it counts half as much after each trial in which nothing was moved, so that a load
//! that changes is tried again.
//!
//! Source: ours.

/// Reads of the first trial; chosen by us.
const FIRST_READS: u64 = 1024;

/// Trials are numbered from 1 to this and then from 1 again: by then reads have doubled 60 times.
const TRIALS: usize = 60;

#[derive(Debug, Clone, Copy, Default)]
struct Trial {
    expected: f64,
    met: u64,
}

/// What was expected and what came.
#[derive(Debug, Clone)]
pub(crate) struct Trust {
    reads: u64,
    /// Reads at which the current trial ends.
    end: u64,
    current: usize,
    trials: [Trial; TRIALS + 1],
    trust: f64,
}

impl Trust {
    pub(crate) fn new() -> Self {
        Self {
            reads: 0,
            end: FIRST_READS,
            current: 1,
            trials: [Trial::default(); TRIALS + 1],
            trust: 1.0,
        }
    }

    /// The number of the current trial.
    pub(crate) fn current(&self) -> u8 {
        self.current as u8
    }

    /// How far expectations come true; at most 1.
    pub(crate) fn share(&self) -> f64 {
        self.trust
    }

    /// Blocks were moved that are expected to be read `expected` times in all.
    pub(crate) fn moved(&mut self, expected: f64) {
        self.trials[self.current].expected += expected;
    }

    /// A block was read that was last moved in `trial`, or was not (zero).
    #[inline]
    pub(crate) fn read(&mut self, trial: u8) {
        self.trials[usize::from(trial)].met += 1;
        self.reads += 1;
        if self.reads == self.end {
            self.next_trial();
        }
    }

    #[cold]
    fn next_trial(&mut self) {
        // The trial before the one that ends now ended when half as many reads were done.
        let Trial { expected, met } = self.trials[self.current - 1];
        if self.current > 1 && expected > 0.0 {
            self.trust = (met as f64 / expected).min(1.0);
        } else {
            self.trust = 1.0 - (1.0 - self.trust) / 2.0;
        }
        self.current = (self.current + 1).min(TRIALS);
        self.end = self.end.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_judged_when_as_many_reads_have_gone_by_again() {
        let mut trust = Trust::new();
        let trial = trust.current();
        trust.moved(1000.0);
        (0..FIRST_READS).for_each(|_| trust.read(0));
        assert_ne!(trust.current(), trial);
        assert!((trust.share() - 1.0).abs() < 1e-12);
        (0..FIRST_READS).for_each(|read| trust.read(if read < 250 { trial } else { 0 }));
        assert!((trust.share() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn what_was_learned_is_forgotten_where_nothing_is_tried() {
        let mut trust = Trust::new();
        trust.moved(10.0);
        (0..2 * FIRST_READS).for_each(|_| trust.read(0));
        assert!(trust.share().abs() < 1e-12);
        (0..2 * FIRST_READS).for_each(|_| trust.read(0));
        assert!((trust.share() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn more_than_was_expected_is_no_more_than_certain() {
        let mut trust = Trust::new();
        trust.moved(1.0);
        (0..2 * FIRST_READS).for_each(|_| trust.read(1));
        assert!((trust.share() - 1.0).abs() < 1e-12);
    }
}
