//! The file system, mounted: what the kernel asks for, answered by `crates/fs` on a store.

mod durable;
mod lookups;
mod mounted;

pub mod commands;

pub use mounted::Mounted;
