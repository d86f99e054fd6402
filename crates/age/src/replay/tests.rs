//! Replays onto directories, against a slow model of what must be there in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agewell_core::{RandomStreams, Stream, uniform_below};
use proptest::prelude::*;

use super::*;
use crate::Snapshot;
use crate::onto::{Allocation, DirectoryOptions, DirectoryTarget, Refusals, SimulatedTarget};
use crate::score::ScoreOptions;
use agewell_layout::file_system::FileSystem;

/// What a workload leaves behind: directories with their parents, files with directory and size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Model {
    directories: BTreeMap<u32, u32>,
    files: BTreeMap<u32, (u32, u64)>,
    /// Numbers of files in use or used before.
    numbers: u32,
}

impl Model {
    fn apply(&mut self, operation: &Operation) {
        let Operation { file, directory, offset_bytes, size_bytes, .. } = *operation;
        match operation.action {
            Action::MakeDirectory => assert!(self.directories.insert(file, directory).is_none()),
            Action::RemoveDirectory => assert!(self.directories.remove(&file).is_some()),
            Action::Create => {
                assert!(self.files.insert(file, (directory, 0)).is_none());
                self.numbers = self.numbers.max(file + 1);
            }
            Action::Delete => assert!(self.files.remove(&file).is_some()),
            Action::Write => {
                let size = &mut self.files.get_mut(&file).expect("written files exist").1;
                *size = (*size).max(offset_bytes + size_bytes);
            }
            Action::Truncate => {
                self.files.get_mut(&file).expect("cut files exist").1 = offset_bytes;
            }
            Action::Rename => self.files.get_mut(&file).expect("moved files exist").0 = directory,
            Action::Sync | Action::SyncFile | Action::Read => {}
        }
    }

    fn of(operations: &[Operation]) -> Self {
        let mut model = Self::default();
        for operation in operations {
            model.apply(operation);
        }
        model
    }

    /// The paths below a target that holds it, with sizes; directories end in a slash.
    fn paths(&self) -> BTreeMap<String, u64> {
        let mut paths = BTreeMap::new();
        for &directory in self.directories.keys() {
            paths.insert(self.path(directory), 0);
        }
        for (file, (directory, size)) in &self.files {
            paths.insert(format!("{}f{file:08x}", self.path(*directory)), *size);
        }
        paths
    }

    fn path(&self, directory: u32) -> String {
        if directory == 0 {
            return String::new();
        }
        format!("{}d{directory:08x}/", self.path(self.directories[&directory]))
    }
}

/// What is below `root` in truth.
fn found(root: &Path) -> BTreeMap<String, u64> {
    let mut paths = BTreeMap::new();
    let mut waiting = vec![(root.to_owned(), String::new())];
    while let Some((path, prefix)) = waiting.pop() {
        for entry in std::fs::read_dir(path).expect("readable") {
            let entry = entry.expect("readable");
            let name = entry.file_name().into_string().expect("names are ours");
            let facts = entry.metadata().expect("readable");
            if facts.is_dir() {
                let below = format!("{prefix}{name}/");
                paths.insert(below.clone(), 0);
                waiting.push((entry.path(), below));
            } else {
                paths.insert(format!("{prefix}{name}"), facts.len());
            }
        }
    }
    paths
}

/// A workload of `count` operations that uses numbers again, moves files between directories, and
/// removes and makes directories.
fn drawn(seed: u64, count: usize, size_max: u64) -> Vec<Operation> {
    let mut random = RandomStreams::new(seed).stream("test-workload");
    let mut model = Model::default();
    let mut operations = Vec::new();
    for step in 0..count {
        let mut operation = draw(&mut random, &model, size_max);
        operation.time_ns = step as u64 * (DAY_NS / 50);
        model.apply(&operation);
        operations.push(operation);
    }
    operations
}

