//! The journal: what is in it when a crash comes, and what becomes of it when its blocks are damaged.

use std::collections::BTreeSet;
use std::sync::Arc;

use agewell_fs::{
    Caller, CheckOptions, FileSystem, MountOptions, New, Problem, ROOT_INODE, Rename, check, repair,
};
use agewell_store::device::MemoryDisk;
use agewell_store::{OpenOptions, Transaction};

use super::load::{AnyFileSystem, AnyStore, Shape, open_store};

const DIRECTORIES: usize = 8;

type Names = BTreeSet<Vec<u8>>;

fn open(image: &[u8]) -> Arc<AnyStore<'static>> {
    Arc::new(open_store(MemoryDisk::from_image(image), &OpenOptions::default()).unwrap())
}

/// Entries of all directories: number of the directory, name.
fn names(fs: &AnyFileSystem<'_>) -> Names {
    let mut names = Names::new();
    let mut waiting = vec![ROOT_INODE];
    while let Some(directory) = waiting.pop() {
        fs.read_directory(directory, 0, |entry| {
            names.insert([&directory.to_le_bytes(), entry.name].concat());
            let is_itself = matches!(entry.name, b"." | b"..");
            if !is_itself && entry.file_type == rustix::fs::FileType::Directory {
                waiting.push(entry.inode);
            }
            true
        })
        .unwrap();
    }
    names
}

/// A file system in which files were made, one after another in other directories, each synced; and the names
/// before the last one and after it.
fn with_journal(files: usize) -> (Vec<u8>, Names, Names) {
    let shape = Shape { blocks: 4000, block_bytes: 1024, ..Shape::small(0) };
    let disk = MemoryDisk::new(shape.device_bytes());
    let fs = shape.make(&disk).unwrap();
    let caller = Caller::default();
    let make = |parent, name: String, mode| {
        let new = New { mode, device: 0, target: b"" };
        fs.make_file(parent, name.as_bytes(), &new, &caller).unwrap().inode
    };
    let directories: Vec<u64> = (0..DIRECTORIES)
        .map(|number| make(ROOT_INODE, format!("directory {number}"), 0o040_755))
        .collect();
    // What they have first makes nodes, which are then changed.
    for number in 0..200 {
        make(directories[number % DIRECTORIES], format!("before {number}"), 0o100_644);
    }
    fs.checkpoint().unwrap();
    let mut before = Names::new();
    for number in 0..files {
        before = names(&fs);
        make(directories[number % DIRECTORIES], format!("file {number}"), 0o100_644);
        fs.sync().unwrap();
    }
    let after = names(&fs);
    // The store is closed, as a damaged block makes the last group of one that is not look like one that was cut short.
    let left = MemoryDisk::from_image(&disk.image());
    open_store(&left, &OpenOptions::default()).unwrap().close().unwrap();
    (left.image(), before, after)
}

/// Blocks of the journal in `store`, and where they lie.
fn journal(store: &AnyStore<'_>) -> Vec<(u32, u64)> {
    let mut block = vec![0; store.geometry().block_bytes as usize];
    let mut is_one =
        |number: &u32| store.read(*number, &mut block).unwrap() && block.starts_with(b"AWFJ");
    let numbers: Vec<u32> = (0..store.geometry().blocks).filter(&mut is_one).collect();
    let places = store.places_of(numbers.iter().copied());
    numbers.into_iter().zip(places.into_iter().flatten()).collect()
}

#[test]
fn what_is_in_the_journal_is_there_after_a_crash() {
    let (image, _, after) = with_journal(24);
    let store = open(&image);
    assert!(journal(&store).len() > 2);
    assert!(check(&store, &CheckOptions::default()).unwrap().is_clean());
    let fs = FileSystem::open(Arc::clone(&store), &MountOptions::default()).unwrap();
    assert_eq!(names(&fs), after);
    // From then on the nodes are as they are.
    assert!(journal(&store).is_empty());
    assert!(check(&store, &CheckOptions::default()).unwrap().is_clean());
}

/// Nodes that are not known are noticed, and what was synced before the last time is not lost.
#[test]
fn a_damaged_block_of_the_journal_costs_the_last_sync_at_most() {
    let (mut told, mut whole) = (0, 0);
    for files in [1, 2, 9, 23, 24, 40] {
        let (image, before, after) = with_journal(files);
        let blocks = journal(&open(&image));
        assert!(!blocks.is_empty(), "{files} files");
        for (number, place) in blocks {
            let mut image = image.clone();
            image[place as usize + 100] ^= 1;
            let store = open(&image);
            let checked = check(&store, &CheckOptions::default()).unwrap();
            let mut problems = checked.findings.iter().map(|finding| finding.problem);
            let is_told = problems.any(
                |problem| matches!(problem, Problem::LastOfJournal { block, .. } if block == number),
            );
            let opened = FileSystem::open(Arc::clone(&store), &MountOptions::default());
            assert_eq!(opened.is_err(), is_told, "{files} files, block {number}");
            drop(opened);
            if is_told {
                told += 1;
                let repaired = repair(&store).unwrap();
                assert!(repaired.mended > 0 && repaired.left.is_clean(), "{:?}", repaired.left);
            } else {
                whole += 1;
                assert!(checked.is_clean());
            }
            let fs = FileSystem::open(store, &MountOptions::default()).unwrap();
            let found = names(&fs);
            assert!(found == after || is_told && found == before, "{files} files, block {number}");
        }
    }
    assert!(told > 5 && whole > 5, "{told} told, {whole} whole");
}

