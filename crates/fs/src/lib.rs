//! A file system on a crash-safe log-structured store.
//!
//! Operations are those of POSIX, on inodes by number; whoever has them called (a kernel, a test) is not
//! known here. Each is all or nothing, and a crash leaves whole operations in their order, up to the last
//! [`sync`](FileSystem::sync) at least.

#![cfg(target_os = "linux")]

pub mod access_list;
mod attributes;
mod blocks;
mod check;
mod core;
mod directory;
mod error;
mod extents;
mod file_system;
mod files;
mod files_ahead;
mod format;
mod inodes;
mod journal;
mod layout;
mod leaves_ahead;
mod memory;
mod namespace;
mod node;
mod node_delta;
mod nodes_together;
mod numbers;
mod observed;
mod orphans;
#[cfg(test)]
mod regressions;
mod scattered;
mod scrubbing;
mod seeded;
mod sharing;
mod together;
mod traced;
mod tree;

pub use check::{
    CheckOptions, Checked, Finding, Problem, Repaired, Salvage, Salvaged, check, repair, salvage,
};
pub use error::FsError;
pub use file_system::{FileSystem, MakeOptions, MountOptions, Space};
pub use files::{Allocation, SeekTo};
pub use format::{FILE_BYTES_MAX, NAME_BYTES_MAX, ROOT_INODE, Time};
pub use inodes::{Attributes, Changes};
pub use journal::Journaled;
pub use layout::Laid;
pub use namespace::{Caller, DirectoryEntry, New, Rename};
pub use observed::{Observed, PIECE_BLOCKS, Unit, UnitRead};
pub use scattered::SweepDue;
#[cfg(feature = "seeded-faults")]
pub use seeded::SeededFault;
pub use traced::{Asked, Request};
