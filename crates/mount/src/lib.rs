//! The file system, mounted: what the kernel asks for, answered by `crates/fs` on a store.

#![cfg(target_os = "linux")]

mod durable;
mod grow;
mod latencies;
mod lookups;
mod mounted;
mod regrouper;
mod regrouping;
mod rights;
mod status;
mod sweeper;
mod trace;

pub mod commands;

pub use mounted::Mounted;
pub use regrouping::{Regrouped, Regrouping};
