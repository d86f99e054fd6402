//! Orders of recordings.

use agewell_disk::DeviceParameters;
use agewell_snapshot::{Extent, ExtentFlags, FileKind, NO_TIME, Snapshot, SnapshotFile};
use proptest::prelude::*;

use super::{
    ChosenOrder, FileRead, FileReads, Part, RecordedOrder, RecordedRead, SECTOR_BYTES, by_recording,
};

const PAGE: u64 = 4096;

/// A recording that reads whole files, each by a client.
fn reads_of(files: &[u64], sequence: &[(u32, u32)]) -> FileReads {
    // Numbered in the order of first reads.
    let mut numbers: Vec<u32> = Vec::new();
    let mut found = FileReads::default();
    for (file, client) in sequence {
        let number = numbers.iter().position(|known| known == file).unwrap_or_else(|| {
            numbers.push(*file);
            numbers.len() - 1
        });
        let bytes = files[*file as usize];
        found.reads.push(FileRead { file: number as u32, offset_bytes: 0, bytes, client: *client });
    }
    found.file_bytes = numbers.iter().map(|file| files[*file as usize]).collect();
    found.order = numbers;
    found
}

/// The files that are laid, which are whole.
fn files_of(chosen: &ChosenOrder) -> Vec<u32> {
    assert!(chosen.in_parts.is_none() && chosen.parts.iter().all(|part| part.range.is_none()));
    chosen.parts.iter().map(|part| part.file).collect()
}

