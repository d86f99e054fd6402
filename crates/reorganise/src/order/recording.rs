//! The order in which a recording reads files.
//!
//! A recording of block requests says which sectors were read; the snapshot says whose they are.
//! Sectors of the recording count from the start of the device that holds the file system.

use std::collections::HashSet;

use agewell_core::SECTOR_BYTES;
use agewell_snapshot::{ExtentFlags, FileKind, Snapshot};

/// The files of a recording in the order in which they were first read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileReads {
    /// Places among the files of the snapshot.
    pub order: Vec<u32>,
    /// Sectors that were read of them.
    pub file_sectors: u64,
    /// Sectors that were read of what is no file: metadata, and what has moved since.
    pub other_sectors: u64,
}

/// Which files `reads`, each a first sector and a number of sectors in the order of their issue, read
/// of `snapshot`.
#[must_use]
pub fn by_recording(snapshot: &Snapshot, reads: impl Iterator<Item = (u64, u64)>) -> FileReads {
    let mut owners: Vec<(u64, u64, u32)> = Vec::new();
    for (place, file) in snapshot.files.iter().enumerate() {
        if file.kind != FileKind::Regular {
            continue;
        }
        let placeless = ExtentFlags::UNKNOWN.with(ExtentFlags::INLINE);
        let placed = snapshot.extents_of(file).iter().filter(|extent| !extent.flags.any(placeless));
        owners.extend(placed.map(|extent| {
            let start = extent.physical_bytes;
            (start, start + extent.length_bytes, place as u32)
        }));
    }
    owners.sort_unstable();
    let mut found = FileReads::default();
    let mut seen = HashSet::new();
    for (sector, sectors) in reads {
        let (start, end) = (sector * SECTOR_BYTES, (sector + sectors) * SECTOR_BYTES);
        let first = owners.partition_point(|owner| owner.1 <= start);
        let mut named = 0;
        for owner in owners[first..].iter().take_while(|owner| owner.0 < end) {
            named += owner.1.min(end) - owner.0.max(start);
            if seen.insert(owner.2) {
                found.order.push(owner.2);
            }
        }
        let named = (named / SECTOR_BYTES).min(sectors);
        found.file_sectors += named;
        found.other_sectors += sectors - named;
    }
    found
}
