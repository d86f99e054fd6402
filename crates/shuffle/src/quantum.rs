//! Shuffling quanta: the unit in which data is counted and moved.
//!
//! A device is a fixed head, a row of equal quanta, and a fixed tail shorter than a quantum; head
//! and tail never move. Slots are the places quanta can lie in; slot `s` begins at `first_sector +
//! s * quantum_sectors`. There are at least as many slots as quanta, and slots beyond the last
//! quantum begin vacant.
//!
//! Source: Ruemmler & Wilkes 1991, §5.4: block, track, half-cylinder and cylinder, the last three
//! *logical*: the physical unit rounded to the nearest whole number of file-system blocks, since a
//! quantum that is no such multiple splits requests across units that then migrate apart. Two
//! things the report leaves open: on a zoned drive we round the mean track or cylinder; and a
//! quantum must also *begin* on a block boundary, which matters where a partition does not start on
//! a multiple of the block size, so the length of the fixed head is a parameter.

use agewell_core::{Sector, SectorCount};

use crate::ShuffleError;

/// The four sizes of quantum of the report (§5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuantumKind {
    /// One file-system block (8 KB in the report).
    Block,
    /// A logical track.
    Track,
    /// Half a logical cylinder.
    HalfCylinder,
    /// A logical cylinder.
    Cylinder,
}

impl QuantumKind {
    /// Every kind, smallest first.
    pub const ALL: [QuantumKind; 4] =
        [Self::Block, Self::Track, Self::HalfCylinder, Self::Cylinder];

    /// The name used in configurations and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Track => "track",
            Self::HalfCylinder => "half-cylinder",
            Self::Cylinder => "cylinder",
        }
    }

    /// Sectors in a quantum of this kind on a drive of `shape`: the mean physical unit rounded to
    /// the nearest whole number of blocks, and at least one block. Exactly half rounds up.
    ///
    /// # Panics
    /// If the shape or the block is empty.
    #[must_use]
    pub fn sectors(self, shape: &DriveShape, block: SectorCount) -> SectorCount {
        assert!(block.0 > 0, "a file-system block has no sectors");
        assert!(shape.cylinders > 0 && shape.heads > 0, "a drive without tracks");
        let cylinders = u64::from(shape.cylinders);
        let units = match self {
            Self::Block => return block,
            Self::Track => cylinders * u64::from(shape.heads),
            Self::HalfCylinder => 2 * cylinders,
            Self::Cylinder => cylinders,
        };
        // round(capacity / units / block) without leaving the integers.
        let divisor = u128::from(units) * u128::from(block.0);
        let blocks = (2 * u128::from(shape.capacity.0) + divisor) / (2 * divisor);
        SectorCount(blocks.max(1) as u64 * block.0)
    }
}

/// What the rounding of a quantum needs to know of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriveShape {
    /// Addressable size.
    pub capacity: SectorCount,
    /// Number of cylinders.
    pub cylinders: u32,
    /// Tracks in a cylinder.
    pub heads: u32,
}

/// The division of a device into quanta and slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantumGrid {
    first_sector: u64,
    quantum_sectors: u64,
    quanta: u32,
    slots: u32,
}

impl QuantumGrid {
    /// Divides a device of `capacity`, of which the workload addresses the first `logical`, from
    /// `first` on.
    ///
    /// Every quantum that holds an addressed sector and fits the device is a quantum; the slots
    /// reach to the end of the device. What is left at either end stays where it is.
    ///
    /// # Errors
    /// If fewer than two quanta or more than `u32::MAX - 2` come out, or `logical` exceeds
    /// `capacity`.
    ///
    /// # Panics
    /// If the quantum is empty.
    pub fn new(
        capacity: SectorCount,
        logical: SectorCount,
        first: Sector,
        quantum: SectorCount,
    ) -> Result<Self, ShuffleError> {
        assert!(quantum.0 > 0, "a quantum has no sectors");
        if logical > capacity {
            return Err(ShuffleError::LogicalBeyondDevice {
                logical: logical.0,
                capacity: capacity.0,
            });
        }
        let slots = capacity.0.saturating_sub(first.0) / quantum.0;
        let quanta = logical.0.saturating_sub(first.0).div_ceil(quantum.0).min(slots);
        let limit = u64::from(u32::MAX - 2);
        if slots > limit {
            return Err(ShuffleError::TooManyQuanta { quanta: slots, limit });
        }
        if quanta < 2 {
            return Err(ShuffleError::TooFewQuanta {
                first_sector: first.0,
                sectors: logical.0.saturating_sub(first.0),
                quantum_sectors: quantum.0,
                quanta,
            });
        }
        Ok(Self {
            first_sector: first.0,
            quantum_sectors: quantum.0,
            quanta: quanta as u32,
            slots: slots as u32,
        })
    }

