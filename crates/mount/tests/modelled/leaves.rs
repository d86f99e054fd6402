//! What describes files that follow one another is read in few waits, wherever it lies.

use std::sync::Arc;

use agewell_core::{RandomStreams, uniform_below};
use agewell_fs::{Changes, CheckOptions, FileSystem, MountOptions, check};
use agewell_store::device::ModelledDisk;

use crate::{Fs, NOW, empty, make_files, opened, store_on};

const FILES: u64 = 20_000;

/// A file system on a device of the catalogue whose leaves lie apart: no two neighbours beside one another, and
/// much between.
fn scattered(device: &str) -> (Arc<ModelledDisk>, Vec<u64>) {
    let (disk, file_system) = empty(device);
    let inodes = make_files(&file_system, FILES);
    let mut random = RandomStreams::new(3).stream("files");
    let data = vec![7; 1 << 18];
    for batch in 0..250 {
        for _ in 0..8 {
            let inode = inodes[uniform_below(&mut random, FILES) as usize];
            let changes = Changes { modified: Some(NOW), ..Changes::default() };
            file_system.set_attributes(inode, &changes, NOW).unwrap();
        }
        file_system.write(inodes[0], batch << 18, &data, false, NOW).unwrap();
        // The nodes themselves, and not what has changed in them.
        file_system.checkpoint().unwrap();
        file_system.sync().unwrap();
    }
    (disk, inodes)
}

/// Looks at every `step`-th of `inodes`; how long the device takes for each, ns.
fn look_ns(disk: &ModelledDisk, file_system: &Fs, inodes: &[u64], step: usize) -> u64 {
    let begin_ns = disk.now().0;
    let looked = inodes.iter().step_by(step);
    let count = looked.len() as u64;
    looked.for_each(|inode| assert_eq!(file_system.attributes(*inode).unwrap().inode, *inode));
    (disk.now().0 - begin_ns) / count
}

#[test]
fn leaves_that_are_read_in_a_row_are_read_together() {
    let (disk, inodes) = scattered("seagate-st2000dm006");
    // One of a leaf each time, in a row; and further apart than leaves are that are foreseen.
    let in_row_ns = look_ns(&disk, &opened(&disk), &inodes, 20);
    let apart_ns = look_ns(&disk, &opened(&disk), &inodes, 400);
    assert!(in_row_ns * 5 < apart_ns * 2, "{in_row_ns} ns a leaf in a row, {apart_ns} ns apart");
}

/// A mount with as many nodes in memory as usual, in which every file is looked at in no order; the requests that
/// takes, and how many nodes were put together at its end.
fn mounted(disk: &Arc<ModelledDisk>, inodes: &[u64]) -> (u64, u64) {
    let file_system = FileSystem::open(store_on(disk), &MountOptions::default()).unwrap();
    let before = disk.spent().reads.requests;
    for at in 0..FILES {
        let inode = inodes[(at * 7919 % FILES) as usize];
        assert_eq!(file_system.attributes(inode).unwrap().inode, inode);
    }
    let requests = disk.spent().reads.requests - before;
    let moved = file_system.put_nodes_together().unwrap();
    file_system.store().leave().unwrap();
    file_system.store().verify();
    let checked = check(file_system.store(), &CheckOptions::default()).unwrap();
    assert!(checked.findings.is_empty(), "{checked:?}");
    (requests, moved)
}

#[test]
fn nodes_that_a_mount_has_read_one_by_one_are_read_together_by_the_next() {
    let (disk, inodes) = scattered("seagate-st2000dm006");
    let (first, moved) = mounted(&disk, &inodes);
    assert!(moved > first / 2, "{moved} nodes moved, {first} requests");
    let (next, moved_again) = mounted(&disk, &inodes);
    assert!(next * 5 < first, "{first} requests, then {next}");
    assert_eq!(moved_again, 0);
}

#[test]
fn nothing_is_moved_where_a_request_costs_little() {
    let (disk, inodes) = scattered("flash-sata-tlc");
    let (_, moved) = mounted(&disk, &inodes);
    assert_eq!(moved, 0);
}
