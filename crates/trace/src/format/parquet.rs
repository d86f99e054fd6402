//! agewell's own store: Parquet with the columns of [`crate::columns`]. Needs a file, since the
//! footer stands at the end.

use std::fs::File;
use std::path::{Path, PathBuf};

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use agewell_core::Operation;

use super::{Confidence, RowReader, Sample, bad_record};
use crate::checksums::open_parquet;
use crate::columns::{
    KEY_KIND, KEY_METADATA, KEY_SCHEMA_VERSION, arrow_to_block, block_schema, check_schema,
};
use crate::error::{Place, Problem, TraceError};
use crate::guarded::{guarded, one_line};
use crate::metadata::{SCHEMA_VERSION, TraceMetadata};
use crate::record::{BATCH_ROWS, BlockBatch};
use crate::reorder_window::ReorderWindow;
use crate::source::Source;

pub(crate) fn fit(sample: &Sample<'_>) -> Confidence {
    if sample.bytes.starts_with(b"PAR1") { Confidence::Certain } else { Confidence::No }
}

pub(crate) struct ParquetTrace {
    path: PathBuf,
    reader: Option<ParquetRecordBatchReader>,
    rows_promised: u64,
    rows: u64,
    batch: BlockBatch,
}

/// What the key-value part of a Parquet file says, and whether it is agewell's.
pub(crate) fn described(
    pairs: Option<&Vec<::parquet::file::metadata::KeyValue>>,
) -> Result<(Option<String>, Option<TraceMetadata>), String> {
    let find = |key: &str| {
        pairs.into_iter().flatten().find(|pair| pair.key == key).and_then(|pair| pair.value.clone())
    };
    if let Some(version) = find(KEY_SCHEMA_VERSION) {
        let known = version.parse::<u32>().is_ok_and(|version| version <= SCHEMA_VERSION);
        if !known {
            return Err(format!(
                "schema version {version} is newer than {SCHEMA_VERSION}; use a newer agewell"
            ));
        }
    }
    let metadata = find(KEY_METADATA)
        .map(|text| serde_json::from_str(&text).map_err(|error| format!("{KEY_METADATA}: {error}")))
        .transpose()?;
    Ok((find(KEY_KIND), metadata))
}

impl ParquetTrace {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            reader: None,
            rows_promised: 0,
            rows: 0,
            batch: BlockBatch::default(),
        }
    }

    fn columns_error(&self, what: String, message: impl std::fmt::Display) -> TraceError {
        let message = one_line(message);
        TraceError::Columns { path: self.path.display().to_string(), what, message }
    }

    fn header_error(&self, problem: String) -> TraceError {
        TraceError::Header {
            place: Box::new(Place {
                path: self.path.display().to_string(),
                record: 0,
                line: None,
                byte: 0,
                decompressed: false,
            }),
            problem,
            advice: "give a Parquet file that agewell wrote",
        }
    }
}

impl RowReader for ParquetTrace {
    fn begin(
        &mut self,
        source: &mut Source,
        reorder_window: &mut ReorderWindow,
    ) -> Result<(), TraceError> {
        if source.compression().is_some() || self.path.as_os_str() == "-" {
            return Err(TraceError::Usage(format!(
                "{}: Parquet cannot be read from a pipe or a compressed file; give the .parquet file",
                self.path.display()
            )));
        }
        let file = File::open(&self.path).map_err(|error| TraceError::Io {
            path: self.path.display().to_string(),
            what: "cannot open".to_owned(),
            source: error,
            advice: "; check the path",
        })?;
        let footer = || "record 1: damaged or truncated Parquet footer".to_owned();
        let builder = open_parquet(file).map_err(|text| self.columns_error(footer(), text))?;
        let file_metadata = builder.metadata().file_metadata();
        let (kind, metadata) = described(file_metadata.key_value_metadata())
            .map_err(|text| self.header_error(text))?;
        if kind.as_deref() == Some("file") {
            return Err(self.header_error("holds file operations, not block requests".to_owned()));
        }
        let schema = block_schema();
        check_schema(builder.schema(), &schema).map_err(|text| self.header_error(text))?;
        self.rows_promised = u64::try_from(file_metadata.num_rows())
            .map_err(|_| self.header_error("a negative number of rows".to_owned()))?;
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let mask = ProjectionMask::columns(builder.parquet_schema(), names);
        let reader = guarded(|| builder.with_batch_size(BATCH_ROWS).with_projection(mask).build())
            .map_err(|text| self.columns_error("record 1".to_owned(), text))?
            .map_err(|error| self.columns_error("record 1".to_owned(), error))?;
        self.reader = Some(reader);
        if let Some(metadata) = metadata {
            reorder_window.wall_of_clock_zero_ns = metadata.start_wall_ns.map(i128::from);
            let clock_start_ns = metadata.clock_start_ns;
            reorder_window.metadata = metadata;
            reorder_window.start_at(0);
            reorder_window.metadata.clock_start_ns = clock_start_ns;
        }
        Ok(())
    }

    fn fill(
        &mut self,
        source: &mut Source,
        reorder_window: &mut ReorderWindow,
    ) -> Result<bool, TraceError> {
        while !reorder_window.is_full() {
            let mut reader = self.reader.take();
            let next = guarded(|| reader.as_mut().and_then(Iterator::next)).map_err(|text| {
                self.columns_error(format!("damaged data after record {}", self.rows), text)
            })?;
            self.reader = reader;
            let Some(columns) = next else {
                if self.rows != self.rows_promised {
                    return Err(self.columns_error(
                        format!("record {}", self.rows + 1),
                        format!("the footer promises {} records", self.rows_promised),
                    ));
                }
                return Ok(false);
            };
            let columns = columns.map_err(|error| {
                self.columns_error(format!("damaged data after record {}", self.rows), error)
            })?;
            self.batch.clear();
            arrow_to_block(&columns, &mut self.batch).map_err(|text| self.header_error(text))?;
            for index in 0..self.batch.len() {
                self.rows += 1;
                let row = self.batch.row(index);
                let pushed = if Operation::from_code(row.operation).is_none() {
                    let text = format!("operation code {} is none of 0 to 3", row.operation);
                    Err(Problem::new(text))
                } else {
                    let known =
                        reorder_window.devices.numbered(row.device, &mut reorder_window.metadata);
                    known.and_then(|_| reorder_window.push(row))
                };
                if let Err(problem) = pushed {
                    bad_record(source, reorder_window, self.rows, None, 0, problem)?;
                }
            }
        }
        Ok(true)
    }
}
