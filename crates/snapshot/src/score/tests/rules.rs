//! Every rule of the metrics on a file or two.

use super::{BLOCK, Maker, extent, special};
use crate::score::{Report, ScoreOptions, layout_counts, score};
use crate::{Extent, ExtentFlags, FileKind, LayoutCounts, Snapshot, SnapshotError};

fn report(maker: &Maker) -> Report {
    score(&maker.snapshot, &ScoreOptions::default()).expect("the snapshot is sound")
}

fn strictly(maker: &Maker) -> Report {
    let options = ScoreOptions { strict_holes: true, ..ScoreOptions::default() };
    score(&maker.snapshot, &options).expect("the snapshot is sound")
}

fn blocks(report: &Report) -> (u64, u64) {
    (report.layout.all.optimal_blocks, report.layout.all.counted_blocks)
}

#[test]
fn a_file_in_one_piece_scores_one_and_one_of_single_blocks_zero() {
    let mut whole = Maker::new(100);
    whole.file(&[extent(0, 10, 10)]);
    assert_eq!(report(&whole).layout.all.layout_score, Some(1.0));
    let mut broken = Maker::new(100);
    broken.file(&[extent(0, 10, 1), extent(1, 20, 1), extent(2, 5, 1)]);
    let broken = report(&broken);
    assert_eq!(broken.layout.all.layout_score, Some(0.0));
    assert_eq!((broken.fragmentation.breaks, broken.fragmentation.out_of_order), (2, 1));
    // 11 to 20, and 21 back to 5.
    assert_eq!(broken.fragmentation.mean_gap_bytes, Some(12.5 * BLOCK as f64));
}

#[test]
fn first_blocks_and_one_block_files_are_left_out() {
    let mut maker = Maker::new(100);
    maker.file(&[extent(0, 1, 1)]);
    maker.file(&[extent(0, 3, 2)]);
    maker.file(&[extent(0, 7, 1), extent(1, 9, 1)]);
    let report = report(&maker);
    assert_eq!(blocks(&report), (1, 2));
    assert_eq!((report.layout.scored_files, report.fragmentation.files), (2, 3));
    assert_eq!(report.layout.by_blocks[0].share.layout_score, None);
}

#[test]
fn the_aggregate_weighs_blocks_and_the_mean_files() {
    let mut maker = Maker::new(1000);
    maker.file(&[extent(0, 1, 1), extent(1, 9, 1)]);
    maker.file(&[extent(0, 100, 100)]);
    let layout = report(&maker).layout;
    assert_eq!(layout.all.layout_score, Some(0.99));
    assert_eq!(layout.mean_file_score, Some(0.5));
}

#[test]
fn sizes_show_the_two_block_dip_and_the_drop_behind_twelve_blocks() {
    let mut maker = Maker::new(10_000);
    maker.file(&[extent(0, 1, 1), extent(1, 9, 1)]);
    maker.file(&[extent(0, 100, 12)]);
    maker.file(&[extent(0, 200, 12), extent(12, 400, 1)]);
    maker.file(&[extent(0, 500, 12), extent(12, 600, 88)]);
    let layout = report(&maker).layout;
    let exact: Vec<_> = layout
        .by_blocks
        .iter()
        .map(|bin| (bin.blocks_max, bin.share.optimal_blocks, bin.share.counted_blocks))
        .collect();
    assert_eq!(exact, [(2, 0, 1), (12, 11, 11), (13, 11, 12)]);
    let powers: Vec<_> =
        layout.by_size.iter().map(|bin| (bin.blocks_min, bin.blocks_max, bin.files)).collect();
    assert_eq!(powers, [(2, 2, 1), (9, 16, 2), (65, 128, 1)]);
}

#[test]
fn extents_that_touch_on_the_device_are_one_fragment() {
    let mut maker = Maker::new(100);
    maker.file(&[extent(0, 10, 2), extent(2, 12, 2)]);
    let report = report(&maker);
    assert_eq!((blocks(&report), report.fragmentation.fragments), ((3, 3), 1));
}

