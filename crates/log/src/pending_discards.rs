//! Places whose data is dead and whose discard has not been issued.
//!
//! A layout marks a place when nothing names it any longer and takes the mark away when it puts
//! something there. When the map on disk agrees it issues discards for what is still marked,
//! neighbours together. Nothing is marked until discards are enabled.
//!
//! Cost: a bit a place, and an access to it when a place dies and when it is used again.

use crate::BlockDevice;
use crate::free_places::FreePlaces;

/// Pending discards. See the module.
#[derive(Debug, Clone, Default)]
pub struct PendingDiscards {
    /// The marked ones are those that are free here.
    marked: Option<FreePlaces>,
}

impl PendingDiscards {
    /// Enables discards, of `places` places.
    pub fn begin(&mut self, places: u32) {
        self.marked = Some(FreePlaces::none_free(places));
    }

    /// Whether discards are enabled.
    pub fn is_wanted(&self) -> bool {
        self.marked.is_some()
    }

    /// Nothing names `place` any longer.
    #[inline]
    pub fn died(&mut self, place: u32) {
        if let Some(marked) = &mut self.marked
            && !marked.is_free(place)
        {
            marked.give_back(place);
        }
    }

    /// Something comes to `place`.
    #[inline]
    pub fn used(&mut self, place: u32) {
        if let Some(marked) = &mut self.marked
            && marked.is_free(place)
        {
            marked.take(place);
        }
    }

    /// The same for `places` from `first` on.
    #[inline]
    pub fn used_run(&mut self, first: u32, places: u32) {
        if self.marked.is_some() {
            (first..first + places).for_each(|place| self.used(place));
        }
    }

    /// Discards the marked places on `device`, in one batch, and forgets them.
    pub fn issue(&mut self, device: &mut impl BlockDevice) {
        self.issue_as(device, BlockDevice::discard);
    }

    /// The same with `issue`, which gets the first of neighbouring places and their number.
    pub fn issue_as<D: BlockDevice>(
        &mut self,
        device: &mut D,
        mut issue: impl FnMut(&mut D, u32, u32),
    ) {
        let Some(marked) = &mut self.marked else { return };
        let mut next = marked.at_or_after(0);
        if next.is_none() {
            return;
        }
        device.begin_batch();
        while let Some(first) = next {
            let mut places = 0;
            while marked.is_free(first + places) {
                marked.take(first + places);
                places += 1;
            }
            issue(device, first, places);
            next = marked.at_or_after(first + places);
        }
        device.end_batch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transfer;

    #[derive(Default)]
    struct Issued(Vec<(u32, u32)>);

    impl BlockDevice for Issued {
        fn transfer(&mut self, _transfer: &Transfer, _contents: &[u32]) {
            panic!("nothing is transferred");
        }

        fn discard(&mut self, slot: u32, blocks: u32) {
            self.0.push((slot, blocks));
        }
    }

    #[test]
    fn what_is_still_dead_is_issued_once_neighbours_together() {
        let mut dead = PendingDiscards::default();
        dead.died(3);
        dead.begin(10);
        for place in [9, 4, 5, 7, 6, 5] {
            dead.died(place);
        }
        dead.used(6);
        dead.used(1);
        let mut issued = Issued::default();
        dead.issue(&mut issued);
        dead.issue(&mut issued);
        assert_eq!(issued.0, [(4, 2), (7, 1), (9, 1)]);
    }
}
