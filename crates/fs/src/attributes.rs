//! Extended attributes, access control lists among them.
//!
//! An attribute is kept under the hash of its name, in as many items as it needs: the first begins with its
//! name, and the others go on with its value.

use agewell_store::device::Disk;
use rustix::io::Errno;

use crate::access_list::{ACCESS_LIST, AccessList, DEFAULT_LIST};
use crate::core::Core;
use crate::format::{HAS_ATTRIBUTES, Kind, Time, key, name_hash, offset_of};
use crate::node::{u32_at, value_bytes_max};
use crate::{FsError, inodes, tree};

/// Bytes of an attribute at most (`XATTR_SIZE_MAX` of Linux).
pub(crate) const VALUE_BYTES_MAX: usize = 65_536;
/// Bytes of its name at most (`XATTR_NAME_MAX`).
const NAME_BYTES_MAX: usize = 255;
/// Bytes of all names at most (`XATTR_LIST_MAX`).
const LIST_BYTES_MAX: usize = 65_536;

/// Bits of an item's offset that number the parts of an attribute.
pub(crate) const PART_BITS: u32 = 16;

/// Before the name in the first part: its length, and that of the value.
const HEADER_BYTES: usize = 5;

/// Whether an attribute must be there, or must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Must {
    pub(crate) be_new: bool,
    pub(crate) be_there: bool,
}

/// The offset of the first part of the attribute `name`, and the value's length, if there is one; else where
/// it would come.
fn find<D: Disk>(
    core: &mut Core<D>,
    inode: u64,
    name: &[u8],
) -> Result<(u64, Option<usize>), FsError> {
    let mut offset = name_hash(core.seed, name, PART_BITS);
    // Those whose hashes are the same follow one another.
    loop {
        let first = key(inode, Kind::Attribute, offset);
        let found = tree::get(&mut core.blocks, first, |part| {
            part_name(part).map(|(found, length)| (found == name).then_some(length))
        })?;
        match found {
            None => return Ok((offset, None)),
            Some(Some(Some(length))) if length > VALUE_BYTES_MAX => return Err(damaged(inode)),
            Some(None) => return Err(damaged(inode)),
            Some(Some(Some(length))) => return Ok((offset, Some(length))),
            Some(Some(None)) => offset = offset.wrapping_add(1 << PART_BITS),
        }
    }
}

fn damaged(inode: u64) -> FsError {
    FsError::File { inode, what: "an extended attribute is none" }
}

/// The name in a first part, and the length of the value.
pub(crate) fn part_name(part: &[u8]) -> Option<(&[u8], usize)> {
    let name = usize::from(*part.first()?);
    let length = u32_at(part.get(..HEADER_BYTES)?, 1) as usize;
    Some((part.get(HEADER_BYTES..HEADER_BYTES + name)?, length))
}

/// The value of the attribute `name`; `ENODATA` if there is none.
pub(crate) fn get<D: Disk>(
    core: &mut Core<D>,
    inode: u64,
    name: &[u8],
) -> Result<Vec<u8>, FsError> {
    if inodes::get(core, inode)?.flags & HAS_ATTRIBUTES == 0 {
        return Err(Errno::NODATA.into());
    }
    let (offset, Some(length)) = find(core, inode, name)? else {
        return Err(Errno::NODATA.into());
    };
    let mut value = Vec::with_capacity(length);
    let (first, last) = (offset, offset | ((1 << PART_BITS) - 1));
    let (first, last) = (key(inode, Kind::Attribute, first), key(inode, Kind::Attribute, last));
    tree::each(&mut core.blocks, first, last, |at, part| {
        let skipped = if at == first { HEADER_BYTES + name.len() } else { 0 };
        value.extend(&part[skipped.min(part.len())..]);
        value.len() < length
    })?;
    if value.len() == length { Ok(value) } else { Err(damaged(inode)) }
}

/// The names of all, each with a zero behind it.
pub(crate) fn list<D: Disk>(core: &mut Core<D>, inode: u64) -> Result<Vec<u8>, FsError> {
    let mut names = Vec::new();
    if inodes::get(core, inode)?.flags & HAS_ATTRIBUTES == 0 {
        return Ok(names);
    }
    let mut is_sound = true;
    let (first, last) = (key(inode, Kind::Attribute, 0), key(inode, Kind::Attribute, u64::MAX));
    tree::each(&mut core.blocks, first, last, |at, part| {
        if offset_of(at) & ((1 << PART_BITS) - 1) == 0 {
            match part_name(part) {
                Some((name, _)) => {
                    names.extend(name);
                    names.push(0);
                }
                None => is_sound = false,
            }
        }
        is_sound
    })?;
    if is_sound { Ok(names) } else { Err(damaged(inode)) }
}

/// Takes the attribute `name` out; false if there is none.
pub(crate) fn take_out<D: Disk>(
    core: &mut Core<D>,
    inode: u64,
    name: &[u8],
) -> Result<bool, FsError> {
    let (offset, Some(_)) = find(core, inode, name)? else { return Ok(false) };
    remove_parts(core, inode, offset)?;
    // Those behind it that would not be found across the gap come into it (Knuth, The Art of Computer
    // Programming 3, 6.4, algorithm R).
    let (mut gap, mut at) = (offset, offset);
    loop {
        at = at.wrapping_add(1 << PART_BITS);
        let seed = core.seed;
        let hash = tree::get(&mut core.blocks, key(inode, Kind::Attribute, at), |part| {
            part_name(part).map(|(name, _)| name_hash(seed, name, PART_BITS))
        })?;
        let Some(hash) = hash else { return Ok(true) };
        let hash = hash.ok_or_else(|| damaged(inode))?;
        if at.wrapping_sub(hash) >= at.wrapping_sub(gap) {
            move_parts(core, inode, at, gap)?;
            gap = at;
        }
    }
}

