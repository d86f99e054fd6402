//! Replies: a header, and what the operation gives.

use std::time::Duration;

use rustix::fs::{FileType, major, minor};

use crate::file_system::{Attributes, Entry, Space, Time};

/// Bytes in front of every reply.
pub(crate) const REPLY_HEADER: usize = 16;

/// Bytes of a `fuse_attr`.
const ATTRIBUTES_SIZE: usize = 88;

/// Bytes of a `fuse_entry_out`.
pub(crate) const ENTRY_SIZE: usize = 40 + ATTRIBUTES_SIZE;

/// Bytes of what `CREATE` gives: an entry, and a `fuse_open_out`.
const CREATED_SIZE: usize = ENTRY_SIZE + 16;

/// Bytes of a `fuse_init_out`.
const INITIALISED_SIZE: usize = 64;

/// Bytes of a `fuse_statx_out`.
const STATX_SIZE: usize = 32 + 256;

/// Bytes of a record of a directory in front of its name.
const DIRECTORY_RECORD: usize = 24;

/// The kernel keeps the pages of a file that is opened again (`FOPEN_KEEP_CACHE`), and the listing of a
/// directory (`FOPEN_CACHE_DIR`), as it does for all files that it opens by itself.
const OPEN_FLAGS: u32 = 1 << 1 | 1 << 3;

/// For how long the kernel may believe an answer, as the protocol wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) entry: Duration,
    pub(crate) attributes: Duration,
}

impl Validity {
    /// For the attributes of one file. A file that runs as its owner or group stops doing so when others
    /// write to it, by which the kernel forgets its size and times but not its mode: so it asks each time.
    fn of(self, file: &Attributes) -> Duration {
        let loses_privileges = file.kind() == FileType::RegularFile && file.mode & 0o6000 != 0;
        if loses_privileges { Duration::ZERO } else { self.attributes }
    }
}

/// Fields one behind another, into an array of a fixed size.
struct Fill<const SIZE: usize> {
    bytes: [u8; SIZE],
    used: usize,
}

impl<const SIZE: usize> Fill<SIZE> {
    fn new() -> Self {
        Self { bytes: [0; SIZE], used: 0 }
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.bytes[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
        self
    }

    fn u16(self, number: u16) -> Self {
        self.bytes(&number.to_ne_bytes())
    }

    fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_ne_bytes())
    }

    fn u64(self, number: u64) -> Self {
        self.bytes(&number.to_ne_bytes())
    }

    /// A time of `statx`.
    fn time(self, time: Time) -> Self {
        self.u64(time.seconds as u64).u32(time.nanoseconds).u32(0)
    }

    /// What is left is zero.
    fn whole(self) -> [u8; SIZE] {
        self.bytes
    }
}

/// `error` is an `errno`, or 0.
pub(crate) fn reply_header(size: usize, error: i32, unique: u64) -> [u8; REPLY_HEADER] {
    Fill::new().u32(size as u32).u32(-error as u32).u64(unique).whole()
}

fn file_attributes(of: &Attributes) -> [u8; ATTRIBUTES_SIZE] {
    Fill::new()
        .u64(of.inode)
        .u64(of.size)
        .u64(of.blocks)
        .u64(of.accessed.seconds as u64)
        .u64(of.modified.seconds as u64)
        .u64(of.changed.seconds as u64)
        .u32(of.accessed.nanoseconds)
        .u32(of.modified.nanoseconds)
        .u32(of.changed.nanoseconds)
        .u32(of.mode)
        .u32(of.links)
        .u32(of.user)
        .u32(of.group)
        .u32(of.device)
        .u32(of.block_size)
        .u32(0)
        .whole()
}

/// `fuse_entry_out`.
pub(crate) fn entry(entry: &Entry, validity: Validity) -> [u8; ENTRY_SIZE] {
    let attributes = validity.of(&entry.attributes);
    Fill::new()
        .u64(entry.attributes.inode)
        .u64(entry.generation)
        .u64(validity.entry.as_secs())
        .u64(attributes.as_secs())
        .u32(validity.entry.subsec_nanos())
        .u32(attributes.subsec_nanos())
        .bytes(&file_attributes(&entry.attributes))
        .whole()
}

/// What a lookup gives.
pub(crate) enum LookedAt<'a> {
    Found(&'a Entry),
    /// That there is none: the kernel may believe it for as long.
    Absent,
}

/// `fuse_entry_out` of a lookup.
pub(crate) fn looked_at(looked_at: &LookedAt<'_>, validity: Validity) -> [u8; ENTRY_SIZE] {
    match looked_at {
        LookedAt::Found(found) => entry(found, validity),
        LookedAt::Absent => Fill::new()
            .u64(0)
            .u64(0)
            .u64(validity.entry.as_secs())
            .u64(0)
            .u32(validity.entry.subsec_nanos())
            .whole(),
    }
}

