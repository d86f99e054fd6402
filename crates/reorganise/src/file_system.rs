//! Which file systems can be reorganised, and who a file on one is.

use serde::{Deserialize, Serialize};

/// File systems that can be reorganised while they are mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    /// By exchanging extents (`EXT4_IOC_MOVE_EXT`).
    Ext4,
    /// By a copy that the kernel compares and then shares (`FIDEDUPERANGE`).
    Xfs,
    /// As xfs, into the only space that is let free.
    Btrfs,
}

impl FileSystem {
    /// Its name in `/proc/filesystems`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    pub(crate) fn named(kind: &str) -> Option<Self> {
        [Self::Ext4, Self::Xfs, Self::Btrfs].into_iter().find(|known| known.name() == kind)
    }
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub inode: u64,
    /// When it was made, nanoseconds since 1970: numbers are used again.
    pub birth_ns: i64,
    /// When its inode changed last, nanoseconds since 1970.
    pub change_ns: i64,
    /// Length, bytes.
    pub size_bytes: u64,
}
