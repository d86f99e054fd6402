//! Which numbers of blocks are in use: a bit each, and a bit for each 64 that are all in use.

/// Numbers of blocks.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    used: Vec<u64>,
    /// Of each 64: whether all are in use.
    full: Vec<u64>,
    end: u32,
    used_count: u64,
}

impl Numbers {
    /// Of `numbers`, none in use.
    pub(crate) fn new(numbers: u32) -> Self {
        let words = numbers.div_ceil(64) as usize;
        let mut made = Self {
            used: vec![0; words],
            full: vec![0; words.div_ceil(64)],
            end: numbers,
            used_count: 0,
        };
        // What there is not is never free.
        for beyond in numbers..words as u32 * 64 {
            made.used[beyond as usize / 64] |= 1 << (beyond % 64);
        }
        for word in 0..words {
            made.note_full(word);
        }
        for beyond in words..made.full.len() * 64 {
            made.full[beyond / 64] |= 1 << (beyond % 64);
        }
        made
    }

    /// Of `numbers`, those in use whose bits are set in `used`.
    pub(crate) fn of(numbers: u32, used: Vec<u64>) -> Self {
        let mut made = Self::new(numbers);
        for (word, used) in used.into_iter().enumerate().take(made.used.len()) {
            made.used_count += u64::from((used & !made.used[word]).count_ones());
            made.used[word] |= used;
            made.note_full(word);
        }
        made
    }

    /// The same numbers with those from the end on up to `numbers`, none of which is in use.
    pub(crate) fn grown(mut self, numbers: u32) -> Self {
        let end = self.end;
        // What there was not was never free.
        for beyond in end..(end.next_multiple_of(64)).min(self.used.len() as u32 * 64) {
            self.used[beyond as usize / 64] &= !(1 << (beyond % 64));
        }
        Self::of(numbers.max(end), self.used)
    }

    fn note_full(&mut self, word: usize) {
        let bit = 1 << (word % 64);
        if self.used[word] == u64::MAX {
            self.full[word / 64] |= bit;
        } else {
            self.full[word / 64] &= !bit;
        }
    }

    /// Numbers in use.
    pub(crate) fn used(&self) -> u64 {
        self.used_count
    }

    /// Whether `number` is in use.
    pub(crate) fn is_used(&self, number: u32) -> bool {
        self.used[number as usize / 64] >> (number % 64) & 1 == 1
    }

    /// `number` is in use.
    ///
    /// # Panics
    /// If it is already.
    pub(crate) fn take(&mut self, number: u32) {
        assert!(number < self.end && !self.is_used(number), "number {number} is in use");
        self.used[number as usize / 64] |= 1 << (number % 64);
        self.note_full(number as usize / 64);
        self.used_count += 1;
    }

    /// `number` is free.
    ///
    /// # Panics
    /// If it is already.
    pub(crate) fn give(&mut self, number: u32) {
        assert!(number < self.end && self.is_used(number), "number {number} is not in use");
        self.used[number as usize / 64] &= !(1 << (number % 64));
        self.note_full(number as usize / 64);
        self.used_count -= 1;
    }

    /// The first free number from `from` on, or from the beginning if there is none; none if all are in
    /// use.
    pub(crate) fn next_free(&self, from: u32) -> Option<u32> {
        let from = if from < self.end { from } else { 0 };
        self.free_behind(from).or_else(|| self.free_behind(0))
    }

    fn free_behind(&self, from: u32) -> Option<u32> {
        let word = from as usize / 64;
        let free = !self.used[word] & (u64::MAX << (from % 64));
        if free != 0 {
            return Some(word as u32 * 64 + free.trailing_zeros());
        }
        let from = word + 1;
        let mut group = from / 64;
        let mut mask = u64::MAX << (from % 64);
        while group < self.full.len() {
            let with_free = !self.full[group] & mask;
            if with_free != 0 {
                let word = group * 64 + with_free.trailing_zeros() as usize;
                return Some(word as u32 * 64 + (!self.used[word]).trailing_zeros());
            }
            group += 1;
            mask = u64::MAX;
        }
        None
    }

    /// How many numbers from `first` on are free, at most `most`.
    pub(crate) fn free_run(&self, first: u32, most: u32) -> u32 {
        let end = first.saturating_add(most).min(self.end);
        let mut at = first;
        while at < end {
            let used = self.used[at as usize / 64] >> (at % 64);
            if used != 0 {
                return (at + used.trailing_zeros()).min(end) - first;
            }
            at = (at / 64 + 1) * 64;
        }
        end.saturating_sub(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn they_are_a_set(
            numbers in 1..9000u32,
            steps in prop::collection::vec((any::<u32>(), any::<bool>()), 0..200),
            filled in 0..9000u32,
            more in 0..300u32,
        ) {
            let mut tested = Numbers::new(numbers);
            let mut model: BTreeSet<u32> = (0..filled.min(numbers)).collect();
            for number in &model {
                tested.take(*number);
            }
            prop_assert_eq!(Numbers::of(numbers, tested.used.clone()).used, tested.used.clone());
            for (number, takes) in steps {
                let number = number % numbers;
                if takes && model.insert(number) {
                    tested.take(number);
                } else if !takes && model.remove(&number) {
                    tested.give(number);
                }
                let free = |from: u32| (from..numbers).find(|number| !model.contains(number));
                prop_assert_eq!(tested.next_free(number), free(number).or_else(|| free(0)));
                prop_assert_eq!(tested.used(), model.len() as u64);
                let run = (number..numbers).take(100).take_while(|at| !model.contains(at));
                prop_assert_eq!(tested.free_run(number, 100), run.count() as u32);
            }
            let mut all = Numbers::new(numbers + more);
            for number in &model {
                all.take(*number);
            }
            let grown = tested.grown(numbers + more);
            prop_assert_eq!((grown.used, grown.full), (all.used, all.full));
            prop_assert_eq!((grown.end, grown.used_count), (all.end, all.used_count));
        }
    }
}
