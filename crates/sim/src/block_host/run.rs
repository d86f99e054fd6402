//! One experiment of file requests, from its configuration to its result document, whatever the
//! layout.

use std::sync::atomic::{AtomicBool, Ordering};

use agewell_layout::block_layout::{BlockCounts, BlockLayout, LayoutError};
use agewell_layout::file_system_blocks::ExaminedFileSystem;
use agewell_layout::write_anywhere::{WriteAnywhere, WriteAnywhereSetting};
use agewell_log::BlockDevice;
use serde_json::{Map, Value, json};

use super::config::{FileWorkloadKind, Layout, LayoutExperiment, WriteAheadLayout};
use super::host::{HostRun, LOOKED_UP_TOGETHER};
use super::in_place_setup::journaled;
use super::log_run;
use super::metrics::{Totals, metrics};
use super::prepared::Prepared;
use super::series::{LogSeries, ThroughputSeries};
use crate::config::{DeviceChoice, ExperimentKind};
use crate::error::RunError;
use crate::prefetch::Prefetch;
use crate::result::{SCHEMA_VERSION, inputs_unless};
use crate::run::{FileTables, Outcome, Places, Tables};

/// What a run is told of its progress and may answer with a stop.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Runs `experiment`; see [`crate::run()`].
pub(crate) fn run(
    experiment: &LayoutExperiment,
    places: Places,
    progress: Progress,
) -> Result<Outcome, RunError> {
    let (stopped, files) = (AtomicBool::new(false), input_files(experiment));
    // A long trace takes as long to hash as to read: its hash is made beside the run.
    std::thread::scope(|scope| {
        let hashing = scope.spawn(|| inputs_unless(&stopped, files, places));
        let outcome = run_layout(experiment, places, progress);
        stopped.store(outcome.is_err(), Ordering::Relaxed);
        let hashed = hashing.join().expect("hashing a file does not panic");
        let mut outcome = outcome?;
        outcome.document["inputs"] = hashed?;
        Ok(outcome)
    })
}

fn input_files(experiment: &LayoutExperiment) -> (Option<&str>, Option<&str>) {
    let trace = match &experiment.workload.kind {
        FileWorkloadKind::BlockTrace(trace) => Some(trace.path.as_str()),
        FileWorkloadKind::FileTrace(trace) => Some(trace.path.as_str()),
        _ => None,
    };
    let device = match &experiment.device {
        DeviceChoice::Model(name) => Some(name.as_str()),
        DeviceChoice::Simple(_) | DeviceChoice::Inline(_) => None,
    };
    (trace, device)
}

/// All of a run but the hashes of its inputs, whose place in the document is left empty.
fn run_layout(
    experiment: &LayoutExperiment,
    places: Places,
    progress: Progress,
) -> Result<Outcome, RunError> {
    let prepared = Prepared::new(experiment, places)?;
    match &experiment.layout {
        Layout::Log(layout) => log_run::run(&prepared, layout, progress),
        Layout::Sequential(layout) => run_plain(&prepared, prepared.sequential(layout), progress),
        Layout::Fast(layout) => run_plain(&prepared, prepared.fast(layout)?, progress),
        Layout::Early(layout) => run_plain(&prepared, prepared.early(layout)?, progress),
        Layout::WriteAhead(layout) => run_journaled(&prepared, layout, progress),
        Layout::WriteAnywhere(layout) => {
            let setting = WriteAnywhereSetting {
                capacity_blocks: prepared.capacity_blocks as u32,
                block_bytes: layout.block_bytes,
                clients: prepared.buffers(),
                buffer_blocks: prepared.plain_buffer_blocks(),
                search: layout.search,
                recovery: layout.recovery,
                checkpoint_blocks: layout.checkpoint_blocks,
            };
            run_plain(&prepared, WriteAnywhere::new(setting).map_err(does_not_fit)?, progress)
        }
    }
}

