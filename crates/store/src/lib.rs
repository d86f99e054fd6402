//! A crash-safe log-structured store of blocks, and the devices that it lies on.
//!
//! `docs/internals/format.md` says what lies where. [`device`] is the seam to whatever keeps the bytes.

mod aligned;
mod collector;
mod commit;
mod engine;
mod error;
mod format;
mod front;
mod group;
mod locks;
mod medium;
mod options;
mod pacing;
mod recovery;
mod seeded;
mod store;
mod sums;

pub mod device;

pub use collector::{Collected, Collector, CollectorOptions};
pub use error::StoreError;
pub use format::{FormatOptions, Geometry};
pub use medium::MediumCounts;
pub use options::{Means, OpenOptions};
#[cfg(feature = "seeded-faults")]
pub use seeded::SeededFault;
pub use store::{Opened, Store, Transaction};
