//! Fullness and layout score over the time of a workload, as rows and as a Parquet table.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use serde::{Deserialize, Serialize};

use crate::AgeError;
use crate::{TableKind, TableWriter};

/// The table of a series.
const KIND: TableKind = TableKind { name: "aging-series", version: 1 };

/// A target at one moment of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeriesRow {
    /// Day of the workload, from 0, at whose end this was.
    pub day: u64,
    /// Time of the workload, nanoseconds.
    pub time_ns: u64,
    /// Operations so far.
    pub operations: u64,
    /// Bytes asked to be written so far.
    pub written_bytes: u64,
    /// Files that live.
    pub live_files: u64,
    /// Their bytes in whole blocks and, where the target has them, fragments.
    pub live_bytes: u64,
    /// Bytes in use, as the target reports.
    pub used_bytes: u64,
    /// Bytes that can be used.
    pub total_bytes: u64,
    /// Optimal blocks.
    pub layout_optimal: u64,
    /// Counted blocks.
    pub layout_counted: u64,
    /// Operations without room so far.
    pub no_space: u64,
}

impl SeriesRow {
    /// The layout score, if any block counts.
    #[must_use]
    pub fn layout_score(&self) -> Option<f64> {
        (self.layout_counted > 0).then(|| self.layout_optimal as f64 / self.layout_counted as f64)
    }

    /// Used over total.
    #[must_use]
    pub fn utilization(&self) -> f64 {
        if self.total_bytes == 0 { 0.0 } else { self.used_bytes as f64 / self.total_bytes as f64 }
    }
}

/// Writes `rows` to the Parquet file `path`, with `metadata` as JSON text.
///
/// # Errors
/// If the file cannot be written.
///
/// # Panics
/// Never: every column has a value a row.
pub fn write_series(path: &Path, rows: &[SeriesRow], metadata: String) -> Result<(), AgeError> {
    let whole = |name: &'static str, of: fn(&SeriesRow) -> u64| {
        let values: UInt64Array = rows.iter().map(of).collect::<Vec<_>>().into();
        (Field::new(name, DataType::UInt64, false), Arc::new(values) as ArrayRef)
    };
    let share = |name: &'static str, of: fn(&SeriesRow) -> Option<f64>| {
        let values: Float64Array = rows.iter().map(of).collect();
        (Field::new(name, DataType::Float64, true), Arc::new(values) as ArrayRef)
    };
    let columns = [
        whole("day", |row| row.day),
        whole("time_ns", |row| row.time_ns),
        whole("operations", |row| row.operations),
        whole("written_bytes", |row| row.written_bytes),
        whole("live_files", |row| row.live_files),
        whole("live_bytes", |row| row.live_bytes),
        whole("used_bytes", |row| row.used_bytes),
        whole("total_bytes", |row| row.total_bytes),
        share("utilization", |row| Some(row.utilization())),
        whole("layout_optimal", |row| row.layout_optimal),
        whole("layout_counted", |row| row.layout_counted),
        share("layout_score", SeriesRow::layout_score),
        whole("no_space", |row| row.no_space),
    ];
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch =
        RecordBatch::try_new(Arc::clone(&schema), arrays).expect("every column has a value a row");
    let mut writer = TableWriter::create(path, KIND, schema, &["day", "time_ns", "operations"])?;
    writer.write(&batch)?;
    writer.finish(metadata)?;
    Ok(())
}

/// The table of the operations without room.
const REFUSED: TableKind = TableKind { name: "aging-refused", version: 1 };

/// Writes which operations of the log at `log` found no room, counted from 0, to a table beside it
/// (`x.parquet` gives `x.no-space.parquet`); an older one goes when there are none.
pub(super) fn write_refused(log: &Path, positions: &[u64]) -> Result<(), AgeError> {
    let path = log.with_extension("no-space.parquet");
    if positions.is_empty() {
        return match std::fs::remove_file(&path) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                Err(AgeError::io("remove", &path)(why))
            }
            _ => Ok(()),
        };
    }
    let schema = Arc::new(Schema::new(vec![Field::new("operation", DataType::UInt64, false)]));
    let column = Arc::new(UInt64Array::from(positions.to_vec())) as ArrayRef;
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).expect("one column");
    let mut writer = TableWriter::create(&path, REFUSED, schema, &["operation"])?;
    writer.write(&batch)?;
    writer.finish("{}".to_owned())?;
    Ok(())
}