/// Runs a layout behind a journal.
fn run_journaled(
    prepared: &Prepared,
    layout: &WriteAheadLayout,
    progress: Progress,
) -> Result<Outcome, RunError> {
    match &*layout.inner {
        Layout::Fast(inner) => {
            let inner = prepared.fast(inner)?;
            let system = inner.system();
            let places = system.total_sectors() / u64::from(system.unit_sectors());
            run_plain(prepared, journaled(layout, inner, places)?, progress)
        }
        Layout::Sequential(inner) => {
            let inner = prepared.sequential(inner);
            let places = prepared.capacity_blocks;
            run_plain(prepared, journaled(layout, inner, places)?, progress)
        }
        other => unreachable!("the table lets {other:?} behind no journal"),
    }
}

/// Runs a layout that needs nothing beside what every layout needs.
fn run_plain<L: BlockLayout>(
    prepared: &Prepared,
    layout: L,
    progress: Progress,
) -> Result<Outcome, RunError> {
    let mut lane = Lane::new(prepared, layout)?;
    lane.run(prepared, progress, |_| {})?;
    let values = lane.values();
    Ok(prepared.outcome(lane, values, None))
}

impl Prepared<'_> {
    /// The document and tables of a run that is over.
    pub(crate) fn outcome<L>(
        &self,
        lane: Lane<L>,
        mut values: Map<String, Value>,
        log_series: Option<LogSeries>,
    ) -> Outcome {
        values.insert("capacity_blocks".into(), json!(self.capacity_blocks));
        values.insert("peak_live_blocks".into(), json!(self.survey.peak_live_blocks));
        values.insert("initial_blocks".into(), json!(self.survey.initial_blocks));
        let disk = &self.estimate;
        let document = json!({
            "schema_version": SCHEMA_VERSION,
            "kind": ExperimentKind::Layout.name(),
            "agewell_version": env!("CARGO_PKG_VERSION"),
            "config": self.experiment.resolved(),
            "seed": self.experiment.run.seed,
            "inputs": Value::Null,
            "disk_estimate": {
                "access_ms": disk.access_ns as f64 / 1e6,
                "further_ms": disk.further_ns as f64 / 1e6,
                "bandwidth_mb_per_s": disk.bandwidth_bytes_per_s as f64 / 1e6,
            },
            "metrics": values,
            "baseline_metrics": Value::Null,
            "warnings": lane.warnings,
        });
        let tables = Tables::Files(Box::new(FileTables {
            log: log_series,
            throughput: lane.throughput,
            requests: lane.host.disk.into_recorded(),
        }));
        Outcome { document, tables }
    }
}

/// One layout under the whole workload.
pub(crate) struct Lane<L> {
    pub(crate) host: HostRun<L>,
    /// What the layout had done before the first request.
    before: BlockCounts,
    throughput: ThroughputSeries,
    prefetches: bool,
    /// What a crash before the last sync would have cost.
    recovery_ns: u64,
    transactions: Option<u64>,
    warnings: Vec<String>,
}

impl<L: BlockLayout> Lane<L> {
    /// A lane at its first request: what was there before lies on the disk.
    pub(crate) fn new(prepared: &Prepared, layout: L) -> Result<Self, RunError> {
        let experiment = prepared.experiment;
        let reads = !matches!(
            experiment.workload.kind,
            FileWorkloadKind::RandomUpdate(_)
                | FileWorkloadKind::HotCold(_)
                | FileWorkloadKind::Zipf(_)
                | FileWorkloadKind::Sequential(_)
        );
        let caches = reads || experiment.layout.tracks_cache();
        let clients = prepared.survey.clients.max(1);
        let block_bytes = experiment.layout.block_bytes();
        let mut disk = prepared.disk(layout.unit_bytes(block_bytes));
        disk.set_second_from(layout.second_disk_from());
        let mut host = HostRun::new(layout, disk, experiment.host, clients, block_bytes, caches);
        if let Some(preallocated) = experiment.workload.preallocated {
            let blocks = prepared.preallocated_blocks;
            host.fragment(blocks, preallocated.chunk_blocks).map_err(does_not_fit)?;
        }
        if prepared.surveyed.wants_moves() {
            host.files.keep_names();
        }
        let directory_of = |file| prepared.surveyed.directory_of(file);
        host.preload(&prepared.survey.initial, directory_of).map_err(does_not_fit)?;
        host.prefill(block_bytes);
        if experiment.host.keys.discards && host.disk.take_discards() {
            host.layout.enable_discard();
        }
        if experiment.host.keys.flushes {
            host.disk.begin_flushing();
        }
        host.disk.begin_measuring();
        let before = host.layout.counts();
        let throughput = ThroughputSeries::new(prepared.survey.peak_live_blocks, block_bytes);
        let prefetches = experiment.host.prefetch != Prefetch::None;
        Ok(Self {
            host,
            before,
            throughput,
            prefetches,
            recovery_ns: 0,
            transactions: None,
            warnings: Vec::new(),
        })
    }

