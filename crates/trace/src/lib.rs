//! Block and file-operation traces.
//!
//! One file per format; every reader is strict, streaming and bounded in memory.

pub mod record;