#[test]
fn a_hole_is_stepped_over_unless_holes_are_strict() {
    let mut maker = Maker::new(100);
    maker.file(&[extent(0, 10, 1), extent(5, 11, 1)]);
    assert_eq!(blocks(&report(&maker)), (1, 1));
    assert_eq!(report(&maker).layout.special.files_with_holes, 1);
    assert_eq!(blocks(&strictly(&maker)), (0, 1));
    // A hole in front makes no predecessor, either way.
    let mut leading = Maker::new(100);
    leading.file(&[extent(3, 10, 2)]);
    assert_eq!((blocks(&report(&leading)), blocks(&strictly(&leading))), ((1, 1), (1, 1)));
    assert_eq!(report(&leading).layout.special.files_with_holes, 1);
}

#[test]
fn inline_data_and_unknown_addresses_are_left_out() {
    let mut maker = Maker::new(100);
    maker.file(&[special(0, 0, 1, ExtentFlags::INLINE)]);
    maker.file(&[extent(0, 10, 2), special(2, 0, 1, ExtentFlags::UNKNOWN), extent(3, 50, 2)]);
    let report = report(&maker);
    // Neither the blocks without an address count nor the join to what is behind them.
    assert_eq!(blocks(&report), (2, 2));
    let special = report.layout.special;
    assert_eq!((special.inline_extents, special.unknown_extents), (1, 1));
    assert_eq!((special.files_without_blocks, report.fragmentation.files), (1, 1));
    assert_eq!(special.files_with_holes, 0);
}

#[test]
fn unwritten_and_shared_extents_count_and_are_told() {
    let mut maker = Maker::new(100);
    maker.file(&[extent(0, 10, 2), special(2, 12, 3, ExtentFlags::UNWRITTEN)]);
    maker.file(&[special(0, 10, 2, ExtentFlags::SHARED), extent(2, 40, 1)]);
    let report = report(&maker);
    assert_eq!(blocks(&report), (5, 6));
    assert_eq!(report.layout.special.unwritten_blocks, 3);
    assert_eq!(report.layout.special.shared_blocks, 2);
}

#[test]
fn what_is_behind_an_encoded_extent_may_begin_before_its_length_is_over() {
    // 32 blocks of the file in fewer on the device: the next begins 9 blocks behind its start.
    let mut maker = Maker::new(1000);
    maker.file(&[special(0, 100, 32, ExtentFlags::ENCODED), extent(32, 109, 4)]);
    assert_eq!(blocks(&report(&maker)), (35, 35));
    let mut apart = Maker::new(1000);
    apart.file(&[special(0, 100, 32, ExtentFlags::ENCODED), extent(32, 133, 4)]);
    assert_eq!(blocks(&report(&apart)), (34, 35));
    let mut before = Maker::new(1000);
    before.file(&[special(0, 100, 32, ExtentFlags::ENCODED), extent(32, 100, 4)]);
    assert_eq!(blocks(&report(&before)), (34, 35));
    assert_eq!(report(&before).layout.special.encoded_blocks, 32);
}

#[test]
fn a_fragment_is_a_block_of_its_file_only_if_asked_for() {
    // Two blocks and 1 KiB, right behind; then elsewhere; then 1 KiB alone.
    let mut maker = Maker::new(100);
    let mut tail = special(2, 12, 1, ExtentFlags::TAIL);
    tail.length_bytes = 1024;
    maker.file(&[extent(0, 10, 2), tail]);
    tail.physical_bytes = 30 * BLOCK + 1024;
    maker.file(&[extent(0, 20, 2), tail]);
    maker.file(&[Extent { logical_bytes: 0, ..tail }]);
    let counting = ScoreOptions { count_tails: true, ..ScoreOptions::default() };
    let counted = score(&maker.snapshot, &counting).expect("the snapshot is sound");
    assert_eq!((blocks(&counted), counted.layout.special.tails), ((3, 4), 3));
    let report = report(&maker);
    assert_eq!((blocks(&report), report.layout.special.tails), ((2, 2), 3));
    assert_eq!(report.layout.by_blocks.len(), 2, "one file of less than a block, two of two");
    let broken = &report.fragmentation;
    assert_eq!((broken.split_files, broken.multi_block_files), (1, 2), "for reading tails count");
    assert_eq!(report.layout.special.files_without_blocks, 0);
    let alone = layout_counts(&maker.snapshot, &ScoreOptions::default(), |_| true)
        .expect("the snapshot is sound");
    assert_eq!((alone.optimal, alone.counted), (2, 2));
}

