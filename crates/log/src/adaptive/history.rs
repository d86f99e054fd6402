//! The recent writes and syncs, and whether their order means anything.
//!
//! Order means nothing where the writes are exchangeable: where any other order of the same writes
//! would be as likely. Two properties that order gives are held against what chance gives with the
//! same counts of writes a block: how often a write follows the block before it, and how many
//! different blocks each part of the history holds (fewer where writes come in bursts or a hot set
//! moves). And counts that differ less than those of blocks drawn with the same chance show that
//! blocks come round in turn.
//!
//! Memory: 8 bytes an entry, all taken when the history is made. Cost: one store a write.

use crate::segment_table::NONE;

/// Entries for each block of the log, chosen by us: counts over two passes distinguish the blocks of
/// usual loads apart, and a load that has changed is seen for what it is two passes later.
const ENTRIES_PER_BLOCK: usize = 2;

/// Entries of the history of a small log; chosen by us.
const ENTRIES_MIN: usize = 1024;

/// Parts in each of which different blocks are counted; chosen by us: bursts of a sixteenth of the
/// history and longer are seen as such.
const PARTS: u8 = 16;

/// Writes too few to decide on; chosen by us: of fewer the tolerance below would let anything pass.
const WRITES_MIN: usize = 128;

/// Share by which both properties may differ from chance, beside twice the error of as many draws.
/// Chosen by us: uniform, hot-and-cold and Zipf updates stay within a quarter of it, recorded loads
/// are beyond it by factors.
const TOLERANCE: f64 = 0.02;

/// Standard errors by which counts must differ too little to show an order; chosen by us.
const ERRORS: f64 = 4.0;

/// A write of a block, or a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The block; none if it is a sync.
    pub(super) block: u32,
    pub(super) client: u32,
}

impl Entry {
    /// Whether it is a write.
    pub(super) fn is_write(self) -> bool {
        self.block != NONE
    }
}

/// What the order of writes means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Nothing: any other order of the same writes would be as likely.
    None,
    /// That blocks come round in turn: none is written again before most others are.
    Rounds,
    /// Something else; also if there are too few writes to say.
    Other,
}

/// The recent writes and syncs.
#[derive(Debug, Clone)]
pub(super) struct History {
    /// In their order, from `oldest` on and round.
    entries: Vec<Entry>,
    entries_max: usize,
    oldest: usize,
    writes: u64,
    /// Which clients have written something since they last synced.
    unsent: Vec<bool>,
}

impl History {
    /// Of a log of this many blocks.
    pub(super) fn new(blocks: u32, clients: u32) -> Self {
        let entries_max = (blocks as usize * ENTRIES_PER_BLOCK).max(ENTRIES_MIN);
        let entries = Vec::with_capacity(entries_max);
        let unsent = vec![false; clients as usize];
        Self { entries, entries_max, oldest: 0, writes: 0, unsent }
    }

    /// Writes so far, forgotten ones included.
    #[inline]
    pub(super) fn writes(&self) -> u64 {
        self.writes
    }

    /// `block` is written.
    #[inline]
    pub(super) fn write(&mut self, block: u32, client: u32) {
        debug_assert_ne!(block, NONE, "a block without a number");
        self.writes += 1;
        self.unsent[client as usize] = true;
        self.note(Entry { block, client });
    }

    /// What `client` has written is sent to the disk; not worth an entry if that is nothing.
    pub(super) fn sync(&mut self, client: u32) {
        if std::mem::take(&mut self.unsent[client as usize]) {
            self.note(Entry { block: NONE, client });
        }
    }

    #[inline]
    fn note(&mut self, entry: Entry) {
        if self.entries.len() < self.entries_max {
            self.entries.push(entry);
            return;
        }
        self.entries[self.oldest] = entry;
        self.oldest += 1;
        if self.oldest == self.entries_max {
            self.oldest = 0;
        }
    }

    /// What is remembered, for whoever thinks it over: what comes meanwhile is noted here, until it is
    /// [put before](Self::put_before) that.
    pub(super) fn take(&mut self) -> Self {
        let (entries_max, writes) = (self.entries_max, self.writes);
        let unsent = self.unsent.clone();
        let later = Self { entries: Vec::new(), entries_max, oldest: 0, writes, unsent };
        std::mem::replace(self, later)
    }

