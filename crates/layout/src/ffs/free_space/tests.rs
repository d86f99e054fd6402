//! The maps against a model that is a list of fragments and looks through all of it.

use proptest::prelude::*;

use super::*;
use crate::ffs::{Parameters, Policies};

/// Two groups of 102 blocks; the second one is cut off.
fn geometry(fragment_bytes: u32, maxcontig: u32) -> Geometry {
    let parameters = Parameters {
        block_bytes: fragment_bytes * if fragment_bytes == 4096 { 1 } else { 8 },
        fragment_bytes,
        sectors_per_track: 17,
        heads: 8,
        cylinders: 39 * fragment_bytes / 512 / if fragment_bytes == 4096 { 8 } else { 1 },
        cylinders_per_group: 24 * fragment_bytes / 512 / if fragment_bytes == 4096 { 8 } else { 1 },
        bytes_per_inode: 1 << 17,
        maxcontig,
        ..Parameters::smith_1996(Policies::PLAIN)
    };
    Geometry::new(&parameters).unwrap()
}

/// Which fragments of one group are free, block by block.
struct Slow<'a> {
    geometry: &'a Geometry,
    blocks: Vec<Vec<bool>>,
}

impl Slow<'_> {
    fn is_free(&self, block: usize) -> bool {
        self.blocks.get(block).is_some_and(|block| block.iter().all(|free| *free))
    }

    /// Where runs of `true` begin, and how long they are.
    fn runs(bits: impl Iterator<Item = bool>) -> Vec<(usize, usize)> {
        let (mut runs, mut start) = (Vec::new(), 0);
        for (at, bit) in bits.chain([false]).enumerate() {
            if !bit {
                if at > start {
                    runs.push((start, at - start));
                }
                start = at + 1;
            }
        }
        runs
    }

    /// Runs of free fragments of `block`, which is not free as a whole: where, how long.
    fn fragments(&self, block: usize) -> Vec<(usize, usize)> {
        if self.is_free(block) {
            Vec::new()
        } else {
            Self::runs(self.blocks[block].iter().copied())
        }
    }

    fn clusters(&self) -> Vec<(usize, usize)> {
        Self::runs((0..self.blocks.len()).map(|block| self.is_free(block)))
    }

    /// The free block of `block`'s cylinder that comes first by position, from that of `block` on.
    fn rotationally_next(&self, parameters: (u32, u32, u32), block: usize) -> Option<usize> {
        let (track, heads, block_sectors) = parameters;
        let place = |block: usize| {
            let sector = block as u32 * block_sectors;
            (sector / (track * heads), sector % track * self.geometry.positions / track)
        };
        let (cylinder, position) = place(block);
        let candidates = (0..self.blocks.len())
            .filter(|other| self.is_free(*other) && place(*other).0 == cylinder);
        let turn = self.geometry.positions;
        candidates.min_by_key(|other| ((place(*other).1 + turn - position) % turn, *other))
    }
}

proptest! {
    #[test]
    fn maps_and_searches_are_those_of_a_list(
        fragment_bytes in prop::sample::select(vec![512_u32, 1024, 4096]),
        maxcontig in 1_u32..20,
        changes in prop::collection::vec((0_u32..300, any::<u8>(), 0_u32..4), 1..400),
        from in 0_u32..110,
        length in 1_u32..9,
    ) {
        let geometry = geometry(fragment_bytes, maxcontig);
        let mut space = FreeSpace::new(&geometry);
        let whole = geometry.fragments_per_block as usize;
        let mut slow: Vec<Slow> = (0..geometry.groups)
            .map(|group| {
                let metadata = geometry.metadata(group);
                let blocks = geometry.group_fragments(group) / geometry.fragments_per_block;
                let block = |block: u32| {
                    (0..whole as u32)
                        .map(|at| !metadata.contains(&(block * whole as u32 + at)))
                        .collect()
                };
                Slow { geometry: &geometry, blocks: (0..blocks).map(block).collect() }
            })
            .collect();
        for (block, bits, kind) in changes {
            let group = block % geometry.groups;
            let model = &mut slow[group as usize].blocks;
            let block = block / geometry.groups % model.len() as u32;
            // Whole blocks more often than a random byte has them.
            let bits = match kind { 0 => 0, 1 => space.all, _ => bits & space.all };
            space.set_block(&geometry, group, block, bits);
            for (at, free) in model[block as usize].iter_mut().enumerate() {
                *free = bits >> at & 1 == 1;
            }
        }
        for (group, model) in slow.iter().enumerate() {
            let summary = &space.groups[group];
            let clusters = model.clusters();
            let free: usize = clusters.iter().map(|(_, length)| length).sum();
            prop_assert_eq!(summary.free_blocks as usize, free);
            let runs: Vec<_> =
                (0..model.blocks.len()).flat_map(|block| model.fragments(block)).collect();
            let fragments: usize = runs.iter().map(|(_, length)| length).sum();
            prop_assert_eq!(summary.free_fragments as usize, fragments);
            for length in 1..whole {
                let count = runs.iter().filter(|run| run.1 == length).count();
                prop_assert_eq!(summary.runs[length] as usize, count);
            }
            let longest = geometry.cluster_max as usize;
            for length in 1..=longest {
                let counted = |run: &&(usize, usize)| run.1.min(longest) == length;
                let count = clusters.iter().filter(counted).count();
                prop_assert_eq!(summary.clusters[length] as usize, count);
            }
            let most = clusters.iter().map(|run| run.1.min(longest)).max().unwrap_or(0);
            prop_assert_eq!(summary.cluster_longest() as usize, most);

            let (number, start) = (group as u32, from as usize);
            let blocks = model.blocks.len();
            let next = (start..blocks).find(|block| model.is_free(*block));
            prop_assert_eq!(space.next_free(number, from), next.map(|block| block as u32));
            if (length as usize) < whole {
                let end = geometry.blocks_per_group;
                let slow = (start..blocks).find_map(|block| {
                    let runs = model.fragments(block);
                    let run = runs.into_iter().find(|run| run.1 == length as usize)?;
                    Some((block as u32, run.0 as u32))
                });
                prop_assert_eq!(space.next_run(&geometry, number, (from, end), length), slow);
            }
            let room = |at: &usize| (*at..at + length as usize).all(|block| model.is_free(block));
            let cluster = (start..blocks).find(room).map(|at| at as u32);
            prop_assert_eq!(space.next_cluster(number, from, length), cluster);
            if start < blocks {
                let disk = (17, 8, geometry.block_bytes / 512);
                let slow = model.rotationally_next(disk, start).map(|block| block as u32);
                prop_assert_eq!(space.rotationally_next(&geometry, number, from), slow);
            }
        }
    }
}

#[test]
fn runs_of_a_byte_are_found() {
    assert_eq!(exact_run(0b0011_0110, 2), Some(1));
    assert_eq!(exact_run(0b1110_0110, 3), Some(5));
    assert_eq!(exact_run(0b1110_0110, 1), None);
    assert_eq!(exact_run(0b0000_0001, 1), Some(0));
    assert_eq!(RUNS[0b1110_0110], [0, 0, 1, 1, 0, 0, 0, 0]);
}
