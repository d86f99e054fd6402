//! The simulations of Rosenblum & Ousterhout 1992, §3.4 to 3.6: files of one block, overwritten at
//! random, all alike or nine in ten times one in ten of them; a cleaner that reads some tens of
//! segments at a time and sorts their live blocks by age.
//!
//! The log is held against a naive one, which looks at all segments for each batch, and against what
//! the paper prints. Sizes are ours: the paper gives none. What the paper calls the age of a segment
//! is read here as the time since it was filled: see [`SegmentAge`].

use std::collections::VecDeque;

use agewell_core::RandomStreams;
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{Ages, CollectedOrder, Log, LogSetting, LogShape, SegmentAge, Victim};

use crate::case::DISK;
use crate::steady::{BLOCKS, Draw, hot_and_cold, steady_state, uniform};

/// Blocks of 4 KiB in the segments of 1 MB that Sprite LFS had.
const SEGMENT_BLOCKS: u32 = 256;
/// "A few tens of segments at a time" (§3.4); few beside 540 segments.
const BATCH: u32 = 12;
/// Blocks written, over those there are, before and while it is measured.
const PASSES: u32 = 8;

/// A cleaner of the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cleaner {
    victim: Victim,
    age: SegmentAge,
}

const GREEDY: Cleaner = Cleaner { victim: Victim::Greedy, age: SegmentAge::Segment };
const COST_BENEFIT: Cleaner = Cleaner { victim: Victim::CostAge, age: SegmentAge::Segment };
/// With what the text says of the age of a segment to the letter.
const BY_YOUNGEST_BLOCK: Cleaner = Cleaner { victim: Victim::CostAge, age: SegmentAge::Block };

fn segments(utilization: f64) -> u32 {
    // Segments kept free for the cleaner are not part of the disk.
    (f64::from(BLOCKS) / utilization / f64::from(SEGMENT_BLOCKS)).round() as u32 + BATCH
}

fn setting(cleaner: Cleaner, utilization: f64) -> LogSetting {
    LogSetting {
        victim: cleaner.victim,
        batch_segments: BATCH,
        reserve_segments: BATCH,
        ages: Ages { segment: cleaner.age, order: CollectedOrder::Age },
        ..LogSetting::plain(
            LogShape::uniform(segments(utilization), SEGMENT_BLOCKS).unwrap(),
            BLOCKS,
            DISK,
        )
    }
}

/// Eq. 1 of Matthews 1999, in blocks.
fn write_cost(new: u64, read: u64, moved: u64) -> f64 {
    (new + read + moved) as f64 / new as f64
}

/// The write cost in the steady state, and the log.
fn run(cleaner: Cleaner, utilization: f64, draw: Draw) -> (f64, Log<NoSeparation>) {
    let mut log = Log::new(setting(cleaner, utilization), NoSeparation).unwrap();
    let counts = steady_state(&mut log, PASSES, draw);
    (write_cost(counts.new_blocks, counts.read_blocks, counts.cleaned_blocks), log)
}

/// A segment of the naive log: its blocks, dead ones too, and the time of the last one put there.
#[derive(Debug, Clone, Default)]
struct NaiveSegment {
    blocks: Vec<u32>,
    filled: u64,
    youngest: u64,
}

/// The naive log: every block's segment and place, and when it was written.
struct Naive {
    cleaner: Cleaner,
    segments: Vec<NaiveSegment>,
    place: Vec<(usize, usize)>,
    written: Vec<u64>,
    free: VecDeque<usize>,
    open: usize,
    clock: u64,
    read: u64,
    moved: u64,
}

impl Naive {
    fn new(cleaner: Cleaner, utilization: f64) -> Self {
        let segments = segments(utilization) as usize;
        Self {
            cleaner,
            segments: vec![NaiveSegment::default(); segments],
            place: vec![(usize::MAX, 0); BLOCKS as usize],
            written: vec![0; BLOCKS as usize],
            free: (1..segments).collect(),
            open: 0,
            clock: 0,
            read: 0,
            moved: 0,
        }
    }

