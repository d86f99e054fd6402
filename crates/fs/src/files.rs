//! The data of files: writing, cutting, allocating and copying.
//!
//! A small file is an item of the tree; others have blocks. A block that a file has for itself is written
//! over where it is (the store sees to it that this is whole); one that others have too is replaced.

mod reading;

pub(crate) use reading::read;

use std::borrow::Cow;

use agewell_store::device::Disk;
use rustix::io::Errno;

use crate::blocks::Whose;
use crate::core::Core;
use crate::format::{
    Extent, ExtentState, FILE_BYTES_MAX, IS_SMALL, Inode, Kind, SystemKind, Time, key, system_key,
};
use crate::node::value_bytes_max;
use crate::seeded::{SeededFault, is_seeded};
use crate::{FsError, extents, inodes, sharing, tree};

/// Extents that one operation changes at most; chosen by us: with a node for each they are less than a
/// transaction.
const EXTENTS_MAX: usize = 8;

/// Bytes of a file that is an item.
pub(crate) fn small_bytes_max<D: Disk>(core: &Core<D>) -> usize {
    value_bytes_max(core.blocks.block_bytes())
}

/// All that is in the items of a small file, or of a link.
pub(crate) fn content<D: Disk>(core: &mut Core<D>, number: u64) -> Result<Vec<u8>, FsError> {
    let mut content = Vec::new();
    let (first, last) = (key(number, Kind::Content, 0), key(number, Kind::Content, u64::MAX));
    tree::each(&mut core.blocks, first, last, |_, part| {
        content.extend(part);
        true
    })?;
    Ok(content)
}

/// What was in a block before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The same block.
    Same,
    /// Nothing: zeros.
    Zeros,
    /// What is in a block that others have.
    Other(u32),
}

/// A block that is to be written.
#[derive(Debug, Clone, Copy)]
struct Place {
    number: u32,
    before: Before,
}

/// Sees to it that `inode` has the blocks from `from` to `to` for itself; where they are.
fn own_blocks<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    inode: &mut Inode,
    (from, to): (u64, u64),
    whose: Whose,
) -> Result<Vec<Place>, FsError> {
    let mut places = Vec::with_capacity((to - from) as usize);
    let mut at = from;
    let found = extents::between(core, number, (from, to), usize::MAX)?;
    for extent in found {
        fill_hole(core, number, inode, (at, extent.at), whose, &mut places)?;
        at = extent.end();
        let numbers = extent.number..extent.number + extent.count;
        match extent.state {
            ExtentState::Own => {
                let place = |number| Place { number, before: Before::Same };
                places.extend(numbers.map(place));
            }
            ExtentState::Promised => {
                extents::take_out(core, number, (extent.at, extent.end()), usize::MAX)?;
                let reserved = core.blocks.reserved().saturating_sub(u64::from(extent.count));
                if !is_seeded(SeededFault::PromiseKept) {
                    core.set_reserved(reserved)?;
                }
                let range = (extent.at, extent.end());
                take_blocks(core, number, range, Whose::Promised, |number, _| {
                    places.push(Place { number, before: Before::Zeros });
                })?;
            }
            ExtentState::Shared => {
                extents::take_out(core, number, (extent.at, extent.end()), usize::MAX)?;
                for piece in sharing::pieces(core, extent.number, extent.count)? {
                    let at = extent.at + u64::from(piece.number - extent.number);
                    let range = (at, at + u64::from(piece.count));
                    if piece.sharers == 1 || is_seeded(SeededFault::SharedWrittenInPlace) {
                        // Nobody else has these any more.
                        let own = Extent { state: ExtentState::Own, ..extent.part(at, range.1) };
                        extents::put(core, number, &own)?;
                        let numbers = own.number..own.number + own.count;
                        let place = |number| Place { number, before: Before::Same };
                        places.extend(numbers.map(place));
                        continue;
                    }
                    take_blocks(core, number, range, whose, |number, place| {
                        let other = piece.number + (place - at) as u32;
                        let before = if is_seeded(SeededFault::BeforeIsZeros) {
                            Before::Zeros
                        } else {
                            Before::Other(other)
                        };
                        places.push(Place { number, before });
                    })?;
                    sharing::release(core, piece.number, piece.count)?;
                }
            }
        }
    }
    fill_hole(core, number, inode, (at, to), whose, &mut places)?;
    Ok(places)
}

