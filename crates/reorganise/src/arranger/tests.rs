//! The arranger against a map of single blocks.

use proptest::prelude::*;

use super::{Arranger, Limits, Piece, Purpose};
use crate::runs::Runs;

const BLOCK: u64 = 4096;

fn limits(stretch_blocks: u64) -> Limits {
    Limits {
        longest_bytes: 4 * stretch_blocks * BLOCK,
        divided_bytes: stretch_blocks * BLOCK,
        shortest_bytes: stretch_blocks * BLOCK,
        batch_bytes: 16 * stretch_blocks * BLOCK,
        one_run: false,
        makes_room: true,
    }
}

/// A device of single blocks: of which file and which of its blocks each is.
#[derive(Clone)]
struct Device(Vec<Option<(u32, u64)>>);

impl Device {
    /// Files of `sizes` blocks scattered over `blocks` blocks as `places` says.
    fn scattered(blocks: usize, sizes: &[u64], places: &[usize]) -> Self {
        let mut device = vec![None; blocks];
        let mut free: Vec<usize> = (0..blocks).collect();
        let mut next = places.iter().cycle();
        for (file, size) in sizes.iter().enumerate() {
            for block in 0..*size {
                let at = free.remove(next.next().expect("places go round") % free.len());
                device[at] = Some((file as u32, block));
            }
        }
        Self(device)
    }

    fn free(&self) -> Runs {
        let empty = self.0.iter().enumerate().filter(|(_, block)| block.is_none());
        empty.map(|(at, _)| (at as u64 * BLOCK, BLOCK)).collect()
    }

    fn pieces(&self, file: u32) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for (at, block) in self.0.iter().enumerate() {
            if let Some((owner, number)) = block
                && *owner == file
            {
                pieces.push(Piece {
                    logical_bytes: number * BLOCK,
                    physical_bytes: at as u64 * BLOCK,
                    length_bytes: BLOCK,
                });
            }
        }
        pieces.sort_by_key(|piece| piece.logical_bytes);
        super::joined(&pieces)
    }
}

/// Runs the arranger to its end; gives the blocks that it moved.
fn arrange(device: &mut Device, files: u32, stays: &[bool], limits: Limits) -> u64 {
    let pieces = (0..files).map(|file| device.pieces(file)).collect();
    let mut arranger = Arranger::new(pieces, stays, limits, BLOCK);
    let mut moved = 0;
    for _ in 0..10_000 {
        let free = device.free();
        let (_, moves) = arranger.next_batch(&free, &free);
        if moves.is_empty() {
            return moved;
        }
        let before = device.clone();
        for step in &moves {
            assert!(!stays[step.file as usize], "file {} stays", step.file);
            for block in 0..step.length_bytes / BLOCK {
                let logical = step.logical_bytes / BLOCK + block;
                let to = (step.physical_bytes / BLOCK + block) as usize;
                assert_eq!(before.0[to], None, "the target was free before the batch");
                assert_eq!(device.0[to], None, "no two moves have the same target");
                let from = device.0.iter().position(|at| *at == Some((step.file, logical)));
                device.0[from.expect("the file has the block")] = None;
                device.0[to] = Some((step.file, logical));
                moved += 1;
            }
            let left = arranger.moved(step);
            let bytes: u64 = left.iter().map(|run| run.1).sum();
            assert_eq!(bytes, step.length_bytes, "as much is left as is moved");
        }
        for file in 0..files {
            assert_eq!(arranger.pieces(file), device.pieces(file), "file {file}");
        }
    }
    panic!("it goes round in circles");
}

proptest! {
    /// Every target is free, nothing is lost, what stays stays, and it ends.
    #[test]
    fn moves_are_possible_on_a_map_of_blocks(
        sizes in prop::collection::vec(0_u64..9, 1..20),
        places in prop::collection::vec(0_usize..1000, 1..50),
        spare in 1_usize..60,
        stays in prop::collection::vec(prop::bool::weighted(0.2), 20),
        stretch_blocks in 1_u64..8,
        makes_room in any::<bool>(),
    ) {
        let blocks = sizes.iter().sum::<u64>() as usize + spare;
        let mut device = Device::scattered(blocks, &sizes, &places);
        let limits = Limits { makes_room, ..limits(stretch_blocks) };
        arrange(&mut device, sizes.len() as u32, &stays, limits);
    }

    /// Where no room is made each file moves once or not at all, and is whole where it lies then,
    /// unless it is long enough to be divided.
    #[test]
    fn into_what_is_free_as_it_is_files_move_once_and_whole(
        sizes in prop::collection::vec(1_u64..9, 1..20),
        places in prop::collection::vec(0_usize..1000, 1..50),
        spare in 1_usize..60,
    ) {
        let blocks = sizes.iter().sum::<u64>() as usize + spare;
        let mut device = Device::scattered(blocks, &sizes, &places);
        let before = device.clone();
        let limits = Limits { makes_room: false, ..limits(16) };
        let files = sizes.len() as u32;
        let moved = arrange(&mut device, files, &[false; 20], limits);
        let mut expected = 0;
        for file in 0..files {
            if device.pieces(file) != before.pieces(file) {
                prop_assert_eq!(device.pieces(file).len(), 1, "file {} is whole", file);
                expected += sizes[file as usize];
            }
        }
        prop_assert_eq!(moved, expected);
    }
}

