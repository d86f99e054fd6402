//! Placements against the figures of the SepBIT simulator (fallfish/sepbit 1e4b664), against each
//! other, and against invariants.
//!
//! The load of the figures: 262,144 blocks written once in order, then ten times as many updates
//! with Zipf frequencies; segments of 512 blocks; collection while more than 15 % of what is
//! written is dead. Write amplification counts everything, the first writes included.

#![allow(clippy::print_stdout, reason = "tests say what they measured and skipped")]

use std::path::Path;
use std::process::Command;

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_testkit::{ReferenceLog, ReferencePolicy, ReferenceSegment, ReferenceVictim};
use proptest::prelude::*;
use rand_core::Rng;

use super::{
    CollectedSegment, Dac, Fadac, LifeTable, MultiLog, NewTogether, NoSeparation, Oracle,
    Placement, Renewal, SepBit, Sfs, UserCollected, death_clocks,
};
use ReferenceVictim::{ByPolicy, CostBenefit, Greedy};

const BLOCKS: usize = 262_144;
const SEGMENT_BLOCKS: u32 = 512;
const DEAD_SHARE: f64 = 0.15;
/// Logs of the published figures, and those that ours needs for its own.
const LOGS: usize = 6;
const OWN_LOGS: usize = 12;

/// A placement, and the victim selection by renewal, behind the reference's own seam.
struct Bridge<P> {
    placement: P,
    renewal: Renewal,
    /// Segments of the reference are never used again; a log's are. The number of each, by that of
    /// the reference, and numbers that are free.
    numbers: Vec<u32>,
    free: Vec<u32>,
    used: u32,
}

impl<P: Placement> Bridge<P> {
    fn new(placement: P) -> Self {
        let renewal = Renewal::new();
        Self { placement, renewal, numbers: Vec::new(), free: Vec::new(), used: 0 }
    }

    fn number(&mut self, segment: u32) -> u32 {
        while self.numbers.len() <= segment as usize {
            let number = self.free.pop().unwrap_or_else(|| {
                self.used += 1;
                self.used - 1
            });
            self.numbers.push(number);
        }
        self.numbers[segment as usize]
    }
}

fn view(victim: &ReferenceSegment) -> CollectedSegment {
    CollectedSegment {
        log: victim.log,
        blocks: victim.blocks,
        filled: victim.blocks,
        live: victim.live,
        opened: victim.opened,
        sealed: victim.written,
    }
}

impl<P: Placement> ReferencePolicy for Bridge<P> {
    fn logs(&self) -> usize {
        self.placement.logs()
    }
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        self.placement.place_new(block, overwrites, clock)
    }
    fn place_collected(&mut self, block: u32, victim: &ReferenceSegment, clock: u64) -> u8 {
        self.placement.place_collected(block, &view(victim), clock)
    }
    fn collected(&mut self, victim: &ReferenceSegment, clock: u64) {
        self.placement.collected(&view(victim), clock);
        self.renewal.collected(&view(victim), clock);
    }
    fn placed(&mut self, block: u32, segment: u32) {
        let segment = self.number(segment);
        self.placement.placed(block, segment);
    }
    fn died(&mut self, block: u32, segment: u32) {
        let segment = self.number(segment);
        self.placement.died(block, segment);
    }
    fn freed(&mut self, segment: u32) {
        let segment = self.number(segment);
        self.placement.freed(segment);
        self.free.push(segment);
    }
    fn deleted(&mut self, block: u32, clock: u64) {
        self.placement.deleted(block, clock);
    }
    fn worth(&self, segment: &ReferenceSegment, clock: u64) -> f64 {
        let age = clock - Renewal::written_at(segment.opened, segment.written);
        self.renewal.worth(segment.live, segment.blocks, segment.blocks, age)
    }
}

/// Blocks and blocks a segment: as many segments whatever the blocks.
fn shape(writes: &[u32]) -> (usize, u32) {
    let blocks = writes.iter().max().map_or(0, |block| *block as usize + 1);
    (blocks, (blocks * SEGMENT_BLOCKS as usize / BLOCKS) as u32)
}

/// Write amplification of `writes` under `placement`.
fn amplification(placement: impl Placement, victim: ReferenceVictim, writes: &[u32]) -> f64 {
    let (blocks, segment_blocks) = shape(writes);
    let bridge = Bridge::new(placement);
    let mut log = ReferenceLog::new(blocks, segment_blocks, DEAD_SHARE, victim, bridge);
    for block in writes {
        log.write(*block);
    }
    log.verify();
    log.write_amplification()
}

