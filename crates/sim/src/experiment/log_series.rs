//! How a run of a log went on: its costs over each interval of new blocks.

use std::io;
use std::path::Path;
use std::sync::Arc;

use agewell_log::Purpose;
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::{CostMeter, Counts};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};

use super::metrics::ideal_ns;
use crate::result::write_table;

/// Rows that a workload of ten updates a block gives; chosen by us: enough for a curve.
const ROWS: u64 = 160;

/// One interval.
#[derive(Debug, Clone)]
struct Row {
    new_blocks: u64,
    overall: f64,
    new_data: f64,
    cleaned: u64,
    plugged: u64,
    threaded: u64,
    live_blocks: u64,
    mechanism: &'static str,
}

/// Rows as they come.
#[derive(Debug)]
pub(crate) struct LogSeries {
    interval_blocks: u64,
    rows: Vec<Row>,
    began: Counts,
    began_ns: u64,
    began_new_data_ns: u64,
}

fn new_data_ns(meter: &CostMeter) -> u64 {
    meter.spent(Purpose::NewData).time_ns + meter.spent(Purpose::Thread).time_ns
}

impl LogSeries {
    /// A row each time `live_blocks` / 16 new blocks have been written.
    pub(crate) fn new(live_blocks: u64, counts: &Counts) -> Self {
        let interval_blocks = (10 * live_blocks / ROWS).max(1);
        Self {
            interval_blocks,
            rows: Vec::new(),
            began: *counts,
            began_ns: 0,
            began_new_data_ns: 0,
        }
    }

    /// Looks whether another interval is over.
    pub(crate) fn note(
        &mut self,
        counts: &Counts,
        meter: &CostMeter,
        live_blocks: u64,
        collect: Collect,
    ) {
        if counts.new_blocks - self.began.new_blocks < self.interval_blocks {
            return;
        }
        let interval = counts.since(&self.began);
        let (ns, data_ns) = (meter.writing_ns(), new_data_ns(meter));
        let ideal_ns = ideal_ns(meter.model(), interval.new_blocks).unwrap_or(f64::INFINITY);
        self.rows.push(Row {
            new_blocks: interval.new_blocks,
            overall: (ns - self.began_ns) as f64 / ideal_ns,
            new_data: (data_ns - self.began_new_data_ns) as f64 / ideal_ns,
            cleaned: interval.cleaned_blocks,
            plugged: interval.plugged_blocks,
            threaded: interval.threaded_blocks,
            live_blocks,
            mechanism: match collect {
                Collect::Always(mechanism) => Mechanism::name(mechanism),
                Collect::Matthews1999(_) => "matthews-1999",
            },
        });
        (self.began, self.began_ns, self.began_new_data_ns) = (*counts, ns, data_ns);
    }

    /// Writes the rows as `series.parquet`, and the table of distributions, which a log has none of.
    ///
    /// # Errors
    /// If the directory cannot be written to.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let whole = |of: fn(&Row) -> u64| -> ArrayRef {
            Arc::new(self.rows.iter().map(|row| Some(of(row))).collect::<UInt64Array>())
        };
        let real = |of: fn(&Row) -> f64| -> ArrayRef {
            Arc::new(self.rows.iter().map(|row| Some(of(row))).collect::<Float64Array>())
        };
        let mechanisms: ArrayRef =
            Arc::new(StringArray::from_iter_values(self.rows.iter().map(|row| row.mechanism)));
        let interval: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..self.rows.len() as u64));
        let table = RecordBatch::try_from_iter([
            ("interval", interval),
            ("new_blocks", whole(|row| row.new_blocks)),
            ("overall_write_cost", real(|row| row.overall)),
            ("new_data_cost", real(|row| row.new_data)),
            ("cleaned_blocks", whole(|row| row.cleaned)),
            ("plugged_blocks", whole(|row| row.plugged)),
            ("threaded_blocks", whole(|row| row.threaded)),
            ("live_blocks", whole(|row| row.live_blocks)),
            ("mechanism", mechanisms),
        ])
        .map_err(io::Error::other)?;
        write_table(directory, "series.parquet", &table)
    }
}
