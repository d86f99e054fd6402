//! An experiment of block requests, from its configuration to its result document.

use agewell_core::{DAY_NS, Operation, RandomStreams, SimDuration, SimTime};
use agewell_disk::{Device, DeviceModel, DeviceParameters, Medium};
use agewell_shuffle::{DriveShape, ShuffleSetting, Shuffler};
use agewell_trace::record::BlockBatch;
use serde_json::{Value, json};

use super::intake::{Intake, Record};
use super::load::{Remedy, overload};
use super::remap::{RemapSummary, Remapper};
use super::replay::{Accounting, Disk};
use super::source::Source;
use super::values::{metrics_value, weighted_improvement_pct};
use crate::config::{
    DeviceChoice, ExperimentKind, RemapSetup, Replay, RequestExperiment, Workload,
};
use crate::drive::load::{load_device, require_writes_anywhere};
use crate::error::RunError;
use crate::metrics::Metrics;
use crate::places::Places;
use crate::result::{DOCUMENT, SCHEMA_VERSION, inputs};

/// A finished run.
pub(crate) struct Run {
    /// The result document.
    pub(crate) document: Value,
    /// Metrics of the requests.
    pub(crate) metrics: Box<Metrics>,
    /// Metrics of the baseline without remapping, if asked for.
    pub(crate) baseline: Option<Box<Metrics>>,
}

/// Runs `experiment`; see [`crate::run()`].
pub(crate) fn run(
    experiment: &RequestExperiment,
    places: Places,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Run, RunError> {
    let parameters = load_device(&experiment.device, places)?;
    let model = DeviceModel::new(&parameters);
    if !experiment.remap.is_identity() {
        require_writes_anywhere(&model, "a shuffled disk ([remap])")?;
    }
    let mut source =
        Source::open(&experiment.workload, places.base, model.capacity(), experiment.run.seed)?;
    // A reader knows the date of its clock's zero only once it has read a batch.
    let mut batch = BlockBatch::default();
    let mut more = source.next_batch(&mut batch)?;
    let midnight_offset_ns = midnight_offset(experiment, &source)?;
    let accounting = accounting(experiment, midnight_offset_ns);
    let shape = DriveShape {
        capacity: model.capacity(),
        cylinders: model.cylinders(),
        heads: heads(&parameters),
    };
    let plan = LanePlan { experiment, model: &model, shape, midnight_offset_ns };
    let mut lanes = vec![Lane::new(&plan, &experiment.remap)];
    let identity = RemapSetup::default();
    if experiment.run.has_baseline() {
        lanes.push(Lane::new(&plan, &identity));
    }
    let mut intake = Intake::new(experiment, &model);
    while more {
        for row in 0..batch.len() {
            let Some(record) = intake.take(&batch, row)? else { continue };
            for lane in &mut lanes {
                lane.take(&record, &accounting)?;
            }
        }
        if !progress(intake.read) {
            return Err(RunError::Interrupted);
        }
        more = source.next_batch(&mut batch)?;
    }
    if intake.read == 0 {
        return Err(RunError::Input(
            "[workload]: no request is left to replay; check the filters and the trace".into(),
        ));
    }
    for lane in &mut lanes {
        lane.finish(&accounting)?;
    }
    finish(experiment, places, &source, &intake, lanes)
}

/// Tracks in a cylinder; a device without an arm has one.
fn heads(parameters: &DeviceParameters) -> u32 {
    match parameters.kind.medium() {
        Medium::Simple(_) => 1,
        Medium::Mechanical(mechanical) => mechanical.geometry.surfaces,
    }
}

fn midnight_offset(experiment: &RequestExperiment, source: &Source) -> Result<u64, RunError> {
    match source.start_wall_ns() {
        Some(wall_ns) => Ok(wall_ns.rem_euclid(DAY_NS as i64) as u64),
        None if needs_time_of_day(experiment) => Err(RunError::Input(
            "[run] exclude_daily and [remap] ignore_window need the time of day, and the workload \
             does not carry the date it began"
                .into(),
        )),
        None => Ok(0),
    }
}

fn needs_time_of_day(experiment: &RequestExperiment) -> bool {
    !experiment.run.exclude_daily.is_empty() || experiment.remap.shuffle.ignore_window.is_some()
}

fn accounting(experiment: &RequestExperiment, midnight_offset_ns: u64) -> Accounting {
    let from = if experiment.run.after_first_rearrangement {
        experiment.remap.first_rearrangement().unwrap_or(SimTime::ZERO)
    } else {
        SimTime::ZERO
    };
    Accounting { exclude_daily: experiment.run.exclude_daily.clone(), midnight_offset_ns, from }
}

/// The parts that every lane is built from.
struct LanePlan<'a> {
    experiment: &'a RequestExperiment,
    model: &'a DeviceModel,
    shape: DriveShape,
    midnight_offset_ns: u64,
}

