//! What is asked of the store of a mount, fetched a piece at a time by attributes that no listing shows.
//!
//! `agewell.trace.begin` begins and says how the store is divided; `agewell.trace.held.N` has the blocks that
//! there are then, a bit each, from byte N on; `agewell.trace.next.N` has requests from number N on, and those before
//! are forgotten; `agewell.trace.end` ends.

use agewell_fs::{FileSystem, FsError, Request};
use agewell_fuse::{Caller, Errno};
use agewell_store::device::Disk;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use crate::rights;

/// What the names begin with.
pub(crate) const TRACE: &[u8] = b"agewell.trace.";

/// Requests that wait to be fetched, at most; chosen by us: 24 MiB, some seconds of all that a mount does.
const WAITING_MAX: usize = 1 << 20;

/// Requests that one answer has: what an attribute has room for, less the count of those that were lost.
const REQUESTS_MAX: usize = (1 << 16) / REQUEST_BYTES - 1;
const REQUEST_BYTES: usize = 16;

/// Bytes of the blocks at the beginning that one answer has.
const HELD_BYTES: usize = 1 << 15;

/// Bits of a request's word with the count that say how many blocks; above them is what is asked.
const COUNT_BITS: u32 = 29;

fn encode(requests: &[Request], lost: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity((requests.len() + 1) * REQUEST_BYTES);
    bytes.extend(lost.to_le_bytes());
    bytes.extend([0; 8]);
    for request in requests {
        let word = u32::from(request.asked as u8) << COUNT_BITS | request.count;
        bytes.extend(request.time_ns.to_le_bytes());
        bytes.extend(request.first.to_le_bytes());
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The number behind `word` in `name`.
fn number(name: &[u8], word: &[u8]) -> Option<u64> {
    std::str::from_utf8(name.strip_prefix(word)?).ok()?.parse().ok()
}

/// What the attribute with this name, without [`TRACE`], says.
pub(crate) fn answer<D: Disk>(
    file_system: &FileSystem<D>,
    caller: &Caller,
    name: &[u8],
) -> Result<Vec<u8>, Errno> {
    if !rights::is_root(caller) {
        return Err(Errno::PERM);
    }
    let failed = |error: FsError| error.errno();
    if let Some(from) = number(name, b"next.") {
        let (requests, lost) = file_system.fetch_traced(from, REQUESTS_MAX).ok_or(Errno::NODATA)?;
        return Ok(encode(&requests, lost));
    }
    match name {
        b"begin" => {
            file_system.begin_trace(WAITING_MAX, monotonic_ns).map_err(failed)?;
            let store = file_system.store();
            let geometry = store.geometry();
            let begun = json!({
                "time_ns": monotonic_ns(),
                "block_bytes": geometry.block_bytes,
                "blocks": geometry.blocks,
                "segment_blocks": geometry.segment_blocks,
                "segments": geometry.segments,
                "reserve_segments": geometry.reserve_segments,
                "transaction_blocks": store.transaction_blocks_max(),
            });
            Ok(begun.to_string().into_bytes())
        }
        b"end" => {
            file_system.end_trace();
            Ok(Vec::new())
        }
        name => {
            let from = number(name, b"held.").ok_or(Errno::INVAL)? as usize;
            let held = file_system.traced_from().ok_or(Errno::NODATA)?;
            let bytes = held.iter().flat_map(|word| word.to_le_bytes());
            Ok(bytes.skip(from).take(HELD_BYTES).collect())
        }
    }
}
