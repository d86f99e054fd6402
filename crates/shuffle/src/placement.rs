//! Placements, and the order in which an organ pipe fills its slots.
//!
//! The most accessed quantum takes the centre, the next ones the slots on either side in turn
//! (Ruemmler & Wilkes 1991, §2, after Wong 1983). The report does not say which side comes first:
//! ours is centre, centre + 1, centre - 1, centre + 2 and so on; where one side ends the other
//! continues alone.

use std::ops::Range;

use crate::RemapTable;
use crate::paged::Paged;

/// A quantum that is to lie elsewhere than it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    /// The quantum.
    pub quantum: u32,
    /// Where it is to lie.
    pub slot: u32,
}

/// Where everything is to lie, given as what moves; every other quantum stays where it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement {
    /// Ascending by quantum.
    moves: Vec<Move>,
}

impl Placement {
    /// The placement in which `places` lie as they say and everything else as in `table`.
    pub(crate) fn new(table: &RemapTable, places: impl IntoIterator<Item = Move>) -> Self {
        let moves = |each: &Move| table.slot_of(each.quantum) != each.slot;
        let mut moves: Vec<Move> = places.into_iter().filter(moves).collect();
        moves.sort_unstable();
        Self { moves }
    }

    /// What moves, ascending by quantum.
    #[must_use]
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// Where `quantum` is to lie, which lies now as `table` says.
    #[must_use]
    pub fn slot_of(&self, quantum: u32, table: &RemapTable) -> u32 {
        match self.moves.binary_search_by_key(&quantum, |each| each.quantum) {
            Ok(place) => self.moves[place].slot,
            Err(_) => table.slot_of(quantum),
        }
    }

    /// Checks that everything that lies as `table` says gets a slot of its own.
    ///
    /// # Panics
    /// If it does not: a placement that loses or doubles a quantum is a bug of the policy.
    pub fn verify(&self, table: &RemapTable) {
        let slots = table.grid().slots();
        let mut taken: Vec<u32> = self.moves.iter().map(|each| each.slot).collect();
        taken.sort_unstable();
        for pair in taken.windows(2) {
            assert!(pair[0] != pair[1], "slot {} is given to two quanta", pair[0]);
        }
        for pair in self.moves.windows(2) {
            assert!(pair[0].quantum < pair[1].quantum, "quantum {} moves twice", pair[1].quantum);
        }
        for Move { quantum, slot } in &self.moves {
            assert!(*slot < slots, "quantum {quantum} placed in slot {slot} of {slots}");
            let Some(occupant) = table.quantum_in(*slot) else { continue };
            let leaves = self.moves.binary_search_by_key(&occupant, |each| each.quantum).is_ok();
            assert!(leaves, "quantum {quantum} placed in slot {slot}, which is taken");
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

    /// How many slots of `0..limit` the pipe around `center` fills before `slot`.
    #[must_use]
    pub fn rank(center: u32, limit: u32, slot: u32) -> u32 {
        let (below, above) = (center, limit - 1 - center);
        if slot < center {
            let distance = center - slot;
            distance + distance.min(above)
        } else {
            let distance = slot - center;
            distance + distance.saturating_sub(1).min(below)
        }
    }

    /// The slots of `range` in the order in which the pipe around `center` fills them; the centre
    /// may lie outside.
    pub(crate) fn within(center: u32, range: Range<u32>) -> impl Iterator<Item = u32> {
        let inside = (range.contains(&center))
            .then(|| Self::new(center - range.start, range.end - range.start));
        let inside = inside.into_iter().flatten().map({
            let first = range.start;
            move |place| first + place
        });
        let upper = if center < range.start { range.clone() } else { 0..0 };
        let lower = if range.end <= center { range } else { 0..0 };
        inside.chain(upper).chain(lower.rev())
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
    /// What was placed, in that order.
    places: Vec<Move>,
    placed: Paged<bool>,
    taken: Paged<bool>,
}

impl<'a> Arrangement<'a> {
    pub(crate) fn new(table: &'a RemapTable) -> Self {
        Self {
            table,
            places: Vec::new(),
            placed: Paged::new(table.grid().quanta()),
            taken: Paged::new(table.grid().slots()),
        }
    }

    pub(crate) fn is_placed(&self, quantum: u32) -> bool {
        self.placed.get(quantum)
    }

    pub(crate) fn is_taken(&self, slot: u32) -> bool {
        self.taken.get(slot)
    }

    /// What was placed so far.
    pub(crate) fn places(&self) -> &[Move] {
        &self.places
    }

    pub(crate) fn place(&mut self, quantum: u32, slot: u32) {
        self.reserve(slot);
        self.assign(quantum, slot);
    }

    /// Takes `slot` for a quantum that is assigned to it later.
    pub(crate) fn reserve(&mut self, slot: u32) {
        debug_assert!(!self.is_taken(slot));
        self.taken.set(slot, true);
    }

    /// Gives a reserved `slot` its quantum.
    pub(crate) fn assign(&mut self, quantum: u32, slot: u32) {
        debug_assert!(!self.is_placed(quantum));
        debug_assert!(self.is_taken(slot));
        self.placed.set(quantum, true);
        self.places.push(Move { quantum, slot });
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
        let occupant = |slot| self.table.quantum_in(slot).filter(|q| !self.is_placed(*q));
        let taken = self.places.iter().map(|each| each.slot);
        let mut displaced: Vec<Move> =
            taken.filter_map(|slot| occupant(slot).map(|quantum| Move { quantum, slot })).collect();
        displaced.sort_unstable_by_key(|each| each.slot);
        let left = self.places.iter().map(|each| self.table.slot_of(each.quantum));
        let mut vacated: Vec<u32> = left.filter(|slot| !self.is_taken(*slot)).collect();
        vacated.sort_unstable();
        assert!(displaced.len() <= vacated.len(), "a displaced quantum has nowhere to go");
        for (Move { quantum, .. }, slot) in displaced.into_iter().zip(vacated) {
            self.place(quantum, slot);
        }
        Placement::new(self.table, self.places)
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

    #[test]
    fn ranks_and_ranges_agree_with_the_pipe() {
        for limit in 1..12 {
            for center in 0..limit {
                let pipe: Vec<u32> = OrganPipeSlots::new(center, limit).collect();
                for (rank, slot) in pipe.iter().enumerate() {
                    let told = OrganPipeSlots::rank(center, limit, *slot);
                    assert_eq!(told, rank as u32, "slot {slot} around {center} of {limit}");
                }
                for start in 0..limit {
                    for end in start..=limit {
                        let inside = |slot: &&u32| (start..end).contains(*slot);
                        let wanted: Vec<u32> = pipe.iter().filter(inside).copied().collect();
                        let told: Vec<u32> = OrganPipeSlots::within(center, start..end).collect();
                        assert_eq!(told, wanted, "{start}..{end} around {center} of {limit}");
                    }
                }
            }
        }
    }
}
