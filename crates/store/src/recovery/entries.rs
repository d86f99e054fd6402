//! What records say of blocks, brought into the map in the order of their groups.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

use crate::format::{DAMAGED, NONE, Named, Run};

/// Blocks that one thread enters as fast as two; chosen by us: some milliseconds.
const ENTERED_ALONE: usize = 1 << 17;

/// Runs of blocks with the sequences of their groups, and their blocks one behind another.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Each with the place of its first block.
    runs: Vec<(u64, Run, usize)>,
    named: Vec<Named>,
}

/// Blocks that records have named, a bit each.
#[derive(Debug, Default)]
pub(crate) struct Changed(Vec<u64>);

impl Changed {
    /// The map pages, of `entries` blocks each, that have some of them; a page may come twice.
    pub(crate) fn pages(&self, entries: u32) -> impl Iterator<Item = u32> + '_ {
        let words = (0..).step_by(64).zip(&self.0);
        words.flat_map(move |(first, bits)| {
            let mut rest = *bits;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let page = (first + rest.trailing_zeros()) / entries;
                let behind = u64::from(page + 1) * u64::from(entries) - u64::from(first);
                rest = if behind < 64 { rest & u64::MAX << behind } else { 0 };
                Some(page)
            })
        })
    }
}

impl Entries {
    pub(super) fn push(&mut self, sequence: u64, run: Run, named: &[Named]) {
        self.runs.push((sequence, run, self.named.len()));
        self.named.extend_from_slice(named);
    }

    /// Puts them in the order of their groups; what is of the same stays in its own.
    pub(super) fn sort(&mut self) {
        self.runs.sort_by_key(|run| run.0);
    }

    /// The runs of groups behind `root`.
    fn behind(&self, root: u64) -> impl Iterator<Item = (Run, &[Named])> {
        let behind = self.runs.iter().filter(move |run| run.0 > root);
        behind.map(|(_, run, at)| (*run, &self.named[*at..*at + run.blocks as usize]))
    }

    /// The blocks that they name.
    pub(super) fn blocks_behind(&self, root: u64) -> impl Iterator<Item = u32> + '_ {
        self.behind(root).flat_map(|(_, named)| named).map(|named| named.block)
    }

    /// Enters slots and sums of what is behind `root`, and says which blocks that were.
    pub(super) fn apply(&self, root: u64, map: &mut [u32], sums: &mut [u32]) -> Changed {
        let mut changed = vec![0; map.len().div_ceil(64)];
        // Each thread goes through all and enters what is of its half: it is memory that is waited for.
        let words = if self.named.len() < ENTERED_ALONE { 0 } else { changed.len() / 2 };
        let (low_map, high_map) = map.split_at_mut(words * 64);
        let (low_sums, high_sums) = sums.split_at_mut(words * 64);
        let (low_changed, high_changed) = changed.split_at_mut(words);
        let enter = |first: usize, map: &mut [u32], sums: &mut [u32], changed: &mut [u64]| {
            for (run, named) in self.behind(root) {
                let (step, first_slot) = match run.first {
                    NONE => (0, NONE),
                    slot => (1, slot & !DAMAGED),
                };
                for (index, one) in (0..).zip(named) {
                    let at = (one.block as usize).wrapping_sub(first);
                    let Some(slot) = map.get_mut(at) else { continue };
                    *slot = first_slot.wrapping_add(index * step);
                    sums[at] = if step == 0 { 0 } else { one.sum };
                    changed[at / 64] |= 1 << (at % 64);
                }
            }
        };
        std::thread::scope(|scope| {
            let low = (words > 0).then(|| scope.spawn(|| enter(0, low_map, low_sums, low_changed)));
            enter(words * 64, high_map, high_sums, high_changed);
            if let Some(Err(panic)) = low.map(ScopedJoinHandle::join) {
                resume_unwind(panic);
            }
        });
        Changed(changed)
    }

    /// Enters which of the blocks are damaged.
    pub(super) fn apply_damage(&self, root: u64, damaged: &mut BTreeSet<u32>) {
        let is_damaged = |run: &Run| run.first != NONE && run.first & DAMAGED != 0;
        if damaged.is_empty() && !self.runs.iter().any(|(_, run, _)| is_damaged(run)) {
            return;
        }
        for (run, named) in self.behind(root) {
            for one in named {
                if is_damaged(&run) {
                    damaged.insert(one.block);
                } else {
                    damaged.remove(&one.block);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use agewell_core::{RandomStreams, uniform_below};

    use super::*;

    /// More than one thread enters, in another order than that of the groups, some of them freed, damaged, or
    /// in the map already.
    #[test]
    fn the_last_group_that_names_a_block_says_where_it_is() {
        let (blocks, root) = (300_000, 40);
        let mut stream = RandomStreams::new(2).stream("entries");
        let mut draw = |bound: u32| uniform_below(&mut stream, u64::from(bound)) as u32;
        let mut entries = Entries::default();
        let mut slow: Vec<(u64, u32, u32, bool)> = vec![(0, 7, 9, false); blocks as usize];
        let mut named_before = BTreeSet::new();
        for number in 0..4_000_u64 {
            let sequence = number * 1_237 % 4_000;
            let first = match draw(9) {
                0 => NONE,
                1 => DAMAGED | draw(1 << 30),
                _ => draw(1 << 30),
            };
            let run = Run { first, blocks: 1 + draw(80), sequence: sequence as u32 };
            let named: Vec<Named> = (0..run.blocks)
                .map(|_| Named { block: draw(blocks), sum: draw(1 << 31) })
                .collect();
            for (index, one) in (0..).zip(&named) {
                let entry = &mut slow[one.block as usize];
                if sequence <= root || sequence < entry.0 {
                    continue;
                }
                named_before.insert(one.block);
                *entry = match first {
                    NONE => (sequence, NONE, 0, false),
                    slot => (sequence, (slot & !DAMAGED) + index, one.sum, slot & DAMAGED != 0),
                };
            }
            entries.push(sequence, run, &named);
        }
        assert!(entries.named.len() > ENTERED_ALONE);
        entries.sort();
        let (mut map, mut sums) = (vec![7; blocks as usize], vec![9; blocks as usize]);
        let changed = entries.apply(root, &mut map, &mut sums);
        let mut damaged = BTreeSet::from([5, 6, 299_999]);
        let before = damaged.clone();
        entries.apply_damage(root, &mut damaged);
        for (block, (_, slot, sum, is_damaged)) in (0..).zip(&slow) {
            assert_eq!((map[block as usize], sums[block as usize]), (*slot, *sum), "{block}");
            let was = before.contains(&block) && !named_before.contains(&block);
            assert_eq!(damaged.contains(&block), *is_damaged || was, "{block}");
        }
        let named: BTreeSet<u32> = entries.blocks_behind(root).collect();
        assert_eq!(named, named_before);
        for entries in [60, 64, 508] {
            let pages: BTreeSet<u32> = changed.pages(entries).collect();
            assert_eq!(pages, named.iter().map(|block| block / entries).collect());
        }
    }
}