/// The clock of closed replay on one disk: the request before this one, in the trace and in the
/// simulation.
#[derive(Clone, Copy)]
struct Chain {
    traced_enqueue: SimTime,
    traced_finish: SimTime,
    issued: SimTime,
}

/// The same requests through one remapping, on as many disks as the trace has.
struct Lane<'a> {
    plan: &'a LanePlan<'a>,
    remap: &'a RemapSetup,
    disks: Vec<Disk<DeviceModel>>,
    chains: Vec<Option<Chain>>,
    metrics: Metrics,
}

impl<'a> Lane<'a> {
    fn new(plan: &'a LanePlan<'a>, remap: &'a RemapSetup) -> Self {
        let metrics = Metrics::new(plan.shape.cylinders, plan.experiment.run.series_interval);
        Self { plan, remap, disks: Vec::new(), chains: Vec::new(), metrics }
    }

    fn take(&mut self, record: &Record, accounting: &Accounting) -> Result<(), RunError> {
        while self.disks.len() <= record.disk {
            let disk = self.new_disk()?;
            self.disks.push(disk);
            self.chains.push(None);
        }
        let mut request = record.request;
        if self.is_closed() {
            request.enqueue = self.closed_issue(record, accounting)?;
        }
        let disk = &mut self.disks[record.disk];
        if request.operation == Operation::Discard {
            disk.discard(&request, accounting, &mut self.metrics);
        } else {
            disk.arrive(&request, accounting, &mut self.metrics);
        }
        self.refuse()
    }

    /// The first request that a device refused, as the error that it is.
    fn refuse(&self) -> Result<(), RunError> {
        let Some(refused) = self.disks.iter().find_map(Disk::refused) else { return Ok(()) };
        Err(RunError::Input(format!(
            "[workload]: the device refuses {refused}; replay what was written in zones, or choose \
             a drive that manages its zones itself (management = \"drive\")"
        )))
    }

    fn is_closed(&self) -> bool {
        let workload = &self.plan.experiment.workload;
        matches!(workload, Workload::Trace(trace) if trace.replay.replay == Replay::Closed)
    }

    /// When a request is issued by a host that waits: see [`Replay::Closed`].
    fn closed_issue(
        &mut self,
        record: &Record,
        accounting: &Accounting,
    ) -> Result<SimTime, RunError> {
        let traced_enqueue = record.request.enqueue;
        let traced_finish = record.traced_finish.ok_or_else(|| {
            RunError::Input(
                "[workload]: replay = \"closed\" needs completion times, which this trace does not \
                 carry; use replay = \"open\""
                    .into(),
            )
        })?;
        let issued = match self.chains[record.disk] {
            None => traced_enqueue,
            Some(before) if traced_enqueue >= before.traced_finish => {
                let disk = &mut self.disks[record.disk];
                disk.drain(accounting, &mut self.metrics) + (traced_enqueue - before.traced_finish)
            }
            Some(before) => before.issued + traced_enqueue.saturating_since(before.traced_enqueue),
        };
        self.chains[record.disk] = Some(Chain { traced_enqueue, traced_finish, issued });
        Ok(issued)
    }

