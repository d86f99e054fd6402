//! A disk whose requests are kept as a trace.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agewell_core::{Operation, SECTOR_BYTES, SimTime};
use agewell_trace::record::{BlockBatch, BlockRow, flag};
use agewell_trace::{TraceError, Written, write_requests};

use super::{Disk, Piece, ReadPiece};

/// Passes everything on to a disk, and keeps what was asked of it in the form that every experiment
/// reads: each read, piece written, discard and flush that succeeded, when it was issued and when it
/// was done. All pieces of one call have its times.
///
/// Cost: 44 bytes of memory a request until they are written.
#[derive(Debug)]
pub struct RecordingDisk<D, C> {
    disk: D,
    clock: C,
    requests: Mutex<Vec<BlockRow>>,
}

impl<D: Disk, C: Fn() -> SimTime> RecordingDisk<D, C> {
    /// Records what is asked of `disk`, by `clock`.
    #[must_use]
    pub fn new(disk: D, clock: C) -> Self {
        Self { disk, clock, requests: Mutex::default() }
    }

    /// The disk below.
    #[must_use]
    pub fn below(&self) -> &D {
        &self.disk
    }

    /// Writes what was recorded so far to `path`, in Parquet, in the order in which it was issued.
    ///
    /// # Errors
    /// If the file cannot be written; nothing of that name appears then.
    pub fn write_trace(&self, path: &Path) -> Result<Written, TraceError> {
        write_requests(path, &mut self.requests())
    }

    /// What was recorded so far, in the order in which it was issued.
    #[must_use]
    pub fn requests(&self) -> BlockBatch {
        let mut rows = self.rows().clone();
        rows.sort_by_key(|row| row.enqueue_ns);
        let mut requests = BlockBatch::default();
        requests.reserve(rows.len());
        for row in rows {
            requests.push(row);
        }
        requests
    }

    fn rows(&self) -> MutexGuard<'_, Vec<BlockRow>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that ranges, bytes from the start, were asked for since `issue`, and are done.
    fn record(
        &self,
        issue: SimTime,
        operation: Operation,
        ranges: impl IntoIterator<Item = (u64, u64)>,
    ) {
        let finish = (self.clock)();
        let mut rows = self.rows();
        for (offset, bytes) in ranges {
            let (mut sector, end) =
                (offset / SECTOR_BYTES, (offset + bytes).div_ceil(SECTOR_BYTES));
            loop {
                // Only a discard can be longer than a record says.
                let sectors = u32::try_from(end - sector).unwrap_or(u32::MAX);
                rows.push(BlockRow {
                    enqueue_ns: issue.0,
                    start_ns: issue.0,
                    finish_ns: finish.0,
                    sector,
                    sectors,
                    operation: operation as u8,
                    flags: flag::SYNCHRONOUS,
                    ..BlockRow::default()
                });
                sector += u64::from(sectors);
                if sector == end {
                    break;
                }
            }
        }
    }
}

impl<D: Disk, C: Fn() -> SimTime + Send + Sync> Disk for RecordingDisk<D, C> {
    as_below!(self => self.disk);

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let issue = (self.clock)();
        self.disk.read(offset, into)?;
        let range = (!into.is_empty()).then_some((offset, into.len() as u64));
        self.record(issue, Operation::Read, range);
        Ok(())
    }

    fn read_pieces(&self, pieces: &mut [ReadPiece<'_>]) -> io::Result<()> {
        let issue = (self.clock)();
        self.disk.read_pieces(pieces)?;
        let filled = pieces.iter().filter(|piece| !piece.into.is_empty());
        let ranges = filled.map(|piece| (piece.offset, piece.into.len() as u64));
        self.record(issue, Operation::Read, ranges);
        Ok(())
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        let issue = (self.clock)();
        self.disk.write(pieces)?;
        let filled = pieces.iter().filter(|piece| !piece.data.is_empty());
        let ranges = filled.map(|piece| (piece.offset, piece.data.len() as u64));
        self.record(issue, Operation::Write, ranges);
        Ok(())
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let issue = (self.clock)();
        self.disk.discard(offset, bytes)?;
        self.record(issue, Operation::Discard, (bytes > 0).then_some((offset, bytes)));
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let issue = (self.clock)();
        self.disk.flush()?;
        self.record(issue, Operation::Flush, [(0, 0)]);
        Ok(())
    }
}