    /// Number of quanta.
    #[must_use]
    pub fn quanta(&self) -> u32 {
        self.quanta
    }

    /// Number of slots, at least the number of quanta.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Sectors in a quantum.
    #[must_use]
    pub fn quantum_sectors(&self) -> SectorCount {
        SectorCount(self.quantum_sectors)
    }

    /// First sector of the first quantum: the length of the fixed head.
    #[must_use]
    pub fn first_sector(&self) -> Sector {
        Sector(self.first_sector)
    }

    /// First sector of `slot`.
    #[must_use]
    pub fn slot_sector(&self, slot: u32) -> Sector {
        debug_assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        Sector(self.first_sector + u64::from(slot) * self.quantum_sectors)
    }

    /// The quantum that `sector` belongs to, and the offset in it; `None` in the fixed head and
    /// tail.
    #[inline]
    #[must_use]
    pub fn locate(&self, sector: Sector) -> Option<(u32, u64)> {
        let offset = sector.0.checked_sub(self.first_sector)?;
        let index = offset / self.quantum_sectors;
        (index < u64::from(self.quanta))
            .then(|| (index as u32, offset - index * self.quantum_sectors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const C2200A: DriveShape =
        DriveShape { capacity: SectorCount(654_948), cylinders: 1449, heads: 8 };
    const BLOCK: SectorCount = SectorCount(16);

    #[test]
    fn quanta_round_to_the_nearest_whole_number_of_blocks() {
        // 56.5 sectors a track are 3.53 blocks, 226 a half-cylinder 14.1, 452 a cylinder 28.25.
        assert_eq!(QuantumKind::Block.sectors(&C2200A, BLOCK), SectorCount(16));
        assert_eq!(QuantumKind::Track.sectors(&C2200A, BLOCK), SectorCount(4 * 16));
        assert_eq!(QuantumKind::HalfCylinder.sectors(&C2200A, BLOCK), SectorCount(14 * 16));
        assert_eq!(QuantumKind::Cylinder.sectors(&C2200A, BLOCK), SectorCount(28 * 16));
    }

    #[test]
    fn a_track_smaller_than_a_block_is_still_one_block() {
        let shape = DriveShape { capacity: SectorCount(400), cylinders: 10, heads: 10 };
        assert_eq!(QuantumKind::Track.sectors(&shape, BLOCK), BLOCK);
    }

    #[test]
    fn head_and_tail_belong_to_no_quantum() {
        let grid = QuantumGrid::new(SectorCount(100), SectorCount(100), Sector(8), SectorCount(16))
            .expect("five quanta fit");
        assert_eq!((grid.quanta(), grid.slots()), (5, 5));
        assert_eq!(grid.locate(Sector(7)), None);
        assert_eq!(grid.locate(Sector(8)), Some((0, 0)));
        assert_eq!(grid.locate(Sector(87)), Some((4, 15)));
        assert_eq!(grid.locate(Sector(88)), None);
    }

    #[test]
    fn slots_reach_beyond_the_logical_device() {
        let grid = QuantumGrid::new(SectorCount(160), SectorCount(70), Sector(0), SectorCount(16))
            .expect("it fits");
        assert_eq!((grid.quanta(), grid.slots()), (5, 10));
    }

    #[test]
    fn a_device_that_cannot_be_divided_is_refused() {
        let all = SectorCount(100);
        assert!(matches!(
            QuantumGrid::new(all, all, Sector(0), SectorCount(64)),
            Err(ShuffleError::TooFewQuanta { quanta: 1, .. })
        ));
        assert!(matches!(
            QuantumGrid::new(all, SectorCount(101), Sector(0), SectorCount(1)),
            Err(ShuffleError::LogicalBeyondDevice { .. })
        ));
        let huge = SectorCount(u64::MAX);
        assert!(matches!(
            QuantumGrid::new(huge, huge, Sector(0), SectorCount(1)),
            Err(ShuffleError::TooManyQuanta { .. })
        ));
    }
}