fn draw(random: &mut Stream, model: &Model, size_max: u64) -> Operation {
    let mut below = |bound: u64| uniform_below(random, bound);
    let nothing = Operation {
        time_ns: 0,
        file: 0,
        directory: 0,
        offset_bytes: 0,
        size_bytes: 0,
        stream: below(5) as u16,
        action: Action::Sync,
    };
    let directories: Vec<u32> =
        std::iter::once(0).chain(model.directories.keys().copied()).collect();
    let directory = directories[below(directories.len() as u64) as usize];
    let files: Vec<(u32, (u32, u64))> = model.files.iter().map(|(file, at)| (*file, *at)).collect();
    let chosen = (!files.is_empty()).then(|| files[below(files.len() as u64) as usize]);
    // Few numbers, so that they come back soon; densely from zero.
    let number = below(u64::from(model.numbers.min(23)) + 1) as u32;
    match (below(100), chosen) {
        (0..30, _) if !model.files.contains_key(&number) => {
            Operation { action: Action::Create, file: number, directory, ..nothing }
        }
        (0..55, Some((file, (directory, _)))) => Operation {
            action: Action::Write,
            file,
            directory,
            offset_bytes: below(size_max),
            size_bytes: below(size_max),
            ..nothing
        },
        (55..65, Some((file, (directory, size)))) => Operation {
            action: Action::Truncate,
            file,
            directory,
            offset_bytes: below(2) * below(size + 1),
            ..nothing
        },
        (65..78, Some((file, (directory, _)))) => {
            Operation { action: Action::Delete, file, directory, ..nothing }
        }
        (78..85, Some((file, _))) => {
            Operation { action: Action::Rename, file, directory, ..nothing }
        }
        (85..87, Some((file, (directory, _)))) => {
            Operation { action: Action::SyncFile, file, directory, ..nothing }
        }
        (87..88, Some((file, (directory, size)))) => {
            Operation { action: Action::Read, file, directory, size_bytes: size, ..nothing }
        }
        (88..94, _) => {
            let free = (1..8).find(|number| !model.directories.contains_key(number));
            free.map_or(nothing, |file| Operation {
                action: Action::MakeDirectory,
                file,
                directory,
                ..nothing
            })
        }
        (94..99, _) => {
            let used: BTreeSet<u32> = model
                .directories
                .values()
                .copied()
                .chain(model.files.values().map(|(directory, _)| *directory))
                .collect();
            let empty = model.directories.iter().find(|(number, _)| !used.contains(number));
            empty.map_or(nothing, |(number, parent)| Operation {
                action: Action::RemoveDirectory,
                file: *number,
                directory: *parent,
                ..nothing
            })
        }
        _ => nothing,
    }
}

/// A directory for files, in memory where there is such a place: a sync there waits for nothing.
fn place() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a place for files")
}

/// Options for a directory where tests make theirs.
fn options(threads: usize, allocation: Allocation) -> DirectoryOptions {
    DirectoryOptions {
        threads,
        allocation,
        chunk_bytes: 1 << 12,
        allow_system_disk: true,
        ..DirectoryOptions::default()
    }
}

fn run(
    operations: &[Operation],
    target: &mut dyn Target,
    options: &ReplayOptions,
    files: &ReplayFiles,
) -> Result<(ReplayReport, Vec<Operation>), AgeError> {
    run_telling(operations, target, options, files, &mut |_| true)
}

fn run_telling(
    operations: &[Operation],
    target: &mut dyn Target,
    options: &ReplayOptions,
    files: &ReplayFiles,
    tell: &mut Tell<'_>,
) -> Result<(ReplayReport, Vec<Operation>), AgeError> {
    let mut log = Vec::new();
    let mut keep = |batch: &[Operation]| {
        log.extend_from_slice(batch);
        Ok(())
    };
    let workload = operations.iter().copied().map(Ok);
    let report = replay(workload, target, 4096, options, files, Some(&mut keep), tell)?;
    Ok((report, log))
}

