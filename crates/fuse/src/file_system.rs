//! What is mounted: the seam between the kernel's requests and a file system.
//!
//! A [`FileSystem`] is asked by inode number, as the kernel does, and answers with plain values. It is
//! asked by several threads at once if the session has several, hence `&self`.
//!
//! There are no handles of open files. The kernel hears once that opening needs no request
//! (`FUSE_NO_OPEN_SUPPORT`, `FUSE_NO_OPENDIR_SUPPORT`), which saves three requests for every file that is
//! opened and closed, and every request names its inode anyway. What a handle would keep alive, a file
//! without a name that is still open, is kept alive by the count of lookups ([`FileSystem::forget`]).
//!
//! Who may do what is checked by the kernel (`default_permissions`), by the mode, owner and access control
//! list that the file system reports. What remains with the file system: clearing set-user-ID and
//! set-group-ID bits where it is asked to, the group of what is made in a set-group-ID directory, and
//! access control lists that are inherited.

use rustix::fs::{FallocateFlags, FileType, RenameFlags, XattrFlags};
use rustix::io::Errno;

use crate::directory::DirectorySink;
use crate::reply::{DataReply, Reply, Sent};

/// The inode number of the root directory, which the kernel never looks up and never forgets.
pub const ROOT: u64 = 1;

/// The longest name, bytes; the kernel asks for none that is longer than 1024 and a file system has its
/// own limit, said by [`Space::name_max`].
pub const PROTOCOL_NAME_MAX: usize = 1024;

/// Who asks. Zeros where the kernel itself does: pages written back, files forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caller {
    /// The user whose file it becomes if one is made; [`Caller::UNSAID`] with other requests, where mounts may
    /// show other users' numbers.
    pub user: u32,
    /// The group, likewise.
    pub group: u32,
    /// The process, or 0 outside the daemon's name space.
    pub process: u32,
}

impl Caller {
    /// No user, and no group: `FUSE_INVALID_UIDGID`.
    pub const UNSAID: u32 = u32::MAX;
}

/// A moment since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds behind these, below 1,000,000,000.
    pub nanoseconds: u32,
}

/// What `stat` and `statx` show of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Its number, the same for as long as it lives.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// What it takes on the disk, in units of 512 bytes.
    pub blocks: u64,
    /// Last read.
    pub accessed: Time,
    /// Last written.
    pub modified: Time,
    /// Last changed in anything.
    pub changed: Time,
    /// Made.
    pub born: Time,
    /// Type and permissions, as in `st_mode`.
    pub mode: u32,
    /// Names that it has.
    pub links: u32,
    /// Owner.
    pub user: u32,
    /// Group.
    pub group: u32,
    /// Of a device node its number, as `st_rdev` packs it in 32 bits; else 0.
    pub device: u32,
    /// Bytes that are best read or written at a time.
    pub block_size: u32,
}

impl Attributes {
    /// Regular file, directory, and so on.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }
}

/// A file that was found or made.
///
/// Each that is handed out raises the count of lookups of its inode by one ([`FileSystem::forget`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its attributes, the inode's number among them.
    pub attributes: Attributes,
    /// Sets it apart from an earlier file with the same number: the pair never comes back.
    pub generation: u64,
}

/// What a time stamp is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The file system's own clock.
    Now,
    /// What the caller says.
    To(Time),
}

/// What of a file is changed; `None` stays. The file system sets `changed` by its own clock unless it is
/// given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttributes {
    /// Permissions; bits of the type are as they were.
    pub mode: Option<u32>,
    /// Owner.
    pub user: Option<u32>,
    /// Group.
    pub group: Option<u32>,
    /// Bytes: cut off, or lengthened by a hole.
    pub size: Option<u64>,
    /// Last read.
    pub accessed: Option<SetTime>,
    /// Last written.
    pub modified: Option<SetTime>,
    /// Last changed; only by kernels that keep this time themselves.
    pub changed: Option<Time>,
    /// The caller may not keep set-user-ID and set-group-ID bits where the size changes: set-user-ID goes,
    /// set-group-ID where the group may execute, and `security.capability`. A change of owner or group
    /// clears them for whoever it is, but not those of a directory, and does not say so here.
    pub kills_privileges: bool,
}

/// A file, directory, or node that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Make<'a> {
    /// The directory.
    pub parent: u64,
    /// The name in it.
    pub name: &'a [u8],
    /// Permissions and, for nodes, the type, before `mask` is taken off.
    pub mode: u32,
    /// The caller's umask, taken off the mode unless the directory has a default access control list,
    /// which then decides.
    pub mask: u32,
}

