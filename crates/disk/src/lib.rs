//! Disk models, queue disciplines, the device catalogue, and validation against measured drives.
//!
//! Knows nothing of traces, file systems or the simulator: requests come in as [`agewell_core::BlockRequest`].

mod device;
mod error;
pub mod geometry;
pub mod import;
mod mechanical;
mod model;
pub mod parameters;
pub mod queue;
mod simple;
pub mod validation;

pub use device::{Device, Service};
pub use error::DeviceError;
pub use mechanical::Mechanical;
pub use model::DeviceModel;
pub use parameters::{DeviceKind, DeviceParameters, catalogue_names};
pub use simple::Simple;
