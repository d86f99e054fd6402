//! The file of a workload: Parquet, one row an operation.
//!
//! Columns (version 1): `time_ns` u64, `action` u8 (the number of the [`Action`]), `file` u32,
//! `directory` u32, `offset_bytes` u64, `size_bytes` u64, `stream` u16; none is ever null. The key
//! `agewell.kind` is `workload`, `agewell.metadata` holds [`WorkloadFacts`] as JSON. Row groups have
//! 2^18 rows, so both ends need memory for one of them and for what is alive.
//!
//! The reader checks every rule of [`crate::operation`] and, at the end, that the file holds what
//! its facts promise: a target may count on both. Cost: decoding seven columns and one step of
//! [`LiveSet`] a row; the benchmark `workload` prints operations a second.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, UInt8Array, UInt16Array, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::{LiveSet, OperationSink, WorkloadFacts};
use crate::{Action, AgeError, Operation};
use crate::{TableKind, TableReader, TableWriter};

const KIND: TableKind = TableKind { name: "workload", version: 1 };
/// Rows handed to the encoder at a time; chosen by us to hide its cost per column.
const WRITE_ROWS: usize = 1 << 15;

fn schema() -> SchemaRef {
    let field = |name, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        field("time_ns", DataType::UInt64),
        field("action", DataType::UInt8),
        field("file", DataType::UInt32),
        field("directory", DataType::UInt32),
        field("offset_bytes", DataType::UInt64),
        field("size_bytes", DataType::UInt64),
        field("stream", DataType::UInt16),
    ]))
}

#[derive(Default)]
struct Columns {
    time_ns: Vec<u64>,
    action: Vec<u8>,
    file: Vec<u32>,
    directory: Vec<u32>,
    offset_bytes: Vec<u64>,
    size_bytes: Vec<u64>,
    stream: Vec<u16>,
}

/// Writes a workload; the file has its name only after [`WorkloadWriter::finish`].
pub struct WorkloadWriter {
    table: TableWriter,
    schema: SchemaRef,
    columns: Columns,
}

impl WorkloadWriter {
    /// Creates `path`.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path) -> Result<Self, AgeError> {
        let schema = schema();
        let table = TableWriter::create(path, KIND, schema.clone(), &["time_ns", "file"])?;
        Ok(Self { table, schema, columns: Columns::default() })
    }

    /// Completes the file; returns its bytes.
    ///
    /// # Errors
    /// If the file cannot be written.
    ///
    /// # Panics
    /// Never: facts are plain data.
    pub fn finish(mut self, facts: &WorkloadFacts) -> Result<u64, AgeError> {
        self.flush()?;
        let facts = serde_json::to_string(facts).expect("plain data with text keys");
        self.table.finish(facts)
    }

    fn flush(&mut self) -> Result<(), AgeError> {
        let columns = std::mem::take(&mut self.columns);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(columns.time_ns)),
            Arc::new(UInt8Array::from(columns.action)),
            Arc::new(UInt32Array::from(columns.file)),
            Arc::new(UInt32Array::from(columns.directory)),
            Arc::new(UInt64Array::from(columns.offset_bytes)),
            Arc::new(UInt64Array::from(columns.size_bytes)),
            Arc::new(UInt16Array::from(columns.stream)),
        ];
        let rows = RecordBatch::try_new(self.schema.clone(), arrays)
            .expect("columns of one length and the schema's");
        self.table.write(&rows)
    }
}

impl OperationSink for WorkloadWriter {
    #[inline]
    fn push(&mut self, operation: &Operation) -> Result<(), AgeError> {
        self.columns.time_ns.push(operation.time_ns);
        self.columns.action.push(operation.action as u8);
        self.columns.file.push(operation.file);
        self.columns.directory.push(operation.directory);
        self.columns.offset_bytes.push(operation.offset_bytes);
        self.columns.size_bytes.push(operation.size_bytes);
        self.columns.stream.push(operation.stream);
        if self.columns.time_ns.len() >= WRITE_ROWS { self.flush() } else { Ok(()) }
    }
}

/// Reads a workload and checks it on the way.
pub struct WorkloadReader {
    table: TableReader,
    facts: WorkloadFacts,
    live_set: LiveSet,
}

