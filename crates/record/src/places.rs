//! Which file lies at a sector, out of snapshots of the file system.
//!
//! One snapshot is taken before the recording and one behind it. Where both say the same there is no
//! question. Where they differ, what lay there before was read until the trace writes to the place, and
//! what lies there afterwards is what that write and everything after it was for. A file that was made
//! and deleted within the recording is in neither, and its requests name no file.

use std::collections::{BTreeMap, BTreeSet};

use agewell_core::{Operation, SECTOR_BYTES};
use agewell_snapshot::{ExtentFlags, FileKind, Snapshot, SnapshotFile};
use agewell_trace::{BlockRow, FilePart, Paths};

/// Sectors in what is remembered of writes: 4 KiB.
const BLOCK_SECTORS: u64 = 8;
/// Directories below one another; more is a damaged snapshot. Chosen by us: what paths can hold.
const DEPTH_MAX: usize = 4096;

/// A stretch of the disk that is of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    sector: u64,
    end: u64,
    file: u32,
    /// Of the file, at `sector`.
    offset_bytes: u64,
}

/// What lies where on a disk.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Ascending, none overlapping another.
    places: Vec<Place>,
}

/// The path of each file below the root of the snapshot; directories end in a slash.
fn path_of(
    file: &SnapshotFile,
    names: &[Vec<u8>],
    by_inode: &BTreeMap<u64, usize>,
    files: &[SnapshotFile],
) -> String {
    let mut parts = Vec::new();
    let mut at = *file;
    while at.directory != at.inode && parts.len() < DEPTH_MAX {
        let Some(&index) = by_inode.get(&at.inode) else { break };
        parts.push(text_of(&names[index]));
        let Some(&parent) = by_inode.get(&at.directory) else { break };
        at = files[parent];
    }
    parts.reverse();
    let path = parts.join("/");
    if file.kind == FileKind::Directory { path + "/" } else { path }
}

/// A name as text; what is not UTF-8 as `\xNN`.
fn text_of(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name.escape_ascii().to_string(),
    }
}

impl Places {
    /// What lies where in `snapshot`, whose file system begins at `first_sector` of its disk; `paths`
    /// numbers the files.
    #[must_use]
    pub fn of(snapshot: &Snapshot, first_sector: u64, paths: &mut Paths) -> Self {
        let Some(names) = &snapshot.names else { return Self::default() };
        let numbered = snapshot.files.iter().enumerate();
        let by_inode: BTreeMap<u64, usize> =
            numbered.map(|(index, file)| (file.inode, index)).collect();
        Self::numbered(snapshot, first_sector, &mut |file| {
            Some(paths.number(path_of(file, names, &by_inode, &snapshot.files)))
        })
    }

    /// The same; `number` numbers the files, and leaves out those to which it gives none.
    #[must_use]
    pub fn numbered(
        snapshot: &Snapshot,
        first_sector: u64,
        number: &mut dyn FnMut(&SnapshotFile) -> Option<u32>,
    ) -> Self {
        let nowhere = ExtentFlags::INLINE.with(ExtentFlags::UNKNOWN);
        let mut places = Vec::new();
        for file in &snapshot.files {
            let extents = snapshot.extents_of(file);
            if extents.is_empty() {
                continue;
            }
            let Some(number) = number(file) else { continue };
            for extent in extents.iter().filter(|extent| !extent.flags.any(nowhere)) {
                let sector = first_sector + extent.physical_bytes / SECTOR_BYTES;
                places.push(Place {
                    sector,
                    end: sector + extent.length_bytes.div_ceil(SECTOR_BYTES),
                    file: number,
                    offset_bytes: extent.logical_bytes,
                });
            }
        }
        // Files may share a place (reflinks, tails); the first of them has it.
        places.sort_by_key(|place| (place.sector, place.file));
        let mut end = 0;
        let mut apart: Vec<Place> = Vec::with_capacity(places.len());
        for mut place in places {
            if place.sector < end {
                let cut = end - place.sector;
                place.sector = end;
                place.offset_bytes += cut * SECTOR_BYTES;
            }
            if place.sector < place.end {
                end = place.end;
                apart.push(place);
            }
        }
        Self { places: apart }
    }

    /// What lies at `sector`, if a file does, and the first sector behind that or behind the gap.
    fn at(&self, sector: u64) -> (Option<(u32, u64)>, u64) {
        let behind = self.places.partition_point(|place| place.sector <= sector);
        let next = self.places.get(behind).map_or(u64::MAX, |place| place.sector);
        let place = behind.checked_sub(1).map(|at| self.places[at]);
        match place.filter(|place| sector < place.end) {
            Some(place) => {
                let offset_bytes = place.offset_bytes + (sector - place.sector) * SECTOR_BYTES;
                (Some((place.file, offset_bytes)), place.end)
            }
            None => (None, next),
        }
    }
}

/// Says of each request, in the order of their times, of which file it is.
#[derive(Debug, Default)]
pub struct Attribution {
    before: Places,
    behind: Places,
    /// Blocks that the trace has written where the two differ.
    written: BTreeSet<u64>,
}

impl Attribution {
    /// With what lay where before the recording and behind it.
    #[must_use]
    pub fn new(before: Places, behind: Places) -> Self {
        Self { before, behind, written: BTreeSet::new() }
    }

