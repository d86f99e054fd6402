//! A mounted file system that takes in all of its device, which has become larger: an extended attribute asks
//! for it.

use agewell_fs::{FileSystem, FsError};
use agewell_fuse::Caller;
use agewell_store::StoreError;
use agewell_store::device::Disk;
use rustix::io::Errno;
use serde_json::json;

use crate::rights;

/// The name of the attribute, but for the number of blocks that the store has.
pub(crate) const GROW: &[u8] = b"agewell.grow.";

/// What the attribute with this name, without [`GROW`], says: how much room there is when it has grown; or why it
/// was refused, with nothing changed; or what has failed amid it, so that all of the device may be in use already.
///
/// It grows from `blocks` blocks only, so that nothing is done twice where somebody asks twice, as those do who
/// look first how long an attribute is.
pub(crate) fn answer<D: Disk>(
    file_system: &FileSystem<D>,
    caller: &Caller,
    blocks: u64,
) -> Result<Vec<u8>, Errno> {
    if !rights::is_root(caller) {
        return Err(Errno::PERM);
    }
    if u64::from(file_system.store().geometry().blocks) == blocks
        && let Err(error) = file_system.grow()
    {
        let is_refused = matches!(error, FsError::Store(StoreError::Options(_)));
        let how = if is_refused { "refused" } else { "failed" };
        return Ok(json!({ how: error.to_string() }).to_string().into_bytes());
    }
    let space = file_system.space();
    let grown = json!({
        "blocks": file_system.store().geometry().blocks,
        "capacity_bytes": space.blocks * u64::from(space.block_bytes),
    });
    Ok(grown.to_string().into_bytes())
}
