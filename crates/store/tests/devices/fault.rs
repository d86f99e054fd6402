//! Faults: each strikes when it is asked to, and does what it says.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agewell_store::device::{
    CrashDisk, Disk, Fault, FaultDisk, FaultKind, Lasts, MemoryDisk, Piece, When,
};
use proptest::prelude::*;

use crate::plain::{
    Plain, Step, contents, hold_against_plain, refuses_what_is_beyond_the_end, steps,
};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 16;
/// What the system calls an I/O error.
const EIO: i32 = 5;

fn disk(faults: Vec<Fault>) -> FaultDisk<MemoryDisk> {
    FaultDisk::new(MemoryDisk::new(BLOCKS * BLOCK), faults, 7)
}

fn write(disk: &dyn Disk, block: u64, byte: u8) -> std::io::Result<()> {
    disk.write(&[Piece { offset: block * BLOCK, data: &[byte; BLOCK as usize] }])
}

fn read(disk: &dyn Disk, block: u64) -> std::io::Result<Vec<u8>> {
    let mut into = vec![0xA5; BLOCK as usize];
    disk.read(block * BLOCK, &mut into).map(|()| into)
}

proptest! {
    #[test]
    fn without_faults_it_is_the_disk_below(steps in steps(BLOCKS, 5)) {
        hold_against_plain(&disk(Vec::new()), &steps, BLOCK)?;
        hold_against_plain(&disk(Vec::new()).with_room(BLOCKS * BLOCK), &steps, BLOCK)?;
    }

    /// Requests that fail now and then: what they report to have done is done, and nothing else but what
    /// they were asked for has changed.
    #[test]
    fn errors_change_nothing_else(steps in steps(BLOCKS, 5), seed in any::<u64>()) {
        let faults = [FaultKind::ReadError, FaultKind::WriteError, FaultKind::FlushError]
            .map(|kind| Fault::new(kind, When::Chance(1, 5)));
        let disk = FaultDisk::new(MemoryDisk::new(BLOCKS * BLOCK), faults.to_vec(), seed);
        let mut plain = Plain::zeros(BLOCKS * BLOCK);
        let mut failed = 0;
        for step in &steps {
            match step {
                Step::Write(pieces) => {
                    let (first, blocks, seed) = pieces[0];
                    let data = contents(first, (blocks * BLOCK) as usize, seed);
                    let offset = first * BLOCK;
                    if disk.write(&[Piece { offset, data: &data }]).is_ok() {
                        plain.write(offset, &data);
                    } else {
                        plain.discard(offset, data.len() as u64);
                        failed += 1;
                    }
                }
                Step::Read(first, blocks) => {
                    let mut into = vec![0xA5; (blocks * BLOCK) as usize];
                    match disk.read(first * BLOCK, &mut into) {
                        Ok(()) => prop_assert_eq!(plain.difference(first * BLOCK, &into), None),
                        Err(_) => failed += 1,
                    }
                }
                Step::Discard(..) => {}
                Step::Flush => failed += u64::from(disk.flush().is_err()),
            }
        }
        prop_assert_eq!(disk.struck().iter().sum::<u64>(), failed);
        let image = disk.below().image();
        prop_assert_eq!(plain.difference(0, &image), None);
    }
}

#[test]
fn ranges_beyond_the_end_are_refused() {
    refuses_what_is_beyond_the_end(&disk(Vec::new()), BLOCK);
}

#[test]
fn a_schedule_names_the_requests_that_are_met() {
    let disk = disk(vec![
        Fault::new(FaultKind::ReadError, When::At(vec![1, 3])),
        Fault::new(FaultKind::FlushError, When::From(2)),
    ]);
    let failed: Vec<bool> = (0..5).map(|_| read(&disk, 0).is_err()).collect();
    assert_eq!(failed, [false, true, false, true, false]);
    let failed: Vec<bool> = (0..4).map(|_| disk.flush().is_err()).collect();
    assert_eq!(failed, [false, false, true, true]);
    assert_eq!((disk.struck(), disk.requests()), (vec![2, 2], vec![5, 4]));
    disk.set_on(false);
    disk.flush().unwrap();
    assert_eq!(disk.requests(), [5, 4]);
}

