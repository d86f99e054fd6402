//! Layouts: where a file system puts its blocks on the disk, and what it moves there later.
//!
//! A layout knows neither clock nor disk. It receives writes, reads and deletions, and answers with
//! transfers of blocks; its driver decides what those cost.

pub mod block_layout;
pub mod early_unix;
pub mod ffs;
pub mod file_system;
pub mod file_system_blocks;
pub mod log_file_system;
mod log_layout;
pub mod reorganise;
pub mod reorganising_log;
pub mod sequential;
#[cfg(test)]
mod taken;
pub mod write_ahead;
pub mod write_anywhere;
pub mod write_buffers;
