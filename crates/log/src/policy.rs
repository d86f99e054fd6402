//! Decisions of a log-structured file system, apart from everything that carries them out.
//!
//! A policy sees counts, ages and costs and answers with a choice. It does no I/O, reads no clock,
//! and draws no random number that it was not given, so that a real file system can use it as it is.

pub mod cost;
pub mod mechanism;
pub mod placement;
pub mod victim;
pub mod victim_policy;
