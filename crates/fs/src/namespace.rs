//! Names: making, finding, linking, removing and renaming files.

use agewell_store::device::Disk;
use rustix::fs::{FileType, RenameFlags};
use rustix::io::Errno;

use crate::access_list::{ACCESS_LIST, DEFAULT_LIST};
use crate::core::Core;
use crate::directory::{FIRST_ENTRY, Found, check_name};
use crate::files::small_bytes_max;
use crate::format::{HAS_ATTRIBUTES, IS_SMALL, Inode, Kind, SystemKind, Time, key, system_key};
use crate::inodes::attributes_of;
use crate::seeded::{SeededFault, is_seeded};
use crate::{Attributes, FsError, ROOT_INODE, attributes, directory, inodes, tree};

const SET_GROUP_ID: u32 = 0o2000;

/// Names of a file at most, and directories in one, but for two; chosen by us, as `xfs` has it: what nobody
/// reaches, and what still is a number in programs that count in 32 bits.
const LINKS_MAX: u32 = i32::MAX as u32;

/// Bytes of a symbolic link's target at most (`PATH_MAX` of Linux, with its zero).
const TARGET_BYTES_MAX: usize = 4095;

/// Who makes something, and when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caller {
    /// The user whose it becomes.
    pub uid: u32,
    /// The group whose it becomes.
    pub gid: u32,
    /// Permissions that it does not get, unless its directory has a default list.
    pub mask: u32,
    /// The time.
    pub now: Time,
}

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct New<'a> {
    /// Type and permissions.
    pub mode: u32,
    /// The number of the device, if it is one.
    pub device: u32,
    /// Where it leads, if it is a symbolic link.
    pub target: &'a [u8],
}

/// What else a rename does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rename {
    /// What has the new name is replaced.
    #[default]
    Replaces,
    /// What has the new name is left, and it is an error.
    Keeps,
    /// Both change places.
    Exchanges,
    /// A whiteout stays (a character device 0, 0); what has the new name is replaced or, if it `keeps` that,
    /// left as above.
    LeavesWhiteout {
        /// Whether it is an error if something has the new name.
        keeps: bool,
    },
}

impl Rename {
    /// What `renameat2` asks for.
    ///
    /// # Errors
    /// `EINVAL` for what there is not.
    pub fn from_flags(flags: RenameFlags) -> Result<Self, Errno> {
        match flags {
            flags if flags.is_empty() => Ok(Self::Replaces),
            RenameFlags::NOREPLACE => Ok(Self::Keeps),
            RenameFlags::EXCHANGE => Ok(Self::Exchanges),
            RenameFlags::WHITEOUT => Ok(Self::LeavesWhiteout { keeps: false }),
            flags if flags == RenameFlags::WHITEOUT | RenameFlags::NOREPLACE => {
                Ok(Self::LeavesWhiteout { keeps: true })
            }
            _ => Err(Errno::INVAL),
        }
    }
}

/// An entry of a directory, as a reader of it sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// Its inode.
    pub inode: u64,
    /// Its type.
    pub file_type: FileType,
    /// Its name.
    pub name: &'a [u8],
    /// Where the next one is read from.
    pub next: u64,
}

/// The file `name` in `parent`; `ENOENT` if there is none.
pub(crate) fn lookup<D: Disk>(
    core: &mut Core<D>,
    parent: u64,
    name: &[u8],
) -> Result<Attributes, FsError> {
    let number = match name {
        b"." => {
            inodes::directory(core, parent)?;
            parent
        }
        b".." => inodes::directory(core, parent)?.parent,
        name if name.len() > crate::NAME_BYTES_MAX => {
            inodes::directory(core, parent)?;
            return Err(Errno::NAMETOOLONG.into());
        }
        name => {
            let Some(found) = directory::find(core, parent, name)? else {
                // What has entries is a directory.
                inodes::directory(core, parent)?;
                return Err(Errno::NOENT.into());
            };
            if core.blocks.store().may_have_arm() {
                core.files_ahead.looked_up(found.inode, parent, found.entry);
            }
            found.inode
        }
    };
    let inode = inodes::get(core, number)?;
    Ok(attributes_of(core, number, &inode))
}

