//! Snapshots made by hand, and histories of random snapshots.

use proptest::prelude::*;
use tempfile::{TempDir, tempdir};

use super::*;
use crate::workload::slow_rules::walk;
use crate::{Action, Operation};
use crate::{Extent, ExtentFlags};

const DAY: i64 = DAY_NS as i64;
const HOUR: i64 = DAY / 24;

/// A file: inode, directory, length, times of modification and change.
#[derive(Debug, Clone, Copy)]
struct File {
    inode: u64,
    directory: u64,
    bytes: u64,
    modify_ns: i64,
    change_ns: i64,
}

fn snapshot(taken_ns: i64, directories: &[(u64, u64)], files: &[File]) -> Snapshot {
    let facts = FileSystemFacts {
        kind: "ufs1".to_owned(),
        block_bytes: 8_192,
        fragment_bytes: 1_024,
        total_bytes: 64 << 20,
        free_bytes: 32 << 20,
        group_bytes: 16 << 20,
        taken_ns,
        parameters: BTreeMap::from([("inodes_per_group".to_owned(), "100".to_owned())]),
        ..FileSystemFacts::default()
    };
    let mut snapshot = Snapshot { facts, ..Snapshot::default() };
    let row = |inode, kind, directory| SnapshotFile {
        inode,
        kind,
        links: 1,
        size_bytes: 0,
        birth_ns: NO_TIME,
        change_ns: NO_TIME,
        modify_ns: NO_TIME,
        directory,
        readdir_rank: 0,
        name_rank: 0,
        first_extent: 0,
        extents: 0,
    };
    for &(inode, parent) in directories {
        snapshot.files.push(row(inode, FileKind::Directory, parent));
    }
    for file in files {
        snapshot.files.push(SnapshotFile {
            size_bytes: file.bytes,
            modify_ns: file.modify_ns,
            change_ns: file.change_ns,
            extents: u32::from(file.bytes > 0),
            ..row(file.inode, FileKind::Regular, file.directory)
        });
    }
    snapshot.files.sort_by_key(|file| file.inode);
    let mut at = 0;
    for file in &mut snapshot.files {
        file.first_extent = snapshot.extents.len() as u32;
        if file.extents > 0 {
            let length_bytes = file.size_bytes.next_multiple_of(1_024);
            snapshot.extents.push(Extent {
                logical_bytes: 0,
                physical_bytes: at,
                length_bytes,
                flags: ExtentFlags::default(),
            });
            at += length_bytes;
        }
    }
    snapshot
}

fn save(folder: &TempDir, snapshots: &[Snapshot]) -> Vec<PathBuf> {
    let write = |(index, snapshot): (usize, &Snapshot)| {
        let path = folder.path().join(format!("{index}.parquet"));
        columns::write(snapshot, &path).expect("a temporary folder");
        path
    };
    snapshots.iter().enumerate().map(write).collect()
}

fn file(inode: u64, directory: u64, bytes: u64, changed_ns: i64) -> File {
    File { inode, directory, bytes, modify_ns: changed_ns, change_ns: changed_ns }
}

fn nights() -> [Snapshot; 2] {
    let before = snapshot(
        10 * DAY,
        &[(2, 2), (150, 2), (160, 150)],
        &[
            file(3, 2, 5_000, DAY),
            file(151, 150, 100_000, 2 * DAY),
            file(161, 160, 7, 3 * DAY),
            file(5, 2, 50, 4 * DAY),
        ],
    );
    let after = snapshot(
        11 * DAY,
        &[(2, 2), (150, 2), (170, 2)],
        &[
            // Untouched but for its mode; another; moved; new. 161 and its directory are gone.
            File { change_ns: 10 * DAY + 5 * HOUR, ..file(3, 2, 5_000, DAY) },
            file(151, 150, 90_000, 10 * DAY + 14 * HOUR),
            File { change_ns: 10 * DAY + 15 * HOUR, ..file(5, 170, 50, 4 * DAY) },
            file(171, 170, 300, 10 * DAY + 16 * HOUR),
        ],
    );
    [before, after]
}

