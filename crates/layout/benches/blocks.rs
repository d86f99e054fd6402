//! User block writes a second on layouts that are no log.
//!
//! Blocks are drawn beforehand. Each measurement starts from a copy of a layout whose disk has been
//! written over once, and prints where the head of it or the last block ended, so that a change of
//! behaviour is not mistaken for one of speed.
//!
//! Bound by: the map of blocks at random (4 bytes each way), and the words of the bitmap of free
//! places; a journal writes three more words a place.

#![allow(clippy::print_stderr, reason = "a benchmark prints a hash of what it did")]

use std::hint::black_box;

use agewell_core::{RandomStreams, uniform_below};
use agewell_layout::block_layout::{BlockLayout, FileBlock};
use agewell_layout::ffs::{FastFileSystem, Parameters, Policies};
use agewell_layout::file_system_blocks::{FileSystemBlocks, FileSystemBlocksSetting};
use agewell_layout::sequential::{Order, Sequential, SequentialSetting};
use agewell_layout::write_ahead::{JournalPlace, Journaled, WriteAhead, WriteAheadSetting};
use agewell_layout::write_anywhere::{CrashRecovery, Search, WriteAnywhere, WriteAnywhereSetting};
use agewell_log::Unpriced;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const BLOCKS: u32 = 1 << 18;
const WRITES: u32 = 1 << 20;
const BLOCK_BYTES: u64 = 8192;
const BUFFER_BLOCKS: u32 = 32;

fn updates() -> Vec<u32> {
    let mut stream = RandomStreams::new(1).stream("updates");
    (0..WRITES).map(|_| uniform_below(&mut stream, u64::from(BLOCKS)) as u32).collect()
}

/// Writes all of `blocks`.
fn write_all(layout: &mut impl BlockLayout, blocks: &[u32]) {
    for block in blocks {
        let name = FileBlock { file: 0, block: *block };
        layout.write(*block, name, 0, &mut Unpriced).expect("there is room");
    }
}

fn measure<L: BlockLayout + Clone>(criterion: &mut Criterion, name: &str, mut layout: L) {
    let updates = updates();
    layout.ensure_blocks(BLOCKS);
    write_all(&mut layout, &(0..BLOCKS).collect::<Vec<_>>());
    write_all(&mut layout, &updates[..BLOCKS as usize]);
    let mut last = layout.clone();
    write_all(&mut last, &updates);
    let (counts, place) = (last.counts(), last.place_of(BLOCKS / 2));
    eprintln!("{name}: {counts:?}, the middle block at {place:?}");
    let mut group = criterion.benchmark_group("blocks");
    group.throughput(Throughput::Elements(u64::from(WRITES))).sample_size(10);
    group.bench_function(name, |bencher| {
        bencher.iter_batched_ref(
            || layout.clone(),
            |layout| write_all(layout, black_box(&updates)),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn capacity(utilization: f64) -> u32 {
    (f64::from(BLOCKS) / utilization) as u32
}

fn anywhere(search: Search, recovery: CrashRecovery, utilization: f64) -> WriteAnywhere {
    WriteAnywhere::new(WriteAnywhereSetting {
        capacity_blocks: capacity(utilization),
        block_bytes: BLOCK_BYTES,
        clients: 1,
        buffer_blocks: BUFFER_BLOCKS,
        search,
        recovery,
        checkpoint_blocks: 8192,
    })
    .expect("the disk is larger than its map")
}

fn sequential() -> Sequential {
    Sequential::new(SequentialSetting {
        capacity_blocks: capacity(0.9),
        clients: 1,
        buffer_blocks: BUFFER_BLOCKS,
        order: Order::Place,
    })
}

fn ffs() -> FileSystemBlocks<FastFileSystem> {
    let parameters = Parameters { minfree_pct: 0, ..Parameters::smith_1996(Policies::REALLOC) };
    let parameters = parameters.with_data_bytes(u64::from(capacity(0.9)) * BLOCK_BYTES);
    let system = FastFileSystem::new(&parameters.expect("a shape")).expect("a shape");
    let setting = FileSystemBlocksSetting {
        block_bytes: BLOCK_BYTES,
        clients: 1,
        buffer_blocks: BUFFER_BLOCKS,
        metadata: true,
        metadata_cache_blocks: 128,
        transfer_bytes_max: 64 << 10,
    };
    FileSystemBlocks::new(setting, system)
}

fn journaled() -> WriteAhead<Sequential> {
    let setting = WriteAheadSetting {
        journaled: Journaled::Full,
        place: JournalPlace::Start,
        inner_places: capacity(0.9),
        place_bytes: BLOCK_BYTES,
        block_places: 1,
        journal_places: 1024,
        group_places: BUFFER_BLOCKS,
        checkpoint_commits: 0,
    };
    WriteAhead::new(setting, sequential())
}

const SEARCHES: [(&str, Search); 3] = [
    ("sweep", Search::Sweep),
    ("nearest", Search::Nearest),
    ("stripe", Search::Stripe { stripe_blocks: 32 }),
];

fn benches(criterion: &mut Criterion) {
    for utilization in [0.5, 0.9] {
        for (search, how) in SEARCHES {
            let name = format!("write-anywhere {search} {utilization}");
            measure(criterion, &name, anywhere(how, CrashRecovery::Scan, utilization));
        }
    }
    let snapshots = anywhere(Search::Sweep, CrashRecovery::Snapshot, 0.9);
    measure(criterion, "write-anywhere sweep 0.9, snapshots", snapshots);
    measure(criterion, "sequential 0.9", sequential());
    measure(criterion, "write-ahead, sequential 0.9", journaled());
    measure(criterion, "ffs+realloc 0.9", ffs());
}

criterion_group!(all, benches);
criterion_main!(all);
