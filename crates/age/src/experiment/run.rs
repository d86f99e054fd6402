//! One experiment from its configuration to its result document.

use std::path::Path;

use agewell_core::{DAY_NS, RandomStreams, Stream, within_64_bits};
use agewell_disk::DeviceModel;
use agewell_layout::file_system::FileSystem;
use agewell_sim::config::ExperimentKind;
use agewell_sim::result::{DOCUMENT, SCHEMA_VERSION, inputs, write_whole};
use agewell_sim::{Places, RunError, load_device, require_writes_anywhere, resolve_path};
use serde_json::{Map, Value, json};

use super::{AgingExperiment, WorkloadChoice};
use crate::benchmark::simulated::{Bench, OperationCpu, Phase, Sequential};
use crate::benchmark::{SequentialPlan, median_and_deviation};
use crate::onto::Target;
use crate::onto::simulated::SimulatedTarget;
use crate::replay::{
    ReplayFiles, ReplayOptions, ReplayReport, SeriesRow, Until, replay, write_series,
};
use crate::score::{HotPeriod, Report, ScoreOptions, layout_counts, score};
use crate::simulated_layout::AnyFileSystem;
use crate::workload::{WorkloadReader, smith_1996};
use crate::{Action, AgeError, FileKind, LayoutCounts, Operation, Snapshot};

/// A finished experiment.
#[derive(Debug)]
pub struct AgingOutcome {
    /// The result document, as written to `result.json`.
    pub document: Value,
    /// The file system, day by day.
    pub series: Vec<SeriesRow>,
}

impl AgingOutcome {
    /// Writes `result.json` and `series.parquet` into `directory`, which is made if absent; the
    /// document last.
    ///
    /// # Errors
    /// If the directory cannot be made or written to.
    pub fn write(&self, directory: &Path) -> Result<(), AgeError> {
        std::fs::create_dir_all(directory).map_err(AgeError::io("create", directory))?;
        write_series(&directory.join("series.parquet"), &self.series, "{}".to_owned())?;
        let text = format!("{:#}\n", self.document);
        write_whole(directory, "result.json", text.as_bytes())
            .map_err(AgeError::io("write", directory))?;
        Ok(())
    }
}

fn failed(error: RunError) -> AgeError {
    match error {
        RunError::Interrupted => AgeError::Stopped,
        error if error.is_input() => AgeError::Input(error.to_string()),
        error => AgeError::Run(error.to_string()),
    }
}

/// Everything goes to the disk.
const SYNC: Operation = Operation {
    time_ns: 0,
    file: 0,
    directory: 0,
    offset_bytes: 0,
    size_bytes: 0,
    stream: 0,
    action: Action::Sync,
};

type Aged = SimulatedTarget<AnyFileSystem>;

/// Runs `experiment`. `progress` is given the number of operations done so far, now and then; if it
/// answers false the run stops with [`AgeError::Stopped`].
///
/// # Errors
/// If a file is missing or damaged, or what is asked for does not fit, 64 bits among others.
pub fn run(
    experiment: &AgingExperiment,
    places: Places<'_>,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<AgingOutcome, AgeError> {
    within_64_bits(|| run_to_the_end(experiment, places, progress))
        .unwrap_or_else(|overflow| Err(AgeError::Input(overflow.to_string())))
}