fn permutation(blocks: usize, random: &mut Stream) -> Vec<u32> {
    let mut order: Vec<u32> = (0..blocks as u32).collect();
    for last in (1..blocks).rev() {
        order.swap(last, uniform_below(random, last as u64 + 1) as usize);
    }
    order
}

/// `count` updates with Zipf frequencies, ranks given to blocks at random.
fn zipf_updates(alpha: f64, blocks: usize, count: usize, random: &mut Stream) -> Vec<u32> {
    let order = permutation(blocks, random);
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=blocks)
        .map(|rank| {
            sum += (rank as f64).powf(-alpha);
            sum
        })
        .collect();
    let draw = |_| {
        let level = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * sum;
        order[sums.partition_point(|upto| *upto <= level).min(blocks - 1)]
    };
    (0..count).map(draw).collect()
}

fn fill(blocks: usize) -> Vec<u32> {
    (0..blocks as u32).collect()
}

fn zipf(alpha: f64, blocks: usize) -> Vec<u32> {
    let mut random = RandomStreams::new(1).stream("zipf");
    let mut writes = fill(blocks);
    writes.extend(zipf_updates(alpha, blocks, 10 * blocks, &mut random));
    writes
}

/// 90 % of updates to 10 % of blocks; that tenth moves over all blocks once if `slides`.
fn hot_and_cold(blocks: usize, slides: bool) -> Vec<u32> {
    let mut random = RandomStreams::new(1).stream("hot-and-cold");
    let (tenth, count) = (blocks as u64 / 10, 10 * blocks as u64);
    let mut writes = fill(blocks);
    for turn in 0..count {
        let from = if slides { turn * blocks as u64 / count } else { 0 };
        let block = if uniform_below(&mut random, 10) < 9 {
            (from + uniform_below(&mut random, tenth)) % blocks as u64
        } else {
            uniform_below(&mut random, blocks as u64)
        };
        writes.push(block as u32);
    }
    writes
}

/// Zipf frequencies whose ranks are given again every other round.
fn shifting_zipf(alpha: f64, blocks: usize) -> Vec<u32> {
    let mut random = RandomStreams::new(1).stream("shifting");
    let mut writes = fill(blocks);
    for _ in 0..5 {
        writes.extend(zipf_updates(alpha, blocks, 2 * blocks, &mut random));
    }
    writes
}

/// Half of the writes go round a quarter of the blocks, the others anywhere else.
fn ring_and_random(blocks: usize) -> Vec<u32> {
    let mut random = RandomStreams::new(1).stream("ring");
    let quarter = blocks as u64 / 4;
    let mut writes = fill(blocks);
    let mut next = 0;
    for _ in 0..10 * blocks {
        if random.next_u64() & 1 == 0 {
            writes.push((next % quarter) as u32);
            next += 1;
        } else {
            writes.push((quarter + uniform_below(&mut random, 3 * quarter)) as u32);
        }
    }
    writes
}

/// One placement by its name in the table below.
fn by_name(name: &str, victim: ReferenceVictim, writes: &[u32]) -> f64 {
    let (blocks, segment_blocks) = shape(writes);
    match name {
        "none" => amplification(NoSeparation, victim, writes),
        "user-collected" => amplification(UserCollected, victim, writes),
        "multi-log" => {
            amplification(MultiLog::new(blocks, LOGS, &RandomStreams::new(1)), victim, writes)
        }
        "dac" => amplification(Dac::new(blocks, LOGS), victim, writes),
        "sfs" => amplification(Sfs::new(blocks, segment_blocks, LOGS), victim, writes),
        "fadac" => amplification(Fadac::new(blocks, LOGS), victim, writes),
        "sepbit" => amplification(SepBit::new(blocks, LOGS), victim, writes),
        "life-table-6" => amplification(LifeTable::new(blocks, LOGS), victim, writes),
        "life-table" => amplification(LifeTable::new(blocks, OWN_LOGS), victim, writes),
        other => panic!("no placement is called {other}"),
    }
}

const OTHERS: [&str; 7] = ["none", "user-collected", "multi-log", "dac", "sfs", "fadac", "sepbit"];

