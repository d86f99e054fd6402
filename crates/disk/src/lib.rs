//! Disk models, queue disciplines, the device catalogue, and validation against measured drives.
//!
//! Knows nothing of traces, file systems or the simulator: requests come in as [`agewell_core::BlockRequest`].

mod command_queue;
mod device;
mod error;
mod flash;
pub mod geometry;
pub mod import;
mod mechanical;
mod model;
pub mod parameters;
pub mod queue;
mod simple;
pub mod validation;
mod zoned;

pub use device::{Device, LayoutAdvice, Moment, Refused, Service, WriteRule};
pub use error::DeviceError;
pub use flash::{Flash, FlashCounts};
pub use mechanical::Mechanical;
pub use model::DeviceModel;
pub use parameters::{DeviceKind, DeviceParameters, Medium, catalogue_names};
pub use simple::Simple;
pub use zoned::{Zoned, ZonedCounts};
