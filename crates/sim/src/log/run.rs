//! One log-structured experiment from its configuration to its result document.

use agewell_core::{RandomStreams, SECTOR_BYTES};
use agewell_disk::{Device, DeviceModel};
use agewell_layout::lfs::policy::cost::CostModel;
use agewell_layout::lfs::policy::mechanism::{Collect, Mechanism};
use agewell_layout::lfs::policy::placement::{Placement, death_clocks};
use agewell_layout::lfs::{
    AdaptiveLog, Counts, LogError, LogSetting, LogShape, Trigger, Victim, Zone, ZoneUse,
};
use agewell_trace::workload::Survey;
use serde_json::{Map, Value, json};

use super::config::{
    BufferSize, Collecting, DiskChoice, LogExperiment, LogTrigger, LogWorkloadKind,
    PlacementChoice, ZoneSize,
};
use super::disk::{TimedDisk, measure};
use super::host::HostRun;
use super::metrics::{Totals, ideal_ns, metrics};
use super::oracle::{self, Recorder};
use super::placement::AnyPlacement;
use super::series::LogSeries;
use super::workload::{LogSource, survey};
use crate::error::RunError;
use crate::result::{SCHEMA_VERSION, inputs};
use crate::run::{Outcome, Places, Tables, load_model};

/// What a run is told of its progress and may answer with a stop.
type Progress<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Runs `experiment`; see [`crate::run()`].
pub(crate) fn run(
    experiment: &LogExperiment,
    places: Places,
    progress: Progress,
) -> Result<Outcome, RunError> {
    let prepared = Prepared::new(experiment, places)?;
    if experiment.layout.placement == PlacementChoice::Oracle {
        prepared.run_oracle(progress)
    } else {
        prepared.run_with(&[], progress)
    }
}

/// Everything that is settled before the first request.
struct Prepared<'a> {
    experiment: &'a LogExperiment,
    places: Places<'a>,
    survey: Survey,
    setting: LogSetting,
    model: Option<DeviceModel>,
}

impl<'a> Prepared<'a> {
    fn new(experiment: &'a LogExperiment, places: Places<'a>) -> Result<Self, RunError> {
        let (source, known) = open(experiment, places)?;
        let survey = match known {
            Some(survey) => survey,
            None => survey(source)?,
        };
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
        let model = match &experiment.device {
            DiskChoice::Model(name) => Some(load_model(name, places)?),
            DiskChoice::Simple(_) => None,
        };
        if let Some(model) = &model
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
        let estimate = estimate(experiment, model.as_ref(), span_sectors)?;
        let setting = setting(experiment, &survey, shape, estimate);
        Ok(Self { experiment, places, survey, setting, model })
    }

    fn disk(&self) -> TimedDisk {
        let block_bytes = self.experiment.layout.block_bytes;
        match (&self.experiment.device, &self.model) {
            (DiskChoice::Simple(simple), _) => TimedDisk::simple(simple, block_bytes),
            (DiskChoice::Model(_), Some(model)) => {
                let shape = self.setting.shape.clone();
                TimedDisk::mechanical(model.clone(), shape, block_bytes, self.setting.disk)
            }
            (DiskChoice::Model(_), None) => unreachable!("a model that is named is loaded"),
        }
    }

    fn setting_for(&self, logs: usize) -> Result<LogSetting, RunError> {
        let mut setting = self.setting.clone();
        // Each log that collected blocks may go to needs a segment to open.
        setting.reserve_segments =
            setting.reserve_segments.max(if logs > 1 { logs as u32 } else { 1 });
        setting
            .check_fits(self.survey.peak_live_blocks, logs)
            .map_err(|error| RunError::Input(format!("[layout]: {error}")))?;
        Ok(setting)
    }

    fn run_with(&self, deaths: &[u32], progress: Progress) -> Result<Outcome, RunError> {
        let layout = &self.experiment.layout;
        let (segment_blocks, seed) = (layout.segment_blocks(), self.experiment.seed);
        let make = |blocks: u32| {
            AnyPlacement::new(layout.placement, blocks, segment_blocks, layout.logs, seed, deaths)
        };
        let first = make(self.setting.blocks);
        let setting = self.setting_for(first.logs())?;
        let log = match &self.experiment.layout.collect {
            Collecting::Fixed(_) => AdaptiveLog::fixed(setting, first),
            Collecting::Adaptive(mechanisms) => AdaptiveLog::among(mechanisms, setting, make),
        };
        let log = log.map_err(|error| RunError::Input(format!("[layout]: {error}")))?;
        let mut lane = Lane::new(self, log)?;
        lane.run(self, progress)?;
        let mut values = lane.values(self);
        if self.experiment.lower_bound {
            self.add_lower_bound(&mut values, progress)?;
        }
        self.outcome(lane, values)
    }

