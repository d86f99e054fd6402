//! Images that are damaged, or made to do harm: looking at them, opening them and working on them gives
//! errors, and never a panic or a loop.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use agewell_core::mix;
use agewell_fs::{
    Attributes, CheckOptions, FileSystem, MountOptions, New, Problem, ROOT_INODE, Salvage, Time,
    check, repair, salvage,
};
use agewell_store::device::{Disk, MemoryDisk};
use agewell_store::{OpenOptions, Store, Transaction};
use proptest::prelude::*;

use super::compare::{compare, is_clean};
use super::held::drawn;
use super::load::{Operation, Shape, carry_out, close, open_store, step};
use super::model::{Model, What};

/// A small file system with some of everything, closed; and what is in it.
fn image(seed: u64) -> (Shape, Vec<u8>, Model) {
    let shape = Shape::small(0);
    let disk = MemoryDisk::new(shape.device_bytes());
    let fs = shape.make(&disk).unwrap();
    let mut model = Model::new(1024);
    let mut refused = 0;
    let mut now = Time::default();
    for draw in drawn(seed, 260) {
        now.seconds += 1;
        let operation = Operation::of(&model, draw, 20_000);
        step(&fs, &mut model, &operation, now, &mut refused).unwrap();
    }
    // Some are still open, and shared blocks and small files are there.
    fs.sync().unwrap();
    drop(fs);
    (shape, disk.image(), model)
}

/// What is done to a block.
fn damage(bytes: &mut [u8], other: &[u8], how: u64) {
    let length = bytes.len() as u64;
    match how % 8 {
        0 => bytes.fill(0),
        1 => bytes.copy_from_slice(other),
        2 => {
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = mix(how ^ at as u64) as u8;
            }
        }
        3 => {
            // A bit anywhere.
            bytes[(mix(how) % length) as usize] ^= 1 << (mix(how) >> 32 & 7);
        }
        4 => {
            // Of the header.
            bytes[(mix(how) % 16) as usize] = (mix(how) >> 32) as u8;
        }
        5 => {
            // Of the slots, where most harm can be done.
            for number in 0..4 {
                bytes[(mix(how ^ number) % 200) as usize] = (mix(how ^ number) >> 32) as u8;
            }
        }
        6 => {
            let at = (mix(how) % (length - 8)) as usize;
            bytes[at..at + 8].fill(0xFF);
        }
        _ => {
            // Of values, which are at the end.
            for number in 0..6 {
                let back = mix(how ^ number) % (length / 2);
                bytes[(length - 1 - back) as usize] ^= (mix(how ^ number) >> 32) as u8;
            }
        }
    }
}

