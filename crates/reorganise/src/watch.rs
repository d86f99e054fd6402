//! A file system kept in shape: recorded, looked at, and put in order where its history says it pays.
//!
//! ```text
//! record a slice --> slice --> ReadHistory --> choose --> plan, carry_out
//!  agewell-record    whose     history         choice     what pays, within
//!                    file                                 the hour's budget
//! ```
//!
//! A *round* is a slice of recorded requests, a look at where the files lie, a decision, and perhaps
//! moves. What is decided is a function of the history and of the snapshot (`choice`); the rule is that
//! by which a simulated log puts blocks together ([`agewell_regrouping`]). Between slices
//! nothing is recorded, so that neither the looks nor the moves are taken for anyone's reads. No
//! directory is kept open while a slice is recorded, so that the file system can be unmounted.

mod budget;
mod busy;
mod device_times;
mod slice;
mod state;
mod tree_view;

#[cfg(test)]
mod tests;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agewell_disk::DeviceParameters;
use agewell_log::policy::cost::CostModel;
use agewell_record::{Disk, RecordError, RecordOptions, Recording};
use agewell_regrouping::{Choice, Group, MemberView, ReadHistory, Run, Totals, choose, place_sum};
use agewell_snapshot::{Snapshot, SnapshotError};
use rustix::fs::{FlockOperation, flock};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

pub use agewell_regrouping::Considered;

use crate::carry_out::{Progress, carry_out};
use crate::order::Part;
use crate::pace::Pace;
use crate::plan::{Plan, PlanOptions, plan};
use crate::volume::Volume;
use budget::HourlyBudget;
use busy::Quiet;
use device_times::{DiskTimes, ModelledDisk, cost_model};
use slice::Around;
use state::Words;
use tree_view::TreeView;

/// Files that are remembered; chosen by us: 2^18 take about 50 MB.
const FILES_MAX: u32 = 1 << 18;
/// Reads in a slice below which nobody looks where the files lie; chosen by us: no program was started.
const READS_MIN: u64 = 16;
/// A round lasts as many times as long as a look takes, so that looks take no more than a hundredth of
/// the time of a large file system's disk; chosen by us.
const LOOKS_PER_ROUND: u32 = 100;
/// Most bytes of the trace of a slice, so that a busy disk fills neither the disk nor the memory.
const SLICE_BYTES_MAX: u64 = 256 << 20;
/// Bytes of a slot, the unit in which places and lengths are counted: a block of most file systems.
const SLOT_BYTES: u64 = 4096;
/// Slots that are laid in one row: the longest stretch, 16 MiB.
const ROW_SLOTS: u32 = (16 << 20) / SLOT_BYTES as u32;
/// What the name of a slice ends with.
const SLICE: &str = ".slice";
/// Plans that are tried, each of half as many groups, where the room that must be made is beyond the
/// budget; chosen by us.
const PLANS_MAX: u32 = 6;

/// What is watched, and how.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// A directory of a mounted file system.
    pub path: PathBuf,
    /// No more bytes are moved in any hour.
    pub budget_bytes_per_hour: Option<u64>,
    /// A round lasts at least so long.
    pub every: Duration,
    /// It ends after so long.
    pub at_most: Option<Duration>,
    /// The disk whose times count; those of the disk itself if `None`.
    pub device: Option<DeviceParameters>,
    /// What a disk is like of which nothing is known yet.
    pub usual: DeviceParameters,
    /// Where the history is kept.
    pub state: PathBuf,
    /// Nothing is moved.
    pub dry_run: bool,
}

/// What became of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Hardly anything was read.
    #[default]
    Idle,
    /// Too little is known of the disk's times.
    Learning,
    /// No group of files is likely to save more than its move costs.
    NothingPays,
    /// What pays is beyond what is left of the hour's budget.
    BeyondBudget,
    /// Others keep the disk busy.
    Busy,
    /// There is no room where files could be put together.
    NoRoom,
    /// Files would be moved.
    WouldMove,
    /// Files were moved.
    Moved,
}

