//! A version history played into a tree of files, as successive updates of a working copy do it.
//!
//! One commit after another, each at its own time. As `git checkout` does it, what a commit deletes
//! goes first, directories that become empty go with it, and what it adds or changes follows in the
//! order of the list; a change replaces the file (unlink, create, write whole) or, by choice,
//! rewrites it in place (truncate, write whole). `copies` trees are updated in turns, commit by
//! commit, each by a writer (stream) of its own below a directory of its own, so that their files
//! interleave on the device.
//!
//! Differences from a checkout: a working copy sees only the commits at which someone updates it,
//! this one sees each; writes are whole files (the target divides them); names are not kept.
//!
//! Commit times are those of the committers' clocks, which step back now and then; a commit is
//! never earlier than the one before it (the count of such steps is in the notes).
//!
//! Cost: a few array accesses an operation; memory is a few words a path and copy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{OperationSink, OperationWriter, SourceFacts};
use crate::AgeError;

const SECOND_NS: u64 = 1_000_000_000;
const ABSENT: u32 = u32::MAX;

/// How a changed file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rewrite {
    /// Unlink, create, write, as `git checkout` does.
    #[default]
    Replace,
    /// Truncate and write, as an editor that keeps the inode does.
    InPlace,
}

impl Rewrite {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::InPlace => "in-place",
        }
    }
}

/// How a history becomes a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryParameters {
    /// Trees that are updated in turns; at least 1, at most 65,536.
    pub copies: u32,
    /// How a changed file is written.
    pub rewrite: Rewrite,
    /// Commits between two syncs of everything; 0 for none.
    pub sync_every_commits: u64,
    /// Every size is multiplied by this.
    pub scale: f64,
}

impl Default for HistoryParameters {
    fn default() -> Self {
        Self { copies: 1, rewrite: Rewrite::Replace, sync_every_commits: 20, scale: 1.0 }
    }
}

impl HistoryParameters {
    /// Says whether they make sense.
    ///
    /// # Errors
    /// The first one that does not.
    pub fn check(&self) -> Result<(), AgeError> {
        if self.copies == 0 || self.copies > 1 << 16 {
            return Err(AgeError::Input(format!(
                "copies = {}: must be from 1 to 65,536",
                self.copies
            )));
        }
        // Beyond a million times, sizes of real files leave the range of any file system.
        if !(self.scale > 0.0 && self.scale <= 1e6) {
            return Err(AgeError::Input(format!(
                "scale = {}: must be above 0 and at most 1,000,000",
                self.scale
            )));
        }
        Ok(())
    }

    /// As parameters of [`SourceFacts`].
    pub(crate) fn described(&self) -> BTreeMap<String, serde_json::Value> {
        BTreeMap::from([
            ("copies".to_owned(), json!(self.copies)),
            ("rewrite".to_owned(), json!(self.rewrite.name())),
            ("sync_every_commits".to_owned(), json!(self.sync_every_commits)),
            ("scale".to_owned(), json!(self.scale)),
        ])
    }
}

/// What a commit does to a file; files and directories by the numbers of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It appears with this length, bytes.
    Add { file: u32, size_bytes: u64 },
    /// Its content is another, of this length, bytes.
    Modify { file: u32, size_bytes: u64 },
    /// It goes.
    Delete { file: u32 },
}

/// One working copy.
struct Tree {
    /// The number in the workload of each file of the history, or [`ABSENT`].
    files: Vec<u32>,
    /// The same of its directories; the first is the root of the tree.
    directories: Vec<u32>,
}

/// Plays commits into trees.
pub(crate) struct HistoryPlayer<'a, S> {
    operation_writer: OperationWriter<S>,
    parameters: &'a HistoryParameters,
    trees: Vec<Tree>,
    /// The directory of each file of the history.
    file_directory: Vec<u32>,
    /// The parent of each directory of the history; 0 is the root of a tree.
    directory_parent: Vec<u32>,
    start_unix_s: Option<i64>,
    latest_unix_s: i64,
    commits: u64,
    steps_back: u64,
    adds_of_present: u64,
    changes_of_absent: u64,
}

impl<'a, S: OperationSink> HistoryPlayer<'a, S> {
    /// Begins with empty trees.
    ///
    /// # Errors
    /// If the parameters make no sense, or as the sink.
    pub(crate) fn new(parameters: &'a HistoryParameters, sink: S) -> Result<Self, AgeError> {
        parameters.check()?;
        let mut operation_writer = OperationWriter::new(sink);
        let mut trees = Vec::new();
        for copy in 0..parameters.copies {
            operation_writer.set_stream(copy as u16);
            // One tree lies in the root itself.
            let root =
                if parameters.copies == 1 { 0 } else { operation_writer.make_directory(0)? };
            trees.push(Tree { files: Vec::new(), directories: vec![root] });
        }
        Ok(Self {
            operation_writer,
            parameters,
            trees,
            file_directory: Vec::new(),
            directory_parent: vec![0],
            start_unix_s: None,
            latest_unix_s: i64::MIN,
            commits: 0,
            steps_back: 0,
            adds_of_present: 0,
            changes_of_absent: 0,
        })
    }

    /// A new directory of the history, in `parent`; returns its number.
    pub(crate) fn add_directory(&mut self, parent: u32) -> u32 {
        self.directory_parent.push(parent);
        self.directory_parent.len() as u32 - 1
    }

    /// A new file of the history, in `directory`; returns its number.
    pub(crate) fn add_file(&mut self, directory: u32) -> u32 {
        self.file_directory.push(directory);
        self.file_directory.len() as u32 - 1
    }

