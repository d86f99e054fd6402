//! A thinner log: some of the segments of a log, which stand for all of them.
//!
//! What a log does next depends on how full its segments are, on what lies together in them, and on
//! the share of its room that is live. A stratified sample of its full segments, with all that lives
//! in them, has the first two; and as many free segments are left as give it the third. All others
//! count as a reserve that nobody may use. So a step of the thinner log costs what it costs the log,
//! and a pass over its data as much less as it has less data.
//!
//! Blocks keep their numbers, and segments their places.
//!
//! Cost: a pass over the segments that are left out.

use agewell_core::mix;

use super::Trigger;
use super::log::{Log, WAITING};
use super::policy::placement::Placement;
use super::segment_table::NONE;

/// Full segments of a log over those that are kept at least; chosen by us: of fewer, copying the log
/// costs as much as is saved.
const SCALE_MIN: usize = 2;

/// Share by which more segments than asked for may be kept, and parts of a stratum at which its
/// segment may lie, so that a whole number of free ones goes with them; chosen by us: of a hundred
/// segments, one of 25 times 16 ways leaves a rest of a few hundredths of a segment.
const MORE_SHARE: usize = 4;
const PHASES: usize = 16;

/// A number of the full segments, from a part of each stratum, and a number of the free ones.
#[derive(Clone, Copy)]
struct Kept {
    full: usize,
    phase: usize,
    free: u32,
}

impl Kept {
    /// Which of `all` full segments.
    fn places(self, all: usize) -> impl Iterator<Item = usize> {
        let Self { full, phase, .. } = self;
        (0..full).map(move |stratum| (stratum * PHASES + phase) * all / (full * PHASES))
    }
}

impl<P: Placement + Clone> Log<P> {
    /// This log with about `segments` of its full segments, or twice as many until they can be
    /// collected; none if there are not clearly more, or
    /// if a part cannot stand for it: if it has zones, collects before room is short, or keeps what
    /// is read together apart.
    pub(crate) fn thinned(&self, segments: u32) -> Option<Self> {
        let is_plain = self.table.shape.zones() == 1
            && self.setting.trigger == Trigger::NoFreeSegment
            && self.placement.regroups_to().is_none();
        let numbered = (0..).zip(&self.table.state);
        let full = numbered.filter(|(_, state)| state.is_full()).map(|(segment, _)| segment);
        let mut full: Vec<u32> = full.collect();
        if !is_plain || segments == 0 || full.len() < segments as usize * SCALE_MIN {
            return None;
        }
        full.sort_unstable_by_key(|segment| (self.table.live[*segment as usize], *segment));
        let mut least = segments as usize;
        let kept = loop {
            match self.as_utilized(&full, least) {
                Some(kept) => break kept,
                // The fuller the log, the more segments have room between them for one to come free.
                None => least *= 2,
            }
            if full.len() < least * SCALE_MIN {
                return None;
            }
        };
        let mut sampled = kept.places(full.len()).peekable();
        let mut left_out: Vec<u32> = (0..full.len())
            .filter(|place| sampled.next_if_eq(place).is_none())
            .map(|place| full[place])
            .collect();
        // They are written one after another, and are not to lie as if one had been.
        left_out.sort_unstable_by_key(|segment| mix(u64::from(*segment)));
        let mut thinned = self.clone();
        for segment in left_out {
            thinned.leave_out(segment);
        }
        thinned.setting.reserve_segments += thinned.free[0].len() as u32 - kept.free;
        Some(thinned)
    }

