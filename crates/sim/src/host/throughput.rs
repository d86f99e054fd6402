//! What had been done for users as a run went on.

use std::io;
use std::path::Path;
use std::sync::Arc;

use agewell_log::Purpose;
use arrow_array::{ArrayRef, RecordBatch, UInt64Array};

use super::block_host::HostCounts;
use crate::drive::TimedDisk;
use crate::result::write_table;

/// Rows for each pass over the live data; chosen by us: enough for a curve.
const ROWS_PER_PASS: u64 = 64;

/// What had been done when so much had been transferred for users: the curves of Matthews 1999,
/// figures 6-1 to 6-17.
#[derive(Debug)]
pub(crate) struct ThroughputSeries {
    interval_blocks: u64,
    next_blocks: u64,
    block_bytes: u64,
    rows: Vec<[u64; 8]>,
}

const THROUGHPUT_COLUMNS: [&str; 8] = [
    "user_bytes",
    "written_bytes",
    "read_bytes",
    "disk_read_bytes",
    "disk_ns",
    "read_ns",
    "disk_reads",
    "elapsed_ns",
];

impl ThroughputSeries {
    pub(crate) fn new(live_blocks: u64, block_bytes: u64) -> Self {
        let interval_blocks = (live_blocks / ROWS_PER_PASS).max(1);
        Self { interval_blocks, next_blocks: interval_blocks, block_bytes, rows: Vec::new() }
    }

    /// Looks whether another interval is over.
    #[inline]
    pub(crate) fn note(&mut self, counts: &HostCounts, disk: &TimedDisk) {
        if counts.read_blocks + counts.written_blocks >= self.next_blocks {
            self.add(counts, disk);
        }
    }

    /// How many blocks can be transferred for users without the interval being over.
    pub(crate) fn blocks_within(&self, counts: &HostCounts) -> u64 {
        (self.next_blocks - 1).saturating_sub(counts.read_blocks + counts.written_blocks)
    }

    /// The workload is over.
    pub(crate) fn finish(&mut self, counts: &HostCounts, disk: &TimedDisk) {
        self.add(counts, disk);
    }

    #[cold]
    fn add(&mut self, counts: &HostCounts, disk: &TimedDisk) {
        let blocks = counts.read_blocks + counts.written_blocks;
        self.next_blocks = blocks + self.interval_blocks;
        let reads = disk.meter().spent(Purpose::Read);
        self.rows.push([
            blocks * self.block_bytes,
            counts.written_blocks * self.block_bytes,
            counts.read_blocks * self.block_bytes,
            counts.disk_read_blocks() * self.block_bytes,
            disk.meter().total_ns(),
            reads.time_ns,
            reads.transfers,
            disk.now_ns(),
        ]);
    }

    /// Writes the rows as `throughput.parquet`.
    ///
    /// # Errors
    /// If the directory cannot be written to.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let columns = THROUGHPUT_COLUMNS.iter().enumerate().map(|(index, name)| {
            let values = UInt64Array::from_iter_values(self.rows.iter().map(|row| row[index]));
            (*name, Arc::new(values) as ArrayRef)
        });
        let table = RecordBatch::try_from_iter(columns).map_err(io::Error::other)?;
        write_table(directory, "throughput.parquet", &table)
    }
}
