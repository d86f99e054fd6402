//! Numbers that are good for array indices.

use std::collections::BTreeMap;

/// Files and block numbers stay below it, so that they are good for array indices.
pub(super) const NUMBERS_MAX: u64 = 1 << 31;

/// Dense numbers in the order of appearance.
#[derive(Default)]
pub(super) struct Numbers {
    numbers: BTreeMap<u32, u32>,
    /// The key asked for last and its number: mostly it is the same again.
    last: Option<(u32, u32)>,
}

impl Numbers {
    #[inline]
    pub(super) fn of(&mut self, key: u32) -> u32 {
        match self.last {
            Some((last, number)) if last == key => number,
            _ => self.find(key),
        }
    }

    fn find(&mut self, key: u32) -> u32 {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        self.last = Some((key, number));
        number
    }
}
