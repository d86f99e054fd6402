//! Mounts for users: `fusermount3`, which is root's, mounts and hands the connection back over a socket.

use std::ffi::OsString;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;

use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};

use super::{MountError, MountOptions, SUBTYPE, escaped};

const PROGRAM: &str = "fusermount3";

/// Where it finds the number of the socket.
const SOCKET_VARIABLE: &str = "_FUSE_COMMFD";

pub(super) fn mount(point: &Path, options: &MountOptions) -> Result<OwnedFd, MountError> {
    let kernel = |error| MountError::Kernel { path: point.to_owned(), error };
    // It stays open in the program, so it is not closed there by itself.
    let kind = (AddressFamily::UNIX, SocketType::STREAM);
    let (ours, its) = socketpair(kind.0, kind.1, SocketFlags::empty(), None).map_err(kernel)?;
    let run = Command::new(PROGRAM)
        .arg("-o")
        .arg(option_text(options))
        .arg("--")
        .arg(point)
        .env(SOCKET_VARIABLE, its.as_raw_fd().to_string())
        .output();
    drop(its);
    // It is not there, or may not be run.
    let Ok(output) = run else { return Err(MountError::NotAllowed(point.to_owned())) };
    if !output.status.success() {
        return Err(failed(first_line(&output.stderr)));
    }
    receive(&ours).map_err(kernel)?.ok_or_else(|| failed("it gave no connection".to_owned()))
}

pub(super) fn unmount(point: &Path) -> Result<(), MountError> {
    match Command::new(PROGRAM).args(["-u", "--"]).arg(point).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(failed(first_line(&output.stderr))),
        Err(_) => Err(MountError::NotAllowed(point.to_owned())),
    }
}

fn option_text(options: &MountOptions) -> OsString {
    let mut text = OsString::from("fsname=");
    text.push(escaped(&options.source));
    text.push(format!(",subtype={SUBTYPE},default_permissions"));
    let flags = [
        (options.allow_other, ",allow_other"),
        (options.read_only, ",ro"),
        (options.without.contains(MountFlags::NOEXEC), ",noexec"),
    ];
    flags.iter().filter(|(is_set, _)| *is_set).for_each(|(_, word)| text.push(word));
    text
}

/// The file that comes with a message of one byte.
fn receive(socket: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let file = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    Ok(file)
}

fn failed(message: String) -> MountError {
    MountError::Program { program: PROGRAM, message }
}

/// What a program said, without its own name in front.
pub(super) fn first_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let line = said.lines().next().unwrap_or("it failed and did not say why");
    let line = line.trim();
    let named = ["losetup: ", "fusermount3: "].iter().find_map(|name| line.strip_prefix(name));
    named.unwrap_or(line).to_owned()
}
