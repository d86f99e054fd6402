//! Why an operation is refused, or fails.

use agewell_store::StoreError;
use rustix::io::Errno;

/// Why an operation is refused, or fails. Nothing of it was done.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// As the system calls say it.
    #[error("{0}")]
    Errno(Errno),
    /// What describes files is not as it should be.
    #[error("block {number} is damaged: {what}; run `agewell fsck`")]
    Structure {
        /// The block.
        number: u32,
        /// What is wrong.
        what: &'static str,
    },
    /// What describes a file is not as it should be.
    #[error("file {inode} is damaged: {what}; run `agewell fsck`")]
    File {
        /// Its inode.
        inode: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// There is no file system that can be used.
    #[error("{0}")]
    Format(String),
    /// The store below refuses or fails.
    #[error("{0}")]
    Store(StoreError),
    /// It does not fit behind what waits already; never seen outside.
    #[error("the operation is larger than a transaction")]
    Large,
}

impl FsError {
    pub(crate) const NO_ROOM: Self = Self::Errno(Errno::NOSPC);

    /// What a system call says of it.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::Errno(errno) => *errno,
            _ => Errno::IO,
        }
    }
}

impl From<Errno> for FsError {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}
