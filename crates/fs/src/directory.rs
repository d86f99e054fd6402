//! Entries of directories.
//!
//! An entry has a number, in the order in which entries were made; by it a reader of the directory goes on,
//! whatever is made or removed meanwhile. A second item leads from the hash of its name to its number.

use agewell_store::device::Disk;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::core::Core;
use crate::format::{ENTRIES_END, Entry, Inode, Kind, key, name_hash, number_in, offset_of};
use crate::seeded::{SeededFault, is_seeded};
use crate::{FsError, tree};

/// Bits of a name item's offset that tell names with the same hash apart.
pub(crate) const SAME_BITS: u32 = 8;

/// Numbers of entries begin here: before it come the directory itself and the one above.
pub(crate) const FIRST_ENTRY: u64 = 2;

/// Where an entry is, and what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its number.
    pub(crate) entry: u64,
    /// The offset of the item of its name.
    name_at: u64,
    pub(crate) inode: u64,
    pub(crate) file_type: FileType,
}

fn damaged(directory: u64) -> FsError {
    FsError::File { inode: directory, what: "an entry of the directory is none" }
}

/// The entry `name` of `directory`, if there is one.
pub(crate) fn find<D: Disk>(
    core: &mut Core<D>,
    directory: u64,
    name: &[u8],
) -> Result<Option<Found>, FsError> {
    let hash = name_hash(core.seed, name, SAME_BITS);
    let mut from = hash;
    loop {
        let last = key(directory, Kind::Name, hash | ((1 << SAME_BITS) - 1));
        let first = key(directory, Kind::Name, from);
        let found = tree::first(&mut core.blocks, first, last, |at, value| {
            (offset_of(at), number_in(value))
        })?;
        let Some((name_at, entry)) = found else { return Ok(None) };
        let entry = entry.ok_or_else(|| damaged(directory))?;
        let entry_key = key(directory, Kind::Entry, entry);
        let read = tree::get(&mut core.blocks, entry_key, |value| {
            Entry::view(value).map(|(inode, file_type, found)| {
                (found == name).then_some(Found { entry, name_at, inode, file_type })
            })
        })?;
        match read.flatten().ok_or_else(|| damaged(directory))? {
            Some(found) => return Ok(Some(found)),
            None if name_at == u64::MAX => return Ok(None),
            None => from = name_at + 1,
        }
    }
}

/// Adds an entry, which there must not be yet, to `directory`, whose inode is `of`.
pub(crate) fn add<D: Disk>(
    core: &mut Core<D>,
    directory: u64,
    of: &mut Inode,
    (name, inode, file_type): (&[u8], u64, FileType),
) -> Result<(), FsError> {
    let entry = of.next_entry;
    if of.size >= ENTRIES_END || entry + 1 >= ENTRIES_END {
        return Err(damaged(directory));
    }
    of.next_entry += 1;
    of.size += 1;
    enter_name(core, directory, name, entry)?;
    let value = Entry::encode(inode, file_type, name);
    tree::set(&mut core.blocks, key(directory, Kind::Entry, entry), &value)
}

/// Lets the hash of `name` lead to the entry `entry` of `directory`.
pub(crate) fn enter_name<D: Disk>(
    core: &mut Core<D>,
    directory: u64,
    name: &[u8],
    entry: u64,
) -> Result<(), FsError> {
    let hash = name_hash(core.seed, name, SAME_BITS);
    let last = hash | ((1 << SAME_BITS) - 1);
    let mut free = hash;
    let (first, last_key) = (key(directory, Kind::Name, hash), key(directory, Kind::Name, last));
    tree::each(&mut core.blocks, first, last_key, |at, _| {
        let is_taken = offset_of(at) == free;
        free += u64::from(is_taken && free < last);
        is_taken
    })?;
    let name_key = key(directory, Kind::Name, free);
    if free == last && tree::get(&mut core.blocks, name_key, |_| ())?.is_some() {
        return Err(FsError::NO_ROOM);
    }
    tree::set(&mut core.blocks, name_key, &entry.to_le_bytes())
}

/// Takes an entry out of `directory`, whose inode is `of`.
pub(crate) fn remove<D: Disk>(
    core: &mut Core<D>,
    directory: u64,
    of: &mut Inode,
    found: &Found,
) -> Result<(), FsError> {
    let was_named = is_seeded(SeededFault::NameStays)
        || tree::remove(&mut core.blocks, key(directory, Kind::Name, found.name_at))?;
    let was_there = tree::remove(&mut core.blocks, key(directory, Kind::Entry, found.entry))?;
    if !was_named || !was_there || of.size == 0 {
        return Err(damaged(directory));
    }
    of.size -= 1;
    Ok(())
}

/// Has an entry lead to another inode.
pub(crate) fn redirect<D: Disk>(
    core: &mut Core<D>,
    directory: u64,
    found: &Found,
    (name, inode, file_type): (&[u8], u64, FileType),
) -> Result<(), FsError> {
    let value = Entry::encode(inode, file_type, name);
    tree::set(&mut core.blocks, key(directory, Kind::Entry, found.entry), &value)
}

/// Hands the entries of `directory` from number `from` on to `see`, with their numbers, until it says
/// false.
pub(crate) fn each<D: Disk>(
    core: &mut Core<D>,
    directory: u64,
    from: u64,
    mut see: impl FnMut(u64, u64, FileType, &[u8]) -> bool,
) -> Result<(), FsError> {
    let mut is_sound = true;
    let (first, last) = (key(directory, Kind::Entry, from), key(directory, Kind::Entry, u64::MAX));
    tree::each(&mut core.blocks, first, last, |at, value| {
        let entry = Entry::view(value);
        is_sound = entry.is_some() && offset_of(at) < ENTRIES_END;
        let entry = entry.filter(|_| offset_of(at) < ENTRIES_END);
        entry.is_some_and(|(inode, file_type, name)| see(offset_of(at), inode, file_type, name))
    })?;
    if is_sound { Ok(()) } else { Err(damaged(directory)) }
}

/// `ENAMETOOLONG` or `EINVAL` unless `name` can be an entry's.
pub(crate) fn check_name(name: &[u8]) -> Result<(), FsError> {
    if name.len() > crate::NAME_BYTES_MAX {
        return Err(Errno::NAMETOOLONG.into());
    }
    if crate::format::is_name(name) { Ok(()) } else { Err(Errno::INVAL.into()) }
}
