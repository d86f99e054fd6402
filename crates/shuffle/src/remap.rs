//! The remap table: where a logical sector lies now.
//!
//! Invariants: no slot holds two quanta, every quantum has a slot, and the inverse is exact.
//! Sectors outside the grid map to themselves.
//!
//! A request that crosses from one quantum into the next stays one request if the two still lie one
//! behind the other; otherwise it becomes as many pieces as there are breaks (Ruemmler & Wilkes
//! 1991, §5.1: split requests are counted and served as the pieces they become).

use agewell_core::{Sector, SectorCount};

use crate::{Placement, QuantumGrid, ReservedRegion};

/// Stands in the inverse for a slot that holds no quantum.
pub const VACANT: u32 = u32::MAX;

/// Where every quantum lies, and which quantum every slot holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemapTable {
    grid: QuantumGrid,
    forward: Vec<u32>,
    inverse: Vec<u32>,
}

impl RemapTable {
    /// Everything in its own place.
    #[must_use]
    pub fn new(grid: QuantumGrid) -> Self {
        Self::from_homes(grid, |quantum| quantum)
    }

    /// Everything at home around a region that is kept free for copies.
    #[must_use]
    pub fn around(grid: QuantumGrid, region: &ReservedRegion) -> Self {
        Self::from_homes(grid, |quantum| region.home(quantum))
    }

    fn from_homes(grid: QuantumGrid, home: impl Fn(u32) -> u32) -> Self {
        let forward: Vec<u32> = (0..grid.quanta()).map(home).collect();
        let mut table = Self { grid, forward, inverse: Vec::new() };
        table.rebuild_inverse();
        table
    }

    /// The division into quanta and slots.
    #[must_use]
    pub fn grid(&self) -> &QuantumGrid {
        &self.grid
    }

    /// The slot that holds `quantum`.
    #[inline]
    #[must_use]
    pub fn slot_of(&self, quantum: u32) -> u32 {
        self.forward[quantum as usize]
    }

    /// The slot of every quantum.
    #[must_use]
    pub fn slots_of_quanta(&self) -> &[u32] {
        &self.forward
    }

    /// The quantum in `slot`, if there is one.
    #[inline]
    #[must_use]
    pub fn quantum_in(&self, slot: u32) -> Option<u32> {
        Some(self.inverse[slot as usize]).filter(|quantum| *quantum != VACANT)
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
                let slot = self.grid.slot_sector(self.forward[quantum as usize]);
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
        assert_eq!(placement.slots.len(), self.forward.len(), "a placement of another device");
        placement.verify(self.grid.slots());
        self.forward.copy_from_slice(&placement.slots);
        self.rebuild_inverse();
    }

    /// Moves one quantum into `slot`, whose former content has moved elsewhere already.
    pub(crate) fn relocate(&mut self, quantum: u32, slot: u32) {
        let from = self.forward[quantum as usize];
        if self.inverse[from as usize] == quantum {
            self.inverse[from as usize] = VACANT;
        }
        self.forward[quantum as usize] = slot;
        self.inverse[slot as usize] = quantum;
    }

    fn rebuild_inverse(&mut self) {
        self.inverse.clear();
        self.inverse.resize(self.grid.slots() as usize, VACANT);
        for (quantum, slot) in self.forward.iter().enumerate() {
            self.inverse[*slot as usize] = quantum as u32;
        }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// If a quantum is lost or doubled or the inverse is not exact; that would be a bug.
    pub fn verify(&self) {
        let occupied = self.inverse.iter().filter(|quantum| **quantum != VACANT).count();
        assert_eq!(occupied, self.forward.len(), "as many slots in use as there are quanta");
        for (quantum, slot) in self.forward.iter().enumerate() {
            let back = self.inverse[*slot as usize];
            assert_eq!(back as usize, quantum, "quantum {quantum} is in slot {slot}");
        }
    }
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
        table.adopt(&Placement { slots: vec![2, 3, 0, 1] });
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
