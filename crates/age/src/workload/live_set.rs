//! What is alive while a workload runs, the rules of [`crate::operation`] checked at every step,
//! and the counts that its facts are made of.
//!
//! Invariants: a file has a directory exactly while it is alive; a directory's entries are the live
//! files and directories in it; live bytes are the sum of the lengths of live files. Cost: O(1) an
//! operation, a handful of array accesses and no allocation but for a number never used before;
//! bound by the cache misses on the file's row.

use std::fmt;

use crate::{Action, Operation};

/// Stands in for the directory of a file or directory that is not alive.
const GONE: u32 = u32::MAX;
/// No file reaches beyond this, bytes: 2^56, far above any file system's limit and low enough that
/// sums stay within 64 bits for the numbers of files that fit in memory. Chosen by us.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 56;

/// A rule of [`crate::operation`] that an operation breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenRule {
    /// The time is before that of the operation before.
    TimeFalls,
    /// The number is beyond the next one that was never used.
    NumberNotDense(u32),
    /// The file is made while it is alive.
    FileAlive(u32),
    /// Something is done to a file that is not alive.
    FileGone(u32),
    /// The directory is made while it is there.
    DirectoryThere(u32),
    /// Something is done in a directory that is not there.
    DirectoryGone(u32),
    /// The file or directory is in another directory than the operation says.
    OtherDirectory(u32),
    /// The directory that is removed is not empty.
    DirectoryNotEmpty(u32),
    /// The root is made or removed.
    Root,
    /// The file would reach beyond 2^56 bytes, or all files or all writes together beyond 2^64.
    TooLarge(u32),
}

impl fmt::Display for BrokenRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeFalls => formatter.write_str("the time falls"),
            Self::NumberNotDense(number) => {
                write!(formatter, "number {number} comes before lower ones were used")
            }
            Self::FileAlive(file) => write!(formatter, "file {file} is made but is there already"),
            Self::FileGone(file) => write!(formatter, "file {file} is not there"),
            Self::DirectoryThere(directory) => {
                write!(formatter, "directory {directory} is made but is there already")
            }
            Self::DirectoryGone(directory) => {
                write!(formatter, "directory {directory} is not there")
            }
            Self::OtherDirectory(number) => {
                write!(formatter, "number {number} is in another directory")
            }
            Self::DirectoryNotEmpty(directory) => {
                write!(formatter, "directory {directory} is removed but is not empty")
            }
            Self::Root => formatter.write_str("the root is neither made nor removed"),
            Self::TooLarge(file) => write!(formatter, "file {file} becomes too large"),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct FileRow {
    bytes: u64,
    directory: u32,
}

#[derive(Debug, Clone, Copy)]
struct DirectoryRow {
    parent: u32,
    entries: u32,
}

/// What is alive, and what was done so far.
#[derive(Debug, Clone)]
pub struct LiveSet {
    files: Vec<FileRow>,
    directories: Vec<DirectoryRow>,
    /// Operations by [`Action`].
    pub counts: [u64; Action::ALL.len()],
    /// Time of the last operation, ns.
    pub latest_ns: u64,
    /// Bytes of all `Write`s.
    pub written_bytes: u64,
    /// Bytes of live files.
    pub live_bytes: u64,
    /// The most they have been.
    pub live_bytes_max: u64,
    /// Live files.
    pub live_files: u64,
    /// The most they have been.
    pub live_files_max: u64,
    /// Live directories, with the root.
    pub live_directories: u64,
    /// One more than the highest stream seen.
    pub streams: u32,
}

impl Default for LiveSet {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            // The root is its own parent.
            directories: vec![DirectoryRow { parent: 0, entries: 0 }],
            counts: [0; Action::ALL.len()],
            latest_ns: 0,
            written_bytes: 0,
            live_bytes: 0,
            live_bytes_max: 0,
            live_files: 0,
            live_files_max: 0,
            live_directories: 1,
            streams: 0,
        }
    }
}

impl LiveSet {
    /// Takes note of `operation`.
    ///
    /// # Errors
    /// The rule that it breaks; nothing is changed then.
    #[inline]
    pub fn apply(&mut self, operation: &Operation) -> Result<(), BrokenRule> {
        if operation.time_ns < self.latest_ns {
            return Err(BrokenRule::TimeFalls);
        }
        let number = operation.file;
        match operation.action {
            Action::Create => self.create(number, operation.directory)?,
            Action::Write => {
                let reach = reach(operation)?;
                let bytes = self.file_in(number, operation.directory)?.bytes;
                let written = self.written_bytes.checked_add(operation.size_bytes);
                let written = written.ok_or(BrokenRule::TooLarge(number))?;
                if operation.size_bytes > 0 && reach > bytes {
                    self.resize(number, reach)?;
                }
                self.written_bytes = written;
            }
            Action::Truncate => {
                self.file_in(number, operation.directory)?;
                if operation.offset_bytes > FILE_BYTES_MAX {
                    return Err(BrokenRule::TooLarge(number));
                }
                self.resize(number, operation.offset_bytes)?;
            }
            Action::Delete => {
                self.file_in(number, operation.directory)?;
                self.resize(number, 0)?;
                self.files[number as usize].directory = GONE;
                self.directories[operation.directory as usize].entries -= 1;
                self.live_files -= 1;
            }
            Action::MakeDirectory => self.make_directory(number, operation.directory)?,
            Action::RemoveDirectory => self.remove_directory(number, operation.directory)?,
            Action::Rename => self.rename(number, operation.directory)?,
            Action::Sync => {}
            Action::SyncFile => {
                self.file_in(number, operation.directory)?;
            }
            Action::Read => {
                self.file_in(number, operation.directory)?;
                reach(operation)?;
            }
        }
        self.latest_ns = operation.time_ns;
        self.counts[operation.action as usize] += 1;
        self.streams = self.streams.max(u32::from(operation.stream) + 1);
        Ok(())
    }

