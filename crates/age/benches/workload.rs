//! Operations a second of making, writing and reading aging workloads.
//!
//! Bound: a generator by its draws and by a few cache misses a file in the live_set; the writer by
//! encoding and compressing seven columns; the reader by decoding them and by the live_set again.
//! `live_set` alone is the cost of the rules.

use std::hint::black_box;

use agewell_age::workload::smith_1996::{self, Smith1996Parameters};
use agewell_age::workload::{
    HistoryParameters, LiveSet, OperationSink, WorkloadReader, WorkloadWriter, oplist,
};
use agewell_age::{AgeError, Operation};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Takes operations and forgets them, but for a sum, so that none is left out.
#[derive(Default)]
struct Sum(u64);

impl OperationSink for Sum {
    fn push(&mut self, operation: &Operation) -> Result<(), AgeError> {
        self.0 = self.0.wrapping_add(operation.time_ns).wrapping_add(operation.size_bytes);
        Ok(())
    }
}

/// A history of 40 commits that each add, change and remove files in 50 directories.
fn list() -> String {
    let mut text = String::from("commit,unix_time,op,file_id,dir_id,depth,old_size,new_size\n");
    let mut line = |commit: u64, kind: &str, file: u64, old: u64, new: u64| {
        use std::fmt::Write as _;
        let directory = 1 + file % 50;
        writeln!(text, "{commit},{commit},{kind},{file},{directory},1,{old},{new}")
            .expect("in memory");
    };
    for commit in 0..40 {
        for file in 0..500 {
            line(commit, "A", commit * 500 + file, 0, 1_000 + file * 13);
        }
        for file in 0..500 * commit / 4 {
            line(commit, "M", commit * 500 + file % 500, 1_000, 2_000 + file);
        }
    }
    text
}

fn workloads(criterion: &mut Criterion) {
    let parameters = Smith1996Parameters::default();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("w.parquet");
    let accepted = "the defaults are in range";
    let (facts, operations) = smith_1996::generate(&parameters, 1, Vec::new()).expect(accepted);

    let mut group = criterion.benchmark_group("workload");
    group.throughput(Throughput::Elements(facts.operations)).sample_size(10);
    group.bench_function("smith-1996", |bencher| {
        bencher.iter(|| smith_1996::generate(&parameters, 1, Sum::default()).expect(accepted).1.0);
    });
    group.bench_function("live_set", |bencher| {
        bencher.iter(|| {
            let mut live_set = LiveSet::default();
            for operation in &operations {
                live_set.apply(operation).expect("the generator keeps the rules");
            }
            live_set.live_bytes
        });
    });
    group.bench_function("write", |bencher| {
        bencher.iter(|| {
            let mut writer = WorkloadWriter::create(&path).expect("a temporary folder");
            for operation in &operations {
                writer.push(operation).expect("a temporary folder");
            }
            writer.finish(&facts).expect("a temporary folder")
        });
    });
    group.bench_function("read", |bencher| {
        let mut batch = Vec::new();
        bencher.iter(|| {
            let mut reader = WorkloadReader::open(&path).expect("just written");
            let mut sum = 0_u64;
            while reader.next_batch(&mut batch).expect("just written") {
                sum = batch.iter().fold(sum, |sum, step| sum.wrapping_add(step.size_bytes));
            }
            black_box(sum)
        });
    });
    group.finish();

    let list_path = folder.path().join("list.csv");
    std::fs::write(&list_path, list()).expect("a temporary folder");
    let history = HistoryParameters { copies: 4, ..HistoryParameters::default() };
    let play = || oplist::from_list(&list_path, &history, Sum::default()).expect("a valid list");
    let mut group = criterion.benchmark_group("workload");
    group.throughput(Throughput::Elements(play().0.operations)).sample_size(10);
    group.bench_function("oplist", |bencher| bencher.iter(|| play().1.0));
    group.finish();
}

criterion_group!(benches, workloads);
criterion_main!(benches);
