//! Free space as runs, ascending, none touching another.

use std::collections::{BTreeMap, BTreeSet};

/// Runs of free bytes on a device, by place and by length.
///
/// Invariant: both indices hold the same runs; runs neither overlap nor touch.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    by_start: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    bytes: u64,
}

impl Runs {
    /// Bytes in all runs.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many runs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.by_start.len()
    }

    /// The longest run, start and length; of equal ones the last.
    #[must_use]
    pub fn longest(&self) -> Option<(u64, u64)> {
        self.by_length.last().map(|(length, start)| (*start, *length))
    }

    /// The shortest run of at least `length` bytes that `choose` accepts.
    pub fn best_fit(&self, length: u64, choose: impl Fn(u64) -> bool) -> Option<(u64, u64)> {
        let fitting = self.by_length.range((length, 0)..);
        fitting.map(|(length, start)| (*start, *length)).find(|(start, _)| choose(*start))
    }

    /// The longest run that `choose` accepts.
    pub fn longest_of(&self, choose: impl Fn(u64) -> bool) -> Option<(u64, u64)> {
        let longest = self.by_length.iter().rev();
        longest.map(|(length, start)| (*start, *length)).find(|(start, _)| choose(*start))
    }

    /// Mean length of the longest runs that come to `bytes` together, or of all if they do not.
    #[must_use]
    pub fn mean_of_longest(&self, bytes: u64) -> u64 {
        let (mut sum, mut count) = (0, 0);
        for (length, _) in self.by_length.iter().rev() {
            if sum >= bytes {
                break;
            }
            (sum, count) = (sum + length, count + 1);
        }
        sum.checked_div(count).unwrap_or(0)
    }

    /// Whether any of `length` bytes at `start` is in a run.
    #[must_use]
    pub fn overlaps(&self, start: u64, length: u64) -> bool {
        let before = self.by_start.range(..start + length).next_back();
        before.is_some_and(|(at, bytes)| at + bytes > start)
    }

    /// Every run, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_start.iter().map(|(start, length)| (*start, *length))
    }

    /// Adds the run of `length` bytes at `start`, none of which is there yet.
    ///
    /// # Panics
    /// If some of it is there.
    pub fn add(&mut self, start: u64, length: u64) {
        if length == 0 {
            return;
        }
        let (mut from, mut to) = (start, start + length);
        if let Some((before, bytes)) = self.by_start.range(..start).next_back() {
            let (before, end) = (*before, *before + *bytes);
            assert!(end <= start, "a run at {start} overlaps the one at {before}");
            if end == start {
                self.forget(before);
                from = before;
            }
        }
        if let Some((after, bytes)) = self.by_start.range(start..).next() {
            let (after, end) = (*after, *after + *bytes);
            assert!(after >= to, "a run at {start} overlaps the one at {after}");
            if after == to {
                self.forget(after);
                to = end;
            }
        }
        self.keep(from, to - from);
    }

    /// Adds what is not there yet of the `length` bytes at `start`.
    pub fn add_absent(&mut self, start: u64, length: u64) {
        let end = start + length;
        let mut at = start;
        let within =
            self.by_start.range(..end).rev().take_while(|(run, bytes)| *run + *bytes > start);
        let mut there: Vec<(u64, u64)> = within.map(|(run, bytes)| (*run, run + bytes)).collect();
        there.reverse();
        for (from, to) in there {
            if from > at {
                self.add(at, from - at);
            }
            at = at.max(to);
        }
        if at < end {
            self.add(at, end - at);
        }
    }

    /// Takes out every run that begins from `from` on and before `to`.
    pub fn take_within(&mut self, from: u64, to: u64) {
        let starts: Vec<u64> = self.by_start.range(from..to).map(|(start, _)| *start).collect();
        for start in starts {
            self.forget(start);
        }
    }

    /// Takes `length` bytes at `start` out; they lie in one run.
    ///
    /// # Panics
    /// If they do not.
    pub fn take(&mut self, start: u64, length: u64) {
        if length == 0 {
            return;
        }
        let (at, bytes) = self.by_start.range(..=start).next_back().expect("it is in a run");
        let (at, end) = (*at, *at + *bytes);
        assert!(start + length <= end, "{length} bytes at {start} are not in one run");
        self.forget(at);
        self.keep(at, start - at);
        self.keep(start + length, end - start - length);
    }

    fn keep(&mut self, start: u64, length: u64) {
        if length > 0 {
            self.by_start.insert(start, length);
            self.by_length.insert((length, start));
            self.bytes += length;
        }
    }

    fn forget(&mut self, start: u64) {
        let length = self.by_start.remove(&start).expect("it is there");
        self.by_length.remove(&(length, start));
        self.bytes -= length;
    }
}

/// Of what a file system says, which may say a place twice: it goes on changing while it is asked.
impl FromIterator<(u64, u64)> for Runs {
    fn from_iter<T: IntoIterator<Item = (u64, u64)>>(runs: T) -> Self {
        let mut all = Self::default();
        for (start, length) in runs {
            all.add_absent(start, length);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Runs;

    /// What is free, byte by byte.
    fn slow_runs(free: &[bool]) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (at, _) in free.iter().enumerate().filter(|(_, free)| **free) {
            let at = at as u64;
            match runs.last_mut() {
                Some((start, length)) if *start + *length == at => *length += 1,
                _ => runs.push((at, 1)),
            }
        }
        runs
    }

    /// A place that is said twice is free once.
    #[test]
    fn what_overlaps_is_counted_once() {
        let runs: Runs = [(100, 50), (100, 50), (140, 20), (300, 10)].into_iter().collect();
        assert_eq!(runs.iter().collect::<Vec<_>>(), [(100, 60), (300, 10)]);
        assert_eq!(runs.bytes(), 70);
    }

    proptest! {
        /// Adding and taking gives the runs that a map of single bytes gives.
        #[test]
        fn runs_are_as_a_map_of_bytes_says(
            steps in prop::collection::vec((0_usize..60, 1_usize..12), 0..80),
        ) {
            let mut free = [false; 80];
            let mut runs = Runs::default();
            for (start, length) in steps {
                let part = &mut free[start..start + length];
                if part.iter().all(|free| !*free) {
                    part.fill(true);
                    runs.add(start as u64, length as u64);
                } else if start % 3 == 0 {
                    part.fill(true);
                    runs.add_absent(start as u64, length as u64);
                } else if part.iter().all(|free| *free) {
                    part.fill(false);
                    runs.take(start as u64, length as u64);
                }
                let slow = slow_runs(&free);
                prop_assert_eq!(runs.iter().collect::<Vec<_>>(), slow.clone());
                prop_assert_eq!(runs.bytes(), slow.iter().map(|run| run.1).sum::<u64>());
                prop_assert_eq!(runs.longest().map(|run| run.1), slow.iter().map(|run| run.1).max());
                let mut lengths: Vec<u64> = slow.iter().map(|run| run.1).collect();
                lengths.sort_unstable_by(|one, other| other.cmp(one));
                let needed = (0..lengths.len()).find(|n| lengths[..*n].iter().sum::<u64>() >= 9);
                let longest = &lengths[..needed.unwrap_or(lengths.len())];
                let mean = longest.iter().sum::<u64>().checked_div(longest.len() as u64);
                prop_assert_eq!(runs.mean_of_longest(9), mean.unwrap_or(0));
            }
        }
    }
}