    /// Serves all requests; `after_batch` looks at the host now and then.
    pub(crate) fn run(
        &mut self,
        prepared: &Prepared,
        progress: Progress,
        mut after_batch: impl FnMut(&HostRun<L>),
    ) -> Result<(), RunError> {
        if prepared.experiment.run.record {
            self.host.disk.record();
        }
        let mut source = prepared.source()?;
        let wants_moves = source.wants_moves();
        if wants_moves {
            self.host.disk.note_moves();
        }
        let (mut batch, mut updated) = (Vec::new(), Vec::new());
        let takes_updates = self.host.takes_updates() && !prepared.one_by_one;
        let takes_reads = self.host.takes_single_reads() && !prepared.one_by_one;
        loop {
            let update = if takes_updates { source.next_updates(&mut updated) } else { None };
            if let Some(update) = update {
                let directory_of = |file| source.directory_of(file);
                let Self { host, throughput, .. } = self;
                let served = host.serve_updates(&update, &updated, directory_of, throughput);
                served.map_err(does_not_fit)?;
                batch.clear();
            } else if !source.next_batch(&mut batch)? {
                break;
            }
            for soon in batch.chunks(LOOKED_UP_TOGETHER) {
                let mut rest = soon;
                if takes_reads {
                    rest = &rest[self.host.serve_single_reads(rest, &self.throughput)..];
                }
                self.host.look_up(rest);
                while let Some((request, later)) = rest.split_first() {
                    let directory_of = |file| source.directory_of(file);
                    self.host.serve(request, directory_of).map_err(does_not_fit)?;
                    self.throughput.note(&self.host.counts, &self.host.disk);
                    rest = later;
                    if takes_reads {
                        rest = &rest[self.host.serve_single_reads(rest, &self.throughput)..];
                    }
                }
            }
            if wants_moves {
                for block in self.host.disk.take_moved() {
                    self.host.files.name_of(block).iter().for_each(|name| source.moved(*name));
                }
            }
            after_batch(&self.host);
            if !progress(self.host.counts.requests) {
                return Err(RunError::Interrupted);
            }
        }
        self.recovery_ns = self.recovery();
        self.host.finish().map_err(does_not_fit)?;
        self.throughput.finish(&self.host.counts, &self.host.disk);
        self.host.layout.verify();
        self.transactions = source.transactions();
        self.warnings = source.warnings();
        Ok(())
    }

    /// Disk time that a crash at this moment would cost before the disk could be used.
    fn recovery(&self) -> u64 {
        let mut crashed = self.host.disk.clone();
        // The crash ends what goes on behind; a disk is not asked before it is at rest.
        crashed.drain();
        let before_ns = crashed.now_ns();
        self.host.layout.recover(&mut crashed);
        crashed.now_ns() - before_ns
    }

    /// The metrics that every layout has.
    pub(crate) fn values(&self) -> Map<String, Value> {
        metrics(&Totals {
            counts: self.host.layout.counts().since(&self.before),
            meter: self.host.disk.meter(),
            flash: self.host.disk.flash_counts(),
            host: self.host.counts,
            ahead: self.prefetches.then_some(self.host.ahead.counts),
            responses: &self.host.responses,
            response_total_ns: self.host.response_total_ns,
            recovery_ns: self.recovery_ns,
            elapsed_ns: self.host.disk.now_ns(),
            transactions: self.transactions,
        })
    }
}

fn does_not_fit(error: LayoutError) -> RunError {
    RunError::Input(format!("[layout]: {error}"))
}
