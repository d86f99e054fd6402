//! Disk models, queue disciplines, the device catalogue, and validation against measured drives.
//!
//! Knows nothing of traces, file systems or the simulator: requests come in as [`agewell_core::BlockRequest`].

mod device;
pub mod queue;

pub use device::{Device, Service};