/// Bytes that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write<'a> {
    /// The file.
    pub inode: u64,
    /// Bytes from its start.
    pub offset: u64,
    /// At most the session's `write_max`; its first byte lies at a page's start in memory.
    pub data: &'a [u8],
    /// The caller may not keep set-user-ID and set-group-ID bits: see [`SetAttributes`].
    pub kills_privileges: bool,
    /// Pages of a mapping: the caller is the kernel, and need not be the one who wrote.
    pub is_delayed: bool,
}

/// Bytes that are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The file.
    pub inode: u64,
    /// Bytes from its start.
    pub offset: u64,
    /// How many; fewer only at the end of the file, or the kernel takes the rest for zeros.
    pub size: usize,
}

/// Where a file's data or its next hole is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// The first byte of data at or behind the offset; `NXIO` if there is none.
    Data,
    /// The first hole at or behind it, of which there is one at the end of every file; `NXIO` behind
    /// that.
    Hole,
}

/// A piece of one file that becomes a piece of another, or of the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// Where it is read.
    pub from: u64,
    /// Bytes from the start of that.
    pub from_offset: u64,
    /// Where it is written.
    pub to: u64,
    /// Bytes from the start of that.
    pub to_offset: u64,
    /// Bytes.
    pub size: u64,
}

/// A command that no other call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command<'a> {
    /// The file or directory on which it was called.
    pub inode: u64,
    /// Its number, which says by itself how much goes in and out (`_IOC`).
    pub number: u32,
    /// What went in. What an `_IOR` command takes through its pointer does not arrive.
    pub input: &'a [u8],
    /// Bytes that may come out.
    pub output_max: usize,
}

/// How full the file system is, in units of `block_size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes; also the unit of `f_bsize`.
    pub block_size: u32,
    /// Blocks in all.
    pub blocks: u64,
    /// Not in use.
    pub free: u64,
    /// Of these, what a user may still fill.
    pub available: u64,
    /// Inodes in all, or 0 if there is no limit.
    pub files: u64,
    /// Not in use.
    pub files_free: u64,
    /// The longest name, bytes.
    pub name_max: u32,
}

/// A file system in user space.
///
/// Names are one component, without `/` and NUL, and not `.` or `..` except where it is said. An error
/// goes to whoever called as `errno`. Calls without a body here are those without which a file system
/// would lie; the others answer `NOSYS`, which the kernel remembers, and what it makes of that is said at
/// each.
#[allow(clippy::missing_errors_doc, reason = "they are those of the system calls")]
pub trait FileSystem: Send + Sync {
    /// The file `name` in `parent`, `NOENT` if there is none: the kernel remembers either. `.` and `..`
    /// are asked for inodes that the kernel has forgotten, by those who kept a file handle
    /// (`open_by_handle_at`, NFS): `.` is the inode `parent` itself (`STALE` if it is gone), `..` its
    /// directory.
    fn lookup(&self, caller: &Caller, parent: u64, name: &[u8]) -> Result<Entry, Errno>;

    /// The kernel no longer knows of `count` lookups of an inode. One without a name whose count becomes
    /// zero can be reached by nobody any more, and is freed. At the end of a mount the kernel need not
    /// say this of those that it still knows.
    fn forget(&self, inode: u64, count: u64);

    /// What `stat` shows.
    fn attributes(&self, caller: &Caller, inode: u64) -> Result<Attributes, Errno>;

    /// Changes attributes, the size among them, and gives what they are then.
    fn set_attributes(
        &self,
        caller: &Caller,
        inode: u64,
        set: &SetAttributes,
    ) -> Result<Attributes, Errno>;

    /// Where a symbolic link leads, added to `target`, which is empty.
    fn read_link(&self, caller: &Caller, inode: u64, target: &mut Vec<u8>) -> Result<(), Errno>;

    /// Makes a symbolic link.
    fn symbolic_link(
        &self,
        caller: &Caller,
        parent: u64,
        name: &[u8],
        target: &[u8],
    ) -> Result<Entry, Errno>;

