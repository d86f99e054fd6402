//! A trace of file operations as a workload: all of it, or one part, once or again and again.
//!
//! Whole blocks are read and written; operations that move no data and take none away are passed
//! over, but for one: a directory that the traced program made is a mark, and a *part* of the trace
//! is what lies between a mark and the next directory made beside it.
//!
//! What is live before a part is what the whole trace shows to have been live there: what the survey
//! infers from all of it, less what was deleted, with what was made, up to the mark. A repetition
//! finds what the one before has left, so that a file deleted in it and not made again is read as
//! holes from then on; its times follow on those of the one before.
//!
//! Source: Matthews 1999, §6.5.2.2 (ten repetitions of all queries, and of each one). Cost: 32 bytes
//! a request of the trace, read once; O(1) a request after that.

use agewell_core::{FileAction, FileRequest, SimTime, nearest};
use agewell_trace::workload::{InitialFile, Survey, Surveyor};
use agewell_trace::{FileOperation, FileOperationBatch, FileOperationTrace};

use super::numbers::{NUMBERS_MAX, Numbers};
use crate::error::RunError;

/// A trace of file operations.
pub(crate) struct FilesTraced {
    /// What one repetition asks for; times from its beginning.
    requests: Vec<FileRequest>,
    /// From the beginning of a repetition to that of the next.
    round_ns: u64,
    /// What is live before, if it does not follow from the requests.
    initial: Option<Vec<InitialFile>>,
    /// Of each file: the directory it was in when it was first named.
    directory_of: Vec<u32>,
    repeat: u32,
    round: u32,
    next: usize,
}

/// A directory that the traced program made.
struct Mark {
    path: String,
    /// Requests before it.
    requests: usize,
    time_ns: u64,
}

impl FilesTraced {
    /// Reads `trace`, or the `part` of it that begins at the mark of that path or last name, to be
    /// given `repeat` times.
    ///
    /// # Errors
    /// The first thing wrong with the trace, or no such mark.
    pub(crate) fn read(
        trace: FileOperationTrace,
        block_bytes: u64,
        part: Option<&str>,
        repeat: u32,
    ) -> Result<Self, RunError> {
        let mut reading = Reading::new(block_bytes);
        reading.read(trace)?;
        let Reading { mut requests, marks, end_ns, directory_of, .. } = reading;
        let (mut round_ns, mut initial) = (end_ns, None);
        if let Some(part) = part {
            let (mark, next) = find_part(&marks, part)?;
            let end = next.map_or(requests.len(), |next| next.requests);
            initial = Some(live_before(&requests, mark.requests));
            requests.truncate(end);
            requests.drain(..mark.requests);
            for request in &mut requests {
                request.time.0 -= mark.time_ns;
            }
            round_ns = next.map_or(end_ns, |next| next.time_ns) - mark.time_ns;
        }
        if requests.is_empty() {
            let which = part.map_or(String::new(), |part| format!(" in part '{part}'"));
            return Err(RunError::Input(format!(
                "[workload] path: nothing is read, written or deleted{which}; choose another"
            )));
        }
        let total_ns = u128::from(round_ns) * u128::from(repeat);
        if total_ns >= 1 << 63 {
            return Err(RunError::Input(format!(
                "[workload] repeat: {repeat} repetitions of {round_ns} ns are longer than 2^63 ns \
                 (292 years); say fewer"
            )));
        }
        Ok(Self { requests, round_ns, initial, directory_of, repeat, round: 0, next: 0 })
    }

    /// What is live before all repetitions, and at most.
    pub(crate) fn survey(&self) -> Survey {
        let mut surveyor = match &self.initial {
            Some(initial) => Surveyor::knowing(initial.clone()),
            None => Surveyor::default(),
        };
        for _ in 0..self.repeat {
            for request in &self.requests {
                surveyor.note(request);
            }
        }
        surveyor.finish()
    }

    pub(crate) fn directory_of(&self, file: u32) -> u32 {
        self.directory_of.get(file as usize).copied().unwrap_or(0)
    }

    /// Replaces the contents of `batch` by the next requests, at most `requests_max` of one
    /// repetition; none at the end.
    pub(crate) fn next_batch(&mut self, batch: &mut Vec<FileRequest>, requests_max: usize) {
        batch.clear();
        if self.round == self.repeat {
            return;
        }
        let end = self.requests.len().min(self.next + requests_max);
        batch.extend_from_slice(&self.requests[self.next..end]);
        let offset_ns = u64::from(self.round) * self.round_ns;
        for request in batch {
            request.time.0 += offset_ns;
        }
        self.next = end;
        if end == self.requests.len() {
            (self.round, self.next) = (self.round + 1, 0);
        }
    }
}

