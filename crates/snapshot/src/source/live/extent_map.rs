//! Where the bytes of one file lie, by FIEMAP, or by what takes its place on file systems in user space.
//!
//! Source: Linux `Documentation/filesystems/fiemap.rst`. A file that is written meanwhile may be
//! reported with extents that overlap; they are cut so that they ascend, and the caller learns of it.
//!
//! Where a kernel ends an extent depends on what it has in memory (ext4 joins in its extent status
//! tree what the disk holds in pieces, and forgets it under pressure). So extents that go on in the
//! file and on the device alike are joined here: the same file gives the same extents at any moment.

use rustix::fd::AsFd;
use rustix::io::{Errno, Result};

use super::super::extents::push_extent;
use super::extent_attribute::AttributeBuffer;
use super::kernel::{ExtentBuffer, MappedExtent};
use crate::{Extent, ExtentFlags};

/// `FIEMAP_EXTENT_LAST`.
const LAST: u32 = 1;
/// `FIEMAP_EXTENT_*` and what they are here. `NOT_ALIGNED` and `MERGED` say nothing about where
/// data lie; `DELALLOC` comes with `UNKNOWN`, `DATA_ENCRYPTED` with `ENCODED`.
const FLAGS: [(u32, ExtentFlags); 8] = [
    (0x2, ExtentFlags::UNKNOWN),
    (0x4, ExtentFlags::UNKNOWN),
    (0x8, ExtentFlags::ENCODED),
    (0x80, ExtentFlags::ENCODED),
    (0x200, ExtentFlags::INLINE),
    (0x400, ExtentFlags::TAIL),
    (0x800, ExtentFlags::UNWRITTEN),
    (0x2000, ExtentFlags::SHARED),
];

fn flags_of(raw: u32) -> ExtentFlags {
    let set = FLAGS.iter().filter(|(bit, _)| raw & bit != 0);
    set.fold(ExtentFlags::default(), |flags, (_, flag)| flags.with(*flag))
}

/// Whether an error says that the file system has no extent maps at all.
pub fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS)
}

/// How a file's extents are read.
pub struct ExtentMap {
    buffer: ExtentBuffer,
    attribute: AttributeBuffer,
    /// The last file had its extents in an attribute.
    by_attribute: bool,
    sync: bool,
}

impl ExtentMap {
    /// A reader; with `sync` what is still in memory is written first.
    pub fn new(sync: bool) -> Self {
        let attribute = AttributeBuffer::new();
        Self { buffer: ExtentBuffer::new(), attribute, by_attribute: false, sync }
    }

    /// Appends the extents of `file` to `extents`; `false` if they contradicted each other and were
    /// cut.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&mut self, file: impl AsFd, extents: &mut Vec<Extent>) -> Result<bool> {
        let (first, mut reached_bytes) = (extents.len(), 0);
        let mut consistent = true;
        loop {
            let mut last = true;
            let before = reached_bytes;
            for mapped in self.some(&file, before)? {
                last = mapped.flags & LAST != 0;
                if let Some(extent) = cut(&mapped, reached_bytes) {
                    consistent &= extent.logical_bytes == mapped.logical_bytes;
                    reached_bytes = extent.logical_bytes + extent.length_bytes;
                    push_extent(extents, first, extent);
                } else {
                    consistent = false;
                }
            }
            // The second is for a kernel that reports nothing new and never says that it is the end.
            if last || reached_bytes == before {
                return Ok(consistent);
            }
        }
    }
}

impl ExtentMap {
    /// Extents of `file` from byte `start` on: by the system call, or by the attribute of file systems in
    /// user space, to which the kernel does not hand it on.
    fn some(&mut self, file: impl AsFd, start: u64) -> Result<Vec<MappedExtent>> {
        if !self.by_attribute {
            match self.buffer.fill(&file, start, self.sync) {
                Ok(extents) => return Ok(extents.collect()),
                Err(error) if !is_unsupported(error) => return Err(error),
                Err(error) => {
                    if self.attribute.fill(&file, start).is_err() {
                        return Err(error);
                    }
                    self.by_attribute = true;
                }
            }
        }
        if self.sync && start == 0 {
            rustix::fs::fdatasync(&file)?;
        }
        let found = self.attribute.fill(&file, start);
        // Other file systems may be mounted below.
        self.by_attribute = found.is_ok();
        found
    }
}

/// What of `mapped` lies behind `reached_bytes`, if anything.
fn cut(mapped: &MappedExtent, reached_bytes: u64) -> Option<Extent> {
    let end = mapped.logical_bytes.checked_add(mapped.length_bytes)?;
    let cut_bytes = reached_bytes.saturating_sub(mapped.logical_bytes);
    let whole = i64::try_from(end).is_ok() && cut_bytes < mapped.length_bytes;
    let flags = flags_of(mapped.flags);
    // What kernels report as the address of such extents differs and means nothing.
    let placeless = flags.any(ExtentFlags::UNKNOWN.with(ExtentFlags::INLINE));
    let start = if placeless { 0 } else { mapped.physical_bytes };
    let device_end = start.checked_add(mapped.length_bytes)?;
    (whole && i64::try_from(device_end).is_ok()).then(|| Extent {
        logical_bytes: mapped.logical_bytes + cut_bytes,
        physical_bytes: if placeless { 0 } else { start + cut_bytes },
        length_bytes: mapped.length_bytes - cut_bytes,
        flags,
    })
}

#[cfg(test)]
mod tests {
    use super::{MappedExtent, cut, flags_of};
    use crate::ExtentFlags;

    fn mapped(logical_bytes: u64, length_bytes: u64) -> MappedExtent {
        MappedExtent { logical_bytes, physical_bytes: 1 << 20, length_bytes, flags: 0 }
    }

    /// What has been reported before is cut off the front, with the address moved along.
    #[test]
    fn overlap_is_cut() {
        let extent = cut(&mapped(4096, 8192), 8192).expect("4096 bytes are left");
        assert_eq!((extent.logical_bytes, extent.length_bytes), (8192, 4096));
        assert_eq!(extent.physical_bytes, (1 << 20) + 4096);
        assert!(cut(&mapped(4096, 4096), 8192).is_none());
        assert!(cut(&mapped(4096, 0), 0).is_none());
    }

    /// An extent that ends beyond every file or device is left out instead of wrapping.
    #[test]
    fn impossible_extents_are_left_out() {
        assert!(cut(&mapped(u64::MAX - 10, 4096), 0).is_none());
        assert!(cut(&MappedExtent { physical_bytes: u64::MAX, ..mapped(0, 4096) }, 0).is_none());
    }

    /// Delayed allocation is unknown, as FIEMAP's documentation has it; unwritten and shared stay.
    #[test]
    fn flags() {
        assert_eq!(flags_of(0x1 | 0x2 | 0x4), ExtentFlags::UNKNOWN);
        assert_eq!(flags_of(0x801), ExtentFlags::UNWRITTEN);
        assert_eq!(flags_of(0x2008), ExtentFlags::SHARED.with(ExtentFlags::ENCODED));
        assert_eq!(flags_of(0x1000), ExtentFlags::default());
    }
}
