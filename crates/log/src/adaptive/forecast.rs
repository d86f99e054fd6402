//! What is expected to be written next.
//!
//! Where the order of the recent writes means nothing, blocks are drawn by their rates ([`rates`]),
//! and syncs come where they came. Where it means something the past is repeated
//! ([`repetition`]); if blocks come round in turn, to the end of a round.
//!
//! All know overwrites of live blocks only: what is created or deleted is taken to leave the live
//! data as large as it is.
//!
//! Memory: 8 bytes for each write and sync of the forecast, 21 MB at most. Draws are hashes of
//! their numbers, so that the same past has the same forecast.

use agewell_core::mix;

use super::history::{Entry, History, Order};
use super::rates::{COUNTS, Rates};
use super::repetition::repeated;
use crate::Log;
use crate::policy::placement::Placement;

/// Share of a pass over the data that a load is repeated for at least. Chosen by us on the recorded
/// loads: what a mechanism leads to, emptier segments for cleaning and holes that stay for
/// threading, does not show sooner, and further on a short past is repeated too often.
const REPEATED_PASSES: f64 = 0.5;

/// What is expected after `history`, whose `order` is known: `writes` writes with their syncs if they
/// are drawn, as many as are remembered or [`REPEATED_PASSES`] if they are repeated, what is left of
/// the rounds if blocks come round in turn; nothing if there is nothing to go by. `log` says which
/// blocks there are.
pub(super) fn forecast<P: Placement>(
    history: &History,
    order: Order,
    log: &Log<P>,
    writes: u64,
) -> Vec<Entry> {
    let holds = |block| log.holds(block);
    match order {
        Order::None => {
            let draws = Draws::new(&history.counts(log.blocks()), holds);
            draws.map_or_else(Vec::new, |draws| draws.entries(history, writes))
        }
        Order::Rounds => {
            let left = round_writes_left(history.writes(), log.live_blocks());
            let entries = left as f64 * history.entries_per_write();
            let mut next = repeated(history.to_vec(), log.blocks(), holds, entries as usize);
            next.truncate(entries as usize);
            next
        }
        Order::Other => {
            let entries_min = (REPEATED_PASSES * log.live_blocks() as f64) as usize;
            repeated(history.to_vec(), log.blocks(), holds, entries_min)
        }
    }
}

/// Writes to come of a load that goes round `blocks` blocks and has made `writes`: one that is in
/// its first round is taken to end with it, another to go round as often again as it has.
fn round_writes_left(writes: u64, blocks: u64) -> u64 {
    let blocks = blocks.max(1);
    let rounds = (writes / blocks * 2).max(1);
    // More than there were: in the first round there is a rest, later the rounds are doubled.
    rounds * blocks - writes
}

/// Blocks by how often they are expected to be written.
#[derive(Debug)]
pub(super) struct Draws {
    /// Blocks, class by class; those of the last class once for each time they were written.
    members: Vec<u32>,
    /// Where each class begins among them, and the end.
    bounds: Vec<usize>,
    /// Share of the writes that goes to each class and those before it.
    shares: Vec<f64>,
    /// The class of the least draw of each of [`GUIDES`] equal parts: to search from there takes a
    /// step or two, and no branch that a processor cannot guess.
    guide: Vec<u8>,
}

/// Parts of the guide; chosen by us: several for each class.
const GUIDES: usize = 256;