#[test]
fn what_lies_beyond_the_end_of_a_file_is_left_out() {
    let mut maker = Maker::new(100);
    maker.add(2, FileKind::Regular, BLOCK + 1, &[extent(0, 10, 3), extent(3, 50, 4)]);
    let report = report(&maker);
    assert_eq!(blocks(&report), (1, 1));
    assert_eq!(report.layout.special.beyond_end_bytes, 5 * BLOCK);
    assert_eq!(report.layout.special.files_with_holes, 0);
}

#[test]
fn directories_have_a_score_of_their_own() {
    let mut maker = Maker::new(100);
    maker.add(2, FileKind::Directory, 2 * BLOCK, &[extent(0, 1, 1), extent(1, 9, 1)]);
    maker.file(&[extent(0, 10, 2)]);
    let report = report(&maker);
    assert_eq!((blocks(&report), report.directory_layout.counted_blocks), ((1, 1), 1));
    assert_eq!(report.directory_layout.layout_score, Some(0.0));
}

#[test]
fn hot_files_are_those_modified_within_the_period() {
    let mut maker = Maker::new(100);
    maker.file(&[extent(0, 10, 2)]).modify_ns = 1_000;
    maker.file(&[extent(0, 20, 1), extent(1, 30, 1)]).modify_ns = 5_000;
    maker.file(&[extent(0, 40, 2)]);
    let options = ScoreOptions { hot_period_ns: Some(1_000), ..ScoreOptions::default() };
    let hot = |snapshot: &Snapshot| {
        let report = score(snapshot, &options).expect("the snapshot is sound");
        report.layout.hot.expect("a period was given")
    };
    // Without a time of its own a snapshot is as late as its latest modification.
    let latest = hot(&maker.snapshot);
    assert_eq!((latest.until_ns, latest.files, latest.split_files), (Some(5_000), 1, 1));
    assert_eq!(latest.share.layout_score, Some(0.0));
    maker.snapshot.facts.taken_ns = 9_000;
    assert_eq!(hot(&maker.snapshot).files, 0);
    maker.snapshot.facts.taken_ns = 2_000;
    assert_eq!(hot(&maker.snapshot).files, 2);
}

#[test]
fn any_subset_has_its_counts() {
    let mut maker = Maker::new(100);
    maker.file(&[extent(0, 10, 2)]);
    maker.file(&[extent(0, 20, 1), extent(1, 30, 1)]);
    let counts = |links| {
        layout_counts(&maker.snapshot, &ScoreOptions::default(), |file| file.inode == links)
    };
    assert_eq!(counts(3).expect("sound"), LayoutCounts { optimal: 1, counted: 1 });
    assert_eq!(counts(4).expect("sound"), LayoutCounts { optimal: 0, counted: 1 });
}

#[test]
fn files_belong_to_the_directory_of_the_root_that_they_lie_below() {
    let mut maker = Maker::new(100);
    maker.add(2, FileKind::Directory, 0, &[]);
    maker.add(3, FileKind::Directory, 0, &[]);
    maker.add(4, FileKind::Regular, 2 * BLOCK, &[extent(0, 1, 1), extent(1, 9, 1)]);
    maker.add(2, FileKind::Regular, 2 * BLOCK, &[extent(0, 20, 2)]);
    maker.add(99, FileKind::Regular, 2 * BLOCK, &[extent(0, 30, 2)]);
    maker.snapshot.names = Some(["root", "src", "deep", "a", "b", "c"].map(Vec::from).to_vec());
    let directories = report(&maker).layout.by_directory;
    let told: Vec<_> = directories
        .iter()
        .map(|each| (each.inode, each.name.as_deref(), each.share.layout_score))
        .collect();
    let expected = [(3, Some("src"), Some(0.0)), (2, Some("."), Some(1.0)), (99, None, Some(1.0))];
    assert_eq!(told, expected);
}

