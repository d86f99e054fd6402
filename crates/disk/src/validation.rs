//! Validation of a disk model against measured response times.

pub mod demerit;
pub mod replay;
