//! Holes that are filled in a sweep, whose segments are chosen ahead.

use std::collections::BTreeSet;

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{BlockDevice, Call, Log, LogSetting, LogShape, Purpose, Transfer};

use super::case::DISK;

const SEGMENT_BLOCKS: u32 = 64;
const SEGMENTS: u32 = 60;
/// As many as a sync of eight blocks may need, and the one that is being filled.
const AHEAD: u32 = 9;

/// Runs of holes that were filled since the last sync, holes with records, blocks that were appended, and slots
/// that may not be filled.
#[derive(Debug, Default)]
struct Watched {
    held: BTreeSet<u32>,
    filled: Vec<(u32, u32)>,
    records: Vec<u32>,
    appended: u32,
}

impl BlockDevice for Watched {
    fn transfer(&mut self, transfer: &Transfer, _contents: &[u32]) {
        let holes = transfer.slot..transfer.slot + transfer.blocks;
        assert!(
            holes.clone().all(|slot| !self.held.contains(&slot)),
            "{holes:?} may not be filled"
        );
        if transfer.purpose == Purpose::Thread {
            self.filled.push((transfer.slot, transfer.blocks));
        } else {
            self.appended += transfer.blocks;
        }
    }

    fn records_in(&mut self, slot: u32) {
        assert!(!self.held.contains(&slot), "{slot} may not be filled");
        self.records.push(slot);
    }

    fn may_fill(&self, slot: u32) -> bool {
        !self.held.contains(&slot)
    }

    fn unfillable_most(&self) -> u64 {
        self.held.len() as u64
    }
}

/// A log of which `full` is live, threading.
fn log(full: f64, record_slots: u32) -> (Log<NoSeparation>, u32) {
    let shape = LogShape::uniform(SEGMENTS, SEGMENT_BLOCKS).unwrap();
    let blocks = (f64::from((SEGMENTS - 4) * SEGMENT_BLOCKS) * full) as u32;
    let setting = LogSetting {
        buffer_blocks: SEGMENT_BLOCKS,
        collect: Collect::Always(Mechanism::Thread),
        threads_ahead: AHEAD,
        record_slots,
        ..LogSetting::plain(shape, blocks, DISK)
    };
    (Log::new(setting, NoSeparation).unwrap(), blocks)
}

#[test]
fn a_sweep_leaves_gaps_goes_on_to_segments_chosen_before_and_fills_all_there_is() {
    for (full, spacing, gap) in [(0.9, 0, 0), (0.9, 3, 7), (0.6, 5, 20), (0.99, 2, 90)] {
        let (mut log, blocks) = log(full, 0);
        let mut device = Watched::default();
        let mut random = RandomStreams::new(3).stream("updates");
        for block in 0..blocks {
            log.write(block, 0, &mut device).unwrap();
        }
        log.sync(0, &mut device).unwrap();
        log.space_threads(spacing, 0);
        let (mut ahead, mut moves, mut up) = (Vec::new(), 0, 0);
        let mut last: Option<(u32, u32)> = None;
        for step in 0..3_000 {
            // Those that died lately are held, as a store holds them.
            if step % 5 == 0 {
                device.held.clear();
            }
            for _ in 0..8 {
                let block = uniform_below(&mut random, u64::from(blocks)) as u32;
                if let Some(slot) = log.slot_of(block) {
                    device.held.insert(slot);
                }
                log.write(block, 0, &mut device).unwrap();
            }
            log.leave_gap(gap);
            device.filled.clear();
            if log.sync(0, &mut device).is_err() {
                // All holes that are left are held.
                device.held.clear();
                log.sync(0, &mut device).unwrap();
            }
            for (slot, length) in device.filled.drain(..) {
                let segment = slot / SEGMENT_BLOCKS;
                if let Some((before, end)) = last {
                    if before == segment && slot > end {
                        assert!(slot - end >= spacing, "{slot} behind {end}");
                    } else if before != segment {
                        moves += 1;
                        up += u32::from(segment > before);
                        assert!(
                            ahead.is_empty() || ahead.contains(&segment),
                            "{segment} was not chosen before: {ahead:?}"
                        );
                    }
                }
                last = Some((segment, slot + length));
            }
            log.choose_threads_ahead(&device);
            ahead = log.threads_ahead().collect();
            if step % 100 == 0 {
                log.verify();
            }
        }
        assert!(moves > 100 && up * 10 > moves * 7, "{full}: {up} of {moves} moves go up");
    }
}

#[test]
fn the_record_of_what_has_gone_into_holes_is_in_a_hole_behind_it() {
    let (mut log, blocks) = log(0.8, 1);
    let mut device = Watched::default();
    let mut random = RandomStreams::new(5).stream("updates");
    let mut alone = 0;
    for round in 0..5_000 {
        (device.appended, device.held) = (0, device.records.drain(..).collect());
        device.filled.clear();
        for _ in 0..uniform_below(&mut random, 9) {
            let block = uniform_below(&mut random, u64::from(blocks)) as u32;
            log.carry_out(Call::Write { block, client: 0 }, &mut device).unwrap();
        }
        log.carry_out(Call::Sync { client: 0 }, &mut device).unwrap();
        let last = device.filled.last().map(|(slot, length)| slot + length - 1);
        let (true, Some(last)) = (device.appended == 0, last) else {
            assert_eq!(device.records, [], "{round}: nothing has gone into holes, or not all");
            continue;
        };
        let [record] = device.records[..] else { continue };
        alone += 1;
        assert_eq!(record / SEGMENT_BLOCKS, last / SEGMENT_BLOCKS, "{round}: in another segment");
        let is_hole = |slot: u32| (0..blocks).all(|block| log.slot_of(block) != Some(slot));
        assert!(is_hole(record), "{round}: no hole");
        let holes = last + 1..record;
        assert!(record < last || !holes.clone().any(is_hole), "{round}: holes left in {holes:?}");
        log.verify();
    }
    assert!(alone > 1_000, "{alone} records are in holes");
}