/// Puts a new inode into the tree, without a name.
fn make_inode<D: Disk>(
    core: &mut Core<D>,
    (parent, of): (u64, &Inode),
    new: &New<'_>,
    caller: &Caller,
) -> Result<(u64, Inode), FsError> {
    let file_type = FileType::from_raw_mode(new.mode);
    let is_directory = file_type == FileType::Directory;
    let list = if file_type == FileType::Symlink || of.flags & HAS_ATTRIBUTES == 0 {
        None
    } else {
        attributes::default_list(core, parent)?
    };
    let number = core.take_inode(parent)?;
    let mut mode = new.mode;
    let mut flags = 0;
    if let Some(list) = &list {
        let inherited = list.inherited(mode);
        mode = mode & !0o777 | inherited.permissions();
        if !inherited.is_minimal() {
            attributes::put(core, number, ACCESS_LIST, &inherited.to_bytes())?;
            flags |= HAS_ATTRIBUTES;
        }
        if is_directory {
            attributes::put(core, number, DEFAULT_LIST, &list.to_bytes())?;
            flags |= HAS_ATTRIBUTES;
        }
    } else {
        mode &= !caller.mask;
    }
    let inherits_group = of.mode & SET_GROUP_ID != 0;
    if inherits_group && is_directory {
        mode |= SET_GROUP_ID;
    }
    if matches!(file_type, FileType::RegularFile | FileType::Symlink) {
        flags |= IS_SMALL;
    }
    let now = caller.now;
    let is_device = matches!(file_type, FileType::CharacterDevice | FileType::BlockDevice);
    let mut inode = Inode {
        mode,
        links: if is_directory { 2 } else { 1 },
        uid: caller.uid,
        gid: if inherits_group { of.gid } else { caller.gid },
        device: if is_device { new.device } else { 0 },
        flags,
        size: 0,
        blocks: 0,
        accessed: now,
        modified: now,
        changed: now,
        created: now,
        parent,
        next_entry: if is_directory { FIRST_ENTRY } else { 0 },
    };
    if file_type == FileType::Symlink {
        if new.target.is_empty() {
            return Err(Errno::NOENT.into());
        }
        if new.target.len() > TARGET_BYTES_MAX {
            return Err(Errno::NAMETOOLONG.into());
        }
        inode.size = new.target.len() as u64;
        let parts = new.target.chunks(small_bytes_max(core));
        for (at, part) in parts.enumerate() {
            tree::set(&mut core.blocks, key(number, Kind::Content, at as u64), part)?;
        }
    }
    inodes::set(core, number, &inode)?;
    Ok((number, inode))
}

/// `ENOSPC` unless there is room for something new.
fn check_room<D: Disk>(core: &Core<D>) -> Result<(), FsError> {
    if core.blocks.free_for_data() == 0 { Err(FsError::NO_ROOM) } else { Ok(()) }
}

/// Makes a file `name` in `parent`.
pub(crate) fn make<D: Disk>(
    core: &mut Core<D>,
    parent: u64,
    name: &[u8],
    new: &New<'_>,
    caller: &Caller,
) -> Result<Attributes, FsError> {
    check_name(name)?;
    let mut of = live_directory(core, parent)?;
    if directory::find(core, parent, name)?.is_some() {
        return Err(Errno::EXIST.into());
    }
    let is_directory = FileType::from_raw_mode(new.mode) == FileType::Directory;
    if is_directory && of.links >= LINKS_MAX {
        return Err(Errno::MLINK.into());
    }
    check_room(core)?;
    let (number, inode) = make_inode(core, (parent, &of), new, caller)?;
    directory::add(core, parent, &mut of, (name, number, inode.file_type()))?;
    of.links += u32::from(is_directory);
    touch(core, parent, &mut of, caller.now)?;
    Ok(attributes_of(core, number, &inode))
}

