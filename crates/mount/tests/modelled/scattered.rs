//! A file that was written over at random is read in a row in a sweep over the disk.

use std::sync::Arc;

use agewell_core::{RandomStreams, uniform_below};
use agewell_fs::{FileSystem, MountOptions, New, ROOT_INODE};
use agewell_store::device::ModelledDisk;

use crate::{Fs, NOW, caller, empty, store_on};

const FILES: u64 = 6;
const BLOCKS: u64 = 2_400;
const BLOCK: usize = 4096;

/// What the kernel reads ahead.
const READ_BYTES: usize = 128 << 10;

/// Its number, its inode, and the version of each block.
type File = (u64, u64, Vec<u64>);

fn version(file: u64, block: u64, version: u64) -> [u8; BLOCK] {
    let mut data = [0; BLOCK];
    for (at, number) in [file, block, version].into_iter().enumerate() {
        data[8 * at..][..8].copy_from_slice(&number.to_le_bytes());
    }
    data
}

/// Files on a device of the catalogue whose blocks were written over at random, and what they hold.
fn written_over(device: &str) -> (Arc<ModelledDisk>, Vec<File>) {
    let (disk, file_system) = empty(device);
    let new = New { mode: 0o100_644, device: 0, target: b"" };
    let mut files = Vec::new();
    for file in 0..FILES {
        let name = format!("file {file}");
        let made = file_system.make_file(ROOT_INODE, name.as_bytes(), &new, &caller()).unwrap();
        for block in 0..BLOCKS {
            let data = version(file, block, 0);
            file_system.write(made.inode, block * BLOCK as u64, &data, false, NOW).unwrap();
        }
        files.push((file, made.inode, vec![0; BLOCKS as usize]));
    }
    let mut random = RandomStreams::new(5).stream("blocks");
    for number in 1..=2 * FILES * BLOCKS {
        let file = uniform_below(&mut random, FILES);
        let block = uniform_below(&mut random, BLOCKS);
        let (_, inode, versions) = &mut files[file as usize];
        versions[block as usize] = number;
        let data = version(file, block, number);
        file_system.write(*inode, block * BLOCK as u64, &data, false, NOW).unwrap();
        if number % 32 == 0 {
            file_system.sync().unwrap();
        }
    }
    file_system.checkpoint().unwrap();
    file_system.store().leave().unwrap();
    (disk, files)
}

fn mounted(disk: &Arc<ModelledDisk>, read_ahead_bytes: u64) -> Fs {
    let options = MountOptions { read_ahead_bytes, ..MountOptions::default() };
    FileSystem::open(store_on(disk), &options).unwrap()
}

/// Reads the first `bytes` of each of `files`; how long the device takes, ns, and its requests.
fn read(disk: &ModelledDisk, file_system: &Fs, files: &[File], bytes: usize) -> (u64, u64) {
    let (begin_ns, before) = (disk.now().0, disk.spent().reads.requests);
    let mut into = vec![0; READ_BYTES];
    for (file, inode, versions) in files {
        for from in (0..bytes).step_by(READ_BYTES) {
            let read = file_system.read(*inode, from as u64, &mut into).unwrap();
            for (block, data) in (from / BLOCK..).zip(into[..read].chunks_exact(BLOCK)) {
                assert!(data == version(*file, block as u64, versions[block]), "{file} {block}");
            }
        }
    }
    (disk.now().0 - begin_ns, disk.spent().reads.requests - before)
}

#[test]
fn a_scattered_file_that_is_read_in_a_row_is_read_in_a_sweep() {
    let (disk, files) = written_over("seagate-st2000dm006");
    let all = BLOCKS as usize * BLOCK;
    let (one_by_one, _) = read(&disk, &mounted(&disk, 0), &files, all);
    let file_system = mounted(&disk, 64 << 20);
    let (swept, _) = read(&disk, &file_system, &files, all);
    assert!(swept * 10 < one_by_one, "{swept} ns, one by one {one_by_one}");
    // In memory for one of three.
    let (in_parts, _) = read(&disk, &mounted(&disk, 8 << 20), &files, all);
    assert!(in_parts * 2 < one_by_one, "{in_parts} ns, one by one {one_by_one}");
    // What nobody asks for is forgotten.
    read(&disk, &file_system, &files, 4 * READ_BYTES);
    let store = file_system.store();
    assert!(store.forget_unused_sweeps() && !store.forget_unused_sweeps());
}

