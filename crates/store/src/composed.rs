//! What is to be written for a group.

use crate::aligned::AlignedBytes;
use crate::format::{Geometry, RingRecord, Runs};
use crate::group::{Group, Origin};

/// What is to be written for a group.
#[derive(Debug, Default)]
pub(crate) struct Composed {
    /// All runs with their blocks, those that were damaged apart.
    pub(crate) runs: Runs,
    /// Records.
    pub(crate) heads: AlignedBytes,
    /// Where each piece goes, in which buffer it is (0 data, 1 records), and from where to where.
    pub(crate) places: Vec<(u64, usize, std::ops::Range<usize>)>,
    /// Slots of inline records, and how many blocks each has.
    pub(crate) inline: Vec<(u32, u32)>,
    /// Whether the only record is an inline one that names the slots of all data.
    pub(crate) is_scattered: bool,
    pub(crate) freed_inline: bool,
    pub(crate) ring: Option<(RingRecord, u32)>,
}

impl Composed {
    /// Writes zeros where a slot was left for a record that is elsewhere: what is written in order has no
    /// gaps.
    pub(crate) fn fill_gaps(&mut self, group: &Group, geometry: &Geometry) {
        let bytes = geometry.block_bytes as usize;
        for run in group.runs.iter().filter(|run| run.origin == Origin::Appended) {
            let place = run.slot - 1;
            if !self.inline.iter().any(|(slot, _)| *slot == place) {
                let range = self.heads.len()..self.heads.len() + bytes;
                self.heads.append(&vec![0; bytes]);
                self.places.push((geometry.slot_offset(place), 1, range));
            }
        }
    }
}
