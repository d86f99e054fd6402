//! Opening a trace: detection, the reader of its format, and batches in order of enqueue time.

use std::path::Path;

use crate::error::TraceError;
use crate::format::{
    Confidence, Detected, Format, LineReader, RecordReader, RowReader, blkparse, blktrace,
    cloud_csv, detect, disksim, fio, mqsim, msr, oracle_general, parquet, spc, srt, tracepoint,
    validate, vscsi,
};
use crate::metadata::{SCHEMA_VERSION, TraceMetadata};
use crate::record::BlockBatch;
use crate::reorder_window::ReorderWindow;
use crate::source::Source;

/// How to read a trace.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions {
    /// The format; `None` detects it.
    pub format: Option<Format>,
    /// Leave bad records out and count them, instead of stopping at the first.
    pub skip_bad: bool,
}

/// Batches of block requests in order of enqueue time.
pub trait BlockSource: Send {
    /// Replaces the content of `batch` by the next requests, up to [`crate::BATCH_ROWS`]; `false`
    /// at the end, with an empty batch.
    ///
    /// # Errors
    /// The first thing wrong with the trace.
    fn next_batch(&mut self, batch: &mut BlockBatch) -> Result<bool, TraceError>;

    /// What the trace says about itself, as far as it has been read.
    fn metadata(&self) -> &TraceMetadata;

    /// Bytes of input consumed, after decompression.
    fn bytes_read(&self) -> u64;
}

/// An open block trace.
pub struct BlockTrace {
    /// What the trace says about itself; devices and warnings grow as it is read.
    pub metadata: TraceMetadata,
    detected: Detected,
    source: Source,
    reorder_window: ReorderWindow,
    reader: Box<dyn RowReader>,
    ended: bool,
}

/// Opens the trace at `path`; `-` is standard input.
///
/// # Errors
/// If the file cannot be read, its format is unknown or ambiguous, or its header is broken.
pub fn open_block_trace(path: &Path, options: &ReadOptions) -> Result<BlockTrace, TraceError> {
    // blktrace writes one file a CPU; the common name before `.blktrace.N` stands for all of them.
    if let Some(first) = blktrace::first_of_set(path) {
        return BlockTrace::open(Source::open(&first)?, &first, *options);
    }
    BlockTrace::open(Source::open(path)?, path, *options)
}

/// Opens a trace held in memory or coming from anywhere; `name` stands for its path in messages.
/// Formats of several files or with a footer need [`open_block_trace`].
///
/// # Errors
/// As [`open_block_trace`].
pub fn read_block_trace(
    name: &str,
    reader: Box<dyn std::io::Read + Send>,
    options: &ReadOptions,
) -> Result<BlockTrace, TraceError> {
    BlockTrace::open(Source::new(name.to_owned(), reader)?, Path::new("-"), *options)
}

impl BlockTrace {
    fn open(mut source: Source, path: &Path, options: ReadOptions) -> Result<Self, TraceError> {
        let detected = match options.format {
            Some(format) => {
                if source.peek(1)?.is_empty() {
                    let path = source.path().to_owned();
                    return Err(TraceError::Empty { path, byte: 0, what: "the file is empty" });
                }
                Detected { format, sureness: Confidence::Certain }
            }
            None => detect(&mut source)?,
        };
        let format = detected.format;
        let metadata = TraceMetadata {
            schema_version: SCHEMA_VERSION,
            format: format.name().to_owned(),
            compression: source.compression().map(|kind| kind.name().to_owned()),
            ..TraceMetadata::default()
        };
        let (order, origin) = format.clock();
        let mut reorder_window = ReorderWindow::new(metadata, order, origin, options.skip_bad);
        reorder_window.disorder_is_normal =
            matches!(format, Format::Blktrace | Format::Blkparse | Format::Tracepoint);
        // Formats that count from 1970 in UTC.
        if matches!(
            format,
            Format::Msr
                | Format::Alibaba
                | Format::Tencent
                | Format::OracleGeneral
                | Format::OracleGeneralOpNs
        ) {
            reorder_window.wall_of_clock_zero_ns = Some(0);
            reorder_window.metadata.start_wall_zone = Some("UTC".to_owned());
        }
        let mut reader = reader_of(format, &mut source, path)?;
        reader.begin(&mut source, &mut reorder_window)?;
        Ok(Self {
            metadata: reorder_window.metadata.clone(),
            detected,
            source,
            reorder_window,
            reader,
            ended: false,
        })
    }

