//! What a log would pay that knows when each block dies.
//!
//! The new blocks that reach the disk come in the same order whatever the log does with them. They
//! are recorded once, with the deletions between them; then a log with a class for each of the
//! next 255 segments of lifetime takes them again, each block in the class of its death, on a disk
//! of the same utilization, collected greedily. That log is not the best there could be, but it
//! knows what none can know: no placement here comes near it.

use agewell_log::policy::cost::CostModel;
use agewell_log::policy::placement::{Oracle, death_clocks};
use agewell_log::{Counts, Log, LogError, LogSetting, LogShape, Trigger, Unpriced};

use super::disk_size::garbage_capacity;
use super::placement::AnyPlacement;
use super::recorder::DELETION;

/// Classes of lifetime: as many as a log may have.
const CLASSES: usize = 256;

/// What the oracle's log did with `events` of `blocks` blocks, those after the first `preloaded`, at
/// `garbage` dead blocks of all written.
pub(crate) fn replay(
    events: &[u32],
    preloaded: usize,
    blocks: u32,
    segment_blocks: u32,
    garbage: f64,
    disk: CostModel,
) -> Result<Counts, LogError> {
    // A deletion is a death, so it stands for a write of the same block that takes no place.
    let named: Vec<u32> = events.iter().map(|event| event & !DELETION).collect();
    let all_deaths = death_clocks(&named, blocks as usize);
    // Clocks count writes alone.
    let mut clocks = Vec::with_capacity(events.len() + 1);
    clocks.push(0_u32);
    let mut clock = 0;
    for event in events {
        clock += u32::from(event & DELETION == 0);
        clocks.push(clock);
    }
    let deaths: Vec<u32> = events
        .iter()
        .zip(&all_deaths)
        .filter(|(event, _)| *event & DELETION == 0)
        .map(|(_, death)| clocks.get(*death as usize).copied().unwrap_or(u32::MAX))
        .collect();
    let room = garbage_capacity(f64::from(blocks), garbage, CLASSES as u32 + 8, segment_blocks);
    let segments = (room / f64::from(segment_blocks)).ceil() as u32;
    let full = |_| LogError::Full { live: u64::from(blocks), capacity: room as u64 };
    let shape = LogShape::uniform(segments, segment_blocks).map_err(full)?;
    let setting = LogSetting {
        trigger: Trigger::GarbageShare(garbage),
        ..LogSetting::plain(shape, blocks, disk)
    };
    let oracle = Oracle::new(deaths, blocks as usize, segment_blocks, CLASSES);
    let mut log = Log::new(setting, AnyPlacement::Oracle(oracle)).map_err(full)?;
    let mut before = Counts::default();
    for (place, event) in events.iter().enumerate() {
        if place == preloaded {
            before = *log.counts();
        }
        if event & DELETION == 0 {
            log.write(*event, 0, &mut Unpriced)?;
        } else {
            log.delete(event & !DELETION, &mut Unpriced);
        }
    }
    Ok(log.counts().since(&before))
}
