//! The log against closed forms and published simulations.
//!
//! The closed form for uniform updates: a segment collected in the order of sealing has lost its
//! blocks at a constant rate since it was full, so that with a share v of them left the utilization
//! is (1 - v) / (-ln v) (Menon 1995; Desnoyers 2012, §3). Each segment collected gives 1 - v of a
//! segment to new data: write amplification 1 / (1 - v), and with the reading of the whole segment
//! a write cost of 2 / (1 - v) (Matthews 1999, §2.2, eq. 1; Rosenblum & Ousterhout 1992, §3.4).
//! Segments kept free hold nothing, so that the utilization is that of the others.

use agewell_log::policy::placement::{NoSeparation, Placement, UserCollected};
use agewell_log::{Counts, Log, LogSetting, LogShape, Trigger, Victim};

use crate::case::DISK;
use crate::steady::{BLOCKS, Draw, hot_and_cold, steady_state, uniform};

/// A log without buffers of which `BLOCKS` are the share `utilization`, reserve left out.
fn setting(victim: Victim, utilization: f64, segment_blocks: u32, reserve: u32) -> LogSetting {
    let used = f64::from(BLOCKS) / utilization / f64::from(segment_blocks);
    let segments = used.round() as u32 + reserve;
    LogSetting {
        victim,
        reserve_segments: reserve,
        ..LogSetting::plain(LogShape::uniform(segments, segment_blocks).unwrap(), BLOCKS, DISK)
    }
}

/// Counts of the log in its steady state, for updates drawn by `draw`.
fn steady<P: Placement>(setting: LogSetting, placement: P, draw: Draw) -> Counts {
    steady_state(&mut Log::new(setting, placement).unwrap(), 10, draw)
}

/// The share of blocks live in a victim by order of sealing.
fn fifo_victim(utilization: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if (1.0 - middle) / -middle.ln() < utilization { low = middle } else { high = middle }
    }
    low
}

fn write_cost(counts: &Counts) -> f64 {
    (counts.read_blocks + counts.cleaned_blocks + counts.new_blocks) as f64
        / counts.new_blocks as f64
}

fn victim_share(counts: &Counts) -> f64 {
    counts.victim_live_blocks as f64 / counts.victim_blocks as f64
}

/// The closed form's write amplification for a log with `unwritten` of its segments unwritten.
fn closed_amplification(setting: &LogSetting, unwritten: u32) -> f64 {
    let written =
        f64::from((setting.shape.segments() - unwritten) * setting.shape.segment_blocks_max());
    1.0 / (1.0 - fifo_victim(f64::from(BLOCKS) / written))
}

#[test]
fn uniform_updates_cost_what_the_closed_form_says() {
    for (utilization, segment_blocks) in
        [(0.5, 512), (0.75, 512), (0.85, 512), (0.9, 512), (0.95, 512), (0.95, 64)]
    {
        let setting = setting(Victim::Fifo, utilization, segment_blocks, 1);
        // When a victim is chosen the reserve is unwritten, and less than another segment.
        let least = closed_amplification(&setting, 1);
        let most = closed_amplification(&setting, 2);
        let fifo = steady(setting.clone(), NoSeparation, uniform);
        let found = fifo.write_amplification().unwrap();
        assert!(
            (least * 0.995..most * 1.005).contains(&found),
            "{found} not in {least}..{most} at {utilization}, {segment_blocks}"
        );
        if utilization <= 0.85 {
            assert!((found / least - 1.0).abs() < 0.015, "{found} for {least} at {utilization}");
        }
        let share = victim_share(&fifo);
        assert!((found * (1.0 - share) - 1.0).abs() < 0.002, "{found} with victims at {share}");
        // Eq. 1 counts the reading of the segments as well: 2 / (1 - v).
        assert!((write_cost(&fifo) / (2.0 * found) - 1.0).abs() < 0.005);

        let greedy =
            steady(LogSetting { victim: Victim::Greedy, ..setting }, NoSeparation, uniform);
        let ratio = greedy.write_amplification().unwrap() / found;
        // In small segments chance leaves some emptier than others, which greedy finds.
        let least = if segment_blocks == 512 { 0.96 } else { 0.8 };
        assert!((least..=1.0).contains(&ratio), "greedy costs {ratio} of FIFO at {utilization}");
    }
}

#[test]
fn room_kept_free_costs_what_a_fuller_disk_costs() {
    for (utilization, share) in [(0.48, 0.5), (0.6, 0.3), (0.75, 0.5)] {
        let trigger = Trigger::FreeShare(share);
        let setting = LogSetting { trigger, ..setting(Victim::Fifo, utilization, 256, 1) };
        let segments = f64::from(setting.shape.segments());
        let capacity = 256.0 * segments;
        let kept = share * (capacity - f64::from(BLOCKS));
        let found = steady(setting.clone(), NoSeparation, uniform).write_amplification().unwrap();
        // When a segment is cleaned, less than one is missing of what is kept.
        let closed = |kept| 1.0 / (1.0 - fifo_victim(f64::from(BLOCKS) / (capacity - kept)));
        let (least, most) = (closed(kept - 2.0 * 256.0), closed(kept + 256.0));
        assert!((least * 0.99..most * 1.01).contains(&found), "{found}, not {least} to {most}");
        let waits = LogSetting { trigger: Trigger::NoFreeSegment, ..setting };
        let waiting = steady(waits, NoSeparation, uniform).write_amplification().unwrap();
        assert!(waiting < 0.9 * found, "{waiting} of {found}");
    }
}

#[test]
fn greedy_cleaning_costs_what_others_have_found() {
    // Xiang & Kurkoski 2011 (arXiv:1110.4245): 30 % of spare room over the live data gives 2.36 by
    // their formula and 2.35 by their simulation.
    let spare = steady(setting(Victim::Greedy, 1.0 / 1.3, 512, 1), NoSeparation, uniform);
    let found = spare.write_amplification().unwrap();
    assert!((found / 2.355 - 1.0).abs() < 0.01, "{found}");
    // Rosenblum & Ousterhout 1992, §3.4: at a utilization of 75 % the segments cleaned are 55 %
    // full; below 20 % the write cost is below 2. Their segments have 256 blocks.
    let three_quarters = steady(setting(Victim::Greedy, 0.75, 256, 1), NoSeparation, uniform);
    let share = victim_share(&three_quarters);
    assert!((share - 0.55).abs() < 0.01, "segments are cleaned at {share}");
    let fifth = steady(setting(Victim::Greedy, 0.19, 256, 1), NoSeparation, uniform);
    assert!(write_cost(&fifth) < 2.0, "{}", write_cost(&fifth));
}

#[test]
fn age_tells_hot_from_cold() {
    // Without sorting, what the user writes and what is collected apart; sorted as Rosenblum &
    // Ousterhout do it, `rosenblum.rs` has it. Measured: 31, 34, 38 and 40 % below.
    let mut savings = Vec::new();
    for utilization in [0.6, 0.75, 0.85, 0.9] {
        let cost = |victim| {
            let setting = setting(victim, utilization, 256, 2);
            write_cost(&steady(setting, UserCollected, hot_and_cold))
        };
        savings.push(1.0 - cost(Victim::CostAge) / cost(Victim::Greedy));
    }
    assert!(savings.iter().all(|saving| *saving > 0.2), "{savings:?}");
    assert!(savings.iter().any(|saving| (0.35..0.55).contains(saving)), "{savings:?}");
}
