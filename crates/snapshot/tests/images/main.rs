//! Images made by the tools of their own file systems, read by ours: what we say of them is held
//! against what `debugfs`, `dumpe2fs`, `e2freefrag` and the kernel say.
//!
//! A test that lacks a tool or a right says so and passes.

mod damage;
mod ext;
mod tools;
mod ufs;
