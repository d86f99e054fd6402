//! A block trace that grows for as long as a system is watched, and survives its writer.
//!
//! A Parquet file ends in its footer, so that one whose writer was killed is unreadable. While a
//! trace `NAME` grows, its row groups stand in `NAME.recording`, and beside it
//! `NAME.recording.footer` holds what would make a whole file of the groups that are finished:
//! their checksums and a footer. It takes its name by a rename after each group, so that it is
//! always the footer of some of them. The end of a recording and its recovery are one act: what
//! follows the last finished group is cut off, the footer put behind, and the file gets its name.
//!
//! The recording is locked (`flock`) for as long as it is written, so that a lock which can be had
//! shows a writer that has died. Nothing is synced before the end: this is about killed processes;
//! a loss of power may take more.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::checksums::{ParquetWriter, closing_covers, open_parquet};
use crate::columns::{block_schema, block_to_arrow};
use crate::error::TraceError;
use crate::guarded::one_line;
use crate::metadata::TraceMetadata;
use crate::output::write_whole_unsynced;
use crate::record::BlockBatch;
use crate::write::Written;
use crate::write::parquet::{GROUP_ROWS, TIMES_AND_ADDRESSES, describing, properties};

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Where the row groups of the trace `path` stand while it grows.
fn recording_of(path: &Path) -> PathBuf {
    with_ending(path, ".recording")
}

/// Where the footer of the finished ones stands.
fn footer_of(path: &Path) -> PathBuf {
    with_ending(path, ".recording.footer")
}

fn failed(path: &Path, what: &str, advice: &'static str) -> impl FnOnce(io::Error) -> TraceError {
    let path = path.display().to_string();
    let what = what.to_owned();
    move |source| TraceError::Io { path, what, source, advice }
}

/// What a writer that has died left of the trace `path`, if it finished a row group.
#[must_use]
pub fn unfinished(path: &Path) -> Option<PathBuf> {
    let recording = recording_of(path);
    (recording.exists() && footer_of(path).exists()).then_some(recording)
}

/// A block trace under way.
pub struct GrowingTrace {
    path: PathBuf,
    file: Arc<File>,
    writer: ParquetWriter<Arc<File>>,
    rows: u64,
    group_rows: u64,
}

impl GrowingTrace {
    /// Begins the trace `path`.
    ///
    /// # Errors
    /// If it cannot be written there, another writer is at work on it, or one that has died left
    /// requests that would be lost.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        if path.file_name().is_none() || path.is_dir() {
            let shown = path.display();
            return Err(TraceError::Usage(format!("{shown}: is no name for an output file")));
        }
        let recording = recording_of(path);
        let cannot = |what| failed(&recording, what, "; check the path");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&recording)
            .map_err(cannot("cannot create"))?;
        lock(&file, &recording)?;
        if let Some(recording) = unfinished(path) {
            return Err(TraceError::Usage(format!(
                "{}: is left of a recording that was killed; keep it with 'agewell record --recover \
                 -o {}', or remove it",
                recording.display(),
                path.display()
            )));
        }
        file.set_len(0).map_err(cannot("cannot empty"))?;
        // A footer without its recording: the writer ended between two steps of the end.
        remove_if_there(&footer_of(path))?;
        let file = Arc::new(file);
        // A group is ended by whoever writes; this is the most that it can hold.
        let properties = properties(&TIMES_AND_ADDRESSES, 2 * GROUP_ROWS);
        let writer = ParquetWriter::new(file.clone(), block_schema(), properties)
            .map_err(|error| columns_error(path, &error))?;
        Ok(Self { path: path.to_owned(), file, writer, rows: 0, group_rows: 0 })
    }

    /// Appends `batch`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, batch: &BlockBatch) -> Result<(), TraceError> {
        self.rows += batch.len() as u64;
        self.group_rows += batch.len() as u64;
        let columns = block_to_arrow(batch);
        self.writer.write(&columns).map_err(|error| columns_error(&self.path, &error))
    }

    /// Requests since the last row group ended.
    #[must_use]
    pub fn group_rows(&self) -> u64 {
        self.group_rows
    }

    /// Requests in all.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of the trace so far, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Ends the row group: what was written so far survives the writer.
    ///
    /// # Errors
    /// If it cannot be written; the groups before stay.
    pub fn end_group(&mut self, metadata: &TraceMetadata) -> Result<(), TraceError> {
        let keys = describing(metadata, "block");
        let closing =
            self.writer.closing(keys).map_err(|error| columns_error(&self.path, &error))?;
        let footer = footer_of(&self.path);
        write_whole_unsynced(&footer, &closing).map_err(failed(&footer, "cannot write", ""))?;
        self.group_rows = 0;
        Ok(())
    }

    /// Completes the trace under its name.
    ///
    /// # Errors
    /// If it cannot be written; the groups that are finished stay.
    pub fn finish(mut self, metadata: &TraceMetadata) -> Result<Written, TraceError> {
        self.end_group(metadata)?;
        let bytes = seal(&self.path, &self.file)?;
        Ok(Written { rows: self.rows, left_out: 0, bytes })
    }

    /// Gives the trace up: nothing of it stays.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn discard(self) -> Result<(), TraceError> {
        remove_if_there(&recording_of(&self.path))?;
        remove_if_there(&footer_of(&self.path))
    }
}

