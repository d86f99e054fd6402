//! A copy of a part of a file in a donor, shared with the file if the kernel finds both the same.

use agewell_snapshot::SnapshotError;
use rustix::fd::OwnedFd;
use rustix::fs::fstat;
use rustix::io::{Errno, pread, pwrite};

use super::kernel::{self, Deduped};
use super::{Fault, skip_of};
use crate::skip::Skip;
use crate::volume::Volume;

/// Bytes that are copied and compared at a time, during which writers of the file wait; at most what
/// the kernel takes at once, 16 MiB.
pub(super) const PIECE_BYTES: u64 = 16 << 20;

/// Bytes read and written by one call; chosen by us.
const BUFFER_BYTES: usize = 1 << 20;

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copied {
    /// The file lies where the donor does.
    Shared,
    /// The file is as it was.
    Not(Skip),
}

/// Copies `bytes` of `file` from `from` on to `offset` of `donor` and has the file share the copy.
pub(super) fn share(
    file: &OwnedFd,
    from: u64,
    donor: &OwnedFd,
    offset: u64,
    bytes: u64,
    buffer: &mut Vec<u8>,
) -> Result<Copied, Errno> {
    if !copy(file, from, donor, offset, bytes, buffer)? {
        return Ok(Copied::Not(Skip::Changed));
    }
    // The kernel would leave the last block out without a word.
    if fstat(donor)?.st_size as u64 != offset + bytes {
        return Ok(Copied::Not(Skip::Refused));
    }
    exchange(file, from, donor, offset, bytes)
}

/// Copies; `false` if the file ends before.
pub(super) fn copy(
    file: &OwnedFd,
    from: u64,
    donor: &OwnedFd,
    offset: u64,
    bytes: u64,
    buffer: &mut Vec<u8>,
) -> Result<bool, Errno> {
    buffer.resize(BUFFER_BYTES, 0);
    let mut done = 0;
    while done < bytes {
        let wanted = (bytes - done).min(BUFFER_BYTES as u64) as usize;
        let read = match pread(file, &mut buffer[..wanted], from + done) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(Errno::INTR) => continue,
            Err(why) => return Err(why),
        };
        let mut written = 0;
        while written < read {
            match pwrite(donor, &buffer[written..read], offset + done + written as u64) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(why) => return Err(why),
            }
        }
        done += read as u64;
    }
    Ok(true)
}

/// Has `file` share what was copied, if it is still the same.
pub(super) fn exchange(
    file: &OwnedFd,
    from: u64,
    donor: &OwnedFd,
    offset: u64,
    bytes: u64,
) -> Result<Copied, Errno> {
    let mut done = 0;
    while done < bytes {
        match kernel::dedupe(donor, offset + done, bytes - done, file, from + done) {
            Ok(Deduped::Bytes(0)) => return Ok(Copied::Not(Skip::Refused)),
            Ok(Deduped::Bytes(shared)) => done += shared,
            Err(Errno::INTR) => {}
            // It was written, or cut, meanwhile.
            Ok(Deduped::Differs) | Err(Errno::INVAL) => return Ok(Copied::Not(Skip::Changed)),
            Err(why) => return Err(why),
        }
    }
    Ok(Copied::Shared)
}

/// What an error of the kernel means for the work.
pub(super) fn fault(volume: &Volume, why: Errno) -> Fault {
    match why {
        Errno::IO | Errno::ROFS | Errno::STALE => {
            let stop: SnapshotError = volume.failed("move a file of")(why);
            Fault::Stop(stop)
        }
        why => Fault::Leave(skip_of(why)),
    }
}