/// Files of one extent each: where it lies on the device, and how long it is; pages.
fn snapshot_of(extents: &[(u64, u64)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.facts.block_bytes = PAGE as u32;
    for (number, (at, pages)) in extents.iter().enumerate() {
        snapshot.extents.push(Extent {
            logical_bytes: 0,
            physical_bytes: at * PAGE,
            length_bytes: pages * PAGE,
            flags: ExtentFlags::default(),
        });
        snapshot.files.push(SnapshotFile {
            inode: 10 + number as u64,
            kind: FileKind::Regular,
            links: 1,
            size_bytes: pages * PAGE,
            birth_ns: NO_TIME,
            change_ns: NO_TIME,
            modify_ns: NO_TIME,
            directory: 2,
            readdir_rank: 0,
            name_rank: 0,
            first_extent: number as u32,
            extents: 1,
        });
    }
    snapshot
}

proptest! {
    /// Files may share places: each page that is read is read of one file that lies there, the
    /// same each time, and pages where none lies of none.
    #[test]
    fn each_page_is_read_of_one_file_that_lies_there(
        extents in prop::collection::vec((0_u64..40, 1_u64..12), 1..8),
        reads in prop::collection::vec((0_u64..50, 1_u64..10), 1..8),
    ) {
        let snapshot = snapshot_of(&extents);
        let sectors = PAGE / SECTOR_BYTES;
        let asked = reads.iter().map(|(at, pages)| RecordedRead {
            sector: at * sectors,
            sectors: pages * sectors,
            client: 0,
        });
        let found = by_recording(&snapshot, asked);
        let mut pages: Vec<u64> = Vec::new();
        for read in &found.reads {
            let file = found.order[read.file as usize] as usize;
            let (at, length) = extents[file];
            prop_assert!(read.offset_bytes + read.bytes <= length * PAGE);
            let first = at + read.offset_bytes / PAGE;
            pages.extend(first..first + read.bytes / PAGE);
        }
        let lies = |page: &u64| extents.iter().any(|(at, pages)| (*at..at + pages).contains(page));
        let all = reads.iter().flat_map(|(at, pages)| *at..at + pages);
        let expected: Vec<u64> = all.clone().filter(lies).collect();
        prop_assert_eq!(&pages, &expected);
        prop_assert_eq!(found.file_sectors, expected.len() as u64 * sectors);
        let others = all.filter(|page| !lies(page)).count() as u64;
        prop_assert_eq!(found.other_sectors, others * sectors);
    }

    /// Whichever order is taken, it has each file that was read once; it is never slower than that of
    /// first reads, and is that if no file was come back to.
    #[test]
    fn an_order_has_each_file_once_and_is_no_slower(
        files in prop::collection::vec(1_u64..40, 12),
        sequence in prop::collection::vec((0_u32..12, 0_u32..3), 1..200),
        stretch_pages in 1_u64..200,
    ) {
        let files: Vec<u64> = files.iter().map(|pages| pages * PAGE).collect();
        let reads = reads_of(&files, &sequence);
        let chosen = reads.choose(None, stretch_pages * PAGE, true);
        let (mut sorted, mut expected) = (files_of(&chosen), reads.order.clone());
        sorted.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(sorted, expected);
        let came_back = {
            let mut files: Vec<u32> = sequence.iter().map(|read| read.0).collect();
            files.dedup();
            files.len() > reads.order.len()
        };
        prop_assert_eq!(chosen.access_graph_seconds.is_some(), came_back);
        let taken = match chosen.order {
            RecordedOrder::FirstReads => {
                prop_assert_eq!(&files_of(&chosen), &reads.order);
                chosen.first_reads_seconds
            }
            RecordedOrder::AccessGraph => chosen.access_graph_seconds.expect("it was tried"),
        };
        prop_assert!(taken <= chosen.first_reads_seconds);
    }
}

/// Programs of 40 files each, whose first starts were side by side and later ones alone: the order of
/// first reads has their files in turns, the graph each program's together.
#[test]
fn programs_that_once_started_side_by_side_are_put_apart() {
    let files = vec![4 * PAGE; 120];
    let mut sequence: Vec<(u32, u32)> = Vec::new();
    for file in 0..40 {
        sequence.extend((0..3).map(|program| (program * 40 + file, program)));
    }
    for start in 0..4 {
        for program in 0..3 {
            sequence.extend((0..40).map(|file| (program * 40 + file, 10 + 3 * start + program)));
        }
    }
    let reads = reads_of(&files, &sequence);
    assert_eq!(reads.order[..3], [0, 40, 80]);
    let chosen = reads.choose(None, 16 << 20, true);
    assert_eq!(chosen.order, RecordedOrder::AccessGraph);
    let follows = files_of(&chosen).windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!(follows >= 115, "{follows} of 119 files follow the one before: {:?}", chosen.parts);
}

/// What is read once, and in one order, lies in that order.
#[test]
fn a_single_start_lies_as_it_was_read() {
    let files = vec![4 * PAGE; 50];
    let sequence: Vec<(u32, u32)> = (0..50).map(|step| (step * 7 % 50, 1)).collect();
    let chosen = reads_of(&files, &sequence).choose(None, 16 << 20, true);
    assert_eq!(chosen.order, RecordedOrder::FirstReads);
    assert_eq!(chosen.access_graph_seconds, None);
    assert_eq!(files_of(&chosen)[..3], [0, 7, 14]);
}

/// A single recorded occasion on which programs ran side by side, and came back to files: what lies as
/// it was read is read with the fewest ways, so the graph is not taken.
#[test]
fn one_occasion_keeps_the_order_of_first_reads() {
    let files = vec![4 * PAGE; 80];
    let mut sequence: Vec<(u32, u32)> = Vec::new();
    for file in 0..40 {
        sequence.extend([(file, 1), (40 + file, 2)]);
    }
    sequence.push((0, 1));
    let chosen = reads_of(&files, &sequence).choose(None, 16 << 20, true);
    assert!(chosen.access_graph_seconds.is_some_and(|graph| graph > chosen.first_reads_seconds));
    assert_eq!(chosen.order, RecordedOrder::FirstReads);
}

/// A program that jumps within its libraries, with a small file between each and the next.
fn libraries() -> FileReads {
    let mut found = FileReads { block_bytes: PAGE, ..FileReads::default() };
    let mut read = |file, page: u64, pages: u64| {
        let (offset_bytes, bytes) = (page * PAGE, pages * PAGE);
        found.reads.push(FileRead { file, offset_bytes, bytes, client: 1 });
    };
    for library in 0..20 {
        for (page, pages) in [(0, 4), (900, 64), (4, 64), (300, 128)] {
            read(2 * library, page, pages);
        }
        read(2 * library + 1, 0, 2);
    }
    found.order = (0..40).map(|file| 100 + file).collect();
    found.file_bytes = [1000 * PAGE, 2 * PAGE].repeat(20);
    found
}

#[test]
fn libraries_are_laid_as_they_are_read() {
    let chosen = libraries().choose(None, 16 << 20, true);
    let in_parts = chosen.in_parts.expect("ways are saved");
    assert_eq!((in_parts.files, in_parts.parts), (20, 80));
    // Whole, each is jumped in three times, and the small file behind it gone to once.
    assert!((chosen.first_reads_seconds - 81.0).abs() < 1e-9);
    assert!((in_parts.seconds - 1.0).abs() < 1e-9);
    let pages = |part: &Part| part.range.map(|r| (r.from_bytes / PAGE, r.to_bytes / PAGE));
    let told: Vec<_> = chosen.parts[..5].iter().map(|part| (part.file, pages(part))).collect();
    let first = [(0, 4), (900, 964), (4, 68), (300, 428)].map(|range| (100, Some(range)));
    assert_eq!(told[..4], first);
    assert_eq!(told[4], (101, None));
}

#[test]
fn files_stay_whole_where_that_is_asked_for() {
    let chosen = libraries().choose(None, 16 << 20, false);
    assert_eq!(chosen.in_parts, None);
    assert_eq!(files_of(&chosen), (100..140).collect::<Vec<u32>>());
}

/// On flash nothing is gained by it.
#[test]
fn on_flash_files_stay_whole() {
    let devices = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices"));
    let device = |name| DeviceParameters::find(name, devices).expect("it is in the catalogue");
    let parts = |name| libraries().choose(Some(&device(name)), 16 << 20, true).in_parts;
    assert_eq!(parts("samsung-970-pro"), None);
    assert_eq!(parts("seagate-st2000dm006").map(|parts| parts.files), Some(20));
}
