//! Free space by `GETFSMAP` (ext4, xfs), or by an attribute of mounts of agewell.
//!
//! Source: Linux `include/uapi/linux/fsmap.h` and its manual page, ioctl_getfsmap(2).

use rustix::fd::AsFd;
use rustix::io::{Errno, Result};

use super::extent_attribute;
use super::kernel::SpaceWalk;
use crate::FreeExtent;

/// `FMR_OF_SPECIAL_OWNER`: the owner is no inode.
const SPECIAL_OWNER: u32 = 0x10;
/// `FMR_OF_LAST`: nothing follows.
const LAST: u32 = 0x20;
/// `FMR_OWN_FREE`.
const OWNER_FREE: u64 = 1;

/// A device as it is reported to programs (`new_encode_dev` of Linux `include/linux/kdev_t.h`).
fn encoded((major, minor): (u32, u32)) -> u32 {
    (minor & 0xFF) | (major << 8) | ((minor & !0xFF) << 12)
}

/// What is free of `device`, the one that addresses of files mean; `None` if the file system does
/// not report it, or not to this user.
pub(super) fn read(file: impl AsFd, device: (u32, u32)) -> Result<Option<Vec<FreeExtent>>> {
    let device = encoded(device);
    let mut walk = SpaceWalk::new();
    let mut free = Vec::new();
    loop {
        match walk.next(&file) {
            Ok(true) => {}
            Ok(false) => break,
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS) => {
                let found = extent_attribute::free(&file).ok();
                return Ok(found.map(joined));
            }
            Err(Errno::PERM | Errno::ACCESS) => return Ok(None),
            Err(error) => return Err(error),
        }
        let any_device = !walk.real_devices();
        let mut last = false;
        for space in walk.records() {
            last = space.flags & LAST != 0;
            let is_free = space.flags & SPECIAL_OWNER != 0 && space.owner == OWNER_FREE;
            if is_free && (any_device || space.device == device) {
                free.push(FreeExtent {
                    physical_bytes: space.physical_bytes,
                    length_bytes: space.length_bytes,
                });
            }
        }
        if last {
            break;
        }
    }
    Ok(Some(joined(free)))
}

/// `free` ascending, with what touches or overlaps made one, and what cannot be left out.
pub(super) fn joined(mut free: Vec<FreeExtent>) -> Vec<FreeExtent> {
    free.sort_unstable();
    let mut joined: Vec<FreeExtent> = Vec::with_capacity(free.len());
    for extent in free {
        let Some(end) = extent.physical_bytes.checked_add(extent.length_bytes) else { continue };
        if extent.length_bytes == 0 || i64::try_from(end).is_err() {
            continue;
        }
        match joined.last_mut() {
            Some(last) if extent.physical_bytes <= last.physical_bytes + last.length_bytes => {
                last.length_bytes = last.length_bytes.max(end - last.physical_bytes);
            }
            _ => joined.push(extent),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::{encoded, joined};
    use crate::FreeExtent;

    fn extent(physical_bytes: u64, length_bytes: u64) -> FreeExtent {
        FreeExtent { physical_bytes, length_bytes }
    }

    /// Extents that touch, as across a group's border, are one; impossible ones go.
    #[test]
    fn touching_extents_are_one() {
        let free = vec![extent(300, 50), extent(0, 100), extent(100, 100), extent(u64::MAX, 2)];
        assert_eq!(joined(free), [extent(0, 200), extent(300, 50)]);
        assert_eq!(joined(vec![extent(0, 100), extent(50, 10)]), [extent(0, 100)]);
        assert_eq!(joined(vec![extent(5, 0)]), []);
    }

    /// Minor numbers above 255 stand above the major number.
    #[test]
    fn device_numbers() {
        assert_eq!(encoded((7, 3)), 0x703);
        assert_eq!(encoded((259, 256 + 5)), (259 << 8) | 5 | (0x100 << 12));
    }
}
