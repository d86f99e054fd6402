//! The remap table: where a logical sector lies now.
//!
//! Invariants: no slot holds two quanta, every quantum has a slot, and the inverse is exact.
//! Sectors outside the grid map to themselves.
//!
//! Cost: memory grows with the quanta that were moved, not with the device.
//!
//! A request that crosses from one quantum into the next stays one request if the two still lie one
//! behind the other; otherwise it becomes as many pieces as there are breaks (Ruemmler & Wilkes
//! 1991, §5.1: split requests are counted and served as the pieces they become).

use agewell_core::{Sector, SectorCount};

use crate::paged::Paged;
use crate::placement::Move;
use crate::{OrganPipeSlots, Placement, QuantumGrid, ReservedRegion};

/// Stands in the inverse for a slot that holds no quantum though it is the home of one.
const VACATED: u32 = u32::MAX;

/// Where every quantum lies, and which quantum every slot holds.
#[derive(Debug, Clone)]
pub struct RemapTable {
    grid: QuantumGrid,
    /// The region around which quanta are at home, if there is one.
    hidden: Option<ReservedRegion>,
    /// The slot of each quantum plus one; zero for one that is at home.
    forward: Paged<u32>,
    /// The quantum in each slot plus one, or `VACATED`; zero if it holds who is at home there, if
    /// anyone.
    inverse: Paged<u32>,
}

impl RemapTable {
    /// Everything in its own place.
    #[must_use]
    pub fn new(grid: QuantumGrid) -> Self {
        let (forward, inverse) = (Paged::new(grid.quanta()), Paged::new(grid.slots()));
        Self { grid, hidden: None, forward, inverse }
    }

    /// Everything at home around a region that is kept free for copies.
    #[must_use]
    pub fn around(grid: QuantumGrid, region: &ReservedRegion) -> Self {
        Self { hidden: Some(*region).filter(|region| region.hidden), ..Self::new(grid) }
    }

    /// The division into quanta and slots.
    #[must_use]
    pub fn grid(&self) -> &QuantumGrid {
        &self.grid
    }

    /// The slot that `quantum` lay in at first.
    #[inline]
    fn home(&self, quantum: u32) -> u32 {
        self.hidden.as_ref().map_or(quantum, |region| region.home(quantum))
    }

    /// The quantum that lay in `slot` at first, if there was one.
    fn resident(&self, slot: u32) -> Option<u32> {
        let resident = self.hidden.as_ref().map_or(Some(slot), |region| region.resident(slot));
        resident.filter(|quantum| *quantum < self.grid.quanta())
    }

    /// The slot that holds `quantum`.
    #[inline]
    #[must_use]
    pub fn slot_of(&self, quantum: u32) -> u32 {
        match self.forward.get(quantum) {
            0 => self.home(quantum),
            slot => slot - 1,
        }
    }

    /// The quantum in `slot`, if there is one.
    #[inline]
    #[must_use]
    pub fn quantum_in(&self, slot: u32) -> Option<u32> {
        match self.inverse.get(slot) {
            0 => self.resident(slot),
            VACATED => None,
            quantum => Some(quantum - 1),
        }
    }

