//! Room for syncs that are all or nothing: it is made before a block is taken in, not amid what is sent.
//!
//! A log collects when its open segment is full, wherever that falls. What a store sends as one must not be
//! parted by a collection, whose copies would have to be durable before the rest. So a store, and a simulated
//! log that stands for one, asks before each block whether all that waits could be sent; a segment beside the
//! reserve takes what does not quite fit into the open one, and is made up for afterwards.

use super::log::Log;
use super::policy::mechanism::{Collect, Mechanism};
use super::policy::placement::Placement;
use super::{BlockDevice, LogError};

impl<P: Placement> Log<P> {
    /// Whether `blocks` more may wait, so that all that waits can be sent without a collection amid it: into
    /// holes, of which `held` may not be filled, or appended.
    #[must_use]
    pub fn can_take(&self, blocks: u32, held: u64) -> bool {
        let waiting: u32 = (0..self.setting.clients).map(|client| self.buffered(client)).sum();
        let needed = u64::from(waiting + blocks);
        let threads = self.setting.collect == Collect::Always(Mechanism::Thread);
        if threads && self.dead_sealed() >= needed + held {
            return true;
        }
        let (rest, free, opened) = self.appended_by(needed);
        let reserve = u64::from(self.setting.reserve_segments) + 1;
        // A log that may collect amid what it writes does so when the open segment is full. What is all or
        // nothing cannot; it goes before or after, whichever is nearer.
        free >= reserve + opened || (free == reserve && opened == 1 && rest * 2 >= needed)
    }

    /// What is left of the open segment of new data, the free segments, and how many of those are opened if
    /// `blocks` blocks are appended.
    #[must_use]
    pub fn appended_by(&self, blocks: u64) -> (u64, u64, u64) {
        let rest = u64::from(self.open_rest());
        let free = self.free[self.zones(false)].iter().map(|free| free.len() as u64).sum();
        let records = self.setting.record_slots;
        let segment_blocks = u64::from(self.table.shape.segment_blocks_max() - records);
        (rest, free, blocks.saturating_sub(rest).div_ceil(segment_blocks))
    }

    /// Whether syncs are whole, and there is no room for one block more.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.setting.whole_syncs && !self.can_take(1, 0)
    }

    /// Makes room until one block more may be written.
    ///
    /// # Errors
    /// If no room can be made for it.
    #[inline(never)]
    pub(super) fn make_room_beforehand(
        &mut self,
        device: &mut impl BlockDevice,
    ) -> Result<(), LogError> {
        // A round of all segments that frees nothing shows that nothing can be freed.
        for _ in 0..2 * self.table.shape.segments() + 2 {
            if self.can_take(1, device.unfillable_most()) {
                return Ok(());
            }
            if !self.make_more_room(0, device)? {
                self.make_room_by_cleaning(device)?;
            }
        }
        Err(self.full())
    }
}
