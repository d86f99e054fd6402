//! File systems in user space: the kernel's protocol, spoken by a loop of our own.
//!
//! [`FileSystem`] is what is mounted, [`mount`] mounts it, and a [`Session`] carries requests from the one
//! to the other. The protocol is that of the kernel's header `linux/fuse.h`. It is spoken here because no
//! released crate answers `SYNCFS` and `TMPFILE`, hands on when privileges are to be cleared, or keeps
//! `umount` waiting until all is durable. What is mounted is none of this crate's business.

#![cfg(target_os = "linux")]

mod device;
mod directory;
mod file_system;
pub mod mount;
pub mod protocol;
mod reply;
mod session;

pub use directory::DirectorySink;
pub use file_system::{
    Attributes, Caller, Command, Copy, Entry, FileSystem, Make, PROTOCOL_NAME_MAX, ROOT, Read,
    Seek, SetAttributes, SetTime, Space, Time, Write,
};
pub use reply::{DataReply, LaterData, Reply, Sent};
pub use session::{Options, Session, SessionError};

/// The error that a call ends with, as `errno`.
pub use rustix::io::Errno;