fn made(
    parameters: &SnapshotsParameters,
    snapshots: &[Snapshot],
) -> (WorkloadFacts, Vec<Operation>) {
    let folder = tempdir().expect("a temporary folder");
    let paths = save(&folder, snapshots);
    from_snapshots(&paths, parameters, 1, Vec::new()).expect("valid snapshots")
}

// Each kind of change comes at its time, as §3.1 says; a changed mode alone rewrites nothing.
#[test]
fn two_nights_become_exactly_these_operations() {
    let (facts, operations) = made(&SnapshotsParameters::default(), &nights());
    let hour = |operation: &Operation| operation.time_ns / HOUR as u64;
    let first: Vec<(Action, u32, u64)> = operations
        .iter()
        .take_while(|operation| operation.time_ns == 0 && operation.directory != 4)
        .map(|operation| (operation.action, operation.directory, operation.size_bytes))
        .collect();
    // Directories (150 = 1, 160 = 2), then files by the time of their change.
    assert_eq!(
        first,
        [
            (Action::MakeDirectory, 0, 0),
            (Action::MakeDirectory, 1, 0),
            (Action::Create, 0, 0),
            (Action::Write, 0, 5_000),
            (Action::Create, 1, 0),
            (Action::Write, 1, 100_000),
            (Action::Create, 2, 0),
            (Action::Write, 2, 7),
            (Action::Create, 0, 0),
            (Action::Write, 0, 50),
            (Action::MakeDirectory, 0, 0),
        ]
    );
    let rest = &operations[first.len()..];
    let rewritten: Vec<&Operation> = rest.iter().filter(|step| step.directory == 1).collect();
    let actions: Vec<Action> = rewritten.iter().map(|step| step.action).collect();
    assert_eq!(actions, [Action::Delete, Action::Create, Action::Write, Action::RemoveDirectory]);
    assert_eq!(hour(rewritten[0]), 14);
    assert_eq!(rewritten[2].size_bytes, 90_000);
    let moved = rest.iter().find(|step| step.action == Action::Rename).expect("one is moved");
    assert_eq!((hour(moved), moved.directory), (15, 3));
    let new = rest.iter().find(|step| step.action == Action::Create && step.directory == 3);
    assert_eq!(hour(new.expect("one is new")), 16);
    // What is gone went within the activity of the day: from 14 to 16 o'clock.
    let gone = rest.iter().find(|step| step.action == Action::Delete && step.directory == 2);
    assert!((14..=16).contains(&hour(gone.expect("one is gone"))));
    assert_eq!((facts.live_files, facts.groups), (4, None));
    walk(&operations).expect("the rules hold");
}

// With groups each file lies in the directory of its inode's group, whatever the tree says.
#[test]
fn groups_are_those_of_the_inodes() {
    let parameters = SnapshotsParameters { placement: FilePlacement::Groups, ..Default::default() };
    let (facts, operations) = made(&parameters, &nights());
    assert_eq!((facts.groups, facts.directories), (Some(4), 5));
    let writes: Vec<(u32, u64)> = operations
        .iter()
        .filter(|step| step.action == Action::Write)
        .map(|step| (step.directory, step.size_bytes))
        .collect();
    let expected = [(1, 5_000), (2, 100_000), (2, 7), (1, 50), (2, 90_000), (2, 300)];
    assert_eq!(writes, expected);
    let mut unknown = nights();
    unknown[0].facts.parameters.clear();
    let folder = tempdir().expect("a temporary folder");
    let paths = save(&folder, &unknown);
    let error = from_snapshots(&paths, &parameters, 1, Vec::new()).expect_err("unknown");
    assert!(error.to_string().contains("give inodes_per_group"), "{error}");
}

