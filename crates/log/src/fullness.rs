//! How full segments are, for whoever looks at a log.

use std::ops::Range;

use super::log::Log;
use super::policy::placement::Placement;

impl<P: Placement> Log<P> {
    /// The first slot of `segment`, and the one behind its last.
    ///
    /// # Panics
    /// If there is no such segment.
    #[must_use]
    pub fn slots_of(&self, segment: u32) -> Range<u32> {
        let (first, end) = self.table.bounds(segment);
        first..end
    }

    /// Live blocks that lie in `segment`.
    ///
    /// # Panics
    /// If there is no such segment.
    #[must_use]
    pub fn live_in(&self, segment: u32) -> u32 {
        self.table.live[segment as usize]
    }

    /// The runs of slots without a live block in `segment`.
    pub fn holes_in(&self, segment: u32) -> impl Iterator<Item = Range<u32>> + '_ {
        let Range { start, end } = self.slots_of(segment);
        let mut at = start;
        std::iter::from_fn(move || {
            let first = self.table.next_hole(at, end)?;
            at = self.table.next_live(first, end).unwrap_or(end);
            Some(first..at)
        })
    }
}
