//! Writes whose order means something, repeated.
//!
//! What comes next is taken to be to the past what the later half of the past was to the earlier
//! half. Blocks that were written in both are written again, in the order of the later half. Blocks
//! that were new in the later half stand for others that will be new: each is replaced by one that
//! has not been written, and wherever it was written, so is that. Whole regions are replaced by
//! regions, so that what lay together does. Twice the later half makes as many writes as are
//! remembered, each time with blocks that are new again.
//!
//! So bursts, runs and rounds stay as they are, and a load that goes through its data is not taken
//! for one that stays where it is.

use agewell_core::mix;

use super::history::Entry;
use crate::segment_table::NONE;

/// Blocks replaced together; chosen by us: of the order of a segment.
const REGION_BLOCKS: u32 = 64;

/// Regions that are tried for one that has room; chosen by us: by then nearly all that there is has
/// been written.
const TRIES: u32 = 64;

/// How often the later half is repeated: it is half of what is remembered.
const TIMES: usize = 2;

/// What comes after `past`, which names blocks below `blocks`: as many writes and syncs as it has,
/// or more until they are `entries_min`; nothing if it has none. `holds` says which blocks there
/// are: what has been deleted meanwhile is not written.
pub(super) fn repeated(
    mut past: Vec<Entry>,
    blocks: u32,
    holds: impl Fn(u32) -> bool,
    entries_min: usize,
) -> Vec<Entry> {
    past.retain(|entry| !entry.is_write() || holds(entry.block));
    let lived = past.len();
    while lived > 0 && (past.len() == lived || past.len() - lived < entries_min) {
        // At least as long as the past: the loop ends.
        past.extend(doubled(&past, blocks, &holds));
    }
    past.split_off(lived)
}

/// What comes after `past`, twice as long as its later half; all that it writes there is.
fn doubled(past: &[Entry], blocks: u32, holds: impl Fn(u32) -> bool) -> Vec<Entry> {
    let (earlier, later) = past.split_at(past.len() / 2);
    let mut written = vec![false; blocks as usize];
    write(earlier, &mut written);
    let known = written.clone();
    write(later, &mut written);
    let mut unwritten = Unwritten { written, drawn: 0, holds };
    let mut next = Vec::with_capacity(later.len() * TIMES);
    for _ in 0..TIMES {
        let mut replaced = Replaced::new(blocks);
        for entry in later {
            if !entry.is_write() {
                next.push(*entry);
                continue;
            }
            let block = if known[entry.block as usize] {
                entry.block
            } else {
                replaced.by(entry.block, &mut unwritten)
            };
            next.push(Entry { block, client: entry.client });
        }
    }
    next
}

/// Marks what `entries` write.
fn write(entries: &[Entry], written: &mut [bool]) {
    for entry in entries.iter().filter(|entry| entry.is_write()) {
        written[entry.block as usize] = true;
    }
}

/// Which blocks have not been written.
struct Unwritten<H> {
    written: Vec<bool>,
    drawn: u64,
    holds: H,
}

impl<H: Fn(u32) -> bool> Unwritten<H> {
    fn has(&self, block: u32) -> bool {
        self.written.get(block as usize) == Some(&false) && (self.holds)(block)
    }

    /// A region where the place of `block` in its own has not been written.
    fn region_for(&mut self, block: u32) -> Option<u32> {
        let regions = self.written.len().div_ceil(REGION_BLOCKS as usize) as u64;
        (0..TRIES).find_map(|_| {
            self.drawn += 1;
            let region = (mix(self.drawn) % regions) as u32;
            self.has(region * REGION_BLOCKS + block % REGION_BLOCKS).then_some(region)
        })
    }
}

/// Which blocks stand for which.
struct Replaced {
    blocks: Vec<u32>,
    regions: Vec<u32>,
}

impl Replaced {
    fn new(blocks: u32) -> Self {
        let regions = blocks.div_ceil(REGION_BLOCKS) as usize;
        Self { blocks: vec![NONE; blocks as usize], regions: vec![NONE; regions] }
    }

