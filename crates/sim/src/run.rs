//! One experiment from its configuration to its result document.

use std::collections::BTreeMap;
use std::path::Path;

use agewell_core::{
    BlockRequest, DAY_NS, Operation, RandomStreams, SECTOR_BYTES, Sector, SectorCount, SimDuration,
    SimTime, within_64_bits,
};
use agewell_disk::parameters::SimpleParameters;
use agewell_disk::{Device, DeviceKind, DeviceModel, DeviceParameters, Medium, WriteRule};
use agewell_shuffle::{DriveShape, ShuffleSetting, Shuffler};
use agewell_trace::record::{BlockBatch, TIME_MISSING, flag};
use agewell_trace::write_requests;
use serde_json::{Value, json};

use crate::block_host::{self, LayoutExperiment, LogSeries, ThroughputSeries};
use crate::config::{
    BeyondCapacity, ConfigError, DISKS_MAX, DeviceChoice, ExperimentKind, RemapSetup, Replay,
    RequestExperiment, Workload, resolve_path,
};
use crate::error::RunError;
use crate::load::{Remedy, overload};
use crate::metrics::Metrics;
use crate::remap::Remapper;
use crate::replay::{Accounting, Disk};
use crate::result::{
    RemapSummary, SCHEMA_VERSION, inputs, metrics_value, weighted_improvement_pct, write_tables,
    write_whole,
};
use crate::source::Source;

/// Where an experiment finds its files.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Folder that relative paths of the experiment start from.
    pub base: &'a Path,
    /// Folder of the device catalogue.
    pub catalogue: &'a Path,
}

/// A finished run.
#[derive(Debug)]
pub struct Outcome {
    /// The result document, as written to `result.json`.
    pub document: Value,
    pub(crate) tables: Tables,
}

/// What goes into the tables beside the document.
#[derive(Debug)]
pub(crate) enum Tables {
    /// What block requests cost, and what they would have cost without remapping, if asked for.
    Blocks { metrics: Box<Metrics>, baseline: Option<Box<Metrics>> },
    /// How file requests went on, and what a log did meanwhile.
    Files(Box<FileTables>),
}

/// The tables of a run of file requests.
#[derive(Debug)]
pub(crate) struct FileTables {
    pub(crate) log: Option<LogSeries>,
    pub(crate) throughput: ThroughputSeries,
    /// What the layout asked of its device, if that was recorded.
    pub(crate) requests: Option<Box<BlockBatch>>,
}

impl Outcome {
    /// What block requests cost, and what they would have cost without remapping, if asked for;
    /// nothing for file requests.
    #[must_use]
    pub fn block_metrics(&self) -> Option<(&Metrics, Option<&Metrics>)> {
        match &self.tables {
            Tables::Blocks { metrics, baseline } => Some((metrics, baseline.as_deref())),
            Tables::Files(_) => None,
        }
    }

    /// Writes `result.json` and tables (`series.parquet`, `histograms.parquet` for block requests,
    /// `throughput.parquet` for file requests) into
    /// `directory`, which is made if absent. The document comes last: where it stands, the tables do too.
    ///
    /// # Errors
    /// If the directory cannot be made or written to.
    pub fn write(&self, directory: &Path) -> Result<(), RunError> {
        let failed = |source| RunError::Io { path: directory.to_owned(), source };
        std::fs::create_dir_all(directory).map_err(failed)?;
        match &self.tables {
            Tables::Blocks { metrics, baseline } => {
                write_tables(directory, metrics, baseline.as_deref()).map_err(failed)?;
            }
            Tables::Files(tables) => {
                let FileTables { log, throughput, requests } = &**tables;
                log.iter().try_for_each(|log| log.write(directory)).map_err(failed)?;
                throughput.write(directory).map_err(failed)?;
                if let Some(requests) = requests {
                    write_requests(&directory.join("requests.parquet"), &mut requests.clone())?;
                }
            }
        }
        let text = format!("{:#}\n", self.document);
        write_whole(directory, "result.json", text.as_bytes()).map_err(failed)?;
        Ok(())
    }
}