/// A directory that has a name; `ENOENT` if it has none any more.
fn live_directory<D: Disk>(core: &mut Core<D>, number: u64) -> Result<Inode, FsError> {
    let of = inodes::directory(core, number)?;
    if of.links == 0 { Err(Errno::NOENT.into()) } else { Ok(of) }
}

/// The entries of a directory have changed.
fn touch<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    of: &mut Inode,
    now: Time,
) -> Result<(), FsError> {
    (of.modified, of.changed) = (now, now);
    inodes::set(core, number, of)
}

/// Makes a file without a name.
pub(crate) fn make_unnamed<D: Disk>(
    core: &mut Core<D>,
    parent: u64,
    mode: u32,
    caller: &Caller,
) -> Result<Attributes, FsError> {
    let of = inodes::directory(core, parent)?;
    check_room(core)?;
    let mode = FileType::RegularFile.as_raw_mode() | mode & 0o7777;
    let new = New { mode, device: 0, target: b"" };
    let (number, mut inode) = make_inode(core, (parent, &of), &new, caller)?;
    inode.links = 0;
    inodes::set(core, number, &inode)?;
    orphan(core, number)?;
    Ok(attributes_of(core, number, &inode))
}

/// `number` has no name any more.
fn orphan<D: Disk>(core: &mut Core<D>, number: u64) -> Result<(), FsError> {
    tree::set(&mut core.blocks, system_key(SystemKind::Orphan, number), &[])
}

/// Gives the file `number` another name.
pub(crate) fn link<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    parent: u64,
    name: &[u8],
    now: Time,
) -> Result<Attributes, FsError> {
    check_name(name)?;
    let mut inode = inodes::get(core, number)?;
    if inode.is_directory() {
        return Err(Errno::PERM.into());
    }
    let mut of = live_directory(core, parent)?;
    if directory::find(core, parent, name)?.is_some() {
        return Err(Errno::EXIST.into());
    }
    if inode.links >= LINKS_MAX {
        return Err(Errno::MLINK.into());
    }
    check_room(core)?;
    if inode.links == 0 {
        // Only what somebody has open still may get one.
        let orphan = system_key(SystemKind::Orphan, number);
        if core.left.contains(&number) || !tree::remove(&mut core.blocks, orphan)? {
            return Err(Errno::NOENT.into());
        }
    }
    inode.links += 1;
    inode.changed = now;
    inodes::set(core, number, &inode)?;
    directory::add(core, parent, &mut of, (name, number, inode.file_type()))?;
    touch(core, parent, &mut of, now)?;
    Ok(attributes_of(core, number, &inode))
}

/// Takes one of a file's names from it; whether it was the last.
fn drop_link<D: Disk>(core: &mut Core<D>, number: u64, now: Time) -> Result<bool, FsError> {
    let mut inode = inodes::get(core, number)?;
    if inode.links == 0 {
        return Err(FsError::File { inode: number, what: "it has more names than it counts" });
    }
    // A directory has no other names than this one and its own.
    inode.links = if inode.is_directory() { 0 } else { inode.links - 1 };
    inode.changed = now;
    inodes::set(core, number, &inode)?;
    if inode.links == 0 && !is_seeded(SeededFault::OrphanLeaked) {
        orphan(core, number)?;
    }
    Ok(inode.links == 0)
}

/// Takes the name of anything but a directory away; the inode, if that was its last.
pub(crate) fn unlink<D: Disk>(
    core: &mut Core<D>,
    parent: u64,
    name: &[u8],
    now: Time,
) -> Result<Option<u64>, FsError> {
    let (mut of, found) = entry(core, parent, name)?;
    if found.file_type == FileType::Directory {
        return Err(Errno::ISDIR.into());
    }
    directory::remove(core, parent, &mut of, &found)?;
    touch(core, parent, &mut of, now)?;
    let is_last = drop_link(core, found.inode, now)?;
    Ok(is_last.then_some(found.inode))
}

