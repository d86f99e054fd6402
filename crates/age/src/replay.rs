//! Driving a target by a workload: batches, samples, checkpoints, and going on after a kill.
//!
//! A [`ReplayOptions`] and a workload fix the operations ([`plan`]); the target does them a batch
//! at a time. Between batches fullness and layout score are sampled, progress is reported, a checkpoint
//! is written, and the replay can be stopped.
//!
//! **Resuming.** A checkpoint says how many operations are done, not what the target holds. To
//! resume, the operations are planned again from the start, and those done are only taken note of.
//! A killed replay may have done any of the operations behind its last checkpoint. The target takes
//! them back as far as names go ([`Target::roll_back`]), and they are done as for the first time.
//! Because operations of one file keep their order, and each sets a size that does not depend on
//! what was there before or only grows it, files and sizes end as if nothing had happened. Where
//! files were refused for want of room they may differ, because room depends on more than the
//! operations.
//!
//! Cost beside the target's: some 150 ns an operation for the plan (a utilization held; the
//! benchmark `replay`), and a small file written every
//! [`CHECKPOINT_OPERATIONS`].

mod checkpoint;
mod copies;
pub mod job;
mod plan;
pub mod recipe;
pub mod request;
mod series;
#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use agewell_core::DAY_NS;
use serde::{Deserialize, Serialize};

pub use self::checkpoint::Checkpoint;
pub use self::plan::Planned;
use self::plan::Planner;
pub use self::series::{SeriesRow, write_series};
use crate::onto::{Outcome, Target, Usage};
use crate::workload::WorkloadReader;
use crate::{Action, AgeError, LayoutCounts, Operation};

/// Operations between two checkpoints, at least; chosen by us: what is done twice after a kill
/// takes about a second, and a checkpoint costs a fraction of a millisecond.
pub const CHECKPOINT_OPERATIONS: u64 = 4096;

/// Operations between two samples of fullness and score where days are not counted; chosen by us.
const SAMPLE_OPERATIONS: u64 = 8192;

/// Which files are removed to hold a utilization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// Any, each alike: what people remove is seldom what they made first.
    #[default]
    Random,
    /// Those that were made first.
    Oldest,
}

/// How often everything is synced, beside the syncs of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncEvery {
    /// After this number of operations.
    Operations(u64),
    /// After this number of bytes was written.
    Bytes(u64),
    /// After so much time of the workload, nanoseconds.
    TimeNs(u64),
}

/// When a replay ends before its workload does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// The layout score has fallen to this.
    Score(f64),
    /// The target is as full as this, used over total.
    Utilization(f64),
    /// This number of days of the workload has passed.
    Days(u64),
    /// This number of bytes was written.
    WrittenBytes(u64),
    /// This number of operations was asked of the target.
    Operations(u64),
}

/// What holds a utilization, once the target is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveLimit {
    /// Bytes of files, in whole blocks and fragments, that are not exceeded.
    pub bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of a fragment, a block's where there are none.
    pub fragment_bytes: u64,
}

impl SyncEvery {
    /// Reads `1000` (operations), `64 MiB` (written) or `1 d` (time of the workload).
    ///
    /// # Errors
    /// If it is none of them.
    pub fn parse(text: &str) -> Result<Self, AgeError> {
        if let Ok(operations) = text.trim().parse() {
            return Ok(Self::Operations(operations));
        }
        if let Ok(bytes) = agewell_core::parse_bytes(text) {
            return Ok(Self::Bytes(bytes));
        }
        agewell_core::parse_duration_ns(text).map(Self::TimeNs).map_err(|_| {
            AgeError::Input(format!(
                "'{text}' says not how often to sync; write operations (1000), bytes (64 MiB) or \
                 time of the workload (1 d)"
            ))
        })
    }
}

impl Until {
    /// Reads `score=0.8`, `utilization=0.9`, `days=30`, `writes=20 GB` or `operations=100000`.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn parse(text: &str) -> Result<Self, AgeError> {
        let bad = || {
            AgeError::Input(format!(
                "'{text}' is not an end; write score=0.8, utilization=0.9, days=30, writes=20 GB \
                 or operations=100000"
            ))
        };
        let (name, value) = text.split_once('=').ok_or_else(bad)?;
        let (name, value) = (name.trim(), value.trim());
        let share = || value.parse::<f64>().map_err(|_| bad());
        let count = || value.parse::<u64>().map_err(|_| bad());
        Ok(match name {
            "score" => Self::Score(share()?),
            "utilization" => Self::Utilization(share()?),
            "days" => Self::Days(count()?),
            "writes" => Self::WrittenBytes(agewell_core::parse_bytes(value).map_err(|_| bad())?),
            "operations" => Self::Operations(count()?),
            _ => return Err(bad()),
        })
    }
}