    /// Makes a regular file, fifo, socket or device node (`make.mode` says which; `device` as
    /// [`Attributes::device`]); `EXIST` if there is one.
    fn make_node(&self, caller: &Caller, make: &Make<'_>, device: u32) -> Result<Entry, Errno>;

    /// Makes a directory.
    fn make_directory(&self, caller: &Caller, make: &Make<'_>) -> Result<Entry, Errno>;

    /// Makes a regular file that is open from then on; `EXIST` if there is one.
    fn create(&self, caller: &Caller, make: &Make<'_>) -> Result<Entry, Errno>;

    /// Makes a regular file without a name in the file system of `parent` (`O_TMPFILE`), which
    /// [`FileSystem::link`] may give one. Without this `open` fails with `OPNOTSUPP`.
    fn create_unnamed(
        &self,
        _caller: &Caller,
        _parent: u64,
        _mode: u32,
        _mask: u32,
    ) -> Result<Entry, Errno> {
        Err(Errno::NOSYS)
    }

    /// Takes the name of anything but a directory away.
    fn unlink(&self, caller: &Caller, parent: u64, name: &[u8]) -> Result<(), Errno>;

    /// Takes an empty directory away; `NOTEMPTY` otherwise.
    fn remove_directory(&self, caller: &Caller, parent: u64, name: &[u8]) -> Result<(), Errno>;

    /// Gives a file another name, in one step; `flags` may ask that nothing is replaced, that the two are
    /// exchanged, or that a whiteout stays behind (`INVAL` for what it cannot do).
    fn rename(
        &self,
        caller: &Caller,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Errno>;

    /// Gives an inode another name.
    fn link(&self, caller: &Caller, inode: u64, parent: u64, name: &[u8]) -> Result<Entry, Errno>;

    /// Sends a piece of a file by `reply`: out of memory of its own, or by filling the session's buffer.
    fn read(&self, caller: &Caller, read: &Read, reply: DataReply<'_>) -> Result<Sent, Errno>;

    /// Takes a piece of a file in, and says how many bytes of it: fewer only where the next would have
    /// failed.
    fn write(&self, caller: &Caller, write: &Write<'_>) -> Result<usize, Errno>;

    /// How full it is.
    fn space(&self, caller: &Caller, inode: u64) -> Result<Space, Errno>;

    /// Has all of a file on the medium, without times and other attributes that no read needs if
    /// `data_only`. It may answer later, from any thread.
    fn sync_file(&self, caller: &Caller, inode: u64, data_only: bool, reply: Reply);

    /// Has the names in a directory on the medium.
    fn sync_directory(&self, caller: &Caller, inode: u64, data_only: bool, reply: Reply);

    /// Has everything on the medium (`sync`, `syncfs`), which the kernel asks of mounts that stand for a
    /// block device only.
    fn sync_all(&self, reply: Reply);

    /// The end of the mount: the last call. Answered when everything is on the medium; a mount that
    /// stands for a block device is unmounted when the answer is there. Where the kernel does not ask
    /// (plain mounts), the session does, when it finds that it is over.
    fn destroy(&self, reply: Reply);

    /// Adds what lies in a directory behind `cookie` (0: from its start; else the `next` of the last that
    /// was taken) to `sink` until it is full or there is no more. `.` and `..` are added as well. A file
    /// that stays is given exactly once, whatever is made and removed meanwhile.
    fn read_directory(
        &self,
        caller: &Caller,
        inode: u64,
        cookie: u64,
        sink: &mut DirectorySink<'_>,
    ) -> Result<(), Errno>;

    /// An extended attribute's value, added to `value`, which is empty; `NODATA` if there is none.
    /// Without it there are none.
    fn extended_attribute(
        &self,
        _caller: &Caller,
        _inode: u64,
        _name: &[u8],
        _value: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    /// The names of all extended attributes, each followed by NUL, added to `names`, which is empty.
    fn extended_attributes(
        &self,
        _caller: &Caller,
        _inode: u64,
        _names: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    /// Sets one. `system.posix_acl_access` sets the permissions of the mode as well; with
    /// `kills_set_group` the set-group-ID bit goes then.
    fn set_extended_attribute(
        &self,
        _caller: &Caller,
        _inode: u64,
        _name: &[u8],
        _value: &[u8],
        _flags: XattrFlags,
        _kills_set_group: bool,
    ) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    /// Takes one away; `NODATA` if there is none.
    fn remove_extended_attribute(
        &self,
        _caller: &Caller,
        _inode: u64,
        _name: &[u8],
    ) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    /// Allocates, punches or zeroes a range, as `flags` say; `OPNOTSUPP` for what it cannot do.
    fn allocate(
        &self,
        _caller: &Caller,
        _inode: u64,
        _offset: u64,
        _size: u64,
        _flags: FallocateFlags,
    ) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    /// Where data or a hole begins. Without it files have no holes.
    fn seek(&self, _caller: &Caller, _inode: u64, _offset: u64, _seek: Seek) -> Result<u64, Errno> {
        Err(Errno::NOSYS)
    }

    /// Copies, or shares, a piece, and says how many bytes of it. Without it the kernel reads and writes.
    fn copy(&self, _caller: &Caller, _copy: &Copy) -> Result<u64, Errno> {
        Err(Errno::NOSYS)
    }

    /// Carries a command out: what comes out is added to `output`, which is empty, and the value that
    /// `ioctl` returns. `NOTTY` for commands that it does not know.
    fn command(
        &self,
        _caller: &Caller,
        _command: &Command<'_>,
        _output: &mut Vec<u8>,
    ) -> Result<i32, Errno> {
        Err(Errno::NOTTY)
    }
}
