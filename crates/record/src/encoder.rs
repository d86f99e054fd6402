//! The trace file, written by a thread of its own so that the reader of the buffers never waits for a
//! disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use agewell_trace::{BlockBatch, GrowingTrace, TraceError, TraceMetadata, Written, unfinished};

use crate::RecordError;

/// Rows handed over at a time; chosen by us to hide the cost of each column.
const ROWS: usize = 1 << 14;
/// Batches that may wait for the disk: a million requests, 50 MB; chosen by us.
const QUEUE_BATCHES: usize = 64;

enum Message {
    Rows(Box<BlockBatch>),
    EndGroup(Box<TraceMetadata>),
    Finish(Box<TraceMetadata>),
}

/// Writes a trace.
pub(crate) struct Encoder {
    path: PathBuf,
    sender: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<Result<Option<Written>, TraceError>>>,
    bytes: Arc<AtomicU64>,
    gathered: BlockBatch,
    group_rows: u64,
}

impl Encoder {
    /// Begins the trace at `path`.
    pub(crate) fn new(path: &Path) -> Result<Self, RecordError> {
        let trace = GrowingTrace::create(path)?;
        let (sender, receiver) = sync_channel(QUEUE_BATCHES);
        let bytes = Arc::new(AtomicU64::new(0));
        let written = Arc::clone(&bytes);
        let thread = std::thread::Builder::new()
            .name("parquet".to_owned())
            .spawn(move || encode(trace, &receiver, &written))
            .map_err(|why| RecordError::Run(format!("cannot start the encoder: {why}")))?;
        Ok(Self {
            path: path.to_owned(),
            sender: Some(sender),
            thread: Some(thread),
            bytes,
            gathered: BlockBatch::default(),
            group_rows: 0,
        })
    }

    fn send(&mut self, message: Message) -> Result<(), RecordError> {
        let sender = self.sender.as_ref().expect("the sender lives until the end");
        if sender.send(message).is_ok() {
            return Ok(());
        }
        // The encoder is gone, so it has an error to report.
        self.join().map(|_| ())
    }

    fn join(&mut self) -> Result<Option<Written>, RecordError> {
        self.sender = None;
        match self.thread.take().expect("joined once").join() {
            Ok(Ok(written)) => Ok(written),
            Ok(Err(error)) => Err(self.with_what_is_kept(error)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// An error of the trace's file, with what the user can still have.
    fn with_what_is_kept(&self, error: TraceError) -> RecordError {
        if unfinished(&self.path).is_none() {
            return error.into();
        }
        let path = self.path.display();
        RecordError::Run(format!(
            "{error}; what was recorded before is kept: agewell record --recover -o {path}"
        ))
    }

    /// Appends the rows of `batch`.
    pub(crate) fn write(&mut self, batch: &BlockBatch) -> Result<(), RecordError> {
        self.group_rows += batch.len() as u64;
        self.gathered.extend_from(batch, 0..batch.len());
        if self.gathered.len() >= ROWS { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<(), RecordError> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.gathered);
        self.send(Message::Rows(Box::new(rows)))
    }

    /// Rows since the last group ended.
    pub(crate) fn group_rows(&self) -> u64 {
        self.group_rows
    }

    /// Bytes of the trace so far, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Ends the row group: it survives whatever becomes of this process.
    pub(crate) fn end_group(&mut self, metadata: TraceMetadata) -> Result<(), RecordError> {
        self.hand_over()?;
        self.group_rows = 0;
        self.send(Message::EndGroup(Box::new(metadata)))
    }

    /// Completes the trace under its name.
    pub(crate) fn finish(mut self, metadata: TraceMetadata) -> Result<Written, RecordError> {
        self.hand_over()?;
        self.send(Message::Finish(Box::new(metadata)))?;
        Ok(self.join()?.expect("finished"))
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // What went wrong has been reported already.
            let _ = thread.join();
        }
    }
}

fn encode(
    mut trace: GrowingTrace,
    receiver: &Receiver<Message>,
    bytes: &AtomicU64,
) -> Result<Option<Written>, TraceError> {
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Rows(batch) => trace.write(&batch)?,
            Message::EndGroup(metadata) => trace.end_group(&metadata)?,
            Message::Finish(metadata) => return trace.finish(&metadata).map(Some),
        }
        bytes.store(trace.bytes(), Ordering::Relaxed);
    }
    // Given up: a recording without a single finished group leaves nothing.
    if trace.rows() == trace.group_rows() {
        trace.discard()?;
    }
    Ok(None)
}
