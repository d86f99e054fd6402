//! File operations out of strace: `strace -f -ttt -y -o FILE ...` to [`FileOperationBatch`].
//!
//! strace shows system calls; a file operation needs more: which file a descriptor means and where
//! in it the program stands. So descriptors are followed through `open`, `dup`, `fork` and `close`,
//! offsets through `read`, `write` and `lseek` (an offset belongs to the open file, which copies of
//! a descriptor share), relative paths through `chdir`. A line of a child that comes before its
//! parent's `fork` has returned waits for it.
//!
//! Choices where the text leaves one:
//! * An `O_CREAT` open without `O_EXCL` makes a file if the path was not met before.
//! * A hard link is a second name; removing the name that operations were reported under is then a rename
//!   to the other.
//! * A read at the end of a file moves nothing and is left out; so are failed calls.
//! * Offsets are missing where the text does not have them: descriptors inherited from before the
//!   trace, appends to files of unknown length.
//! * A call that does not say how long it took (`-T`) has a finish time only if it was interrupted
//!   in the text.
//! * Symbolic links are not followed in paths that strace does not resolve itself (those of unlink,
//!   rename, mkdir).
//!
//! What is not seen at all: access through `mmap`, descriptors closed by `exec` or the end of a
//! process.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;

use super::strace_call::{self, Call, Outcome, Text};
use super::strace_files::{Files, Row};
use crate::error::{Problem, TraceError};
use crate::file_operation::FileOperationBatch;
use crate::metadata::{SCHEMA_VERSION, TraceMetadata};
use crate::record::BATCH_ROWS;
use crate::source::Source;

/// Rows held back to put them in the order of their beginning; chosen by us as for blocks.
const WINDOW_ROWS: usize = 65_536;

/// Lines of one process that wait for its parent; chosen by us, far above what a child does before
/// `exec`.
const WAITING_LINES_MAX: usize = 10_000;

const PASSED_OVER: &str = "calls that are no file operation were passed over";
const NEVER_BACK: &str = "calls never came back";

/// How to read strace's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StraceOptions {
    /// Only files below this directory; paths become relative to it. `None` takes every file.
    pub below: Option<String>,
    /// Leave bad lines out and count them, instead of stopping at the first.
    pub skip_bad: bool,
}

/// The beginning of a call that has not come back.
struct Begun {
    time_ns: u64,
    text: Vec<u8>,
}

/// A line that waits for its process to be known.
struct Waiting {
    bytes: Vec<u8>,
    number: u64,
    byte: u64,
}

/// An open strace file.
pub struct StraceTrace {
    /// What the trace says about itself; warnings grow as it is read.
    pub metadata: TraceMetadata,
    source: Source,
    skip_bad: bool,
    files: Files,
    begun: BTreeMap<u32, Begun>,
    /// How many of `begun` make a process.
    forking: usize,
    waiting: BTreeMap<u32, Vec<Waiting>>,
    rows: BinaryHeap<Reverse<Row>>,
    records: u64,
    origin_ns: Option<u64>,
    latest_ns: u64,
    ended: bool,
    any_row: bool,
}

fn forks(name: &[u8]) -> bool {
    matches!(name, b"fork" | b"vfork" | b"clone" | b"clone3")
}

impl StraceTrace {
    /// Opens the strace file `path`; `-` is standard input. Compression is undone.
    ///
    /// # Errors
    /// If it cannot be read or is empty.
    pub fn open(path: &Path, options: &StraceOptions) -> Result<Self, TraceError> {
        Self::new(Source::open(path)?, options)
    }

    /// As [`StraceTrace::open`], from anywhere; `name` stands for the path in messages.
    ///
    /// # Errors
    /// As [`StraceTrace::open`].
    pub fn read(
        name: &str,
        reader: Box<dyn std::io::Read + Send>,
        options: &StraceOptions,
    ) -> Result<Self, TraceError> {
        Self::new(Source::new(name.to_owned(), reader)?, options)
    }