/// Files, sizes and directories are those of the model, whatever the way of writing and the number
/// of threads, and the log is the same.
#[test]
fn what_is_there_in_the_end_is_what_the_workload_says() {
    let operations = drawn(3, 3000, 20_000);
    let expected = Model::of(&operations).paths();
    assert!(expected.len() > 10, "{expected:?}");
    for allocation in [Allocation::Write, Allocation::AppendInterleaved] {
        for threads in [1, 3] {
            let place = place();
            let mut target =
                DirectoryTarget::open(place.path(), options(threads, allocation)).expect("empty");
            let (report, log) =
                run(&operations, &mut target, &ReplayOptions::default(), &ReplayFiles::default())
                    .expect("room for it");
            assert_eq!(found(place.path()), expected, "{allocation:?}, {threads} threads");
            assert_eq!(log, operations);
            assert_eq!(report.outcomes.done, operations.len() as u64);
            assert_eq!(report.stop, StopReason::WorkloadEnd);
        }
    }
}

/// A target that dies after a number of operations, as by SIGKILL between two system calls.
struct Mortal<'a> {
    inner: &'a mut DirectoryTarget,
    left: u64,
}

impl Target for Mortal<'_> {
    fn apply(&mut self, operation: &Operation) -> Result<Outcome, AgeError> {
        if self.left == 0 {
            return Err(AgeError::Run("killed".to_owned()));
        }
        self.left -= 1;
        self.inner.apply(operation)
    }
    fn assume(&mut self, operations: &[Operation]) -> Result<(), AgeError> {
        self.inner.assume(operations)
    }
    fn roll_back(&mut self) -> Result<(), AgeError> {
        self.inner.roll_back()
    }
    fn finish(&mut self) -> Result<(), AgeError> {
        self.inner.finish()
    }
    fn refusals(&self) -> Refusals {
        self.inner.refusals()
    }
    fn restore(&mut self, refusals: &Refusals) {
        self.inner.restore(refusals);
    }
    fn usage(&mut self) -> Result<Usage, AgeError> {
        self.inner.usage()
    }
    fn layout_counts(&mut self) -> Result<LayoutCounts, AgeError> {
        Ok(LayoutCounts::default())
    }
    fn snapshot(&mut self) -> Result<Snapshot, AgeError> {
        self.inner.snapshot()
    }
}

/// How a replay ends before its time.
#[derive(Debug, Clone, Copy)]
enum End {
    /// Killed after this number of operations of its life.
    Killed(u64),
    /// Stopped by hand, which writes a checkpoint, at the first end of a batch after this number of
    /// operations of the workload.
    Stopped(u64),
}

/// Runs `operations` on a directory, and lets it end by each of `ends`, until they are done.
fn with_ends(
    operations: &[Operation],
    ends: &[End],
    replay_options: &ReplayOptions,
) -> (BTreeMap<String, u64>, Vec<Operation>) {
    let place = place();
    let root = place.path().join("target");
    std::fs::create_dir(&root).expect("a place for files");
    let mut files =
        ReplayFiles { checkpoint: Some(place.path().join("state")), ..ReplayFiles::default() };
    for end in ends.iter().copied().chain([End::Killed(u64::MAX)]) {
        let of_directory = options(1, Allocation::Write);
        let opened = if files.resume {
            DirectoryTarget::reopen(&root, of_directory)
        } else {
            DirectoryTarget::open(&root, of_directory)
        };
        let mut inner = opened.expect("empty, or resumed");
        let (life, stop_at) = match end {
            End::Killed(life) => (life, u64::MAX),
            End::Stopped(at) => (u64::MAX, at),
        };
        let mut target = Mortal { inner: &mut inner, left: life };
        let mut tell = |now: &Progress| now.resuming || now.operations < stop_at;
        match run_telling(operations, &mut target, replay_options, &files, &mut tell) {
            Ok((_, log)) => return (found(&root), log),
            Err(AgeError::Stopped) => files.resume = true,
            Err(AgeError::Run(why)) if why == "killed" => files.resume = true,
            Err(other) => panic!("{other}"),
        }
    }
    unreachable!("the last life is long enough");
}

/// Kills after each of `lives` operations.
fn deaths(lives: &[u64]) -> Vec<End> {
    lives.iter().map(|life| End::Killed(*life)).collect()
}

