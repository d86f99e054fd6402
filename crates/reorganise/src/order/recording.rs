//! The order in which a recording reads files.
//!
//! A recording of block requests says which sectors were read; the snapshot says whose they are.
//! Sectors of the recording count from the start of the device that holds the file system.
//!
//! Two orders are tried: that in which files were first read, and one along the access graph
//! (`access_graph`), for recordings in which files are read more than once. The recording itself,
//! read again with the files in each order, says which of them is taken.
//!
//! Then the same is done with files laid in parts, as they are read (`parts`). A file is divided if
//! that saves at least what a way of the disk takes, since the file system may need one more to read
//! where its parts lie, and at least so much of the time of its reads as is noticed at all. What a
//! file saves is told by two replays, with all files whole and with all that could be divided in
//! parts; a way from one file to another is counted half to each.

use std::collections::HashMap;

use agewell_core::SECTOR_BYTES;
use agewell_disk::DeviceParameters;
use agewell_snapshot::score::NOTICED_PCT;
use agewell_snapshot::{ExtentFlags, FileKind, Snapshot};
use serde::Serialize;

use super::parts::{FilePart, parts_of};
use super::{ByteRange, Part, access_graph};
use crate::read_time::{ColdReader, sequential_byte_seconds};

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
    /// Bytes of a block of the file system.
    pub block_bytes: u64,
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
    /// Time that the reads of the recording take with the files whole in the order of first reads, s;
    /// without a device, ways from place to place.
    pub first_reads_seconds: f64,
    /// The same along the access graph; none if no file was come back to.
    pub access_graph_seconds: Option<f64>,
    /// Files that are laid in parts; none if all are whole.
    pub in_parts: Option<InParts>,
    /// What is laid, in its order.
    #[serde(skip)]
    pub parts: Vec<Part>,
}

/// Files that are laid in parts, as they are read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct InParts {
    /// Files.
    pub files: u64,
    /// Parts in which they are laid.
    pub parts: u64,
    /// Time that the reads of the recording take so, s; without a device, ways from place to place.
    pub seconds: f64,
}

/// An extent: its place on the device, from and to, bytes; its file; and where in it, bytes.
type Owner = (u64, u64, u32, u64);

/// Which files lie where in `snapshot`, ascending. Files may share a place (copies by reference,
/// compressed extents): the first of them has it.
fn owners_of(snapshot: &Snapshot) -> Vec<Owner> {
    let placeless = ExtentFlags::UNKNOWN.with(ExtentFlags::INLINE);
    let mut owners: Vec<Owner> = Vec::new();
    for (place, file) in snapshot.files.iter().enumerate() {
        if file.kind != FileKind::Regular {
            continue;
        }
        let placed = snapshot.extents_of(file).iter().filter(|extent| !extent.flags.any(placeless));
        owners.extend(placed.map(|extent| {
            let start = extent.physical_bytes;
            (start, start + extent.length_bytes, place as u32, extent.logical_bytes)
        }));
    }
    owners.sort_unstable();
    let mut behind = 0;
    owners.retain_mut(|(start, end, _, offset_bytes)| {
        let cut = behind.max(*start) - *start;
        *start += cut;
        *offset_bytes += cut;
        let has_some = *start < *end;
        behind = behind.max(*end);
        has_some
    });
    owners
}

