//! The adaptive log against every mechanism used alone.

use agewell_core::{RandomStreams, Stream, chance, uniform_below};
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{AdaptiveLog, Call, CostMeter, Header, LogSetting, LogShape};

use crate::case::{DISK, EVEN_DISK};

const BLOCKS: u32 = 12_000;
const SEGMENT_BLOCKS: u32 = 32;

type Load = fn(&mut Stream, u32) -> u32;

fn draw(stream: &mut Stream, bound: u32) -> u32 {
    uniform_below(stream, u64::from(bound)) as u32
}

fn uniform(stream: &mut Stream, _write: u32) -> u32 {
    draw(stream, BLOCKS)
}

fn hot(stream: &mut Stream, _write: u32) -> u32 {
    let hot = chance(stream, 0.9);
    if hot { draw(stream, BLOCKS / 10) } else { draw(stream, BLOCKS) }
}

/// Close to Zipf's of exponent 1: each power of two of the ranks as often as the next.
fn skewed(stream: &mut Stream, _write: u32) -> u32 {
    let power = f64::from(draw(stream, 1 << 20)) / f64::from(1 << 20);
    let rank = f64::from(BLOCKS).powf(power) as u32 - 1;
    rank * 7_919 % BLOCKS
}

/// Runs of eight blocks all over the data.
fn runs(_stream: &mut Stream, write: u32) -> u32 {
    let run = agewell_core::mix(u64::from(write / 8)) % u64::from(BLOCKS / 8);
    run as u32 * 8 + write % 8
}

/// Runs of eight blocks in a fifth of the data, which moves on.
fn moving(stream: &mut Stream, write: u32) -> u32 {
    (runs(stream, write) / 5 + write / 12) % BLOCKS
}

fn setting(utilization: f64, collect: Mechanism) -> LogSetting {
    let segments = (f64::from(BLOCKS) / utilization / f64::from(SEGMENT_BLOCKS)).ceil();
    LogSetting {
        buffer_blocks: SEGMENT_BLOCKS,
        collect: Collect::Always(collect),
        header: Header::Block,
        ..LogSetting::plain(
            LogShape::uniform(segments as u32, SEGMENT_BLOCKS).unwrap(),
            BLOCKS,
            EVEN_DISK,
        )
    }
}

fn preloaded(mut log: AdaptiveLog<NoSeparation>) -> AdaptiveLog<NoSeparation> {
    for block in 0..BLOCKS {
        log.carry_out(Call::Preload(block), &mut CostMeter::new(EVEN_DISK)).unwrap();
    }
    log
}

/// Disk time of `passes` passes of `load`, ns.
fn spent_ns(
    log: &mut AdaptiveLog<NoSeparation>,
    load: Load,
    passes: u32,
    stream: &mut Stream,
) -> u64 {
    let mut meter = CostMeter::new(EVEN_DISK);
    for write in 0..passes * BLOCKS {
        log.carry_out(Call::Write { block: load(stream, write), client: 0 }, &mut meter).unwrap();
        if write % 4 == 3 {
            log.carry_out(Call::Sync { client: 0 }, &mut meter).unwrap();
        }
    }
    meter.total_ns()
}

fn over_the_best(load: Load, utilization: f64) -> f64 {
    let stream = || RandomStreams::new(1).stream("writes");
    let alone = Mechanism::ALL.map(|mechanism| {
        let log = AdaptiveLog::fixed(setting(utilization, mechanism), NoSeparation).unwrap();
        spent_ns(&mut preloaded(log), load, 10, &mut stream())
    });
    let setting = setting(utilization, Mechanism::Clean);
    let log = AdaptiveLog::among(&Mechanism::ALL, setting, |_| NoSeparation).unwrap();
    let mut log = preloaded(log);
    let ours = spent_ns(&mut log, load, 10, &mut stream());
    log.verify();
    let [clean, plug, thread] = alone;
    ours as f64 / clean.min(plug).min(thread) as f64
}

fn check(loads: &[(&str, Load)], most: f64) {
    for (name, load) in loads {
        for utilization in [0.7, 0.8, 0.9, 0.95] {
            let ratio = over_the_best(*load, utilization);
            assert!(ratio < most, "{name} at {utilization}: {ratio}");
        }
    }
}

#[test]
fn the_choice_costs_at_most_two_percent_more_than_the_best_mechanism() {
    check(&[("uniform", uniform), ("hot", hot), ("skewed", skewed)], 1.02);
}

/// Where the order of the writes carries information the forecast is less exact.
#[test]
fn with_an_order_the_choice_costs_at_most_four_percent_more() {
    check(&[("runs", runs), ("moving", moving)], 1.04);
}

/// Disk time of a log that is filled by writes and then overwritten once, each block once in random
/// order, ns; with `mechanism` alone, or the choice among all.
fn written_once_ns(disk: CostModel, utilization: f64, mechanism: Option<Mechanism>) -> u64 {
    let setting = setting(utilization, mechanism.unwrap_or(Mechanism::Clean));
    let setting = LogSetting { disk, ..setting };
    let log = match mechanism {
        Some(_) => AdaptiveLog::fixed(setting, NoSeparation),
        None => AdaptiveLog::among(&Mechanism::ALL, setting, |_| NoSeparation),
    };
    let (mut log, mut meter) = (log.unwrap(), CostMeter::new(disk));
    let stream = &mut RandomStreams::new(1).stream("order");
    let mut order: Vec<u32> = (0..BLOCKS).collect();
    for place in (1..BLOCKS).rev() {
        order.swap(place as usize, draw(stream, place + 1) as usize);
    }
    for block in (0..BLOCKS).chain(order) {
        log.carry_out(Call::Write { block, client: 0 }, &mut meter).unwrap();
    }
    log.carry_out(Call::Sync { client: 0 }, &mut meter).unwrap();
    log.verify();
    meter.total_ns()
}

/// A fill predicts nothing about the writes after it, and a load that writes each block once is no
/// load of ten passes. On a log as small as this the round is seen only after a twentieth of it.
#[test]
fn writing_everything_once_costs_at_most_three_percent_more() {
    for (disk, utilization) in
        [EVEN_DISK, DISK].into_iter().flat_map(|disk| [0.5, 0.8, 0.9, 0.95].map(|at| (disk, at)))
    {
        let cost = |mechanism| written_once_ns(disk, utilization, mechanism) as f64;
        let alone = Mechanism::ALL.map(|mechanism| cost(Some(mechanism)));
        let ratio = cost(None) / alone.into_iter().fold(f64::INFINITY, f64::min);
        assert!(ratio < 1.03, "{disk:?} at {utilization}: {ratio}");
    }
}

/// Soon after a change of load the log does what a log does that never saw another load.
#[test]
fn a_change_of_the_load_is_noticed() {
    let utilization = 0.9;
    let log = AdaptiveLog::among(&Mechanism::ALL, setting(utilization, Mechanism::Clean), |_| {
        NoSeparation
    });
    let mut log = preloaded(log.unwrap());
    let stream = &mut RandomStreams::new(1).stream("writes");
    spent_ns(&mut log, uniform, 6, stream);
    assert_eq!(log.log().collect_rule(), Collect::Always(Mechanism::Thread));
    spent_ns(&mut log, skewed, 20, stream);
    assert_eq!(log.log().collect_rule(), Collect::Always(Mechanism::Plug));
}
