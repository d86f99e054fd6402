//! Measures a disk by reading it, and writes a device file of what it found.
//!
//! Three parts, apart from each other. [`ProbedDisk`] is what is measured: a block device or a file
//! ([`RealDisk`]), or any modelled device on a virtual clock ([`ModelledDisk`]). `measure` decides what to
//! read next and reads it. `estimate` makes numbers of what was seen: plain functions over addresses
//! and times, which know no disk.
//!
//! The one fact that everything about an arm follows from: a read from the medium ends when its last
//! sector has passed the heads, however they came there. The end of a read modulo the time of a turn is
//! therefore the angle of its sector.

mod check;
mod disk;
mod estimate;
mod fit;
mod measure;
mod modelled;
mod probe;
#[cfg(target_os = "linux")]
mod real;

pub use check::{Difference, Uncertainty};
pub use disk::{Answer, DiskFacts, Extent, ProbeError, ProbedDisk, WritableArea};
pub use modelled::{Disturbance, ModelledDisk};
pub use probe::{Class, Probe, ProbeOptions, probe};
#[cfg(target_os = "linux")]
pub use real::RealDisk;