    /// The format and how sure its detection was (certain if it was given by name).
    #[must_use]
    pub fn detected(&self) -> Detected {
        self.detected
    }

    /// As [`BlockSource::next_batch`].
    ///
    /// # Errors
    /// As [`BlockSource::next_batch`].
    pub fn next_batch(&mut self, batch: &mut BlockBatch) -> Result<bool, TraceError> {
        while !self.ended && !self.reorder_window.is_full() {
            if !self.reader.fill(&mut self.source, &mut self.reorder_window)? {
                self.ended = true;
                self.reorder_window.finish();
                if self.reorder_window.rows() == 0 {
                    return Err(TraceError::Empty {
                        path: self.source.path().to_owned(),
                        byte: self.source.offset(),
                        what: if self.reorder_window.metadata.skipped_records > 0 {
                            "no good record in it"
                        } else {
                            "no record in it"
                        },
                    });
                }
            }
        }
        self.reorder_window.take(batch);
        let current = &self.reorder_window.metadata;
        // Copying a table of a million devices with every batch would be quadratic.
        if self.ended
            || current.devices.len() != self.metadata.devices.len()
            || current.warnings != self.metadata.warnings
            || current.skipped_records != self.metadata.skipped_records
            || current.start_wall_ns != self.metadata.start_wall_ns
        {
            self.metadata.clone_from(current);
        }
        Ok(!batch.is_empty())
    }
}

impl BlockSource for BlockTrace {
    fn next_batch(&mut self, batch: &mut BlockBatch) -> Result<bool, TraceError> {
        BlockTrace::next_batch(self, batch)
    }

    fn metadata(&self) -> &TraceMetadata {
        &self.metadata
    }

    fn bytes_read(&self) -> u64 {
        self.source.offset()
    }
}

fn reader_of(
    format: Format,
    source: &mut Source,
    path: &Path,
) -> Result<Box<dyn RowReader>, TraceError> {
    Ok(match format {
        Format::Srt => Box::new(srt::Srt::default()),
        Format::DisksimAscii => Box::new(LineReader::new(disksim::DisksimAscii)),
        Format::DisksimValidate => Box::new(LineReader::new(validate::Validate::default())),
        Format::Blktrace => Box::new(blktrace::Blktrace::new(path)?),
        Format::Blkparse => Box::new(LineReader::new(blkparse::Blkparse::default())),
        Format::Tracepoint => Box::new(LineReader::new(tracepoint::Tracepoint::default())),
        Format::Msr => Box::new(LineReader::new(msr::Msr)),
        Format::Spc => Box::new(LineReader::new(spc::Spc)),
        Format::Alibaba => Box::new(LineReader::new(cloud_csv::Alibaba)),
        Format::Tencent => Box::new(LineReader::new(cloud_csv::Tencent)),
        Format::Vscsi => {
            let version = vscsi::version_of(source.peek(640)?).unwrap_or(1);
            Box::new(RecordReader::new(vscsi::Vscsi::new(version)))
        }
        Format::Mqsim => Box::new(LineReader::new(mqsim::Mqsim)),
        Format::FioIolog => Box::new(LineReader::new(fio::FioIolog::default())),
        Format::OracleGeneral => {
            Box::new(RecordReader::new(oracle_general::OracleGeneral::new(false)))
        }
        Format::OracleGeneralOpNs => {
            Box::new(RecordReader::new(oracle_general::OracleGeneral::new(true)))
        }
        Format::Parquet => Box::new(parquet::ParquetTrace::new(path)),
    })
}
