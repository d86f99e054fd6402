//! Every device, held against a plain vector of bytes.

#[path = "devices/plain.rs"]
mod plain;

#[path = "devices/memory.rs"]
mod memory;

#[path = "devices/crash.rs"]
mod crash;

#[path = "devices/fault.rs"]
mod fault;

#[path = "devices/modelled.rs"]
mod modelled;

#[path = "devices/recorder.rs"]
mod recorder;

#[path = "devices/file.rs"]
mod file;
