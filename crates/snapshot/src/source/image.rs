//! Snapshots of images and unmounted devices, read without mounting and without root.
//!
//! Understood: ext2, ext3 and ext4 (`ext`) and UFS1, the fast file system of 4.2BSD and 4.4BSD
//! (`ufs`). Which one it is, its magic number says.
//!
//! What both keep to:
//! * nothing is ever written: the file is opened for reading only;
//! * whatever stands in the image, the answer is a snapshot or one line of error: no panic, no
//!   endless loop, and work and memory within a constant times the size of the image (`Budget`);
//! * what concerns the whole file system (superblock, groups, bitmaps) is an error when it is
//!   wrong; what concerns one file is counted as unreadable, and the first such fault is named in
//!   `parameters["first_fault"]`;
//! * files are found in the inode tables, then placed by walking the directories from the root
//!   (`tree`): what no directory names is not listed.
//!
//! An image that is written to meanwhile (a device that is mounted) may be read in parts of
//! different moments: take the snapshot of the mounted directory instead.

mod ext;
mod fault;
mod fields;
mod map;
mod reader;
mod tree;
mod ufs;

use std::path::Path;

use fault::Fault;
use reader::Image;

pub(super) use ext::{InodeTable, TableWindow};

use super::{Progress, TakeProgress};
use crate::{Snapshot, SnapshotError};

/// The magic number of ext2, ext3 and ext4 and where it stands (Linux, `fs/ext4/ext4.h`:
/// `s_magic`, 56 bytes into the superblock at 1024).
const EXT_MAGIC: (u64, [u8; 2]) = (1024 + 56, [0x53, 0xEF]);

/// Other things that people give: where their mark stands, the mark, what to say.
const RELATIVES: [(u64, &[u8], &str); 7] = [
    (0, b"XFSB", "holds an XFS file system: mount it and give the directory"),
    (65536 + 64, b"_BHRfS_M", "holds a btrfs file system: mount it and give the directory"),
    (8192 + 1372, &[0x19, 0x01, 0x54, 0x19], "holds a UFS2 file system; only UFS1 is understood"),
    (65536 + 1372, &[0x19, 0x01, 0x54, 0x19], "holds a UFS2 file system; only UFS1 is understood"),
    (65536 + 1372, &[0x19, 0x54, 0x01, 0x19], "holds a UFS2 file system; only UFS1 is understood"),
    (0, b"QFI\xfb", "is a qcow2 image: convert it to a raw one (qemu-img convert -O raw)"),
    (510, &[0x55, 0xAA], "holds a boot sector or a partition table: give the partition"),
];

/// Takes a snapshot of the file system in the image or device at `path`, with the names of its
/// files if `names`.
///
/// # Errors
/// If it cannot be read, holds no file system that is understood, or one that is broken as a
/// whole; and whatever `progress` stops the work with.
pub fn take_image(
    path: &Path,
    names: bool,
    progress: &mut Progress<'_>,
) -> Result<Snapshot, SnapshotError> {
    let mut image = Image::open(path)?;
    take_from(&mut image, names, progress).map_err(|fault| fault.into_error(path))
}

fn take_from(
    image: &mut Image,
    names: bool,
    progress: &mut Progress<'_>,
) -> Result<Snapshot, Fault> {
    let is_ext = has_mark(image, EXT_MAGIC.0, &EXT_MAGIC.1)?;
    // A new UFS1 leaves the superblock of an older ext alone, which lies where it boots from; and a
    // new ext may not have written yet where an older UFS1 had its superblock. So both may be there,
    // and what is whole counts.
    if let Some(order) = ufs::byte_order(image)? {
        match ufs::take(image, order, names, progress) {
            Err(Fault::Corrupt(_) | Fault::Beyond(_) | Fault::Foreign(_)) if is_ext => {}
            result => return result,
        }
    }
    if is_ext {
        return ext::take(image, names, progress);
    }
    for (offset_bytes, mark, text) in RELATIVES {
        if has_mark(image, offset_bytes, mark)? {
            return Err(Fault::Foreign(text.to_owned()));
        }
    }
    Err(Fault::Foreign(
        "holds no file system that is understood (ext2, ext3, ext4, UFS1)".to_owned(),
    ))
}

/// Whether `mark` stands at `offset_bytes`.
fn has_mark(image: &Image, offset_bytes: u64, mark: &[u8]) -> Result<bool, Fault> {
    let mut found = [0; 8];
    let found = &mut found[..mark.len()];
    match image.read_at(offset_bytes, found) {
        Ok(()) => Ok(found == mark),
        Err(Fault::Beyond(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Reports how many files were found so far.
fn tell(progress: &mut Progress<'_>, files: usize) -> Result<(), Fault> {
    progress(&TakeProgress { files: files as u64, files_in_all: None }).map_err(Fault::Handed)
}