    fn new_disk(&self) -> Result<Disk<DeviceModel>, RunError> {
        let remapper = if self.remap.is_identity() {
            Remapper::Identity
        } else {
            let setting = ShuffleSetting {
                shape: self.plan.shape,
                start_of_day: SimDuration(self.plan.midnight_offset_ns),
            };
            let streams = RandomStreams::new(self.plan.experiment.run.seed);
            let shuffler = Shuffler::new(&self.remap.shuffle, &setting, &streams)
                .map_err(|error| RunError::Input(error.to_string()))?;
            Remapper::shuffling(shuffler, self.remap.idle_wait)
        };
        Ok(Disk::new(self.plan.model.clone(), self.plan.experiment.queue, remapper))
    }

    fn finish(&mut self, accounting: &Accounting) -> Result<(), RunError> {
        for disk in &mut self.disks {
            disk.drain(accounting, &mut self.metrics);
        }
        self.refuse()?;
        self.metrics.verify();
        Ok(())
    }

    /// The offered load of the busiest disk.
    fn offered_load(&self) -> Option<f64> {
        let shares = self.disks.iter().filter_map(|disk| disk.offered_load().share());
        shares.reduce(f64::max)
    }

    fn remap_summary(&self) -> Option<RemapSummary> {
        self.disks.iter().filter_map(|disk| disk.remapper().summary()).reduce(RemapSummary::plus)
    }
}

fn finish(
    experiment: &RequestExperiment,
    places: Places,
    source: &Source,
    intake: &Intake,
    lanes: Vec<Lane>,
) -> Result<Run, RunError> {
    let mut summaries = lanes.iter().map(Lane::remap_summary);
    let summary = summaries.next().flatten();
    let loads: Vec<Option<f64>> = lanes.iter().map(Lane::offered_load).collect();
    let mut metrics = lanes.into_iter().map(|lane| lane.metrics);
    let run = metrics.next().expect("there is always one lane");
    let baseline = metrics.next();
    let mut values = metrics_value(&run, summary.as_ref());
    values.insert("requests_without_transfer".into(), json!(intake.without_transfer));
    values.insert("offered_load".into(), json!(loads[0]));
    if let Some(baseline) = &baseline {
        let from_ns = experiment.remap.first_rearrangement().unwrap_or(SimTime::ZERO).0;
        let improvement = weighted_improvement_pct(&run, baseline, from_ns);
        values.insert("weighted_improvement_pct".into(), json!(improvement));
    }
    let baseline_values = baseline.as_ref().map(|metrics| {
        let mut values = metrics_value(metrics, None);
        values.insert("offered_load".into(), json!(loads[1]));
        values
    });
    let mut warnings = intake.warnings();
    warnings.extend(source.warnings());
    if let Some(remedy) = remedy(&experiment.workload, intake) {
        warnings.extend(overload(loads[0], &run, intake.disks.len(), remedy));
    }
    let document = json!({
        "document": DOCUMENT,
        "schema_version": SCHEMA_VERSION,
        "kind": ExperimentKind::Requests.name(),
        "agewell_version": env!("CARGO_PKG_VERSION"),
        "config": experiment.resolved(),
        "seed": experiment.run.seed,
        "inputs": inputs(input_files(experiment), places)?,
        "disks": intake.disks.len(),
        "metrics": values,
        "baseline_metrics": baseline_values,
        "warnings": warnings,
    });
    Ok(Run { document, metrics: Box::new(run), baseline: baseline.map(Box::new) })
}

/// Advice on an overload; none where the host waits for the disk.
fn remedy(workload: &Workload, intake: &Intake) -> Option<Remedy> {
    match workload {
        Workload::Poisson(_) => Some(Remedy::LowerRate),
        Workload::Trace(trace) if trace.replay.replay == Replay::Closed => None,
        Workload::Trace(_) => {
            Some(Remedy::SlowerTrace { has_completions: intake.without_completion == 0 })
        }
    }
}

/// The trace and the device file that the result depends on, as the experiment names them.
fn input_files(experiment: &RequestExperiment) -> (Option<&str>, Option<&str>) {
    let trace = match &experiment.workload {
        Workload::Trace(trace) if trace.file.path != "-" => Some(trace.file.path.as_str()),
        _ => None,
    };
    let device = match &experiment.device {
        DeviceChoice::Model(name) => Some(name.as_str()),
        _ => None,
    };
    (trace, device)
}
