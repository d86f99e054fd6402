//! Snapshots of file systems, layout metrics, aging workloads, and their replay onto a target.
//!
//! A [`Snapshot`] says what a file system holds and where; `source` takes one from a mounted file
//! system or from an image, `score` measures it. An [`Operation`] is one step of an aging workload;
//! `workload` makes them, a [`Target`] applies them, and `replay` drives a target by a workload.
//!
//! This crate stands on the simulator and knows nothing of Python.

pub mod benchmark;
pub mod experiment;
pub mod onto;
pub mod operation;
mod path_text;
pub mod replay;
pub mod simulated_layout;
pub mod workload;

pub use agewell_snapshot::{
    Extent, ExtentFlags, FileKind, FileSystemFacts, FreeExtent, LayoutCounts, NO_TIME, Snapshot,
    SnapshotError as AgeError, SnapshotFile, TableKind, TableReader, TableWriter, score, source,
};
pub use onto::{Outcome, Target, Usage};
pub use operation::{Action, Operation};
