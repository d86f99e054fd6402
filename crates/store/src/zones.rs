//! Stores on zones that are written in order.
//!
//! A segment is whole zones, which its log fills from the beginning to the end; only cleaning leaves no
//! holes to be filled. Where a group's record goes to the ring, the slot that was left for it is written
//! with zeros. A zone is emptied before its first block is written, which destroys all that died in the
//! segment: so what died anywhere in it must be covered first ([`crate::engine`]). The superblocks, the
//! roots, the ring and the map lie where writes in place are taken; the last superblock ends the last
//! zone, which is filled when the store is made.
//!
//! Where the store was left in the midst of a segment nobody knows how far that was written. The segment
//! counts as full when the store is opened. After a write or flush that failed it must be opened again.

use crate::StoreError;
use crate::device::{Disk, Piece, WriteZones};
use crate::format::Geometry;
use crate::medium::write;

/// Bytes that are written at a time where nothing but zeros is; chosen by us.
const ZEROS_BYTES: u64 = 1 << 20;

impl WriteZones {
    /// Where the last zone of a device of `device_bytes` begins.
    pub(crate) fn last_zone(self, device_bytes: u64) -> u64 {
        device_bytes.saturating_sub(1) / self.zone_bytes * self.zone_bytes
    }

    /// Whether segments are whole zones.
    pub(crate) fn check_segments(
        self,
        segment_blocks: u64,
        block_bytes: u64,
    ) -> Result<(), StoreError> {
        let zone_blocks = self.zone_bytes / block_bytes;
        if zone_blocks > 0 && segment_blocks.is_multiple_of(zone_blocks) {
            return Ok(());
        }
        Err(StoreError::Options(format!(
            "the device is written in zones of {} bytes, and segments are whole zones: take segments \
             of {zone_blocks} blocks, or a multiple",
            self.zone_bytes
        )))
    }

    /// Whether a store that is divided so keeps to them.
    pub(crate) fn check(self, geometry: &Geometry) -> Result<(), StoreError> {
        let start = geometry.offset(geometry.segments_start);
        self.check_segments(u64::from(geometry.segment_blocks), u64::from(geometry.block_bytes))?;
        if start >= self.first_byte && start.is_multiple_of(self.zone_bytes) {
            return Ok(());
        }
        Err(StoreError::Options(format!(
            "the device is written in zones of {} bytes, and the segments of this store, from byte \
             {start} on, do not begin with one: copy it to a store that was made here",
            self.zone_bytes
        )))
    }

    /// Fills the last zone of `disk` up to its last block.
    pub(crate) fn fill_last(self, disk: &impl Disk, block_bytes: u32) -> Result<(), StoreError> {
        let size = disk.size_bytes();
        let mut at = self.last_zone(size);
        if at < self.first_byte {
            return Ok(());
        }
        let last = (size / u64::from(block_bytes) - 1) * u64::from(block_bytes);
        self.empty(disk, at)?;
        let zeros = vec![0; ZEROS_BYTES as usize];
        while at < last {
            let bytes = ZEROS_BYTES.min(last - at);
            write(disk, &[Piece { offset: at, data: &zeros[..bytes as usize] }])?;
            at += bytes;
        }
        Ok(())
    }

    /// Empties the zone that begins at byte `offset`.
    fn empty(self, disk: &impl Disk, offset: u64) -> Result<(), StoreError> {
        let bytes = self.zone_bytes.min(disk.size_bytes() - offset);
        let emptied = disk.discard(offset, bytes);
        emptied.map_err(|error| StoreError::Device { what: "empty", offset, bytes, error })
    }

    /// Empties the zones that `places` (offset and range) begin to write.
    pub(crate) fn begin(
        self,
        disk: &impl Disk,
        places: &[(u64, usize, std::ops::Range<usize>)],
    ) -> Result<(), StoreError> {
        let starts = places.iter().map(|(offset, _, _)| *offset);
        let mut zones =
            starts.filter(|at| *at >= self.first_byte && at.is_multiple_of(self.zone_bytes));
        zones.try_for_each(|offset| self.empty(disk, offset))
    }

    /// `places`, none of which reaches over the end of a zone.
    pub(crate) fn split(
        self,
        places: Vec<(u64, usize, std::ops::Range<usize>)>,
    ) -> Vec<(u64, usize, std::ops::Range<usize>)> {
        let mut split = Vec::with_capacity(places.len());
        for (mut offset, buffer, mut range) in places {
            loop {
                let rest = self.zone_bytes - offset % self.zone_bytes;
                if offset < self.first_byte || range.len() as u64 <= rest {
                    split.push((offset, buffer, range));
                    break;
                }
                let middle = range.start + rest as usize;
                split.push((offset, buffer, range.start..middle));
                (offset, range) = (offset + rest, middle..range.end);
            }
        }
        split
    }
}
