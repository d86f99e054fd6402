//! Parts and repetitions of a small trace that is written here.

use std::path::Path;

use agewell_trace::{FileOperationWriter, TraceMetadata, VALUE_MISSING};

use super::*;

const BLOCK: u64 = 4096;

/// An operation: time, what, file (and its directory), first block and blocks.
type Row = (u64, FileOperation, u32, u64, u64);

/// Three parts, `marks/a`, `marks/b` and `marks/end`, below which another directory is made.
const ROWS: &[Row] = &[
    (0, FileOperation::Read, 0, 0, 10),
    (5, FileOperation::Write, 1, 0, 4),
    (10, FileOperation::MakeDirectory, 100, 0, 0),
    (11, FileOperation::Read, 0, 3, 2),
    (12, FileOperation::Write, 0, 10, 2),
    (13, FileOperation::MakeDirectory, 103, 0, 0),
    (14, FileOperation::Delete, 1, 0, 0),
    (20, FileOperation::MakeDirectory, 101, 0, 0),
    (21, FileOperation::Read, 0, 0, 12),
    (25, FileOperation::Write, 2, 0, 3),
    (26, FileOperation::Delete, 2, 0, 0),
    (30, FileOperation::MakeDirectory, 102, 0, 0),
    (31, FileOperation::Read, 3, 7, 1),
    (40, FileOperation::Close, 3, 0, 0),
];

fn path_of(file: u32) -> String {
    match file {
        100 => "marks/a".into(),
        101 => "marks/b".into(),
        102 => "marks/end".into(),
        103 => "other/b".into(),
        _ => format!("data{}/{file}", file % 2),
    }
}

fn write(path: &Path) {
    let mut batch = FileOperationBatch::default();
    for &(time_ns, operation, file, block, blocks) in ROWS {
        let moves = blocks > 0;
        batch.time_ns.push(time_ns);
        batch.finish_ns.push(VALUE_MISSING);
        batch.client.push(7);
        batch.operation.push(operation as u8);
        batch.file.push(file);
        batch.directory.push(500 + file % 2);
        batch.offset.push(if moves { block * BLOCK } else { VALUE_MISSING });
        batch.length.push(if moves { blocks * BLOCK } else { VALUE_MISSING });
        batch.path.push(path_of(file));
        batch.new_path.push(None);
    }
    let mut writer = FileOperationWriter::create(path).unwrap();
    writer.write(&batch).unwrap();
    writer.finish(&TraceMetadata::default()).unwrap();
}

fn read(part: Option<&str>, repeat: u32) -> Result<FilesTraced, RunError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    write(&path);
    FilesTraced::read(FileOperationTrace::open(&path).unwrap(), BLOCK, part, repeat)
}

fn all(mut traced: FilesTraced) -> Vec<(u64, FileAction, u32, u32, u32)> {
    let (mut batch, mut all) = (Vec::new(), Vec::new());
    loop {
        traced.next_batch(&mut batch, 2);
        if batch.is_empty() {
            return all;
        }
        let told = |of: &FileRequest| (of.time.0, of.action, of.file, of.block, of.blocks);
        all.extend(batch.iter().map(told));
    }
}

#[test]
fn a_trace_is_given_whole_with_its_directories() {
    let traced = read(None, 1).unwrap();
    let survey = traced.survey();
    let known = [(0, 10), (3, 8)].map(|(file, blocks)| InitialFile { file, blocks });
    assert_eq!(survey.initial, known);
    assert_eq!((survey.peak_live_blocks, survey.requests), (10 + 8 + 4 + 2, 9));
    assert_eq!([0, 1, 2, 3].map(|file| traced.directory_of(file)), [0, 1, 0, 1]);
    let requests = all(traced);
    assert_eq!(requests.len(), 9);
    assert_eq!(requests[8], (31, FileAction::Read, 3, 7, 1));
}

#[test]
fn a_repetition_follows_on_the_one_before() {
    let requests = all(read(None, 3).unwrap());
    assert_eq!(requests.len(), 27);
    for (index, request) in requests.iter().enumerate() {
        let first = requests[index % 9];
        assert_eq!(request.0, first.0 + index as u64 / 9 * 40);
        assert_eq!((request.1, request.2, request.3), (first.1, first.2, first.3));
    }
}

#[test]
fn a_part_begins_with_what_was_live_there_and_ends_at_the_next_mark_beside_its_own() {
    use FileAction::{Delete, Read, Write};
    let traced = read(Some("a"), 1).unwrap();
    // File 3 is only read later, and is there all the same.
    let known = [(0, 10), (1, 4), (3, 8)].map(|(file, blocks)| InitialFile { file, blocks });
    assert_eq!(traced.survey().initial, known);
    let requests = [(1, Read, 0, 3, 2), (2, Write, 0, 10, 2), (4, Delete, 1, 0, 0)];
    assert_eq!(all(traced), requests);
    let traced = read(Some("marks/b"), 2).unwrap();
    let known = [(0, 12), (3, 8)].map(|(file, blocks)| InitialFile { file, blocks });
    let survey = traced.survey();
    assert_eq!(survey.initial, known);
    assert_eq!((survey.initial_blocks, survey.peak_live_blocks), (20, 23));
    let one = [(1, Read, 0, 0, 12), (5, Write, 2, 0, 3), (6, Delete, 2, 0, 0)];
    let other = one.map(|request| (request.0 + 10, request.1, request.2, request.3, request.4));
    assert_eq!(all(traced), [one, other].concat());
}

#[test]
fn a_mark_that_there_is_not_is_one_line_with_a_hint() {
    let told = |part: &str| read(Some(part), 1).err().unwrap().to_string();
    assert!(told("marks/c").contains("did you mean 'marks/"), "{}", told("marks/c"));
    let other = told("something quite different");
    assert!(other.contains("it makes marks/a, other/b, marks/b, marks/end"), "{other}");
    assert!(!other.contains('\n'));
    let long = read(None, u32::MAX).err();
    assert!(long.is_none(), "forty nanoseconds may be repeated often");
}
