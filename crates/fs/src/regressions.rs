//! What was wrong once, and what damage must not do.

use std::sync::Arc;

use agewell_store::device::MemoryDisk;
use agewell_store::{FormatOptions, OpenOptions, Store};
use rustix::io::Errno;

use crate::{
    Allocation, Caller, Changes, FileSystem, FsError, MakeOptions, MountOptions, New, ROOT_INODE,
    Rename, Time, check, inodes,
};

const NOW: Time = Time { seconds: 1, nanoseconds: 0 };

fn store(segment_blocks: u32) -> Store<MemoryDisk> {
    let disk = MemoryDisk::new(16 << 20);
    let options =
        FormatOptions { segment_blocks, block_bytes: 1024, ..FormatOptions::new([7; 16]) };
    Store::format(&disk, &options).unwrap();
    Store::open(disk, &OpenOptions::default()).unwrap()
}

fn made() -> FileSystem<MemoryDisk> {
    let store = store(256);
    FileSystem::make(&store, &MakeOptions::default()).unwrap();
    FileSystem::open(Arc::new(store), &MountOptions { cache_bytes: 0, ..MountOptions::default() })
        .unwrap()
}

fn make(fs: &FileSystem<MemoryDisk>, parent: u64, name: &str, mode: u32) -> u64 {
    let new = New { mode, device: 0, target: b"" };
    fs.make_file(parent, name.as_bytes(), &new, &Caller::default()).unwrap().inode
}

/// Only changes let nodes go: reading a large tree kept all of it in memory.
#[test]
fn memory_is_bounded_when_nothing_changes() {
    let fs = made();
    let files: Vec<u64> = (0..4000)
        .map(|number| make(&fs, ROOT_INODE, &format!("{number:0200}"), 0o100_644))
        .collect();
    fs.sync().unwrap();
    let fs = FileSystem::open(
        fs.close().unwrap(),
        &MountOptions { cache_bytes: 0, ..MountOptions::default() },
    )
    .unwrap();
    for inode in files {
        fs.attributes(inode).unwrap();
        fs.lookup(ROOT_INODE, format!("{:0200}", inode % 4000).as_bytes()).ok();
    }
    let nodes = fs.core().blocks.nodes();
    assert!(nodes < 300, "{nodes} nodes are in memory");
}

/// It was listed twice, and the second time nothing that followed it went any more.
#[test]
fn a_file_may_be_let_go_twice() {
    let fs = made();
    for name in ["one", "other"] {
        let file = make(&fs, ROOT_INODE, name, 0o100_644);
        for block in 0..60 {
            fs.write(file, block * 2048, &[1; 1024], false, NOW).unwrap();
        }
        fs.unlink(ROOT_INODE, name.as_bytes(), NOW).unwrap();
        fs.let_go(file);
        fs.let_go(file);
        while fs.work().unwrap() {}
        assert_eq!(fs.attributes(file).unwrap_err().errno(), Errno::NOENT);
    }
    assert!(check(&fs.close().unwrap(), &crate::CheckOptions::default()).unwrap().is_clean());
}

/// What is being removed must not get a name.
#[test]
fn a_file_that_was_let_go_gets_no_name() {
    let fs = made();
    let file = make(&fs, ROOT_INODE, "file", 0o100_644);
    for block in 0..60 {
        fs.write(file, block * 2048, &[1; 1024], false, NOW).unwrap();
    }
    fs.unlink(ROOT_INODE, b"file", NOW).unwrap();
    fs.let_go(file);
    assert_eq!(fs.link(file, ROOT_INODE, b"again", NOW).unwrap_err().errno(), Errno::NOENT);
}

/// The longest attribute fits into a transaction of every store that is taken.
#[test]
fn the_longest_attribute_finds_room_in_the_smallest_store() {
    let refused = (64..200).take_while(|blocks| {
        let made = FileSystem::make(&store(*blocks), &MakeOptions::default());
        matches!(made, Err(FsError::Format(_)))
    });
    let store = store(64 + refused.count() as u32);
    FileSystem::make(&store, &MakeOptions::default()).unwrap();
    let fs = FileSystem::open(Arc::new(store), &MountOptions::default()).unwrap();
    // Between the items of others, so that nodes are cut in their middles.
    let files: Vec<u64> =
        (0..40).map(|number| make(&fs, ROOT_INODE, &format!("{number}"), 0o100_644)).collect();
    for length in [65_536, 65_535, 60_000, 65_536] {
        let value = vec![length as u8; length];
        fs.set_extended_attribute(files[20], (b"user.long", &value), (false, false), NOW).unwrap();
        assert_eq!(fs.extended_attribute(files[20], b"user.long").unwrap(), value);
    }
}