// Short-lived files go to the directory that changes most, shifted to its peak hour, and are gone
// at the end of the day.
#[test]
fn short_lived_files_go_to_the_busiest_directory_at_its_peak() {
    let model = NfsLike { days: 3, directories: 1, life_doublings: 4.0, ..NfsLike::default() };
    let short_lived = ShortLived::NfsLike { files_a_day: 200, mean_bytes: 1_000, model };
    let parameters = SnapshotsParameters { short_lived, ..Default::default() };
    let (facts, operations) = made(&parameters, &nights());
    let (plain, _) = made(&SnapshotsParameters::default(), &nights());
    let short = facts.notes["short-lived files"];
    // Days differ in volume; one of the three is picked.
    assert!((100..400).contains(&short), "{short}");
    assert_eq!(facts.actions["create"], plain.actions["create"] + short);
    assert_eq!(facts.live_bytes, plain.live_bytes);
    // Directory 3 (inode 170) has two changes: a file moved in at 15, one made at 16.
    let mut hours = [0; 24];
    for step in operations.iter().filter(|step| step.action == Action::Create) {
        if step.time_ns > 0 && step.directory == 3 {
            hours[(step.time_ns / HOUR as u64) as usize] += 1;
        }
    }
    let busiest = (0..24).max_by_key(|&hour| hours[hour]);
    assert!(matches!(busiest, Some(15 | 16)), "{hours:?}");
    walk(&operations).expect("the rules hold");
}

// What cannot be a history is refused in one line.
#[test]
fn what_is_no_history_is_refused() {
    let folder = tempdir().expect("a temporary folder");
    let [before, after] = nights();
    let paths = save(&folder, &[after, before]);
    let make = |paths: &[PathBuf]| {
        let made = from_snapshots(paths, &SnapshotsParameters::default(), 1, Vec::new());
        made.expect_err("refused").to_string()
    };
    assert!(make(&paths[..1]).contains("give at least two"));
    assert!(make(&paths).contains("1.parquet: was not taken after the snapshot before it"));
}

/// Random snapshots: which inodes there are, where, how long and how new.
fn random_snapshots() -> impl Strategy<Value = Vec<Snapshot>> {
    let file = (10..40_u64, 0..6_u64, 0..20_000_u64, 0..3_i64, 0..100_i64);
    let one = (
        1..4_i64,
        prop::collection::vec((2..8_u64, 0..8_u64), 0..6),
        prop::collection::vec(file, 0..25),
    );
    prop::collection::vec(one, 2..5).prop_map(|list| {
        let mut taken = 0;
        let make = |(days, directories, files): (i64, Vec<(u64, u64)>, Vec<_>)| {
            taken += days * DAY - HOUR;
            let mut parents = BTreeMap::from([(1, 1)]);
            // Circles and unknown parents too.
            parents.extend(directories);
            let parents: Vec<(u64, u64)> = parents.into_iter().collect();
            let mut unique = BTreeMap::new();
            for (inode, directory, bytes, modify, change) in files {
                let change_ns = taken - change * HOUR;
                let modify_ns = if modify == 0 { NO_TIME } else { modify };
                unique.insert(inode, File { inode, directory, bytes, modify_ns, change_ns });
            }
            let files: Vec<File> = unique.into_values().collect();
            snapshot(taken, &parents, &files)
        };
        list.into_iter().map(make).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    // Any snapshots give a workload that keeps the rules and ends with the files of the last.
    #[test]
    fn any_snapshots_keep_the_rules(
        snapshots in random_snapshots(), groups in any::<bool>(), short in any::<bool>(),
    ) {
        let placement =
            if groups { FilePlacement::Groups } else { FilePlacement::Directories };
        let model = NfsLike { days: 2, directories: 3, ..NfsLike::default() };
        let short_lived = if short {
            ShortLived::NfsLike { files_a_day: 20, mean_bytes: 5_000, model }
        } else {
            ShortLived::None
        };
        let parameters = SnapshotsParameters { placement, short_lived, ..Default::default() };
        let folder = tempdir().expect("a temporary folder");
        let paths = save(&folder, &snapshots);
        let made = from_snapshots(&paths, &parameters, 3, Vec::new());
        let (_, operations) = match made {
            Ok(made) => made,
            // The reader of snapshots has rules of its own, about directories for one.
            Err(error) => {
                prop_assert!(error.to_string().contains("parquet"), "{}", error);
                return Ok(());
            }
        };
        let remains = walk(&operations).map_err(TestCaseError::fail)?;
        let mut lengths: Vec<u64> = remains.files.values().map(|file| file.1).collect();
        lengths.sort_unstable();
        let last = &snapshots[snapshots.len() - 1];
        let regular = last.files.iter().filter(|file| file.kind == FileKind::Regular);
        let mut expected: Vec<u64> = regular.map(|file| file.size_bytes).collect();
        expected.sort_unstable();
        prop_assert_eq!(lengths, expected);
    }
}
