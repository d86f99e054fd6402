//! Snapshots of mounted file systems, held against what others say of the same file systems:
//! `filefrag`, `e2freefrag`, `xfs_spaceman`, the trees that `btrfs inspect-internal` prints, and
//! the bytes on the device themselves.

#![allow(clippy::print_stdout, reason = "a test says why it is skipped")]

mod mounted;
mod oracle;
mod whole;
