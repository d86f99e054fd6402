//! Operations per second of a replay: the plan alone, a simulated FFS aging at 80 % full, and a
//! directory in memory.
//!
//! The plan is bound by the table of files (one random access an operation), the simulated file
//! system by its bitmaps, the directory by its system calls: one to make, write or remove a file.

use std::path::Path;
use std::time::Duration;

use agewell_age::onto::{DirectoryOptions, DirectoryTarget, Refusals, SimulatedTarget, Target};
use agewell_age::replay::{Hold, ReplayFiles, ReplayOptions, replay};
use agewell_age::simulated_layout::LayoutSetup;
use agewell_age::{Action, AgeError, LayoutCounts, Operation, Outcome, Snapshot, Usage};
use agewell_core::{RandomStreams, uniform_below};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;

/// Directories of the workload: the cylinder groups of Smith & Seltzer 1996, table 1.
const DIRECTORIES: u32 = 27;

/// `files` files, made in turn and then made again and again in random order, each of a size
/// between nothing and twice `mean_bytes`.
fn churn(operations: usize, files: u32, mean_bytes: u64) -> Vec<Operation> {
    let mut random = RandomStreams::new(1).stream("benchmark");
    let mut made = Vec::with_capacity(operations + 3);
    let mut live = vec![false; files as usize];
    let mut fresh = 0..files;
    let directory_of = |file: u32| 1 + file % DIRECTORIES;
    let operation = |action, file, directory, size_bytes, at: usize| Operation {
        time_ns: at as u64 * 1_000_000,
        file,
        directory,
        offset_bytes: 0,
        size_bytes,
        stream: 0,
        action,
    };
    for directory in 1..=DIRECTORIES {
        made.push(operation(Action::MakeDirectory, directory, 0, 0, 0));
    }
    while made.len() < operations {
        let drawn = fresh.next();
        let file = drawn.unwrap_or_else(|| uniform_below(&mut random, u64::from(files)) as u32);
        let (at, directory) = (made.len(), directory_of(file));
        if std::mem::replace(&mut live[file as usize], true) {
            made.push(operation(Action::Delete, file, directory, 0, at));
        }
        let size = uniform_below(&mut random, 2 * mean_bytes);
        made.push(operation(Action::Create, file, directory, 0, at));
        made.push(operation(Action::Write, file, directory, size, at));
    }
    made
}

/// A target that does nothing.
struct Nothing;

impl Target for Nothing {
    fn apply(&mut self, _operation: &Operation) -> Result<Outcome, AgeError> {
        Ok(Outcome::Done)
    }
    fn assume(&mut self, _operations: &[Operation]) -> Result<(), AgeError> {
        Ok(())
    }
    fn roll_back(&mut self) -> Result<(), AgeError> {
        Ok(())
    }
    fn refusals(&self) -> Refusals {
        Refusals::default()
    }
    fn restore(&mut self, _refusals: &Refusals) {}
    fn usage(&mut self) -> Result<Usage, AgeError> {
        Ok(Usage { total_bytes: 400 << 20, used_bytes: 0 })
    }
    fn layout_counts(&mut self) -> Result<LayoutCounts, AgeError> {
        Ok(LayoutCounts::default())
    }
    fn snapshot(&mut self) -> Result<Snapshot, AgeError> {
        Ok(Snapshot::default())
    }
}

fn run(operations: &[Operation], target: &mut dyn Target, options: &ReplayOptions) {
    let workload = operations.iter().copied().map(Ok);
    let files = ReplayFiles::default();
    replay(workload, target, 8192, options, &files, None, &mut |_| true)
        .expect("the target takes them all");
}

/// Options that hold 80 %.
fn full() -> ReplayOptions {
    ReplayOptions { utilization: Some(0.8), hold: Hold::Random, ..ReplayOptions::default() }
}

fn benchmarks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    // 9,000 files of 45 KB: the contents of table 1 (1996), four times the room that 80 % leaves.
    let operations = churn(600_000, 36_000, 45 << 10);
    group.throughput(Throughput::Elements(operations.len() as u64));
    group.bench_function("plan", |bencher| {
        bencher.iter(|| run(&operations, &mut Nothing, &full()));
    });
    for kind in ["ffs", "ffs+realloc"] {
        let setup = LayoutSetup::read(json!({"kind": kind})).expect("a known kind");
        group.bench_function(format!("{kind}-at-80-pct"), |bencher| {
            bencher.iter_batched_ref(
                || SimulatedTarget::new(setup.build().expect("fits"), setup.facts()),
                |target| run(&operations, target, &full()),
                BatchSize::LargeInput,
            );
        });
    }
    let operations = churn(20_000, 2000, 8 << 10);
    group.throughput(Throughput::Elements(operations.len() as u64));
    group.bench_function("directory", |bencher| {
        bencher.iter_batched_ref(
            || {
                let memory = Path::new("/dev/shm");
                let place = if memory.is_dir() { memory } else { Path::new("/tmp") };
                let place = tempfile::tempdir_in(place).expect("a place for files");
                let options =
                    DirectoryOptions { allow_system_disk: true, ..DirectoryOptions::default() };
                let target = DirectoryTarget::open(place.path(), options).expect("empty");
                (place, target)
            },
            |(_place, target)| run(&operations, target, &ReplayOptions::default()),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(replays, benchmarks);
criterion_main!(replays);
