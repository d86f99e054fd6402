//! Block copying into a reserved region in the middle of the disk, as a baseline beside shuffling.
//!
//! After Akyurek & Salem, *Adaptive block rearrangement* (ACM TOCS 13(2), 1995, 89-121; the driver
//! version: USENIX Summer 1993). From the published abstracts: frequently referenced blocks are
//! **copied** from their original places to reserved space near the middle of the disk; how often
//! each is referenced is estimated by watching the requests; only a small number of blocks needs
//! copying; the file system knows nothing of it. Chosen by us, not taken from them: the region is 5
//! % of the slots by default; inside it the copies form an organ pipe; the set is chosen
//! again at the end of every interval from the aged counts; updates go to the copy, and a copy that
//! is evicted is written back only if it was updated.
//!
//! The region is hidden from the file system, so a disk without spare slots cannot have one. For a
//! workload that addresses the whole disk there is an exchange in its place (ours): hot quanta
//! change places with the residents of the middle region, everything else stays at home.

use crate::placement::Arrangement;
use crate::policy::{arrange_ranked, most_accessed};
use crate::{OrganPipeSlots, Placement, ShuffleView};

/// The slots set aside for copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReservedRegion {
    /// First slot of the region.
    pub first_slot: u32,
    /// Slots in the region.
    pub slots: u32,
    /// Hidden from the addressed quanta (copying), or holding quanta of its own (exchange).
    pub hidden: bool,
}

impl ReservedRegion {
    /// A region of `slots` slots around the middle of the space that `quanta` quanta and, if
    /// hidden, the region take.
    ///
    /// # Panics
    /// If it does not fit.
    #[must_use]
    pub fn centered(quanta: u32, slots: u32, hidden: bool) -> Self {
        let span = if hidden { quanta + slots } else { quanta };
        assert!(slots > 0 && slots <= span, "a region of {slots} slots among {span}");
        Self { first_slot: (span - slots) / 2, slots, hidden }
    }

    /// Where `quantum` lies when it is not copied.
    #[must_use]
    pub fn home(&self, quantum: u32) -> u32 {
        if self.hidden && quantum >= self.first_slot { quantum + self.slots } else { quantum }
    }

    /// The quantum whose home `slot` is, if there is one; no quantum's home lies in a hidden
    /// region.
    #[must_use]
    pub fn resident(&self, slot: u32) -> Option<u32> {
        match slot {
            _ if !self.hidden || slot < self.first_slot => Some(slot),
            _ if self.contains(slot) => None,
            _ => Some(slot - self.slots),
        }
    }

    /// The slot for the most accessed quantum.
    #[must_use]
    pub fn center(&self) -> u32 {
        self.first_slot + (self.slots - 1) / 2
    }

    /// The first slot behind the region.
    pub(crate) fn end(&self) -> u32 {
        self.first_slot + self.slots
    }

    fn contains(&self, slot: u32) -> bool {
        (self.first_slot..self.end()).contains(&slot)
    }

    fn center_out(&self) -> impl Iterator<Item = u32> {
        let first_slot = self.first_slot;
        let middle = self.center() - first_slot;
        OrganPipeSlots::new(middle, self.slots).map(move |slot| first_slot + slot)
    }

    /// The most accessed quanta in the region, everything else at home.
    pub(crate) fn choose(&self, view: &ShuffleView<'_>, coverage_ppm: u32) -> Placement {
        let mut hot = most_accessed(view, coverage_ppm);
        hot.truncate(self.slots as usize);
        let mut arrangement = Arrangement::new(view.table);
        arrange_ranked(&mut arrangement, view, &mut hot, self.center_out());
        let mut displaced = self.send_home(&mut arrangement, view);
        // Only an exchange displaces anyone: residents of the region whose slot a hot quantum took.
        // There is room for exactly these where hot quanta came from, be it outside the region or
        // elsewhere in it.
        if !displaced.is_empty() {
            let homes = hot.iter().map(|quantum| self.home(*quantum));
            let mut left: Vec<u32> = homes.filter(|slot| !arrangement.is_taken(*slot)).collect();
            arrangement.place_equals(&mut displaced, &mut left);
        }
        arrangement.settle_the_rest()
    }

    /// Places at home whoever is away and is not placed; returns those whose home is taken.
    fn send_home(&self, arrangement: &mut Arrangement<'_>, view: &ShuffleView<'_>) -> Vec<u32> {
        let quanta = view.table.grid().quanta();
        let residents = arrangement.places().iter().filter_map(|each| self.resident(each.slot));
        let residents = residents.filter(|quantum| *quantum < quanta);
        let mut unsettled: Vec<u32> = residents.chain(view.table.quanta_away()).collect();
        unsettled.sort_unstable();
        unsettled.dedup();
        unsettled.retain(|quantum| {
            let home = self.home(*quantum);
            let displaced = !arrangement.is_placed(*quantum) && arrangement.is_taken(home);
            if !displaced && !arrangement.is_placed(*quantum) {
                arrangement.place(*quantum, home);
            }
            displaced
        });
        unsettled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_home_has_its_resident_and_a_hidden_region_none() {
        for hidden in [true, false] {
            let region = ReservedRegion::centered(10, 4, hidden);
            for quantum in 0..10 {
                assert_eq!(region.resident(region.home(quantum)), Some(quantum));
            }
            let residents = (0..4).filter_map(|slot| region.resident(region.first_slot + slot));
            assert_eq!(residents.count(), if hidden { 0 } else { 4 });
        }
    }
}
