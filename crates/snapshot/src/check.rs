//! Whether a snapshot keeps its invariants, whatever made it: a file may be mangled, a file system
//! may change while it is read.

use std::ops::Range;

use crate::{Extent, ExtentFlags, FreeExtent, Snapshot, SnapshotFile};

/// The end of `start` and `length`, if it is an address at all: Linux numbers bytes with 63 bits.
fn end(start: u64, length: u64) -> Option<u64> {
    start.checked_add(length).filter(|&end| i64::try_from(end).is_ok())
}

impl Snapshot {
    /// Whether everything that the documentation of the fields promises is so.
    ///
    /// # Errors
    /// The first thing that is not, as a phrase.
    pub fn check(&self) -> Result<(), String> {
        if let Some(names) = &self.names
            && names.len() != self.files.len()
        {
            return Err(format!("{} names for {} files", names.len(), self.files.len()));
        }
        if self.facts.block_bytes == 0 || self.facts.fragment_bytes == 0 {
            return Err("a block or a fragment of 0 bytes".to_owned());
        }
        let mut last = None;
        for file in &self.files {
            if last.is_some_and(|last| last >= file.inode) {
                return Err(format!("inode {} stands in the wrong place or twice", file.inode));
            }
            last = Some(file.inode);
            self.check_extents(file).map_err(|what| format!("inode {}: {what}", file.inode))?;
        }
        check_free(&self.free)
    }

    /// Which extents `file` has, if they are there at all.
    fn range_of(&self, file: &SnapshotFile) -> Option<Range<usize>> {
        let first = file.first_extent as usize;
        let end = first.checked_add(file.extents as usize)?;
        (end <= self.extents.len()).then_some(first..end)
    }

    fn check_extents(&self, file: &SnapshotFile) -> Result<(), String> {
        let range = self.range_of(file).ok_or("its extents are beyond the last one")?;
        let mut reached_bytes = 0;
        for extent in &self.extents[range] {
            reached_bytes = check_extent(extent, reached_bytes)?;
        }
        Ok(())
    }
}

/// Checks one extent of a file whose earlier ones reach to `reached_bytes`; returns how far the
/// file is covered then.
fn check_extent(extent: &Extent, reached_bytes: u64) -> Result<u64, String> {
    let logical = extent.logical_bytes;
    if extent.length_bytes == 0 {
        return Err(format!("an extent of 0 bytes at {logical}"));
    }
    if extent.flags.0 & !ExtentFlags::ALL.0 != 0 {
        return Err(format!("an unknown flag at {logical}"));
    }
    if logical < reached_bytes {
        return Err(format!("extents overlap at {logical}"));
    }
    if end(extent.physical_bytes, extent.length_bytes).is_none() {
        return Err(format!("an extent beyond every device at {logical}"));
    }
    end(logical, extent.length_bytes)
        .ok_or_else(|| format!("an extent beyond every file at {logical}"))
}

fn check_free(free: &[FreeExtent]) -> Result<(), String> {
    let mut last_end_bytes = None;
    for extent in free {
        let start = extent.physical_bytes;
        if extent.length_bytes == 0 {
            return Err(format!("a free extent of 0 bytes at {start}"));
        }
        if last_end_bytes.is_some_and(|last| start <= last) {
            return Err(format!("free extents touch, overlap or descend at {start}"));
        }
        let end = end(start, extent.length_bytes)
            .ok_or_else(|| format!("a free extent beyond every device at {start}"))?;
        last_end_bytes = Some(end);
    }
    Ok(())
}