    /// How many of the `full` segments, in the order of their live blocks, `least` or a few more, and
    /// how many of the free ones have together the share of live blocks that the log has; none if that
    /// leaves them no segment's worth of dead blocks, so that none could ever come free.
    fn as_utilized(&self, full: &[u32], least: usize) -> Option<Kept> {
        let segment_blocks = f64::from(self.table.shape.segment_blocks_max());
        let live_of = |segment: u32| f64::from(self.table.live[segment as usize]);
        let reserve = f64::from(self.setting.reserve_segments);
        let open = self.open.iter().filter(|open| open.segment != NONE);
        let open_live: f64 = open.clone().map(|open| live_of(open.segment)).sum();
        let used = self.table.shape.capacity_blocks() as f64 - reserve * segment_blocks;
        let utilization = self.table.live_slots as f64 / used;
        let others = open.count() as f64 - reserve;
        let counts = least..=least + least / MORE_SHARE;
        let ways = counts.flat_map(|full| (0..PHASES).map(move |phase| (full, phase)));
        let candidates = ways.map(|(count, phase)| {
            let kept = Kept { full: count, phase, free: 0 };
            let live: f64 = kept.places(full.len()).map(|place| live_of(full[place])).sum();
            let segments = (live + open_live) / utilization / segment_blocks;
            let free = segments - count as f64 - others;
            let whole = free.round().clamp(0.0, (self.free[0].len() + full.len() - count) as f64);
            let dead = (count as f64 + others + whole) * segment_blocks - live - open_live;
            (Kept { free: whole as u32, ..kept }, (free - whole).abs(), dead)
        });
        let collected = candidates.filter(|(_, _, dead)| *dead >= segment_blocks);
        let best = collected.min_by(|one, other| one.1.total_cmp(&other.1));
        best.map(|(kept, ..)| kept)
    }

    /// The full segment `segment` is free, and what lived in it is not there any more.
    fn leave_out(&mut self, segment: u32) {
        let (first, end) = self.table.bounds(segment);
        let mut slot = first;
        while let Some(live) = self.table.next_live(slot, end) {
            let block = self.table.owner[live as usize];
            let place = std::mem::replace(&mut self.map[block as usize], NONE);
            if place & WAITING != 0 {
                self.buffers.entries[(place & !WAITING) as usize].block = NONE;
            }
            self.live_blocks -= 1;
            slot = live + 1;
        }
        let live = self.table.live[segment as usize];
        self.table.clear_between(segment, first, end - 1, live);
        self.index.remove(segment, 0);
        self.release(segment);
    }
}

#[cfg(test)]
mod tests {
    use agewell_core::{RandomStreams, uniform_below};
    use proptest::prelude::*;

    use super::*;
    use crate::policy::cost::CostModel;
    use crate::policy::mechanism::{Collect, Mechanism};
    use crate::policy::placement::{SepBit, UserCollected};
    use crate::{LogSetting, LogShape, Unpriced};

    const DISK: CostModel = CostModel {
        access_ns: 15_000_000,
        further_ns: 15_000_000,
        bandwidth_bytes_per_s: 5_000_000,
        block_bytes: 8192,
    };

    /// A log of `segments` segments, `hundredths` live, after `passes` passes of updates half
    /// of which go to a tenth of the blocks.
    fn aged<P: Placement + Clone>(
        (segments, hundredths, passes): (u32, u32, u32),
        mechanism: Mechanism,
        buffer_blocks: u32,
        placement: impl Fn(u32) -> P,
    ) -> Log<P> {
        let shape = LogShape::uniform(segments, 16).unwrap();
        let blocks = segments * 16 / 100 * hundredths;
        let setting = LogSetting {
            buffer_blocks,
            reserve_segments: 8,
            collect: Collect::Always(mechanism),
            ..LogSetting::plain(shape, blocks, DISK)
        };
        let mut log = Log::new(setting, placement(blocks)).unwrap();
        (0..blocks).for_each(|block| log.preload(block, &mut Unpriced).unwrap());
        update(&mut log, blocks, u64::from(blocks * passes));
        log
    }

    /// Updates of blocks below `blocks` that the log holds.
    fn update<P: Placement>(log: &mut Log<P>, blocks: u32, writes: u64) {
        let mut stream = RandomStreams::new(3).stream("updates");
        let mut written = 0;
        while written < writes {
            let bound = if written % 2 == 0 { blocks / 10 } else { blocks };
            let block = uniform_below(&mut stream, u64::from(bound.max(1))) as u32;
            if log.holds(block) {
                log.write(block, 0, &mut Unpriced).unwrap();
            }
            written += 1;
        }
    }

    fn mechanisms() -> impl Strategy<Value = Mechanism> {
        prop::sample::select(Mechanism::ALL.to_vec())
    }

