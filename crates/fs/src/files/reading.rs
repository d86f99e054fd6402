//! The data of files, read.

use agewell_store::device::Disk;

use crate::core::Core;
use crate::format::{Extent, ExtentState, Kind, key};
use crate::observed::CallRead;
use crate::scattered::SweepDue;
use crate::{FsError, extents, files_ahead, inodes, scattered, tree};

/// What ends within a block is read with it and copied, if it is no longer than this; chosen by us: that takes
/// less time than a request.
const COPIED_BYTES_MAX: usize = 128 << 10;

/// A file with more blocks may lie so scattered that a sweep over the disk is worth it; chosen by us: others are read
/// in one request or two.
const SCATTERED_BLOCKS_MIN: u64 = 64;

/// Fills `into` with what `number` has from `offset` on; how many bytes that are, and the sweep to be thought of.
pub(crate) fn read<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    offset: u64,
    into: &mut [u8],
) -> Result<(usize, Option<SweepDue>), FsError> {
    if offset == 0 {
        // What cannot be read is left to who asks for it.
        let _ = files_ahead::before_reading(core, number);
    }
    let inode = inodes::file(core, number)?;
    let length = inode.size.saturating_sub(offset).min(into.len() as u64) as usize;
    let into = &mut into[..length];
    if length == 0 {
        return Ok((0, None));
    }
    if inode.is_small() {
        into.fill(0);
        let content_key = key(number, Kind::Content, 0);
        tree::get(&mut core.blocks, content_key, |content| {
            let there = content.get(offset as usize..).unwrap_or_default();
            let bytes = there.len().min(length);
            into[..bytes].copy_from_slice(&there[..bytes]);
        })?;
        return Ok((length, None));
    }
    let block_bytes = core.block_bytes();
    let end = offset + length as u64;
    let end_block = end.div_ceil(block_bytes);
    let mut filled = offset;
    let may_sweep =
        inode.size > SCATTERED_BLOCKS_MIN * block_bytes && core.blocks.store().may_have_arm();
    let mut requests = 0;
    // One block more, which is probably read next.
    let found = extents::between(core, number, (offset / block_bytes, end_block + 1), usize::MAX)?;
    for (place, extent) in found.iter().enumerate() {
        if extent.at >= end_block {
            break;
        }
        if extent.state == ExtentState::Promised {
            continue;
        }
        let from = (extent.at * block_bytes).max(offset);
        let to = (extent.end() * block_bytes).min(end);
        into[(filled - offset) as usize..(from - offset) as usize].fill(0);
        let piece = &mut into[(from - offset) as usize..(to - offset) as usize];
        let skipped = (from - extent.at * block_bytes) as usize;
        let begin_ns = core.blocks.observed_ns();
        let (at, count) = (from / block_bytes, (to.div_ceil(block_bytes) - from / block_bytes));
        let blocks = (extent.number + (at - extent.at) as u32, count as u32);
        let call = core.blocks.groups.read_ahead(core.blocks.store(), blocks.0, blocks.1);
        let behind = found.get(place + 1).filter(|_| extent.end() <= end_block);
        let next =
            behind.map_or(extent.number + (end_block - extent.at) as u32, |behind| behind.number);
        if may_sweep {
            requests += u64::from(core.blocks.store().requests_of(blocks.0, blocks.1));
        }
        read_extent(core, extent, skipped, next, piece)?;
        if begin_ns.is_some() && core.blocks.has_asked() {
            let took_ns = core.blocks.took_since(begin_ns);
            core.blocks.observer.read_piece(number, at, blocks, CallRead { took_ns, ..call });
        }
        filled = to;
    }
    into[(filled - offset) as usize..].fill(0);
    let extents = found.len() as u64;
    let due = may_sweep
        .then(|| scattered::was_read(core, (number, inode.size), &(offset..end), extents, requests))
        .flatten();
    Ok((length, due))
}

/// Fills `into` with what is in an extent from the byte `skipped` of it on; the block `next` is probably read
/// next.
fn read_extent<D: Disk>(
    core: &Core<D>,
    extent: &Extent,
    skipped: usize,
    next: u32,
    mut into: &mut [u8],
) -> Result<(), FsError> {
    let block_bytes = core.blocks.block_bytes();
    let mut number = extent.number + (skipped / block_bytes) as u32;
    let mut within = skipped % block_bytes;
    let whole = into.len() / block_bytes * block_bytes;
    if within == 0 && whole < into.len() && whole <= COPIED_BYTES_MAX {
        // With the last block, of which a part is wanted.
        let mut blocks = vec![0; whole + block_bytes];
        core.blocks.read_data(number, next, &mut blocks)?;
        into.copy_from_slice(&blocks[..into.len()]);
        return Ok(());
    }
    if within == 0 {
        let (blocks, rest) = into.split_at_mut(whole);
        core.blocks.read_data(number, next, blocks)?;
        number += (whole / block_bytes) as u32;
        into = rest;
    }
    let mut block = vec![0; if into.is_empty() { 0 } else { block_bytes }];
    while !into.is_empty() {
        core.blocks.read_data(number, number + 1, &mut block)?;
        let bytes = into.len().min(block_bytes - within);
        into[..bytes].copy_from_slice(&block[within..within + bytes]);
        into = &mut into[bytes..];
        (number, within) = (number + 1, 0);
    }
    Ok(())
}
