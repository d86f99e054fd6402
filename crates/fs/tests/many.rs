//! Many files in one directory.

use std::sync::Arc;

use agewell_fs::{Caller, FileSystem, MakeOptions, MountOptions, New, ROOT_INODE};
use agewell_store::device::MemoryDisk;
use agewell_store::{FormatOptions, OpenOptions, Store};
use rustix::fs::FileType;

#[test]
fn each_of_many_files_is_found() {
    let disk = MemoryDisk::new(256 << 20);
    Store::format(&disk, &FormatOptions::new([7; 16])).unwrap();
    let store = Arc::new(Store::open(disk, &OpenOptions::default()).unwrap());
    FileSystem::make(&store, &MakeOptions::default()).unwrap();
    let file_system = FileSystem::open(store, &MountOptions::default()).unwrap();
    let new = New { mode: FileType::RegularFile.as_raw_mode() | 0o644, device: 0, target: b"" };
    let caller = Caller::default();
    let name = |number: u32| format!("file-{number:06}").into_bytes();
    for number in 0..40_000 {
        let made = file_system.make_file(ROOT_INODE, &name(number), &new, &caller).unwrap();
        let found = file_system.lookup(ROOT_INODE, &name(number)).map(|found| found.inode);
        assert_eq!(found.ok(), Some(made.inode), "{number}");
        assert!(file_system.attributes(made.inode).is_ok());
    }
    for number in 0..40_000 {
        let found = file_system.lookup(ROOT_INODE, &name(number));
        assert!(found.is_ok(), "{number}: {found:?}");
    }
}