/// Why a replay ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The workload has no more operations.
    WorkloadEnd,
    /// One of the ends that were asked for came first.
    Reached(Until),
}

/// What is done with a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayOptions {
    /// Copies of the workload side by side.
    pub copies: u32,
    /// Streams among which files are dealt out; as the workload says if not given.
    pub streams: Option<u16>,
    /// Used over total that is not exceeded.
    pub utilization: Option<f64>,
    /// The same as bytes, which count instead of what the target would give: of a recipe.
    pub live_limit: Option<LiveLimit>,
    /// Which files are removed for that.
    pub hold: Hold,
    /// Syncs beside those of the workload.
    pub sync_every: Option<SyncEvery>,
    /// Ends; the first that is reached counts.
    pub until: Vec<Until>,
    /// Sample at the end of each day of the workload rather than every few thousand operations.
    pub daily: bool,
    /// Seed of what is drawn.
    pub seed: u64,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self {
            copies: 1,
            streams: None,
            utilization: None,
            live_limit: None,
            hold: Hold::default(),
            sync_every: None,
            until: Vec::new(),
            daily: false,
            seed: 1,
        }
    }
}

impl ReplayOptions {
    /// Checks what types cannot.
    ///
    /// # Errors
    /// If a share is not above 0 and at most 1, or a count is 0.
    pub fn check(&self) -> Result<(), AgeError> {
        let refuse = |what: String| Err(AgeError::Input(what));
        let share = |value: f64| value > 0.0 && value <= 1.0;
        if self.copies == 0 {
            return refuse("0 copies of a workload are nothing to replay; use 1 or more".into());
        }
        if self.streams == Some(0) {
            return refuse("0 streams do nothing; use 1 or more".into());
        }
        if let Some(utilization) = self.utilization.filter(|value| !share(*value)) {
            return refuse(format!("a utilization of {utilization}; use a share like 0.8"));
        }
        let every = self.sync_every.map(|every| match every {
            SyncEvery::Operations(count) | SyncEvery::Bytes(count) | SyncEvery::TimeNs(count) => {
                count
            }
        });
        if every == Some(0) {
            return refuse("a sync after nothing at all; use 1 operation or more".into());
        }
        for until in &self.until {
            if let Until::Score(value) | Until::Utilization(value) = *until
                && !share(value)
            {
                return refuse(format!("an end at {value}; use a share like 0.8"));
            }
        }
        Ok(())
    }
}

/// What became of the operations asked of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcomes {
    /// Done.
    pub done: u64,
    /// For which there was no room.
    pub no_space: u64,
    /// Files that could not be made for want of room.
    pub no_space_creates: u64,
    /// Left out because of one of those.
    pub skipped: u64,
}

/// How far a replay has come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Progress {
    /// Operations done, refused or skipped; not those that wait.
    pub operations: u64,
    /// How many the workload has with its copies, if known; with a utilization held there may be
    /// more or fewer.
    pub operations_total: Option<u64>,
    /// Of them without room.
    pub no_space: u64,
    /// Bytes asked to be written.
    pub written_bytes: u64,
    /// Time of the workload, nanoseconds.
    pub time_ns: u64,
    /// Used over total at the last sample.
    pub utilization: f64,
    /// Layout score at the last sample, if any block counts.
    pub layout_score: Option<f64>,
    /// Whether operations are only taken note of, because they were done before.
    pub resuming: bool,
}

/// Where the parts of a replay stand in files.
#[derive(Debug, Clone, Default)]
pub struct ReplayFiles {
    /// Where checkpoints are written; none are if not given.
    pub checkpoint: Option<PathBuf>,
    /// Go on from the checkpoint that is there.
    pub resume: bool,
    /// What identifies the workload: its sha256.
    pub workload_identity: String,
    /// What else must be the same for a replay to be resumed: options of the target.
    pub target_identity: String,
    /// Operations of the workload, if known, for progress.
    pub workload_operations: Option<u64>,
}

