//! One step of an aging workload: the one type that flows from a workload to a target.
//!
//! Rules that every workload keeps and every target may count on:
//! * files and directories are numbered apart, each densely from zero; directory 0 is the root and
//!   always there; a number may be used again after its file or directory is gone;
//! * nothing is done to a file before its `Create` or after its `Delete`, nothing in a directory
//!   before its `MakeDirectory`; a directory is empty when it is removed;
//! * times do not fall.

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Action {
    /// Makes the empty `file` in `directory`.
    Create = 0,
    /// Writes `size_bytes` of `file` from `offset_bytes`; the file grows where they reach beyond
    /// its end.
    Write = 1,
    /// Cuts or extends `file` to `offset_bytes`.
    Truncate = 2,
    /// Removes `file`.
    Delete = 3,
    /// Makes a directory, numbered `file`, in `directory`.
    MakeDirectory = 4,
    /// Removes the empty directory numbered `file`.
    RemoveDirectory = 5,
    /// Moves `file` into `directory` (its own, for a change of name).
    Rename = 6,
    /// Everything written so far is to be on the device.
    Sync = 7,
    /// `file` is to be on the device.
    SyncFile = 8,
    /// Reads `size_bytes` of `file` from `offset_bytes`.
    Read = 9,
}

impl Action {
    /// Every action, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Create,
        Self::Write,
        Self::Truncate,
        Self::Delete,
        Self::MakeDirectory,
        Self::RemoveDirectory,
        Self::Rename,
        Self::Sync,
        Self::SyncFile,
        Self::Read,
    ];

    /// Its name in files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Write => "write",
            Self::Truncate => "truncate",
            Self::Delete => "delete",
            Self::MakeDirectory => "make-directory",
            Self::RemoveDirectory => "remove-directory",
            Self::Rename => "rename",
            Self::Sync => "sync",
            Self::SyncFile => "sync-file",
            Self::Read => "read",
        }
    }
}

/// One step of an aging workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// When, nanoseconds from the start of the workload.
    pub time_ns: u64,
    /// The file, or the directory that is made or removed.
    pub file: u32,
    /// The directory it is made in or moved to; elsewhere the one it is in.
    pub directory: u32,
    /// Where in the file, bytes; the new length of a truncation.
    pub offset_bytes: u64,
    /// How much, bytes.
    pub size_bytes: u64,
    /// Which of the concurrent writers does it, from zero.
    pub stream: u16,
    /// What is done.
    pub action: Action,
}
