//! Mounts: `/dev/fuse` at a directory, as a plain mount or as one that stands for a block device.
//!
//! The difference matters. Of a plain mount (`fuse`) the kernel never asks for `SYNCFS` and `DESTROY`:
//! `sync` and `syncfs` return before anything is durable, and `umount` before the file system has ended.
//! Of one that stands for a block device (`fuseblk`) it asks both and waits for the answers. The device is
//! a name only: the kernel claims it and never reads it. So an image in a file is mounted through a loop
//! device that nothing goes through ([`LoopDevice`]), and who serves the mount goes on using the file.
//! `SYNCFS` of such mounts came with Linux 6.18; before that `sync` is as for plain mounts.

mod by_helper;
mod loop_device;

use std::ffi::{CString, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use thiserror::Error;

pub use loop_device::LoopDevice;

/// What stands behind `fuse.` and `fuseblk.` in `/proc/mounts` and in `/etc/fstab`.
pub const SUBTYPE: &str = "agewell";

/// The kernel's device.
const DEVICE: &str = "/dev/fuse";

/// How far is read ahead, KiB: one request of the session's longest. The kernel's own is 128.
const READ_AHEAD_KIB: u32 = 1024;

/// How a directory is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountOptions {
    /// What is shown as mounted, and for [`MountKind::Block`] the block device.
    pub source: OsString,
    /// Plain, or for a block device.
    pub kind: MountKind,
    /// Nothing can be changed.
    pub read_only: bool,
    /// Other users than the one who mounts may use it; a user may say so only where `/etc/fuse.conf`
    /// allows it.
    pub allow_other: bool,
    /// Set-user-ID programs, device nodes and programs that do not count there (`nosuid`, `nodev`,
    /// `noexec`): of [`MountFlags`] these three.
    pub without: MountFlags,
}

/// What the mount stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountKind {
    /// Nothing (`fuse.agewell`).
    Plain,
    /// A block device (`fuseblk.agewell`).
    Block {
        /// Bytes of a block, as `FIGETBSZ` shows: a power of two from 512 up to a page.
        block_size: u32,
    },
}

/// Why a directory could not be mounted or unmounted.
#[derive(Debug, Error)]
pub enum MountError {
    /// No FUSE.
    #[error("{DEVICE} cannot be opened: {0}; without it nothing is mounted in user space")]
    Device(Errno),
    /// The directory is not there.
    #[error("{}: {error}", path.display())]
    Point {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        error: io::Error,
    },
    /// It is no directory.
    #[error("{}: not a directory", .0.display())]
    NotDirectory(PathBuf),
    /// Something died there.
    #[error("{path}: mounted by a process that has ended; umount it first", path = .0.display())]
    Dead(PathBuf),
    /// Not root, and nothing that mounts for users.
    #[error("{}: only root may mount here; for users fusermount3 is needed (package fuse3)", .0.display())]
    NotAllowed(PathBuf),
    /// Someone else has the block device, or the mount.
    #[error("{}: in use", .0.display())]
    Busy(PathBuf),
    /// Nothing is mounted there.
    #[error("{}: not mounted", .0.display())]
    NotMounted(PathBuf),
    /// Anything else that the kernel says.
    #[error("{}: {error}", path.display())]
    Kernel {
        /// The directory.
        path: PathBuf,
        /// What it says.
        error: Errno,
    },
    /// A program that is called for it failed.
    #[error("{program}: {message}")]
    Program {
        /// `losetup`, `fusermount3`.
        program: &'static str,
        /// What it said.
        message: String,
    },
}

/// Mounts, and gives what a [`crate::Session`] serves it by. Calls on the mount wait until it is served.
///
/// # Errors
///
/// [`MountError`]; then nothing is mounted.
pub fn mount(point: &Path, options: &MountOptions) -> Result<OwnedFd, MountError> {
    let point = checked_point(point)?;
    let device = match rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(device) => device,
        Err(Errno::PERM | Errno::ACCESS) if options.kind == MountKind::Plain => {
            return by_helper::mount(&point, options);
        }
        Err(error) => return Err(MountError::Device(error)),
    };
    let (kind, block_size) = match options.kind {
        MountKind::Plain => ("fuse", String::new()),
        MountKind::Block { block_size } => ("fuseblk", format!(",blksize={block_size}")),
    };
    let allow_other = if options.allow_other { ",allow_other" } else { "" };
    let data = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0,default_permissions{allow_other}{block_size}",
        device.as_raw_fd()
    );
    let data = CString::new(data).map_err(|_| refused(point.clone(), Errno::INVAL))?;
    let mut flags = options.without & (MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC);
    flags.set(MountFlags::RDONLY, options.read_only);
    let kind = format!("{kind}.{SUBTYPE}");
    let mounted =
        rustix::mount::mount(options.source.as_os_str(), &point, kind, flags, data.as_c_str());
    let device = match (mounted, options.kind) {
        (Ok(()), _) => device,
        (Err(Errno::PERM), MountKind::Plain) => by_helper::mount(&point, options)?,
        (Err(error), _) => return Err(refused(point, error)),
    };
    raise_read_ahead(&point);
    Ok(device)
}

