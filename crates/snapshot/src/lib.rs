//! Snapshots of file systems: what they hold and where, and how well it lies.
//!
//! `source` takes a [`Snapshot`] from a mounted file system or from an image, `columns` keeps it in
//! a file, `check` holds it against what every file system promises, `score` measures it.
//!
//! This crate knows neither the simulator nor what ages a file system.

mod check;
pub mod columns;
mod error;
mod layout_counts;
pub mod score;
mod snapshot;
pub mod source;
mod table_file;

pub use error::SnapshotError;
pub use layout_counts::LayoutCounts;
pub use snapshot::{
    Extent, ExtentFlags, FileKind, FileSystemFacts, FreeExtent, NO_TIME, Snapshot, SnapshotFile,
};
pub use table_file::{TableKind, TableReader, TableWriter};
