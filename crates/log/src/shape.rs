//! How the disk is divided into segments.
//!
//! A log has one zone of equal segments, or several with segments of their own size: zones of the
//! disk of different bandwidth, or small segments for new and large ones for collected data
//! (Matthews 1999, §5.3). A slot is the place of one block; slots are numbered as they lie on the
//! disk, so that every number is a place and no memory goes to others, whatever segments hold.
//!
//! Cost: the segment of a slot is asked for with every block that dies. It is a division by the
//! blocks of a segment, which does not change: a multiplication and a shift (Granlund & Montgomery
//! 1994, theorem 4.2).

use super::ShapeError;

/// No block, no slot, no segment.
pub const NONE: u32 = u32::MAX;

/// Location bit of a block that waits in a write buffer: slots stay below it.
pub(crate) const SLOTS_MAX: u64 = 1 << 31;

/// Equal segments, side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Segments in the zone.
    pub segments: u32,
    /// Blocks in each.
    pub segment_blocks: u32,
}

/// The division of a disk into segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogShape {
    zones: Vec<PlacedZone>,
    /// The first zone, here because most logs have no other.
    first: PlacedZone,
    segments: u32,
    slots: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlacedZone {
    zone: Zone,
    first_segment: u32,
    first_slot: u32,
    /// Divides by the blocks of a segment.
    divisor: Divisor,
}

/// Finds the segments of many slots: what most logs, of one zone, need for it stands in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentOf<'a> {
    shape: &'a LogShape,
    divisor: Divisor,
    is_single: bool,
}

impl SegmentOf<'_> {
    /// The segment that holds `slot`.
    #[inline]
    pub(crate) fn of(&self, slot: u32) -> u32 {
        if self.is_single {
            self.divisor.quotient(slot)
        } else {
            self.shape.segment_of_several_zones(slot)
        }
    }
}

/// Divides numbers below [`SLOTS_MAX`] by a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Divisor {
    multiplier: u64,
    shift: u32,
}

impl Divisor {
    /// Division by `divisor`, not zero.
    ///
    /// The multiplier is 2^shift over the divisor, rounded up, by less than one: the quotient of n is
    /// too large by less than n / 2^shift, and that is below 1 / divisor.
    fn new(divisor: u32) -> Self {
        let shift = SLOTS_MAX.trailing_zeros() + divisor.next_power_of_two().trailing_zeros();
        Self { multiplier: (1_u64 << shift).div_ceil(u64::from(divisor)), shift }
    }

    #[inline]
    fn quotient(self, number: u32) -> u32 {
        // The multiplier is below 2^32, since a divisor is more than half of its power of two; so
        // the product fits, and the shift is below 64.
        (u64::from(number).wrapping_mul(self.multiplier) >> (self.shift & 63)) as u32
    }
}

impl LogShape {
    /// One zone.
    ///
    /// # Errors
    /// If there is nothing to divide, or more than slots can number.
    pub fn uniform(segments: u32, segment_blocks: u32) -> Result<Self, ShapeError> {
        Self::zoned(&[Zone { segments, segment_blocks }])
    }

    /// Several zones, in the order of their addresses.
    ///
    /// # Errors
    /// If there is nothing to divide, or more than slots can number.
    pub fn zoned(zones: &[Zone]) -> Result<Self, ShapeError> {
        let (mut placed, mut segments, mut slots) = (Vec::new(), 0_u64, 0_u64);
        for zone in zones {
            if zone.segment_blocks == 0 || zone.segments == 0 {
                return Err(ShapeError::Empty);
            }
            let first = PlacedZone {
                zone: *zone,
                first_segment: segments as u32,
                first_slot: slots as u32,
                divisor: Divisor::new(zone.segment_blocks),
            };
            segments += u64::from(zone.segments);
            slots += u64::from(zone.segments) * u64::from(zone.segment_blocks);
            if slots > SLOTS_MAX {
                return Err(ShapeError::TooManySlots { slots });
            }
            placed.push(first);
        }
        let Some(first) = placed.first().copied().filter(|_| segments >= 2) else {
            return Err(ShapeError::Empty);
        };
        Ok(Self { zones: placed, first, segments: segments as u32, slots: slots as u32 })
    }

    /// Segments in all zones.
    #[must_use]
    #[inline]
    pub fn segments(&self) -> u32 {
        self.segments
    }

    /// Numbers of slots.
    #[must_use]
    #[inline]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Blocks that fit.
    #[must_use]
    #[inline]
    pub fn capacity_blocks(&self) -> u64 {
        u64::from(self.slots)
    }

