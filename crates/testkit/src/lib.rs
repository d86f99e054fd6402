//! Slow, plain reference models for tests. A development dependency only.
//!
//! Each is written to be read rather than to run: one obvious step at a time, no cleverness shared
//! with the code it checks.

mod bytes;
mod crash_disk;
mod draws;
mod garbage_log;
mod replay;
mod seeded;

pub use bytes::set_byte;
pub use crash_disk::{CrashDisk, Durable, Version};
pub use draws::zipf_draws;
pub use garbage_log::{ReferenceLog, ReferencePolicy, ReferenceSegment, ReferenceVictim};
pub use replay::{Served, reference_replay};
pub use seeded::{Look, caught, every_fault_is_found};
