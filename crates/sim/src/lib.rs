//! Simulation: the only crate that joins traces, remapping, queues and devices.
//!
//! [`config::Experiment`] is what to run, [`run()`] runs it, [`Outcome::write`] keeps the result.
//! The event loop is in [`replay`], what it counts in [`metrics`].

pub mod config;
mod error;
pub mod metrics;
pub mod remap;
pub mod replay;
pub mod result;
mod run;
mod source;
pub mod synthetic;

pub use error::RunError;
pub use run::{Outcome, Places, run};
