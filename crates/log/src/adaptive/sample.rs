//! Which blocks of a large log are looked at.
//!
//! Of every `scale` neighbouring groups of blocks one is in the sample, on as many times fewer
//! segments. Groups keep neighbours together; one sync in `scale` is passed on, so that partial
//! segments are as large as the real ones.

use agewell_core::mix;

use crate::policy::placement::Placement;
use crate::segment_table::NONE;
use crate::transfer_times::Spread;
use crate::{Call, Log, LogSetting, LogShape, ShapeError, Trigger, Zone};

/// Blocks in a sample at most; chosen by us: 16 GiB of 8 KiB blocks are still looked at whole, and
/// their history takes 32 MB. Samples of half a log, of up to 16,384 blocks, misjudge mechanisms by
/// 10 % and more at twice as many points.
const SAMPLE_BLOCKS_MAX: u32 = 1 << 21;

/// Neighbouring blocks that are in the sample together or not at all; chosen by us: of the order of
/// a small file.
const GROUP_BLOCKS: u32 = 16;

/// Which blocks are in the sample: of every `scale` neighbouring groups the one that a hash picks,
/// so that exactly the same share of any dense range is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    scale: u32,
}

impl Sample {
    /// The sample of a log of this many blocks.
    pub(super) fn of_log(blocks: u32) -> Self {
        Self { scale: blocks.div_ceil(SAMPLE_BLOCKS_MAX).max(1) }
    }

    /// The sample's number of `block`, if it is in it.
    #[inline]
    pub(super) fn number_of(self, block: u32) -> Option<u32> {
        if self.scale == 1 {
            return Some(block);
        }
        let group = block / GROUP_BLOCKS;
        let (window, place) = (group / self.scale, group % self.scale);
        (self.picked(window) == place).then_some(window * GROUP_BLOCKS + block % GROUP_BLOCKS)
    }

    /// The sample's numbers of the blocks that are in it and have a slot in `map`, in order.
    pub(super) fn numbers_of(self, map: &[u32]) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(self.blocks(map.len() as u32) as usize);
        // Only the groups that are picked are looked at, in a loop that waits for several at a time.
        let groups = map.len().div_ceil(GROUP_BLOCKS as usize) as u32;
        for window in 0..groups.div_ceil(self.scale) {
            let first = (window * self.scale + self.picked(window)) * GROUP_BLOCKS;
            let group = map.get(first as usize..).unwrap_or_default();
            for (number, slot) in (window * GROUP_BLOCKS..).zip(group).take(GROUP_BLOCKS as usize) {
                if *slot != NONE {
                    numbers.push(number);
                }
            }
        }
        numbers
    }

    /// Which group of `window` is in the sample.
    #[inline]
    fn picked(self, window: u32) -> u32 {
        (mix(u64::from(window)) % u64::from(self.scale)) as u32
    }

    /// `call` in the sample's numbers, if it concerns the sample. Of syncs and of many blocks at once
    /// the sample has a part: those are left as they are.
    #[inline]
    pub(super) fn call_of(self, call: Call<'_>) -> Option<Call<'_>> {
        Some(match call {
            Call::EnsureBlocks(blocks) => Call::EnsureBlocks(self.blocks(blocks)),
            Call::Preload(block) => Call::Preload(self.number_of(block)?),
            Call::Write { block, client } => Call::Write { block: self.number_of(block)?, client },
            Call::Delete(block) => Call::Delete(self.number_of(block)?),
            Call::SetResident { block, resident } => {
                Call::SetResident { block: self.number_of(block)?, resident }
            }
            Call::Sync { .. } | Call::Fragment { .. } => call,
        })
    }

    /// Numbers the sample needs for `blocks`.
    pub(super) fn blocks(self, blocks: u32) -> u32 {
        if self.scale == 1 {
            return blocks;
        }
        blocks.div_ceil(GROUP_BLOCKS).div_ceil(self.scale) * GROUP_BLOCKS
    }

    /// Whether the last of this many syncs is for the sample too.
    pub(super) fn passes_sync(self, syncs: u32) -> bool {
        syncs >= self.scale
    }

    /// The setting of a log of the sample alone; none if that is the log itself.
    ///
    /// It has a fifth more segments than the scale says: how many of them are used follows the
    /// utilization of the log itself, because the sample's own share of live blocks is only about
    /// right.
    pub(super) fn setting(self, setting: &LogSetting) -> Result<Option<LogSetting>, ShapeError> {
        if self.scale == 1 {
            return Ok(None);
        }
        let zones = (0..setting.shape.zones()).map(|zone| {
            let Zone { segments, segment_blocks } = setting.shape.zone(zone);
            let segments = (segments / self.scale).max(8) * 6 / 5 + setting.reserve_segments;
            Zone { segments, segment_blocks }
        });
        let shape = LogShape::zoned(&zones.collect::<Vec<_>>())?;
        Ok(Some(LogSetting { shape, blocks: self.blocks(setting.blocks), ..setting.clone() }))
    }

    /// How much farther apart than in a log of the sample, whose segments are as large, its segments
    /// lie.
    pub(super) fn spread(self, segment_blocks: u32) -> Spread {
        Spread { near_blocks: segment_blocks, scale: self.scale }
    }

    /// Leaves as much of `follower`, a log of the sample, unused as makes it as full as `log`.
    pub(super) fn keep_utilization<P: Placement>(self, follower: &mut Log<P>, log: &Log<P>) {
        if self.scale == 1 || follower.setting.trigger != Trigger::NoFreeSegment {
            return;
        }
        let utilization = log.live_blocks() as f64 / log.shape().capacity_blocks() as f64;
        let shape = follower.shape();
        let blocks = shape.segment_blocks_max();
        let used = (follower.live_blocks() as f64 / utilization / f64::from(blocks)).ceil() as u32;
        let least = follower.placement().logs() as u32;
        // A reserve counts in largest segments.
        let segments = (shape.capacity_blocks() / u64::from(blocks)) as u32;
        let unused = segments.saturating_sub(used);
        follower.setting.reserve_segments = unused.clamp(least, segments / 2);
    }
}
