//! The hot loops, each small, for whoever counts their instructions.
//!
//!     cargo run --release -p agewell-age --example hot_loops -- [LOOP]
//!
//! Without LOOP it names them. What is counted is the function `counted`, and not what is made for it beforehand:
//! `valgrind --tool=callgrind --toggle-collect='*counted*'`, as `bench/count` does. Each prints a number that
//! depends on all it did.
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;

use agewell_age::score::{ScoreOptions, score};
use agewell_age::{
    Extent, ExtentFlags, FileKind, FileSystemFacts, NO_TIME, Snapshot, SnapshotFile,
};
use agewell_core::{
    BlockRequest, Operation, RandomStreams, Sector, SectorCount, SimTime, uniform_below,
};
use agewell_disk::{Device, DeviceModel, DeviceParameters};
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::Mechanism;
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{AdaptiveLog, Call, CostMeter, Log, LogSetting, LogShape};
use agewell_sim::cache::{Cache, Eviction};
use agewell_trace::{BlockBatch, Format, ReadOptions, read_block_trace};

type Anything<T> = Result<T, Box<dyn Error>>;

const LOOPS: [(&str, fn() -> Anything<u64>); 6] = [
    ("log-greedy", log_greedy),
    ("log-adaptive", log_adaptive),
    ("device-service", device_service),
    ("cache-lru", cache_lru),
    ("trace-decode", trace_decode),
    ("layout-score", layout_score),
];

fn main() -> Anything<()> {
    let Some(wanted) = std::env::args().nth(1) else {
        LOOPS.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    };
    let found = LOOPS.iter().find(|(name, _)| *name == wanted);
    let (_, run) = found.ok_or_else(|| format!("no loop is called {wanted}"))?;
    println!("{}", run()?);
    Ok(())
}

/// The work itself, in a function of its own name whatever is inlined.
#[inline(never)]
fn counted<T>(work: impl FnOnce() -> T) -> T {
    black_box(work())
}

const DISK: CostModel = CostModel {
    access_ns: 15_000_000,
    further_ns: 5_500_000,
    bandwidth_bytes_per_s: 5_000_000,
    block_bytes: 4096,
};

const BLOCKS: u32 = 1 << 14;

fn setting(segment_blocks: u32) -> Anything<LogSetting> {
    let segments = (f64::from(BLOCKS) / 0.85 / f64::from(segment_blocks)).ceil() as u32;
    let shape = LogShape::uniform(segments, segment_blocks)?;
    let plain = LogSetting::plain(shape, BLOCKS, DISK);
    Ok(LogSetting { buffer_blocks: segment_blocks, ..plain })
}

fn updates(count: u32) -> Vec<u32> {
    let mut stream = RandomStreams::new(1).stream("updates");
    (0..count).map(|_| uniform_below(&mut stream, u64::from(BLOCKS)) as u32).collect()
}

fn log_greedy() -> Anything<u64> {
    let mut log = Log::new(setting(128)?, NoSeparation)?;
    let mut device = CostMeter::new(DISK);
    log.preload_run(0, BLOCKS)?;
    let updates = updates(4 * BLOCKS);
    counted(|| updates.iter().try_for_each(|block| log.write(*block, 0, &mut device)))?;
    Ok(device.writing_ns())
}

fn log_adaptive() -> Anything<u64> {
    let mut log = AdaptiveLog::among(&Mechanism::ALL, setting(32)?, |_| NoSeparation)?;
    let mut device = CostMeter::new(DISK);
    log.preload_run(0, BLOCKS)?;
    let updates = updates(2 * BLOCKS);
    counted(|| {
        let mut calls = updates.iter().map(|block| Call::Write { block: *block, client: 0 });
        calls.try_for_each(|call| log.carry_out(call, &mut device).map(|_| ()))
    })?;
    Ok(device.writing_ns())
}

fn device_service() -> Anything<u64> {
    let catalogue = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices");
    let parameters = DeviceParameters::find("hp-97560", Path::new(catalogue))?;
    let mut device = DeviceModel::new(&parameters);
    let mut stream = RandomStreams::new(1).stream("requests");
    let places = device.capacity().0 - 64;
    let requests: Vec<BlockRequest> = (0..20_000)
        .map(|number| BlockRequest {
            enqueue: SimTime::ZERO,
            sector: Sector(uniform_below(&mut stream, places)),
            sectors: SectorCount(2 + number % 32),
            operation: if number % 3 == 0 { Operation::Write } else { Operation::Read },
            synchronous: true,
        })
        .collect();
    let last = counted(|| {
        requests.iter().fold(SimTime::ZERO, |now, request| device.serve(now, request).finish)
    });
    Ok(last.0)
}

