//! Every metric against a model that writes down the place of each block and looks at them singly.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{BLOCK, Maker};
use crate::score::{Report, ScoreOptions, score};
use crate::{Extent, ExtentFlags, FileKind, FreeExtent, NO_TIME, Snapshot};

/// Blocks of the device.
const BLOCKS: u64 = 300;
/// Blocks of a group; the last group is not whole.
const GROUP_BLOCKS: u64 = 47;
const CELLS: u32 = 37;

/// One block of a file in the model.
#[derive(Debug, Clone, Copy)]
struct Placed {
    start: u64,
    /// Where something can begin right behind it.
    behind: (u64, u64),
    /// Whether it is a tail, which counts only if asked for.
    tail: bool,
    /// `None`: it has no predecessor, or one without a place.
    optimal: Option<bool>,
    apart: bool,
    backward: bool,
    gap: u64,
}

/// The blocks of a file that count, in order.
fn placed_blocks(snapshot: &Snapshot, place: usize, strict: bool) -> Vec<Placed> {
    let file = &snapshot.files[place];
    let mut blocks: Vec<Placed> = Vec::new();
    let mut expected_logical = None;
    let mut unknown = false;
    for extent in snapshot.extents_of(file) {
        if extent.flags.any(ExtentFlags::INLINE) {
            continue;
        }
        let count = extent.length_bytes.div_ceil(BLOCK);
        let encoded = extent.flags.any(ExtentFlags::ENCODED);
        let mut counted_end = extent.physical_bytes;
        let mut of_extent = Vec::new();
        for number in 0..count {
            let logical = extent.logical_bytes + number * BLOCK;
            if logical >= file.size_bytes.div_ceil(BLOCK) * BLOCK {
                break;
            }
            if extent.flags.any(ExtentFlags::UNKNOWN) {
                unknown = true;
                continue;
            }
            let length = (extent.length_bytes - number * BLOCK).min(BLOCK);
            let start = extent.physical_bytes + number * BLOCK;
            counted_end = start + length;
            let before = of_extent.last().or(blocks.last()).copied();
            let mut block = Placed {
                start,
                behind: (start + length, start + length),
                tail: length < BLOCK,
                optimal: None,
                apart: false,
                backward: false,
                gap: 0,
            };
            if let Some(before) = before.filter(|_| !unknown) {
                let hole = expected_logical.is_some_and(|at| at != logical);
                let inside = number > 0;
                let follows = (before.behind.0..=before.behind.1).contains(&start);
                let optimal = inside || (follows && !(strict && hole));
                block.optimal = Some(optimal);
                block.apart = !optimal;
                block.backward = !optimal && start < before.behind.1;
                block.gap = start.abs_diff(before.behind.1);
            }
            unknown = false;
            expected_logical = Some(logical + length);
            of_extent.push(block);
        }
        if encoded && let Some(last) = of_extent.last_mut() {
            last.behind = (extent.physical_bytes + 1, counted_end);
        }
        blocks.extend(of_extent);
    }
    blocks
}

fn check_files(snapshot: &Snapshot, report: &Report, strict: bool, tails: bool) {
    let (mut optimal, mut counted) = (0, 0);
    let (mut fragments, mut backward, mut split) = (0, 0, 0);
    let mut gaps = Vec::new();
    let mut tenths: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut sizes: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for place in 0..snapshot.files.len() {
        if snapshot.files[place].kind != FileKind::Regular {
            continue;
        }
        let blocks = placed_blocks(snapshot, place, strict);
        let breaks = blocks.iter().filter(|block| block.apart).count() as u64;
        fragments += breaks + u64::from(!blocks.is_empty());
        split += u64::from(breaks > 0);
        let whole = blocks.iter().filter(|block| tails || !block.tail).count() as u64;
        let size = sizes.entry(whole).or_default();
        for block in &blocks {
            backward += u64::from(block.backward);
            if block.apart {
                gaps.push(block.gap);
            }
            let Some(is_optimal) = block.optimal.filter(|_| tails || !block.tail) else { continue };
            counted += 1;
            optimal += u64::from(is_optimal);
            size.0 += u64::from(is_optimal);
            size.1 += 1;
            let tenth = tenths.entry(tenth_of(block.start / BLOCK)).or_default();
            tenth.0 += u64::from(is_optimal);
            tenth.1 += 1;
        }
    }
    let all = report.layout.all;
    assert_eq!((all.optimal_blocks, all.counted_blocks), (optimal, counted));
    let broken = &report.fragmentation;
    assert_eq!(
        (broken.fragments, broken.out_of_order, broken.split_files),
        (fragments, backward, split)
    );
    assert_eq!(broken.breaks, gaps.len() as u64);
    gaps.sort_unstable();
    assert_eq!(broken.median_gap_bytes, gaps.get(gaps.len().wrapping_sub(1) / 2).copied());
    for bin in &report.layout.by_size {
        let within = sizes.range(bin.blocks_min..=bin.blocks_max);
        let sum = within.fold((0, 0), |sum, (_, size)| (sum.0 + size.0, sum.1 + size.1));
        assert_eq!((bin.share.optimal_blocks, bin.share.counted_blocks), sum);
    }
    let placement = report.placement.as_ref().expect("there are groups");
    for (number, tenth) in placement.tenths.iter().enumerate() {
        let expected = tenths.get(&(number as u64)).copied().unwrap_or_default();
        assert_eq!((tenth.share.optimal_blocks, tenth.share.counted_blocks), expected);
    }
}

