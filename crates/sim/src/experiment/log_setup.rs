//! How a log is set up for a workload: everything but its content.

use agewell_core::RandomStreams;
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::victim_policy::OutsideVictim;
use agewell_log::{LogSetting, Trigger, Victim, ZoneUse};

use super::disk_size::shape;
use super::prepared::Prepared;
use crate::config::layout::{Collecting, LogLayout, LogTrigger, PlacementChoice};
use crate::error::RunError;

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
    let victim = prepared.policies.victim.as_ref();
    let shape = shape(layout, &experiment.workload, survey)?;
    // Whole syncs keep one beside the reserve.
    let beside = u32::from(layout.keys.atomic_syncs);
    let reserve_segments = layout.keys.reserve_segments.saturating_sub(beside).max(1);
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
        batch_segments: layout.keys.batch_segments,
        reserve_segments: match layout.keys.placement {
            // As in a store, whose logs share them.
            PlacementChoice::CollectedLifeTable => reserve_segments,
            // Each log that collected blocks may go to needs a segment to open.
            _ => reserve_segments.max(logs as u32),
        },
        eligible_garbage: match layout.trigger {
            LogTrigger::NoFreeSegment | LogTrigger::FreeShare(_) => 0.0,
            // As in the SepBIT simulator: a segment less dead than the average is no victim.
            LogTrigger::Garbage(share) => share,
        },
        header: layout.keys.header,
        ages: layout.ages,
        join_holes: layout.keys.join_holes,
        record_slots: layout.keys.record_blocks,
        threads_ahead: layout.keys.threads_ahead,
        whole_syncs: layout.keys.atomic_syncs,
        lost_turn_ns: 0,
        zone_use: if layout.two_sizes.is_some() {
            ZoneUse::NewFirstCollectedLast
        } else {
            ZoneUse::Any
        },
        tracks_cache: layout.victim == Victim::CostAgeCache,
        stream: RandomStreams::new(experiment.run.seed).stream("layout.victim"),
        victim_policy: victim.map(|policy| Box::new(OutsideVictim::new(policy.copied()))),
        disk: prepared.estimate,
        shape,
    };
    let live = survey.peak_live_blocks + u64::from(prepared.preallocated_blocks);
    let fits = setting.check_fits(live, logs);
    fits.map_err(|error| RunError::Input(format!("[layout]: {error}")))?;
    Ok(setting)
}