    /// What is left of a log lies where it lay, and can be written to.
    fn goes_on(
        case: (u32, u32, u32),
        mechanism: Mechanism,
        buffer_blocks: u32,
        kept: u32,
    ) -> Result<(), TestCaseError> {
        let log = aged(case, mechanism, buffer_blocks, |_| UserCollected);
        // As few as that may have no segment's worth of dead blocks between them.
        let is_tight = (1.0 - utilization(&log)) * f64::from(kept) < 2.0;
        let full_of = |log: &Log<UserCollected>| {
            log.table.state.iter().filter(|state| state.is_full()).count() as u32
        };
        let Some(mut thinned) = log.thinned(kept) else {
            prop_assert!(is_tight || full_of(&log) < kept * SCALE_MIN as u32);
            return Ok(());
        };
        thinned.verify();
        for block in 0..log.blocks() {
            if let Some(slot) = thinned.slot_of(block) {
                prop_assert_eq!(Some(slot), log.slot_of(block));
            }
        }
        let full = full_of(&thinned);
        let is_asked = |kept: u32| (kept..=kept + kept / MORE_SHARE as u32).contains(&full);
        prop_assert!(is_asked(kept) || is_tight && is_asked(2 * kept), "{full}");
        let (blocks, writes) = (log.blocks(), 4 * thinned.live_blocks());
        update(&mut thinned, blocks, writes);
        thinned.verify();
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn what_is_left_lies_where_it_lay_and_goes_on(
            segments in 60_u32..200,
            hundredths in 50_u32..88,
            passes in 0_u32..4,
            mechanism in mechanisms(),
            buffer_blocks in prop::sample::select(vec![1_u32, 16]),
            kept in 8_u32..60,
        ) {
            goes_on((segments, hundredths, passes), mechanism, buffer_blocks, kept)?;
        }
    }

    /// Cases in which as many segments as are asked for have less dead between them than one has blocks.
    #[test]
    fn a_few_of_the_segments_of_a_full_log_go_on() {
        goes_on((63, 79, 3), Mechanism::Plug, 16, 8).unwrap();
        for (segments, passes, kept) in [(144, 2, 13), (151, 3, 8), (158, 1, 8), (172, 0, 8)] {
            for mechanism in [Mechanism::Clean, Mechanism::Plug] {
                goes_on((segments, 86, passes), mechanism, 16, kept).unwrap();
            }
        }
    }

    /// Live blocks over what may be used.
    fn utilization<P: Placement>(log: &Log<P>) -> f64 {
        let shape = log.shape();
        let reserve = u64::from(log.setting.reserve_segments * shape.segment_blocks_max());
        log.table.live_slots as f64 / (shape.capacity_blocks() - reserve) as f64
    }

    #[test]
    fn it_is_as_utilized_as_the_whole() {
        for mechanism in Mechanism::ALL {
            for (hundredths, passes) in [(60, 0), (60, 3), (85, 1), (85, 4), (95, 3)] {
                let case = (1_000, hundredths, passes);
                let log = aged(case, mechanism, 1, |blocks| SepBit::new(blocks as usize, 6));
                let thinned = log.thinned(100).unwrap();
                let (whole, part) = (utilization(&log), utilization(&thinned));
                assert!(
                    (part / whole - 1.0).abs() < 0.002,
                    "{case:?} {mechanism:?}: {part} {whole}"
                );
                let share = thinned.live_blocks() as f64 / log.live_blocks() as f64;
                assert!((0.09..0.21).contains(&share), "{case:?} {mechanism:?}: {share}");
            }
        }
    }

    /// Copies a block written, of the part and of the whole, over passes that come after.
    #[test]
    fn it_collects_as_the_whole_does() {
        for hundredths in [70, 80, 90] {
            let moved = |log: &mut Log<UserCollected>, blocks: u32, writes: u64| {
                let before = *log.counts();
                update(log, blocks, writes);
                let since = log.counts().since(&before);
                since.moved_blocks() as f64 / since.new_blocks as f64
            };
            let mut log = aged((2_000, hundredths, 2), Mechanism::Clean, 1, |_| UserCollected);
            let mut thinned = log.thinned(200).unwrap();
            let (blocks, writes) = (log.blocks(), log.live_blocks() * 3);
            // The draws that go to blocks which are not there are not written.
            let (whole, part) =
                (moved(&mut log, blocks, writes), moved(&mut thinned, blocks, writes));
            assert!((part / whole - 1.0).abs() < 0.06, "{hundredths}: {part}, the whole {whole}");
        }
    }
}