/// Files that were written in no order, each in places of its own, with more between them than is passed over.
fn written_in_turn(device: &str) -> (Arc<ModelledDisk>, Vec<File>) {
    let (disk, file_system) = empty(device);
    let new = New { mode: 0o100_644, device: 0, target: b"" };
    let make = |name: &str| {
        file_system.make_file(ROOT_INODE, name.as_bytes(), &new, &caller()).unwrap().inode
    };
    let (between, between_bytes) = (make("between"), 288 * BLOCK);
    let file = |number: u64| (number, make(&format!("file {number}")), vec![0; 1_280]);
    let files: Vec<File> = (0..4).map(file).collect();
    for round in 0..20 {
        for (number, inode, _) in &files {
            for at in 64 * round..64 * (round + 1) {
                let block = at * 479 % 1_280;
                let data = version(*number, block, 0);
                file_system.write(*inode, block * BLOCK as u64, &data, false, NOW).unwrap();
            }
            file_system.sync().unwrap();
            let from = (4 * round + number) * between_bytes as u64;
            file_system.write(between, from, &vec![1; between_bytes], false, NOW).unwrap();
        }
    }
    file_system.checkpoint().unwrap();
    file_system.store().leave().unwrap();
    (disk, files)
}

#[test]
fn files_of_a_directory_are_read_with_the_second_of_them() {
    let (disk, files) = written_in_turn("seagate-st2000dm006");
    let [by_themselves, together] = [false, true].map(|are_looked_up| {
        let file_system = mounted(&disk, 64 << 20);
        for number in 0..files.len() {
            if are_looked_up {
                file_system.lookup(ROOT_INODE, format!("file {number}").as_bytes()).unwrap();
            }
        }
        read(&disk, &file_system, &files[..2], 1_280 * BLOCK);
        read(&disk, &file_system, &files[2..], 1_280 * BLOCK)
    });
    assert!(together.1 * 4 < by_themselves.1, "{together:?}, {by_themselves:?}");
}

#[test]
fn who_reads_a_little_waits_hardly_longer() {
    let (disk, files) = written_over("seagate-st2000dm006");
    let [(as_it_is, _), (one_by_one, _)] =
        [64 << 20, 0].map(|bytes| read(&disk, &mounted(&disk, bytes), &files, 2 * READ_BYTES));
    assert!(as_it_is < one_by_one + one_by_one / 100, "{as_it_is} ns, {one_by_one} ns");
}

#[test]
fn a_file_that_is_read_again_and_again_is_swept_each_time() {
    let (disk, files) = written_over("seagate-st2000dm006");
    let file_system = mounted(&disk, 64 << 20);
    let times = [0; 4].map(|_: u64| read(&disk, &file_system, &files, BLOCKS as usize * BLOCK).0);
    assert!(times.iter().all(|time| *time < times[0] + times[0] / 4), "{times:?}");
}

#[test]
fn what_is_written_meanwhile_is_what_is_read() {
    let (disk, mut files) = written_over("seagate-st2000dm006");
    let file_system = mounted(&disk, 64 << 20);
    read(&disk, &file_system, &files[..1], 16 * READ_BYTES);
    for block in (600..BLOCKS).step_by(7) {
        let (_, inode, versions) = &mut files[0];
        versions[block as usize] = block + (1 << 32);
        let data = version(0, block, block + (1 << 32));
        file_system.write(*inode, block * BLOCK as u64, &data, false, NOW).unwrap();
        if block % 96 == 0 {
            file_system.sync().unwrap();
        }
    }
    read(&disk, &file_system, &files, BLOCKS as usize * BLOCK);
}

#[test]
fn nothing_is_swept_where_a_request_costs_little() {
    let (disk, files) = written_over("flash-sata-tlc");
    let [(_, with), (_, without)] = [64 << 20, 0]
        .map(|bytes| read(&disk, &mounted(&disk, bytes), &files, BLOCKS as usize * BLOCK));
    assert_eq!(with, without);
}
