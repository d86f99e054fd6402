//! Replays onto directories, against a slow model of what must be there in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agewell_core::{RandomStreams, Stream, uniform_below};
use proptest::prelude::*;

use super::*;
use crate::Snapshot;
use crate::target::{Allocation, DirectoryOptions, DirectoryTarget, Refusals};

/// What a workload leaves behind: directories with their parents, files with directory and size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Model {
    directories: BTreeMap<u32, u32>,
    files: BTreeMap<u32, (u32, u64)>,
}

impl Model {
    fn apply(&mut self, operation: &Operation) {
        let Operation { file, directory, offset_bytes, size_bytes, .. } = *operation;
        match operation.action {
            Action::MakeDirectory => assert!(self.directories.insert(file, directory).is_none()),
            Action::RemoveDirectory => assert!(self.directories.remove(&file).is_some()),
            Action::Create => assert!(self.files.insert(file, (directory, 0)).is_none()),
            Action::Delete => assert!(self.files.remove(&file).is_some()),
            Action::Write => {
                let size = &mut self.files.get_mut(&file).expect("written files exist").1;
                *size = (*size).max(offset_bytes + size_bytes);
            }
            Action::Truncate => {
                self.files.get_mut(&file).expect("cut files exist").1 = offset_bytes
            }
            Action::Rename => self.files.get_mut(&file).expect("moved files exist").0 = directory,
            Action::Sync | Action::SyncFile | Action::Read => {}
        }
    }

    fn of(operations: &[Operation]) -> Self {
        let mut model = Self::default();
        operations.iter().for_each(|operation| model.apply(operation));
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
    // Few numbers, so that they come back soon.
    let number = below(24) as u32;
    match (below(100), chosen) {
        (0..25, _) if !model.files.contains_key(&number) => {
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
    let mut log = Vec::new();
    let mut keep = |batch: &[Operation]| {
        log.extend_from_slice(batch);
        Ok(())
    };
    let workload = operations.iter().copied().map(Ok);
    let report = replay(workload, target, 4096, options, files, Some(&mut keep), &mut |_| true)?;
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

/// A target that dies after so many operations, as by SIGKILL between two system calls.
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
    fn set_redoing(&mut self, redoing: bool) {
        self.inner.set_redoing(redoing);
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

/// Runs `operations` on a directory, killed after each of `lives` operations, until they are done.
fn with_deaths(
    operations: &[Operation],
    lives: &[u64],
    replay_options: &ReplayOptions,
) -> (BTreeMap<String, u64>, Vec<Operation>) {
    let place = place();
    let root = place.path().join("target");
    std::fs::create_dir(&root).expect("a place for files");
    let mut files =
        ReplayFiles { checkpoint: Some(place.path().join("state")), ..ReplayFiles::default() };
    for life in lives.iter().copied().chain([u64::MAX]) {
        let mut of_directory = options(1, Allocation::Write);
        of_directory.allow_occupied = files.resume;
        let mut inner = DirectoryTarget::open(&root, of_directory).expect("empty, or resumed");
        let mut target = Mortal { inner: &mut inner, left: life };
        match run(operations, &mut target, replay_options, &files) {
            Ok((_, log)) => return (found(&root), log),
            Err(AgeError::Run(why)) if why == "killed" => files.resume = true,
            Err(other) => panic!("{other}"),
        }
    }
    unreachable!("the last life is long enough");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Killed at any operation, any number of times: the same files and sizes in the end, and the
    /// same log.
    #[test]
    fn a_replay_that_is_killed_and_resumed_ends_the_same(
        seed in 0_u64..1000,
        lives in prop::collection::vec(0_u64..9000, 1..6),
    ) {
        let operations = drawn(seed, 14_000, 3000);
        let (files, log) = with_deaths(&operations, &lives, &ReplayOptions::default());
        prop_assert_eq!(files, Model::of(&operations).paths());
        prop_assert_eq!(log, operations);
    }
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
    let (files, log) = with_deaths(&operations, &[3000, 5000, 4097], &replay_options);
    assert_eq!(files, Model::of(&log).paths());
}
