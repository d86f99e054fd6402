//! Where aging workloads come from, and their files.
//!
//! A workload is a stream of [`Operation`]s that keeps the rules of [`crate::operation`], and its
//! [`WorkloadFacts`]. A source pushes operations through a [`OperationWriter`], which numbers files and
//! directories, keeps the rules and counts, into any [`OperationSink`]: a [`WorkloadWriter`] makes
//! a file of them, a `Vec` keeps them in memory. [`WorkloadReader`] reads a file back and checks
//! every rule again, because a file may be mangled.
//!
//! | source | from |
//! |---|---|
//! | [`git`] | the first-parent history of a repository on disk |
//! | [`oplist`] | such a history as a list of operations |
//! | [`profile`] | distributions of sizes, ages and depths |
//! | [`snapshots`] | what changed between snapshots of a file system |
//! | [`trace`] | a trace of file operations |
//! | [`smith_1996`] | the published facts of the workload of 1996 |
//!
//! The same parameters and seed give the same operations and the same bytes of the file.

mod by_keys;
mod day_mixer;
mod draws;
mod facts;
mod file;
pub mod git;
mod history;
mod live_set;
mod operation_writer;
pub mod oplist;
pub mod profile;
mod quantity;
mod request;
pub mod short_lived;
#[cfg(test)]
mod slow_rules;
pub mod smith_1996;
pub mod snapshots;
#[cfg(test)]
mod tests;
pub mod trace;

pub use day_mixer::{Allocation, DayChange, DayEvent, DayMixer};
pub use facts::{SourceFacts, WorkloadFacts};
pub use file::{WorkloadReader, WorkloadWriter};
pub use history::{HistoryParameters, Rewrite};
pub use live_set::{BrokenRule, LiveSet};
pub use operation_writer::{OperationSink, OperationWriter};
pub use request::WorkloadRequest;

#[cfg(doc)]
use crate::Operation;