/// Gives a file blocks where it has none.
fn fill_hole<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    inode: &mut Inode,
    (from, to): (u64, u64),
    whose: Whose,
    places: &mut Vec<Place>,
) -> Result<(), FsError> {
    inode.blocks += to - from;
    take_blocks(core, number, (from, to), whose, |number, _| {
        places.push(Place { number, before: Before::Zeros });
    })
}

/// Takes blocks for the range of a file, in which it has none; `taken` is told each, and where in the file
/// it is.
fn take_blocks<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    (mut from, to): (u64, u64),
    whose: Whose,
    mut taken: impl FnMut(u32, u64),
) -> Result<(), FsError> {
    while from < to {
        let most = (to - from).min(u64::from(u32::MAX)) as u32;
        let (first, count) = core.blocks.take_for_data(most, whose)?;
        (0..count).for_each(|at| taken(first + at, from + u64::from(at)));
        let extent = Extent { at: from, number: first, count, state: ExtentState::Own };
        extents::put(core, number, &extent)?;
        from = extent.end();
    }
    Ok(())
}

/// Takes the content of a small file out of its item, as it is to have blocks.
fn unpack<D: Disk>(core: &mut Core<D>, number: u64, inode: &mut Inode) -> Result<Vec<u8>, FsError> {
    let content = content(core, number)?;
    tree::remove(&mut core.blocks, key(number, Kind::Content, 0))?;
    inode.flags &= !IS_SMALL;
    Ok(content)
}

/// Bytes that are to be written from a byte of a file on.
type Bytes<'a> = (u64, &'a [u8]);

/// Bytes that are to be written, and where the blocks are that they lie in.
#[derive(Debug)]
struct Piece<'a> {
    /// The first byte of the file.
    offset: u64,
    data: Cow<'a, [u8]>,
    places: Vec<Place>,
}

/// Writes `pieces`, no two of which have a block in common. What the file is must have been said before.
fn put<D: Disk>(core: &mut Core<D>, pieces: &[Piece<'_>]) -> Result<(), FsError> {
    let block_bytes = core.blocks.block_bytes();
    // What is read comes first: it may fail.
    let mut read = Vec::new();
    for Piece { offset, data, places } in pieces {
        let end = offset + data.len() as u64;
        for (at, place) in places.iter().enumerate() {
            let block = offset / block_bytes as u64 + at as u64;
            let (from, to) = (block * block_bytes as u64, (block + 1) * block_bytes as u64);
            let is_whole = *offset <= from && to <= end;
            let number = match place.before {
                Before::Same => place.number,
                Before::Other(number) => number,
                Before::Zeros => continue,
            };
            let waits = place.before == Before::Same && core.blocks.has_data(number);
            if !is_whole && !waits {
                let mut before = vec![0; block_bytes];
                core.blocks.read_data(number, number + 1, &mut before)?;
                read.push((place.number, before));
            }
        }
    }
    core.require(pieces.iter().map(|piece| piece.places.len()).sum())?;
    let mut read = read.into_iter().peekable();
    for Piece { offset, data, places } in pieces {
        let mut data = &**data;
        let mut within = (offset % block_bytes as u64) as usize;
        for place in places {
            let (now, rest) = data.split_at(data.len().min(block_bytes - within));
            let before = read.next_if(|(number, _)| *number == place.number);
            core.blocks.put_data(place.number, now.len() < block_bytes, |block| {
                if let Some((_, before)) = before {
                    block.copy_from_slice(&before);
                } else if place.before == Before::Zeros && now.len() < block.len() {
                    block.fill(0);
                }
                block[within..within + now.len()].copy_from_slice(now);
            });
            (data, within) = (rest, 0);
        }
    }
    Ok(())
}

/// Writes `data` into a file from `offset` on; with the rights that whoever writes does not keep.
pub(crate) fn write<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    (offset, data): Bytes<'_>,
    drops_privileges: bool,
    now: Time,
) -> Result<(), FsError> {
    let mut inode = inodes::file(core, number)?;
    if data.is_empty() {
        return Ok(());
    }
    let end = offset.checked_add(data.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
    let end = end.ok_or(FsError::Errno(Errno::FBIG))?;
    if drops_privileges {
        inodes::drop_privileges(core, number, &mut inode)?;
    }
    (inode.modified, inode.changed) = (now, now);
    let grows = end > inode.size;
    let size = inode.size.max(end);
    if inode.is_small() && size <= small_bytes_max(core) as u64 {
        if grows && core.blocks.free_for_data() == 0 {
            return Err(FsError::NO_ROOM);
        }
        let mut content = content(core, number)?;
        content.resize(content.len().max(end as usize), 0);
        content[offset as usize..end as usize].copy_from_slice(data);
        tree::set(&mut core.blocks, key(number, Kind::Content, 0), &content)?;
        inode.size = size;
        return inodes::set(core, number, &inode);
    }
    let block_bytes = core.block_bytes();
    let blocks = (offset / block_bytes, end.div_ceil(block_bytes));
    let mut old = if inode.is_small() { unpack(core, number, &mut inode)? } else { Vec::new() };
    let mut pieces = Vec::new();
    if !old.is_empty() && blocks.0 > 0 {
        let places = own_blocks(core, number, &mut inode, (0, 1), Whose::Free)?;
        let data = Cow::Owned(std::mem::take(&mut old));
        pieces.push(Piece { offset: 0, data, places });
    } else if !old.is_empty() {
        // The first block has both.
        old.resize(old.len().max(offset as usize), 0);
        let kept = old.get(end as usize..).unwrap_or_default().to_vec();
        old.truncate(offset as usize);
        old.extend(data);
        old.extend(kept);
    }
    let places = own_blocks(core, number, &mut inode, blocks, Whose::Free)?;
    pieces.push(if old.is_empty() {
        Piece { offset, data: data.into(), places }
    } else {
        Piece { offset: 0, data: old.into(), places }
    });
    inode.size = size;
    inodes::set(core, number, &inode)?;
    core.blocks.observer.wrote(number, blocks);
    put(core, &pieces)
}

/// Zeros for a block of a file from one byte of the file to another, which are within the block; none if
/// there are zeros.
fn zeros_within<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    inode: &mut Inode,
    (from, to): (u64, u64),
) -> Result<Option<Piece<'static>>, FsError> {
    let block = from / core.block_bytes();
    let found = extents::between(core, number, (block, block + 1), 1)?;
    if from == to || found.iter().all(|extent| extent.state == ExtentState::Promised) {
        return Ok(None);
    }
    let places = own_blocks(core, number, inode, (block, block + 1), Whose::Kept)?;
    Ok(Some(Piece { offset: from, data: vec![0; (to - from) as usize].into(), places }))
}

