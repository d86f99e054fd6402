//! File systems on modelled devices, whose clock says what the device takes.

mod files;
mod leaves;
mod regrouping;
mod scattered;

use std::path::Path;
use std::sync::Arc;

use agewell_disk::DeviceParameters;
use agewell_fs::{Caller, FileSystem, MakeOptions, MountOptions, New, ROOT_INODE, Time};
use agewell_store::device::ModelledDisk;
use agewell_store::{FormatOptions, OpenOptions, Store};

pub(crate) const NOW: Time = Time { seconds: 1, nanoseconds: 0 };

pub(crate) type Fs = FileSystem<Arc<ModelledDisk>>;

pub(crate) fn caller() -> Caller {
    Caller { uid: 0, gid: 0, mask: 0o22, now: NOW }
}

/// An empty one on 128 MiB of a device of the catalogue.
pub(crate) fn empty(device: &str) -> (Arc<ModelledDisk>, Fs) {
    let catalogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices");
    let parameters = DeviceParameters::find(device, &catalogue).unwrap();
    let disk = Arc::new(ModelledDisk::new(&parameters).with_size(128 << 20));
    let format = FormatOptions { segment_blocks: 256, ..FormatOptions::new([3; 16]) };
    Store::format(&Arc::clone(&disk), &format).unwrap();
    let store = store_on(&disk);
    FileSystem::make(&store, &MakeOptions { caller: caller(), ..MakeOptions::default() }).unwrap();
    drop(store);
    let file_system = opened(&disk);
    (disk, file_system)
}

/// The store on `disk`.
pub(crate) fn store_on(disk: &Arc<ModelledDisk>) -> Arc<Store<Arc<ModelledDisk>>> {
    Arc::new(Store::open(Arc::clone(disk), &OpenOptions::default()).unwrap())
}

/// The file system on `disk`, of which nothing is in memory and hardly any nodes stay there.
pub(crate) fn opened(disk: &Arc<ModelledDisk>) -> Fs {
    FileSystem::open(store_on(disk), &MountOptions { cache_bytes: 1, ..MountOptions::default() })
        .unwrap()
}

/// `files` empty files; their inodes.
pub(crate) fn make_files(file_system: &Fs, files: u64) -> Vec<u64> {
    let new = New { mode: 0o100_644, device: 0, target: b"" };
    let make = |number: u64| {
        let name = format!("file {number}");
        file_system.make_file(ROOT_INODE, name.as_bytes(), &new, &caller()).unwrap().inode
    };
    (0..files).map(make).collect()
}