impl Draws {
    /// `counts` are those of `history`; `holds` says which blocks there are.
    fn new(counts: &[u32], holds: impl Fn(u32) -> bool) -> Option<Self> {
        let mut blocks = [0.0; COUNTS];
        let counted = (0..).zip(counts.iter().map(|count| *count as usize));
        let counted = counted.filter(|(block, _)| holds(*block));
        for (_, count) in counted.clone().filter(|(_, count)| *count < COUNTS) {
            blocks[count] += 1.0;
        }
        let rates = Rates::fitted(&blocks);
        let often = rates.rates().len();
        let mut classes = vec![Vec::new(); often + 1];
        for (block, count) in counted {
            if count < COUNTS {
                classes[rates.class(count, unit(mix(u64::from(block))))].push(block);
            } else {
                classes[often].extend(std::iter::repeat_n(block, count));
            }
        }
        let bounds = std::iter::once(0).chain(classes.iter().scan(0, |end, members| {
            *end += members.len();
            Some(*end)
        }));
        let mut weight = 0.0;
        let weights =
            classes.iter().zip(rates.rates().iter().chain(&[1.0])).map(|(members, rate)| {
                weight += members.len() as f64 * rate;
                weight
            });
        let weights: Vec<f64> = weights.collect();
        let shares: Vec<f64> = weights.iter().map(|upto| upto / weight).collect();
        let least = |part: usize| part as f64 / GUIDES as f64;
        let class_of = |draw: f64| shares.partition_point(|share| *share <= draw) as u8;
        let guide = (0..GUIDES).map(|part| class_of(least(part))).collect();
        let (bounds, members) = (bounds.collect(), classes.concat());
        (weight > 0.0).then_some(Self { members, bounds, shares, guide })
    }

    /// `writes` writes, and syncs where `history` has them.
    fn entries(&self, history: &History, writes: u64) -> Vec<Entry> {
        let rhythm = history.to_vec();
        let mut entries =
            Vec::with_capacity((writes as f64 * history.entries_per_write()) as usize);
        let mut left = writes;
        for entry in rhythm.iter().cycle() {
            let mut next = *entry;
            if next.is_write() {
                if left == 0 {
                    break;
                }
                left -= 1;
                next.block = self.block(entries.len() as u64);
            }
            entries.push(next);
        }
        entries
    }

    /// The block of draw `number`.
    #[inline]
    fn block(&self, number: u64) -> u32 {
        // The last sum is 1, and a class without a share does not add to the one before it: what is
        // found has members.
        let draw = unit(mix(2 * number));
        let mut class = usize::from(self.guide[(draw * GUIDES as f64) as usize]);
        while self.shares[class] <= draw {
            class += 1;
        }
        let members = &self.members[self.bounds[class]..self.bounds[class + 1]];
        let drawn = (u128::from(mix(2 * number + 1)) * members.len() as u128) >> 64;
        members[drawn as usize]
    }
}