    /// The directory of a file of the history.
    pub(crate) fn directory_of(&self, file: u32) -> u32 {
        self.file_directory[file as usize]
    }

    /// The parent of a directory of the history; the root's is itself.
    pub(crate) fn parent_of(&self, directory: u32) -> u32 {
        self.directory_parent[directory as usize]
    }

    /// Plays one commit.
    ///
    /// # Errors
    /// As the sink.
    pub(crate) fn commit(&mut self, unix_s: i64, changes: &[Change]) -> Result<(), AgeError> {
        let start = *self.start_unix_s.get_or_insert(unix_s);
        if unix_s < self.latest_unix_s {
            self.steps_back += 1;
        }
        self.latest_unix_s = self.latest_unix_s.max(unix_s);
        // 2^63 s are more nanoseconds than there are; a mangled time must not wrap.
        let since = i128::from(self.latest_unix_s) - i128::from(start);
        let time_ns = u64::try_from(since * i128::from(SECOND_NS)).map_err(|_| {
            AgeError::Input(format!(
                "commit {}: its time, {unix_s} s, is centuries after the first; correct the input",
                self.commits + 1
            ))
        })?;
        self.operation_writer.set_time(time_ns);
        for tree in 0..self.trees.len() {
            self.operation_writer.set_stream(tree as u16);
            self.update(tree, changes)?;
        }
        self.commits += 1;
        let every = self.parameters.sync_every_commits;
        if every > 0 && self.commits.is_multiple_of(every) {
            self.operation_writer.set_stream(0);
            self.operation_writer.sync()?;
        }
        Ok(())
    }

    fn update(&mut self, tree: usize, changes: &[Change]) -> Result<(), AgeError> {
        let numbers = self.file_directory.len();
        self.trees[tree].files.resize(numbers, ABSENT);
        self.trees[tree].directories.resize(self.directory_parent.len(), ABSENT);
        for change in changes {
            if let Change::Delete { file } = *change {
                self.delete(tree, file)?;
            }
        }
        for change in changes {
            match *change {
                Change::Add { file, size_bytes } => {
                    if self.trees[tree].files[file as usize] != ABSENT {
                        self.adds_of_present += 1;
                    }
                    self.put(tree, file, size_bytes)?;
                }
                Change::Modify { file, size_bytes } => {
                    if self.trees[tree].files[file as usize] == ABSENT {
                        self.changes_of_absent += 1;
                    }
                    self.put(tree, file, size_bytes)?;
                }
                Change::Delete { .. } => {}
            }
        }
        Ok(())
    }

    fn put(&mut self, tree: usize, file: u32, size_bytes: u64) -> Result<(), AgeError> {
        let size_bytes = self.scaled(size_bytes);
        let present = self.trees[tree].files[file as usize];
        if present != ABSENT {
            if self.parameters.rewrite == Rewrite::InPlace {
                self.operation_writer.truncate(present, 0)?;
                return if size_bytes > 0 {
                    self.operation_writer.write(present, 0, size_bytes)
                } else {
                    Ok(())
                };
            }
            self.operation_writer.delete(present)?;
        }
        let directory = self.directory(tree, self.directory_of(file))?;
        self.trees[tree].files[file as usize] =
            self.operation_writer.create_whole(directory, size_bytes)?;
        Ok(())
    }

    fn delete(&mut self, tree: usize, file: u32) -> Result<(), AgeError> {
        let number = std::mem::replace(&mut self.trees[tree].files[file as usize], ABSENT);
        if number == ABSENT {
            self.changes_of_absent += 1;
            return Ok(());
        }
        self.operation_writer.delete(number)?;
        let mut directory = self.directory_of(file);
        // Directories that become empty go too, as git removes them.
        while directory != 0 {
            let number = self.trees[tree].directories[directory as usize];
            if self.operation_writer.live_set().entries(number) > 0 {
                break;
            }
            self.operation_writer.remove_directory(number)?;
            self.trees[tree].directories[directory as usize] = ABSENT;
            directory = self.directory_parent[directory as usize];
        }
        Ok(())
    }

    /// The number of a directory in a tree, made with those above it where it is not there.
    fn directory(&mut self, tree: usize, directory: u32) -> Result<u32, AgeError> {
        let mut missing = Vec::new();
        let mut there = directory;
        while self.trees[tree].directories[there as usize] == ABSENT {
            missing.push(there);
            there = self.directory_parent[there as usize];
        }
        let mut number = self.trees[tree].directories[there as usize];
        for directory in missing.into_iter().rev() {
            number = self.operation_writer.make_directory(number)?;
            self.trees[tree].directories[directory as usize] = number;
        }
        Ok(number)
    }

    fn scaled(&self, size_bytes: u64) -> u64 {
        if self.parameters.scale.to_bits() == 1.0_f64.to_bits() {
            return size_bytes;
        }
        // One multiplication and one rounding: the same everywhere.
        (size_bytes as f64 * self.parameters.scale).round() as u64
    }

    /// Ends the workload.
    pub(crate) fn finish(self, mut source: SourceFacts) -> (super::WorkloadFacts, S) {
        source.start_unix_s = self.start_unix_s;
        source.parameters.extend(self.parameters.described());
        source.notes.insert("commits".to_owned(), self.commits);
        for (note, count) in [
            ("commit times that step back, held at the latest before", self.steps_back),
            ("additions of a file that was there, taken as changes", self.adds_of_present),
            (
                "changes or deletions of a file that was not there, taken as additions or left out",
                self.changes_of_absent,
            ),
        ] {
            if count > 0 {
                source.notes.insert(note.to_owned(), count);
            }
        }
        self.operation_writer.finish(source)
    }
}