/// What the SepBIT simulator counts: greedy and cost-benefit at exponents 0, 0.6 and 1.
const FIGURES: [(&str, [(f64, f64); 3]); 7] = [
    ("none", [(3.244, 3.247), (3.548, 3.552), (4.664, 4.619)]),
    ("user-collected", [(3.244, 3.247), (3.387, 3.321), (3.565, 2.372)]),
    // Not measured there with cost-benefit selection.
    ("multi-log", [(3.242, f64::NAN), (3.318, f64::NAN), (2.736, f64::NAN)]),
    ("sepbit", [(3.244, 3.247), (3.332, 3.178), (2.538, 2.099)]),
    ("dac", [(3.244, 3.246), (3.236, 3.054), (2.438, 1.931)]),
    ("sfs", [(3.244, 3.247), (3.277, 3.049), (2.782, 1.926)]),
    ("fadac", [(3.242, 3.245), (3.242, 3.041), (2.334, 1.842)]),
];
const ORACLE_FIGURES: [f64; 3] = [f64::NAN, 1.479, 1.308];
/// The limits of ours: the best of all placements above, or better. With six logs the last is out
/// of reach: even known frequencies, once the first writes have mixed all blocks, leave 1.66, and
/// counts alone 1.73.
const OWN_LIMITS: [f64; 3] = [3.242, 2.95, 1.70];
const OWN_LIMITS_OF_SIX: [f64; 3] = [3.242, 2.95, 1.76];

/// Checks the figures of column `column` with each of `victims`.
fn check_figures(column: usize, writes: &[u32], victims: &[ReferenceVictim]) {
    for (name, figures) in FIGURES {
        let (greedy, cost_benefit) = figures[column];
        for victim in victims.iter().copied() {
            let figure = if matches!(victim, Greedy) { greedy } else { cost_benefit };
            if figure.is_nan() {
                continue;
            }
            let ours = by_name(name, victim, writes);
            assert!((ours / figure - 1.0).abs() < 0.02, "{name} {victim:?}: {ours} not {figure}");
        }
    }
    if !ORACLE_FIGURES[column].is_nan() {
        let figure = ORACLE_FIGURES[column];
        let (blocks, segment_blocks) = shape(writes);
        let oracle = Oracle::new(death_clocks(writes, blocks), blocks, segment_blocks, 256);
        let ours = amplification(oracle, Greedy, writes);
        assert!((ours / figure - 1.0).abs() < 0.02, "oracle: {ours} not {figure}");
    }
}

/// Checks that ours stays within its limits of column `column`, and below every other placement
/// with the same victim selection.
fn check_own(column: usize, writes: &[u32]) {
    let own = by_name("life-table", ByPolicy, writes);
    assert!(own <= OWN_LIMITS[column], "{own} above {}", OWN_LIMITS[column]);
    let six = by_name("life-table-6", ByPolicy, writes);
    let limit = OWN_LIMITS_OF_SIX[column];
    assert!(six <= limit, "six logs: {six} above {limit}");
    let own = [Greedy, CostBenefit].map(|victim| by_name("life-table", victim, writes));
    for (name, figures) in FIGURES {
        let (greedy, cost_benefit) = figures[column];
        for (own, figure) in own.into_iter().zip([greedy, cost_benefit]) {
            assert!(figure.is_nan() || own <= figure, "{own} above {figure} of {name}");
        }
    }
}

/// Uniform updates cost the same for a quarter of the blocks, in quarter segments.
const QUARTER: usize = BLOCKS / 4;

/// A run takes a second of the processor: of the figures at full size those are checked in which the
/// placements differ most, and the others by `make reproduce`.
#[test]
fn uniform_updates_cost_what_the_simulator_counts() {
    check_figures(0, &zipf(0.0, QUARTER), &[Greedy]);
}

#[test]
fn strong_skew_costs_what_the_simulator_counts() {
    check_figures(2, &zipf(1.0, BLOCKS), &[CostBenefit]);
}

#[test]
fn the_life_table_beats_what_the_simulator_counts() {
    check_own(0, &zipf(0.0, QUARTER));
    check_own(2, &zipf(1.0, BLOCKS));
}

#[test]
#[ignore = "takes a minute of the processor; make reproduce runs it"]
fn every_placement_costs_what_the_simulator_counts() {
    for (column, exponent) in [0.0, 0.6, 1.0].into_iter().enumerate() {
        let writes = zipf(exponent, BLOCKS);
        check_figures(column, &writes, &[Greedy, CostBenefit]);
        check_own(column, &writes);
    }
}

