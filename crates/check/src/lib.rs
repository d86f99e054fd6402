//! Reads, checks and salvages stores, from their format alone.
//!
//! `docs/internals/format.md` is what this crate is written from; it shares no code with what writes a
//! store, so that the two can be held against each other. Whatever the bytes are, it ends, does not
//! panic, and takes no more memory than the image has room for structures.
//!
//! [`check`] reads a store as any reader does and names all that is wrong; [`summary`] says how large and
//! how full it is; [`salvage`] copies out what is intact.

mod bytes;
mod candidates;
mod checking;
mod checksum;
mod data;
mod findings;
mod geometry;
mod groups;
mod image;
mod inline_records;
mod map;
mod numbers;
mod ring;
mod root;
mod salvaging;
mod summary;
mod superblock;

pub use checking::{CheckError, CheckOptions, Checked, Progress, check};
pub use findings::{Blocks, Finding, Severity, Structure};
pub use geometry::Geometry;
pub use image::{FileImage, Image};
pub use map::{Entry, Map};
pub use salvaging::{
    BlockStatus, SalvageError, Salvaged, SalvagedBlock, salvage, salvage_to_files,
};
pub use summary::{Summary, summary};

/// No slot, no block: all bits set.
pub const NONE: u32 = u32::MAX;
