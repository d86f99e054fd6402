//! Write-anywhere by example: where blocks go, what is free when, and the trap of the nearest place.

use super::*;
use crate::taken::Taken;
use agewell_core::{RandomStreams, uniform_below};

fn setting(capacity_blocks: u32, search: Search) -> WriteAnywhereSetting {
    WriteAnywhereSetting {
        capacity_blocks,
        block_bytes: 4096,
        clients: 1,
        buffer_blocks: 4,
        search,
        recovery: CrashRecovery::Scan,
        checkpoint_blocks: 8,
    }
}

fn write(layout: &mut WriteAnywhere, block: u32, device: &mut Taken) {
    layout.ensure_blocks(block + 1);
    layout.write(block, FileBlock { file: 0, block }, 0, device).unwrap();
}

#[test]
fn the_sweep_turns_at_the_edge() {
    let mut layout =
        WriteAnywhere::new(WriteAnywhereSetting { buffer_blocks: 1, ..setting(10, Search::Sweep) })
            .unwrap();
    let mut device = Taken::default();
    (0..6).for_each(|block| write(&mut layout, block, &mut device));
    // Places 0 and 2 become free behind the head, which goes on to the edge first.
    for block in [0, 2, 1, 3] {
        write(&mut layout, block, &mut device);
    }
    assert_eq!(
        device.of(Purpose::NewData).into_iter().skip(6).map(|(place, _)| place).collect::<Vec<_>>(),
        [6, 7, 8, 9]
    );
    device.0.clear();
    (4..6).for_each(|block| write(&mut layout, block, &mut device));
    // Of 0, 1, 2, 3 the sweep downwards comes to 3 first; then 4 is behind it.
    assert_eq!(
        device.of(Purpose::NewData).into_iter().map(|(place, _)| place).collect::<Vec<_>>(),
        [3, 2]
    );
    layout.verify();
}

#[test]
fn the_nearest_place_is_nearest_on_both_sides() {
    let mut layout = WriteAnywhere::new(setting(100, Search::Nearest)).unwrap();
    let mut device = Taken::default();
    (0..40).for_each(|block| write(&mut layout, block, &mut device));
    for block in [10, 22] {
        layout.delete(block, &mut device);
    }
    // The head stops behind place 18: 10 is 9 away, 22 is 3.
    layout.read(&[18], Purpose::Read, &mut device);
    device.0.clear();
    write(&mut layout, 40, &mut device);
    write(&mut layout, 41, &mut device);
    layout.sync(0, &mut device).unwrap();
    assert_eq!(device.of(Purpose::NewData).into_iter().collect::<Vec<_>>(), [(22, 1), (10, 1)]);
    layout.verify();
}

#[test]
fn a_stripe_is_filled_before_the_next_and_the_emptiest_comes_first() {
    let stripe = Search::Stripe { stripe_blocks: 10 };
    let mut layout = WriteAnywhere::new(setting(40, stripe)).unwrap();
    let mut device = Taken::default();
    (0..36).for_each(|block| write(&mut layout, block, &mut device));
    // Two holes in the first stripe, three in the third; the fourth, four left, is being filled.
    for block in [3, 4, 21, 22, 27] {
        layout.delete(block, &mut device);
    }
    device.0.clear();
    for block in [36, 37, 38, 39, 3, 4, 21, 22] {
        write(&mut layout, block, &mut device);
    }
    // The fourth stripe, then what the third has, then the first: a transfer for each run.
    assert_eq!(
        device.of(Purpose::NewData).into_iter().collect::<Vec<_>>(),
        [(36, 4), (21, 2), (27, 1), (3, 1)]
    );
    layout.verify();
}

