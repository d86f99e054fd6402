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
const REQUEST_BYTES: u64 = 128 << 10;

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
    let mut device = DeviceModel::new(parameters);
    let capacity = device.capacity().0;
    let total_sectors = total_bytes.div_ceil(SECTOR_BYTES).max(1);
    let place = |bytes: u64, sectors: u64| {
        let sector = bytes / SECTOR_BYTES;
        let sector = if total_sectors > capacity {
            (u128::from(sector) * u128::from(capacity) / u128::from(total_sectors)) as u64
        } else {
            sector
        };
        sector.min(capacity.saturating_sub(sectors))
    };
    let (mut now, mut end) = (SimTime(0), None);
    let mut told = ReadTime { seconds: 0.0, breaks: 0, bytes: 0 };
    for piece in files.flatten() {
        if end != Some(piece.physical_bytes) {
            told.breaks += u64::from(end.is_some());
        }
        end = Some(piece.physical_bytes + piece.length_bytes);
        told.bytes += piece.length_bytes;
        let mut at = 0;
        while at < piece.length_bytes {
            let bytes = (piece.length_bytes - at).min(REQUEST_BYTES);
            let sectors = bytes.div_ceil(SECTOR_BYTES).min(capacity);
            let sector = place(piece.physical_bytes + at, sectors);
            // Flash answers at once for what was never written.
            device.prefill(Sector(sector), SectorCount(sectors));
            let request = BlockRequest {
                enqueue: now,
                sector: Sector(sector),
                sectors: SectorCount(sectors),
                operation: Operation::Read,
                synchronous: true,
            };
            now = device.serve(now, &request).finish;
            at += bytes;
        }
    }
    told.seconds = now.0 as f64 / 1e9;
    told
}
