//! Which places of a disk are free: a bitmap with summaries, so that the nearest free place on
//! either side is found in a few steps however full the disk is.
//!
//! Level 0 has a bit a place, set where it is free; a bit of level n + 1 says whether a word of level
//! n has any bit set. A search climbs until a word has a bit on the wanted side and descends to it:
//! two words a level, five levels for a billion places.

/// A set of places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreePlaces {
    levels: Vec<Vec<u64>>,
    places: u32,
    free: u32,
}

impl FreePlaces {
    /// `places` places, all of them free.
    #[must_use]
    pub fn all_free(places: u32) -> Self {
        let mut levels = Vec::new();
        let mut bits = places as usize;
        loop {
            let mut words = vec![u64::MAX; bits.div_ceil(64).max(1)];
            let tail = bits % 64;
            if let Some(last) = words.last_mut()
                && (tail > 0 || bits == 0)
            {
                *last = (1 << tail) - 1;
            }
            bits = words.len();
            levels.push(words);
            if bits == 1 {
                return Self { levels, places, free: places };
            }
        }
    }

    /// `places` places, none of them free.
    #[must_use]
    pub fn none_free(places: u32) -> Self {
        let mut none = Self::all_free(places);
        none.levels.iter_mut().for_each(|level| level.fill(0));
        none.free = 0;
        none
    }

    /// Places in all.
    #[must_use]
    pub fn places(&self) -> u32 {
        self.places
    }

    /// How many are free.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Whether `place` is free; what lies beyond the end is not.
    #[must_use]
    #[inline]
    pub fn is_free(&self, place: u32) -> bool {
        place < self.places && self.levels[0][(place / 64) as usize] >> (place % 64) & 1 == 1
    }

    /// Takes `place`.
    ///
    /// # Panics
    /// If it is not free.
    pub fn take(&mut self, place: u32) {
        assert!(self.is_free(place), "place {place} is taken twice");
        self.free -= 1;
        let mut bit = place as usize;
        for level in &mut self.levels {
            let word = &mut level[bit / 64];
            *word &= !(1 << (bit % 64));
            if *word != 0 {
                return;
            }
            bit /= 64;
        }
    }

    /// Gives `place` back.
    ///
    /// # Panics
    /// If it is free already.
    pub fn give_back(&mut self, place: u32) {
        assert!(!self.is_free(place) && place < self.places, "place {place} is freed twice");
        self.free += 1;
        let mut bit = place as usize;
        for level in &mut self.levels {
            let word = &mut level[bit / 64];
            let was_empty = *word == 0;
            *word |= 1 << (bit % 64);
            if !was_empty {
                return;
            }
            bit /= 64;
        }
    }

    /// The first free place at or behind `from`.
    #[must_use]
    pub fn at_or_after(&self, from: u32) -> Option<u32> {
        let mut bit = from as usize;
        for (height, level) in self.levels.iter().enumerate() {
            let word = *level.get(bit / 64)? & (u64::MAX << (bit % 64));
            if word != 0 {
                let found = bit / 64 * 64 + word.trailing_zeros() as usize;
                return Some(self.descend(height, found, u64::trailing_zeros));
            }
            // The next bit of the level above stands for the next word.
            bit = bit / 64 + 1;
        }
        None
    }

    /// The last free place at or before `from`.
    #[must_use]
    pub fn at_or_before(&self, from: u32) -> Option<u32> {
        let mut bit = from.min(self.places.checked_sub(1)?) as usize;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level[bit / 64] & (u64::MAX >> (63 - bit % 64));
            if word != 0 {
                let found = bit / 64 * 64 + 63 - word.leading_zeros() as usize;
                let last = |word: u64| word.ilog2();
                return Some(self.descend(height, found, last));
            }
            bit = (bit / 64).checked_sub(1)?;
        }
        None
    }

    /// The place under bit `found` of level `height`, by the bit that `choose` picks on the way.
    fn descend(&self, height: usize, mut found: usize, choose: impl Fn(u64) -> u32) -> u32 {
        for level in self.levels[..height].iter().rev() {
            found = found * 64 + choose(level[found]) as usize;
        }
        found as u32
    }

    /// Checks that summaries and count are true.
    ///
    /// # Panics
    /// If one is not, which is a bug.
    pub fn verify(&self) {
        let counted: u32 = self.levels[0].iter().map(|word| word.count_ones()).sum();
        assert_eq!(counted, self.free, "count of free places");
        for pair in self.levels.windows(2) {
            for (index, word) in pair[0].iter().enumerate() {
                let summary = pair[1][index / 64] >> (index % 64) & 1 == 1;
                assert_eq!(summary, *word != 0, "summary of word {index}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_set(
            places in 1_u32..6000,
            steps in proptest::collection::vec((any::<u32>(), any::<bool>()), 1..300),
            runs in proptest::collection::vec((any::<u32>(), 0_u32..3000), 0..3),
        ) {
            let mut free = FreePlaces::all_free(places);
            let mut slow: BTreeSet<u32> = (0..places).collect();
            // Long stretches without a free place climb the summaries.
            for (first, length) in runs {
                for place in (first % places..places).take(length as usize) {
                    if slow.remove(&place) {
                        free.take(place);
                    }
                }
            }
            for (at, is_search) in steps {
                let at = at % (places + 3);
                if is_search {
                    prop_assert_eq!(free.at_or_after(at), slow.range(at..).next().copied());
                    prop_assert_eq!(free.at_or_before(at), slow.range(..=at).next_back().copied());
                } else if at < places && slow.remove(&at) {
                    free.take(at);
                } else if at < places {
                    slow.insert(at);
                    free.give_back(at);
                }
                prop_assert_eq!(free.free(), slow.len() as u32);
                prop_assert_eq!(free.is_free(at), slow.contains(&at));
            }
            free.verify();
        }
    }
}
