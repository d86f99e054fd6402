//! The canonical file-operation record: what programs ask of a file system, above the block layer.
//!
//! A struct of arrays like [`crate::BlockBatch`]. Files and directories are numbered; [`PathTable`]
//! gives each number its path. In Parquet (schema version 1, `agewell.kind` = `file`) the path
//! stands beside the number in every row, where the dictionary encoding makes it nearly free:
//! `time_ns` u64, `finish_ns` u64?, `client` u32, `operation` u8, `file` u32, `directory` u32,
//! `offset` u64?, `length` u64?, `path` utf8, `new_path` utf8? (rename only). Invariants: columns
//! have one length; times do not fall; every `file` has a path.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, RecordBatch, StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use crate::checksums::{ParquetWriter, open_parquet};
use crate::columns::check_schema;
use crate::error::{Place, TraceError};
use crate::format::parquet::described;
use crate::guarded::{guarded, one_line};
use crate::metadata::TraceMetadata;
use crate::output::Output;
use crate::record::{BATCH_ROWS, TIME_MISSING};
use crate::write::parquet::{describing, properties};

/// Stands in `offset`, `length` and `new_file` where the operation has none.
pub const VALUE_MISSING: u64 = u64::MAX;

/// Rows in a row group; chosen by us as for blocks.
const GROUP_ROWS: usize = 1 << 20;

/// What a program asks of a file system. The discriminants are the codes of the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FileOperation {
    /// A new file; it is open afterwards.
    Create = 0,
    /// An existing file is opened.
    Open = 1,
    /// A file is closed.
    Close = 2,
    /// `length` bytes from `offset`.
    Read = 3,
    /// `length` bytes to `offset`.
    Write = 4,
    /// The file is cut or extended to `length` bytes.
    Truncate = 5,
    /// The name, and with the last one the file, is removed.
    Delete = 6,
    /// Everything written to the file must be durable.
    Sync = 7,
    /// A new directory.
    MakeDirectory = 8,
    /// An empty directory is removed.
    RemoveDirectory = 9,
    /// The file gets another path; it keeps its number.
    Rename = 10,
    /// Space is reserved: `length` bytes from `offset`.
    Allocate = 11,
    /// Attributes are read.
    Stat = 12,
    /// A directory is listed.
    List = 13,
}

impl FileOperation {
    /// Every operation, in the order of its code.
    pub const ALL: [FileOperation; 14] = [
        FileOperation::Create,
        FileOperation::Open,
        FileOperation::Close,
        FileOperation::Read,
        FileOperation::Write,
        FileOperation::Truncate,
        FileOperation::Delete,
        FileOperation::Sync,
        FileOperation::MakeDirectory,
        FileOperation::RemoveDirectory,
        FileOperation::Rename,
        FileOperation::Allocate,
        FileOperation::Stat,
        FileOperation::List,
    ];

    /// The operation with this code, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The name in messages and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FileOperation::Create => "create",
            FileOperation::Open => "open",
            FileOperation::Close => "close",
            FileOperation::Read => "read",
            FileOperation::Write => "write",
            FileOperation::Truncate => "truncate",
            FileOperation::Delete => "delete",
            FileOperation::Sync => "sync",
            FileOperation::MakeDirectory => "mkdir",
            FileOperation::RemoveDirectory => "rmdir",
            FileOperation::Rename => "rename",
            FileOperation::Allocate => "allocate",
            FileOperation::Stat => "stat",
            FileOperation::List => "list",
        }
    }
}

/// Numbers of files and directories and their paths, numbered in the order of appearance. Numbers
/// of deleted files are not used again; a path that is created again is a new file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathTable {
    paths: Vec<String>,
    by_path: BTreeMap<String, u32>,
}

impl PathTable {
    /// The number of the file at `path`, a new one if the path is new.
    pub fn number_of(&mut self, path: &str) -> u32 {
        if let Some(&number) = self.by_path.get(path) {
            return number;
        }
        let number = self.paths.len() as u32;
        self.paths.push(path.to_owned());
        self.by_path.insert(path.to_owned(), number);
        number
    }

    /// The number of the file that is at `path` now, if one was met there.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    /// The path of `number` as it is now.
    #[must_use]
    pub fn path(&self, number: u32) -> Option<&str> {
        self.paths.get(number as usize).map(String::as_str)
    }

