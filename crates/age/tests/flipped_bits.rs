//! A flipped bit in any file of tables is found.

use std::path::Path;

use agewell_trace::check_parquet;

use agewell_age::replay::{SeriesRow, write_series};
use agewell_age::workload::{
    LiveSet, OperationSink, SourceFacts, WorkloadFacts, WorkloadReader, WorkloadWriter,
};
use agewell_age::{
    Action, Extent, ExtentFlags, FileKind, FileSystemFacts, FreeExtent, Operation, Snapshot,
    SnapshotFile,
};
use agewell_snapshot::columns;
use agewell_testkit::set_byte;

/// Flips two bits of each byte of the file `path` in turn: each is found, and `read` gives an
/// error or what it gives for the sound file.
fn each_flip<T: PartialEq + std::fmt::Debug>(
    path: &Path,
    read: impl Fn(&Path) -> Result<T, agewell_age::AgeError>,
) {
    let expected = read(path).expect("it was written by us");
    let bytes = std::fs::read(path).expect("it was written");
    for (at, &byte) in bytes.iter().enumerate() {
        for bit in [at % 8, (at + 3) % 8] {
            set_byte(path, at, byte ^ 1 << bit);
            assert!(check_parquet(path).is_err(), "bit {bit} of byte {at}");
            if let Ok(read) = read(path) {
                assert_eq!(read, expected, "bit {bit} of byte {at}");
            }
        }
        set_byte(path, at, byte);
    }
}

#[test]
fn a_flipped_bit_in_a_snapshot_is_found() {
    let folder = tempfile::tempdir().expect("a place for files");
    let path = folder.path().join("snapshot.parquet");
    let extent = |number: u64| Extent {
        logical_bytes: 0,
        physical_bytes: number * 8192,
        length_bytes: 4096,
        flags: ExtentFlags::default(),
    };
    let file = |number: u32| SnapshotFile {
        inode: u64::from(number) + 1,
        size_bytes: 4000,
        first_extent: number,
        extents: 1,
        kind: FileKind::Regular,
        links: 1,
        birth_ns: 5,
        change_ns: 6,
        modify_ns: 7,
        directory: 1,
        readdir_rank: number,
        name_rank: number,
    };
    let snapshot = Snapshot {
        facts: FileSystemFacts {
            kind: "ext4".to_owned(),
            block_bytes: 4096,
            fragment_bytes: 4096,
            total_bytes: 1 << 20,
            free_bytes: 4096,
            free_map: true,
            ..FileSystemFacts::default()
        },
        files: (0..6).map(file).collect(),
        extents: (1..7).map(extent).collect(),
        free: vec![FreeExtent { physical_bytes: 1 << 19, length_bytes: 4096 }],
        ..Snapshot::default()
    };
    columns::write(&snapshot, &path).expect("room");
    each_flip(&path, columns::read);
}

#[test]
fn a_flipped_bit_in_a_workload_is_found() {
    let folder = tempfile::tempdir().expect("a place for files");
    let path = folder.path().join("workload.parquet");
    let mut writer = WorkloadWriter::create(&path).expect("a place for files");
    let mut live_set = LiveSet::default();
    for file in 0..9 {
        let operation = Operation {
            time_ns: u64::from(file) * 1000,
            file,
            directory: 0,
            offset_bytes: 0,
            size_bytes: 0,
            stream: 0,
            action: Action::Create,
        };
        let write = Operation { size_bytes: 100, action: Action::Write, ..operation };
        for operation in [operation, write] {
            live_set.apply(&operation).expect("it keeps the rules");
            writer.push(&operation).expect("room");
        }
    }
    writer.finish(&WorkloadFacts::new(SourceFacts::default(), &live_set)).expect("room");
    each_flip(&path, |path| {
        let mut reader = WorkloadReader::open(path)?;
        let operations = reader.read_all()?;
        Ok((reader.facts().clone(), operations))
    });
}

#[test]
fn a_flipped_bit_in_a_series_is_found() {
    let folder = tempfile::tempdir().expect("a place for files");
    let path = folder.path().join("series.parquet");
    let row = |day| SeriesRow { day, ..SeriesRow::default() };
    write_series(&path, &[row(0), row(1)], "{}".to_owned()).expect("room");
    each_flip(&path, |_| Ok(()));
}