    /// What stands for `block`: always the same; itself if there is nothing unwritten left.
    fn by(&mut self, block: u32, unwritten: &mut Unwritten<impl Fn(u32) -> bool>) -> u32 {
        if self.blocks[block as usize] == NONE {
            let found = self.find(block, unwritten).unwrap_or(block);
            unwritten.written[found as usize] = true;
            self.blocks[block as usize] = found;
        }
        self.blocks[block as usize]
    }

    fn find(&mut self, block: u32, unwritten: &mut Unwritten<impl Fn(u32) -> bool>) -> Option<u32> {
        let region = &mut self.regions[(block / REGION_BLOCKS) as usize];
        let within = |region: u32, unwritten: &Unwritten<_>| {
            let place = |step| region * REGION_BLOCKS + (block + step) % REGION_BLOCKS;
            (0..REGION_BLOCKS).map(place).find(|found| unwritten.has(*found))
        };
        let found = if *region == NONE { None } else { within(*region, unwritten) };
        found.or_else(|| {
            *region = unwritten.region_for(block)?;
            within(*region, unwritten)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn writes(blocks: impl IntoIterator<Item = u32>) -> Vec<Entry> {
        blocks.into_iter().map(|block| Entry { block, client: 0 }).collect()
    }

    #[test]
    fn a_load_that_goes_through_its_data_goes_on_through_it() {
        let next = repeated(writes(0..1_000), 10_000, |_| true, 0);
        assert_eq!(next.len(), 1_000);
        assert!(next.iter().all(|entry| entry.block >= 1_000), "written before");
        let mut blocks: Vec<u32> = next.iter().map(|entry| entry.block).collect();
        let followed = blocks.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
        assert!(followed > 950, "{followed} of 1000 lie together");
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), 1_000, "written twice");
    }

    #[test]
    fn a_load_that_stays_where_it_is_stays_there() {
        let past = writes((0..1_000).map(|write| write % 100));
        assert_eq!(repeated(past.clone(), 10_000, |_| true, 0), past);
    }

    #[test]
    fn what_stands_for_a_new_block_is_written_wherever_that_was() {
        let past = writes((0..600).chain([600, 7, 601, 600, 7, 600].repeat(100)));
        let (next, mut seen) = (repeated(past, 10_000, |_| true, 0), Vec::new());
        for six in next[..600].chunks(6) {
            let blocks: Vec<u32> = six.iter().map(|entry| entry.block).collect();
            assert_eq!([blocks[0], blocks[1], blocks[0]], [blocks[3], blocks[4], blocks[5]]);
            seen.push(blocks);
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(seen[0][1], 7);
        assert!(seen[0][0] > 601 && seen[0][2] > 601, "{seen:?}");
        assert_ne!(seen[0][0], seen[0][2]);
    }

    proptest! {
        #[test]
        fn only_blocks_that_there_are_are_written(
            past in prop::collection::vec((0_u32..300, 0_u32..4), 0..500),
            deleted in 1_u32..300,
            entries_min in 0_usize..3_000,
        ) {
            let entry = |(block, client)| {
                let block = if block >= 280 { NONE } else { block };
                Entry { block, client }
            };
            let past: Vec<Entry> = past.into_iter().map(entry).collect();
            let holds = |block| block % deleted != 0;
            let next = repeated(past.clone(), 280, holds, entries_min);
            prop_assert!(next.iter().all(|entry| !entry.is_write() || holds(entry.block)));
            let held = past.iter().filter(|entry| !entry.is_write() || holds(entry.block));
            let held: Vec<Entry> = held.copied().collect();
            let least = if held.is_empty() { 0 } else { held.len().max(entries_min) };
            prop_assert!(next.len() >= least);
            prop_assert!(next.len() <= held.len() + 2 * entries_min + 2);
            let syncs = |entries: &[Entry]| {
                entries.iter().filter(|entry| !entry.is_write()).count()
            };
            let first = TIMES * (held.len() - held.len() / 2);
            let expected = TIMES * syncs(&held[held.len() / 2..]);
            prop_assert_eq!(syncs(&next[..first]), expected);
            prop_assert_eq!(next, repeated(past, 280, holds, entries_min));
        }
    }
}