/// Blocks that an operation frees at most.
fn step_blocks<D: Disk>(core: &Core<D>) -> u64 {
    u64::from(core.blocks.store().transaction_frees_max() / 2).max(1)
}

/// Gives a file another size; whether blocks beyond it are left, which [`shrink`] frees.
pub(crate) fn set_size<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    size: u64,
    drops_privileges: bool,
    now: Time,
) -> Result<bool, FsError> {
    let mut inode = inodes::file(core, number)?;
    if size > FILE_BYTES_MAX {
        return Err(Errno::FBIG.into());
    }
    if drops_privileges {
        inodes::drop_privileges(core, number, &mut inode)?;
    }
    (inode.modified, inode.changed) = (now, now);
    let block_bytes = core.block_bytes();
    let mut pieces = Vec::new();
    let mut is_left = false;
    if inode.is_small() {
        let mut content = content(core, number)?;
        if size > small_bytes_max(core) as u64 {
            unpack(core, number, &mut inode)?;
            if !content.is_empty() {
                let places = own_blocks(core, number, &mut inode, (0, 1), Whose::Free)?;
                pieces.push(Piece { offset: 0, data: content.into(), places });
            }
        } else if (size as usize) < content.len() {
            content.truncate(size as usize);
            tree::set(&mut core.blocks, key(number, Kind::Content, 0), &content)?;
        }
    } else {
        let leaves_old = is_seeded(SeededFault::OldBytesAfterTruncation);
        if size < inode.size && !size.is_multiple_of(block_bytes) && !leaves_old {
            let end = size.next_multiple_of(block_bytes);
            pieces.extend(zeros_within(core, number, &mut inode, (size, end))?);
        }
        let last = extents::last(core, number)?;
        is_left = last.is_some_and(|extent| extent.end() > size.div_ceil(block_bytes));
        if is_left && !is_seeded(SeededFault::ShrinkingNotListed) {
            let item = system_key(SystemKind::Shrinking, number);
            tree::set(&mut core.blocks, item, &[])?;
        } else if size == 0 && !is_left {
            inode.flags |= IS_SMALL;
        }
    }
    inode.size = size;
    inodes::set(core, number, &inode)?;
    put(core, &pieces)?;
    Ok(is_left)
}

