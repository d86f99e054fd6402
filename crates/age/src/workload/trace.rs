//! A workload from a trace of file operations (agewell's Parquet form, made of strace output by
//! `agewell trace convert`), and short-lived files from one.
//!
//! Files live in a tree of their own that follows the paths of the trace. What was there before the
//! trace began is made at time zero: every file whose first operation is not its creation, as long
//! as the reads of it reach before it is written again, and every directory above a file. That
//! takes a first pass over the trace.
//!
//! Kept: creations, writes, reads, truncations, deletions, syncs of files, directories made and
//! removed, renames (a directory's files move one by one, because an operation names one file).
//! Left out and counted: opening, closing, attributes, listings, reservations of space, what has no
//! length, and what the tree refuses (removing a directory that is not empty or not there). A
//! creation of a file that is there cuts it to nothing. A write without an offset appends.
//!
//! Cost: O(log n) a row in the number of paths; memory is the paths that are alive.

use std::collections::BTreeMap;
use std::path::Path;

use agewell_core::DAY_NS;
use agewell_trace::{FileOperation, FileOperationBatch, FileOperationTrace, VALUE_MISSING};

use super::live_set::FILE_BYTES_MAX;
use super::short_lived::{ShortFile, ShortLivedDay};
use super::{OperationSink, OperationWriter, SourceFacts, WorkloadFacts};
use crate::AgeError;

