//! Inodes: what `stat` shows of a file, and changing it.

use agewell_store::device::Disk;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::core::Core;
use crate::format::{HAS_ATTRIBUTES, Inode, Kind, Time, key};
use crate::{FsError, attributes, files, tree};

/// Bytes of a sector, in which `stat` counts what a file takes.
const SECTOR_BYTES: u64 = 512;

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const GROUP_EXECUTES: u32 = 0o010;
/// The bits of a mode that can be set.
const PERMISSIONS: u32 = 0o7777;

/// What `stat` shows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub inode: u64,
    /// Type and permissions.
    pub mode: u32,
    /// Names that it has.
    pub links: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// The number of the device, if it is one.
    pub device: u32,
    /// Bytes; of a directory, its entries.
    pub size: u64,
    /// Sectors of 512 bytes that its data takes.
    pub sectors: u64,
    /// When it was last read.
    pub accessed: Time,
    /// When its data was last changed.
    pub modified: Time,
    /// When anything of it was last changed.
    pub changed: Time,
    /// When it was made.
    pub created: Time,
}

impl Attributes {
    /// Its type.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }
}

/// What is to be changed of a file; none: it stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Permissions.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Bytes.
    pub size: Option<u64>,
    /// When it was last read.
    pub accessed: Option<Time>,
    /// When it was last written.
    pub modified: Option<Time>,
    /// When anything of it was last changed; else it is now.
    pub changed: Option<Time>,
    /// Set-user-ID and what is like it goes, as whoever writes may not keep it.
    pub drops_privileges: bool,
}

/// The inode `number`; `ENOENT` if there is none.
pub(crate) fn get<D: Disk>(core: &mut Core<D>, number: u64) -> Result<Inode, FsError> {
    tree::get(&mut core.blocks, key(number, Kind::Inode, 0), Inode::decode)?
        .ok_or(FsError::Errno(Errno::NOENT))?
        .ok_or(FsError::File { inode: number, what: "its inode is none" })
}

/// `number` is as `inode` says from now on.
pub(crate) fn set<D: Disk>(core: &mut Core<D>, number: u64, inode: &Inode) -> Result<(), FsError> {
    tree::set(&mut core.blocks, key(number, Kind::Inode, 0), &inode.encode())
}

/// The inode of a directory; `ENOTDIR` if it is none.
pub(crate) fn directory<D: Disk>(core: &mut Core<D>, number: u64) -> Result<Inode, FsError> {
    let inode = get(core, number)?;
    if inode.is_directory() { Ok(inode) } else { Err(Errno::NOTDIR.into()) }
}

/// The inode of a file with data; `EISDIR` or `EINVAL` if it is none.
pub(crate) fn file<D: Disk>(core: &mut Core<D>, number: u64) -> Result<Inode, FsError> {
    let inode = get(core, number)?;
    match inode.file_type() {
        FileType::RegularFile => Ok(inode),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(Errno::INVAL.into()),
    }
}

/// What `stat` shows of it.
pub(crate) fn attributes_of<D: Disk>(core: &Core<D>, number: u64, inode: &Inode) -> Attributes {
    attributes_in(core.block_bytes(), number, inode)
}

/// The same in a file system whose blocks have `block_bytes` bytes.
pub(crate) fn attributes_in(block_bytes: u64, number: u64, inode: &Inode) -> Attributes {
    let sectors = if inode.is_small() && inode.is_file() {
        inode.size.div_ceil(SECTOR_BYTES)
    } else {
        inode.blocks * (block_bytes / SECTOR_BYTES)
    };
    Attributes {
        inode: number,
        mode: inode.mode,
        links: inode.links,
        uid: inode.uid,
        gid: inode.gid,
        device: inode.device,
        size: inode.size,
        sectors,
        accessed: inode.accessed,
        modified: inode.modified,
        changed: inode.changed,
        created: inode.created,
    }
}

/// Takes from `inode` what lets others act as its owner, as its data or owner changes.
pub(crate) fn drop_privileges<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    inode: &mut Inode,
) -> Result<(), FsError> {
    if inode.is_directory() {
        return Ok(());
    }
    inode.mode &= !SET_USER_ID;
    // Without it the bit once meant that locks are enforced.
    if inode.mode & GROUP_EXECUTES != 0 {
        inode.mode &= !SET_GROUP_ID;
    }
    if inode.flags & HAS_ATTRIBUTES != 0 {
        attributes::take_out(core, number, b"security.capability")?;
    }
    Ok(())
}

/// Changes a file's attributes, but for its size.
pub(crate) fn change<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    changes: &Changes,
    now: Time,
) -> Result<Attributes, FsError> {
    let mut inode = get(core, number)?;
    if changes.uid.is_some() || changes.gid.is_some() || changes.drops_privileges {
        drop_privileges(core, number, &mut inode)?;
    }
    inode.uid = changes.uid.unwrap_or(inode.uid);
    inode.gid = changes.gid.unwrap_or(inode.gid);
    if let Some(mode) = changes.mode {
        inode.mode = inode.mode & !PERMISSIONS | mode & PERMISSIONS;
        if inode.flags & HAS_ATTRIBUTES != 0 {
            attributes::mode_changed(core, number, inode.mode)?;
        }
    }
    inode.accessed = changes.accessed.unwrap_or(inode.accessed);
    inode.modified = changes.modified.unwrap_or(inode.modified);
    inode.changed = changes.changed.unwrap_or(now);
    set(core, number, &inode)?;
    Ok(attributes_of(core, number, &inode))
}

/// Where a symbolic link leads.
pub(crate) fn link_target<D: Disk>(core: &mut Core<D>, number: u64) -> Result<Vec<u8>, FsError> {
    if get(core, number)?.file_type() != FileType::Symlink {
        return Err(Errno::INVAL.into());
    }
    files::content(core, number)
}