/// Frees some of the blocks beyond the end of a file; whether more are left.
pub(crate) fn shrink<D: Disk>(core: &mut Core<D>, number: u64) -> Result<bool, FsError> {
    let mut inode = inodes::file(core, number)?;
    let kept = inode.size.div_ceil(core.block_bytes());
    let is_left = free_last(core, number, &mut inode, kept)?;
    if !is_left {
        tree::remove(&mut core.blocks, system_key(SystemKind::Shrinking, number))?;
        if inode.size == 0 {
            inode.flags |= IS_SMALL;
        }
    }
    inodes::set(core, number, &inode)?;
    Ok(is_left)
}

/// Frees some of the blocks of a file from the block `kept` of it on, the last first; whether more are
/// left.
pub(crate) fn free_last<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    inode: &mut Inode,
    kept: u64,
) -> Result<bool, FsError> {
    let mut blocks = step_blocks(core);
    for _ in 0..EXTENTS_MAX {
        let last = extents::last(core, number)?.filter(|extent| extent.end() > kept);
        let Some(last) = last else { return Ok(false) };
        let from = last.at.max(kept).max(last.end().saturating_sub(blocks));
        let freed = free_between(core, number, inode, (from, last.end()))?;
        blocks -= freed.min(blocks);
        if blocks == 0 {
            break;
        }
    }
    Ok(extents::last(core, number)?.is_some_and(|extent| extent.end() > kept))
}

/// Frees what a file has between two of its blocks, at most [`EXTENTS_MAX`] extents of it; how many blocks.
fn free_between<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    inode: &mut Inode,
    range: (u64, u64),
) -> Result<u64, FsError> {
    let mut freed = 0;
    for extent in extents::take_out(core, number, range, EXTENTS_MAX)? {
        extents::free(core, &extent)?;
        freed += u64::from(extent.count);
    }
    inode.blocks = inode
        .blocks
        .checked_sub(freed)
        .ok_or(FsError::File { inode: number, what: "it has more blocks than it counts" })?;
    Ok(freed)
}

/// What is to become of a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// Blocks are promised to it, so that writing it finds room; its size follows, if it `extends`.
    Allocate {
        /// Whether the file ends behind the range at least.
        extends: bool,
    },
    /// It has no blocks, and reads as zeros.
    Punch,
    /// It reads as zeros, and blocks are promised to it.
    Zero {
        /// Whether the file ends behind the range at least.
        extends: bool,
    },
}

/// A small file has blocks like others from now on.
pub(crate) fn spread<D: Disk>(core: &mut Core<D>, number: u64) -> Result<(), FsError> {
    let mut inode = inodes::file(core, number)?;
    if !inode.is_small() {
        return Ok(());
    }
    let content = unpack(core, number, &mut inode)?;
    let mut pieces = Vec::new();
    if !content.is_empty() {
        let places = own_blocks(core, number, &mut inode, (0, 1), Whose::Free)?;
        pieces.push(Piece { offset: 0, data: content.into(), places });
    }
    inodes::set(core, number, &inode)?;
    put(core, &pieces)
}

/// Zeroes a part of a file that is small; false if it is not.
pub(crate) fn zero_small<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    (offset, end): (u64, u64),
    drops_privileges: bool,
    now: Time,
) -> Result<bool, FsError> {
    let mut inode = inodes::file(core, number)?;
    if !inode.is_small() {
        return Ok(false);
    }
    if drops_privileges {
        inodes::drop_privileges(core, number, &mut inode)?;
    }
    let mut content = content(core, number)?;
    let end = end.min(content.len() as u64) as usize;
    if (offset as usize) < end {
        content[offset as usize..end].fill(0);
        tree::set(&mut core.blocks, key(number, Kind::Content, 0), &content)?;
    }
    (inode.modified, inode.changed) = (now, now);
    inodes::set(core, number, &inode)?;
    Ok(true)
}