/// A round, as it is told.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Round {
    /// What became of it.
    pub outcome: Outcome,
    /// When it ended, ns since 1970.
    pub now_ns: i64,
    /// How long was recorded, s.
    pub seconds: f64,
    /// Reads, and the time for which the disk was busy with them, s.
    pub reads: u64,
    /// That time.
    pub read_seconds: f64,
    /// Of the bytes read, those of known files, per cent.
    pub named_pct: f64,
    /// Events that the kernel lost.
    pub lost_events: u64,
    /// Files in the history.
    pub files_known: u64,
    /// What was looked at.
    pub considered: Considered,
    /// Files that were moved, or would be.
    pub files: u64,
    /// Bytes that were, with those that made room.
    pub bytes: u64,
    /// What that is likely to save until the files are written again, s.
    pub likely_seconds: f64,
    /// What it costs, s.
    pub cost_seconds: f64,
    /// Share of the time for which others kept the disk busy when it was put off, per cent.
    pub busy_pct: f64,
    /// What is left of the hour's budget, bytes; `None` without one.
    pub left_bytes: Option<u64>,
    /// Time that reads were saved by moves so far, as observed, s; negative if they took longer.
    pub saved_seconds: f64,
    /// Time of all reads so far, s.
    pub all_read_seconds: f64,
    /// Time of all moves so far, s.
    pub moving_seconds: f64,
    /// Bytes of all moves so far.
    pub moved_bytes: u64,
}

/// What it is at.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Told<'a> {
    /// Looking where the files lie.
    Look {
        /// Files seen.
        files: u64,
    },
    /// Recording.
    Record {
        /// Since the slice began, s.
        seconds: f64,
        /// How long it will be, s.
        of_seconds: f64,
        /// Requests so far.
        requests: u64,
    },
    /// Waiting for others to leave the disk alone.
    Wait,
    /// Moving.
    Move {
        /// Bytes so far.
        bytes: u64,
        /// Of so many.
        of_bytes: u64,
    },
    /// A round is over.
    Round(&'a Round),
}

/// Told what it is at, several times a second; whether to go on.
pub type Tell<'a> = dyn FnMut(&Told<'_>) -> bool + 'a;

/// Watches until the time is over or `tell` says no.
///
/// # Errors
/// If the file system cannot be reorganised or recorded, is gone, or the history cannot be kept. What
/// was moved until then stays moved.
pub fn watch(options: &WatchOptions, tell: &mut Tell<'_>) -> Result<(), SnapshotError> {
    let _lock = lock(&options.state)?;
    remove_slices(&options.state);
    let mut watch = match Watch::begin(options, tell) {
        Err(SnapshotError::Stopped) => return Ok(()),
        begun => begun?,
    };
    let ended = watch.run(tell);
    let saved = watch.save();
    match ended {
        Err(SnapshotError::Stopped) | Ok(()) => saved,
        Err(why) => Err(why),
    }
}

fn asked(tell: &mut Tell<'_>, told: &Told<'_>) -> Result<(), SnapshotError> {
    if tell(told) { Ok(()) } else { Err(SnapshotError::Stopped) }
}

fn clock_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn wall_ns() -> i64 {
    clock_ns(ClockId::Realtime)
}

/// A time that is never set, ns.
fn now_ns() -> i64 {
    clock_ns(ClockId::Monotonic)
}

fn beside(state: &Path, ending: &str) -> PathBuf {
    let mut name = state.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Removes what is left of slices, also of one that was killed: it is of no use to anyone. Nobody
/// else has any there, for the history is locked.
fn remove_slices(state: &Path) {
    let folder = state.parent().filter(|folder| !folder.as_os_str().is_empty());
    let slice = beside(state, SLICE);
    let Some(name) = slice.file_name() else { return };
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new(".")));
    for entry in entries.into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(name.as_encoded_bytes()) {
            // What cannot be removed is said when the next slice is begun.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// One watches with a history at a time.
fn lock(state: &Path) -> Result<std::fs::File, SnapshotError> {
    if let Some(folder) = state.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(SnapshotError::io("create", folder))?;
    }
    let path = beside(state, ".lock");
    let file = std::fs::File::create(&path).map_err(SnapshotError::io("create", &path))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        SnapshotError::Input(format!(
            "{}: another agewell reorganise --watch keeps its history there; end it, or give another \
             with --state",
            state.display()
        ))
    })?;
    Ok(file)
}

