//! A file system at one moment: its files, where their bytes lie, and what is free.
//!
//! One shape for every source: a mounted file system, an image, a simulated file system. Addresses
//! are bytes from the start of the device. Names are left out unless asked for; the order of names
//! within a directory is kept as a rank, so that distances in name order can be measured without.
//!
//! Invariants: the extents of a file ascend by their logical offset and do not overlap; free
//! extents ascend by address, do not overlap and do not touch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A time that is not known, in nanoseconds.
pub const NO_TIME: i64 = i64::MIN;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FileKind {
    /// A regular file.
    Regular = 0,
    /// A directory.
    Directory = 1,
    /// A symbolic link.
    Link = 2,
    /// Devices, pipes, sockets.
    Other = 3,
}

/// What is special about an extent, as a set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtentFlags(pub u16);

impl FileKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Regular, Self::Directory, Self::Link, Self::Other];

    /// Its name in files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Regular => "regular",
            Self::Directory => "directory",
            Self::Link => "link",
            Self::Other => "other",
        }
    }
}

impl ExtentFlags {
    /// Every bit there is.
    pub const ALL: Self = Self(63);
    /// The data lies within metadata and has no block of its own (btrfs inline, ext4 inline_data).
    pub const INLINE: Self = Self(1);
    /// Allocated, never written: reads as zeros.
    pub const UNWRITTEN: Self = Self(2);
    /// Other files, or other places of this one, lie here too.
    pub const SHARED: Self = Self(4);
    /// Compressed or encrypted: the bytes on the device are not the bytes of the file.
    pub const ENCODED: Self = Self(8);
    /// The address is not known yet (delayed allocation) or not at all.
    pub const UNKNOWN: Self = Self(16);
    /// A part of a block that other files share (fragments, tails).
    pub const TAIL: Self = Self(32);

    /// Whether any bit of `other` is set.
    #[must_use]
    pub fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Bytes of a file that lie side by side on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where in the file, bytes.
    pub logical_bytes: u64,
    /// Where on the device, bytes; means nothing with `INLINE` or `UNKNOWN`.
    pub physical_bytes: u64,
    /// How much of the file, bytes; whole blocks, except for inline data and fragments.
    pub length_bytes: u64,
    /// What is special about it.
    pub flags: ExtentFlags,
}

/// Bytes of the device that nothing uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FreeExtent {
    /// Where on the device, bytes.
    pub physical_bytes: u64,
    /// How much, bytes.
    pub length_bytes: u64,
}

/// One file of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Its number in its file system.
    pub inode: u64,
    /// What it is.
    pub kind: FileKind,
    /// Links to it; it is listed once, at the name that comes first by directory and rank.
    pub links: u32,
    /// Length, bytes.
    pub size_bytes: u64,
    /// When it was made, nanoseconds since 1970, or [`NO_TIME`].
    pub birth_ns: i64,
    /// Inode change time, nanoseconds since 1970, or [`NO_TIME`].
    pub change_ns: i64,
    /// Data modification time, nanoseconds since 1970, or [`NO_TIME`].
    pub modify_ns: i64,
    /// Inode of the directory that holds it; its own for the root.
    pub directory: u64,
    /// Place among the entries of its directory as the file system lists them, from zero.
    pub readdir_rank: u32,
    /// Place among the entries of its directory by name (bytes), from zero.
    pub name_rank: u32,
    /// Its extents are these of [`Snapshot::extents`].
    pub first_extent: u32,
    /// How many.
    pub extents: u32,
}

/// What is known of the file system as a whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FileSystemFacts {
    /// `ext4`, `xfs`, `btrfs`, `ffs`, `ufs1`, ...
    pub kind: String,
    /// Bytes of a block: the unit of the layout score.
    pub block_bytes: u32,
    /// Bytes of the smallest piece that can be allocated; a block's where there are no fragments.
    pub fragment_bytes: u32,
    /// Bytes of the whole file system.
    pub total_bytes: u64,
    /// Bytes of it that are free, as the file system says; those in [`Snapshot::free`] may be fewer
    /// where it reports no map.
    pub free_bytes: u64,
    /// Bytes of a cylinder, block or allocation group; 0 where there are none.
    pub group_bytes: u64,
    /// Where group 0 begins, bytes.
    pub first_group_bytes: u64,
    /// When the snapshot was taken, nanoseconds since 1970, or [`NO_TIME`] for an image or a
    /// simulated file system.
    #[serde(with = "crate::columns::known_time")]
    pub taken_ns: i64,
    /// Whether [`Snapshot::free`] holds all that is free.
    pub free_map: bool,
    /// Files that vanished while the snapshot was taken.
    pub vanished: u64,
    /// Files that changed meanwhile.
    pub changed: u64,
    /// Files that could not be read.
    pub unreadable: u64,
    /// What else the file system says of itself, by name.
    pub parameters: BTreeMap<String, String>,
}

/// A file system at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// The file system.
    pub facts: FileSystemFacts,
    /// Its files, directories and links, ascending by inode.
    pub files: Vec<SnapshotFile>,
    /// Names of [`Snapshot::files`], one each, if they were asked for.
    pub names: Option<Vec<Vec<u8>>>,
    /// The extents of all files, those of one side by side.
    pub extents: Vec<Extent>,
    /// What is free.
    pub free: Vec<FreeExtent>,
}

impl Snapshot {
    /// The extents of `file`.
    ///
    /// # Panics
    /// If `file` is of another snapshot.
    #[must_use]
    pub fn extents_of(&self, file: &SnapshotFile) -> &[Extent] {
        let first = file.first_extent as usize;
        &self.extents[first..first + file.extents as usize]
    }
}
