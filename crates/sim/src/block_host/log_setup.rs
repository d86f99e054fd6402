//! How a log is set up for a workload: its segments, and everything else but its content.

use agewell_core::RandomStreams;
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::{LogSetting, LogShape, Trigger, Victim, Zone, ZoneUse};
use agewell_trace::workload::Survey;

use super::config::{Collecting, LogLayout, LogTrigger, WorkloadTable, ZoneSize};
use super::prepared::Prepared;
use crate::error::RunError;

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
            garbage_capacity(live, share, 4 * layout.logs + 64, layout.segment_blocks())
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
        None if !layout.zones.is_empty() => {
            let zone = |zone: &ZoneSize| {
                let segment_blocks = (zone.segment_bytes / layout.block_bytes) as u32;
                Ok(Zone { segments: segments(zone.share, segment_blocks)?, segment_blocks })
            };
            layout.zones.iter().map(zone).collect::<Result<Vec<_>, RunError>>()?
        }
        None => vec![Zone { segments: segments(1.0, small)?, segment_blocks: small }],
        Some(sizes) => {
            let large = (sizes.collected_segment_bytes / layout.block_bytes) as u32;
            let share = sizes.collected_share;
            vec![
                Zone { segments: segments(1.0 - share, small)?, segment_blocks: small },
                Zone { segments: segments(share, large)?, segment_blocks: large },
            ]
        }
    };
    LogShape::zoned(&zones).map_err(|error| RunError::Input(format!("[layout]: {error}")))
}

/// The setting of `layout` for the workload of `prepared`, if its placement keeps `logs` logs open.
///
/// # Errors
/// If the live data leaves too little room.
pub(crate) fn log_setting(
    prepared: &Prepared,
    layout: &LogLayout,
    logs: usize,
) -> Result<LogSetting, RunError> {
    let Prepared { experiment, survey, .. } = prepared;
    let shape = shape(layout, &experiment.workload, survey)?;
    let setting = LogSetting {
        blocks: survey.peak_live_blocks as u32,
        clients: prepared.buffers(),
        buffer_blocks: prepared.buffer_blocks(shape.segment_blocks_max()),
        victim: layout.victim,
        collect: match layout.collect {
            Collecting::Fixed(collect) => collect,
            Collecting::Adaptive(_) => Collect::Always(Mechanism::Clean),
        },
        trigger: match layout.trigger {
            LogTrigger::NoFreeSegment => Trigger::NoFreeSegment,
            LogTrigger::Garbage(share) => Trigger::GarbageShare(share),
            LogTrigger::FreeShare(share) => Trigger::FreeShare(share),
        },
        batch_segments: layout.batch_segments,
        // Each log that collected blocks may go to needs a segment to open.
        reserve_segments: layout.reserve_segments.max(logs as u32),
        eligible_garbage: match layout.trigger {
            LogTrigger::NoFreeSegment | LogTrigger::FreeShare(_) => 0.0,
            // As in the SepBIT simulator: a segment less dead than the average is no victim.
            LogTrigger::Garbage(share) => share,
        },
        header: layout.header,
        ages: layout.ages,
        join_holes: layout.join_holes,
        zone_use: if layout.two_sizes.is_some() {
            ZoneUse::NewFirstCollectedLast
        } else {
            ZoneUse::Any
        },
        tracks_cache: layout.victim == Victim::CostAgeCache,
        stream: RandomStreams::new(experiment.run.seed).stream("layout.victim"),
        disk: prepared.estimate,
        shape,
    };
    let live = survey.peak_live_blocks + u64::from(prepared.preallocated_blocks);
    let fits = setting.check_fits(live, logs);
    fits.map_err(|error| RunError::Input(format!("[layout]: {error}")))?;
    Ok(setting)
}
