//! A crash-safe log-structured store of blocks, and the devices that it lies on.
//!
//! `docs/internals/format.md` says what lies where. [`device`] is the seam to whatever keeps the bytes.

pub mod device;