#[test]
fn errors_are_those_of_the_system() {
    let always = |kind| Fault::new(kind, When::Always);
    let disk = disk(vec![
        always(FaultKind::ReadError),
        always(FaultKind::WriteError),
        always(FaultKind::FlushError),
    ]);
    for error in
        [read(&disk, 0).unwrap_err(), write(&disk, 0, 1).unwrap_err(), disk.flush().unwrap_err()]
    {
        assert_eq!(error.raw_os_error(), Some(EIO));
    }
}

#[test]
fn an_error_meets_the_range_that_is_named_and_lasts_as_it_is_asked_to() {
    let bad = |lasts| Fault {
        within: 4 * BLOCK..5 * BLOCK,
        lasts,
        ..Fault::new(FaultKind::ReadError, When::At(vec![0]))
    };
    for (lasts, fails_again, fails_when_written) in [
        (Lasts::Once, false, false),
        (Lasts::UntilWritten, true, false),
        (Lasts::ForGood, true, true),
    ] {
        let disk = disk(vec![bad(lasts)]);
        assert!(read(&disk, 3).is_ok() && read(&disk, 4).is_err(), "{lasts:?}");
        assert_eq!(read(&disk, 4).is_err(), fails_again, "{lasts:?}");
        assert!(read(&disk, 5).is_ok(), "{lasts:?}");
        assert_eq!(write(&disk, 4, 1).is_err(), fails_when_written, "{lasts:?}");
        assert_eq!(read(&disk, 4).is_err(), fails_when_written, "{lasts:?}");
    }
}

/// Of the pieces of a write that fails some are there, some not, and one in part.
#[test]
fn a_write_that_fails_leaves_parts() {
    let (mut found_whole, mut found_none, mut found_part) = (false, false, false);
    for seed in 0..200 {
        let faults = vec![Fault::new(FaultKind::WriteError, When::At(vec![1]))];
        let disk = FaultDisk::new(MemoryDisk::new(BLOCKS * BLOCK), faults, seed);
        let data = [1; BLOCK as usize];
        let pieces = [0, 1, 2].map(|block| Piece { offset: block * BLOCK, data: &data });
        disk.write(&pieces).unwrap_err();
        let image = disk.below().image();
        for (number, block) in image.chunks(BLOCK as usize).take(3).enumerate() {
            let sectors = block.chunks(512).filter(|sector| sector[0] == 1).count();
            found_whole |= number != 1 && sectors == 8;
            found_none |= number != 1 && sectors == 0;
            found_part |= number == 1 && (1..8).contains(&sectors);
            assert!(number == 1 || sectors == 0 || sectors == 8);
        }
    }
    assert!(found_whole && found_none && found_part);
}

#[test]
fn a_torn_write_is_a_beginning_that_says_nothing() {
    let mut lengths = std::collections::HashSet::new();
    for seed in 0..100 {
        let faults = vec![Fault::new(FaultKind::TornWrite, When::Always)];
        let disk = FaultDisk::new(MemoryDisk::new(BLOCKS * BLOCK), faults, seed);
        write(&disk, 2, 9).unwrap();
        let block = read(&disk, 2).unwrap();
        let end = block.iter().position(|byte| *byte == 0).expect("something is missing");
        assert!(end % 512 == 0 && block[end..].iter().all(|byte| *byte == 0));
        lengths.insert(end / 512);
    }
    assert_eq!(lengths.len(), 8, "all beginnings of a write of eight sectors");
}

#[test]
fn dropped_and_misdirected_writes_and_misdirected_reads() {
    let dropped = disk(vec![Fault::new(FaultKind::DroppedWrite, When::At(vec![0]))]);
    write(&dropped, 1, 1).unwrap();
    assert!(dropped.below().image().iter().all(|byte| *byte == 0));
    write(&dropped, 1, 1).unwrap();
    assert_eq!(read(&dropped, 1).unwrap(), [1; BLOCK as usize]);
    assert_eq!(dropped.struck(), [1]);

    let misdirected = disk(vec![Fault::new(FaultKind::MisdirectedWrite, When::Always)]);
    for (block, byte) in (0..BLOCKS).cycle().zip(1..200) {
        let before = misdirected.below().image();
        write(&misdirected, block, byte).unwrap();
        let after = misdirected.below().image();
        let changed: Vec<u64> = (0..BLOCKS)
            .filter(|at| {
                let range = (at * BLOCK) as usize..((at + 1) * BLOCK) as usize;
                before[range.clone()] != after[range]
            })
            .collect();
        assert!(changed.len() == 1 && changed[0] != block, "block {block} went to {changed:?}");
    }

    let elsewhere = disk(vec![Fault::new(FaultKind::MisdirectedRead, When::At(vec![BLOCKS]))]);
    for block in 0..BLOCKS {
        write(&elsewhere, block, block as u8).unwrap();
        assert_eq!(read(&elsewhere, block).unwrap()[0], block as u8);
    }
    assert_ne!(read(&elsewhere, 3).unwrap()[0], 3);
}