/// The mark at which `part` begins, and the one at which it ends.
fn find_part<'a>(marks: &'a [Mark], part: &str) -> Result<(&'a Mark, Option<&'a Mark>), RunError> {
    let last_name = |mark: &Mark| mark.path.rsplit('/').next() == Some(part);
    let by_path = marks.iter().position(|mark| mark.path == part);
    let Some(found) = by_path.or_else(|| marks.iter().position(last_name)) else {
        let paths: Vec<&str> = marks.iter().map(|mark| mark.path.as_str()).collect();
        let names: Vec<&str> = paths.iter().filter_map(|path| path.rsplit('/').next()).collect();
        let hint = match (nearest(part, &paths).or_else(|| nearest(part, &names)), paths.len()) {
            (Some(near), _) => format!("did you mean '{near}'?"),
            (None, 0) => "the trace makes none, so leave the key out".to_owned(),
            (None, 1..=40) => format!("it makes {}", paths.join(", ")),
            (None, count) => format!("it makes {count} others"),
        };
        return Err(RunError::Input(format!(
            "[workload] part: the trace makes no directory '{part}' to begin at; {hint}"
        )));
    };
    let parent = |mark: &Mark| mark.path.rsplit_once('/').map(|(parent, _)| parent.to_owned());
    let beside = parent(&marks[found]);
    let next = marks[found + 1..].iter().find(|mark| parent(mark) == beside);
    Ok((&marks[found], next))
}

/// What is live after the first `count` of `requests`, by the evidence of all of them. A hole below
/// the end of a file counts as a block.
fn live_before(requests: &[FileRequest], count: usize) -> Vec<InitialFile> {
    let mut evidence = Surveyor::default();
    for request in requests {
        evidence.note(request);
    }
    let mut walk = Surveyor::knowing(evidence.finish().initial);
    for request in &requests[..count] {
        walk.note(request);
    }
    let files = (0..).zip(walk.lengths()).map(|(file, blocks)| InitialFile { file, blocks });
    files.filter(|file| file.blocks > 0).collect()
}

/// A trace while it is read.
struct Reading {
    block_bytes: u64,
    records: FileOperationBatch,
    requests: Vec<FileRequest>,
    marks: Vec<Mark>,
    end_ns: u64,
    files: Numbers,
    clients: Numbers,
    directories: Numbers,
    directory_of: Vec<u32>,
}

impl Reading {
    fn new(block_bytes: u64) -> Self {
        Self {
            block_bytes,
            records: FileOperationBatch::default(),
            requests: Vec::new(),
            marks: Vec::new(),
            end_ns: 0,
            files: Numbers::default(),
            clients: Numbers::default(),
            directories: Numbers::default(),
            directory_of: Vec::new(),
        }
    }

    fn read(&mut self, mut trace: FileOperationTrace) -> Result<(), RunError> {
        while trace.next_batch(&mut self.records)? {
            for row in 0..self.records.len() {
                let time_ns = self.records.time_ns[row];
                self.end_ns = time_ns;
                if self.records.operation[row] == FileOperation::MakeDirectory as u8 {
                    let path = self.records.path[row].clone();
                    self.marks.push(Mark { path, requests: self.requests.len(), time_ns });
                }
                if let Some(request) = self.request(row)? {
                    self.requests.push(request);
                }
            }
        }
        Ok(())
    }

    /// The number of the file of `row`, whose directory is noted when it is new.
    fn file_of(&mut self, row: usize) -> u32 {
        let file = self.files.of(self.records.file[row]);
        if file as usize == self.directory_of.len() {
            self.directory_of.push(self.directories.of(self.records.directory[row]));
        }
        file
    }

    fn request(&mut self, row: usize) -> Result<Option<FileRequest>, RunError> {
        let records = &self.records;
        let operation = FileOperation::from_code(records.operation[row])
            .expect("readers give canonical operation codes");
        let (offset, length) = (records.offset[row], records.length[row]);
        let (action, block, blocks) = match operation {
            FileOperation::Read | FileOperation::Write => {
                if length == 0 || length == u64::MAX || offset == u64::MAX {
                    return Ok(None);
                }
                let first = offset / self.block_bytes;
                let last = offset.saturating_add(length - 1) / self.block_bytes;
                let writes = operation == FileOperation::Write;
                let action = if writes { FileAction::Write } else { FileAction::Read };
                (action, first, last - first + 1)
            }
            FileOperation::Truncate => (FileAction::Truncate, length.div_ceil(self.block_bytes), 0),
            FileOperation::Delete => (FileAction::Delete, 0, 0),
            FileOperation::Sync => (FileAction::Sync, 0, 0),
            _ => return Ok(None),
        };
        if block + blocks > NUMBERS_MAX {
            return Err(RunError::Input(format!(
                "[workload]: offset {offset} of file {} is beyond 2^31 blocks of the layout; use \
                 larger blocks",
                records.path[row]
            )));
        }
        let time = SimTime(records.time_ns[row]);
        Ok(Some(FileRequest {
            time,
            client: self.clients.of(self.records.client[row]),
            file: self.file_of(row),
            block: block as u32,
            blocks: blocks as u32,
            action,
        }))
    }
}

#[cfg(test)]
mod tests;
