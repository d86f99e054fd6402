//! Calls of the kernel that neither the standard library nor rustix has.

#![allow(unsafe_code, reason = "these calls take pointers; this module answers for their sizes")]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of a file handle behind its head, at most (`MAX_HANDLE_SZ`).
const HANDLE_MAX: usize = 128;

/// `FITRIM` and `GOINGDOWN`.
pub(crate) const TRIM: u64 = 0xc018_5879;
pub(crate) const SHUT_DOWN: u64 = 0x8004_587d;

/// What can be opened without a path.
#[repr(C, align(8))]
pub(crate) struct Handle {
    size: u32,
    kind: i32,
    bytes: [u8; HANDLE_MAX],
}

pub(crate) fn handle_of(path: &Path) -> io::Result<Handle> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut handle = Handle { size: HANDLE_MAX as u32, kind: 0, bytes: [0; HANDLE_MAX] };
    let mut mount = 0;
    // SAFETY: the path ends with NUL; the handle has the head that the call wants, and as many bytes
    // behind it as it says.
    let result = unsafe {
        let handle = (&raw mut handle).cast::<libc::file_handle>();
        libc::name_to_handle_at(libc::AT_FDCWD, path.as_ptr(), handle, &raw mut mount, 0)
    };
    if result == 0 { Ok(handle) } else { Err(io::Error::last_os_error()) }
}

pub(crate) fn open_by(handle: &mut Handle, on: &File) -> io::Result<File> {
    // SAFETY: as above; a file that comes back is open and nobody else's.
    unsafe {
        let handle = (&raw mut *handle).cast::<libc::file_handle>();
        let file = libc::open_by_handle_at(on.as_raw_fd(), handle, libc::O_RDONLY);
        if file >= 0 { Ok(File::from_raw_fd(file)) } else { Err(io::Error::last_os_error()) }
    }
}

/// A command with numbers in and out; no known command takes or gives more.
pub(crate) fn command(file: &File, number: u64, values: &mut [u64; 16]) -> io::Result<i32> {
    // SAFETY: a command names its size in 14 bits of its number, and those used here need 24 bytes.
    let result =
        unsafe { libc::ioctl(file.as_raw_fd(), number as libc::Ioctl, values.as_mut_ptr()) };
    if result >= 0 { Ok(result) } else { Err(io::Error::last_os_error()) }
}