/// Unmounts. Waits, where the mount stands for a block device, until what serves it has ended.
///
/// # Errors
///
/// [`MountError`]; then it is mounted as before.
pub fn unmount(point: &Path, flags: UnmountFlags) -> Result<(), MountError> {
    match rustix::mount::unmount(point, flags) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => by_helper::unmount(point),
        Err(Errno::INVAL) => Err(MountError::NotMounted(point.to_owned())),
        Err(error) => Err(refused(point.to_owned(), error)),
    }
}

fn refused(path: PathBuf, error: Errno) -> MountError {
    match error {
        Errno::PERM | Errno::ACCESS => MountError::NotAllowed(path),
        Errno::BUSY => MountError::Busy(path),
        error => MountError::Kernel { path, error },
    }
}

/// The directory by its full name, if it can be mounted on.
fn checked_point(point: &Path) -> Result<PathBuf, MountError> {
    let path = point.to_owned();
    match fs::metadata(point) {
        Ok(metadata) if metadata.is_dir() => {
            point.canonicalize().map_err(|error| MountError::Point { path, error })
        }
        Ok(_) => Err(MountError::NotDirectory(path)),
        Err(error) if error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {
            Err(MountError::Dead(path))
        }
        Err(error) => Err(MountError::Point { path, error }),
    }
}

/// Reads come in requests of 128 KiB unless the kernel is asked for more after the mount. Asking needs
/// root and `/sys`; without it reads are slower, not wrong.
fn raise_read_ahead(point: &Path) {
    let Ok(table) = fs::read_to_string("/proc/self/mountinfo") else { return };
    let Some(device) = device_of_mount(&table, point) else { return };
    for name in [device.to_owned(), format!("{device}-fuseblk")] {
        let file = format!("/sys/class/bdi/{name}/read_ahead_kb");
        if Path::new(&file).exists() {
            let _ = fs::write(file, READ_AHEAD_KIB.to_string());
        }
    }
}

/// `MAJOR:MINOR` of what was mounted last at a directory, out of `/proc/self/mountinfo`.
fn device_of_mount<'a>(table: &'a str, point: &Path) -> Option<&'a str> {
    table.lines().rev().find_map(|line| {
        let mut fields = line.split(' ');
        let device = fields.nth(2)?;
        let mounted_at = fields.nth(1)?;
        (unescaped(mounted_at) == point.as_os_str()).then_some(device)
    })
}

/// Blanks and the like stand in that table as a backslash and three octal digits.
fn unescaped(text: &str) -> OsString {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digits =
            behind.get(..3).filter(|digits| digits.iter().all(|d| (b'0'..b'8').contains(d)));
        match digits {
            Some(digits) if first == b'\\' => {
                let number =
                    digits.iter().fold(0, |number: u32, d| number * 8 + u32::from(d - b'0'));
                bytes.push(number as u8);
                rest = &behind[3..];
            }
            _ => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(bytes)
}

/// An option's value may not end it.
fn escaped(text: &std::ffi::OsStr) -> OsString {
    let mut bytes = Vec::new();
    for &byte in text.as_bytes() {
        if matches!(byte, b',' | b'\\') {
            bytes.push(b'\\');
        }
        bytes.push(byte);
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{device_of_mount, escaped, unescaped};

    #[test]
    fn the_last_mount_at_a_directory_counts() {
        let table = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                     40 22 0:50 / /mnt/a\\040b rw - fuse.agewell x rw\n\
                     41 40 7:0 / /mnt/a\\040b rw - fuseblk.agewell /dev/loop0 rw\n";
        assert_eq!(device_of_mount(table, Path::new("/mnt/a b")), Some("7:0"));
        assert_eq!(device_of_mount(table, Path::new("/mnt/a")), None);
    }

    #[test]
    fn escapes_of_the_table_and_of_options() {
        assert_eq!(unescaped("a\\134\\011\\9\\"), "a\\\t\\9\\");
        assert_eq!(escaped("a,b\\c".as_ref()), "a\\,b\\\\c");
    }
}