impl WorkloadReader {
    /// Opens `path`.
    ///
    /// # Errors
    /// If it cannot be read or is no workload.
    pub fn open(path: &Path) -> Result<Self, AgeError> {
        let table = TableReader::open(path, KIND, &schema())?;
        let facts: WorkloadFacts = serde_json::from_str(&table.metadata).map_err(|error| {
            AgeError::Input(format!(
                "{}: the facts in its footer make no sense ({error}); make the workload again",
                path.display()
            ))
        })?;
        Ok(Self { table, facts, live_set: LiveSet::default() })
    }

    /// What the workload says about itself; held against the operations at the end.
    #[must_use]
    pub fn facts(&self) -> &WorkloadFacts {
        &self.facts
    }

    /// What is alive after the operations read so far, and their counts.
    #[must_use]
    pub fn live_set(&self) -> &LiveSet {
        &self.live_set
    }

    /// Replaces the content of `batch` by the next operations; `false` at the end.
    ///
    /// # Errors
    /// If the file is damaged, breaks a rule, or does not hold what its facts say.
    pub fn next_batch(&mut self, batch: &mut Vec<Operation>) -> Result<bool, AgeError> {
        batch.clear();
        let Some(rows) = self.table.next_rows()? else {
            self.check_facts()?;
            return Ok(false);
        };
        let first_row = self.table.rows_read() - rows.num_rows() as u64 + 1;
        let number64 = |column: usize| rows.column(column).as_primitive::<UInt64Type>().values();
        let number32 = |column: usize| rows.column(column).as_primitive::<UInt32Type>().values();
        let (times, offsets, sizes) = (number64(0), number64(4), number64(5));
        let (files, directories) = (number32(2), number32(3));
        let actions = rows.column(1).as_primitive::<UInt8Type>().values();
        let streams = rows.column(6).as_primitive::<UInt16Type>().values();
        batch.reserve(rows.num_rows());
        for row in 0..rows.num_rows() {
            let damaged = |what: String| {
                AgeError::Input(format!(
                    "{}: operation {}: {what}; make the workload again",
                    self.table.path().display(),
                    first_row + row as u64
                ))
            };
            let Some(&action) = Action::ALL.get(usize::from(actions[row])) else {
                return Err(damaged(format!("action {} is none of 0 to 9", actions[row])));
            };
            let operation = Operation {
                time_ns: times[row],
                file: files[row],
                directory: directories[row],
                offset_bytes: offsets[row],
                size_bytes: sizes[row],
                stream: streams[row],
                action,
            };
            if let Err(rule) = self.live_set.apply(&operation) {
                return Err(damaged(rule.to_string()));
            }
            batch.push(operation);
        }
        Ok(true)
    }

    /// Every operation that is left, in memory.
    ///
    /// # Errors
    /// As [`WorkloadReader::next_batch`].
    pub fn read_all(&mut self) -> Result<Vec<Operation>, AgeError> {
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while self.next_batch(&mut batch)? {
            all.extend_from_slice(&batch);
        }
        Ok(all)
    }

    fn check_facts(&self) -> Result<(), AgeError> {
        let wrong = |name: &str, said: u64, counted: u64| {
            Err(AgeError::Input(format!(
                "{}: its facts say {said} {name}, its operations make {counted}; make the \
                 workload again",
                self.table.path().display()
            )))
        };
        let (facts, live_set) = (&self.facts, &self.live_set);
        for (name, said, counted) in [
            ("operations", facts.operations, live_set.operations()),
            ("bytes written", facts.written_bytes, live_set.written_bytes),
            ("bytes alive at the end", facts.live_bytes, live_set.live_bytes),
            ("bytes alive at the peak", facts.peak_live_bytes, live_set.live_bytes_max),
            ("files alive at the end", facts.live_files, live_set.live_files),
            ("numbers of files", facts.file_numbers.into(), live_set.file_numbers().into()),
            (
                "numbers of directories",
                facts.directories.into(),
                live_set.directory_numbers().into(),
            ),
            ("streams", facts.streams.into(), live_set.streams.into()),
        ] {
            if said != counted {
                return wrong(name, said, counted);
            }
        }
        Ok(())
    }
}