    /// Gives file `number` another path; whatever was there is gone.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn rename(&mut self, number: u32, path: &str) {
        let old = std::mem::replace(&mut self.paths[number as usize], path.to_owned());
        if self.by_path.get(&old) == Some(&number) {
            self.by_path.remove(&old);
        }
        self.by_path.insert(path.to_owned(), number);
    }

    /// Forgets the path of a deleted file; its number keeps the path for messages.
    pub fn delete(&mut self, number: u32) {
        if let Some(path) = self.paths.get(number as usize)
            && self.by_path.get(path) == Some(&number)
        {
            self.by_path.remove(path);
        }
    }

    /// How many numbers were given.
    #[must_use]
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether no number was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

/// File operations as columns; every column has the same length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOperationBatch {
    /// When the program asked, ns from the start of the trace.
    pub time_ns: Vec<u64>,
    /// When it was answered, or [`TIME_MISSING`].
    pub finish_ns: Vec<u64>,
    /// Process or other client, 0 if unknown.
    pub client: Vec<u32>,
    /// [`FileOperation`] as its code.
    pub operation: Vec<u8>,
    /// Number of the file.
    pub file: Vec<u32>,
    /// Number of the directory that it is in.
    pub directory: Vec<u32>,
    /// First byte, or [`VALUE_MISSING`].
    pub offset: Vec<u64>,
    /// Bytes, or [`VALUE_MISSING`].
    pub length: Vec<u64>,
    /// Path of the file before the operation.
    pub path: Vec<String>,
    /// Path after a rename.
    pub new_path: Vec<Option<String>>,
}

impl FileOperationBatch {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Asserts that every column has the same length: a batch that breaks this is our own bug.
    ///
    /// # Panics
    /// If a column is shorter or longer than the first.
    pub fn verify(&self) {
        let rows = self.time_ns.len();
        assert_eq!(self.finish_ns.len(), rows);
        assert_eq!(self.client.len(), rows);
        assert_eq!(self.operation.len(), rows);
        assert_eq!(self.file.len(), rows);
        assert_eq!(self.directory.len(), rows);
        assert_eq!(self.offset.len(), rows);
        assert_eq!(self.length.len(), rows);
        assert_eq!(self.path.len(), rows);
        assert_eq!(self.new_path.len(), rows);
    }
}

/// Columns of a file-operation trace.
pub fn file_operation_schema() -> SchemaRef {
    let field = Field::new;
    Arc::new(Schema::new(vec![
        field("time_ns", DataType::UInt64, false),
        field("finish_ns", DataType::UInt64, true),
        field("client", DataType::UInt32, false),
        field("operation", DataType::UInt8, false),
        field("file", DataType::UInt32, false),
        field("directory", DataType::UInt32, false),
        field("offset", DataType::UInt64, true),
        field("length", DataType::UInt64, true),
        field("path", DataType::Utf8, false),
        field("new_path", DataType::Utf8, true),
    ]))
}

fn optional(values: &[u64]) -> ArrayRef {
    let known = values.iter().map(|&value| (value != VALUE_MISSING).then_some(value));
    Arc::new(known.collect::<UInt64Array>())
}

/// `batch` as Arrow columns.
///
/// # Panics
/// If the batch's columns differ in length, which is our own bug.
pub fn file_operations_to_arrow(batch: &FileOperationBatch) -> RecordBatch {
    batch.verify();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(batch.time_ns.clone())),
        optional(&batch.finish_ns),
        Arc::new(UInt32Array::from(batch.client.clone())),
        Arc::new(UInt8Array::from(batch.operation.clone())),
        Arc::new(UInt32Array::from(batch.file.clone())),
        Arc::new(UInt32Array::from(batch.directory.clone())),
        optional(&batch.offset),
        optional(&batch.length),
        Arc::new(StringArray::from_iter_values(&batch.path)),
        Arc::new(batch.new_path.iter().map(Option::as_deref).collect::<StringArray>()),
    ];
    RecordBatch::try_new(file_operation_schema(), columns)
        .expect("columns of one length and the schema's")
}

/// Writes a file-operation trace as Parquet; nothing stands under the final name before `finish`.
pub struct FileOperationWriter {
    path: String,
    writer: ParquetWriter<Output>,
}