/// `fuse_entry_out` and `fuse_open_out`.
pub(crate) fn created(made: &Entry, validity: Validity) -> [u8; CREATED_SIZE] {
    Fill::new().bytes(&entry(made, validity)).u64(0).u32(OPEN_FLAGS).whole()
}

/// `fuse_attr_out`.
pub(crate) fn attributes(of: &Attributes, validity: Validity) -> [u8; 16 + ATTRIBUTES_SIZE] {
    let validity = validity.of(of);
    Fill::new()
        .u64(validity.as_secs())
        .u32(validity.subsec_nanos())
        .u32(0)
        .bytes(&file_attributes(of))
        .whole()
}

/// `fuse_statx_out`.
pub(crate) fn statx(of: &Attributes, validity: Validity) -> [u8; STATX_SIZE] {
    /// `STATX_BASIC_STATS` and `STATX_BTIME`.
    const MASK: u32 = 0x7ff | 0x800;
    let validity = validity.of(of);
    Fill::new()
        .u64(validity.as_secs())
        .u32(validity.subsec_nanos())
        .u32(0)
        .u64(0)
        .u64(0)
        .u32(MASK)
        .u32(of.block_size)
        .u64(0)
        .u32(of.links)
        .u32(of.user)
        .u32(of.group)
        .u16(of.mode as u16)
        .u16(0)
        .u64(of.inode)
        .u64(of.size)
        .u64(of.blocks)
        .u64(0)
        .time(of.accessed)
        .time(of.born)
        .time(of.changed)
        .time(of.modified)
        .u32(major(u64::from(of.device)))
        .u32(minor(u64::from(of.device)))
        .whole()
}

/// `fuse_statfs_out`.
pub(crate) fn space(of: &Space) -> [u8; 80] {
    Fill::new()
        .u64(of.blocks)
        .u64(of.free)
        .u64(of.available)
        .u64(of.files)
        .u64(of.files_free)
        .u32(of.block_size)
        .u32(of.name_max)
        .u32(of.block_size)
        .whole()
}

/// `fuse_write_out`, `fuse_getxattr_out`: a size and nothing.
pub(crate) fn size_only(size: u32) -> [u8; 8] {
    Fill::new().u32(size).whole()
}

/// `fuse_lseek_out`, `fuse_copy_file_range_out`.
pub(crate) fn position(position: u64) -> [u8; 8] {
    position.to_ne_bytes()
}

/// `fuse_ioctl_out`.
pub(crate) fn command_result(result: i32) -> [u8; 16] {
    Fill::new().u32(result as u32).whole()
}

/// What was agreed upon.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Initialised {
    pub(crate) minor: u32,
    pub(crate) capabilities: u64,
    pub(crate) read_ahead_max: u32,
    /// Requests that nobody waits for, at a time.
    pub(crate) background_max: u16,
    pub(crate) write_max: u32,
    pub(crate) pages_max: u16,
}

/// `fuse_init_out`.
pub(crate) fn initialised(with: &Initialised) -> [u8; INITIALISED_SIZE] {
    Fill::new()
        .u32(super::MAJOR)
        .u32(with.minor)
        .u32(with.read_ahead_max)
        .u32(with.capabilities as u32)
        .u16(with.background_max)
        // When others should hold back; what the kernel would choose by itself.
        .u16(with.background_max / 4 * 3)
        .u32(with.write_max)
        // Times are exact to the nanosecond.
        .u32(1)
        .u16(with.pages_max)
        .u16(0)
        .u32((with.capabilities >> 32) as u32)
        .whole()
}

/// Bytes of a record of a directory: rounded up to eight.
pub(crate) fn directory_record_size(name: &[u8]) -> usize {
    (DIRECTORY_RECORD + name.len()).next_multiple_of(8)
}

/// `fuse_dirent`, into as many bytes as its size is.
pub(crate) fn write_directory_record(
    record: &mut [u8],
    inode: u64,
    next: u64,
    kind: FileType,
    name: &[u8],
) {
    let kind = kind.as_raw_mode() >> 12;
    let head: [u8; DIRECTORY_RECORD] =
        Fill::new().u64(inode).u64(next).u32(name.len() as u32).u32(kind).whole();
    let (front, behind) = record.split_at_mut(DIRECTORY_RECORD);
    front.copy_from_slice(&head);
    let (text, rest) = behind.split_at_mut(name.len());
    text.copy_from_slice(name);
    rest.fill(0);
}
