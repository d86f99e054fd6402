//! What `statx` says of a file, in the shapes of a snapshot.

use std::ffi::CStr;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, StatxFlags, StatxTimestamp, statx};
use rustix::io::Result;

use crate::{FileKind, NO_TIME};

/// What is known of a file without its extents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Status {
    pub(super) inode: u64,
    pub(super) kind: FileKind,
    pub(super) links: u32,
    pub(super) size_bytes: u64,
    pub(super) allocated_bytes: u64,
    pub(super) birth_ns: i64,
    pub(super) change_ns: i64,
    pub(super) modify_ns: i64,
    /// Major and minor number of the device.
    pub(super) device: (u32, u32),
    /// Which mount it was found through; 0 where the kernel does not say.
    pub(super) mount: u64,
}

/// Blocks of `statx` are of 512 bytes, whatever the file system.
const STATX_BLOCK_BYTES: u64 = 512;

impl Status {
    /// Of the entry `name` of `directory`, links not followed, nothing mounted on the way.
    pub(super) fn of_entry(directory: impl AsFd, name: &CStr) -> Result<Self> {
        Self::ask(directory, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT)
    }

    /// Of an open file.
    pub(super) fn of_open(file: impl AsFd) -> Result<Self> {
        Self::ask(file, c"", AtFlags::EMPTY_PATH)
    }

    fn ask(file: impl AsFd, name: &CStr, flags: AtFlags) -> Result<Self> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
        let told = statx(file, name, flags, wanted)?;
        let has = |flag: StatxFlags| told.stx_mask & flag.bits() != 0;
        Ok(Self {
            inode: told.stx_ino,
            kind: match FileType::from_raw_mode(told.stx_mode.into()) {
                FileType::RegularFile => FileKind::Regular,
                FileType::Directory => FileKind::Directory,
                FileType::Symlink => FileKind::Link,
                _ => FileKind::Other,
            },
            links: told.stx_nlink,
            size_bytes: told.stx_size,
            allocated_bytes: told.stx_blocks.saturating_mul(STATX_BLOCK_BYTES),
            birth_ns: if has(StatxFlags::BTIME) { nanoseconds(&told.stx_btime) } else { NO_TIME },
            change_ns: nanoseconds(&told.stx_ctime),
            modify_ns: nanoseconds(&told.stx_mtime),
            device: (told.stx_dev_major, told.stx_dev_minor),
            mount: if has(StatxFlags::MNT_ID) { told.stx_mnt_id } else { 0 },
        })
    }

    /// Whether `later` is of the same file, not touched in between.
    pub(super) fn unchanged(&self, later: &Self) -> bool {
        (self.inode, self.change_ns, self.size_bytes)
            == (later.inode, later.change_ns, later.size_bytes)
    }
}

/// Nanoseconds since 1970; file systems can hold times that 64 bits of nanoseconds cannot, which
/// are as good as unknown.
fn nanoseconds(time: &StatxTimestamp) -> i64 {
    let seconds = time.tv_sec.checked_mul(1_000_000_000);
    seconds.and_then(|seconds| seconds.checked_add(time.tv_nsec.into())).unwrap_or(NO_TIME)
}
