//! Whether a snapshot keeps its invariants, before anything counts on them.
//!
//! A snapshot may come from a damaged file or a damaged image. After [`check`] every extent of every
//! file is there, ascends, and no sum of addresses or lengths of the snapshot overflows.
//!
//! Cost: one pass over files, extents and free extents.

use crate::{Extent, ExtentFlags, Snapshot, SnapshotError, SnapshotFile};

/// No file system is larger, nor all its extents together: 2^62 bytes, 4 EiB (chosen by us: sums of
/// two addresses stay below 2^63).
const BYTES_MAX: u64 = 1 << 62;

/// Refuses a snapshot that contradicts itself.
///
/// # Errors
/// With the inode and what is wrong with it.
pub(crate) fn check(snapshot: &Snapshot) -> Result<(), SnapshotError> {
    let facts = &snapshot.facts;
    if facts.block_bytes == 0 {
        return Err(damaged("its block size is 0"));
    }
    if facts.total_bytes > BYTES_MAX || facts.free_bytes > facts.total_bytes {
        return Err(damaged(format_args!(
            "{} of {} bytes are free",
            facts.free_bytes, facts.total_bytes
        )));
    }
    if u32::try_from(snapshot.files.len()).is_err()
        || u32::try_from(snapshot.extents.len()).is_err()
    {
        return Err(SnapshotError::Input(format!(
            "the snapshot has {} files and {} extents; up to 2^32 of each can be scored: take it of \
             a part of the tree",
            snapshot.files.len(),
            snapshot.extents.len()
        )));
    }
    if facts.first_group_bytes > BYTES_MAX || facts.group_bytes > BYTES_MAX {
        return Err(damaged("its groups lie beyond 2^62 bytes"));
    }
    if let Some(names) = &snapshot.names
        && names.len() != snapshot.files.len()
    {
        return Err(damaged(format_args!(
            "it has {} names for {} files",
            names.len(),
            snapshot.files.len()
        )));
    }
    let mut bytes_left = BYTES_MAX;
    let mut inode_before = None;
    for file in &snapshot.files {
        if inode_before.is_some_and(|before| before >= file.inode) {
            return Err(damaged(format_args!("inode {} does not ascend", file.inode)));
        }
        inode_before = Some(file.inode);
        check_file(snapshot, file, &mut bytes_left)?;
    }
    check_free(snapshot)
}

fn check_file(
    snapshot: &Snapshot,
    file: &SnapshotFile,
    bytes_left: &mut u64,
) -> Result<(), SnapshotError> {
    let broken = |what: String| damaged(format_args!("inode {}: {what}", file.inode));
    let first = file.first_extent as usize;
    let Some(extents) = snapshot.extents.get(first..first + file.extents as usize) else {
        return Err(broken(format!(
            "extents {first} to {} of {}",
            first + file.extents as usize,
            snapshot.extents.len()
        )));
    };
    let mut end_bytes = 0;
    for extent in extents {
        if extent.logical_bytes < end_bytes {
            return Err(broken(format!(
                "the extent at byte {} of the file overlaps the one before",
                extent.logical_bytes
            )));
        }
        let (Some(end), Some(left)) = (end_of(extent), bytes_left.checked_sub(extent.length_bytes))
        else {
            return Err(broken(format!(
                "the extent at byte {} of the file, {} long at {}, reaches beyond 2^62 bytes",
                extent.logical_bytes, extent.length_bytes, extent.physical_bytes
            )));
        };
        end_bytes = end;
        *bytes_left = left;
    }
    Ok(())
}

/// The end of an extent within its file, unless it or its place on the device is out of range.
fn end_of(extent: &Extent) -> Option<u64> {
    let within =
        |start: u64| start.checked_add(extent.length_bytes).filter(|end| *end <= BYTES_MAX);
    let placed = !extent.flags.any(ExtentFlags::INLINE.with(ExtentFlags::UNKNOWN));
    if placed {
        within(extent.physical_bytes)?;
    }
    within(extent.logical_bytes)
}

fn check_free(snapshot: &Snapshot) -> Result<(), SnapshotError> {
    let mut end_before = None;
    for free in &snapshot.free {
        let end = free.physical_bytes.checked_add(free.length_bytes);
        let Some(end) = end.filter(|end| *end <= BYTES_MAX) else {
            return Err(damaged(format_args!(
                "free space at {}, {} bytes, reaches beyond 2^62 bytes",
                free.physical_bytes, free.length_bytes
            )));
        };
        if free.length_bytes == 0 || end_before.is_some_and(|before| free.physical_bytes < before) {
            return Err(damaged(format_args!(
                "free space at {} is empty, or overlaps what is free before it",
                free.physical_bytes
            )));
        }
        end_before = Some(end);
    }
    Ok(())
}

fn damaged(what: impl std::fmt::Display) -> SnapshotError {
    SnapshotError::Input(format!("the snapshot is damaged: {what}; take it again"))
}
