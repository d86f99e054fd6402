//! Simulation: the only crate that joins workloads, caches, layouts, remapping, queues and devices.
//!
//! [`Experiment`] is what to run, [`run()`] runs it, [`Outcome::write`] keeps the result.
//! The event loop is in [`open_loop::replay`], what it counts in [`metrics`].

pub mod cache;
mod calibrate;
pub mod config;
mod drive;
mod error;
mod experiment;
pub mod file_host;
mod host;
pub mod metrics;
pub mod open_loop;
mod places;
pub mod prefetch;
pub mod result;
pub mod waiting_replay;

pub use drive::load::{load_device, require_writes_anywhere};
pub use error::RunError;
pub use experiment::{Experiment, Outcome, Policies, run, run_with};
pub use places::{Places, resolve_path};