fn columns_error(path: &Path, error: &impl std::fmt::Display) -> TraceError {
    TraceError::Columns {
        path: recording_of(path).display().to_string(),
        what: "cannot write".to_owned(),
        message: one_line(error),
    }
}

fn remove_if_there(path: &Path) -> Result<(), TraceError> {
    match std::fs::remove_file(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => {
            Err(failed(path, "cannot remove", "")(why))
        }
        _ => Ok(()),
    }
}

fn lock(file: &File, path: &Path) -> Result<(), TraceError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        // Without locks on a file system, two writers at once are the users' care.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(TraceError::Usage(format!(
            "{}: is being recorded to; name another output",
            path.display()
        ))),
        Err(error) => Err(failed(path, "cannot lock", "")(error.into())),
    }
}

/// Puts the footer behind the groups that it speaks of, and gives the trace its name.
fn seal(path: &Path, mut file: &File) -> Result<u64, TraceError> {
    let (recording, footer) = (recording_of(path), footer_of(path));
    let closing = std::fs::read(&footer).map_err(failed(&footer, "cannot read", ""))?;
    let broken = |what: &str| {
        TraceError::Usage(format!("{}: {what}; it cannot be recovered", recording.display()))
    };
    let covered =
        closing_covers(&closing).ok_or_else(|| broken("the footer beside it is damaged"))?;
    let mut write = || -> io::Result<bool> {
        if file.metadata()?.len() < covered {
            return Ok(false);
        }
        file.set_len(covered)?;
        file.seek(SeekFrom::Start(covered))?;
        file.write_all(&closing)?;
        file.sync_all()?;
        Ok(true)
    };
    if !write().map_err(failed(&recording, "cannot write", ""))? {
        return Err(broken("is shorter than its finished row groups"));
    }
    std::fs::rename(&recording, path).map_err(failed(path, "cannot name", ""))?;
    remove_if_there(&footer)?;
    Ok(covered + closing.len() as u64)
}