/// Which files `reads`, in the order of their issue, read of `snapshot`.
#[must_use]
pub fn by_recording(snapshot: &Snapshot, reads: impl Iterator<Item = RecordedRead>) -> FileReads {
    let owners = owners_of(snapshot);
    let block_bytes = u64::from(snapshot.facts.block_bytes);
    let mut found = FileReads { block_bytes, ..FileReads::default() };
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
                found.file_bytes.push(bytes.next_multiple_of(block_bytes));
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

/// Bytes of a page of memory, which is the least that a program reads of a file: 4 KiB or more.
const PAGE_BYTES: u64 = 4096;

impl FileReads {
    /// The order in which the reads of the recording take less time on `device`; of equal ones that of
    /// first reads. Partitions of the access graph have at most `stretch_bytes`. Where `divides`, files
    /// are laid in parts if that is faster.
    #[must_use]
    pub fn choose(
        &self,
        device: Option<&DeviceParameters>,
        stretch_bytes: u64,
        divides: bool,
    ) -> ChosenOrder {
        let whole = self.laid(&vec![None; self.order.len()]);
        let replayed = whole.best(device, stretch_bytes);
        let mut chosen = ChosenOrder {
            order: replayed.order,
            first_reads_seconds: replayed.first_reads_seconds,
            access_graph_seconds: replayed.access_graph_seconds,
            in_parts: None,
            parts: replayed
                .numbers
                .iter()
                .map(|file| Part::whole(self.order[*file as usize]))
                .collect(),
        };
        if let Some((laid, divided)) = self.divided(&replayed, device, stretch_bytes, divides) {
            let part = |number: &u32| {
                let part = laid.parts[*number as usize];
                Part { file: self.order[part.file as usize], range: part.range }
            };
            let ranges = laid.parts.iter().filter(|part| part.range.is_some());
            let mut files: Vec<u32> = ranges.clone().map(|part| part.file).collect();
            files.sort_unstable();
            files.dedup();
            chosen.in_parts = Some(InParts {
                files: files.len() as u64,
                parts: ranges.count() as u64,
                seconds: divided.seconds,
            });
            chosen.order = divided.order;
            chosen.parts = divided.numbers.iter().map(part).collect();
        }
        chosen
    }

    /// Files laid in parts, and the best order of those, if it is faster than `whole`.
    fn divided(
        &self,
        whole: &Replayed,
        device: Option<&DeviceParameters>,
        stretch_bytes: u64,
        divides: bool,
    ) -> Option<(Laid, Replayed)> {
        if !divides {
            return None;
        }
        let mut of_file: Vec<Vec<(usize, FileRead)>> = vec![Vec::new(); self.order.len()];
        for (number, read) in self.reads.iter().enumerate() {
            of_file[read.file as usize].push((number, *read));
        }
        let page_bytes = self.block_bytes.max(PAGE_BYTES);
        let mut parts: Vec<Option<Vec<FilePart>>> = of_file
            .iter()
            .zip(&self.file_bytes)
            .map(|(reads, bytes)| parts_of(reads, *bytes, page_bytes))
            .collect();
        if parts.iter().all(Option::is_none) {
            return None;
        }
        let all = self.laid(&parts).best(device, stretch_bytes);
        for (file, parts) in parts.iter_mut().enumerate() {
            let seconds = whole.file_seconds[file];
            let least_seconds = whole.way_seconds.max(seconds * NOTICED_PCT / 100.0);
            let saved_seconds = seconds - all.file_seconds[file];
            if saved_seconds <= 0.0 || saved_seconds < least_seconds {
                *parts = None;
            }
        }
        if parts.iter().all(Option::is_none) {
            return None;
        }
        let laid = self.laid(&parts);
        let divided = laid.best(device, stretch_bytes);
        (divided.seconds < whole.seconds).then_some((laid, divided))
    }

    /// What is laid, and what is read of it, if files are in `parts`, or whole if they have none.
    fn laid(&self, parts: &[Option<Vec<FilePart>>]) -> Laid {
        let mut first_reads: Vec<Option<usize>> = vec![None; self.order.len()];
        for (number, read) in self.reads.iter().enumerate() {
            first_reads[read.file as usize].get_or_insert(number);
        }
        // By the first read, and by the place in the file where one read came upon several.
        let mut found: Vec<(usize, u64, LaidPart)> = Vec::new();
        for (file, parts) in parts.iter().enumerate() {
            let number = file as u32;
            match parts {
                None => {
                    let whole = LaidPart { file: number, range: None };
                    found.push((first_reads[file].unwrap_or(usize::MAX), 0, whole));
                }
                Some(parts) => found.extend(parts.iter().map(|part| {
                    let laid = LaidPart { file: number, range: Some(part.range) };
                    (part.first_read, part.range.from_bytes, laid)
                })),
            }
        }
        found.sort_by_key(|part| (part.0, part.1));
        let parts: Vec<LaidPart> = found.into_iter().map(|part| part.2).collect();
        // Parts of each file by where they begin.
        let mut of_file: Vec<Vec<(u64, u32)>> = vec![Vec::new(); self.order.len()];
        for (number, part) in parts.iter().enumerate() {
            let from = part.range.map_or(0, |range| range.from_bytes);
            of_file[part.file as usize].push((from, number as u32));
        }
        for parts in &mut of_file {
            parts.sort_unstable();
        }
        let mut reads = Vec::with_capacity(self.reads.len());
        for read in &self.reads {
            let of_file = &of_file[read.file as usize];
            let (mut at, end) = (read.offset_bytes, read.offset_bytes + read.bytes);
            while at < end {
                let next = of_file.partition_point(|part| part.0 <= at);
                let (from, number) = of_file[next.saturating_sub(1)];
                // What is beyond the end of the file goes with its last part.
                let to = of_file.get(next).map_or(end, |part| part.0.min(end));
                let offset_bytes = at.saturating_sub(from);
                let bytes = to - at;
                reads.push(FileRead { file: number, offset_bytes, bytes, client: read.client });
                at = to;
            }
        }
        let bytes = |part: &LaidPart| {
            part.range.map_or(self.file_bytes[part.file as usize], |range| range.bytes())
        };
        Laid { bytes: parts.iter().map(bytes).collect(), files: self.order.len(), parts, reads }
    }
}

/// A file, or a part of one, by the file's number in the order of first reads.
#[derive(Debug, Clone, Copy)]
struct LaidPart {
    file: u32,
    range: Option<ByteRange>,
}

/// What is laid, numbered in the order of first reads.
#[derive(Debug)]
struct Laid {
    parts: Vec<LaidPart>,
    /// How long each is.
    bytes: Vec<u64>,
    /// What is read of them: `file` is the number of the part, offsets are within it.
    reads: Vec<FileRead>,
    /// How many files there are.
    files: usize,
}

/// The better of the two orders.
#[derive(Debug)]
struct Replayed {
    order: RecordedOrder,
    first_reads_seconds: f64,
    access_graph_seconds: Option<f64>,
    /// Numbers of what is laid, in their order.
    numbers: Vec<u32>,
    /// Time that the reads take, s.
    seconds: f64,
    /// Of it, for the reads of each file and half of the ways to it and from it.
    file_seconds: Vec<f64>,
    /// What a way from place to place takes on average, s.
    way_seconds: f64,
}

/// Time that reads take in one order, s.
#[derive(Debug)]
struct Times {
    seconds: f64,
    file_seconds: Vec<f64>,
    way_seconds: f64,
}

impl Laid {
    /// The order in which the reads take less time on `device`; of equal ones that of first reads.
    fn best(&self, device: Option<&DeviceParameters>, stretch_bytes: u64) -> Replayed {
        let first: Vec<u32> = (0..self.parts.len() as u32).collect();
        let times = self.times(&first, device);
        let mut best = Replayed {
            order: RecordedOrder::FirstReads,
            first_reads_seconds: times.seconds,
            access_graph_seconds: None,
            numbers: first,
            seconds: times.seconds,
            file_seconds: times.file_seconds,
            way_seconds: times.way_seconds,
        };
        if self.comes_back() {
            let along = access_graph::order(&self.reads, &self.bytes, stretch_bytes);
            let times = self.times(&along, device);
            best.access_graph_seconds = Some(times.seconds);
            if times.seconds < best.seconds {
                best.order = RecordedOrder::AccessGraph;
                best.numbers = along;
                best.seconds = times.seconds;
                best.file_seconds = times.file_seconds;
                best.way_seconds = times.way_seconds;
            }
        }
        best
    }

    /// Whether a part is read, others, and it again.
    fn comes_back(&self) -> bool {
        let mut newest = None;
        let mut before = None;
        self.reads.iter().any(|read| {
            // They are numbered in the order of their first reads.
            let back =
                newest.is_some_and(|newest| read.file <= newest) && before != Some(read.file);
            newest = newest.max(Some(read.file));
            before = Some(read.file);
            back
        })
    }

    /// Time that the reads take on `device`, one after another, with all that is laid one behind
    /// another in `order`; without a device, ways from place to place.
    fn times(&self, order: &[u32], device: Option<&DeviceParameters>) -> Times {
        let mut places = vec![0; order.len()];
        let mut end = 0;
        for part in order {
            places[*part as usize] = end;
            end += self.bytes[*part as usize];
        }
        let mut reader = device.map(|device| ColdReader::new(device, end));
        let mut file_seconds = vec![0.0; self.files];
        let (mut seconds, mut ways, mut bytes) = (0.0, 0_u64, 0);
        let (mut at, mut before) = (None, None);
        for read in &self.reads {
            let place = places[read.file as usize] + read.offset_bytes;
            let is_way = at != Some(place);
            let took = match &mut reader {
                Some(reader) => reader.read_at(place, read.bytes),
                None => f64::from(u8::from(is_way)),
            };
            let file = self.parts[read.file as usize].file as usize;
            let (own, others) = if is_way { (took / 2.0, took / 2.0) } else { (took, 0.0) };
            file_seconds[file] += own;
            file_seconds[before.unwrap_or(file)] += others;
            ways += u64::from(is_way);
            bytes += read.bytes;
            seconds += took;
            at = Some(place + read.bytes);
            before = Some(file);
        }
        let byte_seconds = device.map_or(0.0, |device| sequential_byte_seconds(device, end));
        let ways_seconds = (seconds - bytes as f64 * byte_seconds).max(0.0);
        Times { seconds, file_seconds, way_seconds: ways_seconds / ways.max(1) as f64 }
    }
}

#[cfg(test)]
mod tests;
