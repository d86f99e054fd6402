//! The inline records of segments that a root or a ring record names.

use std::collections::BTreeMap;

use crate::StoreError;
use crate::device::Disk;
use crate::format::{Geometry, InlineRecord};
use crate::medium::{READS_MAX, read, read_one_by_one};
use crate::seeded::{SeededFault, is_seeded};

/// Bytes of a segment that are read at once; chosen by us: an order above what a disk reads in the time of a
/// seek.
const READ_BYTES: u32 = 1 << 20;

/// A segment, read piece by piece.
struct Segment<'a, D> {
    disk: &'a D,
    geometry: &'a Geometry,
    /// The slots that have been read, and those of them that cannot be.
    slots: std::ops::Range<u32>,
    bytes: Vec<u8>,
    unread: BTreeMap<u32, StoreError>,
}

impl<D: Disk> Segment<'_, D> {
    /// The record in `slot`, before `end`, if there is one; an error where it cannot be read.
    fn record(&mut self, slot: u32, end: u32) -> Result<Option<InlineRecord>, StoreError> {
        if !self.slots.contains(&slot) {
            self.fill(slot, end);
        }
        if let Some(error) = self.unread.remove(&slot) {
            return Err(error);
        }
        let block_bytes = self.geometry.block_bytes as usize;
        let at = (slot - self.slots.start) as usize * block_bytes;
        Ok(InlineRecord::decode(self.geometry, slot, &self.bytes[at..at + block_bytes]))
    }

    fn fill(&mut self, slot: u32, end: u32) {
        let block_bytes = self.geometry.block_bytes;
        let blocks = (READ_BYTES / block_bytes).max(1).min(end - slot);
        self.slots = slot..slot + blocks;
        self.bytes.clear();
        self.bytes.resize((blocks * block_bytes) as usize, 0);
        self.unread.clear();
        let offset = self.geometry.slot_offset(slot);
        let is_read = read(self.disk, offset, &mut self.bytes);
        if is_read.is_ok() {
            return;
        }
        if is_seeded(SeededFault::UnreadableIsAbsent) {
            self.bytes.fill(0);
            return;
        }
        let (unread, sizes) = (&mut self.unread, (block_bytes as usize, READS_MAX));
        read_one_by_one(self.disk, offset, sizes, &mut self.bytes, |number, error| {
            unread.insert(slot + number as u32, error);
        });
    }
}

/// The records that are in the segments of `places`, from the first place of each on, if they have
/// `incarnation` and a sequence above `covered`, or a greater incarnation.
pub(super) fn find(
    disk: &impl Disk,
    geometry: &Geometry,
    places: &[u32],
    (incarnation, covered): (u32, u64),
) -> Result<Vec<(u32, InlineRecord)>, StoreError> {
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    for place in places.iter().copied().filter(|place| *place < geometry.slots()) {
        let of_segment = first.entry(place / geometry.segment_blocks).or_insert(place);
        *of_segment = place.min(*of_segment);
    }
    let mut found = Vec::new();
    let (bytes, unread) = (Vec::new(), BTreeMap::new());
    let mut segment = Segment { disk, geometry, slots: 0..0, bytes, unread };
    for (number, place) in first {
        let end = (number + 1) * geometry.segment_blocks;
        // Where one must be, if there are more.
        let mut next = place;
        let mut slot = place;
        while slot < end {
            let is_named = slot == next || places.contains(&slot);
            let record = match segment.record(slot, end) {
                Ok(record) => record,
                // Data that is damaged does not matter here.
                Err(_) if !is_named => None,
                Err(error) => return Err(error),
            };
            let of_any = is_seeded(SeededFault::IncarnationOfInlineIgnored);
            let counts = record.filter(|record| {
                let is_later =
                    record.sequence > covered || is_seeded(SeededFault::CoveredInlineAccepted);
                record.incarnation > incarnation
                    || (record.incarnation == incarnation || of_any) && is_later
            });
            let Some(record) = counts else {
                slot += 1;
                if is_seeded(SeededFault::SegmentNotSearched) {
                    let named = places.iter().find(|place| (slot..end).contains(place));
                    slot = named.copied().unwrap_or(end);
                }
                continue;
            };
            let behind = if record.runs.is_empty() { record.data.len() as u32 } else { 0 };
            next = slot + 1 + behind;
            found.push((slot, record));
            // In what lies behind it there may be holes by now, with records in them.
            slot = if geometry.scatters { slot + 1 } else { next };
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{MemoryDisk, Piece};
    use crate::format::{FormatOptions, Named};

    #[test]
    fn a_record_in_a_hole_among_the_data_of_another_is_found() {
        let options = FormatOptions { segment_blocks: 16, ..FormatOptions::new([7; 16]) };
        let geometry = Geometry::plan(4 << 20, &options).unwrap();
        let record = |sequence, first: u32, runs: Vec<(u32, u32)>| InlineRecord {
            incarnation: 1,
            sequence,
            flushed: 0,
            part: 0,
            parts: 1,
            data: (first..first + 4).map(|block| Named { block, sum: 0 }).collect(),
            runs,
            freed: Vec::new(),
            copy: Vec::new(),
        };
        let disk = MemoryDisk::new(4 << 20);
        let write = |slot: u32, record: &InlineRecord| {
            let mut bytes = vec![0; geometry.block_bytes as usize];
            record.encode(&geometry, slot, &mut bytes);
            disk.write(&[Piece { offset: geometry.slot_offset(slot), data: &bytes }]).unwrap();
        };
        // The data of the first lies in the four slots behind it. Some of it is dead: its places have data of the
        // second, and the second.
        let (appended, filled) = (record(5, 0, Vec::new()), record(6, 9, vec![(18, 1), (20, 3)]));
        write(17, &appended);
        write(19, &filled);
        let mut found = find(&disk, &geometry, &[16], (1, 4)).unwrap();
        found.sort_by_key(|(slot, _)| *slot);
        assert_eq!(found, [(17, appended.clone()), (19, filled.clone())]);
        // Of stores without such records nothing is looked for there.
        let geometry = Geometry { scatters: false, ..geometry };
        let found = find(&disk, &geometry, &[16], (1, 4)).unwrap();
        assert_eq!(found, [(17, appended)]);
    }
}
