//! Addresses on a device, in sectors of 512 bytes.

use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Bytes in a sector: the unit of every block address in agewell, whatever the device formats
/// itself with.
pub const SECTOR_BYTES: u64 = 512;

/// A device address in 512-byte sectors.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Sector(pub u64);

/// A number of 512-byte sectors.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SectorCount(pub u64);

impl SectorCount {
    /// Bytes in this many sectors.
    ///
    /// # Panics
    /// If the product does not fit 64 bits.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0.checked_mul(SECTOR_BYTES).expect("a sector count below 2^55")
    }

    /// The sectors that `bytes` bytes occupy, rounded up.
    #[must_use]
    pub const fn covering_bytes(bytes: u64) -> Self {
        Self(bytes.div_ceil(SECTOR_BYTES))
    }
}

impl Add<SectorCount> for Sector {
    type Output = Sector;
    fn add(self, count: SectorCount) -> Sector {
        Sector(self.0 + count.0)
    }
}

impl AddAssign<SectorCount> for Sector {
    fn add_assign(&mut self, count: SectorCount) {
        self.0 += count.0;
    }
}

impl Sub<Sector> for Sector {
    type Output = SectorCount;
    fn sub(self, earlier: Sector) -> SectorCount {
        assert!(self.0 >= earlier.0, "sector {} lies before {}", self.0, earlier.0);
        SectorCount(self.0 - earlier.0)
    }
}

impl Add for SectorCount {
    type Output = SectorCount;
    fn add(self, other: SectorCount) -> SectorCount {
        SectorCount(self.0 + other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_up_to_whole_sectors() {
        assert_eq!(SectorCount::covering_bytes(0), SectorCount(0));
        assert_eq!(SectorCount::covering_bytes(1), SectorCount(1));
        assert_eq!(SectorCount::covering_bytes(512), SectorCount(1));
        assert_eq!(SectorCount::covering_bytes(513), SectorCount(2));
    }

    #[test]
    #[should_panic(expected = "lies before")]
    fn a_distance_is_never_negative() {
        let _ = Sector(1) - Sector(2);
    }
}
