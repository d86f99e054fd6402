//! Why a file is left as it lies.

use std::collections::BTreeMap;

use agewell_snapshot::{ExtentFlags, Snapshot, SnapshotFile};
use serde::{Deserialize, Serialize};

use crate::file_system::FileSystem;

/// Why a file is left as it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Skip {
    /// Other files or a snapshot have blocks of it: moved apart it would take more room.
    Shared,
    /// Compressed or encrypted.
    Encoded,
    /// Its data lie within metadata.
    Inline,
    /// Part of it is allocated and was never written, which only ext4 moves as it is.
    Preallocated,
    /// Written lately: its data have no place yet.
    Unwritten,
    /// Immutable or append-only, or to be left alone (`chattr +i`, `+a`).
    Protected,
    /// Not copied on write (`chattr +C`), so that its blocks cannot be compared and shared.
    InPlace,
    /// Sealed by fs-verity.
    Sealed,
    /// In use for swapping.
    Swap,
    /// It is not what the plan saw.
    Changed,
    /// It is gone.
    Vanished,
    /// It cannot be opened for writing.
    Unreadable,
    /// The kernel does not move it.
    Refused,
    /// What was free when it was planned was taken by others.
    NoRoom,
}

impl Skip {
    /// In the words of a report.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Shared => "share blocks with other files or snapshots",
            Self::Encoded => "are compressed or encrypted",
            Self::Inline => "lie within their inodes",
            Self::Preallocated => "hold space that was allocated and never written",
            Self::Unwritten => "are being written",
            Self::Protected => "are immutable, append-only or not to be moved",
            Self::InPlace => "are not copied on write",
            Self::Sealed => "are sealed by fs-verity",
            Self::Swap => "are in use for swapping",
            Self::Changed => "changed since they were looked at",
            Self::Vanished => "are gone",
            Self::Unreadable => "cannot be opened",
            Self::Refused => "are not moved by the kernel",
            Self::NoRoom => "found their place taken",
        }
    }
}

/// Files and bytes left out, by reason.
pub type SkipCounts = BTreeMap<Skip, (u64, u64)>;

/// Why `file`, as the snapshot has it, cannot be moved; `None` if it can.
pub(crate) fn by_extents(
    snapshot: &Snapshot,
    file: &SnapshotFile,
    file_system: FileSystem,
) -> Option<Skip> {
    let mut found: Option<Skip> = None;
    for extent in snapshot.extents_of(file) {
        let why = [
            (ExtentFlags::SHARED, Skip::Shared),
            (ExtentFlags::ENCODED, Skip::Encoded),
            (ExtentFlags::INLINE.with(ExtentFlags::TAIL), Skip::Inline),
            (ExtentFlags::UNKNOWN, Skip::Unwritten),
        ];
        let within = extent.logical_bytes < file.size_bytes;
        let preallocated =
            within && extent.flags.any(ExtentFlags::UNWRITTEN) && file_system != FileSystem::Ext4;
        found = why
            .into_iter()
            .find(|(flags, _)| extent.flags.any(*flags))
            .map(|(_, why)| why)
            .or_else(|| preallocated.then_some(Skip::Preallocated))
            .or(found);
    }
    found
}