    /// A log whose placement is the oracle: the writes are taken down first.
    fn run_oracle(&self, progress: Progress) -> Result<Outcome, RunError> {
        let recorded = self.record(progress)?;
        let events = recorded.host.log.log().placement().events();
        if events.iter().any(|event| event >> 31 == 1) {
            return Err(RunError::Input(
                "[layout] placement: the oracle takes workloads without deletions; use [run] \
                 lower_bound = true, which knows them"
                    .into(),
            ));
        }
        let blocks = recorded.host.log.log().blocks();
        let deaths = death_clocks(events, blocks as usize);
        self.run_with(&deaths, progress)
    }

    /// The same workload on one log that is cleaned, with what reached the disk taken down.
    fn record(&self, progress: Progress) -> Result<Lane, RunError> {
        let mut setting = self.setting_for(1)?;
        setting.collect = Collect::Always(Mechanism::Clean);
        let log = AdaptiveLog::fixed(setting, AnyPlacement::Recorder(Recorder::default()))
            .map_err(|error| RunError::Input(format!("[layout]: {error}")))?;
        let mut lane = Lane::new(self, log)?;
        lane.run(self, progress)?;
        Ok(lane)
    }

    /// Metrics of a log that knows when each block dies.
    fn add_lower_bound(
        &self,
        values: &mut Map<String, Value>,
        progress: Progress,
    ) -> Result<(), RunError> {
        let lane = self.record(progress)?;
        let segment_blocks = self.experiment.layout.segment_blocks();
        let garbage = match self.experiment.layout.trigger {
            LogTrigger::Garbage(share) => share,
            // Below a tenth of use nothing is ever collected, and a disk that large is not needed to
            // show it.
            LogTrigger::NoFreeSegment => (1.0 - self.experiment.workload.utilization).min(0.9),
        };
        let log = lane.host.log.log();
        let events = log.placement().events();
        let preloaded = self.survey.initial_blocks as usize;
        let blocks = log.blocks();
        // A log too large for the oracle's many classes has no such figure; the run itself stands.
        let replayed =
            oracle::replay(events, preloaded, blocks, segment_blocks, garbage, &self.setting);
        let Ok(counts) = replayed else {
            for name in ["lower_bound_write_amplification", "lower_bound_overall_write_cost"] {
                values.insert(name.into(), Value::Null);
            }
            return Ok(());
        };
        values
            .insert("lower_bound_write_amplification".into(), json!(counts.write_amplification()));
        // New data as the plain log wrote it, and whole segments read and written to collect.
        let meter = lane.host.disk.meter();
        let new = super::metrics::write_cost(meter, lane.measured().new_blocks);
        let segment_ns = self.setting.disk.blocks_ns(segment_blocks) as f64;
        let moved = (counts.read_blocks + counts.cleaned_blocks) as f64 / f64::from(segment_blocks);
        let ideal = ideal_ns(&self.setting.disk, counts.new_blocks);
        let cost = new.zip(ideal).map(|(new, ideal)| new.new_data + moved * segment_ns / ideal);
        values.insert("lower_bound_overall_write_cost".into(), json!(cost));
        Ok(())
    }

    fn outcome(&self, lane: Lane, mut values: Map<String, Value>) -> Result<Outcome, RunError> {
        let shape = &self.setting.shape;
        values.insert("capacity_blocks".into(), json!(shape.capacity_blocks()));
        values.insert("segments".into(), json!(shape.segments()));
        values.insert("peak_live_blocks".into(), json!(self.survey.peak_live_blocks));
        values.insert("initial_blocks".into(), json!(self.survey.initial_blocks));
        let disk = &self.setting.disk;
        let document = json!({
            "schema_version": SCHEMA_VERSION,
            "agewell_version": env!("CARGO_PKG_VERSION"),
            "config": self.experiment.resolved(),
            "seed": self.experiment.seed,
            "inputs": inputs(self.input_files(), self.places)?,
            "disk_estimate": {
                "access_ms": disk.access_ns as f64 / 1e6,
                "further_ms": disk.further_ns as f64 / 1e6,
                "bandwidth_mb_per_s": disk.bandwidth_bytes_per_s as f64 / 1e6,
            },
            "metrics": values,
            "baseline_metrics": Value::Null,
            "warnings": lane.warnings,
        });
        Ok(Outcome { document, tables: Tables::Log(lane.series) })
    }