    /// The file with the largest part of the request `row`, if one is known.
    pub fn part_of(&mut self, row: &BlockRow) -> Option<FilePart> {
        // Of equal parts the first.
        self.parts_of(row).into_iter().rev().max_by_key(|part| part.sectors)
    }

    /// The files of which the request `row` is, in the order in which they lie; of each where in the
    /// file its part begins.
    pub fn parts_of(&mut self, row: &BlockRow) -> Vec<FilePart> {
        let operation = Operation::from_code(row.operation);
        let Some(operation) = operation.filter(|operation| operation.transfers_data()) else {
            return Vec::new();
        };
        let is_write = operation == Operation::Write;
        let (mut at, end) = (row.sector, row.sector + u64::from(row.sectors));
        // By file: its first offset in the request, and how much.
        let mut parts: Vec<FilePart> = Vec::new();
        while at < end {
            let (before, before_end) = self.before.at(at);
            let (behind, behind_end) = self.behind.at(at);
            let mut until = end.min(before_end).min(behind_end);
            let found = if before == behind || behind.is_none() {
                before
            } else if before.is_none() {
                behind
            } else {
                // Decided block by block.
                until = until.min((at / BLOCK_SECTORS + 1) * BLOCK_SECTORS);
                let block = at / BLOCK_SECTORS;
                if is_write {
                    self.written.insert(block);
                }
                if self.written.contains(&block) { behind } else { before }
            };
            if let Some((file, offset_bytes)) = found {
                let sectors = (until - at) as u32;
                match parts.iter_mut().find(|part| part.file == file) {
                    Some(part) => part.sectors += sectors,
                    None => parts.push(FilePart { file, offset_bytes, sectors }),
                }
            }
            at = until;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use agewell_snapshot::{Extent, NO_TIME};

    use super::*;

    fn file(
        inode: u64,
        kind: FileKind,
        directory: u64,
        extents: std::ops::Range<u32>,
    ) -> SnapshotFile {
        SnapshotFile {
            inode,
            kind,
            links: 1,
            size_bytes: 0,
            birth_ns: NO_TIME,
            change_ns: NO_TIME,
            modify_ns: NO_TIME,
            directory,
            readdir_rank: 0,
            name_rank: 0,
            first_extent: extents.start,
            extents: extents.len() as u32,
        }
    }

    fn extent(logical_bytes: u64, physical_bytes: u64, length_bytes: u64) -> Extent {
        Extent { logical_bytes, physical_bytes, length_bytes, flags: ExtentFlags::default() }
    }

    /// A root with the file `a` in two pieces, and `sub/b` (or as it is named).
    fn snapshot(name: &str, b_at: u64) -> Snapshot {
        Snapshot {
            files: vec![
                file(2, FileKind::Directory, 2, 0..1),
                file(3, FileKind::Regular, 2, 1..3),
                file(4, FileKind::Directory, 2, 3..3),
                file(5, FileKind::Regular, 4, 3..4),
            ],
            names: Some([&b""[..], b"a", b"sub", name.as_bytes()].map(<[u8]>::to_vec).to_vec()),
            extents: vec![
                extent(0, 4096, 4096),
                extent(0, 8192, 8192),
                extent(8192, 40960, 4096),
                extent(0, b_at, 4096),
            ],
            ..Snapshot::default()
        }
    }

    fn row(operation: Operation, sector: u64, sectors: u32) -> BlockRow {
        BlockRow { operation: operation as u8, sector, sectors, ..BlockRow::default() }
    }

    #[test]
    fn requests_are_of_the_file_with_the_largest_part() {
        let mut paths = Paths::default();
        let places = Places::of(&snapshot("b", 16384), 100, &mut paths);
        let mut attribution = Attribution::new(places.clone(), places);
        let mut part = |sector: u64, sectors| {
            let part = attribution.part_of(&row(Operation::Read, 100 + sector, sectors))?;
            Some((paths.all()[part.file as usize].clone(), part.offset_bytes, part.sectors))
        };
        assert_eq!(part(16, 16), Some(("a".to_owned(), 0, 16)));
        assert_eq!(part(24, 4), Some(("a".to_owned(), 4096, 4)));
        assert_eq!(part(28, 16), Some(("sub/b".to_owned(), 0, 8)), "and 4 of a");
        assert_eq!(part(80, 8), Some(("a".to_owned(), 8192, 8)));
        assert_eq!(part(8, 8), Some(("/".to_owned(), 0, 8)), "the root itself");
        assert_eq!(part(48, 8), None, "nothing lies there");
    }

    #[test]
    fn a_place_is_of_its_old_file_until_it_is_written() {
        let mut paths = Paths::default();
        let before = Places::of(&snapshot("old", 65536), 0, &mut paths);
        let behind = Places::of(&snapshot("new", 65536), 0, &mut paths);
        let mut attribution = Attribution::new(before, behind);
        let mut name = |operation| {
            let part = attribution.part_of(&row(operation, 128, 8)).expect("a file");
            paths.all()[part.file as usize].clone()
        };
        assert_eq!(name(Operation::Read), "sub/old");
        assert_eq!(name(Operation::Write), "sub/new");
        assert_eq!(name(Operation::Read), "sub/new");
        assert_eq!(attribution.part_of(&row(Operation::Flush, 0, 0)), None);
    }
}
