//! Requests of the kernel out of bytes, and replies into bytes, as `linux/fuse.h` lays them out.
//!
//! Numbers are in the order of the machine's bytes. Nothing here does I/O, and no bytes make it panic.

mod fields;
mod request;
mod response;

pub(crate) use request::asks_for_space;
pub use request::{
    BadRequest, Dialect, Forget, Initialise, MINOR_MIN, Operation, REQUEST_HEADER, Request, parse,
};
pub(crate) use response::{
    ENTRY_SIZE, Initialised, LookedAt, REPLY_HEADER, Validity, attributes, command_result, created,
    directory_record_size, entry, initialised, looked_at, position, reply_header, size_only, space,
    statx, write_directory_record,
};

/// The version of the protocol that is spoken; the kernel uses what of it is older if it is older itself.
pub const MAJOR: u32 = 7;

/// See [`MAJOR`]: 7.45 is Linux 6.18's.
pub const MINOR: u32 = 45;

/// Bytes of a `WRITE` in front of its data.
pub const WRITE_HEADER: usize = REQUEST_HEADER + 40;

/// What the kernel offers and the session asks for (`FUSE_INIT` flags; those above bit 31 come in a word
/// of their own).
pub mod capability {
    /// Several reads of one file at once.
    pub const ASYNC_READ: u64 = 1 << 0;
    /// Inodes may be looked up by `.`: file handles outlast the kernel's memory of them.
    pub const EXPORT_SUPPORT: u64 = 1 << 4;
    /// Writes of more than a page.
    pub const BIG_WRITES: u64 = 1 << 5;
    /// The umask comes with what is made and is not taken off by the kernel.
    pub const DONT_MASK: u64 = 1 << 6;
    /// Commands on directories.
    pub const IOCTL_DIRECTORIES: u64 = 1 << 11;
    /// Listings with attributes.
    pub const READ_DIRECTORY_PLUS: u64 = 1 << 13;
    /// ... where the kernel expects that they are wanted.
    pub const READ_DIRECTORY_PLUS_AUTO: u64 = 1 << 14;
    /// `OPEN` may be answered by "not known".
    pub const NO_OPEN: u64 = 1 << 17;
    /// Lookups and listings of one directory at once.
    pub const PARALLEL_DIRECTORIES: u64 = 1 << 18;
    /// Access control lists, checked by the kernel.
    pub const POSIX_ACL: u64 = 1 << 20;
    /// The reply says how many pages a request may have.
    pub const MAX_PAGES: u64 = 1 << 22;
    /// The kernel remembers where symbolic links lead.
    pub const CACHE_SYMLINKS: u64 = 1 << 23;
    /// `OPENDIR` may be answered by "not known".
    pub const NO_OPENDIR: u64 = 1 << 24;
    /// Requests say when privileges are to be cleared.
    pub const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
    /// `SETXATTR` has a word of flags more.
    pub const SETXATTR_EXTENDED: u64 = 1 << 29;
    /// There is a second word of flags.
    pub const INIT_EXTENDED: u64 = 1 << 30;
    /// Mounts may show files under other users' numbers (`mount_setattr(2)`): Linux 6.12.
    pub const ALLOW_IDMAP: u64 = 1 << 40;
}
