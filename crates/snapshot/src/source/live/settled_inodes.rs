//! Files of a mounted ext4 whose inodes say all, read from its device in place of asked one by one.
//!
//! Only where that is the same answer. An inode table lacks data whose place is not chosen yet; so
//! nothing of the file system may be delayed when the walk begins. Whatever is written later sets
//! the inode change time of its file first, and files that changed later than shortly before that
//! moment are asked of the kernel. So are those whose inodes do not prove to be whole
//! ([`InodeTable`]), and all files where times may wait in memory (`lazytime`), where something is
//! mounted on a file, and where the device may not be read (without root).

use std::path::Path;

use super::mount::{Mount, mounts_below};
use super::status::Status;
use crate::source::image::{InodeTable, TableWindow};
use crate::{Extent, FileKind};

/// How often the kernel is asked how much is delayed: it adds up numbers of its processors, and a
/// file that is written on one and finished on another may slip between them once. Chosen by us.
const DELAYED_ASKED: usize = 3;

/// The inode tables below a walk.
#[derive(Debug)]
pub(super) struct SettledInodes {
    table: InodeTable,
    settled_ns: i64,
    /// Those of the root of the walk, which are those of all that is found.
    device: (u32, u32),
    mount: u64,
}

impl SettledInodes {
    /// Those of the file system of the tree at `path`, which `status` describes and which is mounted
    /// as `mount`; `None` where every file is to be asked of the kernel. What changed before
    /// `settled_ns` does not change now.
    pub(super) fn open(
        path: &Path,
        status: &Status,
        mount: &Mount,
        settled_ns: i64,
    ) -> Option<Self> {
        if mount.kind != "ext4" || mount.keeps_times_back() {
            return None;
        }
        let table = InodeTable::open(mount.open_device()?)?;
        let only_directories = || mounts_below(path).iter().all(|point| point.is_dir());
        let settled = (0..DELAYED_ASKED).all(|_| delayed_blocks(mount) == Some(0));
        (settled && only_directories()).then_some(Self {
            table,
            settled_ns,
            device: status.device,
            mount: status.mount,
        })
    }

    /// What the inode `number` says of its file, whose extents are appended to `extents`; `None` if
    /// the kernel is to be asked, and `extents` is as before. `window` holds nothing that was read
    /// before the name of the file was.
    pub(super) fn file(
        &self,
        number: u64,
        window: &mut TableWindow,
        extents: &mut Vec<Extent>,
    ) -> Option<Status> {
        let first = extents.len();
        let file = self.table.file(number, window, extents)?;
        if file.change_ns >= self.settled_ns {
            extents.truncate(first);
            return None;
        }
        Some(Status {
            inode: number,
            kind: FileKind::Regular,
            links: file.links,
            size_bytes: file.size_bytes,
            allocated_bytes: file.allocated_bytes,
            birth_ns: file.birth_ns,
            change_ns: file.change_ns,
            modify_ns: file.modify_ns,
            device: self.device,
            mount: self.mount,
        })
    }
}

/// How many blocks of written data have no place yet, as the kernel counts them.
fn delayed_blocks(mount: &Mount) -> Option<u64> {
    let (major, minor) = mount.device();
    let device = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let count =
        Path::new("/sys/fs/ext4").join(device.file_name()?).join("delayed_allocation_blocks");
    std::fs::read_to_string(count).ok()?.trim().parse().ok()
}
