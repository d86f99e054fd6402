//! What holds for every workload: the rules, the file, and mangled files.

use std::path::Path;

use proptest::prelude::*;
use tempfile::tempdir;

use super::slow_rules::walk;
use super::{LiveSet, OperationSink, OperationWriter, SourceFacts, WorkloadReader, WorkloadWriter};
use crate::{Action, Operation};

/// A step of a random workload; numbers are taken modulo what is alive.
#[derive(Debug, Clone, Copy)]
struct Step {
    kind: u8,
    pick: u32,
    other: u32,
    bytes: u64,
}

fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (0..12_u8, any::<u32>(), any::<u32>(), 0..100_000_u64)
        .prop_map(|(kind, pick, other, bytes)| Step { kind, pick, other, bytes });
    proptest::collection::vec(step, 0..count)
}

/// Plays random steps through an operation writer, so that every operation keeps the rules.
fn play<S: OperationSink>(steps: &[Step], sink: S) -> (super::WorkloadFacts, S) {
    let mut operation_writer = OperationWriter::new(sink);
    let mut directories = vec![0_u32];
    let mut files: Vec<u32> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        operation_writer.set_time(index as u64 / 3 * 1_000_000_007);
        operation_writer.set_stream(step.other as u16 % 3);
        let directory = directories[step.other as usize % directories.len()];
        let file = (!files.is_empty()).then(|| step.pick as usize % files.len());
        let done = match (step.kind, file) {
            (0..=2, _) | (_, None) => {
                operation_writer.create(directory).map(|file| files.push(file))
            }
            (3 | 4, Some(file)) => operation_writer.write(files[file], step.bytes / 2, step.bytes),
            (5, Some(file)) => operation_writer.truncate(files[file], step.bytes),
            (6 | 7, Some(file)) => operation_writer.delete(files.swap_remove(file)),
            (8, _) => operation_writer.make_directory(directory).map(|made| directories.push(made)),
            (9, _) => {
                if directory != 0 && operation_writer.live_set().entries(directory) == 0 {
                    directories.retain(|&kept| kept != directory);
                    operation_writer.remove_directory(directory)
                } else {
                    operation_writer.sync()
                }
            }
            (10, Some(file)) => operation_writer.rename(files[file], directory),
            (_, Some(file)) => operation_writer
                .read(files[file], 0, step.bytes)
                .and_then(|()| operation_writer.sync_file(files[file])),
        };
        done.expect("memory and files in a temporary folder take everything");
    }
    let source = SourceFacts { source: "random".to_owned(), ..SourceFacts::default() };
    operation_writer.finish(source)
}

