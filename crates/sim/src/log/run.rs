//! One log-structured experiment from its configuration to its result document.

use agewell_layout::lfs::policy::mechanism::{Collect, Mechanism};
use agewell_layout::lfs::policy::placement::{Placement, death_clocks};
use agewell_layout::lfs::{AdaptiveLog, Counts, LogError};
use serde_json::{Map, Value, json};

use super::config::{
    Collecting, DiskChoice, LogExperiment, LogTrigger, LogWorkloadKind, PlacementChoice,
};
use super::host::HostRun;
use super::metrics::{Totals, ideal_ns, metrics};
use super::oracle::{self, Recorder};
use super::placement::AnyPlacement;
use super::prepared::{Prepared, open};
use super::series::LogSeries;
use crate::error::RunError;
use crate::result::{SCHEMA_VERSION, inputs};
use crate::run::{Outcome, Places, Tables};

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

impl Prepared<'_> {
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
        let mut source = open(prepared.experiment, prepared.places)?;
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

fn does_not_fit(error: LogError) -> RunError {
    RunError::Input(format!("[layout]: {error}"))
}
