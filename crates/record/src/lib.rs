//! Block requests of a live system, from the kernel's trace buffers into a trace.
//!
//! The kernel writes an event for each piece of a request that is queued, for each request that is
//! issued to the device and for each that is completed, into a buffer of the processor where it
//! happens. `tracefs` reads those buffers as they are; `page` takes their pages apart, `format` and
//! `decode` their records; `merge` puts the processors' events in order, and the pairing of
//! `agewell-trace` makes requests of them. No program runs in the kernel and no text is made.
//!
//! This crate knows neither disks nor simulations.

#![cfg(target_os = "linux")]

pub mod buffer_size;
pub mod decode;
mod device;
mod encoder;
mod error;
pub mod format;
mod latencies;
mod losses;
pub mod merge;
mod naming;
pub mod page;
pub mod places;
mod processes;
mod recorder;
mod tracefs;

pub use device::{Counters, Disk};
pub use error::RecordError;
pub use recorder::{Phase, Progress, RecordOptions, Recording, record};
