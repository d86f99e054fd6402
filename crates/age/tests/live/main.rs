//! Snapshots of mounted file systems, held against what others say of the same file systems:
//! `filefrag`, `e2freefrag`, `xfs_spaceman`, the trees that `btrfs inspect-internal` prints, and
//! the bytes on the device themselves.

mod mounted;
mod oracle;
mod whole;
