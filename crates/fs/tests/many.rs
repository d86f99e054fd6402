//! Many files in one directory.

use std::sync::Arc;

use agewell_fs::{Caller, FileSystem, MakeOptions, MountOptions, New, ROOT_INODE};
use agewell_store::device::MemoryDisk;
use agewell_store::{FormatOptions, OpenOptions, Store};
use rustix::fs::FileType;

fn made() -> FileSystem<MemoryDisk> {
    let disk = MemoryDisk::new(256 << 20);
    Store::format(&disk, &FormatOptions::new([7; 16])).unwrap();
    let store = Arc::new(Store::open(disk, &OpenOptions::default()).unwrap());
    FileSystem::make(&store, &MakeOptions::default()).unwrap();
    FileSystem::open(store, &MountOptions::default()).unwrap()
}

#[test]
fn each_of_many_files_is_found() {
    let file_system = made();
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

/// Other file systems count to 65,000 (`ext4`, of names) or 65,535.
#[test]
fn a_directory_has_many_directories_and_a_file_many_names() {
    const MANY: u32 = 66_000;
    let file_system = made();
    let (caller, now) = (Caller::default(), Caller::default().now);
    let new =
        |file_type: FileType| New { mode: file_type.as_raw_mode() | 0o755, device: 0, target: b"" };
    let make = |parent, name: &str, file_type| {
        file_system.make_file(parent, name.as_bytes(), &new(file_type), &caller).unwrap().inode
    };
    let file = make(ROOT_INODE, "file", FileType::RegularFile);
    let directories = make(ROOT_INODE, "directories", FileType::Directory);
    let names = make(ROOT_INODE, "names", FileType::Directory);
    for number in 0..MANY {
        let name = number.to_string();
        make(directories, &name, FileType::Directory);
        file_system.link(file, names, name.as_bytes(), now).unwrap();
    }
    assert_eq!(file_system.attributes(directories).unwrap().links, MANY + 2);
    assert_eq!(file_system.attributes(file).unwrap().links, MANY + 1);
}