/// The parts of the attribute at `offset`.
fn parts<D: Disk>(
    core: &mut Core<D>,
    inode: u64,
    offset: u64,
) -> Result<Vec<(u64, Vec<u8>)>, FsError> {
    let mut parts = Vec::new();
    let first = key(inode, Kind::Attribute, offset);
    let last = key(inode, Kind::Attribute, offset | ((1 << PART_BITS) - 1));
    tree::each(&mut core.blocks, first, last, |at, part| {
        parts.push((offset_of(at), part.to_vec()));
        true
    })?;
    Ok(parts)
}

fn remove_parts<D: Disk>(core: &mut Core<D>, inode: u64, offset: u64) -> Result<(), FsError> {
    for (at, _) in parts(core, inode, offset)? {
        tree::remove(&mut core.blocks, key(inode, Kind::Attribute, at))?;
    }
    Ok(())
}

fn move_parts<D: Disk>(core: &mut Core<D>, inode: u64, from: u64, to: u64) -> Result<(), FsError> {
    for (at, part) in parts(core, inode, from)? {
        tree::remove(&mut core.blocks, key(inode, Kind::Attribute, at))?;
        tree::set(&mut core.blocks, key(inode, Kind::Attribute, at - from + to), &part)?;
    }
    Ok(())
}

/// Puts an attribute, without looking at what it means.
pub(crate) fn put<D: Disk>(
    core: &mut Core<D>,
    inode: u64,
    name: &[u8],
    value: &[u8],
) -> Result<(), FsError> {
    let (offset, there) = find(core, inode, name)?;
    if there.is_some() {
        remove_parts(core, inode, offset)?;
    }
    let part_bytes = value_bytes_max(core.blocks.block_bytes());
    let mut part = Vec::with_capacity(part_bytes);
    part.push(name.len() as u8);
    part.extend((value.len() as u32).to_le_bytes());
    part.extend(name);
    let (head, mut rest) = value.split_at(value.len().min(part_bytes - part.len()));
    part.extend(head);
    tree::set(&mut core.blocks, key(inode, Kind::Attribute, offset), &part)?;
    let mut number = 0;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(rest.len().min(part_bytes));
        number += 1;
        tree::set(&mut core.blocks, key(inode, Kind::Attribute, offset + number), head)?;
        rest = tail;
    }
    Ok(())
}

/// Sets the attribute `name`.
pub(crate) fn set<D: Disk>(
    core: &mut Core<D>,
    inode: u64,
    (name, value): (&[u8], &[u8]),
    must: Must,
    now: Time,
) -> Result<(), FsError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(&0) {
        return Err(Errno::RANGE.into());
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(Errno::TOOBIG.into());
    }
    let mut found = inodes::get(core, inode)?;
    let there = find(core, inode, name)?.1;
    if there.is_some() && must.be_new {
        return Err(Errno::EXIST.into());
    }
    if there.is_none() && must.be_there {
        return Err(Errno::NODATA.into());
    }
    if there.is_none() && list(core, inode)?.len() + name.len() + 1 > LIST_BYTES_MAX {
        return Err(Errno::NOSPC.into());
    }
    let mut is_kept = true;
    if name == ACCESS_LIST {
        let list = AccessList::parse(value)?;
        found.mode = found.mode & !0o777 | list.permissions();
        // What the mode says needs no list.
        is_kept = !list.is_minimal();
    } else if name == DEFAULT_LIST {
        AccessList::parse(value)?;
        if !found.is_directory() {
            return Err(Errno::ACCESS.into());
        }
    }
    if is_kept {
        if core.blocks.free_for_data() == 0 && there.is_none_or(|length| length < value.len()) {
            return Err(FsError::NO_ROOM);
        }
        put(core, inode, name, value)?;
        found.flags |= HAS_ATTRIBUTES;
    } else {
        take_out(core, inode, name)?;
    }
    found.changed = now;
    inodes::set(core, inode, &found)
}

/// Takes the attribute `name` out; `ENODATA` if there is none, but for a list, which need not be there.
pub(crate) fn remove<D: Disk>(
    core: &mut Core<D>,
    inode: u64,
    name: &[u8],
    now: Time,
) -> Result<(), FsError> {
    let mut found = inodes::get(core, inode)?;
    if found.flags & HAS_ATTRIBUTES == 0 || !take_out(core, inode, name)? {
        let is_list = name == ACCESS_LIST || name == DEFAULT_LIST;
        return if is_list { Ok(()) } else { Err(Errno::NODATA.into()) };
    }
    if list(core, inode)?.is_empty() {
        found.flags &= !HAS_ATTRIBUTES;
    }
    found.changed = now;
    inodes::set(core, inode, &found)
}

// --- access control lists ---------------------------------------------------------------------------

/// A file's mode was changed: so is its list.
pub(crate) fn mode_changed<D: Disk>(
    core: &mut Core<D>,
    inode: u64,
    mode: u32,
) -> Result<(), FsError> {
    match get(core, inode, ACCESS_LIST) {
        Ok(value) => {
            let mut list = AccessList::parse(&value)?;
            list.set_permissions(mode);
            put(core, inode, ACCESS_LIST, &list.to_bytes())
        }
        Err(FsError::Errno(Errno::NODATA)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The default list of a directory, if it has one.
pub(crate) fn default_list<D: Disk>(
    core: &mut Core<D>,
    directory: u64,
) -> Result<Option<AccessList>, FsError> {
    match get(core, directory, DEFAULT_LIST) {
        Ok(value) => Ok(Some(AccessList::parse(&value)?)),
        Err(FsError::Errno(Errno::NODATA)) => Ok(None),
        Err(error) => Err(error),
    }
}