/// Runs `experiment`, whichever layers it has. `progress` is told the number of requests read so far, now and then; if it
/// answers false the run stops with [`RunError::Interrupted`].
///
/// # Errors
/// If a file is missing, damaged or inconsistent, a request does not fit the device, or a number
/// that the experiment leads to does not fit 64 bits.
pub fn run(
    experiment: &Experiment,
    places: Places,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, RunError> {
    let run = || match experiment {
        Experiment::Requests(experiment) => run_requests(experiment, places, progress),
        Experiment::Layout(experiment) => block_host::run(experiment, places, progress),
    };
    within_64_bits(run).unwrap_or_else(|overflow| Err(RunError::Input(overflow.to_string())))
}

/// An experiment, by what its requests are.
#[derive(Debug, Clone, PartialEq)]
pub enum Experiment {
    /// Block requests through remapping and queue.
    Requests(Box<RequestExperiment>),
    /// File requests through the host into a layout.
    Layout(Box<LayoutExperiment>),
}

impl Experiment {
    /// An experiment from `value` (the TOML file as JSON).
    ///
    /// # Errors
    /// Names the table and key.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        match ExperimentKind::of(&value)? {
            ExperimentKind::Requests => {
                RequestExperiment::from_value(value).map(Box::new).map(Self::Requests)
            }
            ExperimentKind::Layout => {
                LayoutExperiment::from_value(value).map(Box::new).map(Self::Layout)
            }
            ExperimentKind::FileSystem => Err(ConfigError(
                "experiment: a file system that ages is run by `agewell run`, and by nobody here"
                    .to_owned(),
            )),
        }
    }

    /// The experiment with every default filled in.
    #[must_use]
    pub fn resolved(&self) -> Value {
        match self {
            Self::Requests(experiment) => experiment.resolved(),
            Self::Layout(experiment) => experiment.resolved(),
        }
    }

    /// Which kind it is.
    #[must_use]
    pub fn kind(&self) -> ExperimentKind {
        match self {
            Self::Requests(_) => ExperimentKind::Requests,
            Self::Layout(_) => ExperimentKind::Layout,
        }
    }
}

