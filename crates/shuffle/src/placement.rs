//! Placements, and the order in which an organ pipe fills its slots.
//!
//! The most accessed quantum takes the centre, the next ones the slots on either side in turn
//! (Ruemmler & Wilkes 1991, §2, after Wong 1983). The report does not say which side comes first:
//! ours is centre, centre + 1, centre - 1, centre + 2 and so on; where one side ends the other
//! continues alone.

use crate::RemapTable;

/// Marks a quantum that has no slot yet.
pub(crate) const UNPLACED: u32 = u32::MAX;

/// Where every quantum is to lie: quantum `q` in slot `slots[q]`, no slot twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub(crate) slots: Vec<u32>,
}

impl Placement {
    /// The slot of every quantum.
    #[must_use]
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Checks that every quantum has a slot below `slot_count` of its own.
    ///
    /// # Panics
    /// If it does not: a placement that loses or doubles a quantum is a bug of the policy.
    pub fn verify(&self, slot_count: u32) {
        let mut taken = vec![false; slot_count as usize];
        for (quantum, slot) in self.slots.iter().enumerate() {
            assert!(*slot < slot_count, "quantum {quantum} placed in slot {slot} of {slot_count}");
            let taken = &mut taken[*slot as usize];
            assert!(!*taken, "quantum {quantum} placed in slot {slot}, which is taken");
            *taken = true;
        }
    }
}

/// The slots of an organ pipe, best first: every slot from 0 up to a limit, once.
#[derive(Debug, Clone)]
pub struct OrganPipeSlots {
    below: u32,
    above: u32,
    limit: u32,
    upper_next: bool,
}

impl OrganPipeSlots {
    /// Starts at `center` among slots `0..limit`.
    ///
    /// # Panics
    /// If `center` is not below `limit`.
    #[must_use]
    pub fn new(center: u32, limit: u32) -> Self {
        assert!(center < limit, "centre {center} of {limit} slots");
        Self { below: center, above: center, limit, upper_next: true }
    }
}

impl Iterator for OrganPipeSlots {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        // `below` is one past the next slot on the lower side, `above` the next on the upper side.
        let upper = if self.above == self.limit {
            false
        } else if self.below == 0 {
            true
        } else {
            self.upper_next
        };
        if upper {
            self.above += 1;
            // The centre itself counts as the lower side's turn, so that centre + 1 follows it.
            self.upper_next = self.above - 1 == self.below;
            Some(self.above - 1)
        } else if self.below > 0 {
            self.below -= 1;
            self.upper_next = true;
            Some(self.below)
        } else {
            None
        }
    }
}

/// A placement under construction.
pub(crate) struct Arrangement<'a> {
    table: &'a RemapTable,
    slots: Vec<u32>,
    taken: Vec<bool>,
}

impl<'a> Arrangement<'a> {
    pub(crate) fn new(table: &'a RemapTable) -> Self {
        Self {
            table,
            slots: vec![UNPLACED; table.grid().quanta() as usize],
            taken: vec![false; table.grid().slots() as usize],
        }
    }

    pub(crate) fn is_placed(&self, quantum: u32) -> bool {
        self.slots[quantum as usize] != UNPLACED
    }

    pub(crate) fn is_taken(&self, slot: u32) -> bool {
        self.taken[slot as usize]
    }

    pub(crate) fn place(&mut self, quantum: u32, slot: u32) {
        self.reserve(slot);
        self.assign(quantum, slot);
    }

    /// Takes `slot` for a quantum that is assigned to it later.
    pub(crate) fn reserve(&mut self, slot: u32) {
        debug_assert!(!self.is_taken(slot));
        self.taken[slot as usize] = true;
    }

    /// Gives a reserved `slot` its quantum.
    pub(crate) fn assign(&mut self, quantum: u32, slot: u32) {
        debug_assert!(!self.is_placed(quantum));
        debug_assert!(self.is_taken(slot));
        self.slots[quantum as usize] = slot;
    }

    /// Places equally ranked `quanta` into equally ranked `slots`: those that already lie in one
    /// stay, and the others fill the rest in the order in which they lie now. Both slices are
    /// reordered.
    pub(crate) fn place_equals(&mut self, quanta: &mut [u32], slots: &mut [u32]) {
        debug_assert_eq!(quanta.len(), slots.len());
        slots.sort_unstable();
        quanta.sort_unstable_by_key(|quantum| self.table.slot_of(*quantum));
        for quantum in quanta.iter() {
            let slot = self.table.slot_of(*quantum);
            if slots.binary_search(&slot).is_ok() {
                self.place(*quantum, slot);
            }
        }
        let mut free = slots.iter().copied();
        for quantum in quanta.iter().copied() {
            if self.is_placed(quantum) {
                continue;
            }
            let slot = free
                .find(|slot| !self.is_taken(*slot))
                .expect("as many slots as quanta, and each kept slot has its quantum");
            self.place(quantum, slot);
        }
    }

    /// Leaves every unplaced quantum where it is, if its slot was not given away, and moves the
    /// others, in the order in which they lie, into the slots that placed quanta left.
    pub(crate) fn settle_the_rest(mut self) -> Placement {
        let mut displaced = Vec::new();
        let mut vacated = Vec::new();
        for slot in 0..self.table.grid().slots() {
            let Some(quantum) = self.table.quantum_in(slot) else { continue };
            match (self.is_placed(quantum), self.is_taken(slot)) {
                (false, false) => self.place(quantum, slot),
                (false, true) => displaced.push(quantum),
                (true, false) => vacated.push(slot),
                (true, true) => {}
            }
        }
        assert!(displaced.len() <= vacated.len(), "a displaced quantum has nowhere to go");
        for (quantum, slot) in displaced.into_iter().zip(vacated) {
            self.place(quantum, slot);
        }
        Placement { slots: self.slots }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pipe_alternates_from_the_centre_outward() {
        let slots: Vec<u32> = OrganPipeSlots::new(3, 7).collect();
        assert_eq!(slots, [3, 4, 2, 5, 1, 6, 0]);
    }

    #[test]
    fn where_one_side_ends_the_other_continues() {
        assert_eq!(OrganPipeSlots::new(1, 6).collect::<Vec<_>>(), [1, 2, 0, 3, 4, 5]);
        assert_eq!(OrganPipeSlots::new(5, 6).collect::<Vec<_>>(), [5, 4, 3, 2, 1, 0]);
        assert_eq!(OrganPipeSlots::new(0, 3).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
