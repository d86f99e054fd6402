//! Parquet files of this crate: whole under their final name or not there at all, and read without
//! a panic however mangled they are.
//!
//! A file carries three keys beside its columns: `agewell.kind` says what it holds,
//! `agewell.schema_version` in which version of the columns, `agewell.metadata` the rest as JSON.
//! The same rows and keys give the same bytes. Memory is bounded by one row group.

use std::fs::File;
use std::path::{Path, PathBuf};

use agewell_trace::{
    KEY_KIND, KEY_METADATA, KEY_SCHEMA_VERSION, Output, ParquetWriter, TraceError, guarded,
    one_line, open_parquet,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::SnapshotError;

/// Rows in a row group: some 10 MB of memory while it is encoded; chosen by us.
const GROUP_ROWS: usize = 1 << 18;
/// Rows decoded at a time, so that a batch of a dozen columns stays within the cache; chosen by us.
const BATCH_ROWS: usize = 1 << 13;

impl From<TraceError> for SnapshotError {
    fn from(error: TraceError) -> Self {
        if matches!(error, TraceError::Interrupted) {
            Self::Stopped
        } else if error.is_input_error() {
            Self::Input(error.to_string())
        } else {
            Self::Run(error.to_string())
        }
    }
}

/// What a file of tables holds and in which version.
#[derive(Debug, Clone, Copy)]
pub struct TableKind {
    /// Value of `agewell.kind`, for instance `workload`.
    pub name: &'static str,
    /// Newest version of the columns that is read, and the one that is written.
    pub version: u32,
}

/// Writes one table; nothing stands under the final name before [`TableWriter::finish`].
pub struct TableWriter {
    path: PathBuf,
    kind: TableKind,
    writer: ParquetWriter<Output>,
}

impl TableWriter {
    /// Creates `path`; the columns named in `delta` rise or hardly repeat, so that differences
    /// beat a dictionary.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(
        path: &Path,
        kind: TableKind,
        schema: SchemaRef,
        delta: &[&str],
    ) -> Result<Self, SnapshotError> {
        let output = Output::create(path)?;
        let writer = ParquetWriter::new(output, schema, properties(delta))
            .map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path: path.to_owned(), kind, writer })
    }

    /// Appends `rows`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), SnapshotError> {
        self.writer.write(rows).map_err(|error| cannot_write(&self.path, &error))
    }

    /// Completes the file with `metadata`, JSON text; returns its bytes.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, metadata: String) -> Result<u64, SnapshotError> {
        for (key, value) in [
            (KEY_SCHEMA_VERSION, self.kind.version.to_string()),
            (KEY_KIND, self.kind.name.to_owned()),
            (KEY_METADATA, metadata),
        ] {
            self.writer.append_key(KeyValue::new(key.to_owned(), value));
        }
        let output = self.writer.finish().map_err(|error| cannot_write(&self.path, &error))?;
        Ok(output.finish()?)
    }
}

fn properties(delta: &[&str]) -> WriterPropertiesBuilder {
    // Level 1: several times the speed of the default level for about a tenth more bytes.
    let level = ZstdLevel::try_new(1).expect("1 is a level");
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for name in delta {
        let column = ColumnPath::from(*name);
        builder = builder
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    builder
}

fn cannot_write(path: &Path, error: &parquet::errors::ParquetError) -> SnapshotError {
    SnapshotError::Run(format!("{}: cannot be written: {}", path.display(), one_line(error)))
}

/// An open table.
pub struct TableReader {
    path: PathBuf,
    /// The value of `agewell.metadata`.
    pub metadata: String,
    /// Rows in all, as the footer says.
    pub rows: u64,
    schema: SchemaRef,
    reader: Option<ParquetRecordBatchReader>,
    rows_read: u64,
}

impl TableReader {
    /// Opens `path`, which must hold `kind` with at least the columns of `schema`.
    ///
    /// # Errors
    /// If it cannot be read or holds something else.
    pub fn open(path: &Path, kind: TableKind, schema: &SchemaRef) -> Result<Self, SnapshotError> {
        let input = |what: String| SnapshotError::Input(format!("{}: {what}", path.display()));
        let file = File::open(path).map_err(|why| {
            input(format!("cannot be opened: {why}; give a {} file of agewell", kind.name))
        })?;
        let unreadable = |text: String| {
            input(format!(
                "no readable Parquet footer ({text}); give a {} file of agewell",
                kind.name
            ))
        };
        let builder = open_parquet(file).map_err(unreadable)?;
        let footer = builder.metadata().file_metadata();
        let pairs = footer.key_value_metadata();
        let value = |key: &str| {
            let found = pairs.into_iter().flatten().find(|pair| pair.key == key);
            found.and_then(|pair| pair.value.clone()).unwrap_or_default()
        };
        let found = value(KEY_KIND);
        if found != kind.name {
            let found = if found.is_empty() { "something else".to_owned() } else { found };
            return Err(input(format!(
                "holds {found}, not a {0}; give a {0} file of agewell",
                kind.name
            )));
        }
        let version = value(KEY_SCHEMA_VERSION);
        if version.parse::<u32>().is_ok_and(|version| version > kind.version) {
            return Err(input(format!(
                "schema version {version} is newer than {}; use a newer agewell",
                kind.version
            )));
        }
        for field in schema.fields() {
            let found = builder.schema().field_with_name(field.name()).ok();
            if found.map(arrow_schema::Field::data_type) != Some(field.data_type()) {
                return Err(input(format!(
                    "column '{}' must be {}; give a {} file of agewell",
                    field.name(),
                    field.data_type(),
                    kind.name
                )));
            }
        }
        let metadata = value(KEY_METADATA);
        let rows = u64::try_from(footer.num_rows())
            .map_err(|_| input("a negative number of rows; the file is damaged".to_owned()))?;
        let reader = guarded(|| builder.with_batch_size(BATCH_ROWS).build())
            .map_err(unreadable)?
            .map_err(|error| unreadable(one_line(error)))?;
        Ok(Self {
            path: path.to_owned(),
            metadata,
            rows,
            schema: schema.clone(),
            reader: Some(reader),
            rows_read: 0,
        })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Rows handed out so far.
    #[must_use]
    pub fn rows_read(&self) -> u64 {
        self.rows_read
    }

    /// The next rows, their columns in the order of the schema; `None` at the end.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn next_rows(&mut self) -> Result<Option<RecordBatch>, SnapshotError> {
        // A reader that has panicked is not asked again.
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        let path = self.path.display().to_string();
        let row = self.rows_read + 1;
        let damaged = |text: String| {
            SnapshotError::Input(format!(
                "{path}: row {row}: {text}; the file is damaged, make it again"
            ))
        };
        let (reader, next) = guarded(move || (reader.next(), reader))
            .map(|(next, reader)| (reader, next))
            .map_err(&damaged)?;
        let Some(rows) = next else {
            if self.rows_read == self.rows {
                return Ok(None);
            }
            return Err(damaged(format!("the footer promises {} rows", self.rows)));
        };
        let rows = rows.map_err(|error| damaged(one_line(error)))?;
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields() {
            let column = rows.column_by_name(field.name()).cloned();
            let column = column.ok_or_else(|| damaged(format!("no column '{}'", field.name())))?;
            if column.null_count() > 0 && !field.is_nullable() {
                return Err(damaged(format!("column '{}' holds a null", field.name())));
            }
            columns.push(column);
        }
        let rows = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| damaged(one_line(error)))?;
        self.rows_read += rows.num_rows() as u64;
        self.reader = Some(reader);
        Ok(Some(rows))
    }
}
