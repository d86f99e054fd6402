//! A file system in memory, mounted: what the kernel makes of the answers. Needs root and `/dev/fuse`.
//!
//! Skipped tests say why.

#![allow(clippy::print_stdout, reason = "a skipped test says why")]

#[path = "../../examples/memory/contents.rs"]
mod contents;
#[path = "../../examples/memory/in_memory.rs"]
mod in_memory;
#[path = "../../examples/memory/tree.rs"]
mod tree;

mod by_kernel;
mod ends;
mod files;
mod names;
mod place;