/// What a replay did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayReport {
    /// Why it ended.
    pub stop: StopReason,
    /// What was asked of the target.
    pub planned: Planned,
    /// What became of it.
    pub outcomes: Outcomes,
    /// At the start.
    pub usage_before: UsageRecord,
    /// At the end.
    pub usage_after: UsageRecord,
    /// Used over total as asked.
    pub utilization_asked: Option<f64>,
    /// The bytes that held it.
    pub live_limit: Option<LiveLimit>,
    /// Used over total as the target reports, highest sample.
    pub utilization_max: f64,
    /// Optimal blocks at the end, of all files.
    pub layout_optimal: u64,
    /// Counted blocks at the end.
    pub layout_counted: u64,
    /// Layout score at the end.
    pub layout_score: Option<f64>,
    /// Samples.
    #[serde(skip)]
    pub series: Vec<SeriesRow>,
    /// Positions of the operations for which there was no room, ascending from 0.
    #[serde(skip)]
    pub no_space_at: Vec<u64>,
}

/// [`Usage`] in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UsageRecord {
    /// Bytes that can be used at all.
    pub total_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
}

impl From<Usage> for UsageRecord {
    fn from(usage: Usage) -> Self {
        Self { total_bytes: usage.total_bytes, used_bytes: usage.used_bytes }
    }
}

/// The operations of a workload file, one after the other.
pub struct WorkloadOperations {
    reader: WorkloadReader,
    batch: Vec<Operation>,
    next: usize,
}

impl WorkloadOperations {
    /// Those of `reader`.
    #[must_use]
    pub fn new(reader: WorkloadReader) -> Self {
        Self { reader, batch: Vec::new(), next: 0 }
    }
}

impl Iterator for WorkloadOperations {
    type Item = Result<Operation, AgeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.batch.len() {
            self.next = 0;
            match self.reader.next_batch(&mut self.batch) {
                Ok(true) if !self.batch.is_empty() => {}
                Ok(_) => {
                    self.batch.clear();
                    return None;
                }
                Err(why) => return Some(Err(why)),
            }
        }
        self.next += 1;
        Some(Ok(self.batch[self.next - 1]))
    }
}

/// Notified how far a replay has come; to go on is true.
pub type Tell<'a> = dyn FnMut(&Progress) -> bool + 'a;

/// Takes the operations that are asked of a target.
pub type Log<'a> = dyn FnMut(&[Operation]) -> Result<(), AgeError> + 'a;

/// Replays `workload` onto `target`. `log` takes every operation that is asked of the target, in
/// their order, also those of the part before a resumption.
///
/// # Errors
/// [`AgeError::Stopped`] if `tell` says so, after a checkpoint; else if the workload or the target
/// fails, or a checkpoint does not fit.
pub fn replay<S, T>(
    workload: S,
    target: &mut T,
    block_bytes: u64,
    options: &ReplayOptions,
    files: &ReplayFiles,
    log: Option<&mut Log<'_>>,
    tell: &mut Tell<'_>,
) -> Result<ReplayReport, AgeError>
where
    S: Iterator<Item = Result<Operation, AgeError>>,
    T: Target + ?Sized,
{
    options.check()?;
    let earlier = if files.resume { Some(resumed(files, options)?) } else { None };
    let usage_before = match &earlier {
        Some(checkpoint) => checkpoint.usage_before,
        None => target.usage()?.into(),
    };
    let fragment_bytes = target.fragment_bytes().unwrap_or(block_bytes);
    let live_limit = options.live_limit.or_else(|| {
        options.utilization.map(|share| LiveLimit {
            bytes: limit_bytes(share, usage_before),
            block_bytes,
            fragment_bytes,
        })
    });
    let planner = Planner::new(workload, options, (block_bytes, fragment_bytes), live_limit);
    let mut state = Replay {
        target,
        planner,
        options,
        files,
        log,
        tell,
        usage_before,
        live_limit,
        batch: Vec::new(),
        outcomes: Vec::new(),
        counts: Outcomes::default(),
        no_space_at: Vec::new(),
        series: Vec::new(),
        last_sample: Sampled::default(),
        utilization_max: 0.0,
        checkpoint_at: 0,
        sampled_at: 0,
    };
    let mut stop = None;
    if let Some(checkpoint) = earlier {
        stop = state.drain(checkpoint)?;
    } else {
        state.write_checkpoint(None)?;
    }
    let stop = match stop {
        Some(stop) => stop,
        None => state.run()?,
    };
    state.finish(stop)
}

/// Bytes of files that make `share` of what can be used, beside what is used at the start.
fn limit_bytes(share: f64, before: UsageRecord) -> u64 {
    let wanted = (share * before.total_bytes as f64) as u64;
    wanted.saturating_sub(before.used_bytes)
}

