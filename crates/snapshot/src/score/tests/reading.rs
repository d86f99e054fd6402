//! The expected time of reading: against the mechanical model of the same device, and by hand.

use std::collections::BTreeSet;
use std::path::Path;

use agewell_core::{
    BlockRequest, Operation, RandomStreams, SECTOR_BYTES, Sector, SectorCount, SimTime,
    uniform_below,
};
use agewell_disk::{Device, DeviceModel, DeviceParameters};

use super::{BLOCK, Maker, extent};
use crate::score::{PAYS_PCT, Reorganising, Verdict, reorganising};
use crate::{FileKind, Snapshot};

/// Our estimate may differ so much from the mechanical model where nothing about the angles is
/// special: 4 % measured.
const TOLERANCE: f64 = 0.05;

fn device(name: &str) -> DeviceParameters {
    let catalogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices");
    DeviceParameters::find(name, &catalogue).expect("the catalogue has it")
}

fn estimate(snapshot: &Snapshot, device: &DeviceParameters) -> Reorganising {
    reorganising(snapshot, device).expect("the snapshot is sound")
}

/// Inodes of a group in these tests, 256 bytes each as of `mkfs.ext4`.
const INODES_PER_GROUP: u64 = 1024;
/// Bytes of a group in these tests.
const GROUP_BYTES: u64 = 8 << 20;

/// A file system of this number of blocks whose groups have inodes, numbered from 0.
fn maker(blocks: u64) -> Maker {
    let mut maker = Maker::new(blocks);
    let facts = &mut maker.snapshot.facts;
    facts.group_bytes = GROUP_BYTES;
    facts.parameters.insert("inodes_per_group".to_owned(), INODES_PER_GROUP.to_string());
    maker
}

/// The files one after another on the mechanical model, a request a piece, each issued when the one
/// before is done, and before it the block of its inode if it was not read before, s.
fn simulated_seconds(snapshot: &Snapshot, device: &DeviceParameters) -> f64 {
    let mut model = DeviceModel::new(device);
    let mut requests: Vec<(u64, u64)> = Vec::new();
    let mut blocks = BTreeSet::new();
    let inodes_per_block = BLOCK / 256;
    let first_group_bytes = snapshot.facts.first_group_bytes;
    for file in &snapshot.files {
        if blocks.insert(file.inode / inodes_per_block) {
            let group = file.inode / INODES_PER_GROUP;
            let within = file.inode % INODES_PER_GROUP / inodes_per_block * BLOCK;
            requests.push((first_group_bytes + group * GROUP_BYTES + within, BLOCK));
        }
        if file.kind != FileKind::Regular {
            continue;
        }
        for extent in snapshot.extents_of(file) {
            match requests.last_mut() {
                Some((start, length)) if *start + *length == extent.physical_bytes => {
                    *length += extent.length_bytes;
                }
                _ => requests.push((extent.physical_bytes, extent.length_bytes)),
            }
        }
    }
    let mut now = SimTime::ZERO;
    for (start, length) in requests {
        now = model
            .serve(
                now,
                &BlockRequest {
                    enqueue: now,
                    sector: Sector(start / SECTOR_BYTES),
                    sectors: SectorCount(length / SECTOR_BYTES),
                    operation: Operation::Read,
                    synchronous: true,
                },
            )
            .finish;
    }
    now.0 as f64 / 1e9
}

/// Files of 1 to `blocks_max` blocks whose pieces of about `run` blocks lie anywhere within
/// `spread` blocks; with `run` 0 all lie one behind the other.
fn tree(device: &DeviceParameters, run: u64, blocks_max: u64, spread_share: f64) -> Snapshot {
    let mut stream = RandomStreams::new(7).stream("reading");
    let blocks = device.capacity_sectors * SECTOR_BYTES / BLOCK;
    let spread = ((blocks as f64 * spread_share) as u64).max(blocks_max * 2);
    let mut maker = maker(blocks);
    let mut next = 0;
    for _ in 0..1500 {
        let size = 1 + uniform_below(&mut stream, blocks_max);
        let mut extents = Vec::new();
        let mut logical = 0;
        while logical < size {
            let length = match run {
                0 => size,
                _ => (1 + uniform_below(&mut stream, 2 * run)).min(size - logical),
            };
            let start = match run {
                0 => next,
                _ => uniform_below(&mut stream, spread - blocks_max),
            };
            extents.push(extent(logical, start, length));
            logical += length;
            next = start + length;
        }
        maker.file(&extents);
    }
    maker.snapshot
}