#[test]
fn a_bit_is_flipped_in_what_is_read_or_on_the_disk() {
    for (lasts, stays) in [(Lasts::Once, false), (Lasts::UntilWritten, true)] {
        let flip = Fault { lasts, ..Fault::new(FaultKind::FlippedBit, When::At(vec![0])) };
        let disk = disk(vec![flip]);
        let ones = |bytes: &[u8]| bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
        assert_eq!(ones(&read(&disk, 1).unwrap()), 1);
        assert_eq!(ones(&read(&disk, 1).unwrap()), u32::from(stays));
        assert_eq!(ones(&disk.below().image()), u32::from(stays));
        write(&disk, 1, 0).unwrap();
        assert_eq!(ones(&disk.below().image()), 0);
    }
}

/// Seen by the disk below: without a flush everything since the one before may be lost.
#[test]
fn a_flush_that_is_ignored_or_fails_does_not_reach_the_disk_below() {
    for (kind, is_ok) in [(FaultKind::IgnoredFlush, true), (FaultKind::FlushError, false)] {
        let faults = vec![Fault::new(kind, When::At(vec![1]))];
        let disk = FaultDisk::new(CrashDisk::new(BLOCKS * BLOCK, 0), faults, 0);
        write(&disk, 0, 1).unwrap();
        disk.flush().unwrap();
        write(&disk, 1, 1).unwrap();
        assert_eq!(disk.flush().is_ok(), is_ok);
        write(&disk, 2, 1).unwrap();
        let recording = disk.below().recording();
        assert_eq!((recording.epochs(), recording.items(1)), (2, 2));
    }
}

#[test]
fn a_disk_that_fills_takes_what_it_has_and_what_is_discarded() {
    let disk = disk(Vec::new()).with_room(3 * BLOCK);
    for block in [5, 6, 7, 5] {
        write(&disk, block, 1).unwrap();
    }
    assert_eq!(write(&disk, 8, 1).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.refused_for_room(), 1);
    write(&disk, 7, 2).unwrap();
    disk.discard(6 * BLOCK, BLOCK).unwrap();
    write(&disk, 8, 1).unwrap();
    assert_eq!(write(&disk, 6, 1).unwrap_err().kind(), ErrorKind::StorageFull);
}

#[test]
fn a_slow_disk_takes_its_time() {
    let slow = Fault::new(FaultKind::Slow(Duration::from_millis(20)), When::At(vec![1, 2]));
    let waited = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&waited);
    let disk = disk(vec![slow]).with_wait(move |delay| {
        counter.fetch_add(delay.as_nanos() as u64, Ordering::Relaxed);
    });
    write(&disk, 0, 1).unwrap();
    read(&disk, 0).unwrap();
    disk.flush().unwrap();
    assert_eq!(waited.load(Ordering::Relaxed), 40_000_000);
    assert_eq!(disk.struck(), [2]);
}

#[test]
fn the_same_seed_is_the_same_faults() {
    let run = |seed| {
        let faults = [FaultKind::TornWrite, FaultKind::DroppedWrite, FaultKind::MisdirectedWrite]
            .map(|kind| Fault::new(kind, When::Chance(1, 4)));
        let disk = FaultDisk::new(MemoryDisk::new(BLOCKS * BLOCK), faults.to_vec(), seed);
        (0..60).for_each(|at| write(&disk, at % BLOCKS, at as u8).unwrap());
        (disk.struck(), disk.below().image())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    assert!(run(1).0.iter().all(|struck| (5..30).contains(struck)), "{:?}", run(1).0);
}