/// English & Stepanov's trap: blocks of one region are updated at random, so that holes open near
/// the head all the time; the nearest of them is always closer than the large free region.
#[test]
fn the_nearest_place_traps_the_head_and_the_sweep_does_not() {
    let run = |search: Search| {
        let mut layout = WriteAnywhere::new(setting(4000, search)).unwrap();
        let mut device = Taken::default();
        (0..2400).for_each(|block| write(&mut layout, block, &mut device));
        for block in (0..1000).step_by(8) {
            layout.delete(block, &mut device);
        }
        layout.read(&[1], Purpose::Read, &mut device);
        device.0.clear();
        let mut stream = RandomStreams::new(1).stream("updates");
        for _ in 0..4000 {
            let block = uniform_below(&mut stream, 1000) as u32;
            if !block.is_multiple_of(8) {
                write(&mut layout, block, &mut device);
            }
        }
        layout.sync_all(&mut device).unwrap();
        layout.verify();
        let (transfers, blocks) = device
            .of(Purpose::NewData)
            .into_iter()
            .fold((0, 0), |(transfers, blocks), (_, length)| (transfers + 1, blocks + length));
        let reached =
            device.of(Purpose::NewData).into_iter().filter(|(place, _)| *place >= 2400).count();
        (f64::from(blocks) / f64::from(transfers), reached)
    };
    let (nearest_run, nearest_reached) = run(Search::Nearest);
    let (sweep_run, sweep_reached) = run(Search::Sweep);
    assert_eq!(nearest_reached, 0, "the head never comes to the region of 1600 free places");
    assert!(sweep_reached > 0);
    assert!(sweep_run > 1.5 * nearest_run, "blocks a transfer: {sweep_run} and {nearest_run}");
}

#[test]
fn an_old_place_is_written_again_only_when_the_map_on_disk_no_longer_names_it() {
    for recovery in [CrashRecovery::Checkpoint, CrashRecovery::Snapshot] {
        let mut layout = WriteAnywhere::new(WriteAnywhereSetting {
            recovery,
            buffer_blocks: 1,
            checkpoint_blocks: 1000,
            ..setting(30, Search::Nearest)
        })
        .unwrap();
        let mut device = Taken::default();
        (0..10).for_each(|block| write(&mut layout, block, &mut device));
        let old = layout.place_of(9);
        device.0.clear();
        let mut snapshots = 0;
        for _ in 0..60 {
            write(&mut layout, 9, &mut device);
            let metadata = |taken: &&(Purpose, u32, u32)| taken.0 == Purpose::MetadataWrite;
            let now = device.0.iter().filter(metadata).count();
            if now == 0 {
                assert_ne!(layout.place_of(9), old, "named by the map on disk still");
            }
            snapshots = now;
            layout.verify();
        }
        // Some 18 places are free; without a map they last for that many writes.
        assert!(snapshots >= 3, "{recovery:?}: {snapshots}");
    }
}

#[test]
fn recovery_costs_what_its_kind_says() {
    let cost = |recovery| {
        let mut layout = WriteAnywhere::new(WriteAnywhereSetting {
            recovery,
            checkpoint_blocks: 100,
            ..setting(1000, Search::Sweep)
        })
        .unwrap();
        let mut device = Taken::default();
        (0..604).for_each(|block| write(&mut layout, block, &mut device));
        device.0.clear();
        layout.recover(&mut device);
        let of = |purpose| {
            let taken = device.0.iter().filter(|taken| taken.0 == purpose);
            taken.map(|taken| taken.2).sum::<u32>()
        };
        (of(Purpose::RecoveryRead), of(Purpose::RecoveryWrite))
    };
    assert_eq!(cost(CrashRecovery::Scan), (1000, 0));
    // Buffers of 4: checkpoints after 100, 200 ... 600 blocks. One block of map, what was free at
    // the last, 1000 - 2 - 600.
    assert_eq!(cost(CrashRecovery::Checkpoint), (1 + 398, 0));
    assert_eq!(cost(CrashRecovery::Snapshot), (1, 4));
}

#[test]
fn a_full_disk_refuses_and_goes_on_after_a_deletion() {
    for recovery in [CrashRecovery::Scan, CrashRecovery::Checkpoint, CrashRecovery::Snapshot] {
        let mut layout =
            WriteAnywhere::new(WriteAnywhereSetting { recovery, ..setting(40, Search::Sweep) })
                .unwrap();
        layout.ensure_blocks(41);
        let mut device = Taken::default();
        let mut full = 0;
        while layout.write(full, FileBlock { file: 0, block: full }, 0, &mut device).is_ok() {
            full += 1;
        }
        assert!((36..40).contains(&full), "{full} blocks fit");
        // Updates always find a place.
        for block in (0..full).rev() {
            write(&mut layout, block, &mut device);
        }
        layout.delete(7, &mut device);
        write(&mut layout, full, &mut device);
        layout.sync_all(&mut device).unwrap();
        layout.verify();
    }
}