fn cache_lru() -> Anything<u64> {
    let mut stream = RandomStreams::new(1).stream("keys");
    // The product of two draws: what has a small number is asked for more often.
    let mut draw = || uniform_below(&mut stream, 256) as u32;
    let keys: Vec<u32> = (0..200_000).map(|_| draw() * draw()).collect();
    let mut cache = Cache::new(Eviction::Lru, 4096, 1 << 16);
    let hits = counted(|| keys.iter().filter(|key| cache.reference(**key).is_hit()).count());
    Ok(hits as u64)
}

fn trace_decode() -> Anything<u64> {
    let mut stream = RandomStreams::new(1).stream("trace");
    let mut text = String::new();
    for row in 0..10_000 {
        let time = 128_166_372_003_061_629 + row * 20_000_u64;
        let kind = if uniform_below(&mut stream, 3) == 0 { "Read" } else { "Write" };
        let offset = uniform_below(&mut stream, 60_000_000) * 512;
        let size = (1 + uniform_below(&mut stream, 16)) * 4096;
        writeln!(text, "{time},prxy,1,{kind},{offset},{size},{}", 1000 + row)?;
    }
    let options = ReadOptions { format: Some(Format::Msr), skip_bad: false };
    let bytes = Box::new(Cursor::new(text.into_bytes()));
    let mut trace = read_block_trace("counted", bytes, &options)?;
    counted(|| {
        let (mut batch, mut rows) = (BlockBatch::default(), 0);
        while trace.next_batch(&mut batch)? {
            rows += batch.len() as u64;
        }
        Ok(rows)
    })
}

fn layout_score() -> Anything<u64> {
    let snapshot = aged();
    let report = counted(|| score(&snapshot, &ScoreOptions::default()))?;
    Ok(format!("{:?}", report.layout).len() as u64)
}

/// 4,000 files in twenty directories, a third of them broken.
fn aged() -> Snapshot {
    const BLOCK: u64 = 4096;
    const PLACES: u64 = 1 << 20;
    let mut stream = RandomStreams::new(1).stream("score");
    let file = |inode: u64, kind, directory| SnapshotFile {
        inode,
        kind,
        links: 1,
        size_bytes: 0,
        birth_ns: NO_TIME,
        change_ns: NO_TIME,
        modify_ns: inode as i64,
        directory,
        readdir_rank: 0,
        name_rank: 0,
        first_extent: 0,
        extents: 0,
    };
    let mut snapshot = Snapshot {
        facts: FileSystemFacts {
            kind: "ext4".to_owned(),
            block_bytes: BLOCK as u32,
            fragment_bytes: BLOCK as u32,
            total_bytes: PLACES * BLOCK,
            free_bytes: PLACES * BLOCK / 4,
            taken_ns: NO_TIME,
            ..FileSystemFacts::default()
        },
        ..Snapshot::default()
    };
    snapshot.files.push(file(2, FileKind::Directory, 2));
    for number in 1..=20 {
        let made = file(2 + number, FileKind::Directory, 2);
        let rank = number as u32;
        snapshot.files.push(SnapshotFile { readdir_rank: rank, name_rank: rank, ..made });
    }
    let mut next = 0;
    for number in 0..4000 {
        let first_extent = snapshot.extents.len() as u32;
        let extents = if number % 3 == 0 { 7 } else { 1 };
        let mut logical = 0;
        for _ in 0..extents {
            if uniform_below(&mut stream, 3) == 0 {
                next = uniform_below(&mut stream, PLACES - 64);
            }
            let blocks = 1 + uniform_below(&mut stream, 8);
            snapshot.extents.push(Extent {
                logical_bytes: logical * BLOCK,
                physical_bytes: next * BLOCK,
                length_bytes: blocks * BLOCK,
                flags: ExtentFlags::default(),
            });
            logical += blocks;
            next = (next + blocks) % (PLACES - 64);
        }
        let rank = uniform_below(&mut stream, 1 << 30) as u32;
        let made = file(1000 + number, FileKind::Regular, 3 + number % 20);
        snapshot.files.push(SnapshotFile {
            size_bytes: logical * BLOCK,
            readdir_rank: rank,
            name_rank: rank,
            first_extent,
            extents,
            ..made
        });
    }
    snapshot
}