fn of_record(why: RecordError) -> SnapshotError {
    match why {
        RecordError::Snapshot(why) => why,
        RecordError::Stopped => SnapshotError::Stopped,
        why if why.is_input_error() => SnapshotError::Input(why.to_string()),
        why => SnapshotError::Run(why.to_string()),
    }
}

struct Watch<'a> {
    options: &'a WatchOptions,
    disk: Disk,
    /// Of the file system, so that another in its place is not taken for it.
    device_number: u64,
    history: ReadHistory,
    budget: HourlyBudget,
    /// What lay where when the slice began.
    before: Snapshot,
    look_time: Duration,
    began_ns: i64,
}

impl<'a> Watch<'a> {
    fn begin(options: &'a WatchOptions, tell: &mut Tell<'_>) -> Result<Self, SnapshotError> {
        let path = &options.path;
        let device_number = device_number(path)?;
        let disk = Disk::of(path).map_err(of_record)?;
        let (before, look_time) = look(path, tell)?;
        let cost = cost_model(options.device.as_ref().unwrap_or(&options.usual));
        let mut watch = Self {
            options,
            disk,
            device_number,
            history: ReadHistory::new(FILES_MAX, ROW_SLOTS, cost),
            budget: HourlyBudget::new(options.budget_bytes_per_hour),
            before,
            look_time,
            began_ns: now_ns(),
        };
        watch.load(cost)?;
        Ok(watch)
    }

    /// What tells this file system, and whose times count.
    fn identity(&self) -> [u64; 4] {
        let root = self.before.files.iter().find(|file| file.directory == file.inode);
        let device = self.options.device.as_ref();
        [
            root.map_or(0, |root| root.inode),
            root.map_or(0, |root| root.birth_ns as u64),
            self.before.facts.total_bytes,
            device.map_or(0, |device| state::checksum(device.name.as_bytes())),
        ]
    }

    fn load(&mut self, cost: CostModel) -> Result<(), SnapshotError> {
        let found = state::read(&self.options.state, |words| {
            let identity = [words.next()?, words.next()?, words.next()?, words.next()?];
            let mut spent = Vec::new();
            for _ in 0..words.next()? {
                spent.push((words.next()? as i64, words.next()?));
            }
            Some((identity, spent, ReadHistory::from_words(FILES_MAX, ROW_SLOTS, cost, words)?))
        })?;
        let Some((identity, spent, history)) = found else { return Ok(()) };
        let own = self.identity();
        if identity[..2] != own[..2] {
            return Err(SnapshotError::Input(format!(
                "{}: is the history of another file system than {}; give another with --state",
                self.options.state.display(),
                self.options.path.display()
            )));
        }
        self.history = history;
        if identity[3] != own[3] {
            // Times of another disk.
            self.history.times = ReadHistory::new(FILES_MAX, ROW_SLOTS, cost).times;
        }
        self.budget = HourlyBudget::with_spent(self.options.budget_bytes_per_hour, spent);
        Ok(())
    }

    fn save(&self) -> Result<(), SnapshotError> {
        let mut words = Words::default();
        words.extend(self.identity());
        words.push(self.budget.spent().len() as u64);
        for (at_ns, bytes) in self.budget.spent() {
            words.extend([at_ns as u64, bytes]);
        }
        words.extend(self.history.words());
        words.write(&self.options.state)
    }

