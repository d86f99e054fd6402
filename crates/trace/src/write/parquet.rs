//! Parquet: encoded on a second thread while the first one parses. Order of rows, sizes of row
//! groups and keys are fixed, so the same input gives the same bytes.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::{BlockSink, Written};
use crate::checksums::ParquetWriter;
use crate::columns::{KEY_KIND, KEY_METADATA, KEY_SCHEMA_VERSION, block_schema, block_to_arrow};
use crate::error::TraceError;
use crate::guarded::one_line;
use crate::metadata::{SCHEMA_VERSION, TraceMetadata};
use crate::output::Output;
use crate::record::BlockBatch;

/// Rows in a row group: about 10 MB encoded; chosen by us.
pub(crate) const GROUP_ROWS: usize = 1 << 20;
/// Columns of a block trace that hardly repeat.
pub(crate) const TIMES_AND_ADDRESSES: [&str; 4] = ["enqueue_ns", "start_ns", "finish_ns", "sector"];
/// Rows handed to the encoder at a time; chosen by us to hide its per-column cost.
const WRITE_ROWS: usize = 1 << 16;
/// Batches that may wait for the encoder.
const QUEUE_BATCHES: usize = 4;

enum Message {
    Rows(BlockBatch),
    Finish(Vec<KeyValue>),
}

pub(super) struct ParquetSink {
    path: String,
    sender: Option<SyncSender<Message>>,
    encoder: Option<JoinHandle<Result<u64, TraceError>>>,
    gathered: BlockBatch,
    rows: u64,
}

/// How block and file-operation traces are stored.
pub(crate) fn properties(delta: &[&str], rows: usize) -> WriterPropertiesBuilder {
    // Level 1: several times the speed of the default level for about a tenth more bytes.
    let level = ZstdLevel::try_new(1).expect("1 is a level");
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(rows))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for name in delta {
        let column = ColumnPath::from(*name);
        // Times and addresses hardly repeat: differences beat a dictionary.
        builder = builder
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    builder
}

/// The keys that describe a trace.
pub(crate) fn describing(metadata: &TraceMetadata, kind: &str) -> Vec<KeyValue> {
    let text = serde_json::to_string(metadata).expect("plain data with text keys");
    vec![
        KeyValue::new(KEY_SCHEMA_VERSION.to_owned(), SCHEMA_VERSION.to_string()),
        KeyValue::new(KEY_KIND.to_owned(), kind.to_owned()),
        KeyValue::new(KEY_METADATA.to_owned(), text),
    ]
}

impl ParquetSink {
    pub(super) fn new(output: Output) -> Result<Self, TraceError> {
        let path = output.path().display().to_string();
        let (sender, receiver) = sync_channel(QUEUE_BATCHES);
        let encoder = std::thread::Builder::new()
            .name("parquet".to_owned())
            .spawn(move || encode(output, &receiver))
            .map_err(|source| TraceError::Io {
                path: path.clone(),
                what: "cannot start the encoder".to_owned(),
                source,
                advice: "",
            })?;
        Ok(Self {
            path,
            sender: Some(sender),
            encoder: Some(encoder),
            gathered: BlockBatch::default(),
            rows: 0,
        })
    }

    fn send(&mut self, message: Message) -> Result<(), TraceError> {
        let sender = self.sender.as_ref().expect("the sender lives until finish");
        if sender.send(message).is_ok() {
            return Ok(());
        }
        // The encoder is gone, so it has an error to report.
        self.sender = None;
        self.join().map(|_| ())
    }

    fn join(&mut self) -> Result<u64, TraceError> {
        let encoder = self.encoder.take().expect("joined once");
        match encoder.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn encode(output: Output, receiver: &Receiver<Message>) -> Result<u64, TraceError> {
    let path = output.path().display().to_string();
    let failed = |error: parquet::errors::ParquetError| TraceError::Columns {
        path: path.clone(),
        what: "cannot write".to_owned(),
        message: one_line(error),
    };
    let properties = properties(&TIMES_AND_ADDRESSES, GROUP_ROWS);
    let mut writer = ParquetWriter::new(output, block_schema(), properties).map_err(&failed)?;
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Rows(batch) => writer.write(&block_to_arrow(&batch)).map_err(&failed)?,
            Message::Finish(keys) => {
                for key in keys {
                    writer.append_key(key);
                }
                let output = writer.finish().map_err(&failed)?;
                return output.finish();
            }
        }
    }
    // The sink was dropped unfinished; the output removes its temporary file.
    Err(TraceError::Interrupted)
}

impl BlockSink for ParquetSink {
    fn write(
        &mut self,
        batch: &mut BlockBatch,
        _metadata: &TraceMetadata,
    ) -> Result<(), TraceError> {
        self.rows += batch.len() as u64;
        self.gathered.extend_from(batch, 0..batch.len());
        batch.clear();
        if self.gathered.len() >= WRITE_ROWS {
            let mut next = BlockBatch::default();
            next.reserve(WRITE_ROWS);
            let full = std::mem::replace(&mut self.gathered, next);
            self.send(Message::Rows(full))?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, metadata: &TraceMetadata) -> Result<Written, TraceError> {
        let rest = std::mem::take(&mut self.gathered);
        if !rest.is_empty() {
            self.send(Message::Rows(rest))?;
        }
        self.send(Message::Finish(describing(metadata, "block")))?;
        let rows = self.rows;
        let bytes = self.join()?;
        Ok(Written { rows, left_out: 0, bytes })
    }
}

impl Drop for ParquetSink {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(encoder) = self.encoder.take() {
            // Wait until the temporary file is gone; whatever went wrong has been reported already.
            let _ = encoder.join();
        }
        debug_assert!(self.sender.is_none(), "{} is let go", self.path);
    }
}
