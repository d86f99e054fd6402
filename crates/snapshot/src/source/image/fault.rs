//! What can be wrong while an image is read, before its path is added.

use std::fmt::Display;
use std::io;
use std::path::Path;

use crate::SnapshotError;

/// What stopped the reading of an image, or of one file in it.
#[derive(Debug)]
pub(super) enum Fault {
    /// The system does not let us read.
    Io(io::Error),
    /// The image ends before what was to be read: its length, bytes.
    Beyond(u64),
    /// What stands there cannot be.
    Corrupt(String),
    /// What stands there is not ours to read.
    Foreign(String),
    /// What someone stopped us with.
    Handed(SnapshotError),
}

impl Fault {
    /// A thing that cannot be.
    pub(super) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt(what.into())
    }

    /// Says where a thing that cannot be was found: in an inode, a block, a group.
    pub(super) fn within(self, place: impl Display) -> Self {
        match self {
            Self::Corrupt(what) => Self::Corrupt(format!("{place}: {what}")),
            Self::Beyond(bytes) => {
                Self::Corrupt(format!("{place}: lies beyond the end of the image at {bytes} bytes"))
            }
            other => other,
        }
    }

    /// The error of the image at `path`.
    pub(super) fn into_error(self, path: &Path) -> SnapshotError {
        let path_text = path.display();
        match self {
            Self::Io(why) => SnapshotError::io("read", path)(why),
            Self::Beyond(bytes) => SnapshotError::Input(format!(
                "{path_text}: ends at {bytes} bytes, in the middle of its file system: copy it again"
            )),
            Self::Corrupt(what) => SnapshotError::Input(format!(
                "{path_text}: {what}: check the file system (fsck -n) or copy the image again"
            )),
            Self::Foreign(what) => SnapshotError::Input(format!("{path_text}: {what}")),
            Self::Handed(error) => error,
        }
    }
}