/// The tenth of its group that a block lies in: the last one that begins at or before it.
fn tenth_of(block: u64) -> u64 {
    let within = block % GROUP_BLOCKS;
    (0..10).rev().find(|tenth| GROUP_BLOCKS * tenth / 10 <= within).expect("tenth 0 begins at 0")
}

fn check_neighbours(snapshot: &Snapshot, report: &Report, strict: bool) {
    let orders = [
        (&report.neighbours.by_name, 0),
        (&report.neighbours.by_creation, 1),
        (&report.neighbours.by_readdir, 2),
    ];
    for (order, which) in orders {
        let mut directories: BTreeMap<u64, Vec<(i64, usize)>> = BTreeMap::new();
        for (place, file) in snapshot.files.iter().enumerate() {
            let placed = !placed_blocks(snapshot, place, strict).is_empty();
            if file.kind == FileKind::Regular && placed && (which != 1 || file.birth_ns != NO_TIME)
            {
                let ranks =
                    [i64::from(file.name_rank), file.birth_ns, i64::from(file.readdir_rank)];
                directories.entry(file.directory).or_default().push((ranks[which], place));
            }
        }
        let (mut adjacent, mut gaps) = (0, Vec::new());
        for members in directories.values_mut() {
            members.sort_unstable();
            for pair in members.windows(2) {
                let before = placed_blocks(snapshot, pair[0].1, strict);
                let next = placed_blocks(snapshot, pair[1].1, strict);
                let behind = before[before.len() - 1].behind;
                let start = next[0].start;
                let follows = (behind.0..=behind.1).contains(&start)
                    || start == behind.1.div_ceil(BLOCK) * BLOCK;
                adjacent += u64::from(follows);
                gaps.push(if follows { 0 } else { start.abs_diff(behind.1) });
            }
        }
        assert_eq!((order.adjacent_pairs, order.pairs), (adjacent, gaps.len() as u64));
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert_eq!(order.mean_gap_bytes, (!gaps.is_empty()).then_some(mean));
    }
}

fn check_space(snapshot: &Snapshot, report: &Report) {
    // What every kilobyte of the device is: free, of a split file, of a whole one, other.
    let bytes_a_piece = 1024;
    let pieces = (BLOCKS * BLOCK / bytes_a_piece) as usize;
    let mut kinds = vec![3_usize; pieces];
    let mut paint = |start: u64, length: u64, kind: usize| {
        let range = start / bytes_a_piece..(start + length) / bytes_a_piece;
        for piece in range.filter(|piece| (*piece as usize) < pieces) {
            kinds[piece as usize] = kinds[piece as usize].min(kind);
        }
    };
    for free in &snapshot.free {
        paint(free.physical_bytes, free.length_bytes, 0);
    }
    let free_block = |block: u64| {
        (0..4).all(|part| {
            let at = block * BLOCK + part * 1024;
            snapshot.free.iter().any(|free| {
                (free.physical_bytes..free.physical_bytes + free.length_bytes).contains(&at)
            })
        })
    };
    let following = (1..BLOCKS).filter(|block| free_block(*block) && free_block(block - 1)).count();
    assert_eq!(report.free_space.following_blocks, following as u64);
    let free_blocks = (0..BLOCKS).filter(|block| free_block(*block)).count() as u64;
    assert_eq!(report.free_space.counted_blocks, free_blocks.saturating_sub(1));
    let placement = report.placement.as_ref().expect("there are groups");
    for (number, tenth) in placement.tenths.iter().enumerate() {
        let blocks = (0..BLOCKS).filter(|block| tenth_of(*block) == number as u64);
        assert_eq!(tenth.blocks, blocks.count() as u64);
    }
    // Whole and split files may lie over each other only if shared, which the map cuts: hence only
    // what is free and the sums are compared.
    let map = &report.map;
    let cell_pieces = (map.cell_bytes / bytes_a_piece) as usize;
    for (cell, group) in kinds.chunks(cell_pieces).enumerate() {
        let free = group.iter().filter(|kind| **kind == 0).count() as u64 * bytes_a_piece;
        assert_eq!(map.free_bytes[cell], free);
        let sum = map.whole_file_bytes[cell]
            + map.long_piece_bytes[cell]
            + map.short_piece_bytes[cell]
            + map.other_bytes[cell];
        assert_eq!(sum + free, group.len() as u64 * bytes_a_piece);
    }
}

/// Logical gap, physical block, blocks, special, for each extent of a file.
type Drawn = Vec<(u64, u64, u64, u8)>;