#[test]
fn the_worst_files_are_told_with_their_paths() {
    let mut maker = Maker::new(1000);
    maker.add(2, FileKind::Directory, 0, &[]);
    for number in 0..20 {
        let pieces: Vec<_> = (0..=number).map(|piece| extent(piece, 900 - piece * 2, 1)).collect();
        maker.add(3, FileKind::Regular, 20 * BLOCK, &pieces);
    }
    let mut names = vec![b"top".to_vec(), b"src".to_vec()];
    names.extend((0..20).map(|number| format!("file{number}").into_bytes()));
    maker.snapshot.names = Some(names);
    let worst = report(&maker).layout.worst_files;
    assert_eq!(worst.len(), 10);
    assert_eq!((worst[0].path.as_deref(), worst[0].fragments), (Some("src/file19"), 20));
    assert_eq!((worst[9].path.as_deref(), worst[9].share.counted_blocks), (Some("src/file10"), 10));
    // Directories that hold each other lead to no root.
    maker.snapshot.files[1].directory = 4;
    maker.snapshot.files[2].directory = 3;
    maker.snapshot.files[2].kind = FileKind::Directory;
    let looped = report(&maker).layout.worst_files;
    assert_eq!((looped.len(), looped[0].path.as_deref()), (10, None));
}

#[test]
fn neighbours_are_adjacent_in_one_order_and_not_in_another() {
    let mut maker = Maker::new(100);
    let (one, next) = ([extent(0, 10, 2)], [extent(0, 12, 1)]);
    let file = maker.file(&one);
    (file.name_rank, file.readdir_rank, file.birth_ns) = (0, 1, 70);
    let file = maker.file(&next);
    (file.name_rank, file.readdir_rank, file.birth_ns) = (1, 0, 80);
    let neighbours = report(&maker).neighbours;
    assert_eq!((neighbours.by_name.adjacent_pairs, neighbours.by_name.pairs), (1, 1));
    assert_eq!((neighbours.by_creation.adjacent_pairs, neighbours.by_creation.pairs), (1, 1));
    assert_eq!((neighbours.by_readdir.adjacent_pairs, neighbours.by_readdir.pairs), (0, 1));
    // From block 13 back to block 10.
    assert_eq!(neighbours.by_readdir.median_gap_bytes, Some(3 * BLOCK));
}

#[test]
fn behind_a_tail_the_next_file_may_begin_at_its_end_or_at_the_next_block() {
    for (start_bytes, adjacent) in
        [(12 * BLOCK + 1024, 1), (13 * BLOCK, 1), (12 * BLOCK + 2048, 0), (14 * BLOCK, 0)]
    {
        let mut maker = Maker::new(100);
        let mut tail = special(2, 12, 1, ExtentFlags::TAIL);
        tail.length_bytes = 1024;
        maker.file(&[extent(0, 10, 2), tail]);
        let mut next = extent(0, 0, 1);
        next.physical_bytes = start_bytes;
        maker.file(&[next]);
        let by_name = report(&maker).neighbours.by_name;
        assert_eq!(by_name.adjacent_pairs, adjacent, "a file at {start_bytes}");
    }
}

#[test]
fn files_of_other_directories_and_without_data_are_no_neighbours() {
    let mut maker = Maker::new(100);
    maker.add(2, FileKind::Directory, 0, &[]);
    maker.file(&[extent(0, 10, 2)]);
    maker.file(&[]);
    maker.add(3, FileKind::Regular, BLOCK, &[extent(0, 12, 1)]);
    maker.file(&[extent(0, 12, 2)]);
    let neighbours = report(&maker).neighbours;
    assert_eq!((neighbours.by_name.adjacent_pairs, neighbours.by_name.pairs), (1, 1));
    assert_eq!(neighbours.by_creation.pairs, 0);
}

#[test]
fn free_space_scores_as_a_file_would() {
    let mut maker = Maker::new(100);
    maker.free(10, 3);
    maker.free(20, 1);
    let free = report(&maker).free_space;
    assert_eq!((free.following_blocks, free.counted_blocks), (2, 3));
    assert_eq!((free.largest_extent_bytes, free.half_in_extents_of_bytes), (12_288, 12_288));
    let bins: Vec<_> =
        free.by_length.iter().map(|bin| (bin.bytes_min, bin.extents, bin.bytes)).collect();
    assert_eq!(bins, [(4096, 1, 4096), (8192, 1, 12_288)]);
    assert_eq!(report(&Maker::new(100)).free_space.free_space_score, None);
}

