//! How large and how full a store is, in the names of the simulator's metrics where there are any.

use crate::checking::Checked;

/// What a store has, in figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Slots of all segments.
    pub capacity_blocks: u64,
    /// Segments.
    pub segments: u32,
    /// Blocks that users may have at once: without the reserve.
    pub usable_blocks: u64,
    /// Blocks that there are.
    pub live_blocks: u64,
    /// Live blocks over the capacity, as the simulator has it.
    pub utilization: f64,
    /// Segments without a live block that nothing writes to.
    pub free_segments: u32,
    /// Segments that are written to or announced.
    pub open_segments: u32,
    /// Mean live share of the other segments; `None` where there are none.
    pub mean_segment_utilization: Option<f64>,
    /// Blocks that superblocks, roots, ring and map take.
    pub metadata_blocks: u64,
    /// Blocks of the device that users may fill, over all that the store uses.
    pub usable_share: f64,
    /// Blocks that are known to be damaged.
    pub damaged_blocks: u64,
}

/// The figures of a store that was read.
pub fn summary(checked: &Checked) -> Summary {
    let geometry = &checked.geometry;
    let segment_blocks = u64::from(geometry.segment_blocks);
    let capacity_blocks = u64::from(geometry.slots());
    let usable_segments = geometry.segments - geometry.reserve_segments;
    let usable_blocks =
        (u64::from(usable_segments) * segment_blocks).min(u64::from(geometry.blocks));
    let live_blocks = checked.live_of_segments.iter().map(|&live| u64::from(live)).sum::<u64>();
    let mut closed = (0_u32, 0_u64);
    let mut free_segments = 0;
    for (segment, &live) in (0..).zip(&checked.live_of_segments) {
        if checked.open_segments.binary_search(&segment).is_ok() {
            continue;
        }
        if live == 0 {
            free_segments += 1;
        } else {
            closed = (closed.0 + 1, closed.1 + u64::from(live));
        }
    }
    Summary {
        capacity_blocks,
        segments: geometry.segments,
        usable_blocks,
        live_blocks,
        utilization: live_blocks as f64 / capacity_blocks as f64,
        free_segments,
        open_segments: checked.open_segments.len() as u32,
        mean_segment_utilization: (closed.0 > 0)
            .then(|| closed.1 as f64 / (u64::from(closed.0) * segment_blocks) as f64),
        metadata_blocks: geometry.used_blocks.saturating_sub(capacity_blocks),
        usable_share: usable_blocks as f64 / geometry.used_blocks as f64,
        damaged_blocks: checked.map.iter().filter(|(_, entry)| entry.damaged).count() as u64,
    }
}
