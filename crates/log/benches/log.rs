//! User block writes a second, collection included.
//!
//! Block numbers are drawn beforehand: the log is measured, not the workload. Each measurement
//! starts from a copy of a log that has been updated until it is in its steady state, and prints
//! what it wrote in all, so that a change of behaviour is not mistaken for one of speed.
//!
//! `naive_85` is a loop of twenty lines that does the same to the same updates and nothing else: what
//! a log costs is held against it, in the same run (`greedy_85` writes block by block,
//! `greedy_85_by_segment` many at a time into a buffer of a segment).
//!
//! Bound by: a user write costs a load and a store in the map (4 bytes a block), both at random,
//! and the bit and the count of the segment that it leaves; a collected block costs the same and
//! the reading of its owner. See `log.rs` for figures.

#![allow(clippy::print_stderr, reason = "a benchmark prints a hash of what it did")]

use std::hint::black_box;

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::{
    Dac, Fadac, LifeTable, MultiLog, NoSeparation, Placement, SepBit, Sfs, UserCollected,
};
use agewell_log::{
    AdaptiveLog, Ages, Call, CollectedOrder, LogSetting, LogShape, SegmentAge, Unpriced, Victim,
};
use agewell_testkit::zipf_draws;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const BLOCKS: u32 = 1 << 18;
const WRITES: u32 = 1 << 20;

const DISK: CostModel = CostModel {
    access_ns: 15_000_000,
    further_ns: 5_500_000,
    bandwidth_bytes_per_s: 5_000_000,
    block_bytes: 4096,
};

/// A log of which `BLOCKS` are the share `utilization`.
fn setting(utilization: f64, segment_blocks: u32, logs: u32) -> LogSetting {
    let capacity = f64::from(BLOCKS) / utilization;
    let segments = (capacity / f64::from(segment_blocks)).ceil() as u32;
    LogSetting {
        reserve_segments: logs,
        ..LogSetting::plain(
            LogShape::uniform(segments, segment_blocks).expect("there are segments"),
            BLOCKS,
            DISK,
        )
    }
}

fn uniform_updates() -> Vec<u32> {
    let mut stream = RandomStreams::new(1).stream("updates");
    (0..WRITES).map(|_| uniform_below(&mut stream, u64::from(BLOCKS)) as u32).collect()
}

/// Writes all of `updates`, with a sync after every `sync_every` if not 0.
fn update<P: Placement + Clone>(log: &mut AdaptiveLog<P>, updates: &[u32], sync_every: usize) {
    if sync_every == 0 {
        let mut rest = updates;
        while let Some((block, later)) = rest.split_first() {
            // Those that only wait in a buffer go many at a time, as the host hands them over.
            let waiting =
                if log.log().takes_many_writes() { log.write_to_buffer(rest, 0) } else { 0 };
            rest = &rest[waiting..];
            if waiting == 0 {
                log.carry_out(Call::Write { block: *block, client: 0 }, &mut Unpriced)
                    .expect("there is room");
                rest = later;
            }
        }
        return;
    }
    for some in updates.chunks(sync_every) {
        for block in some {
            log.carry_out(Call::Write { block: *block, client: 0 }, &mut Unpriced)
                .expect("there is room");
        }
        log.carry_out(Call::Sync { client: 0 }, &mut Unpriced).expect("there is room");
    }
}

/// `log` in its steady state; says what it writes from there on.
fn prepare<P: Placement + Clone>(
    name: &str,
    mut log: AdaptiveLog<P>,
    updates: &[u32],
    sync_every: usize,
) -> AdaptiveLog<P> {
    let fill: Vec<u32> = (0..BLOCKS).collect();
    update(&mut log, &fill, sync_every);
    for _ in 0..2 {
        update(&mut log, updates, sync_every);
    }
    let mut after = log.clone();
    update(&mut after, updates, sync_every);
    let counts = after.log().counts().since(log.log().counts());
    eprintln!("layout/{name}: {:?} of {} blocks", counts.write_amplification(), counts.new_blocks);
    log
}