    /// Zones.
    #[must_use]
    #[inline]
    pub fn zones(&self) -> usize {
        self.zones.len()
    }

    /// A zone by its number.
    #[must_use]
    #[inline]
    pub fn zone(&self, zone: usize) -> Zone {
        self.zones[zone].zone
    }

    /// Blocks of the largest segment.
    #[must_use]
    pub fn segment_blocks_max(&self) -> u32 {
        self.zones.iter().map(|placed| placed.zone.segment_blocks).max().unwrap_or(1)
    }

    /// The segment that holds `slot`.
    #[must_use]
    #[inline]
    pub fn segment_of(&self, slot: u32) -> u32 {
        if self.zones.len() == 1 {
            self.first.divisor.quotient(slot)
        } else {
            self.segment_of_several_zones(slot)
        }
    }

    /// The segments of slots, for a loop over many.
    #[inline]
    pub(crate) fn segment_of_slots(&self) -> SegmentOf<'_> {
        let is_single = self.zones.len() == 1;
        SegmentOf { shape: self, divisor: self.first.divisor, is_single }
    }

    /// The same, apart so that the rest is small enough to stand where it is asked for.
    #[inline(never)]
    fn segment_of_several_zones(&self, slot: u32) -> u32 {
        let placed = self.zones.iter().rev().find(|placed| placed.first_slot <= slot);
        let placed = placed.unwrap_or(&self.first);
        placed.first_segment + placed.divisor.quotient(slot - placed.first_slot)
    }

    /// The first slot of `segment`.
    #[must_use]
    #[inline]
    pub fn first_slot(&self, segment: u32) -> u32 {
        let placed = self.placed(segment);
        placed.first_slot + (segment - placed.first_segment) * placed.zone.segment_blocks
    }

    /// Blocks in `segment`.
    #[must_use]
    #[inline]
    pub fn segment_blocks(&self, segment: u32) -> u32 {
        self.placed(segment).zone.segment_blocks
    }

    /// The zone of `segment`.
    #[must_use]
    #[inline]
    pub fn zone_of(&self, segment: u32) -> usize {
        if self.zones.len() == 1 {
            return 0;
        }
        self.zones.iter().rposition(|placed| placed.first_segment <= segment).unwrap_or(0)
    }

    /// Segments of `zone`, in the order of their addresses.
    #[must_use]
    pub fn segments_of_zone(&self, zone: usize) -> std::ops::Range<u32> {
        let placed = &self.zones[zone];
        placed.first_segment..placed.first_segment + placed.zone.segments
    }

    #[inline]
    fn placed(&self, segment: u32) -> &PlacedZone {
        if self.zones.len() == 1 { &self.first } else { &self.zones[self.zone_of(segment)] }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_number_is_a_slot_of_its_segment() {
        let zones = [
            Zone { segments: 5, segment_blocks: 3 },
            Zone { segments: 2, segment_blocks: 32 },
            Zone { segments: 4, segment_blocks: 1 },
        ];
        let shape = LogShape::zoned(&zones).unwrap();
        let mut slot = 0;
        for segment in 0..shape.segments() {
            assert_eq!(shape.first_slot(segment), slot);
            for _ in 0..shape.segment_blocks(segment) {
                assert_eq!(shape.segment_of(slot), segment);
                slot += 1;
            }
        }
        assert_eq!((shape.slots(), shape.capacity_blocks()), (slot, u64::from(slot)));
        assert_eq!(slot, 5 * 3 + 2 * 32 + 4);
        assert_eq!(shape.segments_of_zone(1), 5..7);
    }

    proptest! {
        #[test]
        fn a_divisor_divides(
            divisor in prop_oneof![1_u32..70, 1_u32..1 << 24, Just(1 << 24)],
            number in 0_u32..1 << 31,
        ) {
            let by = Divisor::new(divisor);
            // Beside multiples of the divisor, where an error would show first, and anywhere.
            let multiple = number - number % divisor;
            for number in [number, multiple, multiple.saturating_sub(1), (1 << 31) - 1] {
                prop_assert_eq!(by.quotient(number), number / divisor);
            }
        }
    }

    #[test]
    fn a_shape_that_cannot_be_is_refused() {
        assert_eq!(LogShape::uniform(10, 0), Err(ShapeError::Empty));
        assert_eq!(LogShape::uniform(1, 8), Err(ShapeError::Empty));
        assert_eq!(LogShape::zoned(&[]), Err(ShapeError::Empty));
        assert!(matches!(
            LogShape::uniform(1 << 22, 513),
            Err(ShapeError::TooManySlots { slots }) if slots == 513 << 22
        ));
    }
}