fn run_requests(
    experiment: &RequestExperiment,
    places: Places,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, RunError> {
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

/// Refuses a device that takes writes only in order for `what`, which writes anywhere.
///
/// # Errors
/// If the device has such a rule.
pub fn require_writes_anywhere(device: &impl Device, what: &str) -> Result<(), RunError> {
    match device.layout_advice().write_rule {
        WriteRule::Anywhere => Ok(()),
        WriteRule::SequentialInZones { .. } => Err(RunError::Input(format!(
            "[device]: the drive is written in order, zone by zone, and {what} writes anywhere; \
             choose another drive, or one that manages its zones itself (management = \"drive\")"
        ))),
    }
}

fn load_named(name: &str, places: Places) -> Result<DeviceParameters, RunError> {
    let beside = resolve_path(places.base, name);
    let found = if beside.is_file() {
        DeviceParameters::load(&beside)
    } else {
        DeviceParameters::find(name, places.catalogue)
    };
    found.map_err(RunError::Device)
}

/// Device parameters as the experiment chooses them.
///
/// # Errors
/// If there is no such device, or its parameters do not do.
pub fn load_device(choice: &DeviceChoice, places: Places) -> Result<DeviceParameters, RunError> {
    match choice {
        DeviceChoice::Model(name) => load_named(name, places),
        DeviceChoice::Simple(simple) => Ok(DeviceParameters {
            name: "simple".into(),
            title: "a disk of access time and bandwidth".into(),
            capacity_sectors: simple.capacity()? / SECTOR_BYTES,
            kind: DeviceKind::Simple(SimpleParameters {
                access_time_ns: simple.only_access_time()?.0,
                bandwidth_bytes_per_s: simple.bandwidth_bytes_per_s,
            }),
            sources: BTreeMap::new(),
        }),
        DeviceChoice::Inline(value) => {
            let table = toml::Table::try_from(value)
                .map_err(|error| RunError::Input(format!("[device]: {error}")))?;
            DeviceParameters::from_table("[device]", &table).map_err(RunError::Device)
        }
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

/// One record of the source, checked.
struct Record {
    disk: usize,
    request: BlockRequest,
    /// When the traced device completed it, if the trace says.
    traced_finish: Option<SimTime>,
}

/// Checks records and numbers their disks.
struct Intake {
    capacity: SectorCount,
    /// Whether discards go to the device, because it works less for hearing of them.
    serves_discards: bool,
    beyond: BeyondCapacity,
    disks: Vec<u32>,
    last_disk: (u32, usize),
    last_enqueue_ns: u64,
    read: u64,
    left_out: u64,
    wrapped: u64,
    without_transfer: u64,
    without_completion: u64,
    out_of_order: u64,
}

impl Intake {
    fn new(experiment: &RequestExperiment, device: &DeviceModel) -> Self {
        let beyond = match &experiment.workload {
            Workload::Trace(trace) => trace.replay.beyond_capacity,
            Workload::Poisson(_) => BeyondCapacity::Error,
        };
        Self {
            capacity: device.capacity(),
            // Where sectors are moved about, what an address holds is not the trace's to say.
            serves_discards: device.layout_advice().wants_discards
                && experiment.remap.is_identity(),
            beyond,
            disks: Vec::new(),
            last_disk: (u32::MAX, usize::MAX),
            last_enqueue_ns: 0,
            read: 0,
            left_out: 0,
            wrapped: 0,
            without_transfer: 0,
            without_completion: 0,
            out_of_order: 0,
        }
    }

    fn take(&mut self, batch: &BlockBatch, row: usize) -> Result<Option<Record>, RunError> {
        self.read += 1;
        let operation = Operation::from_code(batch.operation[row])
            .expect("readers give canonical operation codes");
        let sectors = SectorCount(u64::from(batch.sectors[row]));
        let heard = operation == Operation::Discard && self.serves_discards;
        if sectors.0 == 0 || !(operation.transfers_data() || heard) {
            self.without_transfer += 1;
            return Ok(None);
        }
        let Some(sector) = self.place(batch.sector[row], sectors)? else { return Ok(None) };
        let enqueue_ns = batch.enqueue_ns[row];
        self.out_of_order += u64::from(enqueue_ns < self.last_enqueue_ns);
        self.last_enqueue_ns = enqueue_ns;
        let finish_ns = batch.finish_ns[row];
        self.without_completion += u64::from(finish_ns == TIME_MISSING);
        Ok(Some(Record {
            disk: self.disk(batch.device[row])?,
            request: BlockRequest {
                enqueue: SimTime(enqueue_ns),
                sector,
                sectors,
                operation,
                synchronous: batch.flags[row] & flag::SYNCHRONOUS != 0,
            },
            traced_finish: (finish_ns != TIME_MISSING).then_some(SimTime(finish_ns)),
        }))
    }

    fn place(&mut self, sector: u64, sectors: SectorCount) -> Result<Option<Sector>, RunError> {
        let fits =
            |sector: u64| sector.checked_add(sectors.0).is_some_and(|end| end <= self.capacity.0);
        if fits(sector) {
            return Ok(Some(Sector(sector)));
        }
        match self.beyond {
            BeyondCapacity::Error => Err(RunError::Input(format!(
                "[workload]: request {} reaches from sector {sector} over {} sectors, beyond the {} of \
                 the device; choose a larger device, a filter such as 'sector=0..{}', or \
                 beyond_capacity = \"skip\" or \"wrap\"",
                self.read, sectors.0, self.capacity.0, self.capacity.0
            ))),
            BeyondCapacity::Skip => {
                self.left_out += 1;
                Ok(None)
            }
            BeyondCapacity::Wrap if sectors > self.capacity => {
                self.left_out += 1;
                Ok(None)
            }
            BeyondCapacity::Wrap => {
                self.wrapped += 1;
                let wrapped = sector % self.capacity.0;
                // A request that would run over the end is moved back to end there.
                Ok(Some(Sector(wrapped.min(self.capacity.0 - sectors.0))))
            }
        }
    }

    fn disk(&mut self, device: u32) -> Result<usize, RunError> {
        if self.last_disk.0 == device && self.last_disk.1 != usize::MAX {
            return Ok(self.last_disk.1);
        }
        let index = match self.disks.iter().position(|known| *known == device) {
            Some(index) => index,
            None if self.disks.len() < DISKS_MAX as usize => {
                self.disks.push(device);
                self.disks.len() - 1
            }
            None => {
                return Err(RunError::Input(format!(
                    "[workload]: more than {DISKS_MAX} devices; choose some with a filter such as \
                     'device=0'"
                )));
            }
        };
        self.last_disk = (device, index);
        Ok(index)
    }

    fn warnings(&self) -> Vec<String> {
        [
            (self.left_out, "requests beyond the device left out"),
            (self.wrapped, "requests beyond the device wrapped to an address within it"),
            (
                self.without_transfer,
                "requests that move no data (discard, flush, empty) not served",
            ),
            (self.out_of_order, "requests enqueued before the one that precedes them in the trace"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

/// What every lane is built from.
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

    /// How much of the busiest disk's time was asked for.
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
) -> Result<Outcome, RunError> {
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
    let (metrics, baseline) = (Box::new(run), baseline.map(Box::new));
    Ok(Outcome { document, tables: Tables::Blocks { metrics, baseline } })
}

/// What can be done about an overload; nothing where the host waits for the disk.
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
