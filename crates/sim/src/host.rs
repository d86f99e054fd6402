//! The host above a layout of blocks: what happens to a file request before it reaches the layout,
//! and where file requests come from.

pub(crate) mod block_host;
mod file_blocks;
mod file_trace;
pub(crate) mod kept_requests;
mod numbers;
pub(crate) mod read_ahead;
mod single_reads;
pub(crate) mod throughput;
mod updates;
pub(crate) mod workload;
