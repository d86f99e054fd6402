//! Confidence: how far the reads expected of moved groups came true.
//!
//! A group that is moved is expected to be read as often again as it was read before, its blocks
//! one right behind the other. Groups are counted in trials: all that are moved between two
//! decision points, which are spaced geometrically by reads, since the observations double with
//! them. A trial is judged when as many reads have passed again: by the number of its blocks read
//! right behind another since, over the expected number. The confidence is taken over all judged
//! trials together, each counted as 1 at most. They go on counting: groups that were given up may
//! still be read.
//!
//! Before anything was judged, expectation follows the repetition of the load: the share of the
//! latest steps of the arm that were on record already. Where all steps are taken a second time, a
//! third is likely; where one in ten is, a repetition is due to chance.
//!
//! At zero confidence nothing would be moved, and so nothing learnt. So groups that would be moved
//! if expectations were met are moved on probation (exploration), as long as that takes no more
//! than a small share of the disk time.
//!
//! And there is a balance: the measured cost of moving so far, with the collections that it made
//! dearer, less the measured savings of reads. Both are against the log without moves. While it is
//! worse than that small share of the disk time nothing is moved, unless nearly all steps are on
//! record: a load that repeats itself pays back later, if reads have not become slower. Blocks may
//! be taken out of the rows in which they came into being. Before the first trial was judged it is
//! unknown whether they are read there as well, so that an access more for some of them is at
//! stake, too.
//!
//! Source: ours.

/// Reads of the first trial; chosen by us. Until it is judged confidence is full, so that it is
/// short: a load without repetition is reorganised for at most twice as many reads.
const FIRST_READS: u64 = 512;

/// Share of the disk time that may be spent on probation; chosen by us as a fifth of what may be
/// lost to a log that does not reorganise: the time of a move is known badly where room is scarce.
const PROBATION_SHARE: f64 = 0.002;

/// Share of the estimated savings of reads that is counted against the cost of moving; chosen by
/// us: both are known badly, and what was moved goes on costing room.
const SAVED_SHARE: f64 = 0.5;

/// Share of the blocks taken out of rows that is assumed to be missed there, until that is known;
/// chosen by us: with all of them nothing would ever be tried.
const MISSED_SHARE: f64 = 0.2;

/// Steps of the arm over which repetition is averaged; chosen by us.
const STEPS: f64 = 512.0;

/// Repetitions from which on a step counts as one of each level; the last level has no upper end.
const LEVELS: [u16; 8] = [1, 2, 3, 4, 8, 16, 32, 64];

/// Steps of a level that make it known; chosen by us.
const KNOWN_MIN: u64 = 64;

/// Share of the steps that must be on record for more to be put in than that; chosen by us.
const REPEATED_MIN: f64 = 0.9;

/// Trials are numbered from 1 to this and then from 1 again: by then reads have doubled 60 times.
const TRIALS: usize = 60;

#[derive(Debug, Clone, Copy, Default)]
struct Trial {
    torn: u64,
    expected: f64,
    met: u64,
}

/// Reads expected, and reads that came.
#[derive(Debug, Clone)]
pub struct Trust {
    reads: u64,
    /// Reads at which the current trial ends.
    end: u64,
    current: usize,
    trials: [Trial; TRIALS + 1],
    believed: f64,
    /// Share of the latest steps that were on record.
    repeated: f64,
    /// Steps that reached each level: so far, when the last trial ended, and the one before.
    reached: [[u64; LEVELS.len()]; 3],
    /// Disk time of reads, and of moves on probation, ns.
    read_ns: f64,
    probation_ns: f64,
    /// Time saved by reads because of moves, ns.
    saved_ns: f64,
}