fn run_to_the_end(
    experiment: &AgingExperiment,
    places: Places<'_>,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<AgingOutcome, AgeError> {
    let device = match &experiment.device {
        Some(choice) => {
            let device = DeviceModel::new(&load_device(choice, places).map_err(failed)?);
            require_writes_anywhere(&device, "a file system that is measured").map_err(failed)?;
            Some(device)
        }
        None => None,
    };
    let operations = operations(experiment, places)?;
    let named = [Action::Create, Action::Delete, Action::Rename];
    let file_operations =
        operations.iter().filter(|operation| named.contains(&operation.action)).count();
    let facts = experiment.layout.facts();
    let mut target = SimulatedTarget::new(experiment.layout.build()?, facts);
    let report = age(experiment, operations, &mut target, progress)?;
    // A log gives blocks a place when it writes them.
    target.apply(&SYNC)?;
    let mut snapshot = target.snapshot()?;
    // Snapshots are nightly (Smith & Seltzer 1996, §3.1): the days before one are whole days.
    if let Some(last) = report.series.last() {
        snapshot.facts.taken_ns = ((last.day + 1) * DAY_NS) as i64;
    }
    let hot_ns = experiment.measure.hot.map(|hot| hot.0);
    let options = ScoreOptions { hot_period_ns: hot_ns, ..ScoreOptions::default() };
    let scores = score(&snapshot, &options)?;
    let with_tails =
        layout_counts(&snapshot, &ScoreOptions { count_tails: true, ..options }, |_| true)?;
    let mut metrics = aging_metrics(&report, &scores);
    metrics.insert("file_operations".to_owned(), json!(file_operations));
    metrics.insert("layout_score_with_tails".to_owned(), json!(with_tails.score()));
    let tails = LayoutCounts {
        optimal: with_tails.optimal - scores.layout.all.optimal_blocks,
        counted: with_tails.counted - scores.layout.all.counted_blocks,
    };
    metrics.insert("tails_behind_share".to_owned(), json!(tails.score()));
    let mut sequential = Vec::new();
    if let Some(device) = &device {
        let bench = Benches { experiment, target: &target, device };
        bench.raw(&mut metrics, progress)?;
        bench.hot(&snapshot, &scores, &mut metrics, progress)?;
        sequential = bench.sequential(progress)?;
    }
    let path = match &experiment.workload {
        WorkloadChoice::File(path) => Some(path.as_str()),
        WorkloadChoice::None | WorkloadChoice::Smith1996(_) => None,
    };
    let name = experiment.device.as_ref().and_then(|device| device.name());
    let document = json!({
        "document": DOCUMENT,
        "schema_version": SCHEMA_VERSION,
        "kind": ExperimentKind::FileSystem.name(),
        "agewell_version": env!("CARGO_PKG_VERSION"),
        "config": experiment.resolved(),
        "seed": experiment.seed,
        "inputs": inputs((path, name), places).map_err(failed)?,
        "metrics": metrics,
        "baseline_metrics": Value::Null,
        "warnings": warnings(&report),
        "score": scores,
        "sequential": sequential,
    });
    Ok(AgingOutcome { document, series: report.series })
}

fn operations(
    experiment: &AgingExperiment,
    places: Places<'_>,
) -> Result<Vec<Operation>, AgeError> {
    match &experiment.workload {
        WorkloadChoice::None => Ok(Vec::new()),
        WorkloadChoice::File(path) => {
            WorkloadReader::open(&resolve_path(places.base, path))?.read_all()
        }
        WorkloadChoice::Smith1996(parameters) => {
            Ok(smith_1996::generate(parameters, experiment.seed, Vec::new())?.1)
        }
    }
}

fn age(
    experiment: &AgingExperiment,
    operations: Vec<Operation>,
    target: &mut Aged,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<ReplayReport, AgeError> {
    let options = ReplayOptions {
        daily: true,
        seed: experiment.seed,
        until: experiment.days.map(Until::Days).into_iter().collect(),
        ..ReplayOptions::default()
    };
    let block_bytes = experiment.layout.block_bytes();
    let stream = operations.into_iter().map(Ok);
    let mut tell = |so_far: &crate::replay::Progress| progress(so_far.operations);
    let files = ReplayFiles::default();
    replay(stream, target, block_bytes, &options, &files, None, &mut tell)
}

/// What a reader of the result should know.
fn warnings(report: &ReplayReport) -> Vec<String> {
    let outcomes = &report.outcomes;
    let refused = format!(
        "{} operations found no room, {} more were left out because of them; use a larger file \
         system",
        outcomes.no_space, outcomes.skipped
    );
    if outcomes.no_space > 0 { vec![refused] } else { Vec::new() }
}

/// What the replay did and left, under fixed names.
fn aging_metrics(report: &ReplayReport, scores: &Report) -> Map<String, Value> {
    let after = report.usage_after;
    let used = |used: u64| used as f64 / after.total_bytes.max(1) as f64;
    let most = report.series.iter().map(SeriesRow::utilization).fold(0.0, f64::max);
    let mut metrics = Map::new();
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
    put("operations", json!(report.planned.operations));
    put("written_bytes", json!(report.planned.written_bytes));
    put("no_space", json!(report.outcomes.no_space));
    put("utilization", json!(used(after.used_bytes)));
    put("utilization_max", json!(most));
    put("layout_score", json!(scores.layout.all.layout_score));
    put("files", json!(scores.contents.files));
    put("file_bytes", json!(scores.contents.file_bytes));
    metrics
}

struct Benches<'a> {
    experiment: &'a AgingExperiment,
    target: &'a Aged,
    device: &'a DeviceModel,
}