/// The entry `name` of `parent`, and the inode of `parent`; `ENOENT` if there is none.
fn entry<D: Disk>(core: &mut Core<D>, parent: u64, name: &[u8]) -> Result<(Inode, Found), FsError> {
    let of = inodes::directory(core, parent)?;
    if name.len() > crate::NAME_BYTES_MAX {
        return Err(Errno::NAMETOOLONG.into());
    }
    let found = directory::find(core, parent, name)?.ok_or(FsError::Errno(Errno::NOENT))?;
    Ok((of, found))
}

/// Takes an empty directory away; its inode.
pub(crate) fn remove_directory<D: Disk>(
    core: &mut Core<D>,
    parent: u64,
    name: &[u8],
    now: Time,
) -> Result<u64, FsError> {
    let (mut of, found) = entry(core, parent, name)?;
    if found.file_type != FileType::Directory {
        return Err(Errno::NOTDIR.into());
    }
    if inodes::get(core, found.inode)?.size > 0 {
        return Err(Errno::NOTEMPTY.into());
    }
    directory::remove(core, parent, &mut of, &found)?;
    of.links = of.links.saturating_sub(1);
    touch(core, parent, &mut of, now)?;
    drop_link(core, found.inode, now)?;
    Ok(found.inode)
}

/// Whether `number` is `directory` or lies above it.
fn is_above<D: Disk>(core: &mut Core<D>, number: u64, mut directory: u64) -> Result<bool, FsError> {
    // The directories of a damaged file system may lie in one another: then one is met again that was met
    // twice as long ago at most (Brent 1980, An improved Monte Carlo factorization algorithm, 2).
    let (mut met, mut steps, mut most) = (directory, 0_u64, 1);
    while directory != number {
        if directory == ROOT_INODE {
            return Ok(false);
        }
        directory = inodes::directory(core, directory)?.parent;
        if directory == met && directory != ROOT_INODE {
            return Err(FsError::File { inode: met, what: "the directory lies within itself" });
        }
        steps += 1;
        if steps == most {
            (met, steps, most) = (directory, 0, 2 * most);
        }
    }
    Ok(true)
}

/// Moves a directory: who it lies in, and how many names those have.
fn moved<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    (from, to): (u64, u64),
    now: Time,
) -> Result<(), FsError> {
    let mut inode = inodes::get(core, number)?;
    inode.changed = now;
    if inode.is_directory() {
        inode.parent = to;
    }
    inodes::set(core, number, &inode)?;
    if inode.is_directory() && from != to {
        let by = i32::from(!is_seeded(SeededFault::MovedDirectoryNotCounted));
        for (directory, by) in [(from, -1), (to, by)] {
            let mut of = inodes::get(core, directory)?;
            of.links = of.links.saturating_add_signed(by);
            inodes::set(core, directory, &of)?;
        }
    }
    Ok(())
}

