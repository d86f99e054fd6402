//! Small files of a directory that are read one after another: those that came into it at about the same time are read
//! ahead.
//!
//! Each lies somewhere else where files came into several directories at the same time, and who reads one after
//! another waits for the disk each time. A drive that has many requests serves them as its heads reach them. Who reads
//! them in the order of their names goes to and fro among those of about the same age, so it is these that are read.

use std::ops::Range;

use agewell_store::device::Disk;
use rustix::fs::FileType;

use crate::core::Core;
use crate::format::{ExtentState, Kind, key};
use crate::{FsError, directory, extents, inodes, tree};

/// Files of which it is remembered where they were looked up; chosen by us: those of a large directory, which may all
/// be looked at before the first is read. Numbers that are as many apart have one place.
const LOOKED_UP: usize = 1 << 14;

/// Directories that are remembered; chosen by us: a few are walked at the same time.
const ROWS: usize = 16;

/// Entries from one file to another that came at about the same time; chosen by us: as numbers without zeros before
/// them are sorted, 19 comes before 2 and 100 behind 10.
const NEAR_ENTRIES: u64 = 64;

/// Files that were read near one another before the first is read ahead; chosen by us.
const NEAR_MIN: u32 = 3;

/// Entries before that of a file from which on files are read with it; chosen by us: half of what is read.
const BEFORE_ENTRIES: u64 = 16;

/// Entries among which the files are that are read with one; chosen by us: others may be directories, or be read already.
const SPAN_ENTRIES: u64 = 2 * NEAR_ENTRIES;

/// Ranges of entries that are remembered as read ahead; chosen by us: their blocks are in memory together.
const RANGES: usize = 8;

/// Files that are read ahead at most; chosen by us: as many requests as disks take at a time (NCQ: 32, Serial ATA
/// Revision 3.0, 13.6).
const AHEAD_MAX: usize = 32;

/// Blocks of a file that is read ahead, and of all together, at most; chosen by us: what is longer is read in several
/// requests anyway, and all are a quarter of what is kept in memory.
const FILE_BLOCKS_MAX: u64 = 8;
const BLOCKS_MAX: usize = 256;

/// Times that what was read ahead of a directory was not in memory any more, at most: each time twice as many files
/// are to be read near one another before others are read ahead again; chosen by us.
const LOST_MAX: u32 = 6;

/// What was read of a directory.
#[derive(Debug, Clone, Default)]
struct Row {
    directory: u64,
    /// The entry of the last file, and where it lies, bytes; how many before it were near one another in the directory,
    /// and not on the device.
    entry: u64,
    place: Option<u64>,
    near: u32,
    /// Entries whose files were read ahead.
    ahead: [Range<u64>; RANGES],
    oldest: usize,
    lost: u32,
}

/// A file, the directory in which it was looked up, and its entry there.
#[derive(Debug, Clone, Copy, Default)]
struct LookedUp {
    inode: u64,
    directory: u64,
    entry: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct FilesAhead {
    /// By their numbers; nothing until the first.
    looked_up: Vec<LookedUp>,
    rows: [Row; ROWS],
    /// The one that is forgotten next.
    oldest: usize,
}

impl FilesAhead {
    /// The file `inode` was looked up as the entry `entry` of `directory`.
    pub(crate) fn looked_up(&mut self, inode: u64, directory: u64, entry: u64) {
        if self.looked_up.is_empty() {
            self.looked_up = vec![LookedUp::default(); LOOKED_UP];
        }
        self.looked_up[inode as usize % LOOKED_UP] = LookedUp { inode, directory, entry };
    }

    /// The directory in which `inode` was looked up, and its entry there.
    pub(crate) fn entry_of(&self, inode: u64) -> Option<(u64, u64)> {
        let found = self.looked_up.get(inode as usize % LOOKED_UP);
        found.filter(|found| found.inode == inode).map(|found| (found.directory, found.entry))
    }

