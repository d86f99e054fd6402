//! How the disk is divided into segments.
//!
//! A log has one zone of equal segments, or several with segments of their own size: zones of the
//! disk of different bandwidth, or small segments for new and large ones for collected data
//! (Matthews 1999, §5.3). A slot is the place of one block. Slots are numbered so that segment and
//! slot follow from one another by a shift: a segment whose block count is not a power of two is
//! followed by numbers that stand for no place.

use super::ShapeError;

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
    capacity_blocks: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlacedZone {
    zone: Zone,
    first_segment: u32,
    first_slot: u32,
    first_block: u64,
    shift: u32,
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
        let (mut placed, mut segments, mut slots, mut blocks) = (Vec::new(), 0_u64, 0_u64, 0_u64);
        for zone in zones {
            if zone.segment_blocks == 0 || zone.segments == 0 {
                return Err(ShapeError::Empty);
            }
            let shift = zone.segment_blocks.next_power_of_two().trailing_zeros();
            // A zone begins at a multiple of its own segments, so that slots shift to segments.
            slots = slots.next_multiple_of(1 << shift);
            placed.push(PlacedZone {
                zone: *zone,
                first_segment: segments as u32,
                first_slot: slots as u32,
                first_block: blocks,
                shift,
            });
            segments += u64::from(zone.segments);
            slots += u64::from(zone.segments) << shift;
            blocks += u64::from(zone.segments) * u64::from(zone.segment_blocks);
            if slots > SLOTS_MAX {
                return Err(ShapeError::TooManySlots { slots });
            }
        }
        let Some(first) = placed.first().copied().filter(|_| segments >= 2) else {
            return Err(ShapeError::Empty);
        };
        Ok(Self {
            zones: placed,
            first,
            segments: segments as u32,
            slots: slots as u32,
            capacity_blocks: blocks,
        })
    }

    /// Segments in all zones.
    #[must_use]
    pub fn segments(&self) -> u32 {
        self.segments
    }

    /// Numbers of slots, padding included.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Blocks that fit.
    #[must_use]
    pub fn capacity_blocks(&self) -> u64 {
        self.capacity_blocks
    }

    /// Zones.
    #[must_use]
    pub fn zones(&self) -> usize {
        self.zones.len()
    }

    /// A zone by its number.
    #[must_use]
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
            return slot >> self.first.shift;
        }
        let placed = self.zones.iter().rev().find(|placed| placed.first_slot <= slot);
        let placed = placed.unwrap_or(&self.first);
        placed.first_segment + ((slot - placed.first_slot) >> placed.shift)
    }

    /// The first slot of `segment`.
    #[must_use]
    #[inline]
    pub fn first_slot(&self, segment: u32) -> u32 {
        let placed = self.placed(segment);
        placed.first_slot + ((segment - placed.first_segment) << placed.shift)
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

    /// Address of `slot` on the disk, in blocks from the log's beginning: without the padding.
    #[must_use]
    pub fn address_blocks(&self, slot: u32) -> u64 {
        let segment = self.segment_of(slot);
        let placed = self.placed(segment);
        let offset = slot - self.first_slot(segment);
        placed.first_block
            + u64::from(segment - placed.first_segment) * u64::from(placed.zone.segment_blocks)
            + u64::from(offset)
    }

    #[inline]
    fn placed(&self, segment: u32) -> &PlacedZone {
        if self.zones.len() == 1 { &self.first } else { &self.zones[self.zone_of(segment)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_lead_to_their_segment_and_addresses_leave_no_gap() {
        let zones = [
            Zone { segments: 5, segment_blocks: 3 },
            Zone { segments: 2, segment_blocks: 32 },
            Zone { segments: 4, segment_blocks: 1 },
        ];
        let shape = LogShape::zoned(&zones).unwrap();
        let mut address = 0;
        for segment in 0..shape.segments() {
            for offset in 0..shape.segment_blocks(segment) {
                let slot = shape.first_slot(segment) + offset;
                assert_eq!(shape.segment_of(slot), segment);
                assert_eq!(shape.address_blocks(slot), address);
                address += 1;
            }
        }
        assert_eq!(address, shape.capacity_blocks());
        assert_eq!(shape.capacity_blocks(), 5 * 3 + 2 * 32 + 4);
        assert_eq!(shape.segments_of_zone(1), 5..7);
    }

    #[test]
    fn a_shape_that_cannot_be_is_refused() {
        assert_eq!(LogShape::uniform(10, 0), Err(ShapeError::Empty));
        assert_eq!(LogShape::uniform(1, 8), Err(ShapeError::Empty));
        assert_eq!(LogShape::zoned(&[]), Err(ShapeError::Empty));
        assert!(matches!(
            LogShape::uniform(1 << 22, 513),
            Err(ShapeError::TooManySlots { slots }) if slots == 1 << 32
        ));
    }
}