    fn run(&mut self, tell: &mut Tell<'_>) -> Result<(), SnapshotError> {
        loop {
            let most = self.options.every.max(self.look_time * LOOKS_PER_ROUND);
            let elapsed = Duration::from_nanos((now_ns() - self.began_ns) as u64);
            let left = self.options.at_most.map(|most| most.saturating_sub(elapsed));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            let time = left.map_or(most, |left| left.min(most));
            let path = beside(&self.options.state, SLICE);
            let known = self.history.totals;
            let result = self.round(&path, time, tell);
            remove_slices(&self.options.state);
            let round = result?;
            if self.history.totals != known {
                self.save()?;
            }
            asked(tell, &Told::Round(&round))?;
        }
    }

    fn round(
        &mut self,
        path: &Path,
        time: Duration,
        tell: &mut Tell<'_>,
    ) -> Result<Round, SnapshotError> {
        let recording = self.record(path, time, tell)?;
        let before = self.history.totals;
        let stopped = recording.ended_by == "stopped";
        let is_idle = recording.recorded.reads < READS_MIN;
        if stopped || is_idle {
            if recording.requests > 0 {
                let (looked, times) = (&self.before, &mut self.times());
                let first_sector = self.disk.first_sector;
                let around = Around { before: looked, behind: looked, first_sector };
                slice::tell(path, &around, times, &mut self.history, &mut || Ok(()))?;
            }
            if stopped {
                return Err(SnapshotError::Stopped);
            }
            return Ok(self.told(&recording, &before, &Round::default()));
        }
        self.check_mount()?;
        let (volume, behind, look_time) = open(&self.options.path, tell)?;
        self.look_time = look_time;
        let mut times = self.times();
        let around =
            Around { before: &self.before, behind: &behind, first_sector: self.disk.first_sector };
        slice::tell(path, &around, &mut times, &mut self.history, &mut || {
            asked(tell, &Told::Look { files: behind.files.len() as u64 })
        })?;
        self.before = behind;
        let view = TreeView::new(&self.before, &self.history);
        self.history.settle_places(view.places());
        let round = self.decide(volume, tell)?;
        Ok(self.told(&recording, &before, &round))
    }

    fn times(&self) -> DiskTimes {
        match &self.options.device {
            None => DiskTimes::Observed { free_at_ns: 0 },
            Some(device) => {
                let total_bytes = self.before.facts.total_bytes;
                DiskTimes::Modelled(Box::new(ModelledDisk::new(device, total_bytes)))
            }
        }
    }

    /// Records a slice.
    fn record(
        &self,
        path: &Path,
        time: Duration,
        tell: &mut Tell<'_>,
    ) -> Result<Recording, SnapshotError> {
        let options = RecordOptions {
            target: self.options.path.clone(),
            output: path.to_owned(),
            time_ns: u64::try_from(time.as_nanos()).ok(),
            size_bytes: Some(SLICE_BYTES_MAX),
            anonymous: true,
            ..RecordOptions::default()
        };
        let mut looked_second = 0;
        let recorded = agewell_record::record(&options, &mut |told| {
            let second = told.seconds as u64;
            if second > looked_second {
                looked_second = second;
                self.check_mount()?;
            }
            Ok(tell(&Told::Record {
                seconds: told.seconds,
                of_seconds: time.as_secs_f64(),
                requests: told.requests,
            }))
        });
        recorded.map_err(of_record)
    }

    fn check_mount(&self) -> Result<(), SnapshotError> {
        if device_number(&self.options.path)? == self.device_number {
            return Ok(());
        }
        Err(SnapshotError::Run(format!(
            "{}: was unmounted; start it again when it is mounted",
            self.options.path.display()
        )))
    }

