//! What is read, and in which order: the only part that asks a disk for anything.

pub(crate) mod buffer;
pub(crate) mod class;
pub(crate) mod flash;
pub(crate) mod seeks;
pub(crate) mod session;
pub(crate) mod tracks;
pub(crate) mod writes;