    /// The row of `directory`, if one of its files was read lately; otherwise it begins with `entry`.
    fn row(&mut self, directory: u64, entry: u64) -> Option<&mut Row> {
        if let Some(at) = self.rows.iter().position(|row| row.directory == directory) {
            return Some(&mut self.rows[at]);
        }
        self.rows[self.oldest] = Row { directory, entry, ..Row::default() };
        self.oldest = (self.oldest + 1) % ROWS;
        None
    }
}

/// The file `inode` is about to be read from its beginning: if files near it were read before, all of those are read
/// together.
pub(crate) fn before_reading<D: Disk>(core: &mut Core<D>, inode: u64) -> Result<(), FsError> {
    if !core.blocks.store().may_have_arm() {
        return Ok(());
    }
    let Some((directory, entry)) = core.files_ahead.entry_of(inode) else { return Ok(()) };
    let Some(row) = core.files_ahead.row(directory, entry) else { return Ok(()) };
    let before = std::mem::replace(&mut row.entry, entry);
    if before == entry {
        return Ok(());
    }
    let blocks = blocks_of(core, inode)?;
    let store = core.blocks.store();
    let place = store.places_of(blocks.iter().copied().take(1)).pop().flatten();
    let beside_bytes = (u64::from(store.longest_gap()) + FILE_BLOCKS_MAX) * core.block_bytes();
    let is_lost = blocks.iter().any(|block| !store.is_read_ahead(*block, 1));
    let Some(row) = core.files_ahead.row(directory, entry) else { return Ok(()) };
    // What lies right behind the last one is read with it, or hardly later.
    let is_beside = |last: u64, place: u64| (last..=last + beside_bytes).contains(&place);
    row.near = match (row.place, place) {
        _ if before.abs_diff(entry) > NEAR_ENTRIES => 0,
        (Some(last), Some(place)) if is_beside(last, place) => 0,
        (_, Some(_)) => row.near + 1,
        (_, None) => row.near,
    };
    row.place = place.or(row.place);
    if let Some(at) = row.ahead.iter().position(|range| range.contains(&entry)) {
        if is_lost {
            (row.ahead[at], row.near) = (0..0, 0);
            row.lost = (row.lost + 1).min(LOST_MAX);
        } else {
            row.lost = row.lost.saturating_sub(1);
        }
    } else if row.near >= NEAR_MIN << row.lost {
        let from = entry.saturating_sub(BEFORE_ENTRIES);
        let before = row.ahead.clone();
        let end = read_ahead(core, directory, from, &before)?;
        if let Some(row) = core.files_ahead.row(directory, entry) {
            row.ahead[row.oldest] = from..end;
            row.oldest = (row.oldest + 1) % RANGES;
        }
    }
    Ok(())
}

/// Reads files of `directory`, from the entry `from` on, together, but for those that were read `before`; the entry
/// behind them.
fn read_ahead<D: Disk>(
    core: &mut Core<D>,
    directory: u64,
    from: u64,
    before: &[Range<u64>],
) -> Result<u64, FsError> {
    let mut found = Vec::with_capacity(AHEAD_MAX);
    let mut end = from;
    directory::each(core, directory, from, |entry, inode, file_type, _| {
        if entry >= from + SPAN_ENTRIES {
            return false;
        }
        end = entry + 1;
        let is_new = !before.iter().any(|range| range.contains(&entry));
        found.extend((is_new && file_type == FileType::RegularFile).then_some(inode));
        found.len() < AHEAD_MAX
    })?;
    let mut leaves = Vec::with_capacity(AHEAD_MAX);
    for inode in &found {
        leaves.extend(tree::leaf_in_memory_above(&mut core.blocks, key(*inode, Kind::Inode, 0))?);
    }
    leaves.dedup();
    core.blocks.read_nodes_ahead(&leaves);
    let mut blocks = Vec::new();
    for inode in found {
        if blocks.len() < BLOCKS_MAX {
            blocks.extend(blocks_of(core, inode)?);
        }
    }
    core.blocks.store().read_ahead(&blocks, &[], 0);
    Ok(end)
}

/// The blocks of a small file: none if it has none of its own, or is no small one.
fn blocks_of<D: Disk>(core: &mut Core<D>, number: u64) -> Result<Vec<u32>, FsError> {
    let inode = inodes::get(core, number)?;
    let end = inode.size.div_ceil(core.block_bytes());
    if inode.is_small() || end > FILE_BLOCKS_MAX || inode.file_type() != FileType::RegularFile {
        return Ok(Vec::new());
    }
    let found = extents::between(core, number, (0, end), FILE_BLOCKS_MAX as usize)?;
    let written = found.iter().filter(|extent| extent.state != ExtentState::Promised);
    Ok(written
        .flat_map(|extent| (extent.number..).take((extent.end() - extent.at) as usize))
        .collect())
}
