//! A run of a log: its placement, and what an oracle would have paid.

use agewell_layout::block_layout::BlockLayout;
use agewell_layout::reorganising_log::ReorganisingLog;
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::{Batched, Placement, Regrouping, death_clocks};
use agewell_log::{AdaptiveLog, Counts, Log, TransferTimes};
use serde_json::{Map, Value, json};

use super::lane::{Lane, Progress};
use super::log_series::LogSeries;
use super::log_setup::log_setting;
use super::metrics::{ideal_ns, log_metrics, write_cost};
use super::oracle;
use super::outcome::Outcome;
use super::placement::AnyPlacement;
use super::prepared::Prepared;
use super::recorder::Recorder;
use crate::calibrate::calibrate;
use crate::config::layout::{Collecting, LogLayout, LogTrigger, PlacementChoice};
use crate::error::RunError;

/// A log as runs drive it.
type Driven = AdaptiveLog<AnyPlacement>;

/// A layout with a log inside that can be looked at.
trait Logged: BlockLayout {
    type Inner: Placement;

    fn inner(&self) -> &Log<Self::Inner>;
}

impl Logged for Driven {
    type Inner = AnyPlacement;

    fn inner(&self) -> &Log<AnyPlacement> {
        self.log()
    }
}

impl Logged for ReorganisingLog<AnyPlacement> {
    type Inner = Regrouping<AnyPlacement>;

    fn inner(&self) -> &Log<Regrouping<AnyPlacement>> {
        self.log()
    }
}

/// Runs `layout` under the workload of `prepared`.
pub(crate) fn run(
    prepared: &Prepared,
    layout: &LogLayout,
    progress: Progress,
) -> Result<Outcome, RunError> {
    let run = LogRun { prepared, layout };
    if layout.keys.placement == PlacementChoice::Oracle {
        run.run_oracle(progress)
    } else {
        run.run_with(&[], progress)
    }
}

struct LogRun<'a> {
    prepared: &'a Prepared<'a>,
    layout: &'a LogLayout,
}