fn measure<P: Placement + Clone>(
    criterion: &mut Criterion,
    name: &str,
    log: &AdaptiveLog<P>,
    updates: &[u32],
    sync_every: usize,
) {
    let mut group = criterion.benchmark_group("layout");
    group.throughput(Throughput::Elements(u64::from(WRITES)));
    group.sample_size(10);
    let mut prepared = None;
    group.bench_function(name, |bencher| {
        let log = prepared.get_or_insert_with(|| prepare(name, log.clone(), updates, sync_every));
        bencher.iter_batched_ref(
            || log.clone(),
            |log| {
                update(log, updates, sync_every);
                black_box(log.log().counts().new_blocks)
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// Blocks of a segment of the naive loop: known when it is compiled, as such a loop would have it.
const NAIVE_SEGMENT: u32 = 512;

/// The same updates by a loop that does nothing else: a map from blocks to slots, one back, live
/// counts, and a scan for the emptiest segment. What a log is allowed to cost is held against it.
struct Naive {
    map: Vec<u32>,
    owner: Vec<u32>,
    live: Vec<u32>,
    free: Vec<u32>,
    next: u32,
    end: u32,
    copied: u64,
}

impl Naive {
    fn new(segments: u32) -> Self {
        Self {
            map: vec![u32::MAX; BLOCKS as usize],
            owner: vec![u32::MAX; (segments * NAIVE_SEGMENT) as usize],
            live: vec![0; segments as usize],
            free: (0..segments).collect(),
            next: 0,
            end: 0,
            copied: 0,
        }
    }

    #[inline]
    fn append(&mut self, block: u32) {
        self.owner[self.next as usize] = block;
        self.map[block as usize] = self.next;
        self.live[(self.next / NAIVE_SEGMENT) as usize] += 1;
        self.next += 1;
    }

    fn open(&mut self) {
        let segment = self.free.pop().expect("a segment is free");
        self.next = segment * NAIVE_SEGMENT;
        self.end = self.next + NAIVE_SEGMENT;
    }

    fn write(&mut self, block: u32) {
        if self.next == self.end {
            self.open();
        }
        let old = self.map[block as usize];
        if old != u32::MAX {
            self.live[(old / NAIVE_SEGMENT) as usize] -= 1;
        }
        self.append(block);
        while self.free.len() < 2 {
            self.clean();
        }
    }

    #[inline(never)]
    fn clean(&mut self) {
        let open = self.next.wrapping_sub(1) / NAIVE_SEGMENT;
        let full = (0..self.live.len() as u32)
            .filter(|segment| *segment != open && !self.free.contains(segment));
        let victim = full.min_by_key(|segment| self.live[*segment as usize]).expect("a victim");
        let first = victim * NAIVE_SEGMENT;
        for slot in first..first + NAIVE_SEGMENT {
            let block = self.owner[slot as usize];
            if self.map[block as usize] == slot {
                if self.next == self.end {
                    self.open();
                }
                self.append(block);
                self.copied += 1;
            }
        }
        self.live[victim as usize] = 0;
        self.free.push(victim);
    }
}

fn naive(criterion: &mut Criterion) {
    let updates = uniform_updates();
    let mut group = criterion.benchmark_group("layout");
    group.throughput(Throughput::Elements(u64::from(WRITES)));
    group.sample_size(10);
    let (segments, mut log) = (setting(0.85, NAIVE_SEGMENT, 1).shape.segments(), None);
    group.bench_function("naive_85", |bencher| {
        let log = log.get_or_insert_with(|| {
            let mut log = Naive::new(segments);
            for block in (0..BLOCKS).chain(updates.iter().chain(&updates).copied()) {
                log.write(block);
            }
            let before = log.copied;
            for block in &updates {
                log.write(*block);
            }
            let written = f64::from(WRITES) + (log.copied - before) as f64;
            eprintln!("layout/naive_85: {:?}", written / f64::from(WRITES));
            log
        });
        bencher.iter(|| {
            for block in &updates {
                log.write(*block);
            }
            black_box(log.copied)
        });
    });
    group.finish();
}

fn fixed<P: Placement + Clone>(setting: LogSetting, placement: P) -> AdaptiveLog<P> {
    AdaptiveLog::fixed(setting, placement).expect("it has room to work with")
}

fn mechanisms(criterion: &mut Criterion) {
    let updates = uniform_updates();
    for (name, utilization) in [("greedy_85", 0.85), ("greedy_50", 0.5)] {
        let log = fixed(setting(utilization, 512, 1), NoSeparation);
        measure(criterion, name, &log, &updates, 0);
    }
    // As `agewell run` drives it: a buffer of a segment.
    let by_segment = LogSetting { buffer_blocks: 512, ..setting(0.85, 512, 1) };
    measure(criterion, "greedy_85_by_segment", &fixed(by_segment, NoSeparation), &updates, 0);
    let buffered = LogSetting { buffer_blocks: 32, ..setting(0.85, 32, 1) };
    measure(criterion, "buffered_85", &fixed(buffered.clone(), NoSeparation), &updates, 4);
    let by_age = LogSetting { victim: Victim::CostAge, ..setting(0.85, 512, 1) };
    measure(criterion, "cost_age_85", &fixed(by_age.clone(), NoSeparation), &updates, 0);
    let sorted = LogSetting {
        ages: Ages { segment: SegmentAge::Segment, order: CollectedOrder::Age },
        batch_segments: 8,
        reserve_segments: 8,
        ..by_age
    };
    measure(criterion, "cost_age_sorted_85", &fixed(sorted, NoSeparation), &updates, 0);
    for (name, mechanism) in [("plug_85", Mechanism::Plug), ("thread_85", Mechanism::Thread)] {
        let setting = LogSetting { collect: Collect::Always(mechanism), ..buffered.clone() };
        measure(criterion, name, &fixed(setting, NoSeparation), &updates, 4);
    }
    let adaptive = AdaptiveLog::among(&Mechanism::ALL, buffered, |_| NoSeparation);
    let adaptive = adaptive.expect("it has room to work with");
    measure(criterion, "adaptive_85", &adaptive, &updates, 4);
}

fn placements(criterion: &mut Criterion) {
    let updates = zipf_draws(&mut RandomStreams::new(1).stream("updates"), BLOCKS, WRITES);
    let (blocks, streams) = (BLOCKS as usize, RandomStreams::new(1));
    macro_rules! place {
        ($name:literal, $logs:expr, $placement:expr) => {
            let log = fixed(setting(0.85, 512, $logs), $placement);
            measure(criterion, concat!("zipf_85/", $name), &log, &updates, 0);
        };
    }
    place!("none", 1, NoSeparation);
    place!("user_collected", 2, UserCollected);
    place!("multi_log", 6, MultiLog::new(blocks, 6, &streams));
    place!("dac", 6, Dac::new(blocks, 6));
    place!("sfs", 6, Sfs::new(blocks, 512, 6));
    place!("fadac", 6, Fadac::new(blocks, 6));
    place!("sepbit", 6, SepBit::new(blocks, 6));
    place!("life_table", 12, LifeTable::new(blocks, 12));
}

criterion_group!(benches, naive, mechanisms, placements);
criterion_main!(benches);
