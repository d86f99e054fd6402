//! A crash-safe log-structured store of blocks, and the devices that it lies on.
//!
//! `docs/internals/format.md` says what lies where. [`device`] is the seam to whatever keeps the bytes.

mod engine;
mod error;
mod format;
mod group;
mod medium;
mod recovery;
mod store;

pub mod device;

pub use error::StoreError;
pub use format::{FormatOptions, Geometry};
pub use medium::MediumCounts;
pub use store::{OpenOptions, Opened, Store, Transaction};