    /// Length of `file` in bytes, if it is alive.
    #[must_use]
    pub fn file_bytes(&self, file: u32) -> Option<u64> {
        let row = self.files.get(file as usize)?;
        (row.directory != GONE).then_some(row.bytes)
    }

    /// The directory of `file`, if it is alive.
    #[must_use]
    pub fn directory_of(&self, file: u32) -> Option<u32> {
        let row = self.files.get(file as usize)?;
        (row.directory != GONE).then_some(row.directory)
    }

    /// The parent of `directory`, if it is there; the root's is itself.
    #[must_use]
    pub fn parent_of(&self, directory: u32) -> Option<u32> {
        let row = self.directories.get(directory as usize)?;
        (row.parent != GONE).then_some(row.parent)
    }

    /// Live files and directories in `directory`.
    #[must_use]
    pub fn entries(&self, directory: u32) -> u32 {
        self.directories.get(directory as usize).map_or(0, |row| row.entries)
    }

    /// Numbers of files given so far.
    #[must_use]
    pub fn file_numbers(&self) -> u32 {
        self.files.len() as u32
    }

    /// Numbers of directories given so far, with the root's.
    #[must_use]
    pub fn directory_numbers(&self) -> u32 {
        self.directories.len() as u32
    }

    /// Operations so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Live files, ascending: number, directory, bytes.
    pub fn files(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let rows = self.files.iter().enumerate();
        rows.filter(|(_, row)| row.directory != GONE)
            .map(|(number, row)| (number as u32, row.directory, row.bytes))
    }

    #[inline]
    fn file_in(&self, file: u32, directory: u32) -> Result<FileRow, BrokenRule> {
        match self.files.get(file as usize) {
            Some(row) if row.directory == directory && directory != GONE => Ok(*row),
            Some(row) if row.directory != GONE => Err(BrokenRule::OtherDirectory(file)),
            _ => Err(BrokenRule::FileGone(file)),
        }
    }

    #[inline]
    fn check_directory(&self, directory: u32) -> Result<(), BrokenRule> {
        match self.directories.get(directory as usize) {
            Some(row) if row.parent != GONE => Ok(()),
            _ => Err(BrokenRule::DirectoryGone(directory)),
        }
    }

    #[inline]
    fn resize(&mut self, file: u32, bytes: u64) -> Result<(), BrokenRule> {
        let row = &mut self.files[file as usize];
        let others = self.live_bytes - row.bytes;
        self.live_bytes = others.checked_add(bytes).ok_or(BrokenRule::TooLarge(file))?;
        row.bytes = bytes;
        self.live_bytes_max = self.live_bytes_max.max(self.live_bytes);
        Ok(())
    }

    fn create(&mut self, file: u32, directory: u32) -> Result<(), BrokenRule> {
        self.check_directory(directory)?;
        let row = FileRow { bytes: 0, directory };
        let next = self.files.len();
        match self.files.get_mut(file as usize) {
            Some(old) if old.directory == GONE => *old = row,
            Some(_) => return Err(BrokenRule::FileAlive(file)),
            None if file as usize == next && file != GONE => self.files.push(row),
            None => return Err(BrokenRule::NumberNotDense(file)),
        }
        self.directories[directory as usize].entries += 1;
        self.live_files += 1;
        self.live_files_max = self.live_files_max.max(self.live_files);
        Ok(())
    }

    fn make_directory(&mut self, directory: u32, parent: u32) -> Result<(), BrokenRule> {
        if directory == 0 {
            return Err(BrokenRule::Root);
        }
        self.check_directory(parent)?;
        let row = DirectoryRow { parent, entries: 0 };
        let next = self.directories.len();
        match self.directories.get_mut(directory as usize) {
            Some(old) if old.parent == GONE => *old = row,
            Some(_) => return Err(BrokenRule::DirectoryThere(directory)),
            None if directory as usize == next && directory != GONE => self.directories.push(row),
            None => return Err(BrokenRule::NumberNotDense(directory)),
        }
        self.directories[parent as usize].entries += 1;
        self.live_directories += 1;
        Ok(())
    }

    fn remove_directory(&mut self, directory: u32, parent: u32) -> Result<(), BrokenRule> {
        if directory == 0 {
            return Err(BrokenRule::Root);
        }
        self.check_directory(directory)?;
        let row = &mut self.directories[directory as usize];
        if row.parent != parent {
            return Err(BrokenRule::OtherDirectory(directory));
        }
        if row.entries > 0 {
            return Err(BrokenRule::DirectoryNotEmpty(directory));
        }
        row.parent = GONE;
        self.directories[parent as usize].entries -= 1;
        self.live_directories -= 1;
        Ok(())
    }

    fn rename(&mut self, file: u32, directory: u32) -> Result<(), BrokenRule> {
        self.check_directory(directory)?;
        let old = self.directory_of(file).ok_or(BrokenRule::FileGone(file))?;
        self.directories[old as usize].entries -= 1;
        self.directories[directory as usize].entries += 1;
        self.files[file as usize].directory = directory;
        Ok(())
    }
}

/// Where a read or write ends, bytes.
#[inline]
fn reach(operation: &Operation) -> Result<u64, BrokenRule> {
    let reach = operation.offset_bytes.checked_add(operation.size_bytes);
    reach.filter(|&reach| reach <= FILE_BYTES_MAX).ok_or(BrokenRule::TooLarge(operation.file))
}
