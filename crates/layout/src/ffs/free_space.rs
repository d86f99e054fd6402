//! Free space: the maps of all cylinder groups and the counts kept beside them.
//!
//! Every block has a byte, a bit for each of its fragments that is free. Beside it, and always in
//! step with it, stand for each group: how many blocks are free and how many fragments of broken
//! blocks; runs of free fragments within blocks by length; free blocks by cylinder and rotational
//! position; runs of free blocks by length (the cluster summary); and two bitmaps, of the blocks
//! that are free and of those that are broken, which searches look through 64 blocks at a time.
//!
//! All of it changes in one place, [`FreeSpace::set_block`]. Costs: O(1) a change, O(blocks / 64) a
//! search.
//!
//! Source: 4.4BSD's `struct cg` and its `cs_nbfree`, `cs_nffree`, `cg_frsum`, `cg_blktot`,
//! `cg_blks`, `cg_clustersum`, `cg_clustersfree`.

use super::geometry::{CLUSTER_MAX, Geometry};

/// Free space of a cylinder group in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct GroupSummary {
    /// Free blocks.
    pub(crate) free_blocks: u32,
    /// Free fragments of blocks that are not free.
    pub(crate) free_fragments: u32,
    /// Free inodes.
    pub(crate) free_inodes: u32,
    /// Directories.
    pub(crate) directories: u32,
    /// Runs of free fragments within broken blocks, by their length.
    pub(crate) runs: [u32; 8],
    /// Runs of free blocks by their length; the last one counted holds the longer ones too.
    pub(crate) clusters: [u32; CLUSTER_MAX as usize + 1],
    /// Which lengths of `clusters` are there, as bits.
    cluster_lengths: u32,
    /// Where the last block that no preference chose was found, fragments within the group.
    pub(crate) block_rotor: u32,
    /// Where the last search through the maps ended.
    pub(crate) fragment_rotor: u32,
    /// Where the search for a free inode begins, within the group.
    pub(crate) inode_rotor: u32,
}

impl GroupSummary {
    /// Length of the longest free cluster, up to the largest counted.
    #[inline]
    pub(crate) fn cluster_longest(&self) -> u32 {
        31_u32.saturating_sub(self.cluster_lengths.leading_zeros())
    }

    #[inline]
    fn count_cluster(&mut self, length: u32, more: bool) {
        if length == 0 {
            return;
        }
        let count = &mut self.clusters[length as usize];
        *count = if more { *count + 1 } else { *count - 1 };
        if *count == 0 {
            self.cluster_lengths &= !(1 << length);
        } else {
            self.cluster_lengths |= 1 << length;
        }
    }
}

/// Lengths of the runs of set bits of a byte: how many there are of each.
const fn runs_of(byte: usize) -> [u8; 8] {
    let (mut counts, mut bit, mut length) = ([0; 8], 0, 0);
    while bit <= 8 {
        if bit < 8 && byte >> bit & 1 == 1 {
            length += 1;
        } else if length > 0 {
            counts[length & 7] += 1;
            length = 0;
        }
        bit += 1;
    }
    counts
}

const fn tabulate_runs() -> [[u8; 8]; 256] {
    let (mut table, mut byte) = ([[0; 8]; 256], 0);
    // A free block of 8 fragments has no runs: it stands as a block. (Run length 8 would be slot 0.)
    while byte < 255 {
        table[byte] = runs_of(byte);
        byte += 1;
    }
    table
}

/// Runs of free fragments for each byte.
static RUNS: [[u8; 8]; 256] = tabulate_runs();

/// The first run of exactly `length` set bits of `byte`.
pub(crate) fn exact_run(byte: u8, length: u32) -> Option<u32> {
    let run = ((1_u32 << length) - 1) << 1;
    let fence = (1_u32 << (length + 2)) - 1;
    let bits = u32::from(byte) << 1;
    (0..=8 - length).find(|at| bits >> at & fence == run)
}

/// The maps and counts of all groups.
#[derive(Debug, Clone)]
pub(crate) struct FreeSpace {
    pub(crate) groups: Vec<GroupSummary>,
    /// Free blocks of the whole file system.
    pub(crate) free_blocks: u32,
    /// Free fragments of broken blocks of the whole file system.
    pub(crate) free_fragments: u32,
    /// Free inodes of the whole file system.
    pub(crate) free_inodes: u32,
    /// Free fragments of each block, as bits.
    free: Vec<u8>,
    /// Which blocks are free, `words_per_group` words a group.
    whole: Vec<u64>,
    /// Which blocks have some free fragments.
    broken: Vec<u64>,
    words_per_group: u32,
    /// Free blocks of each cylinder and rotational position, `slots_per_group` a group.
    slots: Vec<u16>,
    /// Free blocks of each cylinder.
    cylinders: Vec<u16>,
    slots_per_group: u32,
    /// A byte for a block of which everything is free.
    pub(crate) all: u8,
    /// Groups whose maps have changed since they were last handed out.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
}

