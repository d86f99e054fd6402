//! A run of a log: its placement, and what an oracle would have paid.

use agewell_layout::lfs::policy::mechanism::{Collect, Mechanism};
use agewell_layout::lfs::policy::placement::{Placement, death_clocks};
use agewell_layout::lfs::{AdaptiveLog, Counts};
use serde_json::{Map, Value, json};

use super::config::{Collecting, LogLayout, LogTrigger, PlacementChoice};
use super::disk::Addresses;
use super::log_setup::log_setting;
use super::metrics::{ideal_ns, log_metrics, write_cost};
use super::oracle::{self, Recorder};
use super::placement::AnyPlacement;
use super::prepared::Prepared;
use super::run::{Lane, Progress};
use super::series::LogSeries;
use crate::error::RunError;
use crate::run::Outcome;

/// A log as runs drive it.
type Driven = AdaptiveLog<AnyPlacement>;

/// Runs `layout` under the workload of `prepared`.
pub(crate) fn run(
    prepared: &Prepared,
    layout: &LogLayout,
    progress: Progress,
) -> Result<Outcome, RunError> {
    let run = LogRun { prepared, layout };
    if layout.placement == PlacementChoice::Oracle {
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
        let (segment_blocks, seed) = (layout.segment_blocks(), prepared.experiment.seed);
        let make = |blocks: u32| {
            AnyPlacement::new(layout.placement, blocks, segment_blocks, layout.logs, seed, deaths)
        };
        let first = make(prepared.survey.peak_live_blocks as u32);
        let setting = log_setting(prepared, layout, first.logs())?;
        let log = match &layout.collect {
            Collecting::Fixed(_) => AdaptiveLog::fixed(setting, first),
            Collecting::Adaptive(mechanisms) => AdaptiveLog::among(mechanisms, setting, make),
        };
        let log = log.map_err(|error| RunError::Input(format!("[layout]: {error}")))?;
        let (lane, before, series) = self.drive(log, progress)?;
        let counts = lane.host.layout.counts().since(&before);
        let mut values = lane.values();
        let shape = lane.host.layout.log().shape();
        values.insert("segments".into(), json!(shape.segments()));
        log_metrics(&mut values, &counts, lane.host.disk.meter(), layout.segment_blocks());
        if prepared.experiment.lower_bound {
            self.add_lower_bound(&mut values, progress)?;
        }
        prepared.outcome(lane, values, Some(series))
    }

    /// `log` under the whole workload; with it what it had done before the first request, and how
    /// it went on.
    fn drive(
        &self,
        log: Driven,
        progress: Progress,
    ) -> Result<(Lane<Driven>, Counts, LogSeries), RunError> {
        let addresses = Addresses::Log(log.log().shape().clone());
        let mut lane = Lane::new(self.prepared, log, addresses)?;
        let parts: Vec<(u32, u32)> = lane.host.layout.log().open_parts().collect();
        for (slot, blocks) in parts {
            lane.host.disk.written_before(slot, blocks);
        }
        lane.host.disk.begin_measuring();
        let before = *lane.host.layout.counts();
        let mut series = LogSeries::new(self.prepared.survey.peak_live_blocks, &before);
        lane.run(self.prepared, progress, |host| {
            let log = host.layout.log();
            series.note(log.counts(), host.disk.meter(), log.live_blocks(), log.collect_rule());
        })?;
        Ok((lane, before, series))
    }

    /// A log whose placement is the oracle: the writes are taken down first.
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

    /// The same workload on one log that is cleaned, with what reached the disk taken down.
    fn record(&self, progress: Progress) -> Result<(Lane<Driven>, Counts), RunError> {
        let mut setting = log_setting(self.prepared, self.layout, 1)?;
        setting.collect = Collect::Always(Mechanism::Clean);
        let log = AdaptiveLog::fixed(setting, AnyPlacement::Recorder(Recorder::default()))
            .map_err(|error| RunError::Input(format!("[layout]: {error}")))?;
        let (lane, before, _) = self.drive(log, progress)?;
        let measured = lane.host.layout.counts().since(&before);
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
            LogTrigger::NoFreeSegment => (1.0 - prepared.experiment.workload.utilization).min(0.9),
        };
        let log = lane.host.layout.log();
        let events = log.placement().events();
        let preloaded =
            prepared.survey.initial_blocks as usize + prepared.preallocated_blocks as usize;
        let setting = log_setting(prepared, layout, 1)?;
        let blocks = log.blocks();
        // A log too large for the oracle's many classes has no such figure; the run itself stands.
        let replayed = oracle::replay(events, preloaded, blocks, segment_blocks, garbage, &setting);
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
