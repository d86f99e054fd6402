//! The order in which a recording reads files.
//!
//! A recording of block requests says which sectors were read; the snapshot says whose they are.
//! Sectors of the recording count from the start of the device that holds the file system.
//!
//! Two orders are tried: that in which files were first read, and one along the access graph
//! (`access_graph`), for recordings in which files are read more than once. The recording itself,
//! read again with the files in each order, says which of them is taken.

use std::collections::HashMap;

use agewell_core::SECTOR_BYTES;
use agewell_disk::DeviceParameters;
use agewell_snapshot::{ExtentFlags, FileKind, Snapshot};
use serde::Serialize;

use super::access_graph;
use crate::read_time::ColdReader;

/// A request of a recording that reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedRead {
    /// First sector on the device that holds the file system.
    pub sector: u64,
    /// How many.
    pub sectors: u64,
    /// Who asked for it.
    pub client: u32,
}

/// A part of a file that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRead {
    /// Which file, as its place in the order of first reads.
    pub file: u32,
    /// From where in the file, bytes.
    pub offset_bytes: u64,
    /// How much, bytes.
    pub bytes: u64,
    /// Who asked for it.
    pub client: u32,
}

/// What a recording reads of files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileReads {
    /// Places among the files of the snapshot, in the order in which they were first read.
    pub order: Vec<u32>,
    /// Bytes that each of them has up to its end.
    pub file_bytes: Vec<u64>,
    /// What was read of them, in the order of the recording.
    pub reads: Vec<FileRead>,
    /// Sectors that were read of them.
    pub file_sectors: u64,
    /// Sectors that were read of what is no file: metadata, and what has moved since.
    pub other_sectors: u64,
}

/// An order of the files of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedOrder {
    /// In which they were first read.
    FirstReads,
    /// Along the access graph.
    AccessGraph,
}

/// The order that is taken, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChosenOrder {
    /// Which it is.
    pub order: RecordedOrder,
    /// Time that the reads of the recording take with the files in the order of first reads, s; without
    /// a device, ways from place to place.
    pub first_reads_seconds: f64,
    /// The same along the access graph; none if no file was come back to.
    pub access_graph_seconds: Option<f64>,
    /// Places among the files of the snapshot.
    #[serde(skip)]
    pub files: Vec<u32>,
}

/// An extent: its place on the device, from and to, bytes; its file; and where in it, bytes.
type Owner = (u64, u64, u32, u64);

/// Which files `reads`, in the order of their issue, read of `snapshot`.
#[must_use]
pub fn by_recording(snapshot: &Snapshot, reads: impl Iterator<Item = RecordedRead>) -> FileReads {
    let mut owners: Vec<Owner> = Vec::new();
    for (place, file) in snapshot.files.iter().enumerate() {
        if file.kind != FileKind::Regular {
            continue;
        }
        let placeless = ExtentFlags::UNKNOWN.with(ExtentFlags::INLINE);
        let placed = snapshot.extents_of(file).iter().filter(|extent| !extent.flags.any(placeless));
        owners.extend(placed.map(|extent| {
            let start = extent.physical_bytes;
            (start, start + extent.length_bytes, place as u32, extent.logical_bytes)
        }));
    }
    owners.sort_unstable();
    let mut found = FileReads::default();
    let mut seen: HashMap<u32, u32> = HashMap::new();
    for RecordedRead { sector, sectors, client } in reads {
        let (start, end) = (sector * SECTOR_BYTES, (sector + sectors) * SECTOR_BYTES);
        let first = owners.partition_point(|owner| owner.1 <= start);
        let mut named = 0;
        for owner in owners[first..].iter().take_while(|owner| owner.0 < end) {
            let (from, to) = (owner.0.max(start), owner.1.min(end));
            named += to - from;
            let file = *seen.entry(owner.2).or_insert_with(|| {
                found.order.push(owner.2);
                let bytes = snapshot.files[owner.2 as usize].size_bytes;
                found.file_bytes.push(bytes.next_multiple_of(snapshot.facts.block_bytes.into()));
                found.order.len() as u32 - 1
            });
            let offset_bytes = owner.3 + (from - owner.0);
            found.reads.push(FileRead { file, offset_bytes, bytes: to - from, client });
        }
        let named = (named / SECTOR_BYTES).min(sectors);
        found.file_sectors += named;
        found.other_sectors += sectors - named;
    }
    found
}

impl FileReads {
    /// The order in which the reads of the recording take less time on `device`; of equal ones that of
    /// first reads. Partitions of the access graph have at most `stretch_bytes`.
    #[must_use]
    pub fn choose(&self, device: Option<&DeviceParameters>, stretch_bytes: u64) -> ChosenOrder {
        let first: Vec<u32> = (0..self.order.len() as u32).collect();
        let first_reads_seconds = self.seconds(&first, device);
        let mut chosen = ChosenOrder {
            order: RecordedOrder::FirstReads,
            first_reads_seconds,
            access_graph_seconds: None,
            files: self.order.clone(),
        };
        if self.comes_back() {
            let along = access_graph::order(&self.reads, &self.file_bytes, stretch_bytes);
            let seconds = self.seconds(&along, device);
            chosen.access_graph_seconds = Some(seconds);
            if seconds < first_reads_seconds {
                chosen.order = RecordedOrder::AccessGraph;
                chosen.files = along.iter().map(|file| self.order[*file as usize]).collect();
            }
        }
        chosen
    }

    /// Whether a file is read, others, and it again.
    fn comes_back(&self) -> bool {
        let mut newest = None;
        let mut before = None;
        self.reads.iter().any(|read| {
            // Files are numbered in the order of their first reads.
            let back =
                newest.is_some_and(|newest| read.file <= newest) && before != Some(read.file);
            newest = newest.max(Some(read.file));
            before = Some(read.file);
            back
        })
    }

    /// Time that the reads take on `device`, one after another, with the files whole and one behind
    /// another in `order`, s; without a device, ways from place to place.
    fn seconds(&self, order: &[u32], device: Option<&DeviceParameters>) -> f64 {
        let mut places = vec![0; order.len()];
        let mut end = 0;
        for file in order {
            places[*file as usize] = end;
            end += self.file_bytes[*file as usize];
        }
        let mut reader = device.map(|device| ColdReader::new(device, end));
        let (mut ways, mut at) = (0_u64, None);
        for read in &self.reads {
            let place = places[read.file as usize] + read.offset_bytes;
            ways += u64::from(at != Some(place));
            at = Some(place + read.bytes);
            if let Some(reader) = &mut reader {
                reader.read_at(place, read.bytes);
            }
        }
        reader.map_or(ways as f64, |reader| reader.told().seconds)
    }
}

#[cfg(test)]
mod tests;
