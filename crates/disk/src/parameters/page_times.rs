//! What it takes to sense a page, where cells hold several bits.
//!
//! A cell of three bits is part of three pages, and to read its bits takes 1, 2 and 4 comparisons: so a
//! drive reads in three times, a third of its pages in each (the lower, middle and upper page; measured
//! on a Micron 7300 PRO at 88, 116 and 165 us, ublk-disksim, docs/VALIDATION.md).

use agewell_config::{Form, list, milliseconds};
use serde_json::{Value, json};

/// Types of pages at most: of cells of four bits.
const TYPES_MAX: usize = 4;

/// Times of the pages of a block, ns: its pages take them in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageTimes {
    ns: [u64; TYPES_MAX],
    /// How many there are; 0 stands for one of 0 ns.
    types: u8,
}

impl PageTimes {
    /// Every page takes `ns`.
    #[must_use]
    pub fn alike(ns: u64) -> Self {
        Self { ns: [ns, 0, 0, 0], types: 1 }
    }

    /// The pages of a block take `times`, ns, in turn; nothing if there are none or more than four.
    #[must_use]
    pub fn in_turn(times: &[u64]) -> Option<Self> {
        let mut ns = [0; TYPES_MAX];
        ns.get_mut(..times.len())?.copy_from_slice(times);
        (!times.is_empty()).then_some(Self { ns, types: times.len() as u8 })
    }

    /// The times, ns.
    #[must_use]
    pub fn types(&self) -> &[u64] {
        &self.ns[..usize::from(self.types).max(1)]
    }

    /// That of the page with this number in its block, ns.
    #[inline]
    #[must_use]
    pub fn of(&self, page: u64) -> u64 {
        if self.types < 2 { self.ns[0] } else { self.ns[(page % u64::from(self.types)) as usize] }
    }

    /// The mean over all pages, ns.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        let types = self.types();
        types.iter().sum::<u64>() / types.len() as u64
    }
}

/// One time in milliseconds, or a list of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageTimesForm;

/// One time in milliseconds for every page, or a list of up to four that pages take in turn.
pub(super) fn page_times() -> PageTimesForm {
    PageTimesForm
}

impl Form for PageTimesForm {
    type Value = PageTimes;

    fn read(&self, given: &Value) -> Result<PageTimes, String> {
        if !given.is_array() {
            return milliseconds().read(given).map(PageTimes::alike);
        }
        let times = list(milliseconds()).read(given)?;
        PageTimes::in_turn(&times)
            .ok_or_else(|| format!("is a list of {} times; give one to four", times.len()))
    }

    fn write(&self, value: &PageTimes) -> Value {
        match value.types() {
            [ns] => milliseconds().write(ns),
            types => list(milliseconds()).write(&types.to_vec()),
        }
    }

    fn describe(&self) -> String {
        "ms, or a list of up to four that the pages of a block take in turn".to_owned()
    }

    fn schema(&self) -> Value {
        let times = json!({"type": "array", "items": milliseconds().schema(),
                           "minItems": 1, "maxItems": TYPES_MAX});
        json!({"anyOf": [milliseconds().schema(), times]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_take_the_times_in_turn() {
        let times = page_times().read(&json!([0.05, 0.08, 0.13])).unwrap();
        let of: Vec<u64> = (0..4).map(|page| times.of(page)).collect();
        assert_eq!(of, [50_000, 80_000, 130_000, 50_000]);
        assert_eq!(times.mean_ns(), 86_666);
        assert_eq!(page_times().write(&times), json!([0.05, 0.08, 0.13]));
    }

    #[test]
    fn one_time_is_that_of_every_page() {
        let times = page_times().read(&json!(0.06)).unwrap();
        assert_eq!((times.of(0), times.of(7), times.mean_ns()), (60_000, 60_000, 60_000));
        assert_eq!(page_times().write(&times), json!(0.06));
        assert_eq!(PageTimes::default().mean_ns(), 0);
    }

    #[test]
    fn no_time_and_five_are_refused() {
        for given in [json!([]), json!([1, 2, 3, 4, 5])] {
            let why = page_times().read(&given).unwrap_err();
            assert!(why.contains("give one to four"), "{why}");
        }
        assert!(page_times().read(&json!([0.1, -1])).is_err());
    }
}
