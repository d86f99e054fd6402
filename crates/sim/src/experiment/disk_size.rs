//! How large the disk of a run is, and of how many segments a log on it.

use agewell_core::SECTOR_BYTES;
use agewell_layout::write_ahead::JournalPlace;
use agewell_log::{LogShape, Zone};
use agewell_trace::workload::Survey;

use crate::config::layout::{Layout, LogLayout, LogTrigger, ZoneSize};
use crate::config::{LayoutExperiment, WorkloadTable};
use crate::error::RunError;

/// Blocks of a disk that is as full as asked when most is live: a log's is whole segments.
pub(super) fn capacity_blocks(
    experiment: &LayoutExperiment,
    survey: &Survey,
) -> Result<u64, RunError> {
    match &experiment.layout {
        Layout::Log(layout) => Ok(shape(layout, &experiment.workload, survey)?.capacity_blocks()),
        _ => Ok(experiment.workload.capacity_blocks(survey).ceil() as u64),
    }
}

/// Sectors that `layout` takes on a disk that holds `capacity_blocks` of data.
pub(super) fn disk_sectors(layout: &Layout, capacity_blocks: u64) -> Result<u64, RunError> {
    Ok(match layout {
        Layout::Fast(fast) => {
            let parameters = fast.parameters(capacity_blocks).map_err(refused)?;
            parameters.total_bytes() / SECTOR_BYTES
        }
        Layout::Early(early) => {
            early.setting(capacity_blocks).map_err(refused)?.total_bytes.div_ceil(SECTOR_BYTES)
        }
        Layout::WriteAhead(ahead) => {
            let is_here = ahead.place != JournalPlace::OwnDisk;
            let journal = if is_here { ahead.journal_places() * ahead.place_bytes() } else { 0 };
            disk_sectors(&ahead.inner, capacity_blocks)? + journal / SECTOR_BYTES
        }
        _ => capacity_blocks * (layout.block_bytes() / SECTOR_BYTES),
    })
}

pub(super) fn refused(why: impl std::fmt::Display) -> RunError {
    RunError::Input(format!("[layout]: {why}"))
}

/// Blocks of a disk that garbage may lie on freely: what `live` blocks and their garbage take,
/// twice, and some segments for logs to keep open.
pub(crate) fn garbage_capacity(
    live: f64,
    share: f64,
    open_segments: u32,
    segment_blocks: u32,
) -> f64 {
    2.0 * live / (1.0 - share) + f64::from(open_segments) * f64::from(segment_blocks)
}

/// Segments for the live data of `survey` at the utilization asked for.
pub(crate) fn shape(
    layout: &LogLayout,
    workload: &WorkloadTable,
    survey: &Survey,
) -> Result<LogShape, RunError> {
    let live = survey.peak_live_blocks as f64;
    let capacity = match layout.trigger {
        LogTrigger::NoFreeSegment | LogTrigger::FreeShare(_) => workload.capacity_blocks(survey),
        // The disk of the garbage rule has no size: there is room for all that the rule lets lie,
        // and for the segments that logs keep open.
        LogTrigger::Garbage(share) => {
            garbage_capacity(live, share, 4 * layout.keys.logs + 64, layout.segment_blocks())
        }
    };
    let segments = |share: f64, segment_blocks: u32| -> Result<u32, RunError> {
        let segments = (capacity * share / f64::from(segment_blocks)).ceil();
        if segments < 2.0 || segments >= f64::from(u32::MAX) {
            return Err(RunError::Input(format!(
                "[layout] segment_size: {segment_blocks} blocks a segment make {segments} segments \
                 of a disk of {capacity:.0} blocks; a log needs two or more"
            )));
        }
        Ok(segments as u32)
    };
    let small = layout.segment_blocks();
    let zones = match layout.two_sizes {
        None if !layout.keys.zones.is_empty() => {
            let zone = |zone: &ZoneSize| {
                let segment_blocks = (zone.segment_bytes / layout.keys.block_bytes) as u32;
                Ok(Zone { segments: segments(zone.share, segment_blocks)?, segment_blocks })
            };
            layout.keys.zones.iter().map(zone).collect::<Result<Vec<_>, RunError>>()?
        }
        None => vec![Zone { segments: segments(1.0, small)?, segment_blocks: small }],
        Some(sizes) => {
            let large = (sizes.collected_segment_bytes / layout.keys.block_bytes) as u32;
            let share = sizes.collected_share;
            vec![
                Zone { segments: segments(1.0 - share, small)?, segment_blocks: small },
                Zone { segments: segments(share, large)?, segment_blocks: large },
            ]
        }
    };
    LogShape::zoned(&zones).map_err(|error| RunError::Input(format!("[layout]: {error}")))
}
