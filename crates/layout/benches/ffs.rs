//! File operations a second on a Fast File System that ages at 80 % full, and blocks a second of
//! large sequential writes.
//!
//! The file system is that of Smith & Seltzer 1996. Files are made, written whole and removed, a
//! third of the operations each, of 242 KB (30 blocks) on average; that paper's workload writes 60 KB
//! an operation, this one 80. Each measurement starts from a copy of a file system that was aged
//! before, and prints the layout score that it ends with, so that a change of behaviour is not
//! mistaken for one of speed.
//!
//! Bound by: memory. A new file touches its inode (120 bytes), its group's counts and bitmaps, and
//! for each block the byte of the block, its bits, and two counts by rotational position; a removed
//! one the same again. See `ffs.rs` for figures.

#![allow(clippy::print_stderr, reason = "a benchmark prints a hash of what it did")]

use std::hint::black_box;

use agewell_core::{RandomStreams, uniform_below};
use agewell_layout::ffs::{FastFileSystem, Parameters, Policies};
use agewell_layout::file_system::FileSystem;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// Operations that one measurement does.
const OPERATIONS: usize = 300_000;
/// Share of the space that files take, percent.
const FULL_PCT: u64 = 80;

/// A step of the workload, drawn beforehand: the file system is measured, not the workload.
#[derive(Debug, Clone, Copy)]
struct Draw {
    directory: u32,
    size_bytes: u64,
    victim: u64,
}

/// Sizes are spread evenly over the powers of two: a third of the files is below 8 KB, a twelfth has
/// a megabyte or two.
fn draws() -> Vec<Draw> {
    let mut stream = RandomStreams::new(1).stream("files");
    let draw = |_| {
        let exponent = 8 + uniform_below(&mut stream, 13);
        let least = 1_u64 << exponent;
        Draw {
            directory: uniform_below(&mut stream, 1 << 20) as u32,
            size_bytes: least + uniform_below(&mut stream, least),
            victim: uniform_below(&mut stream, 1 << 40),
        }
    };
    (0..OPERATIONS).map(draw).collect()
}

#[derive(Clone)]
struct Aged {
    system: FastFileSystem,
    directories: Vec<u32>,
    files: Vec<u32>,
}

impl Aged {
    fn new(parameters: &Parameters) -> Self {
        let mut system = FastFileSystem::new(parameters).expect("the parameters fit");
        let root = system.root();
        let directories =
            (0..system.groups()).map(|_| system.make_directory(root, &mut ()).expect("room"));
        let directories = directories.collect();
        Self { system, directories, files: Vec::new() }
    }

    /// Makes files, removing others as soon as the disk is full enough, until `operations` are done;
    /// says how many.
    fn age(&mut self, draws: &[Draw], operations: usize) -> usize {
        let mut done = 0;
        for draw in draws {
            let directory = self.directories[draw.directory as usize % self.directories.len()];
            let file = self.system.create(directory, &mut ()).expect("there are inodes");
            self.system.write(file, 0, draw.size_bytes, &mut ()).expect("there is room");
            self.files.push(file);
            done += 2;
            let mut victim = draw.victim;
            while self.is_full() {
                let at = (victim % self.files.len() as u64) as usize;
                victim /= 7;
                let file = self.files.swap_remove(at);
                self.system.remove(file, &mut ()).expect("it is there");
                done += 1;
            }
            if done >= operations {
                break;
            }
        }
        done
    }

    fn is_full(&self) -> bool {
        let (used, total) = self.system.usage_bytes();
        used * 100 > total * FULL_PCT
    }

    fn score(&self) -> f64 {
        let (optimal, counted) = self.system.layout_counts();
        optimal as f64 / counted as f64
    }
}

fn aging(criterion: &mut Criterion) {
    let draws = draws();
    for (name, policies) in [("plain", Policies::PLAIN), ("realloc", Policies::REALLOC)] {
        let mut group = criterion.benchmark_group("ffs");
        group.sample_size(10);
        let mut aged = Aged::new(&Parameters::smith_1996(policies));
        aged.age(&draws, OPERATIONS);
        let mut after = aged.clone();
        let done = after.age(&draws, OPERATIONS);
        after.system.verify();
        eprintln!("ffs/aging_{name}: {done} operations, layout score {:?}", after.score());
        group.throughput(Throughput::Elements(done as u64));
        group.bench_function(format!("aging_{name}"), |bencher| {
            bencher.iter_batched_ref(
                || aged.clone(),
                |aged| black_box(aged.age(&draws, OPERATIONS)),
                BatchSize::LargeInput,
            );
        });
        group.finish();
    }
}

/// 400 MB in files of 16 MB.
fn sequential(criterion: &mut Criterion) {
    let parameters = Parameters::smith_1996(Policies::REALLOC);
    let empty = Aged::new(&parameters);
    let mut group = criterion.benchmark_group("ffs");
    group.sample_size(10);
    group.throughput(Throughput::Elements(25 << 11));
    group.bench_function("sequential_blocks", |bencher| {
        bencher.iter_batched_ref(
            || empty.clone(),
            |empty| {
                for directory in empty.directories.iter().take(25) {
                    let file = empty.system.create(*directory, &mut ()).expect("room");
                    for part in 0..4 {
                        let written = empty.system.write(file, part << 22, 1 << 22, &mut ());
                        written.expect("room");
                    }
                }
                black_box(empty.system.layout_counts())
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, aging, sequential);
criterion_main!(benches);
