//! What is settled before a log's first request: what is live, how the disk is divided, what it is
//! to the policies, and whether all of it goes together.

use agewell_core::{RandomStreams, SECTOR_BYTES};
use agewell_disk::{Device, DeviceModel};
use agewell_layout::lfs::policy::cost::CostModel;
use agewell_layout::lfs::policy::mechanism::{Collect, Mechanism};
use agewell_layout::lfs::{LogSetting, LogShape, Trigger, Victim, Zone, ZoneUse};
use agewell_trace::workload::Survey;

use super::config::{
    BufferSize, Collecting, DiskChoice, LogExperiment, LogTrigger, SimpleDisk, ZoneSize,
};
use super::disk::{TimedDisk, measure};
use super::workload::LogSource;
use crate::error::RunError;
use crate::run::{Places, load_model};

/// Everything that is settled before the first request.
pub(crate) struct Prepared<'a> {
    pub(crate) experiment: &'a LogExperiment,
    pub(crate) places: Places<'a>,
    pub(crate) survey: Survey,
    pub(crate) setting: LogSetting,
    drive: Drive,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(experiment: &'a LogExperiment, places: Places<'a>) -> Result<Self, RunError> {
        let survey = open(experiment, places)?.survey()?;
        if survey.peak_live_blocks == 0 {
            return Err(RunError::Input(
                "[workload]: nothing is ever live; check the filters and the trace".into(),
            ));
        }
        if survey.peak_live_blocks >= 1 << 31 {
            return Err(RunError::Input(format!(
                "[workload]: {} live blocks are more than a log can number (2^31); use larger \
                 blocks",
                survey.peak_live_blocks
            )));
        }
        let shape = shape(experiment, &survey)?;
        let span_sectors = shape.capacity_blocks() * (experiment.layout.block_bytes / SECTOR_BYTES);
        let drive = Drive::load(experiment, places)?;
        if let Drive::Mechanical(model) = &drive
            && span_sectors > model.capacity().0
        {
            return Err(RunError::Input(format!(
                "[device]: {} live blocks at a utilization of {} need {span_sectors} sectors, the \
                 device has {}; raise the utilization, choose a larger device or fewer blocks",
                survey.peak_live_blocks,
                experiment.workload.utilization,
                model.capacity().0
            )));
        }
        let estimate = drive.estimate(experiment, span_sectors)?;
        let setting = setting(experiment, &survey, shape, estimate);
        Ok(Self { experiment, places, survey, setting, drive })
    }

    /// The disk, as it is before the first transfer.
    pub(crate) fn disk(&self) -> TimedDisk {
        let block_bytes = self.experiment.layout.block_bytes;
        match &self.drive {
            Drive::Simple(simple) => TimedDisk::simple(simple, block_bytes),
            Drive::Mechanical(model) => {
                let (shape, estimate) = (self.setting.shape.clone(), self.setting.disk);
                TimedDisk::mechanical((**model).clone(), shape, block_bytes, estimate)
            }
        }
    }

    /// The setting for a placement of `logs` logs.
    ///
    /// # Errors
    /// If the live data leaves too little room.
    pub(crate) fn setting_for(&self, logs: usize) -> Result<LogSetting, RunError> {
        let mut setting = self.setting.clone();
        // Each log that collected blocks may go to needs a segment to open.
        setting.reserve_segments = setting.reserve_segments.max(logs as u32);
        setting
            .check_fits(self.survey.peak_live_blocks, logs)
            .map_err(|error| RunError::Input(format!("[layout]: {error}")))?;
        Ok(setting)
    }
}

/// What the disk is, loaded.
enum Drive {
    Simple(SimpleDisk),
    Mechanical(Box<DeviceModel>),
}

impl Drive {
    fn load(experiment: &LogExperiment, places: Places) -> Result<Self, RunError> {
        Ok(match &experiment.device {
            DiskChoice::Simple(simple) => Drive::Simple(*simple),
            DiskChoice::Model(name) => Drive::Mechanical(Box::new(load_model(name, places)?)),
        })
    }

    /// What policies take the first `span_sectors` for.
    fn estimate(
        &self,
        experiment: &LogExperiment,
        span_sectors: u64,
    ) -> Result<CostModel, RunError> {
        let block_bytes = experiment.layout.block_bytes;
        match self {
            Drive::Simple(simple) => Ok(TimedDisk::simple(simple, block_bytes).estimate()),
            Drive::Mechanical(model) => {
                if span_sectors * SECTOR_BYTES < 1 << 20 {
                    return Err(RunError::Input(
                        "[device]: a log of less than 1 MiB is too small to measure a drive on"
                            .into(),
                    ));
                }
                let mut stream = RandomStreams::new(experiment.seed).stream("disk.estimate");
                Ok(measure(model, span_sectors, block_bytes, &mut stream))
            }
        }
    }
}

/// The workload, at its first request.
///
/// # Errors
/// If a parameter is out of range or a trace cannot be opened.
pub(crate) fn open(experiment: &LogExperiment, places: Places) -> Result<LogSource, RunError> {
    let kind = &experiment.workload.kind;
    LogSource::open(kind, places.base, experiment.seed, experiment.layout.block_bytes)
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
fn shape(experiment: &LogExperiment, survey: &Survey) -> Result<LogShape, RunError> {
    let layout = &experiment.layout;
    let live = survey.peak_live_blocks as f64;
    let capacity = match layout.trigger {
        LogTrigger::NoFreeSegment => live / experiment.workload.utilization,
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

fn setting(
    experiment: &LogExperiment,
    survey: &Survey,
    shape: LogShape,
    disk: CostModel,
) -> LogSetting {
    let (layout, host) = (&experiment.layout, &experiment.host);
    let buffer_blocks = match host.buffer_size {
        BufferSize::Segment => shape.segment_blocks_max(),
        BufferSize::Block => 1,
        BufferSize::Bytes(bytes) => u32::try_from(bytes / layout.block_bytes).unwrap_or(u32::MAX),
    };
    LogSetting {
        blocks: survey.peak_live_blocks as u32,
        clients: if host.buffers_per_client { survey.clients.max(1) } else { 1 },
        buffer_blocks,
        victim: layout.victim,
        collect: match layout.collect {
            Collecting::Fixed(collect) => collect,
            Collecting::Adaptive(_) => Collect::Always(Mechanism::Clean),
        },
        trigger: match layout.trigger {
            LogTrigger::NoFreeSegment => Trigger::NoFreeSegment,
            LogTrigger::Garbage(share) => Trigger::GarbageShare(share),
        },
        batch_segments: layout.batch_segments,
        reserve_segments: layout.reserve_segments,
        eligible_garbage: match layout.trigger {
            LogTrigger::NoFreeSegment => 0.0,
            // As in the SepBIT simulator: a segment less dead than the average is no victim.
            LogTrigger::Garbage(share) => share,
        },
        header: layout.header,
        join_holes: layout.join_holes,
        zone_use: if layout.two_sizes.is_some() {
            ZoneUse::NewFirstCollectedLast
        } else {
            ZoneUse::Any
        },
        tracks_cache: layout.victim == Victim::CostAgeCache,
        stream: RandomStreams::new(experiment.seed).stream("layout.victim"),
        disk,
        shape,
    }
}