fn write(path: &Path, steps: &[Step]) -> Vec<u8> {
    let writer = WorkloadWriter::create(path).expect("a temporary folder");
    let (facts, writer) = play(steps, writer);
    writer.finish(&facts).expect("a temporary folder");
    std::fs::read(path).expect("just written")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // The fast live_set and the slow walk agree on what is alive after any valid workload.
    #[test]
    fn the_ledger_keeps_the_rules_and_counts_as_the_slow_walk(steps in steps(400)) {
        let (facts, operations) = play(&steps, Vec::new());
        let remains = walk(&operations).expect("the operation_writer keeps the rules");
        let live: u64 = remains.files.values().map(|(_, bytes)| bytes).sum();
        prop_assert_eq!(facts.operations, operations.len() as u64);
        prop_assert_eq!(facts.live_bytes, live);
        prop_assert_eq!(facts.live_files, remains.files.len() as u64);
        prop_assert_eq!(facts.peak_live_bytes, remains.peak_bytes);
        prop_assert_eq!(facts.live_directories, remains.directories.len() as u64 + 1);
    }

    // With one field of one operation changed at random, both find the same first broken rule.
    #[test]
    fn the_census_refuses_what_the_slow_walk_refuses(
        steps in steps(120), place in any::<prop::sample::Index>(), field in 0..5_u8,
        value in 0..40_u32,
    ) {
        let (_, mut operations) = play(&steps, Vec::new());
        prop_assume!(!operations.is_empty());
        let changed = &mut operations[place.index(steps.len().max(1)).min(steps.len() - 1)];
        match field {
            0 => changed.file = value,
            1 => changed.directory = value,
            2 => changed.action = Action::ALL[value as usize % Action::ALL.len()],
            3 => changed.time_ns = u64::from(value) * 1_000_000_007,
            _ => changed.size_bytes = u64::from(value),
        }
        let mut live_set = LiveSet::default();
        let refused = operations.iter().position(|operation| live_set.apply(operation).is_err());
        let slow = (1..=operations.len()).position(|end| walk(&operations[..end]).is_err());
        prop_assert_eq!(refused, slow);
    }

    // What is written is read back, and the same steps give the same bytes.
    #[test]
    fn a_file_holds_what_was_written(steps in steps(300)) {
        let folder = tempdir().expect("a temporary folder");
        let path = folder.path().join("w.parquet");
        let bytes = write(&path, &steps);
        prop_assert_eq!(&bytes, &write(&folder.path().join("again.parquet"), &steps));
        let (facts, operations) = play(&steps, Vec::new());
        let mut reader = WorkloadReader::open(&path).expect("just written");
        prop_assert_eq!(reader.facts(), &facts);
        prop_assert_eq!(reader.read_all().expect("just written"), operations);
    }

    // A mangled file gives one line or the same operations, never a panic.
    #[test]
    fn a_mangled_file_is_refused_in_one_line(
        steps in steps(200), place in any::<prop::sample::Index>(), byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let folder = tempdir().expect("a temporary folder");
        let path = folder.path().join("w.parquet");
        let mut bytes = write(&path, &steps);
        let place = place.index(bytes.len());
        if cut { bytes.truncate(place) } else { bytes[place] = byte }
        std::fs::write(&path, &bytes).expect("a temporary folder");
        let read = WorkloadReader::open(&path).and_then(|mut reader| reader.read_all());
        match read {
            Ok(operations) => prop_assert!(walk(&operations).is_ok()),
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
        }
    }
}

fn refused(operations: &[Operation]) -> String {
    let folder = tempdir().expect("a temporary folder");
    let path = folder.path().join("w.parquet");
    let mut writer = WorkloadWriter::create(&path).expect("a temporary folder");
    for operation in operations {
        writer.push(operation).expect("a temporary folder");
    }
    writer.finish(&super::WorkloadFacts::default()).expect("a temporary folder");
    let mut reader = WorkloadReader::open(&path).expect("just written");
    reader.read_all().expect_err("it breaks a rule").to_string()
}

const CREATE: Operation = Operation {
    time_ns: 5,
    file: 0,
    directory: 0,
    offset_bytes: 0,
    size_bytes: 0,
    stream: 0,
    action: Action::Create,
};

// The error of a reader names the file, the operation and the rule.
#[test]
fn a_file_that_breaks_a_rule_is_refused_at_its_operation() {
    let twice = refused(&[CREATE, CREATE]);
    assert!(twice.contains("w.parquet: operation 2: file 0 is made but is there"), "{twice}");
    let far = refused(&[Operation { file: 4_000_000_000, ..CREATE }]);
    assert!(far.contains("operation 1: number 4000000000 comes before lower ones"), "{far}");
    let huge = Operation { action: Action::Write, size_bytes: u64::MAX, offset_bytes: 1, ..CREATE };
    assert!(refused(&[CREATE, huge]).contains("operation 2: file 0 becomes too large"));
    let much = Operation { size_bytes: 1 << 56, offset_bytes: 0, ..huge };
    let sum = refused(&[&[CREATE][..], &[much; 300][..]].concat());
    assert!(sum.contains("operation 257: file 0 becomes too large"), "{sum}");
    let fewer = refused(&[CREATE]);
    assert!(fewer.contains("its facts say 0 operations, its operations make 1"), "{fewer}");
}

// A path that is no workload is refused with what to do.
#[test]
fn another_file_is_refused() {
    let folder = tempdir().expect("a temporary folder");
    let path = folder.path().join("x.parquet");
    let open = || WorkloadReader::open(&path).err().map(|error| error.to_string());
    assert!(open().expect("absent").contains("cannot be opened"));
    std::fs::write(&path, b"no parquet at all").expect("a temporary folder");
    let text = open().expect("no parquet");
    assert!(text.contains("give a workload file of agewell"), "{text}");
}
