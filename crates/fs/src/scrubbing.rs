//! Blocks read against their checksums while the file system is in use.

use agewell_store::device::Disk;
use agewell_store::{Store, StoreError};

use crate::core::Core;
use crate::format::ExtentState;
use crate::{FsError, extents, inodes};

/// Reads up to `count` blocks from number `first` on; those that are damaged.
pub(crate) fn of_store<D: Disk>(
    store: &Store<D>,
    first: u32,
    count: u32,
) -> Result<Vec<u32>, FsError> {
    let bytes = store.geometry().block_bytes as usize;
    match store.read_run(first, &mut vec![0; count as usize * bytes]) {
        Ok(_) => Ok(Vec::new()),
        // Which they are.
        Err(StoreError::Damaged { .. } | StoreError::Device { .. }) => {
            Ok(store.scrub(first..first.saturating_add(count))?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads up to `most` blocks of a file from the byte `from` on; the bytes at which damaged ones begin, and
/// from where on there is more, if there is.
pub(crate) fn of_file<D: Disk>(
    core: &mut Core<D>,
    number: u64,
    from: u64,
    most: u64,
) -> Result<(Vec<u64>, Option<u64>), FsError> {
    let inode = inodes::file(core, number)?;
    let block_bytes = core.block_bytes();
    let (first, end) = (from / block_bytes, inode.size.div_ceil(block_bytes));
    let to = end.min(first.saturating_add(most));
    let mut damaged = Vec::new();
    for extent in extents::between(core, number, (first, to), usize::MAX)? {
        if extent.state != ExtentState::Promised {
            let found = of_store(core.blocks.store(), extent.number, extent.count)?;
            let place = |found: u32| (extent.at + u64::from(found - extent.number)) * block_bytes;
            damaged.extend(found.into_iter().map(place));
        }
    }
    Ok((damaged, (to < end).then_some(to * block_bytes)))
}