/// Everything that there is to do with it, on `store`.
fn work<D: Disk>(store: Store<D>, model: &Model, seed: u64) {
    let store = Arc::new(store);
    check(&store, &CheckOptions { reads_data: seed.is_multiple_of(4) }).unwrap();
    if let Ok(fs) = FileSystem::open(
        Arc::clone(&store),
        &MountOptions { cache_bytes: 0, ..MountOptions::default() },
    ) {
        for (number, file) in &model.files {
            let mut into = vec![0; 3000];
            let _ = fs.read(*number, mix(seed) % (file.size + 1), &mut into);
            let mut entries = 0;
            let _ = fs.read_directory(*number, 0, |_| {
                entries += 1;
                entries < 10_000
            });
            assert!(entries < 10_000, "a directory that never ends");
            let _ = fs.extended_attributes(*number);
        }
        for (number, draw) in drawn(seed, 50).into_iter().enumerate() {
            let operation = Operation::of(model, draw, 20_000);
            let now = Time { seconds: number as i64, nanoseconds: 0 };
            let _ = carry_out(&fs, &operation, now);
        }
        let _ = fs.close();
    }
    let _ = repair(&store);
    check(&store, &CheckOptions::default()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_shrink_iters: 64, ..ProptestConfig::default() })]

    /// The sums are right: whoever made the image wanted to do harm.
    #[test]
    fn a_block_made_to_do_harm_does_none(
        which in any::<u64>(),
        hows in prop::collection::vec(any::<u64>(), 1..4),
    ) {
        thread_local! {
            static IMAGES: [(Shape, Vec<u8>, Model); 3] = [0, 1, 2].map(image);
        }
        IMAGES.with(|images| {
            let (_, image, model) = &images[(which % 3) as usize];
            let options = OpenOptions::default();
            let store = open_store(MemoryDisk::from_image(image), &options).unwrap();
            let held: Vec<u32> =
                (0..store.geometry().blocks).filter(|block| store.holds(*block)).collect();
            // Mostly nodes, which come first.
            for how in &hows {
                let drawn = mix(which ^ how) % held.len() as u64;
                let most = if how % 4 > 0 { drawn.min(mix(*how) % 40) } else { drawn };
                let number = held[most as usize];
                let (mut bytes, mut other) = (vec![0; 1024], vec![0; 1024]);
                store.read(number, &mut bytes).unwrap();
                store.read(held[(mix(*how) % held.len() as u64) as usize], &mut other).unwrap();
                damage(&mut bytes, &other, how / 4);
                let writes = vec![(number, &*bytes)];
                store.write(&Transaction { writes, frees: Vec::new() }).unwrap();
            }
            work(store, model, which);
        });
    }

    /// Any bytes in the place of everything.
    #[test]
    fn a_superblock_made_to_do_harm_does_none(bytes in prop::collection::vec(any::<u8>(), 88)) {
        let (_, image, model) = image(1);
        let store = open_store(MemoryDisk::from_image(&image), &OpenOptions::default()).unwrap();
        let mut block = vec![0; 1024];
        store.read(0, &mut block).unwrap();
        block[24..88].copy_from_slice(&bytes[24..]);
        let writes = vec![(0, &*block)];
        store.write(&Transaction { writes, frees: Vec::new() }).unwrap();
        work(store, &model, 0);
    }
}

/// Blocks lost one by one: the file is named, and all others are as they were.
#[test]
fn what_is_damaged_is_named_and_all_else_can_be_read() {
    let shape = Shape::small(0);
    let disk = MemoryDisk::new(shape.device_bytes());
    let fs = shape.make(&disk).unwrap();
    let caller = agewell_fs::Caller::default();
    let new = |mode| New { mode, device: 0, target: b"" };
    let folder = fs.make_file(ROOT_INODE, b"folder", &new(0o040_755), &caller).unwrap().inode;
    let mut files = Vec::new();
    for number in 0..20_u8 {
        let name = format!("file {number}");
        let file = fs.make_file(folder, name.as_bytes(), &new(0o100_644), &caller).unwrap().inode;
        for block in 0..6 {
            let data: Vec<u8> = (0..1024_u64)
                .map(|at| mix(at ^ block << 20 ^ u64::from(number) << 40) as u8)
                .collect();
            fs.write(file, block * 1024, &data, false, Time::default()).unwrap();
        }
        files.push(file);
    }
    close(fs).unwrap();
    let image = disk.image();
    for number in [0_u8, 7, 19] {
        for block in [0, 3, 5] {
            let begin: Vec<u8> = (0..16_u64)
                .map(|at| mix(at ^ block << 20 ^ u64::from(number) << 40) as u8)
                .collect();
            let mut image = image.clone();
            let at = image.windows(16).position(|bytes| bytes == begin).unwrap();
            image[at + 100] ^= 4;
            let store = open_store(MemoryDisk::from_image(&image), &shape.open_options()).unwrap();
            let checked = check(&store, &CheckOptions { reads_data: true }).unwrap();
            let [finding] = &checked.findings[..] else { panic!("{:?}", checked.findings) };
            let path = format!("/folder/file {number}");
            assert_eq!(finding.path.as_deref(), Some(path.as_bytes()));
            let offset = block * 1024;
            assert!(matches!(finding.problem, Problem::Damaged { offset: at, .. } if at == offset));
            let fs = FileSystem::open(Arc::new(store), &MountOptions::default()).unwrap();
            for (at, file) in files.iter().enumerate() {
                let read = fs.read(*file, 0, &mut [0; 6144]);
                assert_eq!(read.is_err(), at == usize::from(number), "file {at}");
            }
            // Written over, it is whole again.
            let file = files[usize::from(number)];
            fs.write(file, offset, &[1; 1024], false, Time::default()).unwrap();
            assert!(fs.read(file, 0, &mut [0; 6144]).is_ok());
            is_clean(&fs).unwrap();
        }
    }
}