impl LogRun<'_> {
    fn run_with(&self, deaths: &[u32], progress: Progress) -> Result<Outcome, RunError> {
        let Self { prepared, layout } = self;
        let (segment_blocks, seed) = (layout.segment_blocks(), prepared.experiment.run.seed);
        let outside = self.prepared.policies.placement.as_ref();
        let make = |blocks: u32| {
            if let Some(policy) = outside {
                let batched =
                    Batched::new(policy.copied(), blocks as usize, layout.keys.logs as usize);
                return AnyPlacement::Batched(Box::new(batched));
            }
            AnyPlacement::new(
                layout.keys.placement,
                blocks,
                segment_blocks,
                layout.keys.logs,
                seed,
                deaths,
            )
        };
        let blocks = prepared.survey.peak_live_blocks as u32;
        let trials = self.trials()?;
        let learns = trials.is_some();
        let Some(reorganise) = &layout.reorganise else {
            let log = self.log_of(blocks, trials, make)?;
            return self.finish(log, learns, progress, |_, _| {});
        };
        let regrouping = |blocks: u32| {
            let placement = Regrouping::new(make(blocks), blocks);
            placement.expect("the configuration allows fewer logs than can be numbered")
        };
        let log = self.log_of(blocks, trials, regrouping)?;
        // What the server's cache holds need not be read to be moved.
        let cached = prepared.experiment.host.keys.server_cache_bytes / layout.keys.block_bytes;
        let memory_blocks = cached.max(u64::from(4 * segment_blocks)).min(u64::from(blocks)) as u32;
        let setting = reorganise.setting(layout.keys.block_bytes, memory_blocks);
        self.finish(ReorganisingLog::new(log, setting), learns, progress, |layout, values| {
            let counts = layout.reorganisation();
            values.insert("regrouped_blocks".into(), json!(counts.moved_blocks));
            values.insert("groups_moved".into(), json!(counts.moved));
            values.insert("groups_declined".into(), json!(counts.declined));
            values.insert("reorganisation_bytes".into(), json!(layout.memory_bytes()));
        })
    }

    /// An empty log for `blocks` blocks, each of its copies with a placement that `make` makes.
    fn log_of<P: Placement + Clone>(
        &self,
        blocks: u32,
        trials: Option<Vec<TransferTimes>>,
        make: impl Fn(u32) -> P,
    ) -> Result<AdaptiveLog<P>, RunError> {
        let first = make(blocks);
        let logs = first.regroups_to().map_or(first.logs(), usize::from);
        let setting = log_setting(self.prepared, self.layout, logs)?;
        let log = match &self.layout.collect {
            Collecting::Fixed(_) => AdaptiveLog::fixed(setting, first),
            Collecting::Adaptive(mechanisms) => AdaptiveLog::among(mechanisms, setting, make),
        };
        let mut log = log.map_err(|error| RunError::Input(format!("[layout]: {error}")))?;
        if let Some(trials) = trials {
            log.price_by(trials);
        }
        Ok(log)
    }

    /// Runs `log`, noting what transfers take if it `learns`, and gives its result, with what `more`
    /// adds to the metrics.
    fn finish<L: Logged>(
        &self,
        log: L,
        learns: bool,
        progress: Progress,
        more: impl Fn(&L, &mut Map<String, Value>),
    ) -> Result<Outcome, RunError> {
        let Self { prepared, layout } = self;
        let (lane, before, series) = self.drive(log, learns, progress)?;
        let log = lane.host.layout.inner();
        let counts = log.counts().since(&before);
        let mut values = lane.values();
        values.insert("segments".into(), json!(log.shape().segments()));
        log_metrics(&mut values, &counts, lane.host.disk.meter(), layout.segment_blocks());
        more(&lane.host.layout, &mut values);
        if prepared.experiment.run.lower_bound {
            self.add_lower_bound(&mut values, progress)?;
        }
        Ok(prepared.outcome(lane, values, Some(series)))
    }

    /// What transfers take on the drive with each mechanism, tried before the first request, if the log
    /// chooses by it.
    fn trials(&self) -> Result<Option<Vec<TransferTimes>>, RunError> {
        let Self { prepared, layout } = self;
        let Collecting::Adaptive(mechanisms) = &layout.collect else { return Ok(None) };
        let setting = log_setting(prepared, layout, 1)?;
        let disk = prepared.disk(layout.keys.block_bytes);
        let live = prepared.survey.peak_live_blocks + u64::from(prepared.preallocated_blocks);
        let is_tried = disk.is_mechanical() && mechanisms.len() > 1;
        let seed = prepared.experiment.run.seed;
        Ok(is_tried.then(|| calibrate(&disk, &setting, live, mechanisms, seed)))
    }

    /// `log` under the whole workload, noting what transfers take if it `learns`; with it what it had
    /// done before the first request, and how it went on.
    fn drive<L: Logged>(
        &self,
        log: L,
        learns: bool,
        progress: Progress,
    ) -> Result<(Lane<L>, Counts, LogSeries), RunError> {
        let mut lane = Lane::new(self.prepared, log)?;
        let parts: Vec<(u32, u32)> = lane.host.layout.inner().open_parts().collect();
        for (slot, blocks) in parts {
            lane.host.disk.prefill_log(slot, blocks);
        }
        lane.host.disk.begin_measuring();
        if learns {
            lane.host.disk.begin_learning(TransferTimes::new(self.prepared.estimate));
        }
        let before = *lane.host.layout.inner().counts();
        let mut series = LogSeries::new(self.prepared.survey.peak_live_blocks, &before);
        lane.run(self.prepared, progress, |host| {
            let log = host.layout.inner();
            series.note(log.counts(), host.disk.meter(), log.live_blocks(), log.collect_rule());
        })?;
        Ok((lane, before, series))
    }

    /// A log whose placement is the oracle: the writes are recorded first.
    fn run_oracle(&self, progress: Progress) -> Result<Outcome, RunError> {
        let (recorded, _) = self.record(progress)?;
        let events = recorded.host.layout.log().placement().events();
        if events.iter().any(|event| event >> 31 == 1) {
            return Err(RunError::Input(
                "[layout] placement: the oracle takes workloads without deletions; use [run] \
                 lower_bound = true, which knows them"
                    .into(),
            ));
        }
        let blocks = recorded.host.layout.log().blocks();
        let deaths = death_clocks(events, blocks as usize);
        self.run_with(&deaths, progress)
    }

    /// The same workload on one log that is cleaned, with what reached the disk recorded.
    fn record(&self, progress: Progress) -> Result<(Lane<Driven>, Counts), RunError> {
        let mut setting = log_setting(self.prepared, self.layout, 1)?;
        setting.collect = Collect::Always(Mechanism::Clean);
        let log = AdaptiveLog::fixed(setting, AnyPlacement::Recorder(Recorder::default()))
            .map_err(|error| RunError::Input(format!("[layout]: {error}")))?;
        let (lane, before, _) = self.drive(log, false, progress)?;
        let measured = lane.host.layout.log().counts().since(&before);
        Ok((lane, measured))
    }

    /// Metrics of a log that knows when each block dies.
    fn add_lower_bound(
        &self,
        values: &mut Map<String, Value>,
        progress: Progress,
    ) -> Result<(), RunError> {
        let Self { prepared, layout } = self;
        let (lane, measured) = self.record(progress)?;
        let segment_blocks = layout.segment_blocks();
        let garbage = match layout.trigger {
            LogTrigger::Garbage(share) => share,
            // Below a tenth of use nothing is ever collected, and a disk that large is not needed to
            // show it.
            LogTrigger::NoFreeSegment | LogTrigger::FreeShare(_) => {
                (1.0 - prepared.experiment.workload.utilization).min(0.9)
            }
        };
        let log = lane.host.layout.log();
        let events = log.placement().events();
        let preloaded =
            prepared.survey.initial_blocks as usize + prepared.preallocated_blocks as usize;
        let setting = log_setting(prepared, layout, 1)?;
        let blocks = log.blocks();
        // A log too large for the oracle's many classes has no such figure; the run itself stands.
        let replayed =
            oracle::replay(events, preloaded, blocks, segment_blocks, garbage, setting.disk);
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
        let new = write_cost(meter, measured.new_blocks);
        let segment_ns = setting.disk.blocks_ns(segment_blocks) as f64;
        let moved = (counts.read_blocks + counts.cleaned_blocks) as f64 / f64::from(segment_blocks);
        let ideal = ideal_ns(&setting.disk, counts.new_blocks);
        let cost = new.zip(ideal).map(|(new, ideal)| new.new_data + moved * segment_ns / ideal);
        values.insert("lower_bound_overall_write_cost".into(), json!(cost));
        Ok(())
    }
}