#[test]
fn free_space_at_the_end_of_groups_is_seen_there() {
    let mut maker = Maker::new(200);
    maker.snapshot.facts.group_bytes = 100 * BLOCK;
    maker.free(95, 5);
    maker.free(180, 20);
    maker.file(&[extent(0, 0, 2), extent(2, 105, 2)]);
    let placement = report(&maker).placement.expect("there are groups");
    assert_eq!(placement.groups, 2);
    let free: Vec<u64> = placement.tenths.iter().map(|tenth| tenth.free_blocks).collect();
    assert_eq!(free, [0, 0, 0, 0, 0, 0, 0, 0, 10, 15]);
    assert_eq!(placement.tenths[9].mean_free_extent_bytes, Some(5.0 * BLOCK as f64));
    let front = &placement.tenths[0];
    assert_eq!((front.blocks, front.share.optimal_blocks, front.share.counted_blocks), (20, 2, 3));
}

#[test]
fn a_map_tells_free_whole_split_and_other() {
    let mut maker = Maker::new(8);
    maker.file(&[extent(0, 0, 3)]);
    maker.file(&[extent(0, 4, 1), extent(1, 3, 1)]);
    maker.free(6, 2);
    let options = ScoreOptions { map_cells: 4, ..ScoreOptions::default() };
    let map = score(&maker.snapshot, &options).expect("sound").map;
    let blocks = |bytes: &[u64]| bytes.iter().map(|each| each / BLOCK).collect::<Vec<_>>();
    assert_eq!(map.cell_bytes, 2 * BLOCK);
    assert_eq!(blocks(&map.whole_file_bytes), [2, 1, 0, 0]);
    assert_eq!(blocks(&map.short_piece_bytes), [0, 1, 1, 0]);
    assert_eq!(blocks(&map.free_bytes), [0, 0, 0, 2]);
    assert_eq!(blocks(&map.other_bytes), [0, 0, 1, 0]);
}

#[test]
fn two_breaks_do_not_colour_all_of_a_large_file() {
    let mut maker = Maker::new(1000);
    // Pieces of 400, 10 and 290 blocks; the first in two extents that touch.
    let pieces = [extent(0, 0, 300), extent(300, 300, 100), extent(400, 600, 10)];
    maker.file(&[pieces[0], pieces[1], pieces[2], extent(410, 700, 290)]);
    let options = ScoreOptions { map_cells: 10, ..ScoreOptions::default() };
    let map = score(&maker.snapshot, &options).expect("sound").map;
    let blocks = |bytes: &[u64]| bytes.iter().map(|each| each / BLOCK).collect::<Vec<_>>();
    assert_eq!(blocks(&map.long_piece_bytes), [100, 100, 100, 100, 0, 0, 0, 100, 100, 90]);
    assert_eq!(blocks(&map.short_piece_bytes), [0, 0, 0, 0, 0, 0, 10, 0, 0, 0]);
    assert_eq!(map.whole_file_bytes.iter().sum::<u64>(), 0);
}

/// What may befall a snapshot.
type Damage = fn(&mut Snapshot);

#[test]
fn a_damaged_snapshot_is_refused_in_one_line() {
    let sound = || {
        let mut maker = Maker::new(100);
        maker.file(&[extent(0, 10, 2), extent(2, 20, 2)]);
        maker.free(50, 3);
        maker.snapshot
    };
    let damages: [(&str, Damage); 8] = [
        ("block size", |snapshot| snapshot.facts.block_bytes = 0),
        ("are free", |snapshot| snapshot.facts.free_bytes = u64::MAX),
        ("extents 0 to 9 of 2", |snapshot| snapshot.files[1].extents = 9),
        ("overlaps the one before", |snapshot| snapshot.extents[1].logical_bytes = 5),
        ("2^62", |snapshot| snapshot.extents[1].physical_bytes = u64::MAX - 5),
        ("2^62", |snapshot| snapshot.extents[1].length_bytes = u64::MAX - 5),
        ("does not ascend", |snapshot| snapshot.files[1].inode = 1),
        ("free space", |snapshot| snapshot.free[0].physical_bytes = u64::MAX),
    ];
    assert!(score(&sound(), &ScoreOptions::default()).is_ok());
    for (words, damage) in damages {
        let mut snapshot = sound();
        damage(&mut snapshot);
        let refused = score(&snapshot, &ScoreOptions::default());
        let Err(SnapshotError::Input(message)) = refused else { panic!("{words}: {refused:?}") };
        assert!(message.contains(words) && !message.contains('\n'), "{message}");
    }
}
