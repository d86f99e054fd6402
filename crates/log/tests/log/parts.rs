//! Victims that are plugged in parts, and holes that may not be filled yet.

use std::collections::BTreeSet;

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{BlockDevice, Log, LogSetting, LogShape, Purpose, Transfer, Unpriced};

use super::case::DISK;

const SEGMENT_BLOCKS: u32 = 64;
const SEGMENTS: u32 = 30;

/// What a step has read and filled, where some slots may not be filled.
#[derive(Debug, Default)]
struct Watched {
    held: BTreeSet<u32>,
    read: Vec<(u32, u32)>,
    filled: Vec<u32>,
    cleaned: u32,
}

impl BlockDevice for Watched {
    fn transfer(&mut self, transfer: &Transfer, _contents: &[u32]) {
        let slots = transfer.slot..transfer.slot + transfer.blocks;
        match transfer.purpose {
            Purpose::CollectRead => self.read.push((transfer.slot, transfer.blocks)),
            Purpose::Plug => self.filled.extend(slots),
            Purpose::CollectWrite => self.cleaned += transfer.blocks,
            _ => {}
        }
    }

    fn may_fill(&self, slot: u32) -> bool {
        !self.held.contains(&slot)
    }

    fn unfillable_most(&self) -> u64 {
        self.held.len() as u64
    }
}

/// A log that plugs, nine tenths full, with holes in all of it.
fn aged() -> (Log<NoSeparation>, Stream) {
    let shape = LogShape::uniform(SEGMENTS, SEGMENT_BLOCKS).unwrap();
    let blocks = (SEGMENTS - 4) * SEGMENT_BLOCKS * 9 / 10;
    let setting = LogSetting {
        reserve_segments: 2,
        collect: Collect::Always(Mechanism::Plug),
        ..LogSetting::plain(shape, blocks, DISK)
    };
    let mut log = Log::new(setting, NoSeparation).unwrap();
    let mut random = RandomStreams::new(5).stream("updates");
    (0..blocks).for_each(|block| log.write(block, 0, &mut Unpriced).unwrap());
    (0..4 * blocks).for_each(|_| update(&mut log, &mut random));
    (log, random)
}

fn update(log: &mut Log<NoSeparation>, random: &mut Stream) {
    let block = uniform_below(random, u64::from(log.blocks())) as u32;
    log.write(block, 0, &mut Unpriced).unwrap();
}

/// Slots in which nothing lives, of segments in which something does.
fn holes(log: &Log<NoSeparation>) -> Vec<u32> {
    let segments =
        (0..SEGMENTS).filter(|segment| log.open_segments().all(|open| open.segment != *segment));
    let slots = segments.map(|segment| segment * SEGMENT_BLOCKS..(segment + 1) * SEGMENT_BLOCKS);
    let used = slots.filter(|slots| slots.clone().any(|slot| log.owner_of(slot).is_some()));
    used.flatten().filter(|slot| log.owner_of(*slot).is_none()).collect()
}

#[test]
fn a_victim_is_plugged_in_parts_until_it_is_free() {
    let (mut log, mut random) = aged();
    for part in [1, 7, 40, SEGMENT_BLOCKS] {
        for _ in 0..6 {
            let (before, counts) = (log.room_without_collection(), *log.counts());
            let mut steps = 0_u32;
            while log.room_without_collection() <= before {
                let mut device = Watched::default();
                let live = log.live_blocks();
                let lay: Vec<Option<u32>> =
                    (0..log.blocks()).map(|block| log.slot_of(block)).collect();
                assert_eq!(log.make_room_in_parts(part, &mut device), Ok(true));
                log.verify();
                assert!((1..=part as usize).contains(&device.filled.len()), "{device:?}");
                assert_eq!((log.live_blocks(), device.cleaned, device.read.len()), (live, 0, 1));
                // What moves is read, and no more than from the first to the last of it.
                let (first, blocks) = device.read[0];
                let moved = |block: &u32| log.slot_of(*block) != lay[*block as usize];
                let from =
                    (0..log.blocks()).filter(moved).map(|block| lay[block as usize].unwrap());
                let from: BTreeSet<u32> = from.collect();
                assert_eq!(from.len(), device.filled.len());
                assert!(from.iter().all(|slot| (first..first + blocks).contains(slot)));
                if log.room_without_collection() <= before {
                    assert_eq!(from.len() as u32, part);
                    assert_eq!(
                        (from.first(), from.last()),
                        (Some(&first), Some(&(first + blocks - 1)))
                    );
                }
                steps += 1;
                // Others write meanwhile.
                if steps.is_multiple_of(5) && log.open_rest() > 1 {
                    update(&mut log, &mut random);
                }
            }
            let since = log.counts().since(&counts);
            assert!(since.plugged_blocks > u64::from(steps - 1) * u64::from(part));
            assert_eq!(since.cleaned_blocks, 0);
            (0..SEGMENT_BLOCKS).for_each(|_| update(&mut log, &mut random));
        }
    }
}

/// Holes that may not be filled are left; those beside them, and of other segments, are filled.
#[test]
fn holes_that_may_not_be_filled_are_left() {
    let (log, _) = aged();
    let holes = holes(&log);
    let mut plugged = 0;
    for share in [0, 1, 3, 10] {
        // One hole in `share`, or one segment in as many.
        for of_segment in [false, true] {
            let is_held = |slot: &u32| {
                let number = if of_segment { slot / SEGMENT_BLOCKS } else { *slot };
                share > 0 && agewell_core::mix(u64::from(number)).is_multiple_of(share)
            };
            let held = holes.iter().copied().filter(is_held).collect();
            let mut device = Watched { held, ..Watched::default() };
            let mut log = log.clone();
            let made = log.make_more_room(0, &mut device);
            log.verify();
            assert!(device.filled.iter().all(|slot| !device.held.contains(slot)));
            assert_eq!(made, Ok(true));
            // Of too few that may be filled none is: it cleans.
            let is_plugged = !device.filled.is_empty();
            assert_eq!(is_plugged, device.cleaned == 0);
            assert_eq!(is_plugged, share != 1, "{share} {of_segment}");
            plugged += u32::from(is_plugged);
        }
    }
    assert_eq!(plugged, 6);
}