#[test]
fn the_estimate_is_near_the_mechanical_model() {
    let drives = ["seagate-st32430n", "hp-c3323a", "seagate-st34501n", "seagate-st2000dm006"];
    let mut far = Vec::new();
    for name in drives {
        let device = device(name);
        // Small pieces over the whole disk; larger ones over a hundredth; nearly one piece a file;
        // everything in order.
        let trees = [(2, 8, 1.0), (8, 32, 0.01), (200, 200, 0.3), (0, 100, 1.0)];
        for (run, blocks_max, spread_share) in trees {
            let snapshot = tree(&device, run, blocks_max, spread_share);
            let simulated = simulated_seconds(&snapshot, &device);
            let estimated = estimate(&snapshot, &device).walk.as_they_lie_seconds;
            let error = estimated / simulated - 1.0;
            if error.abs() > TOLERANCE {
                far.push(format!(
                    "{name}, pieces of {run}: {estimated:.3} s, simulated {simulated:.3} s"
                ));
            }
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}

/// Files of twenty pieces of `run` blocks, `gap` blocks between them; any up to as many if `mixed`.
fn gappy(device: &DeviceParameters, run: u64, gap: u64, mixed: bool) -> Snapshot {
    let mut stream = RandomStreams::new(9).stream("gaps");
    let blocks = device.capacity_sectors * SECTOR_BYTES / BLOCK;
    let mut maker = maker(blocks);
    // Far from the data: what a drive reads ahead behind inodes must not meet them.
    maker.snapshot.facts.first_group_bytes = blocks / 2 * BLOCK;
    let mut next = 0;
    for _ in 0..100 {
        let mut pieces = Vec::new();
        for piece in 0..20 {
            pieces.push(extent(piece * run, next, run));
            next += run + if mixed { 1 + uniform_below(&mut stream, gap) } else { gap };
        }
        maker.file(&pieces);
    }
    maker.snapshot
}

#[test]
fn over_short_ways_turns_are_lost_as_on_the_mechanical_model() {
    // Drives without a bus slower than the medium. The gap of one block has passed before the next
    // request reaches the medium.
    for name in ["seagate-st32430n", "seagate-st2000dm006"] {
        let device = device(name);
        for (run, gap) in [(4, 4), (2, 30), (16, 1), (1, 7), (16, 60)] {
            let snapshot = gappy(&device, run, gap, false);
            let simulated = simulated_seconds(&snapshot, &device);
            let estimated = estimate(&snapshot, &device).walk.as_they_lie_seconds;
            let error = estimated / simulated - 1.0;
            assert!(error.abs() < TOLERANCE, "{name}, {run} and {gap}: {estimated} {simulated}");
        }
    }
}

#[test]
fn over_mixed_short_ways_every_drive_is_near_its_model() {
    // A buffer that reads ahead and a slow bus save turns that the estimate counts.
    for (name, tolerance) in [
        ("seagate-st32430n", 0.15),
        ("hp-c3323a", 0.15),
        ("seagate-st34501n", 0.30),
        ("seagate-st2000dm006", 0.15),
    ] {
        let device = device(name);
        for (run, gap) in [(2, 20), (8, 60), (8, 200)] {
            let snapshot = gappy(&device, run, gap, true);
            let simulated = simulated_seconds(&snapshot, &device);
            let estimated = estimate(&snapshot, &device).walk.as_they_lie_seconds;
            let error = estimated / simulated - 1.0;
            assert!(error.abs() < tolerance, "{name}, {run} and {gap}: {estimated} {simulated}");
        }
    }
}

#[test]
fn a_simple_device_pays_its_access_time_a_break() {
    // Matthews 1999, §5.3: 15 ms and 5 MB/s. Two breaks within the files, one between them.
    let device = device("matthews-baseline");
    let mut maker = Maker::new(10_000);
    maker.file(&[extent(0, 10, 10), extent(10, 100, 10)]);
    maker.file(&[extent(0, 200, 10), extent(10, 300, 10)]);
    let told = estimate(&maker.snapshot, &device);
    let transfer = 40.0 * BLOCK as f64 / 5e6;
    // One block holds all inodes; it is read first, and the heads return from it.
    let inode = BLOCK as f64 / 5e6;
    let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-6, "{value}");
    near(told.transfer_seconds, transfer);
    assert_eq!(told.metadata_reads, 1);
    near(told.metadata_seconds, inode + 0.015);
    near(told.walk.as_they_lie_seconds, transfer + inode + 5.0 * 0.015);
    near(told.walk.defragmented_seconds, transfer + inode + 3.0 * 0.015);
    near(told.walk.rewritten_seconds, transfer + inode + 2.0 * 0.015);
    near(told.alone.as_they_lie_seconds, transfer + 2.0 * inode + 6.0 * 0.015);
    near(told.alone.defragmented_seconds, transfer + 2.0 * inode + 4.0 * 0.015);
    assert_eq!((told.walk.breaks, told.files), (3, 2));
    assert_eq!(told.rewriting_verdict, Verdict::LikelyToPay);
    // Read once and written once, over what a walk then saves.
    let rewriting = told.walk.as_they_lie_seconds + told.walk.rewritten_seconds;
    near(told.walks_to_pay.expect("it saves something"), rewriting / (3.0 * 0.015));
}

/// A tree as `mke2fs -d` leaves it: a file or two in each of many directories, in the order in which
/// they were listed. Most of a walk is inodes and directories, which no reorganising spares.
#[test]
fn a_fresh_tree_of_small_directories_is_hardly_worth_rewriting() {
    let device = device("seagate-st2000dm006");
    let mut maker = maker(device.capacity_sectors * SECTOR_BYTES / BLOCK);
    let mut stream = RandomStreams::new(3).stream("fresh");
    let mut place = 100;
    for _ in 0..400 {
        let inode = maker.snapshot.files.len() as u64 + 2;
        // Inodes of directories are spread over the groups; those of their files lie beside them.
        let _ = maker.add(2, FileKind::Directory, BLOCK, &[extent(0, place, 1)]);
        place += 1 + uniform_below(&mut stream, 4000);
        for _ in 0..=uniform_below(&mut stream, 2) {
            let _ = maker.add(inode, FileKind::Regular, BLOCK, &[extent(0, place, 1)]);
            place += 1;
        }
    }
    let told = estimate(&maker.snapshot, &device);
    assert!(told.metadata_reads >= 400, "{}", told.metadata_reads);
    assert!(told.metadata_seconds > told.walk.as_they_lie_seconds / 2.0, "{told:?}");
    assert!((0.0..PAYS_PCT).contains(&told.walk.rewriting_gain_pct), "{told:?}");
    assert_ne!(told.rewriting_verdict, Verdict::LikelyToPay);
}

/// Pieces whose ends meet the next file, so that making one piece tears what was together.
#[test]
fn no_saving_is_below_zero() {
    for name in ["seagate-st32430n", "seagate-st2000dm006", "matthews-baseline"] {
        let device = device(name);
        let mut maker = maker(device.capacity_sectors * SECTOR_BYTES / BLOCK);
        for number in 0..200 {
            let first = 100 + number * 20;
            maker.file(&[extent(0, 50_000 - number * 97, 1), extent(1, first, 10)]);
            maker.file(&[extent(0, first + 10, 10)]);
        }
        let told = estimate(&maker.snapshot, &device);
        for gain in
            [told.walk.defragmenting_gain_pct, told.walk.rewriting_gain_pct, told.alone.gain_pct]
        {
            assert!((0.0..=100.0).contains(&gain), "{name}: {told:?}");
        }
    }
}

#[test]
fn nothing_is_gained_where_all_lies_in_order() {
    let device = device("seagate-st2000dm006");
    let told = estimate(&tree(&device, 0, 100, 1.0), &device);
    assert_eq!((told.walk.breaks, told.walk.rewriting_gain_pct.abs() < 1e-9), (0, true));
    assert_eq!(told.rewriting_verdict, Verdict::NotWorthIt);
    assert_eq!((told.defragmenting_verdict, told.walks_to_pay), (Verdict::NotWorthIt, None));
    let empty = estimate(&Maker::new(10).snapshot, &device);
    assert_eq!(
        (empty.files, empty.alone.mean_file_ms, empty.walk.as_they_lie_seconds),
        (0, None, 0.0)
    );
}

#[test]
fn a_file_system_larger_than_the_device_fills_it() {
    // Half of either: the same share of a stroke.
    let device = device("seagate-st32430n");
    let blocks = device.capacity_sectors * SECTOR_BYTES / BLOCK;
    let seconds = |times: u64| {
        let mut maker = Maker::new(blocks * times);
        for number in 0..100 {
            let place = if number % 2 == 0 { 0 } else { blocks / 2 };
            maker.file(&[extent(0, place * times + number, 1)]);
        }
        let told = estimate(&maker.snapshot, &device);
        assert_eq!(told.scaled, times > 1);
        told.walk.as_they_lie_seconds
    };
    let (one, ten) = (seconds(1), seconds(10));
    assert!((ten / one - 1.0).abs() < 0.01, "{one} {ten}");
}
