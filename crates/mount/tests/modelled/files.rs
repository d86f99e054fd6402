//! Small files that came into a directory at about the same time are read in few waits, wherever they lie.

use std::sync::Arc;

use agewell_fs::{FileSystem, MountOptions, New, ROOT_INODE};
use agewell_store::device::ModelledDisk;

use crate::{Fs, NOW, caller, empty, store_on};

const DIRECTORIES: u64 = 8;
const FILES: u64 = 400;

/// More than has room in a node.
const FILE_BYTES: usize = 3_000;

fn name(number: u64) -> String {
    format!("{number}")
}

/// A file system on a device of the catalogue whose directories have got a file each in turn, and the inode of one
/// of the directories. The rest of the device is empty, and none of it is in memory.
fn in_turn(device: &str) -> (Arc<ModelledDisk>, Fs, u64) {
    let (disk, file_system) = empty(device);
    let new = |mode| New { mode, device: 0, target: b"" };
    let directories: Vec<u64> = (0..DIRECTORIES)
        .map(|number| {
            let name = name(number);
            let made =
                file_system.make_file(ROOT_INODE, name.as_bytes(), &new(0o040_755), &caller());
            made.unwrap().inode
        })
        .collect();
    let between = vec![1; 1 << 18];
    for number in 0..FILES {
        for directory in &directories {
            let made = file_system.make_file(
                *directory,
                name(number).as_bytes(),
                &new(0o100_644),
                &caller(),
            );
            let data = [number as u8; FILE_BYTES];
            file_system.write(made.unwrap().inode, 0, &data, false, NOW).unwrap();
        }
        // What lies between is read with them where it is little.
        file_system.write(made_between(&file_system), number << 18, &between, false, NOW).unwrap();
        file_system.sync().unwrap();
    }
    drop(file_system);
    let file_system = FileSystem::open(store_on(&disk), &MountOptions::default()).unwrap();
    (disk, file_system, directories[0])
}

/// A large file, which is there or is made.
fn made_between(file_system: &Fs) -> u64 {
    let new = New { mode: 0o100_644, device: 0, target: b"" };
    let found = file_system.lookup(ROOT_INODE, b"between");
    found.or_else(|_| file_system.make_file(ROOT_INODE, b"between", &new, &caller())).unwrap().inode
}

/// Reads the files `numbers` of `directory` one after another: what that takes of the device, ns, and bytes
/// and requests.
fn read(disk: &ModelledDisk, file_system: &Fs, directory: u64, numbers: &[u64]) -> (u64, u64, u64) {
    let (begin_ns, before) = (disk.now().0, disk.spent().reads);
    for number in numbers {
        let inode = file_system.lookup(directory, name(*number).as_bytes()).unwrap().inode;
        let mut into = [0; 4096];
        assert_eq!(file_system.read(inode, 0, &mut into).unwrap(), FILE_BYTES);
        assert_eq!(into[..FILE_BYTES], [*number as u8; FILE_BYTES]);
    }
    let after = disk.spent().reads;
    (disk.now().0 - begin_ns, after.bytes - before.bytes, after.requests - before.requests)
}

/// In the order of their names, 10 before 2; and each far from the one before.
fn orders() -> [Vec<u64>; 2] {
    let mut by_name: Vec<u64> = (0..FILES).collect();
    by_name.sort_by_key(|number| name(*number));
    [by_name, (0..FILES).map(|number| number * 149 % FILES).collect()]
}

#[test]
fn files_that_are_read_in_the_order_of_their_names_are_read_together() {
    let [(by_name, again), (apart, _)] = orders().map(|order| {
        let (disk, file_system, directory) = in_turn("seagate-st2000dm006");
        // What was read ahead is in memory once.
        [(); 2].map(|()| read(&disk, &file_system, directory, &order)).into()
    });
    assert!(again.0 * 3 < apart.0 * 2, "{again:?}, {apart:?}");
    assert!(by_name.0 * 3 < apart.0 * 2, "{by_name:?}, {apart:?}");
    // Hardly anything is read in vain.
    assert!(by_name.1 < apart.1 + apart.1 / 4, "{by_name:?}, {apart:?}");
}

#[test]
fn files_are_read_one_by_one_where_a_request_costs_little() {
    let [by_name, _] = orders();
    let (disk, file_system, directory) = in_turn("flash-sata-tlc");
    let (_, _, requests) = read(&disk, &file_system, directory, &by_name);
    assert!(requests >= FILES, "{requests}");
}
