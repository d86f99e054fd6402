//! A journal by example: groups, wraps, checkpoints, and what a crash finds.

mod crash;
mod spied;

use super::*;
use crate::sequential::{Order, Sequential, SequentialSetting};
use crate::taken::Taken;

/// A hundred places, of which each buffer sends four, and a journal of 33 places.
fn layout(place: JournalPlace) -> WriteAhead<Sequential> {
    let inner = Sequential::new(SequentialSetting {
        capacity_blocks: 100,
        clients: 1,
        buffer_blocks: 4,
        order: Order::Written,
    });
    let setting = WriteAheadSetting {
        journaled: Journaled::Full,
        place,
        inner_places: 100,
        place_bytes: 8192,
        block_places: 1,
        journal_places: 33,
        group_places: 4,
        checkpoint_commits: 0,
    };
    let mut layout = WriteAhead::new(setting, inner);
    layout.ensure_blocks(100);
    for block in 0..100 {
        layout.preload(block, FileBlock { file: 0, block }).unwrap();
    }
    layout
}

fn write(layout: &mut WriteAhead<Sequential>, blocks: &[u32], device: &mut Taken) {
    for block in blocks {
        layout.write(*block, FileBlock { file: 0, block: *block }, 0, device).unwrap();
    }
}

#[test]
fn a_commit_is_one_write_and_propagation_is_sorted_and_joined() {
    let mut layout = layout(JournalPlace::Start);
    let mut device = Taken::default();
    // Each commit takes four places and one for its header; half of the journal is 16.
    write(&mut layout, &[70, 3, 41, 4], &mut device);
    write(&mut layout, &[71, 3, 42, 4], &mut device);
    write(&mut layout, &[72, 3, 40, 4], &mut device);
    assert_eq!(device.of(Purpose::Journal), [(1, 4), (6, 4), (11, 4)]);
    assert!(device.of(Purpose::Propagate).is_empty());
    assert_eq!(layout.place_of(3), Place::Memory);
    layout.read(&[3, 4, 5, 6], Purpose::Read, &mut device);
    // Places begin behind the journal.
    assert_eq!(device.of(Purpose::Read), [(33 + 5, 2)]);
    write(&mut layout, &[73, 3, 43, 4], &mut device);
    // Blocks 3 and 4 were written four times and go home once.
    assert_eq!(device.of(Purpose::Propagate), [(33 + 3, 2), (33 + 40, 4), (33 + 70, 4)]);
    assert_eq!(device.of(Purpose::Journal)[3..], [(16, 4), (0, 1)]);
    assert_eq!(layout.place_of(3), Place::Disk(36));
    layout.verify();
}

#[test]
fn the_ring_goes_round_and_what_is_deleted_is_not_propagated() {
    let mut layout = layout(JournalPlace::OwnDisk);
    assert_eq!(layout.second_disk_from(), Some(100));
    let mut device = Taken::default();
    for round in 0..6 {
        write(&mut layout, &[round, 10 + round, 20 + round, 30 + round], &mut device);
    }
    layout.delete(4, &mut device);
    layout.delete(25, &mut device);
    // The fourth commit made the journal half full; the two behind it wait. A crash now comes before
    // the deletions are committed.
    let mut crash = Taken::default();
    layout.recover(&mut crash);
    assert_eq!(crash.of(Purpose::RecoveryRead), [(100, 1), (121, 10)]);
    assert_eq!(crash.of(Purpose::RecoveryWrite), [(4, 2), (14, 2), (24, 2), (34, 2)]);
    device.0.clear();
    // The next transaction would reach beyond the end; what that leaves out makes the journal half
    // full.
    write(&mut layout, &[6, 7, 8, 9], &mut device);
    assert_eq!(device.of(Purpose::Journal), [(101, 4), (100, 1)]);
    assert_eq!(device.of(Purpose::Propagate), [(5, 5), (14, 2), (24, 1), (34, 2)]);
    assert!(!layout.work_ahead(0, &mut device).unwrap(), "nothing waits any more");
    layout.verify();
}

#[test]
fn a_run_that_the_journal_divides_is_two_transfers() {
    let mut layout = layout(JournalPlace::Middle);
    let mut device = Taken::default();
    layout.read(&(48..52).collect::<Vec<_>>(), Purpose::Read, &mut device);
    assert_eq!(device.of(Purpose::Read), [(48, 2), (50 + 33, 2)]);
    write(&mut layout, &[48, 49, 50, 51], &mut device);
    layout.work_ahead(0, &mut device).unwrap();
    assert_eq!(device.of(Purpose::Propagate), [(48, 2), (50 + 33, 2)]);
    assert_eq!(device.of(Purpose::Journal), [(51, 4), (50, 1)]);
}