fn an_end() -> impl Strategy<Value = End> {
    prop_oneof![
        // Shortly behind a checkpoint: what lived at it and was moved since may still be there.
        4 => (0_u64..160).prop_map(End::Killed),
        1 => (0_u64..2500).prop_map(End::Killed),
        2 => (0_u64..2500).prop_map(End::Stopped),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Killed at any operation or stopped, any number of times: the same files and sizes in the
    /// end, and the same log.
    #[test]
    fn a_replay_that_is_killed_and_resumed_ends_the_same(
        seed in 0_u64..1000,
        first_stop in 0_u64..1500,
        ends in prop::collection::vec(an_end(), 1..10),
    ) {
        let operations = drawn(seed, 2500, 3000);
        let ends: Vec<End> = [End::Stopped(first_stop)].into_iter().chain(ends).collect();
        let (files, log) = with_ends(&operations, &ends, &ReplayOptions::default());
        prop_assert_eq!(files, Model::of(&operations).paths());
        prop_assert_eq!(log, operations);
    }
}

/// Kills behind checkpoints that come by themselves, every 4096 operations.
#[test]
fn kills_between_two_checkpoints_lose_nothing() {
    for (seed, lives) in [(24, vec![4120, 4112, 5725]), (25, vec![4200, 4100, 90, 8300])] {
        let operations = drawn(seed, 14_000, 3000);
        let (files, log) = with_ends(&operations, &deaths(&lives), &ReplayOptions::default());
        assert_eq!(files, Model::of(&operations).paths(), "seed {seed}");
        assert_eq!(log, operations);
    }
}

/// The cases in which operations that are simply done once more lose a file, each killed at every
/// two moments behind a checkpoint.
#[test]
fn nothing_is_lost_at_any_two_kills() {
    let nothing = Operation {
        time_ns: 0,
        file: 0,
        directory: 0,
        offset_bytes: 0,
        size_bytes: 0,
        stream: 0,
        action: Action::Sync,
    };
    let at = |action, file, directory| Operation { file, directory, action, ..nothing };
    let write = |file, directory, size_bytes| Operation {
        size_bytes,
        ..at(Action::Write, file, directory)
    };
    let before = [
        at(Action::MakeDirectory, 1, 0),
        at(Action::MakeDirectory, 2, 1),
        at(Action::Create, 0, 0),
        write(0, 0, 700),
        at(Action::Create, 1, 1),
        write(1, 1, 900),
        nothing,
    ];
    let remade_and_moved_into = vec![
        at(Action::RemoveDirectory, 2, 1),
        at(Action::MakeDirectory, 2, 1),
        at(Action::Rename, 0, 2),
        at(Action::Rename, 1, 2),
    ];
    let remade_elsewhere = vec![
        at(Action::RemoveDirectory, 2, 1),
        at(Action::Rename, 1, 0),
        at(Action::RemoveDirectory, 1, 0),
        at(Action::MakeDirectory, 2, 0),
        at(Action::MakeDirectory, 1, 2),
        at(Action::Rename, 0, 1),
        at(Action::Rename, 1, 1),
    ];
    let made_in_what_is_removed = vec![
        at(Action::Delete, 0, 0),
        at(Action::MakeDirectory, 3, 0),
        at(Action::Create, 0, 3),
        write(0, 3, 50),
        at(Action::Rename, 0, 0),
        at(Action::RemoveDirectory, 3, 0),
    ];
    let there_and_back = vec![
        at(Action::Rename, 0, 1),
        at(Action::Rename, 0, 2),
        Operation { offset_bytes: 20, ..at(Action::Truncate, 0, 2) },
        at(Action::Delete, 1, 1),
        at(Action::Rename, 0, 0),
        at(Action::Create, 1, 2),
        write(1, 2, 10),
        at(Action::Rename, 1, 1),
    ];
    for behind in [remade_and_moved_into, remade_elsewhere, made_in_what_is_removed, there_and_back]
    {
        let operations: Vec<Operation> = before.iter().chain(&behind).copied().collect();
        let expected = Model::of(&operations).paths();
        let count = behind.len() as u64;
        for (first, second) in (0..=count).flat_map(|a| (0..=count).map(move |b| (a, b))) {
            let ends = [End::Stopped(before.len() as u64), End::Killed(first), End::Killed(second)];
            let (files, _) = with_ends(&operations, &ends, &ReplayOptions::default());
            assert_eq!(files, expected, "{ends:?} of {behind:?}");
        }
    }
}

/// A file that someone removed between a kill and the resumption, and the workload does not.
#[test]
fn a_file_that_is_gone_without_an_operation_is_an_error() {
    let operations = filling(40, 100);
    let place = place();
    let root = place.path().join("target");
    std::fs::create_dir(&root).expect("a place for files");
    let mut files =
        ReplayFiles { checkpoint: Some(place.path().join("state")), ..ReplayFiles::default() };
    let replay_options =
        ReplayOptions { sync_every: Some(SyncEvery::Operations(20)), ..ReplayOptions::default() };
    let mut target =
        DirectoryTarget::open(&root, options(1, Allocation::Write)).expect("it is empty");
    let mut tell = |now: &Progress| now.operations < 40;
    let stopped = run_telling(&operations, &mut target, &replay_options, &files, &mut tell);
    assert!(matches!(stopped, Err(AgeError::Stopped)), "{stopped:?}");
    std::fs::remove_file(root.join("f00000003")).expect("it was made");
    files.resume = true;
    let mut target =
        DirectoryTarget::reopen(&root, options(1, Allocation::Write)).expect("resumed");
    let why = run(&operations, &mut target, &replay_options, &files).expect_err("it is gone");
    assert!(why.to_string().contains("1 files were gone"), "{why}");
}

/// Names like ours that were there before could be taken for ours when a replay is resumed.
#[test]
fn a_directory_that_holds_names_like_ours_is_refused() {
    let place = place();
    let occupied = || DirectoryOptions { allow_occupied: true, ..options(1, Allocation::Write) };
    std::fs::write(place.path().join("notes"), "anything").expect("room");
    DirectoryTarget::open(place.path(), occupied()).expect("other names do no harm");
    std::fs::create_dir(place.path().join("d00000004")).expect("room");
    let why = DirectoryTarget::open(place.path(), occupied()).expect_err("a name like ours");
    assert!(why.to_string().contains("'d00000004'"), "{why}");
}

/// Killed while a utilization is held: what is removed for it is the same again.
#[test]
fn holding_a_utilization_survives_a_kill() {
    let operations = drawn(5, 14_000, 30_000);
    let place = place();
    let usage = DirectoryTarget::open(place.path(), options(1, Allocation::Write))
        .expect("empty")
        .usage()
        .expect("a mounted file system tells");
    let room = 100_000.0 / usage.total_bytes as f64;
    let replay_options = ReplayOptions {
        utilization: Some(usage.utilization() + room),
        sync_every: Some(SyncEvery::Operations(700)),
        ..ReplayOptions::default()
    };
    // The room is that at the first start, which other programs on the disk change.
    let (files, log) = with_ends(&operations, &deaths(&[3000, 5000, 4097]), &replay_options);
    assert_eq!(files, Model::of(&log).paths());
}

/// A workload that only fills: `files` files of `size_bytes`, in one directory.
fn filling(files: u32, size_bytes: u64) -> Vec<Operation> {
    let nothing = Operation {
        time_ns: 0,
        file: 0,
        directory: 0,
        offset_bytes: 0,
        size_bytes: 0,
        stream: 0,
        action: Action::Sync,
    };
    (0..files)
        .flat_map(|file| {
            let time_ns = u64::from(file) * 1_000_000_000;
            let create = Operation { time_ns, file, action: Action::Create, ..nothing };
            [create, Operation { size_bytes, action: Action::Write, ..create }]
        })
        .collect()
}

/// What `operations` ask of a target that does everything, and what is planned.
fn planned(
    operations: &[Operation],
    replay_options: &ReplayOptions,
) -> (ReplayReport, Vec<Operation>) {
    let setup = crate::simulated_layout::LayoutSetup::read(serde_json::json!({"kind": "ffs"}))
        .expect("a known kind");
    let mut target = SimulatedTarget::new(setup.build().expect("fits"), setup.facts());
    let done = run(operations, &mut target, replay_options, &ReplayFiles::default());
    target.file_system().verify();
    done.expect("a simulated file system does not fail")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However tight the limit, it is exceeded only by the one file that is left; the log keeps
    /// every rule of a workload; what is counted on the way is what a recount finds.
    #[test]
    fn a_utilization_is_held(
        seed in 0_u64..1000,
        blocks in 1_u64..60,
        oldest: bool,
        copies in 1_u32..4,
    ) {
        let operations = drawn(seed, 1500, 30_000);
        let limit = LiveLimit { bytes: blocks * 4096, block_bytes: 4096, fragment_bytes: 4096 };
        let replay_options = ReplayOptions {
            live_limit: Some(limit),
            hold: if oldest { Hold::Oldest } else { Hold::Random },
            copies,
            seed,
            ..ReplayOptions::default()
        };
        let (report, log) = planned(&operations, &replay_options);
        let (mut model, mut live_set) = (Model::default(), crate::workload::LiveSet::default());
        for operation in &log {
            prop_assert!(live_set.apply(operation).is_ok(), "{operation:?}");
            model.apply(operation);
            let live: u64 =
                model.files.values().map(|(_, size)| size.div_ceil(4096) * 4096).sum();
            // A truncation makes holes, which are counted without making room for them.
            let written = operation.action == Action::Write;
            let alone = model.files.values().filter(|(_, size)| *size > 0).count() <= 1;
            prop_assert!(!written || alone || live <= limit.bytes, "{live} at {operation:?}");
        }
        let live: u64 = model.files.values().map(|(_, size)| size.div_ceil(4096) * 4096).sum();
        prop_assert_eq!(report.planned.live_bytes, live);
        prop_assert_eq!(report.planned.live_files, model.files.len() as u64);
        prop_assert_eq!(report.planned.operations, log.len() as u64);
    }
}

/// A workload that does not fit is counted, goes on, and stays in step: what was left away is not
/// touched again, and what is removed makes room.
#[test]
fn a_full_file_system_is_counted_and_gone_on_with() {
    let mut operations = filling(3000, 400 << 10);
    let last_ns = operations.last().expect("some").time_ns + DAY_NS;
    for file in 0..3000 {
        let delete = Operation {
            time_ns: last_ns + u64::from(file),
            file,
            size_bytes: 0,
            action: Action::Delete,
            ..operations[0]
        };
        operations.push(delete);
    }
    let options = ReplayOptions { daily: true, ..ReplayOptions::default() };
    let (report, log) = planned(&operations, &options);
    assert_eq!(log, operations);
    let outcomes = report.outcomes;
    assert_eq!(outcomes.done + outcomes.no_space + outcomes.skipped, operations.len() as u64);
    // 502 MB less 10 % hold about 1,157 such files.
    assert!((1700..2000).contains(&outcomes.no_space), "{outcomes:?}");
    assert_eq!(report.no_space_at.len() as u64, outcomes.no_space);
    assert!(report.utilization_max > 0.95, "{}", report.utilization_max);
    let left = report.usage_after.used_bytes - report.usage_before.used_bytes;
    assert!(left < 1 << 20, "{left} bytes are left in use");
}

/// Each end stops where it says, and the first that is reached counts.
#[test]
fn ends_stop_a_replay() {
    let operations = filling(4000, 64 << 10);
    let ended = |until: &[Until]| {
        let until = until.to_vec();
        planned(&operations, &ReplayOptions { until, ..ReplayOptions::default() }).0
    };
    let report = ended(&[Until::WrittenBytes(1 << 20), Until::Days(1)]);
    assert_eq!(report.stop, StopReason::Reached(Until::WrittenBytes(1 << 20)));
    assert_eq!(report.planned.written_bytes, 1 << 20);
    let report = ended(&[Until::Operations(101)]);
    assert_eq!((report.planned.operations, report.planned.live_files), (101, 51));
    let report = ended(&[Until::Utilization(0.2), Until::Score(0.0001)]);
    assert_eq!(report.stop, StopReason::Reached(Until::Utilization(0.2)));
    let full = report.usage_after.used_bytes as f64 / report.usage_after.total_bytes as f64;
    assert!((0.2..0.9).contains(&full), "{full}");
    assert_eq!(ended(&[]).stop, StopReason::WorkloadEnd);
}

/// Days are sampled when they are over, whatever ends the batches.
#[test]
fn a_row_for_every_day() {
    let operations = drawn(9, 500, 5000);
    let options = ReplayOptions {
        daily: true,
        sync_every: Some(SyncEvery::Operations(7)),
        ..ReplayOptions::default()
    };
    let (report, log) = planned(&operations, &options);
    // 50 operations a day.
    let days: Vec<u64> = report.series.iter().map(|row| row.day).collect();
    assert_eq!(days, (0..10).collect::<Vec<_>>());
    for row in &report.series {
        let until = (row.day + 1) * DAY_NS;
        let counted = log.iter().filter(|operation| operation.time_ns < until).count();
        assert_eq!(row.operations, counted as u64, "day {}", row.day);
    }
}

/// The simulated file system holds what the workload says, and its own count of optimal blocks is
/// that of its snapshot.
#[test]
fn a_simulated_target_holds_what_the_workload_says() {
    for kind in ["ffs", "ffs+realloc", "lfs"] {
        let setup = crate::simulated_layout::LayoutSetup::read(
            serde_json::json!({"kind": kind, "size": "40 MiB"}),
        )
        .expect("a known kind");
        let mut target = SimulatedTarget::new(setup.build().expect("fits"), setup.facts());
        let mut operations = drawn(7, 4000, 200_000);
        // Only what is on the disk has a place.
        let last = *operations.last().expect("some");
        operations.push(Operation { action: Action::Sync, size_bytes: 0, offset_bytes: 0, ..last });
        run(&operations, &mut target, &ReplayOptions::default(), &ReplayFiles::default())
            .expect("a simulated file system does not fail");
        let model = Model::of(&operations);
        let snapshot = target.snapshot().expect("it tells");
        let mut sizes: Vec<u64> = model.files.values().map(|(_, size)| *size).collect();
        let mut found: Vec<u64> = snapshot
            .files
            .iter()
            .filter(|file| file.kind == crate::FileKind::Regular)
            .map(|file| file.size_bytes)
            .collect();
        sizes.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, sizes, "{kind}");
        let counted = crate::score::layout_counts(&snapshot, &ScoreOptions::default(), |_| true)
            .expect("sound");
        assert_eq!(target.layout_counts().expect("it tells"), counted, "{kind}");
    }
}

