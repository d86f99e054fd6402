//! Laying out what was there before the first request.

use super::log::Log;
use super::policy::placement::Placement;
use super::segment_table::NONE;
use super::{LogDevice, LogError};

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
    pub fn preload(&mut self, block: u32, device: &mut impl LogDevice) -> Result<(), LogError> {
        assert_eq!(self.map[block as usize], NONE, "block {block} is there already");
        self.clock += 1;
        let log = self.placement.place_new(block, false, self.clock) as usize;
        if self.open[log].next == self.open[log].end {
            let roomy = |zones: &std::ops::Range<usize>| {
                self.free_segments(zones.clone()) > self.setting.reserve_segments
            };
            let zones = [self.zones(true), self.zones(false)].into_iter().find(roomy);
            let opened = zones.is_some_and(|zones| self.open_segment(log, zones));
            if !opened {
                let capacity = self.table.shape.capacity_blocks();
                return Err(LogError::Full { live: self.live_blocks, capacity });
            }
        }
        self.append_one(log, block, device);
        Ok(())
    }
}