    /// Remembers `earlier` as well, which was taken before all that is remembered.
    pub(super) fn put_before(&mut self, mut earlier: Self) {
        self.entries().for_each(|entry| earlier.note(*entry));
        (earlier.writes, earlier.unsent) = (self.writes, std::mem::take(&mut self.unsent));
        *self = earlier;
    }

    /// What is remembered, in its order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> + Clone {
        let (later, earlier) = self.entries.split_at(self.oldest);
        earlier.iter().chain(later)
    }

    /// The same, copied.
    pub(super) fn to_vec(&self) -> Vec<Entry> {
        self.entries().copied().collect()
    }

    /// What a log of `share` of the blocks, those that it `holds`, would remember: their writes, and
    /// as many of the syncs of each client as leave as many writes between two.
    pub(super) fn thinned(&self, share: f64, holds: impl Fn(u32) -> bool) -> Self {
        let mut thinned = Self {
            entries: Vec::new(),
            entries_max: usize::MAX,
            oldest: 0,
            writes: 0,
            unsent: vec![false; self.unsent.len()],
        };
        let mut held_syncs = vec![0.0; self.unsent.len()];
        for entry in self.entries() {
            if !entry.is_write() {
                let held = &mut held_syncs[entry.client as usize];
                *held += share;
                if *held >= 1.0 {
                    *held -= 1.0;
                    thinned.sync(entry.client);
                }
            } else if holds(entry.block) {
                thinned.write(entry.block, entry.client);
            }
        }
        // Those that are forgotten count, too.
        thinned.writes = (self.writes as f64 * share) as u64;
        thinned
    }

    /// How often each block below `blocks` was written.
    pub(super) fn counts(&self, blocks: u32) -> Vec<u32> {
        let mut counts = vec![0; blocks as usize];
        for entry in self.entries.iter().filter(|entry| entry.is_write()) {
            counts[entry.block as usize] += 1;
        }
        counts
    }

    /// Entries over the writes among them; 1 if there are none.
    pub(super) fn entries_per_write(&self) -> f64 {
        let writes = self.entries.iter().filter(|entry| entry.is_write()).count();
        if writes == 0 { 1.0 } else { self.entries.len() as f64 / writes as f64 }
    }

    /// What the order of the writes to blocks below `blocks` means; `holds` says which there are.
    pub(super) fn order(&self, blocks: u32, holds: impl Fn(u32) -> bool) -> Order {
        let writes = self.entries().filter(|entry| entry.is_write());
        let written: Vec<u32> = writes.map(|entry| entry.block).collect();
        if written.len() < WRITES_MIN {
            return Order::Other;
        }
        let counts = self.counts(blocks);
        let held = (0..).zip(&counts).filter(|(block, _)| holds(*block));
        if is_in_turn(held.map(|(_, count)| u64::from(*count))) {
            return Order::Rounds;
        }
        let writes = written.len() as f64;
        let tolerance = TOLERANCE + 2.0 / writes.sqrt();
        let differs = |found: usize, by_chance: f64, of: f64| {
            (found as f64 - by_chance).abs() > tolerance * of
        };
        let by_chance = distinct_by_chance(&counts);
        let ordered = differs(followed(&written), followed_by_chance(&counts) / writes, writes)
            || differs(distinct(&written, counts.len()), by_chance, by_chance);
        if ordered { Order::Other } else { Order::None }
    }
}

/// Writes of the block behind the one written before.
fn followed(written: &[u32]) -> usize {
    written.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count()
}

/// Different blocks in each part of what was `written`, summed over the parts.
fn distinct(written: &[u32], blocks: usize) -> usize {
    let mut last_part = vec![PARTS; blocks];
    let parts = written.chunks(written.len().div_ceil(usize::from(PARTS)));
    let distinct = (0..).zip(parts).map(|(part, blocks): (u8, _)| {
        let is_new =
            |block: &&u32| std::mem::replace(&mut last_part[**block as usize], part) != part;
        blocks.iter().filter(is_new).count()
    });
    distinct.sum()
}

