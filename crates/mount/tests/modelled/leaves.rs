//! What describes files that follow one another is read in few waits, wherever it lies.

use agewell_core::{RandomStreams, uniform_below};
use agewell_fs::Changes;
use agewell_store::device::ModelledDisk;

use crate::{Fs, NOW, empty, make_files, opened};

const FILES: u64 = 20_000;

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
    let (disk, file_system) = empty("seagate-st2000dm006");
    let inodes = make_files(&file_system, FILES);
    // No two neighbours lie beside one another, and much lies between.
    let mut random = RandomStreams::new(3).stream("files");
    let data = vec![7; 1 << 18];
    for batch in 0..250 {
        for _ in 0..8 {
            let inode = inodes[uniform_below(&mut random, FILES) as usize];
            let changes = Changes { modified: Some(NOW), ..Changes::default() };
            file_system.set_attributes(inode, &changes, NOW).unwrap();
        }
        file_system.write(inodes[0], batch << 18, &data, false, NOW).unwrap();
        file_system.sync().unwrap();
    }
    drop(file_system);
    // One of a leaf each time, in a row; and further apart than leaves are that are foreseen.
    let in_row_ns = look_ns(&disk, &opened(&disk), &inodes, 20);
    let apart_ns = look_ns(&disk, &opened(&disk), &inodes, 400);
    assert!(in_row_ns * 5 < apart_ns * 2, "{in_row_ns} ns a leaf in a row, {apart_ns} ns apart");
}