    fn new(mut source: Source, options: &StraceOptions) -> Result<Self, TraceError> {
        if source.peek(1)?.is_empty() {
            let path = source.path().to_owned();
            return Err(TraceError::Empty { path, byte: 0, what: "the file is empty" });
        }
        let metadata = TraceMetadata {
            schema_version: SCHEMA_VERSION,
            format: "strace".to_owned(),
            compression: source.compression().map(|kind| kind.name().to_owned()),
            start_wall_zone: Some("UTC".to_owned()),
            ..TraceMetadata::default()
        };
        Ok(Self {
            metadata,
            source,
            skip_bad: options.skip_bad,
            files: Files::new(options.below.as_deref()),
            begun: BTreeMap::new(),
            forking: 0,
            waiting: BTreeMap::new(),
            rows: BinaryHeap::new(),
            records: 0,
            origin_ns: None,
            latest_ns: 0,
            ended: false,
            any_row: false,
        })
    }

    /// Bytes of input consumed, after decompression.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.source.offset()
    }

    /// Replaces the content of `batch` by the next operations, up to [`BATCH_ROWS`]; `false` at the
    /// end.
    ///
    /// # Errors
    /// The first thing wrong with the text.
    pub fn next_batch(&mut self, batch: &mut FileOperationBatch) -> Result<bool, TraceError> {
        *batch = FileOperationBatch::default();
        while !self.ended && self.rows.len() < WINDOW_ROWS + BATCH_ROWS {
            self.next_line()?;
        }
        let keep = if self.ended { 0 } else { WINDOW_ROWS };
        while self.rows.len() > keep && batch.len() < BATCH_ROWS {
            let Some(Reverse(row)) = self.rows.pop() else { break };
            self.release(row, batch)?;
        }
        if self.ended && batch.is_empty() && !self.any_row {
            let what = if self.metadata.skipped_records > 0 {
                "no good record in it"
            } else {
                "no operation on a file in the directory asked for"
            };
            let path = self.source.path().to_owned();
            return Err(TraceError::Empty { path, byte: self.source.offset(), what });
        }
        self.any_row |= !batch.is_empty();
        batch.verify();
        Ok(!batch.is_empty())
    }

    fn release(&mut self, row: Row, batch: &mut FileOperationBatch) -> Result<(), TraceError> {
        let origin = *self.origin_ns.get_or_insert_with(|| {
            self.metadata.clock_start_ns = row.time_ns;
            self.metadata.start_wall_ns = i64::try_from(row.time_ns).ok();
            row.time_ns
        });
        if row.time_ns < self.latest_ns || row.time_ns < origin {
            // Held back for WINDOW_ROWS rows and still late: the clock was set, or a call took very
            // long.
            let problem = Problem::new(format!(
                "a {} that began {} ns before operations already passed on",
                row.operation.name(),
                self.latest_ns - row.time_ns
            ));
            return self.bad(None, self.source.offset(), problem);
        }
        self.latest_ns = row.time_ns;
        row.push(origin, batch);
        Ok(())
    }

    fn bad(&mut self, line: Option<u64>, byte: u64, problem: Problem) -> Result<(), TraceError> {
        let place = self.source.place(self.records, line, byte);
        if !self.skip_bad {
            return Err(TraceError::Record { place, problem: problem.0.into() });
        }
        self.metadata.skipped_records += 1;
        if self.metadata.first_skipped.is_none() {
            self.metadata.first_skipped = Some(format!("{place}: {}", problem.0));
        }
        Ok(())
    }

    fn next_line(&mut self) -> Result<(), TraceError> {
        let Some(line) = self.source.next_line()? else {
            return self.end();
        };
        if line.bytes.first() == Some(&b'#') {
            let text = String::from_utf8_lossy(line.bytes);
            if let Some((key, value)) =
                text.strip_prefix("# agewell ").and_then(|pair| pair.split_once(':'))
            {
                self.metadata.header.insert(key.trim().to_owned(), value.trim().to_owned());
            }
            return Ok(());
        }
        let (number, byte) = (line.number, line.byte);
        self.records += 1;
        // The state below needs the source for nothing, but the borrow checker cannot know.
        let bytes = line.bytes.to_vec();
        self.take(&bytes, number, byte)
    }

    fn take(&mut self, bytes: &[u8], number: u64, byte: u64) -> Result<(), TraceError> {
        match self.parse(bytes, number, byte) {
            Ok(Some(child)) => self.replay(child),
            Ok(None) => Ok(()),
            Err(problem) => self.bad(Some(number), byte, problem),
        }
    }

    /// Lines of a process that is known now.
    fn replay(&mut self, process: u32) -> Result<(), TraceError> {
        for line in self.waiting.remove(&process).unwrap_or_default() {
            self.take(&line.bytes, line.number, line.byte)?;
        }
        Ok(())
    }

    /// Takes one line; returns a process that this line made.
    fn parse(&mut self, bytes: &[u8], number: u64, byte: u64) -> Result<Option<u32>, Problem> {
        let line = strace_call::line(bytes)?;
        let process = line.process;
        if !self.files.knows(process) {
            let queue = self.waiting.get(&process).map_or(0, Vec::len);
            if self.forking > 0 && queue < WAITING_LINES_MAX {
                let waiting = Waiting { bytes: bytes.to_vec(), number, byte };
                self.waiting.entry(process).or_default().push(waiting);
                return Ok(None);
            }
            self.files.start(process);
            if queue > 0 {
                let waiting = Waiting { bytes: bytes.to_vec(), number, byte };
                self.waiting.entry(process).or_default().push(waiting);
                return Ok(Some(process));
            }
        }
        match line.text {
            Text::Other => Ok(None),
            Text::Exit => {
                self.forget_begun(process);
                self.files.end(process);
                Ok(None)
            }
            Text::Unfinished(text) => {
                self.forget_begun(process);
                if strace_call::name(text).is_some_and(forks) {
                    self.forking += 1;
                }
                self.begun.insert(process, Begun { time_ns: line.time_ns, text: text.to_vec() });
                Ok(None)
            }
            Text::Resumed(name, rest) => {
                let Some(begun) = self.begun.remove(&process) else {
                    return Err(Problem::field(
                        "the end of a call whose beginning is missing:",
                        name,
                    ));
                };
                if strace_call::name(&begun.text) != Some(name) {
                    return Err(Problem::field("the end of another call than was begun:", name));
                }
                if forks(name) {
                    self.forking -= 1;
                }
                let mut text = begun.text;
                text.extend_from_slice(rest);
                self.call(process, begun.time_ns, Some(line.time_ns), &text)
            }
            Text::Call(text) => self.call(process, line.time_ns, None, text),
        }
    }

    fn forget_begun(&mut self, process: u32) {
        if let Some(begun) = self.begun.remove(&process) {
            self.metadata.warn(NEVER_BACK);
            if strace_call::name(&begun.text).is_some_and(forks) {
                self.forking -= 1;
            }
        }
    }

    /// Takes a whole call; returns a process that it made.
    fn call(
        &mut self,
        process: u32,
        time_ns: u64,
        back_ns: Option<u64>,
        text: &[u8],
    ) -> Result<Option<u32>, Problem> {
        let name = strace_call::name(text)
            .ok_or_else(|| Problem::field("expected a system call, not", text))?;
        if !forks(name) && !Files::follows(name) {
            self.metadata.warn(PASSED_OVER);
            return Ok(None);
        }
        let Call { name, arguments, outcome, duration_ns } = strace_call::call(text)?;
        let Outcome::Value(value, annotation) = outcome else { return Ok(None) };
        if forks(name) {
            let child = u32::try_from(value)
                .map_err(|_| Problem::new(format!("{value} is no process number")))?;
            if child == 0 {
                return Ok(None);
            }
            let shares = arguments
                .iter()
                .any(|argument| memchr::memmem::find(argument, b"CLONE_FILES").is_some());
            self.files.fork(process, child, shares);
            return Ok(Some(child));
        }
        let finish_ns = duration_ns.map(|duration| time_ns.saturating_add(duration)).or(back_ns);
        self.files.at(process, time_ns, finish_ns);
        self.files.call(name, &arguments, value, annotation, &mut self.metadata)?;
        self.rows.extend(self.files.take_rows().map(Reverse));
        Ok(None)
    }

    fn end(&mut self) -> Result<(), TraceError> {
        // Whoever waits for a parent that was never reported is a process of its own.
        while let Some((&process, _)) = self.waiting.first_key_value() {
            self.files.start(process);
            self.replay(process)?;
        }
        let open: Vec<u32> = self.begun.keys().copied().collect();
        for process in open {
            self.forget_begun(process);
        }
        self.ended = true;
        Ok(())
    }
}