    fn input_files(&self) -> (Option<&str>, Option<&str>) {
        let trace = match &self.experiment.workload.kind {
            LogWorkloadKind::BlockTrace { path, .. } | LogWorkloadKind::FileTrace { path } => {
                Some(path.as_str())
            }
            _ => None,
        };
        let device = match &self.experiment.device {
            DiskChoice::Model(name) => Some(name.as_str()),
            DiskChoice::Simple(_) => None,
        };
        (trace, device)
    }
}

/// One log under the whole workload.
struct Lane {
    host: HostRun,
    before: Counts,
    series: LogSeries,
    transactions: Option<u64>,
    warnings: Vec<String>,
}

impl Lane {
    fn new(prepared: &Prepared, log: AdaptiveLog<AnyPlacement>) -> Result<Self, RunError> {
        let experiment = prepared.experiment;
        let reads = !matches!(
            experiment.workload.kind,
            LogWorkloadKind::RandomUpdate(_)
                | LogWorkloadKind::HotCold(_)
                | LogWorkloadKind::Zipf(_)
                | LogWorkloadKind::Sequential(_)
        );
        let caches = reads || prepared.setting.tracks_cache;
        let clients = prepared.survey.clients.max(1);
        let block_bytes = experiment.layout.block_bytes;
        let disk = prepared.disk();
        let mut host = HostRun::new(log, disk, experiment.host, clients, block_bytes, caches);
        host.preload(&prepared.survey.initial).map_err(does_not_fit)?;
        host.disk.begin_measuring();
        let before = *host.log.counts();
        let series = LogSeries::new(prepared.survey.peak_live_blocks, &before);
        Ok(Self { host, before, series, transactions: None, warnings: Vec::new() })
    }

    fn run(&mut self, prepared: &Prepared, progress: Progress) -> Result<(), RunError> {
        let (mut source, _) = open(prepared.experiment, prepared.places)?;
        let mut batch = Vec::new();
        while source.next_batch(&mut batch)? {
            for request in &batch {
                self.host.serve(request).map_err(does_not_fit)?;
            }
            let log = self.host.log.log();
            let (counts, meter) = (log.counts(), self.host.disk.meter());
            self.series.note(counts, meter, log.live_blocks(), log.collect_rule());
            if !progress(self.host.counts.requests) {
                return Err(RunError::Interrupted);
            }
        }
        self.host.finish().map_err(does_not_fit)?;
        self.host.log.verify();
        self.transactions = source.transactions();
        self.warnings = source.warnings();
        Ok(())
    }

    /// What was done since the first request.
    fn measured(&self) -> Counts {
        self.host.log.counts().since(&self.before)
    }

    fn values(&self, prepared: &Prepared) -> Map<String, Value> {
        metrics(&Totals {
            counts: self.measured(),
            meter: self.host.disk.meter(),
            reads: self.host.disk.reads(),
            host: self.host.counts,
            segment_blocks: prepared.experiment.layout.segment_blocks(),
            elapsed_ns: self.host.disk.now_ns(),
            transactions: self.transactions,
        })
    }
}

fn open(
    experiment: &LogExperiment,
    places: Places,
) -> Result<(LogSource, Option<Survey>), RunError> {
    let kind = &experiment.workload.kind;
    LogSource::open(kind, places.base, experiment.seed, experiment.layout.block_bytes)
}

fn does_not_fit(error: LogError) -> RunError {
    RunError::Input(format!("[layout]: {error}"))
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
            2.0 * live / (1.0 - share)
                + f64::from(4 * layout.logs + 64) * f64::from(layout.segment_blocks())
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

fn estimate(
    experiment: &LogExperiment,
    model: Option<&DeviceModel>,
    span_sectors: u64,
) -> Result<CostModel, RunError> {
    let block_bytes = experiment.layout.block_bytes;
    match (&experiment.device, model) {
        (DiskChoice::Simple(simple), _) => Ok(TimedDisk::simple(simple, block_bytes).estimate()),
        (DiskChoice::Model(_), Some(model)) => {
            if span_sectors * SECTOR_BYTES < 1 << 20 {
                return Err(RunError::Input(
                    "[device]: a log of less than 1 MiB is too small to measure a drive on".into(),
                ));
            }
            let mut stream = RandomStreams::new(experiment.seed).stream("disk.estimate");
            Ok(measure(model, span_sectors, block_bytes, &mut stream))
        }
        (DiskChoice::Model(_), None) => unreachable!("a model that is named is loaded"),
    }
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
