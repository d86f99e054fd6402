//! Simulation: the only crate that joins workloads, caches, layouts, remapping, queues and devices.
//!
//! [`Experiment`] is what to run, [`run()`] runs it, [`Outcome::write`] keeps the result.
//! The event loop is in [`replay`], what it counts in [`metrics`].

pub mod block_host;
pub mod cache;
pub mod config;
mod error;
pub mod file_host;
mod load;
pub mod metrics;
pub mod prefetch;
pub mod remap;
pub mod replay;
pub mod result;
mod run;
mod source;
pub mod synthetic;

pub use error::RunError;
pub use load::OfferedLoad;
pub use run::{Experiment, Outcome, Places, load_device, require_writes_anywhere, run};
