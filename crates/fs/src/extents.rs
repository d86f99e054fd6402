//! Which blocks a file has: extents by the block of the file at which they begin.

use agewell_store::device::Disk;

use crate::core::Core;
use crate::format::{Extent, ExtentState, Kind, key, offset_of};
use crate::seeded::{SeededFault, is_seeded};
use crate::{FsError, sharing, tree};

fn damaged(inode: u64) -> FsError {
    FsError::File { inode, what: "an extent of it is none" }
}

/// The extent of `inode` that has the block `at`, or begins before it.
fn before<D: Disk>(core: &mut Core<D>, inode: u64, at: u64) -> Result<Option<Extent>, FsError> {
    let (first, last) = (key(inode, Kind::Extent, 0), key(inode, Kind::Extent, at));
    let found = tree::last(&mut core.blocks, first, last, |key, value| {
        Extent::decode(offset_of(key), value)
    })?;
    found.map(|extent| extent.ok_or_else(|| damaged(inode))).transpose()
}

/// The extents of `inode` between the blocks `from` and `to` of it, cut off there; at most `most`.
pub(crate) fn between<D: Disk>(
    core: &mut Core<D>,
    inode: u64,
    (from, to): (u64, u64),
    most: usize,
) -> Result<Vec<Extent>, FsError> {
    let mut found = Vec::new();
    if from >= to || most == 0 {
        return Ok(found);
    }
    let first = before(core, inode, from)?.filter(|extent| extent.end() > from);
    found.extend(first.map(|extent| extent.part(from, extent.end().min(to))));
    let mut is_sound = true;
    let (first, last) = (key(inode, Kind::Extent, from + 1), key(inode, Kind::Extent, to - 1));
    if found.last().is_some_and(|extent| extent.end() >= to) || first > last {
        return Ok(found);
    }
    tree::each(&mut core.blocks, first, last, |key, value| {
        if found.len() == most {
            return false;
        }
        let extent = Extent::decode(offset_of(key), value);
        is_sound = extent
            .is_some_and(|extent| found.last().is_none_or(|last: &Extent| last.end() <= extent.at));
        if let Some(extent) = extent {
            found.push(extent.part(extent.at, extent.end().min(to)));
        }
        is_sound
    })?;
    if is_sound { Ok(found) } else { Err(damaged(inode)) }
}

/// The last block of `inode` that it has, with its extent.
pub(crate) fn last<D: Disk>(core: &mut Core<D>, inode: u64) -> Result<Option<Extent>, FsError> {
    before(core, inode, u64::MAX)
}

fn set<D: Disk>(core: &mut Core<D>, inode: u64, extent: &Extent) -> Result<(), FsError> {
    tree::set(&mut core.blocks, key(inode, Kind::Extent, extent.at), &extent.encode())
}

/// Puts an extent where `inode` has no blocks, with what continues it or what it continues.
pub(crate) fn put<D: Disk>(core: &mut Core<D>, inode: u64, extent: &Extent) -> Result<(), FsError> {
    let mut extent = *extent;
    let next_key = key(inode, Kind::Extent, extent.end());
    let next = tree::get(&mut core.blocks, next_key, |value| Extent::decode(extent.end(), value))?;
    if let Some(next) = next.flatten().filter(|next| extent.is_followed_by(next))
        && let Some(count) = extent.count.checked_add(next.count)
    {
        tree::remove(&mut core.blocks, next_key)?;
        extent.count = count;
    }
    let before = match extent.at.checked_sub(1) {
        Some(at) => before(core, inode, at)?,
        None => None,
    };
    if let Some(mut before) = before.filter(|before| before.is_followed_by(&extent))
        && let Some(count) = before.count.checked_add(extent.count)
    {
        before.count = count;
        return set(core, inode, &before);
    }
    set(core, inode, &extent)
}

/// Takes what `inode` has between the blocks `from` and `to` of it from it, at most `most` extents; what
/// becomes of these is the caller's.
pub(crate) fn take_out<D: Disk>(
    core: &mut Core<D>,
    inode: u64,
    (from, to): (u64, u64),
    most: usize,
) -> Result<Vec<Extent>, FsError> {
    let found = between(core, inode, (from, to), most)?;
    for part in &found {
        let whole = before(core, inode, part.at)?.ok_or_else(|| damaged(inode))?;
        if whole.at < part.at {
            set(core, inode, &whole.part(whole.at, part.at))?;
        } else {
            tree::remove(&mut core.blocks, key(inode, Kind::Extent, whole.at))?;
        }
        if part.end() < whole.end() {
            set(core, inode, &whole.part(part.end(), whole.end()))?;
        }
    }
    Ok(found)
}

/// Gives the blocks of an extent that no file has any more back.
pub(crate) fn free<D: Disk>(core: &mut Core<D>, extent: &Extent) -> Result<(), FsError> {
    let state = match extent.state {
        ExtentState::Shared if is_seeded(SeededFault::SharedFreedWithTwoOwners) => ExtentState::Own,
        state => state,
    };
    match state {
        ExtentState::Own => {
            let numbers = extent.number..extent.number + extent.count;
            if let Some(number) = numbers.clone().find(|number| !core.blocks.is_used(*number)) {
                return Err(FsError::Structure { number, what: "a file has it that is free" });
            }
            numbers.for_each(|number| core.blocks.give(number));
            Ok(())
        }
        ExtentState::Shared => sharing::release(core, extent.number, extent.count),
        ExtentState::Promised => {
            let reserved = core.blocks.reserved().saturating_sub(u64::from(extent.count));
            core.set_reserved(reserved)
        }
    }
}
