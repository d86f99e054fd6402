//! Block and file-operation traces: one strict streaming reader per format, filters, writers.
//!
//! Every reader gives the same columns ([`BlockBatch`]): times in integer nanoseconds from the
//! trace's start, addresses in 512-byte sectors. Memory is bounded whatever the length of the
//! trace. A damaged input gives one error that names file, record, line and byte; a read error is
//! never taken for the end.
//!
//! This crate knows neither disks nor simulations.

mod checksums;
mod civil;
mod columns;
mod convert;
mod error;
mod fields;
mod file_operation;
mod filter;
mod format;
mod growing;
mod guarded;
mod located;
mod merge;
mod metadata;
mod output;
mod pairing;
pub mod record;
mod reorder_window;
mod request_stream;
mod source;
mod summary;
mod trace;
pub mod workload;
mod write;

pub use checksums::{
    CHECKSUMS_VERSION, CheckedFile, KEY_CHECKSUMS, ParquetWriter, check_parquet, open_parquet,
    with_checksums,
};
pub use civil::civil_text;
pub use columns::{KEY_KIND, KEY_METADATA, KEY_SCHEMA_VERSION, block_schema, block_to_arrow};
pub use convert::{Conversion, convert, convert_strace, is_strace};
pub use error::{Place, TraceError};
pub use file_operation::{
    FileOperation, FileOperationBatch, FileOperationTrace, FileOperationWriter, PathTable,
    VALUE_MISSING, file_operation_schema, file_operations_to_arrow,
};
pub use filter::{Filter, FilterPipe};
pub use format::strace::{StraceOptions, StraceTrace};
pub use format::{Confidence, Detected, Format, FormatDescription};
pub use growing::{GrowingTrace, recover, unfinished};
pub use guarded::{guarded, one_line};
pub use located::{BusyFile, BusyFiles, FilePart, LocatedWriter, Paths, busy_files};
pub use merge::MergedTrace;
pub use metadata::{DeviceDescription, DriveDescription, Partition, SCHEMA_VERSION, TraceMetadata};
pub use output::{Output, write_whole, write_whole_unsynced};
pub use pairing::{Event, EventKind, Letters, letters};
pub use record::{BATCH_ROWS, BlockBatch, BlockRow, TIME_MISSING};
pub use request_stream::RequestStream;
pub use source::Compression;
pub use summary::{DeviceSummary, SizeCount, Summarizer, TimeSummary, TraceSummary};
pub use trace::{BlockSource, BlockTrace, ReadOptions, open_block_trace, read_block_trace};
pub use write::{BlockSink, OutputFormat, Written, create_block_trace, write_requests};