/// `hash` as a number from 0 to 1, without 1.
#[inline]
fn unit(hash: u64) -> f64 {
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use agewell_core::{RandomStreams, Stream, chance, uniform_below};

    use super::*;
    use crate::policy::cost::CostModel;
    use crate::policy::placement::NoSeparation;
    use crate::{Header, LogSetting, LogShape, Unpriced};

    const BLOCKS: u32 = 20_000;
    const DISK: CostModel = CostModel {
        access_ns: 15_000_000,
        further_ns: 15_000_000,
        bandwidth_bytes_per_s: 5_000_000,
        block_bytes: 8192,
    };

    type Load = fn(&mut Stream) -> u32;

    fn draw(stream: &mut Stream, bound: u32) -> u32 {
        uniform_below(stream, u64::from(bound)) as u32
    }

    /// Different blocks among `written`.
    fn distinct(written: &[u32]) -> f64 {
        let mut sorted = written.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len() as f64
    }

    /// What is forecast goes to as many different blocks, and to as many that were not written, as
    /// what is really written next.
    #[test]
    fn draws_spread_over_blocks_as_the_writes_that_come() {
        let loads: [(&str, Load); 3] = [
            ("uniform", |stream| draw(stream, BLOCKS)),
            ("hot", |stream| {
                let hot = chance(stream, 0.9);
                if hot { draw(stream, BLOCKS / 10) } else { draw(stream, BLOCKS) }
            }),
            // Close to Zipf's of exponent 1: each power of two of the ranks as often as the next.
            ("skewed", |stream| {
                let power = f64::from(draw(stream, 1 << 20)) / f64::from(1 << 20);
                f64::from(BLOCKS).powf(power) as u32 - 1
            }),
        ];
        for (name, next) in loads {
            // The less is known the farther off it may be.
            for (writes, error) in [(2_000, 0.25), (8_000, 0.12), (40_000, 0.06)] {
                let mut stream = RandomStreams::new(1).stream("writes");
                let mut history = History::new(BLOCKS, 1);
                (0..writes).for_each(|_| history.write(next(&mut stream), 0));
                let counts = history.counts(BLOCKS);
                let draws = Draws::new(&counts, |_| true).unwrap();
                for ahead in [10_000, 100_000] {
                    let real: Vec<u32> = (0..ahead).map(|_| next(&mut stream)).collect();
                    let entries = draws.entries(&history, ahead);
                    let found: Vec<u32> = entries.iter().map(|entry| entry.block).collect();
                    let new = |blocks: &[u32]| {
                        blocks.iter().filter(|block| counts[**block as usize] == 0).count() as f64
                    };
                    for (found, real) in
                        [(distinct(&found), distinct(&real)), (new(&found), new(&real))]
                    {
                        let far = (found - real).abs() > error * real + 200.0;
                        assert!(!far, "{name}, {ahead} after {writes}: {found}, {real} came");
                    }
                }
            }
        }
    }

    /// A log that holds `BLOCKS` blocks.
    fn filled_log() -> Log<NoSeparation> {
        let setting = LogSetting {
            buffer_blocks: 32,
            header: Header::Block,
            ..LogSetting::plain(LogShape::uniform(BLOCKS / 32 * 5 / 4, 32).unwrap(), BLOCKS, DISK)
        };
        let mut log = Log::new(setting, NoSeparation).unwrap();
        (0..BLOCKS).for_each(|block| log.preload(block, &mut Unpriced).unwrap());
        log
    }

    #[test]
    fn a_round_is_gone_through_to_its_end() {
        let log = filled_log();
        // 7,919 has no divisor in common with the blocks: a round in a scattered order.
        let block = |write: u32| (u64::from(write) * 7_919 % u64::from(BLOCKS)) as u32;
        for writes in [2_000, 9_000, 16_000] {
            let mut history = History::new(BLOCKS, 1);
            for write in 0..writes {
                history.write(block(write), 0);
                if write % 4 == 3 {
                    history.sync(0);
                }
            }
            let order = history.order(BLOCKS, |block| log.holds(block));
            let entries = forecast(&history, order, &log, 10 * u64::from(BLOCKS));
            let written = entries.iter().filter(|entry| entry.is_write());
            let mut found: Vec<u32> = written.map(|entry| entry.block).collect();
            assert_eq!(found.len(), (BLOCKS - writes) as usize, "after {writes}");
            let past: Vec<u32> = (0..writes).map(block).collect();
            found.retain(|block| !past.contains(block));
            // Of the last few some are not found in as many tries.
            let share = distinct(&found) / f64::from(BLOCKS - writes);
            assert!(share > 0.95, "{share} of what is left after {writes}");
        }
    }

    #[test]
    fn rounds_end_with_the_first_or_double() {
        let left = [0, 3, 9, 10, 15, 20, 29].map(|writes| round_writes_left(writes, 10));
        assert_eq!(left, [10, 7, 1, 10, 5, 20, 11]);
        assert_eq!(round_writes_left(0, 0), 1);
    }

    #[test]
    fn syncs_come_where_they_came_and_deleted_blocks_are_not_written() {
        let mut stream = RandomStreams::new(1).stream("writes");
        let mut history = History::new(BLOCKS, 2);
        for write in 0..6_000 {
            history.write(draw(&mut stream, BLOCKS), write / 4 % 2);
            if write % 4 == 3 {
                history.sync(write / 4 % 2);
            }
        }
        let draws = Draws::new(&history.counts(BLOCKS), |block| block % 3 == 0).unwrap();
        let entries = draws.entries(&history, 20_000);
        assert_eq!(entries.iter().filter(|entry| entry.is_write()).count(), 20_000);
        for (place, entry) in entries.iter().enumerate() {
            assert_eq!(entry.is_write(), place % 5 != 4, "{place}");
            assert_eq!(entry.client as usize, place / 5 % 2, "{place}");
            assert!(!entry.is_write() || entry.block % 3 == 0, "{place}");
        }
        assert!(Draws::new(&history.counts(BLOCKS), |_| false).is_none());
    }
}