/// What is sound stays as it is when it is repaired.
#[test]
fn repairing_what_is_sound_changes_nothing() {
    for seed in 0..20 {
        let (shape, image, model) = image(seed);
        let disk = MemoryDisk::from_image(&image);
        let store = Arc::new(open_store(disk, &shape.open_options()).unwrap());
        let repaired = repair(&store).unwrap();
        assert_eq!(repaired.mended, 0, "{:?}", repaired.left);
        assert!(repaired.left.is_clean(), "{:?}", repaired.left);
        let fs = FileSystem::open(store, &MountOptions::default()).unwrap();
        compare(&fs, &model.without_orphans(), None).unwrap();
    }
}

/// What a file is, and its data by where it begins.
type KeptFile = (Attributes, BTreeMap<u64, Vec<u8>>);

/// What was salvaged of each file, by its path.
#[derive(Debug, Default)]
struct Kept {
    files: BTreeMap<Vec<u8>, KeptFile>,
    names: BTreeSet<(Vec<u8>, Vec<u8>)>,
    targets: BTreeMap<Vec<u8>, Vec<u8>>,
    attributes: BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>>,
    lost: BTreeSet<Vec<u8>>,
}

impl Salvage for Kept {
    fn file(&mut self, path: &[u8], attributes: &Attributes) -> io::Result<()> {
        let before = self.files.insert(path.to_vec(), (*attributes, BTreeMap::new()));
        assert!(before.is_none(), "a path is told once");
        Ok(())
    }

    fn name(&mut self, name: &[u8], path: &[u8]) -> io::Result<()> {
        self.names.insert((name.to_vec(), path.to_vec()));
        Ok(())
    }

    fn data(&mut self, path: &[u8], offset: u64, data: &[u8]) -> io::Result<()> {
        self.files.get_mut(path).unwrap().1.insert(offset, data.to_vec());
        Ok(())
    }

    fn target(&mut self, path: &[u8], target: &[u8]) -> io::Result<()> {
        self.targets.insert(path.to_vec(), target.to_vec());
        Ok(())
    }

    fn attribute(&mut self, path: &[u8], name: &[u8], value: &[u8]) -> io::Result<()> {
        self.attributes.insert((path.to_vec(), name.to_vec()), value.to_vec());
        Ok(())
    }

    fn lost(&mut self, path: &[u8], _: u64, _: u64) -> io::Result<()> {
        self.lost.insert(path.to_vec());
        Ok(())
    }
}

/// All paths of the files of a model.
fn paths(model: &Model) -> BTreeMap<u64, Vec<Vec<u8>>> {
    let mut paths = BTreeMap::from([(ROOT_INODE, vec![b"/".to_vec()])]);
    let mut waiting = vec![(ROOT_INODE, Vec::new())];
    while let Some((directory, path)) = waiting.pop() {
        for (name, number) in model.entries(directory).unwrap() {
            let path = [path.as_slice(), b"/", name].concat();
            if model.files[number].is_directory() {
                waiting.push((*number, path.clone()));
            }
            paths.entry(*number).or_insert_with(Vec::new).push(path);
        }
    }
    paths
}