/// `ENOSPC` unless there is room for the blocks of a range that a file is to be promised, so that nothing of
/// it is done then.
pub(crate) fn check_promise<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    (offset, end): (u64, u64),
    what: Allocation,
) -> Result<(), FsError> {
    let inode = inodes::file(core, number)?;
    let block_bytes = core.block_bytes();
    let zeroes = !matches!(what, Allocation::Allocate { .. });
    let blocks = if zeroes {
        (offset.div_ceil(block_bytes), end / block_bytes)
    } else {
        (offset / block_bytes, end.div_ceil(block_bytes))
    };
    let mut wanted = blocks.1.saturating_sub(blocks.0);
    if inode.is_small() {
        // What is in it needs a block, if it is not within the range.
        wanted += u64::from(zeroes || blocks.0 > 0);
    }
    if core.blocks.free_for_data() >= wanted {
        return Ok(());
    }
    let mut at = blocks.0;
    while at < blocks.1 {
        let found = extents::between(core, number, (at, blocks.1), EXTENTS_MAX)?;
        let Some(last) = found.last() else { break };
        at = last.end();
        // What is zeroed is promised in its place, but for what others have too.
        let counts = |extent: &&Extent| !zeroes || extent.state != ExtentState::Shared;
        let there: u64 = found.iter().filter(counts).map(|extent| u64::from(extent.count)).sum();
        wanted = wanted.saturating_sub(there);
    }
    if core.blocks.free_for_data() >= wanted { Ok(()) } else { Err(FsError::NO_ROOM) }
}

/// Begins what is to become of the range from `offset` to `end` of a file with blocks: those that it has in
/// part only are zeros there, if they are to be. The blocks that are wholly within the range.
pub(crate) fn begin_allocation<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    ((offset, end), what): ((u64, u64), Allocation),
    drops_privileges: bool,
    now: Time,
) -> Result<(u64, u64), FsError> {
    let mut inode = inodes::file(core, number)?;
    if drops_privileges {
        inodes::drop_privileges(core, number, &mut inode)?;
    }
    let block_bytes = core.block_bytes();
    let mut pieces = Vec::new();
    (inode.modified, inode.changed) = (now, now);
    let mut blocks = (offset / block_bytes, end.div_ceil(block_bytes));
    if !matches!(what, Allocation::Allocate { .. }) {
        let whole = (offset.div_ceil(block_bytes), end / block_bytes);
        if whole.0 > whole.1 {
            pieces.extend(zeros_within(core, number, &mut inode, (offset, end))?);
        } else {
            let head = (offset, whole.0 * block_bytes);
            pieces.extend(zeros_within(core, number, &mut inode, head)?);
            let tail = (whole.1 * block_bytes, end);
            pieces.extend(zeros_within(core, number, &mut inode, tail)?);
        }
        blocks = (whole.0, whole.1.max(whole.0));
    }
    inodes::set(core, number, &inode)?;
    put(core, &pieces)?;
    Ok(blocks)
}

/// Frees the first blocks of a file within `blocks`, or lets them be promised ones; from which block on there
/// may be more.
pub(crate) fn punch<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    blocks: (u64, u64),
    stay_promised: bool,
) -> Result<u64, FsError> {
    let mut inode = inodes::file(core, number)?;
    let found = extents::between(core, number, blocks, 1)?;
    let Some(first) = found.first() else { return Ok(blocks.1) };
    if stay_promised && first.state == ExtentState::Promised {
        return Ok(first.end());
    }
    let first = first.part(first.at, first.end().min(first.at + step_blocks(core)));
    free_between(core, number, &mut inode, (first.at, first.end()))?;
    if stay_promised && first.state == ExtentState::Own {
        // As many blocks have come free as are promised.
        put_promise(core, number, &mut inode, (first.at, first.end()))?;
    }
    inodes::set(core, number, &inode)?;
    Ok(first.end())
}

/// Promises blocks to a file where it has none.
fn put_promise<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    inode: &mut Inode,
    (from, to): (u64, u64),
) -> Result<(), FsError> {
    let count = to - from;
    let state = ExtentState::Promised;
    extents::put(core, number, &Extent { at: from, number: 0, count: count as u32, state })?;
    core.set_reserved(core.blocks.reserved() + count)?;
    inode.blocks += count;
    Ok(())
}

/// Promises blocks to the first hole of a file within `blocks`, if it begins there; from which block on
/// there may be more.
pub(crate) fn promise<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    (from, to): (u64, u64),
) -> Result<u64, FsError> {
    let first = extents::between(core, number, (from, to), 1)?;
    let first = first.first();
    if let Some(there) = first.filter(|extent| extent.at == from) {
        return Ok(there.end());
    }
    let end = first.map_or(to, |extent| extent.at);
    let count = (end - from).min(u64::from(u32::MAX / 2));
    if core.blocks.free_for_data() < count {
        return Err(FsError::NO_ROOM);
    }
    let mut inode = inodes::file(core, number)?;
    put_promise(core, number, &mut inode, (from, from + count))?;
    inodes::set(core, number, &inode)?;
    Ok(from + count)
}