/// Gives the file `from` the name `to`, each a name in a directory; the inode that is nowhere any more, if
/// there is one.
pub(crate) fn rename<D: Disk>(
    core: &mut Core<D>,
    (from, from_name): (u64, &[u8]),
    (to, to_name): (u64, &[u8]),
    how: Rename,
    caller: &Caller,
) -> Result<Option<u64>, FsError> {
    let now = caller.now;
    check_name(to_name)?;
    let (_, source) = entry(core, from, from_name)?;
    live_directory(core, to)?;
    let target = directory::find(core, to, to_name)?;
    let is_directory = source.file_type == FileType::Directory;
    if is_directory && is_above(core, source.inode, to)? {
        return Err(Errno::INVAL.into());
    }
    if how == Rename::Exchanges {
        let target = target.ok_or(FsError::Errno(Errno::NOENT))?;
        exchange(core, (from, from_name, &source), (to, to_name, &target), now)?;
        return Ok(None);
    }
    if target.is_some() && matches!(how, Rename::Keeps | Rename::LeavesWhiteout { keeps: true }) {
        return Err(Errno::EXIST.into());
    }
    let gone = match target {
        Some(target) if target.inode == source.inode => return Ok(None),
        Some(target) => {
            let replaces = target.file_type == FileType::Directory;
            if replaces && !is_directory {
                return Err(Errno::ISDIR.into());
            }
            if is_directory && !replaces {
                return Err(Errno::NOTDIR.into());
            }
            if replaces && inodes::get(core, target.inode)?.size > 0 {
                return Err(Errno::NOTEMPTY.into());
            }
            directory::redirect(core, to, &target, (to_name, source.inode, source.file_type))?;
            if replaces {
                let mut of = inodes::get(core, to)?;
                of.links = of.links.saturating_sub(1);
                inodes::set(core, to, &of)?;
            }
            if is_seeded(SeededFault::ReplacedKeepsLink) {
                None
            } else {
                drop_link(core, target.inode, now)?.then_some(target.inode)
            }
        }
        None => {
            let mut of = inodes::get(core, to)?;
            if core.blocks.free_for_changes() == 0 && to_name.len() > from_name.len() {
                return Err(FsError::NO_ROOM);
            }
            if is_directory && from != to && of.links >= LINKS_MAX {
                return Err(Errno::MLINK.into());
            }
            directory::add(core, to, &mut of, (to_name, source.inode, source.file_type))?;
            inodes::set(core, to, &of)?;
            None
        }
    };
    if matches!(how, Rename::LeavesWhiteout { .. }) {
        check_room(core)?;
        let of = inodes::get(core, from)?;
        let mode = FileType::CharacterDevice.as_raw_mode();
        let new = New { mode, device: 0, target: b"" };
        let (whiteout, _) = make_inode(core, (from, &of), &new, caller)?;
        let leads_to = (from_name, whiteout, FileType::CharacterDevice);
        directory::redirect(core, from, &source, leads_to)?;
    } else {
        let mut of = inodes::get(core, from)?;
        directory::remove(core, from, &mut of, &source)?;
        inodes::set(core, from, &of)?;
    }
    moved(core, source.inode, (from, to), now)?;
    for directory in [from, to] {
        let mut of = inodes::get(core, directory)?;
        touch(core, directory, &mut of, now)?;
    }
    Ok(gone)
}

/// Lets two entries change places.
fn exchange<D: Disk>(
    core: &mut Core<D>,
    (from, from_name, source): (u64, &[u8], &Found),
    (to, to_name, target): (u64, &[u8], &Found),
    now: Time,
) -> Result<(), FsError> {
    if target.file_type == FileType::Directory && is_above(core, target.inode, from)? {
        return Err(Errno::INVAL.into());
    }
    directory::redirect(core, from, source, (from_name, target.inode, target.file_type))?;
    directory::redirect(core, to, target, (to_name, source.inode, source.file_type))?;
    moved(core, source.inode, (from, to), now)?;
    moved(core, target.inode, (to, from), now)?;
    for directory in [from, to] {
        let mut of = inodes::get(core, directory)?;
        touch(core, directory, &mut of, now)?;
    }
    Ok(())
}

/// Hands what is in a directory to `see` from `cookie` on, until it says false.
pub(crate) fn read_directory<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    cookie: u64,
    mut see: impl FnMut(&DirectoryEntry<'_>) -> bool,
) -> Result<(), FsError> {
    let of = inodes::directory(core, number)?;
    let own = [(b".".as_slice(), number), (b"..".as_slice(), of.parent)];
    for (at, (name, inode)) in own.into_iter().enumerate().skip(cookie.min(2) as usize) {
        let file_type = FileType::Directory;
        if !see(&DirectoryEntry { inode, file_type, name, next: at as u64 + 1 }) {
            return Ok(());
        }
    }
    directory::each(core, number, cookie.max(FIRST_ENTRY), |entry, inode, file_type, name| {
        see(&DirectoryEntry { inode, file_type, name, next: entry + 1 })
    })
}