/// Holds what was kept against what there was; which files are whole.
fn hold_salvaged(kept: &Kept, model: &Model) -> BTreeSet<u64> {
    let mut whole = BTreeSet::new();
    for (path, (attributes, pieces)) in &kept.files {
        let file = &model.files[&attributes.inode];
        assert_eq!((attributes.size, attributes.mode), (file.size, file.mode));
        let mut is_whole = !kept.lost.contains(path);
        for (offset, data) in pieces {
            let wanted = model.read(attributes.inode, *offset, data.len() as u64).unwrap();
            assert_eq!(data, &wanted, "{path:?} at {offset}: what is salvaged is what was there");
        }
        match &file.what {
            What::File(data) => {
                let mut told = pieces.keys().map(|at| at / model.block_bytes);
                let blocks = data.blocks.iter().filter(|block| block.1.is_some());
                is_whole &= blocks.into_iter().all(|block| told.any(|at| at == *block.0));
                is_whole &= data.small.as_ref().is_none_or(|small| {
                    small.is_empty() || pieces.get(&0).is_some_and(|piece| piece == small)
                });
            }
            What::Link(target) => {
                if let Some(found) = kept.targets.get(path) {
                    assert_eq!(found, target);
                }
                is_whole &= kept.targets.contains_key(path);
            }
            _ => {}
        }
        for (name, value) in &file.attributes {
            match kept.attributes.get(&(path.clone(), name.clone())) {
                Some(found) => assert_eq!(found, &**value),
                None => is_whole = false,
            }
        }
        if is_whole {
            whole.insert(attributes.inode);
        }
    }
    whole
}

#[test]
fn what_is_intact_is_salvaged() {
    for seed in 0..24 {
        let (shape, image, model) = image(seed);
        let model = model.without_orphans();
        let store = open_store(MemoryDisk::from_image(&image), &shape.open_options()).unwrap();
        let mut kept = Kept::default();
        salvage(&store, &mut kept).unwrap().unwrap();
        let all: BTreeSet<u64> = model.files.keys().copied().collect();
        assert_eq!(hold_salvaged(&kept, &model), all);
        let paths = paths(&model);
        for (path, (attributes, _)) in &kept.files {
            let names = &paths[&attributes.inode];
            assert!(names.contains(path));
            let others = kept.names.iter().filter(|name| name.1 == *path).count();
            assert_eq!(others + 1, names.len());
        }
        // Nodes and data are lost: what is told is right still, and most is told. (A block of the journal is damaged,
        // but never gone: `journal.rs`.)
        let mut bytes = vec![0; 1024];
        let mut is_lost =
            |block: &u32| store.read(*block, &mut bytes).unwrap() && !bytes.starts_with(b"AWFJ");
        let held: Vec<u32> = (2..store.geometry().blocks).filter(&mut is_lost).collect();
        for number in 0..4 {
            let block = held[(mix(seed << 8 | number) % held.len() as u64) as usize];
            let frees = vec![block];
            store.write(&Transaction { writes: Vec::new(), frees }).unwrap();
        }
        let mut kept = Kept::default();
        salvage(&store, &mut kept).unwrap().unwrap();
        let whole = hold_salvaged(&kept, &model);
        assert!(whole.len() * 2 > all.len(), "{} of {} files", whole.len(), all.len());
    }
}

/// Each node that is lost, or has the content of another, is noticed.
#[test]
fn every_node_that_is_not_itself_is_noticed() {
    let (shape, image, _) = image(1);
    let store = open_store(MemoryDisk::from_image(&image), &shape.open_options()).unwrap();
    let read = |number: u32| {
        let mut bytes = vec![0; 1024];
        store.read(number, &mut bytes).unwrap();
        bytes
    };
    let nodes: Vec<u32> = (0..store.geometry().blocks)
        .filter(|number| store.holds(*number) && read(*number).starts_with(b"AWFN"))
        .collect();
    assert!(nodes.len() > 20);
    let put = |number: u32, bytes: &[u8]| {
        store.write(&Transaction { writes: vec![(number, bytes)], frees: Vec::new() }).unwrap();
    };
    for (at, number) in nodes.iter().enumerate() {
        let before = read(*number);
        let other =
            read(nodes[(at + 1 + mix(at as u64) as usize % (nodes.len() - 1)) % nodes.len()]);
        for bytes in [vec![0; 1024], other] {
            put(*number, &bytes);
            let checked = check(&store, &CheckOptions::default()).unwrap();
            assert!(!checked.is_clean(), "node {number}");
        }
        put(*number, &before);
    }
    assert!(check(&store, &CheckOptions::default()).unwrap().is_clean());
}
