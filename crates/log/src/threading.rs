//! Threaded logging: new data goes straight into the holes of a segment, and nothing is collected.
//!
//! The least utilized segment has the most holes, so that one seek serves the most blocks; they are
//! written in the order of their slots. F2FS does the same when free sections run out (Lee et al.
//! 2015, §2.6), by a threshold rather than by cost.

use super::log::Log;
use super::policy::placement::Placement;

use super::buffers::Waiting;
use super::{BlockDevice, Purpose, Sources};

impl<P: Placement> Log<P> {
    /// Whether a full segment has a dead block.
    pub(super) fn has_hole(&self) -> bool {
        self.dead_sealed() > 0
    }

    /// Writes buffer entries into the holes of one segment; as many as it has holes.
    pub(super) fn thread(&mut self, entries: &[u32], device: &mut impl BlockDevice) -> usize {
        let Some(segment) = self.choose_thread_segment(device) else { return 0 };
        let mut blocks = std::mem::take(&mut self.threading);
        let mut filled = std::mem::take(&mut self.filled);
        blocks.extend(entries.iter().map(|entry| self.buffers.entries[*entry as usize].block));
        let waiting = std::mem::take(&mut self.buffers.entries);
        let sources = Sources::Entries(entries, &waiting);
        self.fill_holes(segment, blocks.drain(..), Purpose::Thread, sources, &mut filled, device);
        self.buffers.entries = waiting;
        self.threaded(segment, filled.len(), device);
        for (entry, slot) in entries.iter().zip(&filled) {
            self.settle(*entry, *slot);
        }
        self.patch(device);
        let threaded = filled.len();
        filled.clear();
        (self.threading, self.filled) = (blocks, filled);
        threaded
    }

    /// Writes one block, which waits in no buffer, into a hole; false if there is none.
    pub(super) fn thread_one(&mut self, block: u32, device: &mut impl BlockDevice) -> bool {
        let Some(segment) = self.choose_thread_segment(device) else { return false };
        let mut filled = std::mem::take(&mut self.filled);
        let (once, old) = (std::iter::once(block), self.map[block as usize]);
        let sources = Sources::Through(Waiting { block, old });
        self.fill_holes(segment, once, Purpose::Thread, sources, &mut filled, device);
        self.threaded(segment, 1, device);
        self.lands(block, filled[0], device);
        filled.clear();
        self.filled = filled;
        true
    }

    /// The emptiest segment with a hole that may be filled.
    fn choose_thread_segment(&mut self, device: &impl BlockDevice) -> Option<u32> {
        self.refresh_index();
        let zones = self.all_zones();
        let segment = self.emptiest_with_hole(zones.clone())?;
        if device.unfillable_most() == 0 || self.has_fillable(segment, device) {
            return Some(segment);
        }
        // It is left out of the index while the next is looked for.
        let mut left_out = vec![segment];
        let found = loop {
            let last = left_out[left_out.len() - 1];
            self.index.remove(last, self.table.shape.zone_of(last));
            match self.emptiest_with_hole(zones.clone()) {
                Some(segment) if !self.has_fillable(segment, device) => left_out.push(segment),
                found => break found,
            }
        };
        for segment in left_out {
            self.enter_index(segment);
        }
        found
    }

    fn has_fillable(&self, segment: u32, device: &impl BlockDevice) -> bool {
        let (first, end) = self.table.bounds(segment);
        self.next_fillable(first, end, device).is_some()
    }

    fn threaded(&mut self, segment: u32, blocks: usize, device: &mut impl BlockDevice) {
        device.commit();
        // The segment holds young data again; that the index still ranks it by its old age only
        // matters to policies by age, which see the new one when it is next sealed.
        self.table.youngest[segment as usize] = self.clock;
        self.counts.segments_threaded += 1;
        self.counts.threaded_blocks += blocks as u64;
        self.counts.new_blocks += blocks as u64;
    }
}