fn resumed(files: &ReplayFiles, options: &ReplayOptions) -> Result<Checkpoint, AgeError> {
    let Some(path) = &files.checkpoint else {
        return Err(AgeError::Input(
            "nothing to resume: this target keeps no checkpoint; run it again".to_owned(),
        ));
    };
    let checkpoint = Checkpoint::read(path)?;
    checkpoint.check(path, files, options)?;
    Ok(checkpoint)
}

#[derive(Debug, Clone, Copy, Default)]
struct Sampled {
    utilization: f64,
    score: Option<f64>,
}

struct Replay<'a, 'l, 't, S, T: ?Sized> {
    target: &'a mut T,
    planner: Planner<S>,
    options: &'a ReplayOptions,
    files: &'a ReplayFiles,
    log: Option<&'a mut Log<'l>>,
    tell: &'a mut Tell<'t>,
    usage_before: UsageRecord,
    live_limit: Option<LiveLimit>,
    batch: Vec<Operation>,
    outcomes: Vec<Outcome>,
    counts: Outcomes,
    no_space_at: Vec<u64>,
    series: Vec<SeriesRow>,
    last_sample: Sampled,
    utilization_max: f64,
    /// Operations planned at the last checkpoint, and at the last sample.
    checkpoint_at: u64,
    sampled_at: u64,
}

