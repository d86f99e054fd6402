//! How long a cold read of files takes on a modelled disk.
//!
//! The files are read one after another, each from its first byte to its last, a request at a time
//! and the next as soon as it is done, as a program does that has nothing in memory; requests are as
//! long as the kernel's read-ahead. Reads of metadata are not in it.

use agewell_core::{BlockRequest, Operation, SECTOR_BYTES, Sector, SectorCount, SimTime};
use agewell_disk::{Device, DeviceModel, DeviceParameters};
use serde::{Deserialize, Serialize};

use crate::arranger::Piece;

/// Longest request, bytes: the default of the kernel's `read_ahead_kb`, 128.
pub(crate) const REQUEST_BYTES: u64 = 128 << 10;

/// A cold read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReadTime {
    /// Time that the disk takes, s.
    pub seconds: f64,
    /// Places that do not follow the read before.
    pub breaks: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// The time that a cold read of `files`, each by its pieces, takes on the device of `parameters`. If
/// the file system, of `total_bytes`, is larger than the device, addresses are scaled so that
/// it fills it.
#[must_use]
pub fn cold_read<'a>(
    files: impl Iterator<Item = &'a [Piece]>,
    parameters: &DeviceParameters,
    total_bytes: u64,
) -> ReadTime {
    let mut reader = ColdReader::new(parameters, total_bytes);
    for file in files {
        reader.read(file);
    }
    reader.told()
}

/// Time of each byte of a long read, s, in the middle of a file system of `total_bytes`.
pub(crate) fn sequential_byte_seconds(parameters: &DeviceParameters, total_bytes: u64) -> f64 {
    let mut reader = ColdReader::new(parameters, total_bytes);
    let half = |part: u64| Piece {
        logical_bytes: 0,
        physical_bytes: total_bytes / 2 / REQUEST_BYTES * REQUEST_BYTES + part * SAMPLE_BYTES,
        length_bytes: SAMPLE_BYTES,
    };
    // The first has the way there in it.
    reader.read(&[half(0)]);
    reader.read(&[half(1)]) / SAMPLE_BYTES as f64
}

/// A read that is long beside a turn of a disk, 2 MiB, bytes; chosen by us.
const SAMPLE_BYTES: u64 = 32 << 20;

/// A cold read under way: one file after another.
#[derive(Debug)]
pub(crate) struct ColdReader {
    device: DeviceModel,
    total_sectors: u64,
    now: SimTime,
    /// Where the piece before ended.
    end_bytes: Option<u64>,
    breaks: u64,
    bytes: u64,
}

impl ColdReader {
    /// Of a file system of `total_bytes` on the device of `parameters`.
    pub(crate) fn new(parameters: &DeviceParameters, total_bytes: u64) -> Self {
        Self {
            device: DeviceModel::new(parameters),
            total_sectors: total_bytes.div_ceil(SECTOR_BYTES).max(1),
            now: SimTime(0),
            end_bytes: None,
            breaks: 0,
            bytes: 0,
        }
    }

    /// Reads a file; the time it took, s.
    pub(crate) fn read(&mut self, file: &[Piece]) -> f64 {
        let began = self.now;
        for piece in file {
            if self.end_bytes != Some(piece.physical_bytes) {
                self.breaks += u64::from(self.end_bytes.is_some());
            }
            self.end_bytes = Some(piece.physical_bytes + piece.length_bytes);
            let mut at = 0;
            while at < piece.length_bytes {
                let bytes = (piece.length_bytes - at).min(REQUEST_BYTES);
                self.serve(piece.physical_bytes + at, bytes);
                at += bytes;
            }
        }
        (self.now.0 - began.0) as f64 / 1e9
    }

    /// Reads `bytes` from `at_bytes` on in one request; the time it took, s.
    pub(crate) fn read_at(&mut self, at_bytes: u64, bytes: u64) -> f64 {
        let began = self.now;
        if self.end_bytes != Some(at_bytes) {
            self.breaks += u64::from(self.end_bytes.is_some());
        }
        self.end_bytes = Some(at_bytes + bytes);
        self.serve(at_bytes, bytes);
        (self.now.0 - began.0) as f64 / 1e9
    }

    fn serve(&mut self, at_bytes: u64, bytes: u64) {
        self.bytes += bytes;
        let capacity = self.device.capacity().0;
        let sectors = bytes.div_ceil(SECTOR_BYTES).min(capacity);
        let sector = at_bytes / SECTOR_BYTES;
        let sector = if self.total_sectors > capacity {
            (u128::from(sector) * u128::from(capacity) / u128::from(self.total_sectors)) as u64
        } else {
            sector
        };
        let sector = sector.min(capacity.saturating_sub(sectors));
        // Flash answers at once for what was never written.
        self.device.prefill(Sector(sector), SectorCount(sectors));
        let request = BlockRequest {
            enqueue: self.now,
            sector: Sector(sector),
            sectors: SectorCount(sectors),
            operation: Operation::Read,
            synchronous: true,
        };
        self.now = self.device.serve(self.now, &request).finish;
    }

    /// All that was read.
    pub(crate) fn told(&self) -> ReadTime {
        ReadTime { seconds: self.now.0 as f64 / 1e9, breaks: self.breaks, bytes: self.bytes }
    }
}