#[test]
fn ends_and_syncs_are_read_as_people_write_them() {
    let until = |text: &str| Until::parse(text).map_err(|why| why.to_string());
    assert_eq!(until("score=0.8"), Ok(Until::Score(0.8)));
    assert_eq!(until("writes = 20 GB"), Ok(Until::WrittenBytes(20_000_000_000)));
    assert_eq!(until("days=30"), Ok(Until::Days(30)));
    assert!(until("score").expect_err("no value").contains("'score' is not an end"));
    assert!(until("scores=1").is_err() && until("writes=20").is_err());
    let every = |text: &str| SyncEvery::parse(text).map_err(|why| why.to_string());
    assert_eq!(every("1000"), Ok(SyncEvery::Operations(1000)));
    assert_eq!(every("64 MiB"), Ok(SyncEvery::Bytes(64 << 20)));
    assert_eq!(every("1 d"), Ok(SyncEvery::TimeNs(DAY_NS)));
    assert!(every("often").is_err());
    let bad = ReplayOptions { until: vec![Until::Score(1.5)], ..ReplayOptions::default() };
    assert!(bad.check().is_err());
}

#[test]
fn live_bytes_count_fragments_where_the_target_has_them() {
    // Blocks of 8 KiB, fragments of 1 KiB.
    let (report, _) = planned(&filling(10, 1500), &ReplayOptions::default());
    assert_eq!(report.planned.live_bytes, 10 * 2048);
}