/// Makes a whole trace of what a writer that was killed has left of `path`: every request up to its
/// last finished row group.
///
/// # Errors
/// If nothing is left of it, it is damaged, it is still being written, or a file stands at `path`.
pub fn recover(path: &Path) -> Result<Written, TraceError> {
    let recording = recording_of(path);
    let usage = |what: &str| Err(TraceError::Usage(format!("{}: {what}", recording.display())));
    if !recording.exists() {
        return usage("there is no such recording; name the output of the one that was killed");
    }
    let cannot = failed(&recording, "cannot open", "; check the path");
    let file = OpenOptions::new().read(true).write(true).open(&recording).map_err(cannot)?;
    lock(&file, &recording)?;
    if !footer_of(path).exists() {
        return usage(
            "no row group was finished before it was killed; there is nothing to recover",
        );
    }
    if path.exists() {
        let shown = path.display();
        return Err(TraceError::Usage(format!("{shown}: is there already; move it away first")));
    }
    let bytes = seal(path, &file)?;
    let opened = File::open(path).map_err(failed(path, "cannot open", ""))?;
    let rows = open_parquet(opened)
        .map_err(|message| TraceError::Columns {
            path: path.display().to_string(),
            what: "cannot read what was recovered".to_owned(),
            message,
        })?
        .metadata()
        .file_metadata()
        .num_rows();
    Ok(Written { rows: rows as u64, left_out: 0, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::BlockRow;
    use crate::trace::{ReadOptions, open_block_trace};

    fn batch(rows: std::ops::Range<u64>) -> BlockBatch {
        let mut batch = BlockBatch::default();
        for row in rows {
            let row =
                BlockRow { enqueue_ns: row * 10, sector: row, sectors: 8, ..BlockRow::default() };
            batch.push(row);
        }
        batch
    }

    fn metadata(host: &str) -> TraceMetadata {
        let mut metadata = TraceMetadata { schema_version: 1, ..TraceMetadata::default() };
        metadata.header.insert("host".to_owned(), host.to_owned());
        metadata
    }

    /// The first sectors of all requests, and the host.
    fn read(path: &Path) -> (Vec<u64>, String) {
        let mut trace = open_block_trace(path, &ReadOptions::default()).expect("opened");
        let (mut batch, mut sectors) = (BlockBatch::default(), Vec::new());
        while trace.next_batch(&mut batch).expect("read") {
            sectors.extend_from_slice(&batch.sector);
        }
        (sectors, trace.metadata.header["host"].clone())
    }

    #[test]
    fn a_trace_that_was_finished_reads_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("week.parquet");
        let mut trace = GrowingTrace::create(&path).unwrap();
        trace.write(&batch(0..1000)).unwrap();
        trace.end_group(&metadata("first")).unwrap();
        trace.write(&batch(1000..1500)).unwrap();
        let written = trace.finish(&metadata("last")).unwrap();
        assert_eq!(written.rows, 1500);
        assert_eq!(written.bytes, path.metadata().unwrap().len());
        assert_eq!(read(&path), ((0..1500).collect(), "last".to_owned()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Every state that a killed writer can leave: any length of the data behind the last group, and
    /// a seal that was begun.
    #[test]
    fn what_a_killed_writer_left_is_recovered_up_to_its_last_group() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("week.parquet");
        let mut trace = GrowingTrace::create(&path).unwrap();
        trace.write(&batch(0..1000)).unwrap();
        trace.end_group(&metadata("first")).unwrap();
        let data = std::fs::read(recording_of(&path)).unwrap();
        let footer = std::fs::read(footer_of(&path)).unwrap();
        drop(trace);
        for behind in [0, 1, 100, footer.len() - 1, footer.len(), 3 * footer.len()] {
            let more: Vec<u8> = footer.iter().copied().cycle().take(behind).collect();
            std::fs::write(recording_of(&path), [data.as_slice(), &more].concat()).unwrap();
            std::fs::write(footer_of(&path), &footer).unwrap();
            let refused = GrowingTrace::create(&path).err().expect("nothing is overwritten");
            assert!(refused.to_string().contains("--recover"), "{refused}");
            assert_eq!(recover(&path).unwrap().rows, 1000);
            assert_eq!(read(&path), ((0..1000).collect(), "first".to_owned()));
            std::fs::remove_file(&path).unwrap();
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn what_cannot_be_recovered_is_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("week.parquet");
        let refused = |expected: &str| {
            let text = recover(&path).expect_err("refused").to_string();
            assert!(text.contains(expected) && !text.contains('\n'), "{text}");
        };
        refused("no such recording");
        let trace = GrowingTrace::create(&path).unwrap();
        refused("is being recorded to");
        assert!(GrowingTrace::create(&path).is_err(), "two writers of one name");
        drop(trace);
        refused("no row group was finished");
        std::fs::write(footer_of(&path), b"no footer").unwrap();
        refused("damaged");
        let mut trace = GrowingTrace::create(&folder.path().join("other.parquet")).unwrap();
        trace.write(&batch(0..10)).unwrap();
        trace.end_group(&metadata("other")).unwrap();
        std::fs::copy(folder.path().join("other.parquet.recording.footer"), footer_of(&path))
            .unwrap();
        refused("shorter than its finished row groups");
        std::fs::write(&path, b"something").unwrap();
        refused("is there already");
    }
}