impl<S, T> Replay<'_, '_, '_, S, T>
where
    S: Iterator<Item = Result<Operation, AgeError>>,
    T: Target + ?Sized,
{
    /// Plans what `checkpoint` says is done, without doing it. The stop, if the replay had ended.
    fn drain(&mut self, checkpoint: Checkpoint) -> Result<Option<StopReason>, AgeError> {
        let path = self.files.checkpoint.clone().unwrap_or_default();
        let position = checkpoint.planned.operations;
        while self.planner.planned.operations < position {
            let ended = self.planner.fill(&mut self.batch)?;
            self.log_batch()?;
            self.target.assume(&self.batch)?;
            if !self.told(true) {
                return Err(AgeError::Stopped);
            }
            if ended.is_some() {
                break;
            }
        }
        if self.planner.planned != checkpoint.planned {
            return Err(checkpoint::does_not_fit(&path, "its operations differ"));
        }
        self.target.restore(&checkpoint.refusals);
        self.counts = checkpoint.outcomes;
        self.no_space_at = checkpoint.no_space_at;
        self.series = checkpoint.series;
        self.utilization_max = checkpoint.utilization_max;
        self.checkpoint_at = position;
        self.sampled_at = checkpoint.sampled_at;
        if checkpoint.finished.is_none() {
            self.target.roll_back()?;
        }
        Ok(checkpoint.finished)
    }

    fn run(&mut self) -> Result<StopReason, AgeError> {
        loop {
            let mut stop = self.planner.fill(&mut self.batch)?;
            self.do_batch()?;
            if self.is_sample_due() || stop.is_some() {
                let reached = self.sample()?;
                stop = reached.map(StopReason::Reached).or(stop);
            }
            if let Some(stop) = stop {
                return Ok(stop);
            }
            let go_on = self.told(false);
            if !go_on
                || self.planner.planned.operations >= self.checkpoint_at + CHECKPOINT_OPERATIONS
            {
                self.write_checkpoint(None)?;
            }
            if !go_on {
                return Err(AgeError::Stopped);
            }
        }
    }

    fn log_batch(&mut self) -> Result<(), AgeError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        log(&self.batch)
    }

    fn do_batch(&mut self) -> Result<(), AgeError> {
        self.log_batch()?;
        self.target.apply_all(&self.batch, &mut self.outcomes)?;
        let first = self.planner.planned.operations - self.batch.len() as u64;
        for (index, (operation, outcome)) in self.batch.iter().zip(&self.outcomes).enumerate() {
            match outcome {
                Outcome::Done => self.counts.done += 1,
                Outcome::Skipped => self.counts.skipped += 1,
                Outcome::NoSpace => {
                    self.counts.no_space += 1;
                    self.counts.no_space_creates += u64::from(operation.action == Action::Create);
                    self.no_space_at.push(first + index as u64);
                }
            }
        }
        Ok(())
    }

    fn is_sample_due(&self) -> bool {
        if self.options.daily {
            return self.planner.is_day_over();
        }
        self.planner.planned.operations >= self.sampled_at + SAMPLE_OPERATIONS
    }

    /// Asks for fullness and score now; which end is reached, if one is.
    fn sample(&mut self) -> Result<Option<Until>, AgeError> {
        self.sampled_at = self.planner.planned.operations;
        let usage = self.target.usage()?;
        let layout = self.target.layout_estimate()?;
        let planned = &self.planner.planned;
        self.series.push(SeriesRow {
            day: planned.time_ns / DAY_NS,
            time_ns: planned.time_ns,
            operations: planned.operations,
            written_bytes: planned.written_bytes,
            live_files: planned.live_files,
            live_bytes: planned.live_bytes,
            used_bytes: usage.used_bytes,
            total_bytes: usage.total_bytes,
            layout_optimal: layout.optimal,
            layout_counted: layout.counted,
            no_space: self.counts.no_space,
        });
        self.last_sample = Sampled { utilization: usage.utilization(), score: layout.score() };
        self.utilization_max = self.utilization_max.max(usage.utilization());
        Ok(self.options.until.iter().copied().find(|until| match *until {
            Until::Score(score) => layout.score().is_some_and(|now| now <= score),
            Until::Utilization(share) => usage.utilization() >= share,
            Until::Days(_) | Until::WrittenBytes(_) | Until::Operations(_) => false,
        }))
    }

    fn told(&mut self, resuming: bool) -> bool {
        let planned = &self.planner.planned;
        (self.tell)(&Progress {
            operations: planned.operations,
            operations_total: self
                .files
                .workload_operations
                .map(|operations| operations.saturating_mul(u64::from(self.options.copies))),
            no_space: self.counts.no_space,
            written_bytes: planned.written_bytes,
            time_ns: planned.time_ns,
            utilization: self.last_sample.utilization,
            layout_score: self.last_sample.score,
            resuming,
        })
    }

    fn write_checkpoint(&mut self, finished: Option<StopReason>) -> Result<(), AgeError> {
        let Some(path) = &self.files.checkpoint else { return Ok(()) };
        let checkpoint = Checkpoint {
            kind: checkpoint::KIND.to_owned(),
            version: checkpoint::VERSION,
            workload: self.files.workload_identity.clone(),
            target: self.files.target_identity.clone(),
            options: self.options.clone(),
            usage_before: self.usage_before,
            planned: self.planner.planned,
            outcomes: self.counts,
            no_space_at: self.no_space_at.clone(),
            refusals: self.target.refusals(),
            series: self.series.clone(),
            utilization_max: self.utilization_max,
            sampled_at: self.sampled_at,
            finished,
        };
        let written = checkpoint.write(path);
        let is_first = self.planner.planned.operations == 0;
        self.checkpoint_at = self.planner.planned.operations;
        if let Err(AgeError::Io { why, .. }) = &written
            && why.kind() == ErrorKind::StorageFull
            && !is_first
        {
            // Beside a full target there may be no room for the note either. The one before is as
            // good: more is done twice, with the same end.
            return Ok(());
        }
        written
    }

    fn finish(mut self, stop: StopReason) -> Result<ReplayReport, AgeError> {
        let layout: LayoutCounts = self.target.layout_counts()?;
        let usage = self.target.usage()?;
        self.utilization_max = self.utilization_max.max(usage.utilization());
        self.target.finish()?;
        self.write_checkpoint(Some(stop))?;
        Ok(ReplayReport {
            stop,
            planned: self.planner.planned,
            outcomes: self.counts,
            usage_before: self.usage_before,
            usage_after: usage.into(),
            utilization_asked: self.options.utilization,
            live_limit: self.live_limit,
            utilization_max: self.utilization_max,
            layout_optimal: layout.optimal,
            layout_counted: layout.counted,
            layout_score: layout.score(),
            series: self.series,
            no_space_at: self.no_space_at,
        })
    }
}

/// Where the checkpoint of the directory `target` stands by default: beside it, never
/// below it.
///
/// # Errors
/// If `target` has nothing beside it.
pub fn checkpoint_path(target: &Path) -> Result<PathBuf, AgeError> {
    let whole = std::fs::canonicalize(target).map_err(AgeError::io("find", target))?;
    let Some(name) = whole.file_name() else {
        return Err(AgeError::Input(format!(
            "{}: nothing stands beside it; name a directory for the checkpoint with --state",
            target.display()
        )));
    };
    let mut name = name.to_owned();
    name.push(".agewell");
    Ok(whole.with_file_name(name))
}
