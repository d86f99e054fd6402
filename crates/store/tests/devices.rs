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

#[path = "devices/overlay.rs"]
mod overlay;

#[path = "devices/recorder.rs"]
mod recorder;

#[path = "devices/file.rs"]
mod file;

/// A store has threads: all that it may lie on is shared by them.
#[test]
fn every_device_is_shared_by_threads() {
    use agewell_core::SimTime;
    use agewell_store::device::{
        CrashDisk, CrashState, CrashStates, FaultDisk, FileDisk, MemoryDisk, ModelledDisk,
        OverlayDisk, Recording, RecordingDisk,
    };
    fn shared<T: Send + Sync>() {}
    shared::<MemoryDisk>();
    shared::<FileDisk>();
    shared::<ModelledDisk>();
    shared::<OverlayDisk<MemoryDisk>>();
    shared::<RecordingDisk<ModelledDisk, fn() -> SimTime>>();
    shared::<(CrashDisk, Recording, CrashStates, CrashState)>();
    shared::<FaultDisk<CrashDisk>>();
}
