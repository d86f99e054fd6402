//! A crash-safe log-structured store of blocks, and the devices that it lies on.
//!
//! `docs/internals/format.md` says what lies where. [`device`] is the seam to whatever keeps the bytes.

mod aligned;
mod background;
mod carrier;
mod collector;
mod commit;
mod composed;
mod engine;
mod error;
mod format;
mod front;
mod group;
mod grown;
mod kept_blocks;
mod learning;
mod locks;
#[cfg(target_os = "linux")]
mod making;
mod medium;
mod options;
mod pacing;
mod places;
mod recovery;
mod rotational_delay;
mod scrub;
mod seeded;
mod separation;
mod store;
mod sums;
mod zones;

pub mod device;
pub mod replay;

pub use agewell_log::policy::cost::CostModel;
pub use agewell_log::policy::mechanism::Mechanism;

pub use carrier::Carrier;
pub use collector::{Collected, Collector, CollectorOptions};
pub use error::StoreError;
pub use format::{FormatOptions, Geometry};
pub use kept_blocks::KeptBlocks;
#[cfg(target_os = "linux")]
pub use making::{MakeAt, MakeError, make};
pub use medium::MediumCounts;
pub use options::{COLLECTED_LOGS_MAX, Means, OpenOptions, Placement};
pub use rotational_delay::SyncGap;
pub use scrub::{Scrub, Scrubbed};
#[cfg(feature = "seeded-faults")]
pub use seeded::SeededFault;
pub use store::{DevicePiece, Opened, Store, Sweep, Transaction};
