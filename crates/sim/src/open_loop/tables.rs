//! The Parquet tables of a run of block requests.
//!
//! `series.parquet` has a row an interval with requests (with `baseline_` columns if both lanes
//! share their intervals); `histograms.parquet` a row a filled bucket, in long form, so that one
//! table holds every distribution: `lane` ("run" or "baseline"), `quantity` ("response_ns",
//! "service_ns", "seek_cylinders"), `day` (of the trace, for seek distances; else null), `upper`
//! (inclusive upper edge of the bucket; the distance itself for seeks) and `count`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::ArrowError;

use super::values::share_intervals;
use crate::metrics::{Distribution, Interval, Metrics};
use crate::result::write_table;

/// Writes both tables into `directory`.
///
/// # Errors
/// If the directory cannot be written to.
pub(crate) fn write_tables(
    directory: &Path,
    run: &Metrics,
    baseline: Option<&Metrics>,
) -> io::Result<()> {
    write_table(directory, "series.parquet", &series_table(run, baseline)?)?;
    write_table(directory, "histograms.parquet", &histogram_table(run, baseline)?)
}

fn from_arrow(error: ArrowError) -> io::Error {
    io::Error::other(error)
}

fn series_table(run: &Metrics, baseline: Option<&Metrics>) -> io::Result<RecordBatch> {
    let rows = run.series.rows();
    let interval_ns = run.series.interval().0;
    let whole = |of: &dyn Fn(&Interval) -> u64| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(of(row))).collect::<UInt64Array>())
    };
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("interval".into(), whole(&|row| row.index)),
        ("start_ns".into(), whole(&|row| row.index * interval_ns)),
        ("requests".into(), whole(&|row| row.requests)),
        ("read_requests".into(), whole(&|row| row.reads)),
        ("sectors".into(), whole(&|row| row.sectors)),
    ];
    add_lane(&mut columns, "", rows);
    if let Some(baseline) = baseline.filter(|baseline| share_intervals(run, baseline)) {
        add_lane(&mut columns, "baseline_", baseline.series.rows());
    }
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .map_err(from_arrow)
}

fn add_lane(columns: &mut Vec<(String, ArrayRef)>, prefix: &str, rows: &[Interval]) {
    let mut put = |name: &str, of: &dyn Fn(&Interval) -> Option<f64>| {
        let column: Float64Array = rows.iter().map(of).collect();
        columns.push((format!("{prefix}{name}"), Arc::new(column)));
    };
    let per_request = |sum: u128, row: &Interval| {
        (row.requests > 0).then(|| sum as f64 / row.requests as f64 / 1e6)
    };
    let per_io = |sum: f64, row: &Interval| (row.physical > 0).then(|| sum / row.physical as f64);
    put("mean_service_ms", &|row| per_request(row.service_ns, row));
    put("mean_response_ms", &|row| per_request(row.response_ns, row));
    put("mean_seek_cylinders", &|row| per_io(row.seek_cylinders as f64, row));
    put("zero_seek_fraction", &|row| per_io(row.zero_seeks as f64, row));
}

#[derive(Default)]
struct HistogramRows {
    lane: Vec<&'static str>,
    quantity: Vec<&'static str>,
    day: Vec<Option<u64>>,
    upper: Vec<u64>,
    count: Vec<u64>,
}

impl HistogramRows {
    fn add(
        &mut self,
        lane: &'static str,
        quantity: &'static str,
        day: Option<u64>,
        bucket: (u64, u64),
    ) {
        self.lane.push(lane);
        self.quantity.push(quantity);
        self.day.push(day);
        self.upper.push(bucket.0);
        self.count.push(bucket.1);
    }

    fn add_distribution(
        &mut self,
        lane: &'static str,
        quantity: &'static str,
        distribution: &Distribution,
    ) {
        for bucket in distribution.filled() {
            self.add(lane, quantity, None, bucket);
        }
    }

    fn add_lane(&mut self, lane: &'static str, metrics: &Metrics) {
        self.add_distribution(lane, "response_ns", &metrics.response);
        self.add_distribution(lane, "service_ns", &metrics.service);
        for (day, counts) in &metrics.seek_distances {
            for (distance, count) in (0_u64..).zip(counts).filter(|(_, count)| **count > 0) {
                self.add(lane, "seek_cylinders", Some(*day), (distance, *count));
            }
        }
    }
}

fn histogram_table(run: &Metrics, baseline: Option<&Metrics>) -> io::Result<RecordBatch> {
    let mut rows = HistogramRows::default();
    rows.add_lane("run", run);
    if let Some(baseline) = baseline {
        rows.add_lane("baseline", baseline);
    }
    let columns: [(&str, ArrayRef, bool); 5] = [
        ("lane", Arc::new(StringArray::from(rows.lane)), false),
        ("quantity", Arc::new(StringArray::from(rows.quantity)), false),
        ("day", Arc::new(UInt64Array::from(rows.day)), true),
        ("upper", Arc::new(UInt64Array::from(rows.upper)), false),
        ("count", Arc::new(UInt64Array::from(rows.count)), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).map_err(from_arrow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_in_a_table_is_found() {
        let folder = tempfile::tempdir().expect("a place for files");
        let column: ArrayRef = Arc::new(UInt64Array::from(vec![1, 2, 30]));
        let table = RecordBatch::try_from_iter([("count", column)]).expect("one column");
        write_table(folder.path(), "series.parquet", &table).expect("room");
        let path = folder.path().join("series.parquet");
        assert_eq!(agewell_trace::check_parquet(&path), Ok(true));
        let bytes = std::fs::read(&path).expect("it was written");
        for (at, &byte) in bytes.iter().enumerate() {
            for bit in 0..8 {
                agewell_testkit::set_byte(&path, at, byte ^ 1 << bit);
                assert!(agewell_trace::check_parquet(&path).is_err(), "bit {bit} of byte {at}");
            }
            agewell_testkit::set_byte(&path, at, byte);
        }
    }
}
