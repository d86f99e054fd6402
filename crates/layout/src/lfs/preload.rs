//! Laying out what was there before the first request.

use super::log::Log;
use super::policy::placement::Placement;
use super::segment_table::NONE;
use super::{BlockDevice, LogError};
use crate::block_layout::even_chunks;

impl<P: Placement> Log<P> {
    /// Puts `block` on the disk behind the block preloaded before it, past any buffer. In a log with
    /// zones for new and for collected data it goes to the latter as long as they have room: it is
    /// not new.
    ///
    /// # Errors
    /// If there is no room left beyond the reserve.
    ///
    /// # Panics
    /// If the block exists already.
    pub fn preload(&mut self, block: u32, device: &mut impl BlockDevice) -> Result<(), LogError> {
        assert_eq!(self.map[block as usize], NONE, "block {block} is there already");
        self.clock += 1;
        let log = self.placement.place_new(block, false, self.clock) as usize;
        if self.open[log].next == self.open[log].end {
            // Collected data keeps a reserve of its own, where it has zones of its own.
            let reserved = self.setting.reserve_segments + 1;
            let opened = self.has_more_than_reserve()
                && [(self.zones(true), reserved), (self.zones(false), 1), (self.all_zones(), 1)]
                    .into_iter()
                    .any(|(zones, least)| {
                        self.has_free(zones.clone(), least) && self.open_segment(log, zones)
                    });
            if !opened {
                let capacity = self.table.shape.capacity_blocks();
                return Err(LogError::Full { live: self.live_blocks, capacity });
            }
        }
        self.append_one(log, block, device);
        Ok(())
    }

    /// Puts `blocks` on the empty log in chunks of `chunk_blocks` that lie evenly (Matthews 1999,
    /// §6.3), so that all segments but those kept free are partly full.
    ///
    /// # Errors
    /// If there is no room.
    ///
    /// # Panics
    /// If one of the blocks exists already, or the log is not empty or has several zones.
    pub fn fragment(&mut self, blocks: &[u32], chunk_blocks: u32) -> Result<(), LogError> {
        let shape = self.table.shape.clone();
        assert!(shape.zones() == 1 && self.live_blocks == 0, "only an empty log is fragmented");
        let kept = self.setting.reserve_segments + self.open.len() as u32;
        let segments = shape.segments().saturating_sub(kept);
        let segment_blocks = shape.segment_blocks(0);
        let room = u64::from(segments) * u64::from(segment_blocks);
        let chunks = even_chunks(room, blocks.len() as u64, chunk_blocks);
        let places: Vec<u64> =
            chunks.flat_map(|(first, length)| first..first + u64::from(length)).collect();
        let apart = places.windows(2).all(|pair| pair[0] < pair[1]);
        if !apart || places.last().is_some_and(|last| *last >= room) {
            let capacity = shape.capacity_blocks();
            return Err(LogError::Full { live: blocks.len() as u64, capacity });
        }
        let mut placed = places.iter().zip(blocks).peekable();
        self.free[0].drain(..segments as usize).for_each(drop);
        for segment in 0..segments {
            let (first, end) = self.table.bounds(segment);
            self.table.opened[segment as usize] = self.clock;
            let base = u64::from(segment) * u64::from(segment_blocks);
            while let Some((place, block)) =
                placed.next_if(|(place, _)| **place < base + u64::from(segment_blocks))
            {
                let slot = first + (place - base) as u32;
                assert_eq!(self.map[*block as usize], NONE, "block {block} is there already");
                self.clock += 1;
                // The placement hears of it as of any other block; where it would go is not asked.
                let _ = self.placement.place_new(*block, false, self.clock);
                self.table.fill(segment, slot, *block);
                self.placement.placed(*block, segment);
                self.map[*block as usize] = slot;
                self.block_times.written(*block, self.clock);
                self.live_blocks += 1;
            }
            self.written_slots += u64::from(end - first);
            self.table.youngest[segment as usize] = self.clock;
            self.table.sealed[segment as usize] = self.clock;
            if self.table.live[segment as usize] == 0 {
                self.release(segment);
            } else {
                self.enter_index(segment);
            }
        }
        Ok(())
    }
}