/// The very stream of the figures, from the generator that they were made with.
#[test]
#[ignore = "takes half a minute; needs the shared tools and numpy"]
fn every_figure_on_the_stream_of_the_simulator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = root.join("../shared/tools/zipf_workload.py");
    if !script.exists() {
        println!("skipped: {} is absent", script.display());
        return;
    }
    let own = root.join(".venv/bin/python");
    let python = if own.exists() { own } else { "python3".into() };
    let folder = std::env::temp_dir().join(format!("agewell-zipf-{}", std::process::id()));
    for (column, alpha) in ["0", "0.6", "1.0"].into_iter().enumerate() {
        let made = Command::new(&python)
            .arg(&script)
            .args(["--alpha", alpha, "--vol", "1", "--raw", "--out"])
            .arg(&folder)
            .status();
        if !made.is_ok_and(|status| status.success()) {
            println!("skipped: {} with numpy did not run", python.display());
            return;
        }
        let bytes = std::fs::read(folder.join("1.u32")).expect("the generator wrote it");
        let writes: Vec<u32> =
            bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        assert_eq!(writes.len(), 11 * BLOCKS);
        check_figures(column, &writes, &[Greedy, CostBenefit]);
        check_own(column, &writes);
        for name in ["life-table", "life-table-6"] {
            let figures = [ByPolicy, Greedy, CostBenefit].map(|by| by_name(name, by, &writes));
            println!("alpha {alpha} {name} renewal, greedy, cost-benefit: {figures:.4?}");
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

/// Blocks of the loads below: a sixteenth of the above.
const FEW_BLOCKS: usize = BLOCKS / 16;

fn best_of_others(writes: &[u32]) -> f64 {
    let figures =
        OTHERS.map(|name| by_name(name, Greedy, writes).min(by_name(name, CostBenefit, writes)));
    figures.into_iter().fold(f64::INFINITY, f64::min)
}

#[test]
fn the_life_table_is_best_on_loads_it_was_not_made_for() {
    // The ring suits SepBIT, which asks for the last lifetime; ours is to be close.
    let loads = [
        ("exponent 0.3", zipf(0.3, FEW_BLOCKS), 1.0),
        ("exponent 0.8", zipf(0.8, FEW_BLOCKS), 0.98),
        ("exponent 1.2", zipf(1.2, FEW_BLOCKS), 0.97),
        ("hot and cold", hot_and_cold(FEW_BLOCKS, false), 0.95),
        ("a hot set that slides", hot_and_cold(FEW_BLOCKS, true), 0.97),
        ("a skew that shifts", shifting_zipf(1.0, FEW_BLOCKS), 1.0),
        ("a ring and the rest", ring_and_random(FEW_BLOCKS), 1.05),
    ];
    for (name, writes, share) in loads {
        let own = by_name("life-table", ByPolicy, &writes);
        let best = best_of_others(&writes);
        println!("{name}: {own:.4}, best other {best:.4}, {:.4}", own / best);
        assert!(own < best * share, "{name}: {own} against {best}");
    }
}

#[test]
fn nothing_is_lost_where_there_is_nothing_to_separate() {
    let writes = zipf(0.0, BLOCKS / 4);
    let none = by_name("none", Greedy, &writes);
    let own = by_name("life-table", ByPolicy, &writes);
    assert!(own < none * 1.001, "{own} against {none}");
}

/// A placement whose clock starts late.
struct Late<P>(P, u64);

impl<P: Placement> Placement for Late<P> {
    fn logs(&self) -> usize {
        self.0.logs()
    }
    fn place_new(&mut self, block: u32, overwrites: bool, clock: u64) -> u8 {
        self.0.place_new(block, overwrites, clock + self.1)
    }
    fn place_collected(&mut self, block: u32, segment: &CollectedSegment, clock: u64) -> u8 {
        self.0.place_collected(block, &self.later(segment), clock + self.1)
    }
    fn collected(&mut self, segment: &CollectedSegment, clock: u64) {
        self.0.collected(&self.later(segment), clock + self.1);
    }
    fn placed(&mut self, block: u32, segment: u32) {
        self.0.placed(block, segment);
    }
    fn died(&mut self, block: u32, segment: u32) {
        self.0.died(block, segment);
    }
    fn freed(&mut self, segment: u32) {
        self.0.freed(segment);
    }
}

impl<P> Late<P> {
    fn later(&self, segment: &CollectedSegment) -> CollectedSegment {
        let CollectedSegment { opened, sealed, .. } = *segment;
        CollectedSegment { opened: opened + self.1, sealed: sealed + self.1, ..*segment }
    }
}

/// A placement made for one block; the others are added before the first write.
fn grown<P: Placement>(mut placement: P, blocks: usize) -> P {
    placement.ensure_blocks(blocks);
    placement.ensure_blocks(1);
    placement
}

#[test]
fn a_placement_may_grow() {
    fn same<P: Placement>(made: impl Fn(usize) -> P, writes: &[u32]) {
        let (blocks, _) = shape(writes);
        let at_once = amplification(made(blocks), CostBenefit, writes);
        let in_steps = amplification(grown(made(1), blocks), CostBenefit, writes);
        assert_eq!(at_once.to_bits(), in_steps.to_bits());
    }
    let writes = zipf(0.8, FEW_BLOCKS / 4);
    same(|blocks| MultiLog::new(blocks, LOGS, &RandomStreams::new(1)), &writes);
    same(|blocks| Dac::new(blocks, LOGS), &writes);
    same(|blocks| Sfs::new(blocks, 8, LOGS), &writes);
    same(|blocks| Fadac::new(blocks, LOGS), &writes);
    same(|blocks| SepBit::new(blocks, LOGS), &writes);
    same(|blocks| LifeTable::new(blocks, LOGS), &writes);
    same(|blocks| Oracle::new(death_clocks(&writes, FEW_BLOCKS), blocks, 8, LOGS), &writes);
}

#[test]
fn clocks_may_pass_the_end_of_their_32_bits() {
    let writes = zipf(0.8, FEW_BLOCKS);
    // In the middle of the run.
    let late = (1_u64 << 32) - 5 * FEW_BLOCKS as u64;
    let blocks = FEW_BLOCKS;
    let sepbit = || SepBit::new(blocks, LOGS);
    let sfs = || Sfs::new(blocks, 32, LOGS);
    let early = amplification(sepbit(), CostBenefit, &writes);
    let then = amplification(Late(sepbit(), late), CostBenefit, &writes);
    assert_eq!(early.to_bits(), then.to_bits(), "SepBIT");
    let early = amplification(sfs(), CostBenefit, &writes);
    let then = amplification(Late(sfs(), late), CostBenefit, &writes);
    assert_eq!(early.to_bits(), then.to_bits(), "SFS");
    let early = amplification(LifeTable::new(blocks, LOGS), CostBenefit, &writes);
    let then = amplification(Late(LifeTable::new(blocks, LOGS), late), CostBenefit, &writes);
    assert_eq!(early.to_bits(), then.to_bits(), "life table");
}

/// Runs random writes and deletions; block numbers are taken modulo `blocks`.
fn exercise<P: Placement>(placement: P, blocks: u32, steps: &[(u32, bool)]) -> Bridge<P> {
    let bridge = Bridge::new(placement);
    let mut log = ReferenceLog::new(blocks as usize, 4, DEAD_SHARE, ByPolicy, bridge);
    for (block, deletes) in steps {
        if *deletes {
            log.delete(block % blocks);
        } else {
            log.write(block % blocks);
        }
    }
    log.verify();
    log.into_policy()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_sequence_of_operations_upsets_a_placement(
        blocks in 1_u32..200,
        steps in prop::collection::vec((any::<u32>(), prop::bool::weighted(0.2)), 1..4_000),
        logs in prop_oneof![1_usize..8, Just(256)],
    ) {
        let count = blocks as usize;
        exercise(NoSeparation, blocks, &steps);
        exercise(UserCollected, blocks, &steps);
        exercise(MultiLog::new(count, logs, &RandomStreams::new(3)), blocks, &steps);
        exercise(Dac::new(count, logs), blocks, &steps);
        exercise(Sfs::new(count, 4, logs), blocks, &steps).placement.verify();
        exercise(Fadac::new(count, logs), blocks, &steps);
        exercise(SepBit::new(count, logs), blocks, &steps);
        exercise(LifeTable::new(count, logs), blocks, &steps).placement.verify();
        exercise(NewTogether::new(LifeTable::new(count, logs.min(255))), blocks, &steps);
    }
}