/// Makes a workload of the trace `path`.
///
/// # Errors
/// If the trace cannot be read, or as the sink.
pub fn from_trace<S: OperationSink>(path: &Path, sink: S) -> Result<(WorkloadFacts, S), AgeError> {
    let before = Before::find(path)?;
    let mut player = Player::new(sink);
    player.make_before(&before)?;
    let mut trace = FileOperationTrace::open(path)?;
    let mut batch = FileOperationBatch::default();
    while trace.next_batch(&mut batch)? {
        for row in 0..batch.len() {
            player.play(&Row::of(&batch, row))?;
        }
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let start_unix_s = trace.metadata.start_wall_ns.map(|ns| ns.div_euclid(1_000_000_000));
    Ok(player.finish(name, start_unix_s, before.files.len() as u64))
}

/// Files that are made and removed on the same day of the trace, a day at a time, by directory:
/// what Smith & Seltzer (1996, §3.1) took from their traces. Days are counted from its start.
///
/// # Errors
/// If the trace cannot be read or has no such file.
pub fn short_lived_days(path: &Path) -> Result<Vec<ShortLivedDay>, AgeError> {
    let mut trace = FileOperationTrace::open(path)?;
    let mut batch = FileOperationBatch::default();
    // By path: when it was made, its length, and its directory.
    let mut made: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut days: Vec<BTreeMap<String, Vec<ShortFile>>> = Vec::new();
    while trace.next_batch(&mut batch)? {
        for index in 0..batch.len() {
            let row = Row::of(&batch, index);
            match row.operation {
                FileOperation::Create => {
                    made.insert(row.path.to_owned(), (row.time_ns, 0));
                }
                FileOperation::Write => {
                    if let Some((_, bytes)) = made.get_mut(row.path) {
                        *bytes = (*bytes).max(row.reach(*bytes));
                    }
                }
                FileOperation::Rename => {
                    if let (Some(file), Some(path)) = (made.remove(row.path), row.new_path) {
                        made.insert(path.to_owned(), file);
                    }
                }
                FileOperation::Delete => {
                    let Some((create_ns, bytes)) = made.remove(row.path) else { continue };
                    let day = create_ns / DAY_NS;
                    if row.time_ns / DAY_NS != day {
                        continue;
                    }
                    // The days between are those on which something happened.
                    let day = day as usize;
                    if days.len() <= day && day < DAYS_MAX {
                        days.resize(day + 1, BTreeMap::new());
                    }
                    let Some(of_day) = days.get_mut(day) else { continue };
                    of_day.entry(parent(row.path).to_owned()).or_default().push(ShortFile {
                        create_ns: create_ns % DAY_NS,
                        life_ns: row.time_ns - create_ns,
                        bytes,
                    });
                }
                _ => {}
            }
        }
    }
    let days: Vec<ShortLivedDay> = days
        .into_iter()
        .map(|day| ShortLivedDay::new(day.into_values().collect()))
        .filter(|day| day.files() > 0)
        .collect();
    if days.is_empty() {
        return Err(AgeError::Input(format!(
            "{}: no file is made and removed on the same day; give another trace",
            path.display()
        )));
    }
    Ok(days)
}

/// A trace of more than a century is a mangled one.
const DAYS_MAX: usize = 36_500;

/// One row of a trace.
struct Row<'a> {
    time_ns: u64,
    client: u32,
    operation: FileOperation,
    offset: Option<u64>,
    length: Option<u64>,
    path: &'a str,
    new_path: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn of(batch: &'a FileOperationBatch, row: usize) -> Self {
        let known = |value: u64| (value != VALUE_MISSING).then_some(value);
        Self {
            time_ns: batch.time_ns[row],
            client: batch.client[row],
            operation: FileOperation::from_code(batch.operation[row])
                .expect("the reader refuses other codes"),
            offset: known(batch.offset[row]),
            length: known(batch.length[row]),
            path: batch.path[row].trim_end_matches('/'),
            new_path: batch.new_path[row].as_deref().map(|path| path.trim_end_matches('/')),
        }
    }

    /// Where it ends in a file of `bytes` bytes.
    fn reach(&self, bytes: u64) -> u64 {
        let length = self.length.unwrap_or(0);
        self.offset.unwrap_or(bytes).saturating_add(length).min(FILE_BYTES_MAX)
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// What was there before the trace began.
#[derive(Default)]
struct Before {
    /// Files and their length as far as it is known.
    files: BTreeMap<String, u64>,
    /// Directories that are removed or listed without having been made.
    directories: Vec<String>,
}

/// What is known of a path in the first pass.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    /// There before, and not written again.
    Old,
    /// Made in the trace, or gone.
    New,
}

impl Before {
    fn find(path: &Path) -> Result<Self, AgeError> {
        let mut before = Self::default();
        let mut known: BTreeMap<String, Known> = BTreeMap::new();
        let mut trace = FileOperationTrace::open(path)?;
        let mut batch = FileOperationBatch::default();
        while trace.next_batch(&mut batch)? {
            for index in 0..batch.len() {
                before.note(&mut known, &Row::of(&batch, index));
            }
        }
        Ok(before)
    }

    fn note(&mut self, known: &mut BTreeMap<String, Known>, row: &Row<'_>) {
        let unknown = !known.contains_key(row.path);
        match row.operation {
            // What is only looked at may be a directory, or nothing.
            FileOperation::List
            | FileOperation::Open
            | FileOperation::Close
            | FileOperation::Stat
            | FileOperation::Allocate => {}
            FileOperation::Create | FileOperation::MakeDirectory => {
                known.insert(row.path.to_owned(), Known::New);
            }
            FileOperation::RemoveDirectory => {
                if unknown {
                    self.directories.push(row.path.to_owned());
                }
                known.insert(row.path.to_owned(), Known::New);
            }
            FileOperation::Rename if Self::rename_directory(known, row) => {}
            FileOperation::Read
            | FileOperation::Write
            | FileOperation::Truncate
            | FileOperation::Sync
            | FileOperation::Delete
            | FileOperation::Rename => {
                if unknown {
                    known.insert(row.path.to_owned(), Known::Old);
                    self.files.insert(row.path.to_owned(), 0);
                }
                if row.operation == FileOperation::Read && known[row.path] == Known::Old {
                    let bytes = self.files.entry(row.path.to_owned()).or_default();
                    *bytes = (*bytes).max(row.reach(0));
                }
                if matches!(row.operation, FileOperation::Delete | FileOperation::Rename) {
                    known.insert(row.path.to_owned(), Known::New);
                }
                if let (FileOperation::Rename, Some(path)) = (row.operation, row.new_path) {
                    known.insert(path.to_owned(), Known::New);
                }
            }
        }
    }

    /// Follows the rename of a path that others lie below; what lay there is known at its new path.
    fn rename_directory(known: &mut BTreeMap<String, Known>, row: &Row<'_>) -> bool {
        let inside = format!("{}/", row.path);
        let below: Vec<String> = known
            .range(inside.clone()..)
            .map(|(path, _)| path.clone())
            .take_while(|path| path.starts_with(&inside))
            .collect();
        let Some(new_path) = row.new_path.filter(|_| !below.is_empty()) else { return false };
        for path in below {
            known.insert(format!("{new_path}{}", &path[row.path.len()..]), Known::New);
        }
        known.insert(new_path.to_owned(), Known::New);
        true
    }
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    File(u32),
    Directory(u32),
}

struct Player<S> {
    operation_writer: OperationWriter<S>,
    nodes: BTreeMap<String, Node>,
    clients: BTreeMap<u32, u16>,
    looked: u64,
    refused: u64,
}

impl<S: OperationSink> Player<S> {
    fn new(sink: S) -> Self {
        Self {
            operation_writer: OperationWriter::new(sink),
            nodes: BTreeMap::from([(String::new(), Node::Directory(0))]),
            clients: BTreeMap::new(),
            looked: 0,
            refused: 0,
        }
    }

    fn make_before(&mut self, before: &Before) -> Result<(), AgeError> {
        for path in &before.directories {
            self.directory(path)?;
        }
        for (path, &bytes) in &before.files {
            // A path that is a directory of other files is none itself: its operations will show.
            let inside = format!("{path}/");
            let next = before.files.range(inside.clone()..).next();
            if next.is_some_and(|(next, _)| next.starts_with(&inside)) || path.is_empty() {
                self.directory(path)?;
                continue;
            }
            self.file(path, bytes)?;
        }
        Ok(())
    }

    /// The directory at `path`, made with those above it; a file there gives way.
    fn directory(&mut self, path: &str) -> Result<u32, AgeError> {
        match self.nodes.get(path) {
            Some(&Node::Directory(number)) => return Ok(number),
            Some(&Node::File(file)) => {
                self.nodes.remove(path);
                self.operation_writer.delete(file)?;
            }
            None => {}
        }
        let above = self.directory(parent(path))?;
        let number = self.operation_writer.make_directory(above)?;
        self.nodes.insert(path.to_owned(), Node::Directory(number));
        Ok(number)
    }

    /// The file at `path`, made of `bytes` bytes if it is not there; none where a directory is.
    fn file(&mut self, path: &str, bytes: u64) -> Result<Option<u32>, AgeError> {
        match self.nodes.get(path) {
            Some(&Node::File(file)) => Ok(Some(file)),
            Some(Node::Directory(_)) => Ok(None),
            None => {
                let directory = self.directory(parent(path))?;
                let file = self.operation_writer.create_whole(directory, bytes)?;
                self.nodes.insert(path.to_owned(), Node::File(file));
                Ok(Some(file))
            }
        }
    }

    fn play(&mut self, row: &Row<'_>) -> Result<(), AgeError> {
        self.operation_writer.set_time(row.time_ns);
        let next = self.clients.len().min(usize::from(u16::MAX)) as u16;
        let stream = *self.clients.entry(row.client).or_insert(next);
        self.operation_writer.set_stream(stream);
        let there = self.nodes.get(row.path).copied();
        match (row.operation, there) {
            (
                FileOperation::Open
                | FileOperation::Close
                | FileOperation::Stat
                | FileOperation::List
                | FileOperation::Allocate,
                _,
            ) => {
                self.looked += 1;
                Ok(())
            }
            (FileOperation::MakeDirectory, None) => self.directory(row.path).map(|_| ()),
            (FileOperation::RemoveDirectory, Some(Node::Directory(number)))
                if number != 0 && self.operation_writer.live_set().entries(number) == 0 =>
            {
                self.nodes.remove(row.path);
                self.operation_writer.remove_directory(number)
            }
            (FileOperation::Create, Some(Node::File(file))) => {
                self.operation_writer.truncate(file, 0)
            }
            (FileOperation::Create, None) => self.file(row.path, 0).map(|_| ()),
            (FileOperation::Delete, Some(Node::File(file))) => {
                self.nodes.remove(row.path);
                self.operation_writer.delete(file)
            }
            (FileOperation::Rename, Some(node)) => self.rename(row, node),
            (FileOperation::Sync, Some(Node::File(file))) => self.operation_writer.sync_file(file),
            (
                FileOperation::Write | FileOperation::Read | FileOperation::Truncate,
                Some(Node::File(_)) | None,
            ) => {
                let Some(file) = self.file(row.path, 0)? else { return Ok(()) };
                self.move_bytes(row, file)
            }
            _ => {
                self.refused += 1;
                Ok(())
            }
        }
    }

    fn move_bytes(&mut self, row: &Row<'_>, file: u32) -> Result<(), AgeError> {
        let bytes = self.operation_writer.live_set().file_bytes(file).expect("it is there");
        match (row.operation, row.length) {
            (FileOperation::Truncate, Some(length)) => self.operation_writer.truncate(file, length),
            (FileOperation::Write, Some(length)) if length > 0 => {
                self.operation_writer.write(file, row.offset.unwrap_or(bytes), length)
            }
            (FileOperation::Read, Some(length)) if length > 0 => {
                self.operation_writer.read(file, row.offset.unwrap_or(0), length)
            }
            _ => {
                self.looked += 1;
                Ok(())
            }
        }
    }

    fn rename(&mut self, row: &Row<'_>, node: Node) -> Result<(), AgeError> {
        let inside = format!("{}/", row.path);
        let Some(path) = row.new_path.filter(|path| {
            // Into itself, or onto itself, changes nothing.
            !path.is_empty() && *path != row.path && !path.starts_with(&inside)
        }) else {
            self.refused += 1;
            return Ok(());
        };
        match (node, self.nodes.get(path).copied()) {
            (Node::File(file), there @ (None | Some(Node::File(_)))) => {
                if let Some(Node::File(other)) = there {
                    self.operation_writer.delete(other)?;
                }
                self.nodes.remove(row.path);
                let directory = self.directory(parent(path))?;
                self.operation_writer.rename(file, directory)?;
                self.nodes.insert(path.to_owned(), node);
                Ok(())
            }
            (Node::Directory(number), None) if number != 0 => self.move_tree(row.path, path),
            _ => {
                self.refused += 1;
                Ok(())
            }
        }
    }

    /// Moves a directory: makes it and those below it again, moves the files, removes the old ones.
    fn move_tree(&mut self, from: &str, to: &str) -> Result<(), AgeError> {
        let inside = format!("{from}/");
        let mut moved: Vec<(String, Node)> = self
            .nodes
            .get_key_value(from)
            .map(|(path, node)| (path.clone(), *node))
            .into_iter()
            .collect();
        let below = self.nodes.range(inside.clone()..);
        moved.extend(
            below
                .take_while(|(path, _)| path.starts_with(&inside))
                .map(|(path, node)| (path.clone(), *node)),
        );
        // Parents come before what is in them: a path is a prefix of those below it.
        for (path, node) in &moved {
            let target = format!("{to}{}", &path[from.len()..]);
            match *node {
                Node::Directory(_) => {
                    self.directory(&target)?;
                }
                Node::File(file) => {
                    let directory = self.directory(parent(&target))?;
                    self.operation_writer.rename(file, directory)?;
                    self.nodes.insert(target, *node);
                }
            }
        }
        for (path, node) in moved.iter().rev() {
            self.nodes.remove(path);
            if let Node::Directory(number) = *node {
                self.operation_writer.remove_directory(number)?;
            }
        }
        Ok(())
    }

    fn finish(self, name: String, start: Option<i64>, before: u64) -> (WorkloadFacts, S) {
        let mut notes = BTreeMap::new();
        for (note, count) in [
            ("files that were there before the trace", before),
            ("operations that move no data left out", self.looked),
            ("operations that the tree refuses left out", self.refused),
        ] {
            if count > 0 {
                notes.insert(note.to_owned(), count);
            }
        }
        self.operation_writer.finish(SourceFacts {
            source: "trace".to_owned(),
            start_unix_s: start,
            parameters: BTreeMap::from([("trace".to_owned(), name.into())]),
            notes,
            ..SourceFacts::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use agewell_trace::{FileOperationWriter, TraceMetadata};
    use proptest::prelude::*;

    use super::*;
    use crate::workload::slow_rules::walk;
    use crate::{Action, Operation};

    const HOUR_NS: u64 = 3_600_000_000_000;

    /// A row: time in hours, client, operation, path, and where and how much, or the new path.
    type Line<'a> = (u64, u32, FileOperation, &'a str, Option<(u64, u64)>, Option<&'a str>);

    fn write(folder: &Path, lines: &[Line<'_>]) -> PathBuf {
        let path = folder.join("t.parquet");
        let mut writer = FileOperationWriter::create(&path).expect("a temporary folder");
        let mut batch = FileOperationBatch::default();
        for &(hour, client, operation, name, place, new_path) in lines {
            batch.time_ns.push(hour * HOUR_NS);
            batch.finish_ns.push(VALUE_MISSING);
            batch.client.push(client);
            batch.operation.push(operation as u8);
            batch.file.push(0);
            batch.directory.push(0);
            batch.offset.push(place.map_or(VALUE_MISSING, |place| place.0));
            batch.length.push(place.map_or(VALUE_MISSING, |place| place.1));
            batch.path.push(name.to_owned());
            batch.new_path.push(new_path.map(ToOwned::to_owned));
        }
        writer.write(&batch).expect("a temporary folder");
        writer.finish(&TraceMetadata::default()).expect("a temporary folder");
        path
    }

    fn play(lines: &[Line<'_>]) -> (WorkloadFacts, Vec<Operation>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        from_trace(&write(folder.path(), lines), Vec::new()).expect("a valid trace")
    }

    // A short trace becomes exactly these operations: what was there before is made first.
    #[test]
    fn a_trace_becomes_operations() {
        use FileOperation as F;
        let (facts, operations) = play(&[
            (1, 7, F::Open, "/d/old", None, None),
            (1, 7, F::Read, "/d/old", Some((1_000, 500)), None),
            (2, 7, F::Write, "/d/old", Some((0, 10)), None),
            (2, 9, F::Create, "/d/new", None, None),
            (3, 9, F::Write, "/d/new", Some((0, 100)), None),
            (3, 9, F::Write, "/d/new", Some((VALUE_MISSING, 50)), None),
            (4, 9, F::Rename, "/d/new", None, Some("/d/old")),
            (5, 9, F::Truncate, "/d/old", Some((0, 20)), None),
            (5, 9, F::Sync, "/d/old", None, None),
            (6, 7, F::Rename, "/d", None, Some("/e")),
            (7, 7, F::Delete, "/e/old", None, None),
            (8, 7, F::RemoveDirectory, "/e", None, None),
            (8, 7, F::RemoveDirectory, "/none", None, None),
        ]);
        let done: Vec<(Action, u32, u32, u64, u64, u16)> = operations
            .iter()
            .map(|step| {
                let (offset, size) = (step.offset_bytes, step.size_bytes);
                (step.action, step.file, step.directory, offset, size, step.stream)
            })
            .collect();
        assert_eq!(
            done,
            [
                (Action::MakeDirectory, 1, 0, 0, 0, 0),
                (Action::MakeDirectory, 2, 0, 0, 0, 0),
                (Action::Create, 0, 2, 0, 0, 0),
                (Action::Write, 0, 2, 0, 1_500, 0),
                (Action::Read, 0, 2, 1_000, 500, 0),
                (Action::Write, 0, 2, 0, 10, 0),
                (Action::Create, 1, 2, 0, 0, 1),
                (Action::Write, 1, 2, 0, 100, 1),
                (Action::Write, 1, 2, 100, 50, 1),
                (Action::Delete, 0, 2, 0, 0, 1),
                (Action::Rename, 1, 2, 0, 0, 1),
                (Action::Truncate, 1, 2, 20, 0, 1),
                (Action::SyncFile, 1, 2, 0, 0, 1),
                (Action::MakeDirectory, 3, 0, 0, 0, 0),
                (Action::Rename, 1, 3, 0, 0, 0),
                (Action::RemoveDirectory, 2, 0, 0, 0, 0),
                (Action::Delete, 1, 3, 0, 0, 0),
                (Action::RemoveDirectory, 3, 0, 0, 0, 0),
                (Action::RemoveDirectory, 1, 0, 0, 0, 0),
            ]
        );
        assert_eq!(facts.notes["files that were there before the trace"], 1);
    }

    // Files made and removed on one day are found by day and directory, with their lengths.
    #[test]
    fn short_lived_files_are_found() {
        use FileOperation as F;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = write(
            folder.path(),
            &[
                (1, 0, F::Create, "/a/1", None, None),
                (1, 0, F::Write, "/a/1", Some((0, 100)), None),
                (2, 0, F::Create, "/a/2", None, None),
                (3, 0, F::Delete, "/a/1", None, None),
                (4, 0, F::Create, "/b/1", None, None),
                (5, 0, F::Rename, "/b/1", None, Some("/b/2")),
                (6, 0, F::Write, "/b/2", Some((50, 7)), None),
                (9, 0, F::Delete, "/b/2", None, None),
                (10, 0, F::Create, "/late", None, None),
                (30, 0, F::Delete, "/late", None, None),
                (31, 0, F::Create, "/c", None, None),
                (32, 0, F::Delete, "/c", None, None),
                (33, 0, F::Delete, "/a/2", None, None),
            ],
        );
        let days = short_lived_days(&path).expect("it has some");
        let file = |create: u64, life: u64, bytes| ShortFile {
            create_ns: create * HOUR_NS,
            life_ns: life * HOUR_NS,
            bytes,
        };
        assert_eq!(days.len(), 2);
        assert_eq!(days[0].directories, [vec![file(1, 2, 100)], vec![file(4, 5, 57)]]);
        assert_eq!(days[1].directories, [vec![file(7, 1, 0)]]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        // Whatever a trace says, the result keeps the rules.
        #[test]
        fn any_trace_keeps_the_rules(
            rows in prop::collection::vec(
                (0..14_u8, "(/[ab]){1,3}", "(/[ab]){0,3}", 0..3_u64, 0..3_u64, 0..4_u32), 1..60),
        ) {
            let mut hour = 0;
            let lines: Vec<Line<'_>> = rows
                .iter()
                .map(|(code, path, new_path, step, bytes, client)| {
                    hour += step;
                    let operation = FileOperation::from_code(*code).expect("one of fourteen");
                    let new_path =
                        (operation == FileOperation::Rename).then_some(new_path.as_str());
                    (hour, *client, operation, path.as_str(), Some((*bytes, *bytes)), new_path)
                })
                .collect();
            let (_, operations) = play(&lines);
            walk(&operations).map_err(TestCaseError::fail)?;
        }
    }
}