impl Benches<'_> {
    fn bench(&self) -> Bench<'_, AnyFileSystem> {
        let host = self.experiment.host;
        Bench {
            file_system: self.target.file_system(),
            device: self.device,
            host: host.parameters,
            cpu: OperationCpu { file: host.file_cpu },
        }
    }

    fn stream(&self, name: &str) -> Stream {
        RandomStreams::new(self.experiment.seed).stream(name)
    }

    /// One benchmark as often as asked for, unless the caller has had enough.
    fn repeated<T>(
        &self,
        progress: &mut dyn FnMut(u64) -> bool,
        mut once: impl FnMut() -> Result<T, AgeError>,
    ) -> Result<Vec<T>, AgeError> {
        let one = |done| if progress(u64::from(done)) { once() } else { Err(AgeError::Stopped) };
        (0..self.experiment.measure.repetitions).map(one).collect()
    }

    fn raw(
        &self,
        metrics: &mut Map<String, Value>,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), AgeError> {
        let measure = &self.experiment.measure;
        if measure.raw {
            let mut stream = self.stream("raw device");
            let found = self
                .repeated(progress, || self.bench().raw(measure.sequential_bytes, &mut stream))?;
            put_rates(metrics, "raw_read", found.iter().map(|(read, _)| read));
            put_rates(metrics, "raw_write", found.iter().map(|(_, write)| write));
        }
        Ok(())
    }

    fn hot(
        &self,
        snapshot: &Snapshot,
        scores: &Report,
        metrics: &mut Map<String, Value>,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), AgeError> {
        let Some(period) = self.experiment.measure.hot else { return Ok(()) };
        let chosen = hot_files(snapshot, period.0);
        let mut stream = self.stream("hot files");
        let found = self.repeated(progress, || self.bench().existing(&chosen, &mut stream))?;
        let files = self.target.file_system();
        let bytes: u64 = chosen.iter().map(|file| files.size_bytes(*file)).sum();
        metrics.insert("hot_files".to_owned(), json!(chosen.len()));
        metrics.insert("hot_bytes".to_owned(), json!(bytes));
        let layout = scores.layout.hot.as_ref().and_then(|hot| hot.share.layout_score);
        metrics.insert("hot_layout_score".to_owned(), json!(layout));
        put_rates(metrics, "hot_read", found.iter().map(|(read, _)| read));
        put_rates(metrics, "hot_write", found.iter().map(|(_, write)| write));
        Ok(())
    }

    fn sequential(&self, progress: &mut dyn FnMut(u64) -> bool) -> Result<Vec<Value>, AgeError> {
        let measure = &self.experiment.measure;
        let mut stream = self.stream("sequential");
        let mut rows = Vec::with_capacity(measure.sequential.len());
        for file_bytes in &measure.sequential {
            let plan = SequentialPlan::new(
                *file_bytes,
                measure.sequential_bytes,
                measure.files_per_directory,
                measure.sync_each,
            );
            let found = self.repeated(progress, || self.bench().sequential(&plan, &mut stream))?;
            rows.push(sequential_row(&plan, &found));
        }
        Ok(rows)
    }
}

/// The regular files that hold something and are hot, by directory, as the file system numbers them
/// (Smith & Seltzer 1996, §5.2).
fn hot_files(snapshot: &Snapshot, period_ns: u64) -> Vec<u32> {
    let period = HotPeriod::before(snapshot, period_ns);
    let regular = snapshot.files.iter().filter(|file| file.kind == FileKind::Regular);
    let mut hot: Vec<_> =
        regular.filter(|file| file.size_bytes > 0 && period.holds(file)).collect();
    hot.sort_by_key(|file| (file.directory, file.inode));
    hot.iter().map(|file| file.inode as u32).collect()
}

fn put_rates<'a>(
    metrics: &mut Map<String, Value>,
    name: &str,
    phases: impl Iterator<Item = &'a Phase>,
) {
    let rates: Vec<f64> = phases.map(Phase::mb_per_s).collect();
    let (median, deviation) = median_and_deviation(&rates);
    metrics.insert(format!("{name}_mb_per_s"), json!(median));
    metrics.insert(format!("{name}_deviation_mb_per_s"), json!(deviation));
}

fn sequential_row(plan: &SequentialPlan, found: &[Sequential]) -> Value {
    let mut row = Map::new();
    row.insert("file_bytes".to_owned(), json!(plan.file_bytes));
    row.insert("files".to_owned(), json!(plan.files));
    let first = found.first();
    let layout = first.and_then(|one| one.layout.score());
    row.insert("layout_score".to_owned(), json!(layout));
    put_rates(&mut row, "create", found.iter().map(|one| &one.create));
    put_rates(&mut row, "read", found.iter().map(|one| &one.read));
    put_rates(&mut row, "overwrite", found.iter().map(|one| &one.overwrite));
    if let Some(one) = first {
        let phases = [("create", one.create), ("read", one.read), ("overwrite", one.overwrite)];
        for (name, phase) in phases {
            let accounts = phase.accounts;
            let requests = accounts.reads.requests + accounts.writes.requests;
            row.insert(format!("{name}_requests"), json!(requests));
            let seconds = accounts.busy_ns() as f64 / 1e9;
            row.insert(format!("{name}_disk_seconds"), json!(seconds));
        }
    }
    Value::Object(row)
}