    /// Decides, and moves what pays.
    fn decide(&mut self, volume: Volume, tell: &mut Tell<'_>) -> Result<Round, SnapshotError> {
        if self.options.device.is_none() && !self.history.times.is_known() {
            return Ok(Round { outcome: Outcome::Learning, ..Round::default() });
        }
        let quiet = Quiet::new(&self.disk);
        if !self.options.dry_run
            && let Some(busy_pct) =
                quiet.wait(self.options.every, &mut || asked(tell, &Told::Wait))?
        {
            return Ok(Round { outcome: Outcome::Busy, busy_pct, ..Round::default() });
        }
        let allowance = self.budget.allowance(wall_ns());
        let trust = self.history.trust.clone();
        let view = TreeView::new(&self.before, &self.history);
        let Choice { mut groups, considered } = choose(&mut self.history, &view, allowance);
        let mut round = Round { considered, outcome: Outcome::NothingPays, ..Round::default() };
        if groups.is_empty() {
            if considered.beyond_budget > 0 {
                round.outcome = Outcome::BeyondBudget;
            }
            return Ok(round);
        }
        let planned = self.plan(&volume, &view, &mut groups, allowance)?;
        let Some(plan) = planned else {
            self.history.trust = trust;
            round.outcome = Outcome::BeyondBudget;
            return Ok(round);
        };
        if plan.work.moved_bytes == 0 {
            self.history.trust = trust;
            let is_full = plan.work.no_room > 0;
            round.outcome = if is_full { Outcome::NoRoom } else { Outcome::NothingPays };
            return Ok(round);
        }
        round.files = plan.work.files;
        round.bytes = plan.work.moved_bytes;
        round.likely_seconds = groups.iter().map(|group| group.likely_ns).sum::<f64>() / 1e9;
        round.cost_seconds = groups.iter().map(|group| group.cost_ns).sum::<f64>() / 1e9;
        if self.options.dry_run {
            self.history.trust = trust;
            round.outcome = Outcome::WouldMove;
            return Ok(round);
        }
        let places: Vec<(u32, Vec<Run>)> = groups
            .iter()
            .flat_map(|group| &group.files)
            .map(|file| (*file, view.places().runs(*file).to_vec()))
            .collect();
        drop(view);
        self.carry(&volume, &plan, allowance, &mut round, tell)?;
        drop(volume);
        self.settle(&groups, &places, tell)?;
        round.outcome = Outcome::Moved;
        Ok(round)
    }

    /// A plan for `groups`, or for as many of them as are within the budget with what makes room.
    fn plan(
        &self,
        volume: &Volume,
        view: &TreeView<'_>,
        groups: &mut Vec<Group>,
        allowance: u64,
    ) -> Result<Option<Plan>, SnapshotError> {
        let room = volume.room(&self.before)?;
        for _ in 0..PLANS_MAX {
            let files = groups.iter().flat_map(|group| &group.files);
            let places = files.filter_map(|file| view.place(*file));
            let order: Vec<Part> = places.map(Part::whole).collect();
            let options = PlanOptions::default();
            let file_system = volume.file_system();
            let plan = plan(&self.before, file_system, &order, &room, None, &options)?;
            if plan.work.moved_bytes <= allowance {
                return Ok(Some(plan));
            }
            if groups.len() == 1 {
                return Ok(None);
            }
            groups.truncate(groups.len() / 2);
        }
        Ok(None)
    }