impl FreeSpace {
    /// Everything free but what the metadata takes.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let groups = geometry.groups as usize;
        let words_per_group = geometry.blocks_per_group.div_ceil(64);
        let slots_per_group = geometry.cylinders_per_group * geometry.positions;
        let mut space = Self {
            groups: vec![GroupSummary::default(); groups],
            free_blocks: 0,
            free_fragments: 0,
            free_inodes: 0,
            free: vec![0; groups * geometry.blocks_per_group as usize],
            whole: vec![0; groups * words_per_group as usize],
            broken: vec![0; groups * words_per_group as usize],
            words_per_group,
            slots: vec![0; groups * slots_per_group as usize],
            cylinders: vec![0; groups * geometry.cylinders_per_group as usize],
            slots_per_group,
            all: (0xff_u32 >> (8 - geometry.fragments_per_block)) as u8,
            changed: Vec::new(),
            is_changed: vec![false; groups],
        };
        for group in 0..geometry.groups {
            let metadata = geometry.metadata(group);
            for block in 0..geometry.group_fragments(group) / geometry.fragments_per_block {
                let first = block * geometry.fragments_per_block;
                let free = (0..geometry.fragments_per_block)
                    .filter(|fragment| !metadata.contains(&(first + fragment)))
                    .fold(0, |bits, fragment| bits | 1 << fragment);
                space.set_block(geometry, group, block, free);
            }
        }
        space.changed.clear();
        space.is_changed.fill(false);
        space
    }

    /// The free fragments of `block` of `group`, as bits.
    #[inline]
    pub(crate) fn block(&self, geometry: &Geometry, group: u32, block: u32) -> u8 {
        self.free[(group * geometry.blocks_per_group + block) as usize]
    }

    /// Whether `block` of `group` is free.
    #[inline]
    pub(crate) fn is_free(&self, group: u32, block: u32) -> bool {
        self.whole[(group * self.words_per_group + block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// Notes that the maps of `group` have changed.
    #[inline]
    pub(crate) fn touch(&mut self, group: u32) {
        let changed = &mut self.is_changed[group as usize];
        if !*changed {
            *changed = true;
            self.changed.push(group);
        }
    }

    /// Hands out one group whose maps have changed.
    pub(crate) fn next_changed(&mut self) -> Option<u32> {
        let group = self.changed.pop()?;
        self.is_changed[group as usize] = false;
        Some(group)
    }

    /// Makes exactly the fragments `to` of `block` of `group` free.
    pub(crate) fn set_block(&mut self, geometry: &Geometry, group: u32, block: u32, to: u8) {
        let byte = &mut self.free[(group * geometry.blocks_per_group + block) as usize];
        let from = *byte;
        *byte = to;
        let all = self.all;
        if (from == all) != (to == all) {
            self.count_block(geometry, group, block, to == all);
        }
        let (before, after) = (if from == all { 0 } else { from }, if to == all { 0 } else { to });
        if before != after {
            self.count_fragments(group, block, before, after);
        }
        self.touch(group);
    }

    fn count_fragments(&mut self, group: u32, block: u32, before: u8, after: u8) {
        let summary = &mut self.groups[group as usize];
        let (less, more) = (&RUNS[before as usize], &RUNS[after as usize]);
        for (count, (less, more)) in summary.runs.iter_mut().zip(less.iter().zip(more)) {
            *count = *count + u32::from(*more) - u32::from(*less);
        }
        let (less, more) = (before.count_ones(), after.count_ones());
        summary.free_fragments = summary.free_fragments + more - less;
        self.free_fragments = self.free_fragments + more - less;
        let word = &mut self.broken[(group * self.words_per_group + block / 64) as usize];
        let bit = 1 << (block % 64);
        if after == 0 {
            *word &= !bit;
        } else {
            *word |= bit;
        }
    }

    fn count_block(&mut self, geometry: &Geometry, group: u32, block: u32, free: bool) {
        let one = if free { 1 } else { u32::MAX };
        let small = one as u16;
        let slot = geometry.slot_of_block[block as usize];
        let at = &mut self.slots[(group * self.slots_per_group + slot) as usize];
        *at = at.wrapping_add(small);
        let cylinder = group * geometry.cylinders_per_group + slot / geometry.positions;
        let at = &mut self.cylinders[cylinder as usize];
        *at = at.wrapping_add(small);
        self.free_blocks = self.free_blocks.wrapping_add(one);
        self.count_clusters(geometry.cluster_max, group, block, free);
        let summary = &mut self.groups[group as usize];
        summary.free_blocks = summary.free_blocks.wrapping_add(one);
        let word = &mut self.whole[(group * self.words_per_group + block / 64) as usize];
        *word ^= 1 << (block % 64);
    }

    /// Counts the runs of free blocks that `block` joins or parts.
    fn count_clusters(&mut self, longest: u32, group: u32, block: u32, free: bool) {
        if longest == 0 {
            return;
        }
        let forward = self.run_behind(group, block + 1, longest);
        let backward = self.run_before(group, block, longest);
        let summary = &mut self.groups[group as usize];
        summary.count_cluster((backward + forward + 1).min(longest), free);
        summary.count_cluster(forward, !free);
        summary.count_cluster(backward, !free);
    }

    /// Free blocks from `block` on without a gap, at most `most` (up to 32).
    #[inline]
    fn run_behind(&self, group: u32, block: u32, most: u32) -> u32 {
        let first = (group * self.words_per_group) as usize;
        let (word, shift) = ((block / 64) as usize, block % 64);
        if word >= self.words_per_group as usize {
            return 0;
        }
        let mut bits = self.whole[first + word] >> shift;
        if shift > 0 && word + 1 < self.words_per_group as usize {
            bits |= self.whole[first + word + 1] << (64 - shift);
        }
        bits.trailing_ones().min(most)
    }

    /// Free blocks before `block` without a gap, at most `most` (up to 32).
    #[inline]
    fn run_before(&self, group: u32, block: u32, most: u32) -> u32 {
        if block == 0 {
            return 0;
        }
        let first = (group * self.words_per_group) as usize;
        let (word, shift) = (((block - 1) / 64) as usize, (block - 1) % 64);
        let mut bits = self.whole[first + word] << (63 - shift);
        if shift < 63 && word > 0 {
            bits |= self.whole[first + word - 1] >> (shift + 1);
        }
        bits.leading_ones().min(most)
    }

    /// The first free block of `group` from `from` on.
    pub(crate) fn next_free(&self, group: u32, from: u32) -> Option<u32> {
        self.next_bit(&self.whole, group, from)
    }

    #[inline]
    fn next_bit(&self, map: &[u64], group: u32, from: u32) -> Option<u32> {
        let first = (group * self.words_per_group) as usize;
        let words = &map[first..first + self.words_per_group as usize];
        let mut word = (from / 64) as usize;
        let mut bits = words.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *words.get(word)?;
        }
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    /// The first block of `group` from `from` on, before `end`, that has a run of exactly `length`
    /// free fragments, and where in it.
    pub(crate) fn next_run(
        &self,
        geometry: &Geometry,
        group: u32,
        (from, end): (u32, u32),
        length: u32,
    ) -> Option<(u32, u32)> {
        let mut from = from;
        loop {
            let block = self.next_bit(&self.broken, group, from).filter(|block| *block < end)?;
            let byte = self.block(geometry, group, block);
            if RUNS[byte as usize][length as usize] > 0 {
                return exact_run(byte, length).map(|at| (block, at));
            }
            from = block + 1;
        }
    }

    /// The first run of `length` free blocks of `group` from `from` on: where it begins.
    pub(crate) fn next_cluster(&self, group: u32, from: u32, length: u32) -> Option<u32> {
        let mut from = from;
        loop {
            let start = self.next_free(group, from)?;
            let run = self.run_behind(group, start, length);
            if run >= length {
                return Some(start);
            }
            from = start + run + 1;
        }
    }

    /// A free block of `block`'s cylinder that begins at its rotational position or at the next one
    /// around where there is any.
    pub(crate) fn rotationally_next(
        &self,
        geometry: &Geometry,
        group: u32,
        block: u32,
    ) -> Option<u32> {
        let slot = geometry.slot_of_block[block as usize];
        let (cylinder, position) = (slot / geometry.positions, slot % geometry.positions);
        if self.cylinders[(group * geometry.cylinders_per_group + cylinder) as usize] == 0 {
            return None;
        }
        let first = cylinder * geometry.positions;
        let free = |slot: &u32| self.slots[(group * self.slots_per_group + slot) as usize] > 0;
        let slot = (slot..first + geometry.positions).chain(first..first + position).find(free)?;
        let starts = &geometry.slot_starts[slot as usize..slot as usize + 2];
        let blocks = &geometry.blocks_by_slot[starts[0] as usize..starts[1] as usize];
        blocks.iter().copied().find(|block| self.is_free(group, *block))
    }

    /// Free space of `group` as counted again from its bytes: for checks.
    pub(crate) fn recount(&self, geometry: &Geometry) -> Self {
        let mut again = Self::new(geometry);
        for group in 0..geometry.groups {
            for block in 0..geometry.blocks_per_group {
                again.set_block(geometry, group, block, 0);
            }
        }
        for group in 0..geometry.groups {
            for block in 0..geometry.blocks_per_group {
                again.set_block(geometry, group, block, self.block(geometry, group, block));
            }
        }
        again
    }

    /// Whether the maps and counts that follow from the bytes are those of `other`.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let counts = |space: &Self| {
            let groups = space.groups.iter();
            groups
                .map(|group| {
                    (
                        (group.free_blocks, group.free_fragments),
                        (group.runs, group.clusters, group.cluster_lengths),
                    )
                })
                .collect::<Vec<_>>()
        };
        self.free == other.free
            && self.whole == other.whole
            && self.broken == other.broken
            && self.slots == other.slots
            && self.cylinders == other.cylinders
            && (self.free_blocks, self.free_fragments) == (other.free_blocks, other.free_fragments)
            && counts(self) == counts(other)
    }
}

#[cfg(test)]
mod tests;