    /// The quanta that do not lie where they lay at first, in no particular order.
    pub(crate) fn quanta_away(&self) -> impl Iterator<Item = u32> + '_ {
        self.forward.nonzero().map(|(quantum, _)| quantum)
    }

    /// The vacant slot that the organ pipe around `center` fills first, of those that `usable`
    /// accepts.
    pub(crate) fn vacant_slot(&self, center: u32, usable: impl Fn(u32) -> bool) -> Option<u32> {
        let slots = self.grid.slots();
        let vacated = self.inverse.nonzero().filter(|(_, quantum)| *quantum == VACATED);
        let vacated = vacated.map(|(slot, _)| slot).filter(|slot| usable(*slot));
        // Never anyone's home: the region, and what lies behind the last quantum.
        let region = self.hidden.map_or(0..0, |region| region.first_slot..region.end());
        let behind = self.home(self.grid.quanta() - 1) + 1..slots;
        let spare = [region, behind].into_iter().filter_map(|range| {
            let still = |slot: &u32| self.inverse.get(*slot) == 0 && usable(*slot);
            OrganPipeSlots::within(center, range).find(still)
        });
        let rank = |slot: &u32| OrganPipeSlots::rank(center, slots, *slot);
        vacated.chain(spare).min_by_key(rank)
    }

    /// The pieces, in logical order, that a request for `sectors` sectors at logical `sector`
    /// becomes.
    #[inline]
    #[must_use]
    pub fn map(&self, sector: Sector, sectors: SectorCount) -> Pieces<'_> {
        Pieces { table: self, sector: sector.0, left: sectors.0 }
    }

    /// Where logical `sector` lies, and how many sectors from it on lie there in the same quantum
    /// (or outside any).
    #[inline]
    fn place(&self, sector: u64) -> (u64, u64) {
        match self.grid.locate(Sector(sector)) {
            Some((quantum, offset)) => {
                let slot = self.grid.slot_sector(self.slot_of(quantum));
                (slot.0 + offset, self.grid.quantum_sectors().0 - offset)
            }
            None if sector < self.grid.first_sector().0 => {
                (sector, self.grid.first_sector().0 - sector)
            }
            None => (sector, u64::MAX - sector),
        }
    }

    /// Takes over `placement` at once.
    ///
    /// # Panics
    /// If it does not fit this table, or loses or doubles a quantum.
    pub fn adopt(&mut self, placement: &Placement) {
        placement.verify(self);
        for Move { quantum, .. } in placement.moves() {
            self.hold(self.slot_of(*quantum), None);
        }
        for Move { quantum, slot } in placement.moves() {
            self.put(*quantum, *slot);
            self.hold(*slot, Some(*quantum));
        }
    }

    /// Moves one quantum into `slot`, whose former content has moved elsewhere already; returns how
    /// to take that back.
    pub(crate) fn relocate(&mut self, quantum: u32, slot: u32) -> Relocation {
        let from = self.slot_of(quantum);
        let before = Relocation {
            quantum,
            from,
            slot,
            held_by_from: self.quantum_in(from),
            held_by_slot: self.quantum_in(slot),
        };
        if before.held_by_from == Some(quantum) {
            self.hold(from, None);
        }
        self.put(quantum, slot);
        self.hold(slot, Some(quantum));
        before
    }

    /// Takes the last relocation back.
    pub(crate) fn take_back(&mut self, done: Relocation) {
        self.put(done.quantum, done.from);
        self.hold(done.slot, done.held_by_slot);
        self.hold(done.from, done.held_by_from);
    }

    fn put(&mut self, quantum: u32, slot: u32) {
        let entry = if slot == self.home(quantum) { 0 } else { slot + 1 };
        self.forward.set(quantum, entry);
    }

    fn hold(&mut self, slot: u32, quantum: Option<u32>) {
        let entry = match quantum {
            quantum if quantum == self.resident(slot) => 0,
            Some(quantum) => quantum + 1,
            None => VACATED,
        };
        self.inverse.set(slot, entry);
    }

    /// Checks the invariants, as far as quanta have moved.
    ///
    /// # Panics
    /// If a quantum is lost or doubled or the inverse is not exact; that would be a bug.
    pub fn verify(&self) {
        for quantum in self.quanta_away() {
            let slot = self.slot_of(quantum);
            assert!(slot < self.grid.slots(), "quantum {quantum} is in slot {slot}");
            assert_eq!(self.quantum_in(slot), Some(quantum), "quantum {quantum} in slot {slot}");
            let home = self.home(quantum);
            assert_ne!(self.quantum_in(home), Some(quantum), "quantum {quantum} twice");
        }
        for (slot, _) in self.inverse.nonzero() {
            if let Some(quantum) = self.quantum_in(slot) {
                assert_eq!(self.slot_of(quantum), slot, "slot {slot} holds quantum {quantum}");
            } else if let Some(resident) = self.resident(slot) {
                assert_ne!(self.slot_of(resident), slot, "quantum {resident} is lost");
            }
        }
    }
}

/// What a table held before one quantum was moved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relocation {
    quantum: u32,
    from: u32,
    slot: u32,
    held_by_from: Option<u32>,
    held_by_slot: Option<u32>,
}

/// One contiguous part of a request, where it lies on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// First sector on the device.
    pub sector: Sector,
    /// Length.
    pub sectors: SectorCount,
}

/// The pieces of a request; neighbours are never contiguous.
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    table: &'a RemapTable,
    sector: u64,
    left: u64,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        if self.left == 0 {
            return None;
        }
        let (start, run) = self.table.place(self.sector);
        let mut length = run.min(self.left);
        while length < self.left {
            let (next, run) = self.table.place(self.sector + length);
            if next != start + length {
                break;
            }
            length += run.min(self.left - length);
        }
        self.sector += length;
        self.left -= length;
        Some(Piece { sector: Sector(start), sectors: SectorCount(length) })
    }
}

impl std::iter::FusedIterator for Pieces<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> RemapTable {
        let capacity = SectorCount(43);
        let grid = QuantumGrid::new(capacity, capacity, Sector(2), SectorCount(10))
            .expect("four quanta fit");
        let mut table = RemapTable::new(grid);
        let moves = [(0, 2), (1, 3), (2, 0), (3, 1)];
        table.adopt(&Placement::new(&table, moves.map(|(quantum, slot)| Move { quantum, slot })));
        table
    }

    fn pieces(sector: u64, sectors: u64) -> Vec<(u64, u64)> {
        table()
            .map(Sector(sector), SectorCount(sectors))
            .map(|piece| (piece.sector.0, piece.sectors.0))
            .collect()
    }

    #[test]
    fn a_request_within_a_quantum_moves_with_it() {
        assert_eq!(pieces(2, 10), [(22, 10)]);
        assert_eq!(pieces(25, 3), [(5, 3)]);
    }

    #[test]
    fn a_crossing_into_a_quantum_that_still_follows_stays_one_request() {
        assert_eq!(pieces(7, 10), [(27, 10)]);
    }

    #[test]
    fn a_crossing_into_a_quantum_that_lies_elsewhere_is_split() {
        assert_eq!(pieces(17, 10), [(37, 5), (2, 5)]);
    }

    #[test]
    fn head_and_tail_stay_where_they_are() {
        assert_eq!(pieces(0, 4), [(0, 2), (22, 2)]);
        assert_eq!(pieces(40, 3), [(20, 2), (42, 1)]);
        assert_eq!(pieces(5, 0), []);
    }
}