/// Blocks that `syncs` changes of a few directories at a time have written, each synced.
fn written(fs: &AnyFileSystem<'_>, syncs: u64) -> u64 {
    let caller = Caller::default();
    let made = |name: String| {
        let new = New { mode: 0o040_755, device: 0, target: b"" };
        fs.make_file(ROOT_INODE, name.as_bytes(), &new, &caller).unwrap().inode
    };
    let directories: Vec<u64> = (0..40).map(|number| made(format!("directory {number}"))).collect();
    for number in 0..400 {
        let new = New { mode: 0o100_644, device: 0, target: b"" };
        let name = format!("before {number}");
        fs.make_file(directories[number % 40], name.as_bytes(), &new, &caller).unwrap();
    }
    fs.sync().unwrap();
    let before = fs.store().log_counts().new_blocks;
    for number in 0..syncs {
        let [from, to] = [number, number + 7].map(|at| directories[(at % 40) as usize]);
        let name = format!("before {}", number % 400);
        fs.rename((from, name.as_bytes()), (to, b"moved"), Rename::default(), &caller).unwrap();
        fs.rename((to, b"moved"), (from, name.as_bytes()), Rename::default(), &caller).unwrap();
        fs.sync().unwrap();
    }
    fs.store().log_counts().new_blocks - before
}

/// One of version 1.0 has none, and is left without.
#[test]
fn a_sync_of_several_nodes_writes_one_block() {
    let shape = Shape { blocks: 4000, block_bytes: 1024, ..Shape::small(0) };
    let make = || shape.make(MemoryDisk::new(shape.device_bytes())).unwrap();
    let with = written(&make(), 400);
    let fs = make();
    let store = Arc::clone(fs.store());
    drop(fs);
    let mut superblock = vec![0; 1024];
    assert!(store.read(0, &mut superblock).unwrap());
    assert_eq!(superblock[10..16], [1, 0, 1, 0, 0, 0]);
    superblock[10..16].fill(0);
    superblock[80..88].fill(0);
    store.write(&Transaction { writes: vec![(0, &superblock)], frees: Vec::new() }).unwrap();
    let fs = FileSystem::open(Arc::clone(&store), &MountOptions::default()).unwrap();
    let without = written(&fs, 400);
    assert!(journal(&store).is_empty());
    assert!(with * 2 < without, "{with} blocks, {without} without a journal");
    drop(fs.close().unwrap());
    assert!(check(&store, &CheckOptions::default()).unwrap().is_clean());
}

/// A node that is damaged, of which the journal has changes, costs what is in it, and not the mount; one that is as it was
/// at another time would be wrong, and is not taken.
#[test]
fn a_damaged_node_is_lost_and_an_older_one_is_refused() {
    let (image, ..) = with_journal(24);
    let store = open(&image);
    let mut bytes = vec![0; 1024];
    let mut nodes = Vec::new();
    for number in 2..store.geometry().blocks {
        if store.read(number, &mut bytes).unwrap() && bytes.starts_with(b"AWFN") {
            nodes.push((number, store.places_of([number].into_iter())[0].unwrap(), bytes.clone()));
        }
    }
    let (mut lost, mut refused) = (0, 0);
    for (number, place, node) in &nodes {
        let mut image = image.clone();
        image[*place as usize + 100] ^= 1;
        let store = open(&image);
        assert!(!check(&store, &CheckOptions::default()).unwrap().is_clean());
        // Those that lead to the list of what is to be removed are needed.
        lost += u32::from(FileSystem::open(Arc::clone(&store), &MountOptions::default()).is_ok());
        // It is not what it was before.
        assert!(!check(&store, &CheckOptions::default()).unwrap().is_clean());
        // A value that is another in a node of which the journal has changes.
        let store = open(&image);
        let mut other = node.clone();
        let last = other.len() - 1;
        other[last] ^= 1;
        store.write(&Transaction { writes: vec![(*number, &other)], frees: Vec::new() }).unwrap();
        let opened = FileSystem::open(Arc::clone(&store), &MountOptions::default());
        if opened.is_err() {
            refused += 1;
            let checked = check(&store, &CheckOptions::default()).unwrap();
            let mut problems = checked.findings.iter().map(|finding| finding.problem);
            assert!(
                problems.any(
                    |problem| matches!(problem, Problem::Node { block, .. } if block == *number)
                )
            );
        }
    }
    assert!(lost > 20 && refused > 5, "{lost} lost, {refused} refused of {}", nodes.len());
}
