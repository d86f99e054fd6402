//! Prefilling a log before the first request.

use std::ops::Range;

use super::log::{Log, Open};
use super::policy::placement::Placement;
use super::segment_table::NONE;
use super::{BlockDevice, LogError, Unpriced};

/// First places of chunks of `chunk_blocks` that hold `blocks` in all, spread evenly over
/// `capacity` places (Matthews 1999, §6.3: "evenly throughout the disk in chunks of 8 blocks at a
/// time"), with the length of each: the last may be shorter.
pub fn even_chunks(
    capacity: u64,
    blocks: u64,
    chunk_blocks: u32,
) -> impl Iterator<Item = (u64, u32)> {
    let chunk = u64::from(chunk_blocks.max(1));
    let chunks = blocks.div_ceil(chunk);
    (0..chunks).map(move |number| {
        let first = u128::from(number) * u128::from(capacity) / u128::from(chunks.max(1));
        (first as u64, chunk.min(blocks - number * chunk) as u32)
    })
}

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

    /// Puts blocks `first..first + blocks` on the disk, one after another, at no cost; they need not
    /// be numbered yet.
    ///
    /// # Errors
    /// If there is no room left beyond the reserve.
    ///
    /// # Panics
    /// If one of the blocks exists already.
    pub fn preload_run(&mut self, first: u32, blocks: u32) -> Result<(), LogError> {
        if !self.is_indifferent {
            let mut new = (first..first + blocks).map(|block| (block, false));
            self.placement.will_write(&mut new, self.clock + 1);
            // A placement may depend on how many blocks there are so far.
            return (first..first + blocks).try_for_each(|block| {
                self.ensure_blocks(block + 1);
                self.preload(block, &mut Unpriced)
            });
        }
        let end = first + blocks;
        self.ensure_blocks(end);
        let mut next = first;
        while next < end {
            // The first block of a segment is placed alone, since it opens the segment.
            self.preload(next, &mut Unpriced)?;
            next += 1;
            let room = self.open[0].end - self.open[0].next;
            let count = room.min(end - next);
            self.append_preloaded(next, count);
            next += count;
        }
        Ok(())
    }

    /// Appends the new blocks `first..first + count` to the only log, which has room.
    fn append_preloaded(&mut self, first: u32, count: u32) {
        if count == 0 {
            return;
        }
        let Open { segment, next: slot, .. } = self.open[0];
        let places = &mut self.map[first as usize..(first + count) as usize];
        for (number, (place, slot)) in places.iter_mut().zip(slot..).enumerate() {
            assert_eq!(*place, NONE, "block {} is there already", first as usize + number);
            *place = slot;
        }
        for block in first..first + count {
            self.clock += 1;
            self.block_times.written(block, self.clock);
        }
        self.table.fill_run(segment, slot, first..first + count);
        self.table.youngest[segment as usize] = self.clock;
        self.live_blocks += u64::from(count);
        self.counts.new_blocks += u64::from(count);
        self.appended(0, count);
    }

    /// Puts `blocks` on the empty log in chunks of `chunk_blocks` that lie evenly (Matthews 1999,
    /// §6.3), so that all segments but those kept free are partly full. Of several zones each keeps
    /// free what is its share of the slots.
    ///
    /// # Errors
    /// If there is no room.
    ///
    /// # Panics
    /// If one of the blocks exists already, or the log is not empty.
    pub fn fragment(&mut self, blocks: &[u32], chunk_blocks: u32) -> Result<(), LogError> {
        let shape = self.table.shape.clone();
        assert!(self.live_blocks == 0, "only an empty log is fragmented");
        let used = self.fragmented_segments();
        let zone_room = |(zone, segments): (usize, &Range<u32>)| {
            segments.len() as u64 * u64::from(shape.zone(zone).segment_blocks)
        };
        let room: u64 = used.iter().enumerate().map(zone_room).sum();
        let chunks = even_chunks(room, blocks.len() as u64, chunk_blocks);
        let places: Vec<u64> =
            chunks.flat_map(|(first, length)| first..first + u64::from(length)).collect();
        let apart = places.windows(2).all(|pair| pair[0] < pair[1]);
        if !apart || places.last().is_some_and(|last| *last >= room) {
            let capacity = shape.capacity_blocks();
            return Err(LogError::Full { live: blocks.len() as u64, capacity });
        }
        let mut placed = places.iter().zip(blocks).peekable();
        for (free, segments) in self.free.iter_mut().zip(&used) {
            free.drain(..segments.len()).for_each(drop);
        }
        let mut base = 0;
        for segment in used.into_iter().flatten() {
            let (first, end) = self.table.bounds(segment);
            self.table.opened[segment as usize] = self.clock;
            let after = base + u64::from(end - first);
            while let Some((place, block)) = placed.next_if(|(place, _)| **place < after) {
                let slot = first + (place - base) as u32;
                assert_eq!(self.map[*block as usize], NONE, "block {block} is there already");
                self.clock += 1;
                // The placement is notified of it as of any other block, but not asked where it
                // goes.
                let _ = self.placement.place_new(*block, false, self.clock);
                self.table.fill(segment, slot, *block);
                self.placement.placed(*block, segment);
                self.map[*block as usize] = slot;
                self.block_times.written(*block, self.clock);
                self.live_blocks += 1;
            }
            base = after;
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

    /// The segments of each zone that fragmenting fills: all but its share of those kept free.
    fn fragmented_segments(&self) -> Vec<Range<u32>> {
        let shape = &self.table.shape;
        let kept = u128::from(self.setting.reserve_segments) + self.open.len() as u128;
        let kept_slots = kept * u128::from(shape.segment_blocks_max());
        let zone_segments = |zone| {
            let segments = shape.segments_of_zone(zone);
            let slots = segments.len() as u128 * u128::from(shape.zone(zone).segment_blocks);
            let share = (kept_slots * slots).div_ceil(u128::from(shape.capacity_blocks()));
            let kept = share.div_ceil(u128::from(shape.zone(zone).segment_blocks));
            let used = (segments.len() as u128).saturating_sub(kept);
            segments.start..segments.start + used as u32
        };
        (0..shape.zones()).map(zone_segments).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chunks_are_even_apart_and_complete(
            blocks in 1_u64..500,
            spare in 0_u64..500,
            chunk_blocks in 1_u32..10,
        ) {
            // Whole chunks must fit.
            let capacity = blocks.next_multiple_of(u64::from(chunk_blocks)) + spare;
            let chunks: Vec<_> = even_chunks(capacity, blocks, chunk_blocks).collect();
            prop_assert_eq!(chunks.iter().map(|(_, length)| u64::from(*length)).sum::<u64>(), blocks);
            let mut distances = Vec::new();
            for pair in chunks.windows(2) {
                prop_assert!(pair[0].0 + u64::from(pair[0].1) <= pair[1].0);
                distances.push(pair[1].0 - pair[0].0);
            }
            let (last, length) = chunks[chunks.len() - 1];
            prop_assert!(last + u64::from(length) <= capacity);
            if let (Some(least), Some(most)) = (distances.iter().min(), distances.iter().max()) {
                prop_assert!(most - least <= 1);
            }
        }
    }
}
