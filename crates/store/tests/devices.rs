//! Every device, held against a plain vector of bytes.

#[path = "devices/plain.rs"]
mod plain;

#[path = "devices/memory.rs"]
mod memory;

#[path = "devices/crash.rs"]
mod crash;

#[path = "devices/fault.rs"]
mod fault;
