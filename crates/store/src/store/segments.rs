//! How full the segments of a store are, and where nothing lives.

use super::{Store, lock};
use crate::device::Disk;

/// A piece of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevicePiece {
    /// Its first byte.
    pub offset_bytes: u64,
    /// Bytes.
    pub length_bytes: u64,
}

impl<D: Disk> Store<D> {
    /// Where the first segment begins, bytes; the others follow it.
    #[must_use]
    pub fn segments_offset_bytes(&self) -> u64 {
        self.geometry().slot_offset(0)
    }

    /// How many live blocks lie in each of the segments from `first` on, at most `most` of them.
    #[must_use]
    pub fn live_in_segments(&self, first: u32, most: u32) -> Vec<u32> {
        let front = lock(&self.front);
        let end = self.geometry().segments.min(first.saturating_add(most));
        (first..end).map(|segment| front.engine.log().live_in(segment)).collect()
    }

    /// Where in the segments no live block lies, at or behind the byte `from_bytes` of the device, at most
    /// `most` pieces: what is one across the end of a segment comes as two.
    #[must_use]
    pub fn free_pieces(&self, from_bytes: u64, most: usize) -> Vec<DevicePiece> {
        let block_bytes = u64::from(self.geometry().block_bytes);
        let skipped = from_bytes.saturating_sub(self.segments_offset_bytes());
        let first = skipped / block_bytes / u64::from(self.geometry().segment_blocks);
        let first = first.min(u64::from(self.geometry().segments)) as u32;
        let front = lock(&self.front);
        let log = front.engine.log();
        let holes = (first..self.geometry().segments).flat_map(|segment| log.holes_in(segment));
        let pieces = holes.map(|slots| DevicePiece {
            offset_bytes: self.geometry().slot_offset(slots.start),
            length_bytes: u64::from(slots.end - slots.start) * block_bytes,
        });
        pieces.filter(|piece| piece.offset_bytes >= from_bytes).take(most).collect()
    }
}