    fn live(&self, segment: usize) -> impl Iterator<Item = u32> + '_ {
        let at = move |(index, block): (usize, &u32)| {
            (self.place[*block as usize] == (segment, index)).then_some(*block)
        };
        self.segments[segment].blocks.iter().enumerate().filter_map(at)
    }

    fn append(&mut self, block: u32) {
        if self.segments[self.open].blocks.len() == SEGMENT_BLOCKS as usize {
            self.open = self.free.pop_front().unwrap();
            self.segments[self.open] = NaiveSegment::default();
        }
        let segment = &mut self.segments[self.open];
        self.place[block as usize] = (self.open, segment.blocks.len());
        segment.blocks.push(block);
        segment.filled = self.clock;
        segment.youngest = segment.youngest.max(self.written[block as usize]);
    }

    fn write(&mut self, block: u32) {
        let is_full = self.segments[self.open].blocks.len() == SEGMENT_BLOCKS as usize;
        if is_full && self.free.len() <= BATCH as usize {
            self.clean();
        }
        self.clock += 1;
        self.written[block as usize] = self.clock;
        self.append(block);
    }

    fn clean(&mut self) {
        let mut victims = Vec::new();
        for segment in 0..self.segments.len() {
            // Counted each time, as nothing is kept here that could be wrong.
            let live = self.live(segment).count();
            if self.free.contains(&segment) || live == SEGMENT_BLOCKS as usize {
                continue;
            }
            let since = match self.cleaner.age {
                SegmentAge::Segment => self.segments[segment].filled,
                _ => self.segments[segment].youngest,
            };
            let share = live as f64 / f64::from(SEGMENT_BLOCKS);
            let age = (self.clock - since).max(1) as f64;
            let worth = match self.cleaner.victim {
                Victim::Greedy => 1.0 - share,
                _ => (1.0 - share) * age / (1.0 + share),
            };
            victims.push((worth, segment, live));
        }
        victims.sort_by(|one, other| other.0.total_cmp(&one.0));
        victims.truncate(BATCH as usize);
        let mut blocks: Vec<u32> = victims.iter().flat_map(|victim| self.live(victim.1)).collect();
        blocks.sort_by_key(|block| self.written[*block as usize]);
        let used = victims.iter().filter(|victim| victim.2 > 0).count();
        self.read += used as u64 * u64::from(SEGMENT_BLOCKS);
        self.moved += blocks.len() as u64;
        for block in blocks {
            self.append(block);
        }
        self.free.extend(victims.iter().map(|victim| victim.1));
    }
}

fn run_naive(cleaner: Cleaner, utilization: f64, draw: Draw) -> f64 {
    let mut log = Naive::new(cleaner, utilization);
    let mut stream = RandomStreams::new(1).stream("updates");
    for block in 0..BLOCKS {
        log.write(block);
    }
    let mut before = (0, 0, 0);
    for turn in 0..2 * PASSES * BLOCKS {
        if turn == PASSES * BLOCKS {
            before = (log.clock, log.read, log.moved);
        }
        log.write(draw(&mut stream));
    }
    write_cost(log.clock - before.0, log.read - before.1, log.moved - before.2)
}

#[test]
fn sorted_cleaning_costs_what_it_costs_a_naive_log() {
    for cleaner in [GREEDY, COST_BENEFIT, BY_YOUNGEST_BLOCK] {
        let (fast, _) = run(cleaner, 0.75, hot_and_cold);
        let slow = run_naive(cleaner, 0.75, hot_and_cold);
        assert!((fast / slow - 1.0).abs() < 0.01, "{cleaner:?}: {fast} for {slow}");
    }
}

#[test]
fn greedy_cleaning_gains_nothing_by_locality() {
    // §3.5, figure 4: hot-and-cold costs greedy cleaning more than uniform updates do.
    for utilization in [0.4, 0.6, 0.75] {
        let alike = run(GREEDY, utilization, uniform).0;
        let apart = run(GREEDY, utilization, hot_and_cold).0;
        assert!(apart > 1.02 * alike, "{apart} against {alike} at {utilization}");
    }
}

#[test]
fn cost_benefit_costs_half_of_greedy_at_most_use() {
    // §3.6, figure 7: "by as much as 50%", and better above 60 %. Ours: 31, 45 and 48 % below.
    let savings = [0.75, 0.9, 0.95].map(|utilization| {
        let cost = |cleaner| run(cleaner, utilization, hot_and_cold).0;
        1.0 - cost(COST_BENEFIT) / cost(GREEDY)
    });
    assert!(savings[0] > 0.25 && savings[0] < savings[1], "{savings:?}");
    assert!((0.45..0.55).contains(&savings[2]), "{savings:?}");
    // The youngest block of a sorted cold segment is old: by its age such segments are cleaned over
    // and over, and of the 50 % nothing is left.
    let young = run(BY_YOUNGEST_BLOCK, 0.9, hot_and_cold).0;
    assert!(young > 0.95 * run(GREEDY, 0.9, hot_and_cold).0, "{young}");
}

#[test]
fn cost_benefit_makes_segments_nearly_full_or_nearly_empty() {
    // §3.6, figure 6: bimodal at 75 %, where greedy (figure 5) has all above where it cleans.
    let shares = |cleaner| {
        let (_, log) = run(cleaner, 0.75, hot_and_cold);
        let mut live = vec![0_u32; log.shape().segments() as usize];
        for block in 0..BLOCKS {
            live[log.shape().segment_of(log.slot_of(block).unwrap()) as usize] += 1;
        }
        let used: Vec<u32> = live.into_iter().filter(|live| *live > 0).collect();
        let share = |percent: std::ops::Range<u32>| {
            let found =
                used.iter().filter(|live| percent.contains(&(*live * 100 / SEGMENT_BLOCKS)));
            found.count() as f64 / used.len() as f64
        };
        // Equal widths: at the lower hump, between both, at the upper one.
        [share(10..30), share(40..60), share(75..95)]
    };
    let [low, middle, high] = shares(COST_BENEFIT);
    assert!(low > 1.1 * middle && high > 5.0 * middle, "{low}, {middle}, {high}");
    let greedy = shares(GREEDY);
    assert!(greedy[0] < 0.01, "{greedy:?}");
}
