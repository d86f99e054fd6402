//! Block traces whose requests also say which file they are of.
//!
//! Beside the columns of every block trace there are three: `path` (text, null where the file is not
//! known), `file_offset` (u64, bytes: where in the file the request's part of it begins) and
//! `file_sectors` (u32: how much of the request is of that file; a request of several files names the
//! one with the largest part). Readers of block traces pass them over.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{StringDictionaryBuilder, UInt32Builder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt8Type, UInt32Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use serde::Serialize;

use crate::checksums::{ParquetWriter, open_parquet};
use crate::columns::{block_schema, block_to_arrow};
use crate::error::TraceError;
use crate::guarded::one_line;
use crate::metadata::TraceMetadata;
use crate::output::Output;
use crate::record::BlockBatch;
use crate::write::parquet::{GROUP_ROWS, TIMES_AND_ADDRESSES, describing, properties};

/// Which part of a file a request is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePart {
    /// Number of the file, for the table of paths.
    pub file: u32,
    /// Where in the file, bytes.
    pub offset_bytes: u64,
    /// How much of the request.
    pub sectors: u32,
}

fn schema() -> SchemaRef {
    let path = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let mut fields: Vec<Arc<Field>> = block_schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("path", path, true)));
    fields.push(Arc::new(Field::new("file_offset", DataType::UInt64, true)));
    fields.push(Arc::new(Field::new("file_sectors", DataType::UInt32, true)));
    Arc::new(Schema::new(fields))
}

/// Writes a block trace with the files of its requests.
pub struct LocatedWriter {
    path: String,
    schema: SchemaRef,
    writer: ParquetWriter<Output>,
}

impl LocatedWriter {
    /// Begins the trace `path`.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let output = Output::create(path)?;
        let path = path.display().to_string();
        let schema = schema();
        let properties = properties(&TIMES_AND_ADDRESSES, GROUP_ROWS);
        let writer = ParquetWriter::new(output, schema.clone(), properties)
            .map_err(|error| failed(&path, "cannot write", &error))?;
        Ok(Self { path, schema, writer })
    }

    /// Appends the rows of `batch`, each with its part of a file; `paths` holds the paths by number.
    ///
    /// # Errors
    /// If they cannot be written.
    ///
    /// # Panics
    /// If there are not as many parts as rows, or a part names no path.
    pub fn write(
        &mut self,
        batch: &BlockBatch,
        parts: &[Option<FilePart>],
        paths: &[String],
    ) -> Result<(), TraceError> {
        assert_eq!(batch.len(), parts.len());
        let mut names = StringDictionaryBuilder::<Int32Type>::new();
        let mut offsets = UInt64Builder::with_capacity(parts.len());
        let mut sectors = UInt32Builder::with_capacity(parts.len());
        for part in parts {
            names.append_option(part.map(|part| paths[part.file as usize].as_str()));
            offsets.append_option(part.map(|part| part.offset_bytes));
            sectors.append_option(part.map(|part| part.sectors));
        }
        let mut columns = block_to_arrow(batch).columns().to_vec();
        let more: [ArrayRef; 3] =
            [Arc::new(names.finish()), Arc::new(offsets.finish()), Arc::new(sectors.finish())];
        columns.extend(more);
        let rows = RecordBatch::try_new(self.schema.clone(), columns)
            .expect("columns of the schema's types");
        self.writer.write(&rows).map_err(|error| failed(&self.path, "cannot write", &error))
    }

    /// Completes the trace under its name; returns its bytes.
    ///
    /// # Errors
    /// If it cannot be written; what stood there stays then.
    pub fn finish(mut self, metadata: &TraceMetadata) -> Result<u64, TraceError> {
        for key in describing(metadata, "block") {
            self.writer.append_key(key);
        }
        let output =
            self.writer.finish().map_err(|error| failed(&self.path, "cannot write", &error))?;
        output.finish()
    }
}

fn failed(path: &str, what: &str, error: &impl std::fmt::Display) -> TraceError {
    TraceError::Columns { path: path.to_owned(), what: what.to_owned(), message: one_line(error) }
}

/// What was asked of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BusyFile {
    /// Its path.
    pub path: String,
    /// Reads and writes.
    pub requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// The files of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BusyFiles {
    /// Sectors read and written.
    pub sectors: u64,
    /// Of them, those of known files.
    pub file_sectors: u64,
    /// How many files were read or written.
    pub files: u64,
    /// Those with most bytes, most first; of equal ones by path.
    pub busiest: Vec<BusyFile>,
}