impl Trust {
    /// Nothing was read yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            reads: 0,
            end: FIRST_READS,
            current: 1,
            trials: [Trial::default(); TRIALS + 1],
            believed: 1.0,
            repeated: 0.0,
            reached: [[0; LEVELS.len()]; 3],
            read_ns: 0.0,
            probation_ns: 0.0,
            saved_ns: 0.0,
        }
    }

    /// All of it as words, for a file.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        let mut words = vec![self.reads, self.end, self.current as u64];
        for trial in &self.trials {
            words.extend([trial.torn, trial.expected.to_bits(), trial.met]);
        }
        words.extend(self.reached.iter().flatten());
        let floats = [self.believed, self.repeated, self.read_ns, self.probation_ns, self.saved_ns];
        words.extend(floats.map(f64::to_bits));
        words
    }

    /// What [`Self::words`] gave; `None` if these are others.
    pub fn from_words(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        let mut trust = Self::new();
        trust.reads = words.next()?;
        trust.end = words.next()?;
        trust.current = usize::try_from(words.next()?).ok()?;
        for trial in &mut trust.trials {
            trial.torn = words.next()?;
            trial.expected = finite(words.next()?)?;
            trial.met = words.next()?;
        }
        for count in trust.reached.iter_mut().flatten() {
            *count = words.next()?;
        }
        let floats = [
            &mut trust.believed,
            &mut trust.repeated,
            &mut trust.read_ns,
            &mut trust.probation_ns,
            &mut trust.saved_ns,
        ];
        for float in floats {
            *float = finite(words.next()?)?;
        }
        (1..=TRIALS).contains(&trust.current).then_some(trust)
    }

    /// Time that reads were saved because of moves so far, ns.
    #[must_use]
    pub fn saved_ns(&self) -> f64 {
        self.saved_ns
    }

    /// The number of the current trial.
    #[must_use]
    pub fn current(&self) -> u8 {
        self.current as u8
    }

    /// The share of all that is likely to be moved: none, unless nearly all steps are on record.
    #[must_use]
    pub fn moved_share(&self) -> f64 {
        if self.repeated >= REPEATED_MIN { self.share() } else { 0.0 }
    }

    /// How far expectations come true; at most 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.believed * self.repeated
    }

    /// The same of steps that were made `times` times so far.
    #[must_use]
    pub fn share_after(&self, times: f64) -> f64 {
        let level = LEVELS.partition_point(|level| f64::from(*level) <= times).max(1) - 1;
        let [now, _, earlier] = &self.reached;
        match now.get(level + 1) {
            Some(further) if earlier[level] >= KNOWN_MIN => {
                let again = *further as f64 / earlier[level] as f64;
                self.believed * again.min(self.repeated)
            }
            _ => self.share(),
        }
    }

    /// A step was made for the `times`-th time.
    #[inline]
    pub fn made(&mut self, times: u16) {
        if let Ok(level) = LEVELS.binary_search(&times) {
            self.reached[0][level] += 1;
        }
    }

    /// The arm made a step that was on record, or was not.
    #[inline]
    pub fn step(&mut self, on_record: bool) {
        let now = if on_record { 1.0 } else { 0.0 };
        self.repeated += (now - self.repeated) / STEPS;
    }

    /// Blocks were moved that are expected to be read right behind another `expected` times in all;
    /// `torn` of them were taken out of rows.
    pub fn moved(&mut self, torn: u64, expected: f64) {
        let trial = &mut self.trials[self.current];
        trial.torn += torn;
        trial.expected += expected;
    }

    /// A block was read at `saved_ns` less than if nothing had been moved.
    #[inline]
    pub fn credit(&mut self, saved_ns: f64) {
        self.saved_ns += saved_ns;
    }

    /// Whether the balance stays within its limit after a move that takes `cost_ns`, if all moving
    /// so far has cost `moving_ns`; with a block moved wrongly `at_stake_ns` may be lost.
    #[must_use]
    pub fn may_invest(&self, cost_ns: f64, moving_ns: f64, at_stake_ns: f64) -> bool {
        let repays = self.repeated >= REPEATED_MIN && self.allows(-self.saved_ns);
        repays || self.allows(self.balance_ns(moving_ns, at_stake_ns) + cost_ns)
    }

    /// The cost of moving beyond the counted share of its savings, ns. Until anything was judged
    /// each block that was taken out of a row may turn out to be missed there, and cost
    /// `at_stake_ns`.
    fn balance_ns(&self, moving_ns: f64, at_stake_ns: f64) -> f64 {
        let is_judged = self.judged().any(|trial| trial.expected > 0.0);
        let torn: u64 = self.trials.iter().map(|trial| trial.torn).sum();
        let at_stake = if is_judged { 0.0 } else { MISSED_SHARE * torn as f64 * at_stake_ns };
        moving_ns + at_stake - SAVED_SHARE * self.saved_ns
    }

    /// Whether a loss of `loss_ns` is within the limit.
    fn allows(&self, loss_ns: f64) -> bool {
        loss_ns <= PROBATION_SHARE * self.read_ns
    }

    /// Whether a move that takes `cost_ns` may be made on probation, if all moving so far has cost
    /// `moving_ns`; if so, it is. With a block moved wrongly `at_stake_ns` may be lost.
    pub fn calibrate(&mut self, cost_ns: f64, moving_ns: f64, at_stake_ns: f64) -> bool {
        let spent_ns = self.probation_ns.max(self.balance_ns(moving_ns, at_stake_ns));
        let allowed = self.allows(spent_ns + cost_ns);
        if allowed {
            self.probation_ns += cost_ns;
        }
        allowed
    }

    /// A block was read, which took `read_ns`. It was last moved in `trial`; zero if it was not
    /// moved, or not read right behind another.
    #[inline]
    pub fn read(&mut self, trial: u8, read_ns: u64) {
        self.trials[usize::from(trial)].met += 1;
        self.reads += 1;
        self.read_ns += read_ns as f64;
        if self.reads.is_multiple_of(FIRST_READS) {
            self.judge();
        }
    }

    /// Those that have been judged: the one before the one that goes on now has not had as many reads
    /// again.
    fn judged(&self) -> impl Iterator<Item = &Trial> + Clone {
        self.trials[1..self.current.saturating_sub(1).max(1)].iter()
    }

    #[cold]
    fn judge(&mut self) {
        if self.reads == self.end {
            self.reached[2] = self.reached[1];
            self.reached[1] = self.reached[0];
            self.current = (self.current + 1).min(TRIALS);
            self.end = self.end.saturating_mul(2);
        }
        let judged = self.judged();
        let expected: f64 = judged.clone().map(|trial| trial.expected).sum();
        if expected > 0.0 {
            let met: f64 = judged.map(|trial| trial.expected.min(trial.met as f64)).sum();
            self.believed = met / expected;
        }
    }
}