impl FileOperationWriter {
    /// Creates `path`.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let output = Output::create(path)?;
        let path = path.display().to_string();
        let properties = properties(&["time_ns", "finish_ns", "offset"], GROUP_ROWS);
        let writer = ParquetWriter::new(output, file_operation_schema(), properties)
            .map_err(|error| failed(&path, &error))?;
        Ok(Self { path, writer })
    }

    /// Appends `batch`.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn write(&mut self, batch: &FileOperationBatch) -> Result<(), TraceError> {
        let columns = file_operations_to_arrow(batch);
        self.writer.write(&columns).map_err(|error| failed(&self.path, &error))
    }

    /// Completes the file; returns its bytes.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn finish(mut self, metadata: &TraceMetadata) -> Result<u64, TraceError> {
        for key in describing(metadata, "file") {
            self.writer.append_key(key);
        }
        let output = self.writer.finish().map_err(|error| failed(&self.path, &error))?;
        output.finish()
    }
}

fn failed(path: &str, error: &parquet::errors::ParquetError) -> TraceError {
    TraceError::Columns {
        path: path.to_owned(),
        what: "cannot write".to_owned(),
        message: one_line(error),
    }
}

/// An open file-operation trace.
pub struct FileOperationTrace {
    /// What the trace says about itself.
    pub metadata: TraceMetadata,
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    rows_promised: u64,
    rows: u64,
    latest_ns: u64,
}

impl FileOperationTrace {
    /// Opens the Parquet file `path`.
    ///
    /// # Errors
    /// If it cannot be read or holds something else.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| TraceError::Io {
            path: name.clone(),
            what: "cannot open".to_owned(),
            source,
            advice: "; check the path",
        })?;
        let damaged = |text: &str| TraceError::Columns {
            path: name.clone(),
            what: "record 1: no readable Parquet footer".to_owned(),
            message: text.to_owned(),
        };
        let panicked = |text: &str| TraceError::Columns {
            path: name.clone(),
            what: "record 1: no readable Parquet data".to_owned(),
            message: text.to_owned(),
        };
        let header = |problem: String| TraceError::Header {
            place: Box::new(Place {
                path: name.clone(),
                record: 0,
                line: None,
                byte: 0,
                decompressed: false,
            }),
            problem,
            advice: "give a file-operation trace that agewell wrote",
        };
        let builder = open_parquet(file).map_err(|text| damaged(text.as_str()))?;
        let file_metadata = builder.metadata().file_metadata();
        let (kind, metadata) = described(file_metadata.key_value_metadata()).map_err(header)?;
        if kind.as_deref() == Some("block") {
            return Err(header("holds block requests, not file operations".to_owned()));
        }
        check_schema(builder.schema(), &file_operation_schema()).map_err(header)?;
        let rows_promised = u64::try_from(file_metadata.num_rows())
            .map_err(|_| header("a negative number of rows".to_owned()))?;
        if rows_promised == 0 {
            return Err(TraceError::Empty { path: name, byte: 0, what: "no record in it" });
        }
        let reader = guarded(|| builder.with_batch_size(BATCH_ROWS).build())
            .map_err(|text| panicked(&text))?
            .map_err(|error| damaged(&one_line(error)))?;
        Ok(Self {
            metadata: metadata.unwrap_or_default(),
            path: path.to_owned(),
            reader,
            rows_promised,
            rows: 0,
            latest_ns: 0,
        })
    }

    /// Replaces the content of `batch` by the next operations; `false` at the end.
    ///
    /// # Errors
    /// The first thing wrong with the trace.
    pub fn next_batch(&mut self, batch: &mut FileOperationBatch) -> Result<bool, TraceError> {
        *batch = FileOperationBatch::default();
        let error = |what: String, message: String| TraceError::Columns {
            path: self.path.display().to_string(),
            what,
            message,
        };
        let damaged = format!("damaged data after record {}", self.rows);
        let next =
            guarded(|| self.reader.next()).map_err(|message| error(damaged.clone(), message))?;
        let Some(columns) = next else {
            if self.rows != self.rows_promised {
                let message = format!("the footer promises {} records", self.rows_promised);
                return Err(error(format!("record {}", self.rows + 1), message));
            }
            return Ok(false);
        };
        let columns = columns.map_err(|cause| error(damaged.clone(), one_line(cause)))?;
        fill(&columns, batch).map_err(|message| error(damaged, message))?;
        batch.verify();
        for (index, (&time_ns, &code)) in batch.time_ns.iter().zip(&batch.operation).enumerate() {
            let place = || format!("record {}", self.rows + 1 + index as u64);
            if FileOperation::from_code(code).is_none() {
                return Err(error(place(), format!("operation code {code} is none of 0 to 13")));
            }
            if time_ns < self.latest_ns {
                return Err(error(place(), format!("the clock goes back to {time_ns} ns")));
            }
            self.latest_ns = time_ns;
        }
        self.rows += batch.len() as u64;
        Ok(true)
    }
}