/// The `count` files of which most was read and written in the Parquet trace `path`; `None` if it
/// does not say which files its requests are of.
///
/// # Errors
/// If it cannot be read.
///
/// # Panics
/// If the library reads other columns than it was asked for.
pub fn busy_files(path: &Path, count: usize) -> Result<Option<BusyFiles>, TraceError> {
    let shown = path.display().to_string();
    let opened = File::open(path).map_err(|source| TraceError::Io {
        path: shown.clone(),
        what: "cannot open".to_owned(),
        source,
        advice: "; check the path",
    })?;
    let builder =
        open_parquet(opened).map_err(|message| failed(&shown, "cannot read", &message))?;
    let wanted = schema();
    let has = |name: &str| {
        let found = builder.schema().field_with_name(name).map(Field::data_type);
        found.is_ok_and(|found| {
            wanted.field_with_name(name).is_ok_and(|field| field.data_type() == found)
        })
    };
    let names = ["operation", "sectors", "path", "file_sectors"];
    if !names.into_iter().all(has) {
        return Ok(None);
    }
    let mask = ProjectionMask::columns(builder.parquet_schema(), names);
    let reader = builder
        .with_projection(mask)
        .build()
        .map_err(|error| failed(&shown, "cannot read", &error))?;
    let mut found = BusyFiles::default();
    // Looked up by path only; the order of what comes out is that of the paths.
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut files: Vec<BusyFile> = Vec::new();
    for rows in reader {
        let rows = rows.map_err(|error| failed(&shown, "cannot read", &error))?;
        let column = |name: &str| rows.column_by_name(name).expect("projected");
        let operations = column("operation").as_primitive::<UInt8Type>();
        let sectors = column("sectors").as_primitive::<UInt32Type>();
        let parts = column("file_sectors").as_primitive::<UInt32Type>();
        let paths = column("path").as_dictionary::<Int32Type>();
        let texts = paths.values().as_string::<i32>();
        let of_value: Vec<usize> = (0..texts.len())
            .map(|value| {
                let next = files.len();
                let text = texts.value(value);
                let number = *numbers.entry(text.to_owned()).or_insert(next);
                if number == next {
                    files.push(BusyFile { path: text.to_owned(), ..BusyFile::default() });
                }
                number
            })
            .collect();
        for row in 0..rows.num_rows() {
            let operation = operations.value(row);
            if operation > 1 {
                continue;
            }
            found.sectors += u64::from(sectors.value(row));
            let Some(value) = paths.key(row).filter(|_| parts.is_valid(row)) else { continue };
            let part = u64::from(parts.value(row));
            found.file_sectors += part;
            let file = &mut files[of_value[value]];
            file.requests += 1;
            let bytes = if operation == 0 { &mut file.read_bytes } else { &mut file.written_bytes };
            *bytes += part * 512;
        }
    }
    let moved = |file: &BusyFile| file.read_bytes + file.written_bytes;
    files.retain(|file| file.requests > 0);
    found.files = files.len() as u64;
    files.sort_by(|one, other| {
        moved(other).cmp(&moved(one)).then_with(|| one.path.cmp(&other.path))
    });
    files.truncate(count);
    found.busiest = files;
    Ok(Some(found))
}

/// Numbers for paths as they come.
#[derive(Debug, Default)]
pub struct Paths {
    numbers: BTreeMap<String, u32>,
    paths: Vec<String>,
}

impl Paths {
    /// The number of `path`.
    pub fn number(&mut self, path: String) -> u32 {
        let next = self.paths.len() as u32;
        let number = *self.numbers.entry(path.clone()).or_insert(next);
        if number == next {
            self.paths.push(path);
        }
        number
    }

    /// The paths by their numbers.
    #[must_use]
    pub fn all(&self) -> &[String] {
        &self.paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::BlockRow;
    use crate::trace::{ReadOptions, open_block_trace};

    #[test]
    fn requests_name_their_files_and_every_reader_still_reads_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.parquet");
        let mut paths = Paths::default();
        let (one, other) = (paths.number("a/one".to_owned()), paths.number("b/other".to_owned()));
        assert_eq!(paths.number("a/one".to_owned()), one);
        let mut batch = BlockBatch::default();
        let mut parts = Vec::new();
        for (row, part) in
            [Some((one, 8)), None, Some((other, 4)), Some((one, 8))].iter().enumerate()
        {
            batch.push(BlockRow {
                enqueue_ns: row as u64,
                sectors: 8,
                operation: (row % 2) as u8,
                ..BlockRow::default()
            });
            let part = part.map(|(file, sectors)| FilePart { file, offset_bytes: 512, sectors });
            parts.push(part);
        }
        let mut writer = LocatedWriter::create(&path).unwrap();
        writer.write(&batch, &parts, paths.all()).unwrap();
        writer.finish(&TraceMetadata::default()).unwrap();
        let found = busy_files(&path, 1).unwrap().expect("files");
        assert_eq!((found.sectors, found.file_sectors, found.files), (32, 20, 2));
        let busiest = BusyFile {
            path: "a/one".to_owned(),
            requests: 2,
            read_bytes: 4096,
            written_bytes: 4096,
        };
        assert_eq!(found.busiest, [busiest]);
        let mut trace = open_block_trace(&path, &ReadOptions::default()).unwrap();
        let mut read = BlockBatch::default();
        assert!(trace.next_batch(&mut read).unwrap());
        assert_eq!(read, batch);
    }

    #[test]
    fn a_trace_without_files_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.parquet");
        let mut batch = BlockBatch::default();
        batch.push(BlockRow { sectors: 8, ..BlockRow::default() });
        crate::write::write_requests(&path, &mut batch).unwrap();
        assert_eq!(busy_files(&path, 10).unwrap(), None);
    }
}