/// A number of a file.
pub(crate) fn finite(word: u64) -> Option<f64> {
    Some(f64::from_bits(word)).filter(|number| number.is_finite())
}

impl Default for Trust {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_survives_as_words() {
        let mut trust = repeating();
        trust.moved(3, 40.0);
        (0..3000_u64).for_each(|read| trust.read((read % 2) as u8, read));
        trust.credit(12.5);
        let words = trust.words();
        let again = Trust::from_words(&mut words.iter().copied()).expect("its own words");
        assert_eq!(format!("{again:?}"), format!("{trust:?}"));
        assert!(Trust::from_words(&mut words[1..].iter().copied()).is_none());
    }

    /// One under a load that repeats every step.
    fn repeating() -> Trust {
        let mut trust = Trust::new();
        (0..40_000).for_each(|_| trust.step(true));
        trust
    }

    #[test]
    fn a_load_is_believed_as_far_as_it_repeats_itself() {
        let mut trust = Trust::new();
        assert!(trust.share().abs() < 1e-12);
        (0..40_000).for_each(|step| trust.step(step % 4 == 0));
        assert!((trust.share() - 0.25).abs() < 1e-3);
    }

    #[test]
    fn steps_are_believed_by_how_many_of_their_like_were_made_again() {
        let mut trust = repeating();
        (0..400).for_each(|_| trust.made(2));
        (0..100).for_each(|_| trust.made(3));
        // Not long enough ago to be known.
        assert!((trust.share_after(2.0) - trust.share()).abs() < 1e-12);
        (0..2 * FIRST_READS).for_each(|_| trust.read(0, 1));
        assert!((trust.share_after(2.0) - 0.25).abs() < 1e-12);
        assert!((trust.share_after(2.9) - 0.25).abs() < 1e-12);
        // Of those made three times none was made a fourth.
        assert!(trust.share_after(3.0).abs() < 1e-12);
    }