fn extents_of(drawn: &Drawn) -> Vec<Extent> {
    let mut logical = 0;
    let mut follow = 0;
    drawn
        .iter()
        .map(|(gap, physical, blocks, special)| {
            // A third begins right behind the extent before.
            let physical = if physical % 3 == 0 { follow } else { *physical };
            // Half of them have no hole in front.
            logical += gap.saturating_sub(3);
            let flags = match special {
                0 => ExtentFlags::INLINE,
                1 => ExtentFlags::UNKNOWN,
                2 => ExtentFlags::ENCODED,
                3 => ExtentFlags::UNWRITTEN,
                4 => ExtentFlags::SHARED,
                _ => ExtentFlags::default(),
            };
            let extent = Extent {
                logical_bytes: logical * BLOCK,
                physical_bytes: physical.min(BLOCKS - blocks) * BLOCK,
                length_bytes: blocks * BLOCK,
                flags,
            };
            logical += blocks;
            follow = physical + blocks;
            extent
        })
        .collect()
}

prop_compose! {
    fn drawn_file()(
        extents in prop::collection::vec((0..6_u64, 0..BLOCKS - 12, 1..12_u64, 0..14_u8), 0..8),
        directory in 2..5_u64,
        birth in 0..4_i64,
        ranks in any::<(u32, u32)>(),
        tail in 0..4_u64,
        cut in 0..6_u64,
    ) -> (Vec<Extent>, u64, i64, (u32, u32), u64) {
        let mut extents = extents_of(&extents);
        if let Some(last) = extents.last_mut() && tail > 0 {
            last.length_bytes = last.length_bytes - BLOCK + tail * 1024;
            last.flags = last.flags.with(ExtentFlags::TAIL);
        }
        let end = extents.last().map_or(0, |last| last.logical_bytes + last.length_bytes);
        (extents, directory, birth, ranks, end.saturating_sub(cut.saturating_sub(3) * 5000))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn metrics_are_those_of_a_model_that_looks_at_every_block(
        files in prop::collection::vec(drawn_file(), 0..20),
        free in prop::collection::vec((1..40_u64, 1..60_u64), 0..12),
        strict in any::<bool>(),
        tails in any::<bool>(),
    ) {
        let mut maker = Maker::new(BLOCKS);
        maker.snapshot.facts.group_bytes = GROUP_BLOCKS * BLOCK;
        maker.add(2, FileKind::Directory, 0, &[]);
        maker.add(3, FileKind::Directory, 0, &[]);
        for (extents, directory, birth, ranks, size) in &files {
            let file = maker.add(*directory, FileKind::Regular, *size, extents);
            file.birth_ns = if *birth == 0 { NO_TIME } else { *birth };
            (file.name_rank, file.readdir_rank) = *ranks;
        }
        let mut at = 0;
        for (gap, length) in &free {
            at += gap * 1024;
            if at + length * 1024 <= BLOCKS * BLOCK {
                let extent = FreeExtent { physical_bytes: at, length_bytes: length * 1024 };
                maker.snapshot.free.push(extent);
            }
            at += length * 1024;
        }
        let options = ScoreOptions {
            strict_holes: strict,
            count_tails: tails,
            map_cells: CELLS,
            hot_period_ns: None,
        };
        let report = score(&maker.snapshot, &options).expect("the snapshot is sound");
        check_files(&maker.snapshot, &report, strict, tails);
        check_neighbours(&maker.snapshot, &report, strict);
        check_space(&maker.snapshot, &report);
    }

    #[test]
    fn no_snapshot_however_mangled_makes_it_panic(
        numbers in prop::collection::vec(any::<(u64, u64, u64, u16)>(), 0..12),
        files in prop::collection::vec(any::<(u64, u64, u64, u32, u32)>(), 0..12),
        facts in any::<(u32, u64, u64, u64, u64)>(),
        shift in 0..64_u32,
    ) {
        let mut maker = Maker::new(0);
        let facts_of = &mut maker.snapshot.facts;
        facts_of.block_bytes = facts.0 >> (shift % 32);
        (facts_of.total_bytes, facts_of.free_bytes) = (facts.1 >> shift, facts.2 >> shift >> 1);
        (facts_of.group_bytes, facts_of.first_group_bytes) = (facts.3 >> shift, facts.4 >> shift);
        for (inode, directory, size, first, count) in files {
            let file = maker.add(directory % 8, FileKind::Regular, size >> shift, &[]);
            file.inode += inode % 3;
            (file.first_extent, file.extents) = (first % 12, count % 4);
            if size % 5 == 0 {
                file.kind = FileKind::Directory;
            }
        }
        for (logical, physical, length, flags) in numbers {
            maker.snapshot.extents.push(Extent {
                logical_bytes: logical >> shift,
                physical_bytes: physical >> shift,
                length_bytes: length >> shift,
                flags: ExtentFlags(flags),
            });
            maker.snapshot.free.push(FreeExtent {
                physical_bytes: physical >> shift,
                length_bytes: length >> shift,
            });
        }
        let _ = score(&maker.snapshot, &ScoreOptions::default());
    }
}
