//! What is settled before the first request: what is live, how large the disk is, what it is to the
//! policies, and whether all of it goes together.

use agewell_core::{RandomStreams, SECTOR_BYTES};
use agewell_disk::{Device, DeviceModel};
use agewell_log::policy::cost::CostModel;
use agewell_trace::workload::Survey;

use super::disk_size::{capacity_blocks, disk_sectors};
use super::policies::Policies;
use crate::calibrate::measure;
use crate::config::layout::Layout;
use crate::config::{BufferSize, DeviceChoice, LayoutExperiment};
use crate::drive::load::load_device;
use crate::drive::{SimpleDisk, TimedDisk, Zones};
use crate::error::RunError;
use crate::host::kept_requests::KeptRequests;
use crate::host::workload::WorkloadSource;
use crate::places::Places;

/// Everything that is settled before the first request.
pub(crate) struct Prepared<'a> {
    pub(crate) experiment: &'a LayoutExperiment,
    pub(crate) places: Places<'a>,
    /// Policies that are brought along.
    pub(crate) policies: &'a Policies,
    pub(crate) survey: Survey,
    /// The workload at its end, which knows the directory of every file.
    pub(crate) surveyed: WorkloadSource,
    /// Blocks that the disk holds.
    pub(crate) capacity_blocks: u64,
    /// Blocks that are there and are nobody's.
    pub(crate) preallocated_blocks: u32,
    /// What policies take the disk for.
    pub(crate) estimate: CostModel,
    /// Whether every request is served by itself, even where several may be at once: a test holds the
    /// one against the other.
    pub(crate) one_by_one: bool,
    /// The requests of a trace, which had to be read to be surveyed.
    kept: Option<KeptRequests>,
    drive: Drive,
    zones: Zones,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(
        experiment: &'a LayoutExperiment,
        places: Places<'a>,
        policies: &'a Policies,
    ) -> Result<Self, RunError> {
        let mut surveyed = open(experiment, places)?;
        let (survey, kept) = surveyed.survey()?;
        if survey.peak_live_blocks == 0 {
            return Err(RunError::Input(
                "[workload]: nothing is ever live; check the filters and the trace".into(),
            ));
        }
        let capacity_blocks = capacity_blocks(experiment, &survey)?;
        if capacity_blocks >= 1 << 31 {
            return Err(RunError::Input(format!(
                "[workload]: {} live blocks need a disk of more blocks than a layout can number \
                 (2^31); use larger blocks",
                survey.peak_live_blocks
            )));
        }
        let span_sectors = disk_sectors(&experiment.layout, capacity_blocks)?;
        let drive = Drive::load(experiment, places)?;
        let zones = drive.zones(&experiment.layout)?;
        if let Drive::Mechanical(model) = &drive
            && zones.base_sector + span_sectors > model.capacity().0
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
        let preallocated = experiment.workload.preallocated;
        let preallocated_blocks = preallocated
            .map_or(0, |preallocated| (preallocated.share * capacity_blocks as f64) as u32);
        let prepared = Self {
            experiment,
            places,
            policies,
            survey,
            surveyed,
            capacity_blocks,
            preallocated_blocks,
            estimate,
            one_by_one: false,
            kept,
            drive,
            zones,
        };
        prepared.check_buffers()?;
        Ok(prepared)
    }

    /// The workload, at its first request.
    ///
    /// # Errors
    /// If a trace cannot be opened again.
    pub(crate) fn source(&self) -> Result<WorkloadSource, RunError> {
        match &self.kept {
            Some(kept) => Ok(WorkloadSource::Kept(kept.clone())),
            None => open(self.experiment, self.places),
        }
    }

    /// Whether what waits in the buffers of all clients can be numbered.
    fn check_buffers(&self) -> Result<(), RunError> {
        let (buffers, blocks) =
            (self.buffers(), self.buffer_blocks(self.experiment.layout.segment_blocks()));
        if u64::from(buffers) * u64::from(blocks) < 1 << 31 {
            return Ok(());
        }
        Err(RunError::Input(format!(
            "[host] buffers: {buffers} write buffers of {blocks} blocks hold more than can be numbered \
             (2^31); say buffers = \"shared\" or a smaller buffer_size"
        )))
    }

    /// The disk, as it is before the first transfer, under a layout whose places are `unit_bytes`.
    pub(crate) fn disk(&self, unit_bytes: u64) -> TimedDisk {
        let mut disk = match &self.drive {
            Drive::Simple(simple) => {
                let block_bytes = self.experiment.layout.block_bytes();
                TimedDisk::simple(simple, unit_bytes, block_bytes)
            }
            Drive::Mechanical(model) => {
                TimedDisk::mechanical((**model).clone(), unit_bytes, self.estimate)
            }
        };
        disk.set_zones(self.zones);
        disk
    }

    /// Blocks of a write buffer, if a segment has as many.
    pub(crate) fn buffer_blocks(&self, segment_blocks: u32) -> u32 {
        match self.experiment.host.keys.buffer_size {
            BufferSize::Segment => segment_blocks,
            BufferSize::Block => 1,
            BufferSize::Bytes(bytes) => {
                u32::try_from(bytes / self.experiment.layout.block_bytes()).unwrap_or(u32::MAX)
            }
        }
    }

    /// Write buffers.
    pub(crate) fn buffers(&self) -> u32 {
        let per_client = self.experiment.host.keys.buffers_per_client;
        if per_client { self.survey.clients.max(1) } else { 1 }
    }
}

/// What the disk is, loaded.
enum Drive {
    Simple(SimpleDisk),
    Mechanical(Box<DeviceModel>),
}

impl Drive {
    fn load(experiment: &LayoutExperiment, places: Places) -> Result<Self, RunError> {
        Ok(match &experiment.device {
            DeviceChoice::Simple(simple) => Drive::Simple(SimpleDisk::of(simple)),
            device => Drive::Mechanical(Box::new(DeviceModel::new(&load_device(device, places)?))),
        })
    }

    /// The zones that `layout` has to keep to.
    fn zones(&self, layout: &Layout) -> Result<Zones, RunError> {
        match self {
            Drive::Simple(_) => Ok(Zones::default()),
            Drive::Mechanical(model) => Zones::of(model.layout_advice().write_rule, layout),
        }
    }

    /// What policies take the first `span_sectors` for.
    fn estimate(
        &self,
        experiment: &LayoutExperiment,
        span_sectors: u64,
    ) -> Result<CostModel, RunError> {
        let block_bytes = experiment.layout.block_bytes();
        match self {
            Drive::Simple(simple) => Ok(simple.writing(block_bytes)),
            Drive::Mechanical(model) => {
                if span_sectors * SECTOR_BYTES < 1 << 20 {
                    return Err(RunError::Input(
                        "[device]: less than 1 MiB is too small to measure a drive on".into(),
                    ));
                }
                let mut stream = RandomStreams::new(experiment.run.seed).stream("disk.estimate");
                Ok(measure(model, span_sectors, block_bytes, &mut stream))
            }
        }
    }
}

/// The workload, at its first request.
///
/// # Errors
/// If a parameter is out of range or a trace cannot be opened.
fn open(experiment: &LayoutExperiment, places: Places) -> Result<WorkloadSource, RunError> {
    let kind = &experiment.workload.kind;
    WorkloadSource::open(kind, places.base, experiment.run.seed, experiment.layout.block_bytes())
}