    #[test]
    fn a_trial_is_judged_when_as_many_reads_have_gone_by_again() {
        let mut trust = repeating();
        let trial = trust.current();
        trust.moved(1000, 1000.0);
        (0..FIRST_READS).for_each(|_| trust.read(0, 1));
        assert_ne!(trust.current(), trial);
        assert!((trust.share() - 1.0).abs() < 1e-12);
        (0..FIRST_READS).for_each(|read| trust.read(if read < 250 { trial } else { 0 }, 1));
        assert!((trust.share() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn who_believes_nothing_tries_for_a_small_share_of_the_time() {
        let mut trust = repeating();
        trust.moved(10, 10.0);
        (0..4 * FIRST_READS).for_each(|_| trust.read(0, 1_000_000));
        assert!(trust.share().abs() < 1e-12);
        // 2048 ms were read: 4.096 ms may be tried.
        let tries = (0..100).filter(|_| trust.calibrate(1e6, 0.0, 0.0)).count();
        assert_eq!(tries, 4);
    }

    #[test]
    fn nothing_is_moved_while_the_balance_is_bad() {
        let mut trust = Trust::new();
        (0..1000).for_each(|_| trust.read(0, 1_000_000));
        // Two of 1000 ms may be lost.
        assert!(trust.may_invest(1e6, 0.9e6, 0.0));
        assert!(!trust.may_invest(1e6, 1.1e6, 0.0));
        assert!(!trust.calibrate(1e6, 1.1e6, 0.0));
        // Half of what was saved counts.
        trust.credit(20e6);
        assert!(trust.may_invest(1e6, 10.9e6, 0.0));
        assert!(!trust.may_invest(1e6, 11.1e6, 0.0));
        assert!(trust.calibrate(1e6, 10.9e6, 0.0));
        // Less was spent than without.
        assert!(trust.may_invest(1e6, -1e6, 0.0));
        (0..40_000).for_each(|_| trust.step(true));
        assert!(trust.may_invest(1e6, 1e9, 0.0));
        trust.credit(-23e6);
        assert!(!trust.may_invest(1e6, 1e9, 0.0));
    }

    #[test]
    fn little_is_at_stake_until_something_was_judged() {
        let mut trust = Trust::new();
        (0..FIRST_READS).for_each(|_| trust.read(0, 10_000_000));
        // Ten of 5120 ms may be lost.
        assert!(trust.may_invest(1e6, 0.0, 5e6));
        trust.moved(10, 2.0);
        assert!(!trust.may_invest(1e6, 0.0, 5e6));
        assert!(!trust.calibrate(1e6, 0.0, 5e6));
        (0..4 * FIRST_READS).for_each(|_| trust.read(0, 0));
        assert!(trust.may_invest(1e6, 0.0, 5e6));
    }

    #[test]
    fn more_than_was_expected_is_no_more_than_certain() {
        let mut trust = repeating();
        trust.moved(1, 1.0);
        (0..2 * FIRST_READS).for_each(|_| trust.read(1, 1));
        assert!((trust.share() - 1.0).abs() < 1e-12);
    }
}