fn fill(columns: &RecordBatch, batch: &mut FileOperationBatch) -> Result<(), String> {
    let column = |name: &str, may_be_null: bool| -> Result<&ArrayRef, String> {
        let array =
            columns.column_by_name(name).ok_or_else(|| format!("there is no column '{name}'"))?;
        if array.null_count() > 0 && !may_be_null {
            return Err(format!("column '{name}' holds a null"));
        }
        Ok(array)
    };
    let optional = |name: &str| -> Result<Vec<u64>, String> {
        let array = column(name, true)?.as_primitive::<UInt64Type>();
        Ok(array.iter().map(|value| value.unwrap_or(VALUE_MISSING)).collect())
    };
    let numbers = |name: &str| -> Result<Vec<u32>, String> {
        Ok(column(name, false)?.as_primitive::<UInt32Type>().values().to_vec())
    };
    batch.time_ns = column("time_ns", false)?.as_primitive::<UInt64Type>().values().to_vec();
    batch.finish_ns = optional("finish_ns")?;
    const { assert!(TIME_MISSING == VALUE_MISSING, "one value stands for both") };
    batch.client = numbers("client")?;
    batch.operation = column("operation", false)?.as_primitive::<UInt8Type>().values().to_vec();
    batch.file = numbers("file")?;
    batch.directory = numbers("directory")?;
    batch.offset = optional("offset")?;
    batch.length = optional("length")?;
    let texts = |name: &str| -> Result<Vec<Option<String>>, String> {
        let array = column(name, name == "new_path")?.as_string::<i32>();
        Ok(array.iter().map(|text| text.map(str::to_owned)).collect())
    };
    batch.path = texts("path")?.into_iter().map(Option::unwrap_or_default).collect();
    batch.new_path = texts("new_path")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_created_anew_is_a_new_file_and_a_renamed_one_is_not() {
        let mut table = PathTable::default();
        let first = table.number_of("a/x");
        table.rename(first, "a/y");
        assert_eq!(table.number_of("a/y"), first);
        assert_ne!(table.number_of("a/x"), first);
        table.delete(first);
        assert_ne!(table.number_of("a/y"), first);
        assert_eq!(table.path(first), Some("a/y"));
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn operations_survive_parquet() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("operations.parquet");
        let mut batch = FileOperationBatch::default();
        for (index, operation) in FileOperation::ALL.into_iter().enumerate() {
            let moves = matches!(operation, FileOperation::Read | FileOperation::Write);
            batch.time_ns.push(index as u64 * 1000);
            batch.finish_ns.push(if index % 2 == 0 { TIME_MISSING } else { index as u64 * 1001 });
            batch.client.push(7);
            batch.operation.push(operation as u8);
            batch.file.push(3);
            batch.directory.push(1);
            batch.offset.push(if moves { 4096 } else { VALUE_MISSING });
            batch.length.push(if moves { 100 } else { VALUE_MISSING });
            batch.path.push("a/x".to_owned());
            let renamed = operation == FileOperation::Rename;
            batch.new_path.push(renamed.then(|| "a/y".to_owned()));
        }
        let metadata = TraceMetadata { format: "strace".to_owned(), ..TraceMetadata::default() };
        let mut writer = FileOperationWriter::create(&path).expect("created");
        writer.write(&batch).expect("written");
        assert!(!path.exists(), "nothing under the final name before the end");
        writer.finish(&metadata).expect("finished");
        let mut trace = FileOperationTrace::open(&path).expect("opens");
        assert_eq!(trace.metadata.format, "strace");
        let mut back = FileOperationBatch::default();
        assert!(trace.next_batch(&mut back).expect("reads"));
        assert_eq!(back, batch);
        assert!(!trace.next_batch(&mut back).expect("ends"));
        // A block reader must not take it for blocks.
        let mistaken = crate::open_block_trace(&path, &crate::ReadOptions::default());
        let text = mistaken.err().expect("refused").to_string();
        assert!(text.contains("file operations"), "{text}");
    }
}
