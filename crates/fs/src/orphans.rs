//! Files that have no name and that nobody has open: removed bit by bit, so that nothing waits long.

use agewell_store::device::Disk;

use crate::core::Core;
use crate::format::{Kind, SystemKind, key, system_key};
use crate::{FsError, ROOT_INODE, files, inodes, tree};

/// Items that a step takes out at most; chosen by us: with a node for each they are less than a
/// transaction.
const ITEMS_MAX: usize = 16;

/// Removes a part of the file `number`; whether more of it is left.
pub(crate) fn remove_some<D: Disk>(core: &mut Core<D>, number: u64) -> Result<bool, FsError> {
    let mut inode = inodes::get(core, number)?;
    if number == ROOT_INODE || inode.links > 0 {
        return Err(FsError::File { inode: number, what: "it has names and is to be removed" });
    }
    if inode.is_file() && inode.blocks > 0 {
        let is_left = files::free_last(core, number, &mut inode, 0)?;
        inodes::set(core, number, &inode)?;
        if is_left {
            return Ok(true);
        }
    }
    // Its inode comes first among its items, and goes last.
    let (first, last) = (key(number, Kind::Inode, 1), key(number + 1, Kind::Inode, 0) - 1);
    let mut keys = Vec::new();
    tree::each(&mut core.blocks, first, last, |key, _| {
        keys.push(key);
        keys.len() < ITEMS_MAX
    })?;
    for key in &keys {
        tree::remove(&mut core.blocks, *key)?;
    }
    if keys.len() == ITEMS_MAX {
        return Ok(true);
    }
    tree::remove(&mut core.blocks, key(number, Kind::Inode, 0))?;
    tree::remove(&mut core.blocks, system_key(SystemKind::Orphan, number))?;
    tree::remove(&mut core.blocks, system_key(SystemKind::Shrinking, number))?;
    Ok(false)
}
