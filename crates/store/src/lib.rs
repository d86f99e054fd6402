//! A crash-safe log-structured store of blocks, and the devices that it lies on.
//!
//! `docs/internals/format.md` says what lies where. [`device`] is the seam to whatever keeps the bytes.

mod engine;
mod error;
mod format;
mod group;
mod learning;
mod medium;
mod options;
mod recovery;
mod seeded;
mod store;
mod zones;

pub mod device;
pub mod replay;

pub use error::StoreError;
pub use format::{FormatOptions, Geometry};
pub use medium::MediumCounts;
pub use options::{Means, OpenOptions};
#[cfg(feature = "seeded-faults")]
pub use seeded::SeededFault;
pub use store::{Opened, Store, Transaction};