/// Breaks within files and between each and the next.
fn breaks(device: &Device, files: u32) -> usize {
    let all: Vec<Piece> = (0..files).flat_map(|file| device.pieces(file)).collect();
    all.windows(2).filter(|pair| pair[0].end_bytes() != pair[1].physical_bytes).count()
}

/// Files that lie in single blocks all over a device four fifths full come to lie in stretches.
#[test]
fn scattered_files_come_to_lie_in_stretches() {
    let sizes: Vec<u64> = (0..100).map(|file| 1 + file % 7).collect();
    let blocks: u64 = sizes.iter().sum();
    let places: Vec<usize> = (0..997).map(|step| step * 7919 % 1009).collect();
    let mut device = Device::scattered((blocks * 5 / 4) as usize, &sizes, &places);
    assert!(breaks(&device, 100) > 300);
    let moved = arrange(&mut device, 100, &[false; 100], limits(16));
    assert!(breaks(&device, 100) < 40, "{} breaks", breaks(&device, 100));
    assert!(moved < 2 * blocks + 100, "{moved} of {blocks} blocks were moved");
}

/// Where the only free space is too short for a stretch, room is made first.
#[test]
fn room_is_made_where_there_is_none() {
    // Sixteen files of one block with a free block behind each.
    let mut device = Device(vec![None; 32]);
    for file in 0..16 {
        device.0[2 * file] = Some(((file * 5 % 16) as u32, 0));
    }
    let pieces = (0..16).map(|file| device.pieces(file)).collect();
    let mut arranger = Arranger::new(pieces, &[false; 16], limits(2), BLOCK);
    let (purpose, moves) = arranger.next_batch(&device.free(), &device.free());
    assert_eq!(purpose, Purpose::Evacuate);
    assert!(!moves.is_empty());
    arrange(&mut device, 16, &[false; 16], limits(2));
    assert!(breaks(&device, 16) < 8, "{} breaks", breaks(&device, 16));
}

/// A file that is left as it lies is not asked for again, and its bytes are not waited for.
#[test]
fn what_is_left_is_left() {
    let mut device = Device(vec![None; 16]);
    (device.0[1], device.0[5]) = (Some((0, 0)), Some((1, 0)));
    let pieces = (0..2).map(|file| device.pieces(file)).collect();
    let mut arranger = Arranger::new(pieces, &[false; 2], limits(1), BLOCK);
    arranger.leave(0);
    assert_eq!(arranger.waiting_bytes(), BLOCK);
    let (_, moves) = arranger.next_batch(&device.free(), &device.free());
    assert!(moves.iter().all(|step| step.file == 1), "{moves:?}");
}

/// Where one run of each region is filled in a batch, no two stretches of it are in one region, and with
/// regions more is laid than without.
#[test]
fn a_batch_goes_to_one_run_of_each_region() {
    let runs = [(0, 8), (20, 6), (100, 7), (120, 5), (200, 4)];
    let free: Runs = runs.iter().map(|(at, blocks)| (at * BLOCK, blocks * BLOCK)).collect();
    let pieces = |file: u64| {
        let physical_bytes = (1000 + 10 * file) * BLOCK;
        vec![Piece { logical_bytes: 0, physical_bytes, length_bytes: BLOCK }]
    };
    let files: Vec<Vec<Piece>> = (0..30).map(pieces).collect();
    let limits = Limits { one_run: true, longest_bytes: 4 * BLOCK, ..limits(4) };
    let starts = |regions: &[u64]| {
        let mut arranger = Arranger::new(files.clone(), &[false; 30], limits, BLOCK);
        arranger.divide(regions.iter().map(|at| at * BLOCK).collect());
        let (purpose, moves) = arranger.next_batch(&free, &free);
        assert_eq!(purpose, Purpose::Lay);
        moves.iter().map(|step| step.physical_bytes / BLOCK).collect::<Vec<_>>()
    };
    assert_eq!(starts(&[]), (0..8).collect::<Vec<_>>());
    let expected: Vec<u64> = (0..8).chain(100..107).chain(200..204).collect();
    assert_eq!(starts(&[0, 100, 200]), expected);
    // What lies before the first region is a region as well.
    assert_eq!(starts(&[100, 200]), expected);
}

/// A file that no run is long enough for is passed over where no room is made, and waits.
#[test]
fn a_file_without_a_run_long_enough_waits() {
    let mut device = Device(vec![None; 16]);
    // Two blocks of a file apart, and another of one block; free runs are of one block.
    for (at, file) in [(0, 0), (2, 0), (4, 1), (6, 2), (8, 2), (10, 2), (12, 2), (14, 2)] {
        let block = device.0.iter().filter(|owner| owner.is_some_and(|o| o.0 == file)).count();
        device.0[at] = Some((file, block as u64));
    }
    let pieces = (0..3).map(|file| device.pieces(file)).collect();
    let limits = Limits { makes_room: false, divided_bytes: 16 * BLOCK, ..limits(1) };
    let mut arranger = Arranger::new(pieces, &[false, false, true], limits, BLOCK);
    let (purpose, moves) = arranger.next_batch(&device.free(), &device.free());
    assert_eq!(purpose, Purpose::Lay);
    assert_eq!(moves.len(), 1);
    assert_eq!(moves[0].file, 1);
    assert_eq!(arranger.waiting_files(), 1);
}