/// The file ends at `size` at least.
pub(crate) fn extend<D: Disk>(core: &mut Core<D>, number: u64, size: u64) -> Result<(), FsError> {
    let mut inode = inodes::file(core, number)?;
    inode.size = inode.size.max(size);
    inodes::set(core, number, &inode)
}

/// What is looked for in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekTo {
    /// Data.
    Data,
    /// A hole; the end is one.
    Hole,
}

/// Where the next data or hole of a file is, from `offset` on; `ENXIO` if there is none.
pub(crate) fn seek<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    offset: u64,
    to: SeekTo,
) -> Result<u64, FsError> {
    let inode = inodes::file(core, number)?;
    if offset >= inode.size {
        return Err(Errno::NXIO.into());
    }
    let block_bytes = core.block_bytes();
    let mut data_end = offset;
    if inode.is_small() {
        data_end = inode.size;
    } else {
        let blocks = (offset / block_bytes, inode.size.div_ceil(block_bytes));
        let mut at = blocks.0;
        loop {
            let found = extents::between(core, number, (at, blocks.1), EXTENTS_MAX)?;
            let Some(last) = found.last() else { break };
            at = last.end();
            for extent in found.iter().filter(|found| found.state != ExtentState::Promised) {
                let from = extent.at * block_bytes;
                if to == SeekTo::Data {
                    return Ok(from.max(offset));
                }
                if from > data_end {
                    return Ok(data_end);
                }
                data_end = extent.end() * block_bytes;
            }
        }
    }
    match to {
        SeekTo::Hole => Ok(data_end.min(inode.size)),
        SeekTo::Data if inode.is_small() => Ok(offset),
        SeekTo::Data => Err(Errno::NXIO.into()),
    }
}

/// Lets `to` have some of the blocks that `from` has, whole blocks of both; how many blocks of the range.
pub(crate) fn share<D: Disk>(
    core: &mut Core<D>,
    (from, from_block): (u64, u64),
    (to, to_block): (u64, u64),
    (count, drops_privileges): (u64, bool),
    now: Time,
) -> Result<u64, FsError> {
    if core.blocks.free_for_data() == 0 {
        return Err(FsError::NO_ROOM);
    }
    let source = inodes::file(core, from)?;
    let mut inode = inodes::file(core, to)?;
    if source.is_small() || inode.is_small() {
        return Ok(0);
    }
    if drops_privileges {
        inodes::drop_privileges(core, to, &mut inode)?;
    }
    (inode.modified, inode.changed) = (now, now);
    let count = count.min(step_blocks(core));
    // What was there goes first, as much of it as one operation may.
    let old = (to_block, to_block + count);
    let found = extents::between(core, to, old, EXTENTS_MAX + 1)?;
    let count = match found.get(EXTENTS_MAX) {
        Some(more) => more.at - to_block,
        None => count,
    };
    let wanted = (from_block, from_block + count);
    let found = extents::between(core, from, wanted, EXTENTS_MAX + 1)?;
    let count = match found.get(EXTENTS_MAX) {
        Some(more) => more.at - from_block,
        None => count,
    };
    let shared = extents::take_out(core, from, (from_block, from_block + count), EXTENTS_MAX)?;
    for extent in &shared {
        let state = match extent.state {
            ExtentState::Own => ExtentState::Shared,
            state => state,
        };
        extents::put(core, from, &Extent { state, ..*extent })?;
        if state == ExtentState::Shared {
            sharing::share(core, extent.number, extent.count)?;
        }
    }
    if from == to {
        let mode = inode.mode;
        inode = Inode { mode, modified: now, changed: now, ..inodes::file(core, to)? };
    }
    free_between(core, to, &mut inode, (to_block, to_block + count))?;
    for extent in shared.iter().filter(|extent| extent.state != ExtentState::Promised) {
        let at = extent.at - from_block + to_block;
        extents::put(core, to, &Extent { at, state: ExtentState::Shared, ..*extent })?;
        inode.blocks += u64::from(extent.count);
    }
    inodes::set(core, to, &inode)?;
    Ok(count)
}