/// Directories that lie in one another, as only damage makes them, end a rename and nothing else.
#[test]
fn directories_within_one_another_are_no_loop() {
    let fs = made();
    let mut folders = vec![make(&fs, ROOT_INODE, "first", 0o040_755)];
    for number in 0..20 {
        folders.push(make(&fs, folders[number], "folder", 0o040_755));
    }
    let other = make(&fs, ROOT_INODE, "other", 0o040_755);
    let mut core = fs.core();
    core.change(|core| {
        let mut inode = inodes::get(core, folders[3])?;
        inode.parent = folders[20];
        inodes::set(core, folders[3], &inode)
    })
    .unwrap();
    drop(core);
    let to = (folders[15], b"moved".as_slice());
    let renamed = fs.rename((ROOT_INODE, b"other"), to, Rename::Replaces, &Caller::default());
    assert_eq!(renamed.unwrap_err().errno(), Errno::IO);
    assert_eq!(fs.lookup(ROOT_INODE, b"other").unwrap().inode, other);
}

/// What lay beyond the end came back when a file grew before all of it was freed.
#[test]
fn a_file_grows_only_when_it_has_become_short() {
    let fs = made();
    let file = make(&fs, ROOT_INODE, "file", 0o100_644);
    for block in 0..60 {
        fs.write(file, block * 2048, &[1; 1024], false, NOW).unwrap();
    }
    // As another thread meets it between two steps.
    let mut core = fs.core();
    assert!(core.change(|core| crate::files::set_size(core, file, 0, false, NOW)).unwrap());
    core.shrinking.insert(file);
    drop(core);
    let changes = Changes { size: Some(100_000), ..Changes::default() };
    fs.set_attributes(file, &changes, NOW).unwrap();
    let mut data = vec![1; 100_000];
    fs.read(file, 0, &mut data).unwrap();
    assert!(data.iter().all(|byte| *byte == 0));
}

/// A block that was no longer shared was freed, and what waited to be written to it was lost.
#[test]
fn a_part_is_written_of_blocks_of_which_some_are_shared() {
    let fs = made();
    let (file, other) =
        (make(&fs, ROOT_INODE, "file", 0o100_644), make(&fs, ROOT_INODE, "other", 0o100_644));
    fs.write(file, 0, &[1; 4096], false, NOW).unwrap();
    fs.write(other, 0, &[2; 4096], false, NOW).unwrap();
    fs.copy((file, 0), (other, 0), 4096, false, NOW).unwrap();
    // One of the blocks is the file's alone again, though its extent says otherwise.
    fs.allocate(other, (1024, 1024), Allocation::Punch, false, NOW).unwrap();
    fs.write(file, 1124, &[3; 1500], false, NOW).unwrap();
    let mut data = vec![0; 4096];
    fs.read(file, 0, &mut data).unwrap();
    let wanted: Vec<u8> = [vec![1; 1124], vec![3; 1500], vec![1; 1472]].concat();
    assert_eq!(data, wanted);
    let space = fs.space().free;
    fs.write(file, 1024, &[4; 1024], false, NOW).unwrap();
    assert_eq!(fs.space().free, space);
}

/// What it had changed and taken back counted as waiting, so that it was begun again without end.
#[test]
fn what_is_too_large_for_a_transaction_is_refused() {
    let fs = made();
    let mut core = fs.core();
    let done = core.change(|core| {
        let mut root = inodes::get(core, ROOT_INODE)?;
        root.uid = 7;
        inodes::set(core, ROOT_INODE, &root)?;
        Err::<(), _>(FsError::Large)
    });
    assert!(matches!(done, Err(FsError::Large)));
    assert_eq!(inodes::get(&mut core, ROOT_INODE).unwrap().uid, 0);
}