    /// Carries `plan` out, in pauses of others and within the budget.
    fn carry(
        &mut self,
        volume: &Volume,
        plan: &Plan,
        allowance: u64,
        round: &mut Round,
        tell: &mut Tell<'_>,
    ) -> Result<(), SnapshotError> {
        let pieces = plan.files.iter().flat_map(|file| &file.pieces);
        let largest_bytes = pieces.map(|piece| piece.length_bytes).max().unwrap_or(0);
        let mut quiet = Quiet::new(&self.disk);
        let (mut moved_bytes, mut spent) = (0, false);
        let budget = &mut self.budget;
        let carried = carry_out(volume, plan, Pace::default(), &mut |told: &Progress| {
            budget.spend(wall_ns(), told.moved_bytes - moved_bytes);
            moved_bytes = told.moved_bytes;
            asked(tell, &Told::Move { bytes: moved_bytes, of_bytes: told.planned_bytes })?;
            // As planned it stays within; places that others took are tried again.
            if moved_bytes >= plan.work.moved_bytes
                && moved_bytes.saturating_add(largest_bytes) > allowance
            {
                spent = true;
                return Err(SnapshotError::Stopped);
            }
            quiet.between(&mut || asked(tell, &Told::Wait))
        });
        let seconds = match carried {
            Ok(done) => {
                budget.spend(wall_ns(), done.moved_bytes - moved_bytes);
                moved_bytes = done.moved_bytes;
                round.files = done.files;
                Some(done.seconds)
            }
            Err(SnapshotError::Stopped) if spent => None,
            Err(why) => {
                // The last move may have been made.
                budget.spend(wall_ns(), largest_bytes);
                return Err(why);
            }
        };
        round.bytes = moved_bytes;
        let totals = &mut self.history.totals;
        let own_ns = seconds.map(|seconds| (seconds - quiet.paused().as_secs_f64()).max(0.0) * 1e9);
        let modelled_ns = round.cost_seconds * 1e9;
        let cost_ns = own_ns.filter(|_| self.options.device.is_none()).unwrap_or(modelled_ns);
        round.cost_seconds = cost_ns / 1e9;
        totals.moving_ns += cost_ns as u64;
        totals.moved_bytes += moved_bytes;
        totals.room_bytes += moved_bytes.saturating_sub(plan.work.file_bytes);
        Ok(())
    }

    /// Looks what became of the moves.
    fn settle(
        &mut self,
        groups: &[Group],
        places: &[(u32, Vec<Run>)],
        tell: &mut Tell<'_>,
    ) -> Result<(), SnapshotError> {
        for (number, _) in places {
            self.history.tried(*number);
        }
        (self.before, self.look_time) = look(&self.options.path, tell)?;
        let view = TreeView::new(&self.before, &self.history);
        for (number, before) in places {
            let after = view.places().runs(*number);
            if !after.is_empty() && after != &before[..] {
                self.history.moved(*number, before, place_sum(after));
            }
        }
        for group in groups {
            self.history.trust.moved(group.torn, group.expected);
        }
        Ok(())
    }

    /// The round with what is known of all.
    fn told(&mut self, recording: &Recording, before: &Totals, round: &Round) -> Round {
        let totals = self.history.totals;
        let slots = totals.read_slots - before.read_slots;
        let named = totals.named_slots - before.named_slots;
        let left = self.budget.allowance(wall_ns());
        Round {
            now_ns: wall_ns(),
            seconds: recording.seconds,
            reads: totals.reads - before.reads,
            read_seconds: (totals.read_ns - before.read_ns) as f64 / 1e9,
            named_pct: 100.0 * named as f64 / slots.max(1) as f64,
            lost_events: recording.lost_events,
            files_known: self.history.count() as u64,
            left_bytes: self.options.budget_bytes_per_hour.map(|_| left),
            saved_seconds: self.history.trust.saved_ns() / 1e9,
            all_read_seconds: totals.read_ns as f64 / 1e9,
            moving_seconds: totals.moving_ns as f64 / 1e9,
            moved_bytes: totals.moved_bytes,
            ..*round
        }
    }
}

fn device_number(path: &Path) -> Result<u64, SnapshotError> {
    let found = std::fs::metadata(path).map_err(|why| {
        SnapshotError::Input(format!(
            "{}: cannot be opened: {why}; give a directory of a mounted ext4, xfs or btrfs",
            path.display()
        ))
    })?;
    Ok(found.dev())
}

/// Opens the file system and looks where its files lie.
fn open(path: &Path, tell: &mut Tell<'_>) -> Result<(Volume, Snapshot, Duration), SnapshotError> {
    let began_ns = now_ns();
    let (volume, snapshot) =
        Volume::open(path, wall_ns(), &mut |told| asked(tell, &Told::Look { files: told.files }))?;
    Ok((volume, snapshot, Duration::from_nanos((now_ns() - began_ns) as u64)))
}

fn look(path: &Path, tell: &mut Tell<'_>) -> Result<(Snapshot, Duration), SnapshotError> {
    let (_, snapshot, time) = open(path, tell)?;
    Ok((snapshot, time))
}