/// How often a write follows the block before it if the order is chance, times the writes.
fn followed_by_chance(counts: &[u32]) -> f64 {
    counts.windows(2).map(|pair| u64::from(pair[0]) * u64::from(pair[1])).sum::<u64>() as f64
}

/// Whether blocks were written more evenly than if all had the same chance. Of Poisson draws with a
/// mean of m, the mean of n (n - 1) is the square of m, with a variance of 4 m^3 + 2 m^2.
fn is_in_turn(counts: impl Iterator<Item = u64>) -> bool {
    let (blocks, writes, pairs) = counts.fold((0_u64, 0, 0), |(blocks, writes, pairs), count| {
        (blocks + 1, writes + count, pairs + count * count.saturating_sub(1))
    });
    let blocks = blocks.max(1) as f64;
    let mean = writes as f64 / blocks;
    let error = ((4.0 * mean * mean * mean + 2.0 * mean * mean) / blocks).sqrt();
    (pairs as f64) / blocks < mean * mean - ERRORS * error
}

/// Different blocks in each part, summed over the parts, if the order is chance: a block written so
/// often is missing from a part with the chance that each of its writes went elsewhere.
fn distinct_by_chance(counts: &[u32]) -> f64 {
    let parts = f64::from(PARTS);
    let parts_with = |count: usize| parts * (1.0 - libm::pow(1.0 - 1.0 / parts, count as f64));
    let most = counts.iter().copied().max().unwrap_or(0) as usize;
    // Few counts differ, and a power takes longer than a look.
    let known: Vec<f64> = (0..=most.min(usize::from(u8::MAX))).map(parts_with).collect();
    let of = |count: usize| known.get(count).copied().unwrap_or_else(|| parts_with(count));
    counts.iter().filter(|count| **count > 0).map(|count| of(*count as usize)).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use agewell_core::{RandomStreams, Stream, chance, uniform_below};
    use proptest::prelude::*;

    use super::*;

    const BLOCKS: u32 = 4_000;

    fn ordered(written: impl IntoIterator<Item = u32>) -> bool {
        let mut history = History::new(BLOCKS, 1);
        for block in written {
            history.write(block, 0);
            history.sync(0);
        }
        history.order(BLOCKS, |_| true) != Order::None
    }

    fn draw(stream: &mut Stream, bound: u32) -> u32 {
        uniform_below(stream, u64::from(bound)) as u32
    }

    proptest! {
        #[test]
        fn what_was_taken_and_put_back_is_as_if_it_had_stayed(
            blocks in prop::sample::select(vec![3_u32, 700]),
            calls in prop::collection::vec((0_u32..9, 0_u32..2, 0_u8..12), 0..4_000),
        ) {
            let mut whole = History::new(blocks, 2);
            let (mut history, mut taken) = (History::new(blocks, 2), None);
            for (block, client, kind) in calls {
                match kind {
                    0 if taken.is_none() => taken = Some(history.take()),
                    1 => taken.take().into_iter().for_each(|taken| history.put_before(taken)),
                    2 | 3 => {
                        whole.sync(client);
                        history.sync(client);
                    }
                    _ => {
                        whole.write(block % blocks, client);
                        history.write(block % blocks, client);
                    }
                }
                prop_assert_eq!(history.writes(), whole.writes());
            }
            if let Some(taken) = taken {
                history.put_before(taken);
            }
            prop_assert_eq!(history.to_vec(), whole.to_vec());
            prop_assert_eq!(history.unsent, whole.unsent);
        }
    }

    #[test]
    fn order_is_seen_where_there_is_one_and_not_where_there_is_none() {
        for (seed, writes) in [(1, 200), (2, 1_000), (3, 3_000), (4, 20_000)] {
            let mut stream = RandomStreams::new(seed).stream("writes");
            let uniform: Vec<u32> = (0..writes).map(|_| draw(&mut stream, BLOCKS)).collect();
            assert!(!ordered(uniform.iter().copied()), "uniform {writes}");
            let mut hot = || {
                let bound = if chance(&mut stream, 0.9) { BLOCKS / 10 } else { BLOCKS };
                draw(&mut stream, bound)
            };
            assert!(!ordered((0..writes).map(|_| hot())), "hot {writes}");
            // Close to Zipf's of exponent 1: each power of two of the ranks as often as the next.
            let mut skewed = || {
                let power = f64::from(draw(&mut stream, 1 << 20)) / f64::from(1 << 20);
                f64::from(BLOCKS).powf(power) as u32 - 1
            };
            assert!(!ordered((0..writes).map(|_| mix_of(skewed()))), "skewed {writes}");

            assert!(ordered((0..writes).map(|write| write % BLOCKS)), "in turn {writes}");
            assert!(
                ordered((0..writes).map(|write| write * 7 % BLOCKS)) || writes < BLOCKS,
                "rounds"
            );
            let runs = uniform.iter().flat_map(|block| [*block, (*block + 1) % BLOCKS]);
            assert!(ordered(runs), "runs {writes}");
            let bursts = uniform.iter().flat_map(|block| [*block; 3]);
            assert!(ordered(bursts), "bursts {writes}");
        }
    }

    /// Blocks in an order that puts no two neighbours side by side.
    fn mix_of(rank: u32) -> u32 {
        (rank * 1_237) % BLOCKS
    }

    #[test]
    fn a_hot_set_that_moves_is_an_order() {
        let mut stream = RandomStreams::new(1).stream("writes");
        let moving =
            (0..8_000).map(|write| (write / 1_000 * 400 + draw(&mut stream, 400)) % BLOCKS);
        assert!(ordered(moving));
    }

    /// In an order of its own each round: no two neighbours side by side, none twice.
    fn scattered_round(write: u32) -> u32 {
        mix_of((write % BLOCKS) * 7 + write / BLOCKS) % BLOCKS
    }

    #[test]
    fn rounds_are_told_from_other_orders() {
        let order = |written: &mut dyn Iterator<Item = u32>, held: u32| {
            let mut history = History::new(BLOCKS, 1);
            written.for_each(|block| history.write(block, 0));
            history.order(BLOCKS, |block| block < held)
        };
        for writes in [500, 2_000, 4_500, 12_000] {
            assert_eq!(order(&mut (0..writes).map(|w| w % BLOCKS), BLOCKS), Order::Rounds);
            let mut scattered = (0..writes).map(scattered_round);
            assert_eq!(order(&mut scattered, BLOCKS), Order::Rounds, "{writes}");
            let mut stream = RandomStreams::new(1).stream("writes");
            let mut uniform = (0..writes).map(|_| draw(&mut stream, BLOCKS));
            assert_eq!(order(&mut uniform, BLOCKS), Order::None, "{writes}");
            let mut moving = (0..writes).map(|w| (w / 3 + w % 3 * 7) % BLOCKS);
            assert_eq!(order(&mut moving, BLOCKS), Order::Other, "{writes}");
        }
        // A round of the blocks that there are, though other numbers stand for none.
        let half = BLOCKS / 2;
        assert_eq!(order(&mut (0..half * 3).map(|write| write % half), half), Order::Rounds);
    }

    #[test]
    fn too_few_writes_tell_nothing() {
        let mut stream = RandomStreams::new(1).stream("writes");
        assert!(ordered((1..WRITES_MIN).map(|_| draw(&mut stream, BLOCKS))));
        assert!(ordered([]));
    }

    proptest! {
        #[test]
        fn the_latest_entries_are_remembered(
            operations in prop::collection::vec((0_u32..900, 0_u32..3, any::<bool>()), 0..4_000),
        ) {
            let mut history = History::new(900, 3);
            let (mut entries, mut unsent, mut writes) = (VecDeque::new(), [false; 3], 0);
            for (block, client, syncs) in operations {
                if syncs {
                    history.sync(client);
                } else {
                    history.write(block, client);
                    writes += 1;
                }
                if !syncs || unsent[client as usize] {
                    entries.push_back(Entry { block: if syncs { NONE } else { block }, client });
                }
                unsent[client as usize] = !syncs;
                if entries.len() > 1_800 {
                    entries.pop_front();
                }
            }
            prop_assert_eq!(history.writes(), writes);
            prop_assert_eq!(history.to_vec(), Vec::from(entries.clone()));
            let counts = history.counts(900);
            for (block, count) in (0..).zip(counts) {
                let expected = entries.iter().filter(|entry| entry.block == block).count();
                prop_assert_eq!(count as usize, expected);
            }
        }
    }
}
