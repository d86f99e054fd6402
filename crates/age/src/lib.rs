//! Snapshots of file systems, layout metrics, aging workloads, and their replay onto a target.
//!
//! A [`Snapshot`] says what a file system holds and where; `source` takes one from a mounted file
//! system or from an image, `score` measures it. An [`Operation`] is one step of an aging workload;
//! `workload` makes them, a [`Target`] applies them, and `replay` drives a target by a workload.
//!
//! This crate stands on the simulator and knows nothing of Python.

pub mod benchmark;
mod error;
pub mod experiment;
pub mod operation;
mod path_text;
pub mod replay;
pub mod score;
pub mod simulated_layout;
pub mod snapshot;
pub mod source;
mod table_file;
pub mod target;
pub mod workload;

pub use error::AgeError;
pub use operation::{Action, Operation};
pub use snapshot::{
    Extent, ExtentFlags, FileKind, FileSystemFacts, FreeExtent, NO_TIME, Snapshot, SnapshotFile,
};
pub use table_file::{TableKind, TableReader, TableWriter};
pub use target::{LayoutCounts, Outcome, Target, Usage};
