//! One layout under a whole workload, and the outcome of that.

use agewell_layout::block_layout::{BlockCounts, BlockLayout, LayoutError};
use agewell_log::BlockDevice;
use serde_json::{Map, Value, json};

use super::log_series::LogSeries;
use super::metrics::{Totals, metrics};
use super::outcome::{FileTables, Outcome, Tables};
use super::prepared::Prepared;
use crate::config::layout::Layout;
use crate::config::{ExperimentKind, FileWorkloadKind};
use crate::error::RunError;
use crate::host::block_host::{HostRun, LOOKED_UP_TOGETHER};
use crate::host::throughput::ThroughputSeries;
use crate::prefetch::Prefetch;
use crate::result::{DOCUMENT, SCHEMA_VERSION};

/// What a run reports its progress to, and what may answer with a stop.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64) -> bool;

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
            "document": DOCUMENT,
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
        if matches!(&experiment.layout, Layout::Log(log) if log.keys.atomic_syncs) {
            host.disk.keep_replaced();
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

pub(super) fn does_not_fit(error: LayoutError) -> RunError {
    RunError::Input(format!("[layout]: {error}"))
}
