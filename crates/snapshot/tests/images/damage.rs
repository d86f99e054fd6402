//! Images that were damaged: a snapshot that keeps its promises or one line of error, within a
//! stated amount of reading, and never a panic.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_snapshot::source::image::take_image;
use agewell_snapshot::{Snapshot, SnapshotError};

use crate::tools::{have, run};

/// Damaged images of each shape; the shapes below make ten thousand in all.
const ROUNDS: u64 = 1250;

/// Name, KiB, options of mke2fs.
const EXT_SHAPES: [(&str, u64, &str); 6] = [
    ("ext2", 1024, "-t ext2 -b 1024"),
    ("ext4", 2048, "-t ext4 -b 1024 -O ^has_journal"),
    ("ext4 in large blocks", 1024, "-t ext4 -b 4096 -O ^has_journal,^resize_inode"),
    ("meta groups", 2048, "-t ext4 -b 1024 -g 256 -O meta_bg,^resize_inode,^has_journal"),
    ("inline data", 1024, "-t ext4 -b 1024 -I 256 -O inline_data,^has_journal"),
    ("clusters", 1024, "-t ext4 -b 1024 -O bigalloc,^has_journal,^resize_inode -C 4096"),
];

/// A small tree with every kind of map.
fn tree(root: &Path) {
    let mut draws = RandomStreams::new(4).stream("tests.images.small");
    for directory in 0..4_u64 {
        let folder = root.join(directory.to_string());
        fs::create_dir(&folder).expect("a directory");
        for file in 0..directory * 8 {
            let bytes = vec![7; uniform_below(&mut draws, 3000) as usize];
            fs::write(folder.join(format!("{file}-{}", "x".repeat(directory as usize * 9))), bytes)
                .expect("room");
        }
    }
    fs::write(root.join("large"), vec![9; 300_000]).expect("room");
    // Holes give ext4 more extents than an inode holds, and so a tree of them.
    let holes = File::create(root.join("holes")).expect("a file");
    for piece in 0..12 {
        holes.write_all_at(b"piece", piece * 9000).expect("room");
    }
    std::os::unix::fs::symlink("l".repeat(100), root.join("link")).expect("a link");
    fs::hard_link(root.join("large"), root.join("again")).expect("a link");
}

fn ext_image(folder: &Path, tree: &Path, kib: u64, options: &str) -> PathBuf {
    let path = folder.join("ext");
    let _ = fs::remove_file(&path);
    let mut arguments: Vec<&str> = options.split(' ').collect();
    let tree = tree.to_str().expect("a path");
    let (text, size) = (path.to_str().expect("a path").to_owned(), format!("{kib}k"));
    arguments.extend(["-q", "-F", "-N", "128", "-d", tree, &text, &size]);
    run("mke2fs", &arguments);
    path
}

fn ufs_image(folder: &Path, tree: &Path, order: &str) -> PathBuf {
    let path = folder.join(order);
    let options = "version=1,bsize=4096,fsize=512,density=16384";
    let paths = [path.to_str().expect("a path"), tree.to_str().expect("a path")];
    let arguments = ["-t", "ffs", "-B", order, "-o", options, "-s", "2m"];
    run("makefs", &[&arguments[..], &paths].concat());
    path
}

/// Where the bytes of an image are not all alike, in pieces of 64: elsewhere there is nothing, or
/// the content of a file.
fn places(image: &[u8]) -> Vec<usize> {
    let pieces = image.chunks(64).enumerate();
    let mixed = pieces.filter(|(_, piece)| piece.iter().any(|&byte| byte != piece[0]));
    mixed.map(|(index, _)| index * 64).collect()
}

/// Damages one to a few places; what stood there, to be written back.
fn damage(bytes: &mut [u8], places: &[usize], draws: &mut Stream) -> Vec<(usize, [u8; 4])> {
    let mut before = Vec::new();
    let count = 1 + uniform_below(draws, 4) * uniform_below(draws, 4);
    for _ in 0..count {
        // Half of the damage hits the superblock and what follows it, the rest any place in use.
        let near = uniform_below(draws, 2) == 0;
        let range = if near { places.len().min(48) } else { places.len() };
        let place = places[uniform_below(draws, range as u64) as usize];
        let at = place + 4 * uniform_below(draws, 16) as usize;
        let old: [u8; 4] = bytes[at..at + 4].try_into().expect("four bytes");
        before.push((at, old));
        let other = places[uniform_below(draws, places.len() as u64) as usize];
        let mut new = old;
        match uniform_below(draws, 6) {
            0 => new[uniform_below(draws, 4) as usize] ^= 1 << uniform_below(draws, 8),
            1 => new = [0; 4],
            2 => new = [0xFF; 4],
            3 => new.copy_from_slice(&bytes[other..other + 4]),
            4 => new = u32::from_le_bytes(old).wrapping_add(1).to_le_bytes(),
            _ => new = (uniform_below(draws, 1 << 32) as u32).to_le_bytes(),
        }
        bytes[at..at + 4].copy_from_slice(&new);
    }
    before
}

/// What a snapshot of a damaged image still promises.
fn check(snapshot: &Snapshot) {
    snapshot.check().unwrap_or_else(|what| panic!("{what}"));
    let total = snapshot.facts.total_bytes;
    for extent in &snapshot.extents {
        assert!(extent.physical_bytes + extent.length_bytes <= total, "{extent:?} of {total}");
    }
    let last = snapshot.free.last();
    assert!(last.is_none_or(|free| free.physical_bytes + free.length_bytes <= total));
    let of: u64 = snapshot.files.iter().map(|file| u64::from(file.extents)).sum();
    assert_eq!(of, snapshot.extents.len() as u64, "extents without a file");
    for file in &snapshot.files {
        let directory = snapshot.files.binary_search_by_key(&file.directory, |file| file.inode);
        assert!(directory.is_ok(), "inode {} is in no directory", file.inode);
    }
}

/// What became of a damaged image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Read, and nothing was found to be wrong.
    Read,
    /// Read but for some files.
    ReadInPart,
    /// Refused with a line of error.
    Refused,
}

/// Reads the damaged image.
fn attempt(path: &Path) -> Fate {
    match take_image(path, true, &mut |_| Ok(())) {
        Ok(snapshot) => {
            check(&snapshot);
            if snapshot.facts.unreadable == 0 { Fate::Read } else { Fate::ReadInPart }
        }
        Err(error) => {
            let text = error.to_string();
            assert!(matches!(error, SnapshotError::Input(_)), "{text}");
            assert!(!text.contains('\n') && text.len() < 500, "one line: {text}");
            Fate::Refused
        }
    }
}

/// Damages the image at `path` again and again.
fn torment(name: &str, path: &Path) {
    let sound = take_image(path, true, &mut |_| Ok(())).unwrap_or_else(|error| panic!("{error}"));
    check(&sound);
    assert_eq!(sound.facts.unreadable, 0, "{name}: {:?}", sound.facts.parameters);
    assert!(sound.files.len() > 40, "{name}");
    let mut bytes = fs::read(path).expect("the image");
    let places = places(&bytes);
    let file = OpenOptions::new().write(true).open(path).expect("the image");
    let mut draws = RandomStreams::new(10).stream("tests.images.damage");
    let mut fates = [0; 3];
    for _ in 0..ROUNDS {
        let before = damage(&mut bytes, &places, &mut draws);
        for &(at, _) in &before {
            file.write_all_at(&bytes[at..at + 4], at as u64).expect("room");
        }
        fates[attempt(path) as usize] += 1;
        for &(at, old) in before.iter().rev() {
            bytes[at..at + 4].copy_from_slice(&old);
            file.write_all_at(&old, at as u64).expect("room");
        }
    }
    // Damage that is never noticed, or always in the same way, would prove nothing.
    assert!(fates.iter().all(|&fate| fate > ROUNDS / 40), "{name}: {fates:?} of {ROUNDS}");
    let again = take_image(path, true, &mut |_| Ok(())).unwrap_or_else(|error| panic!("{error}"));
    assert!(again == sound, "{name}: the damage was not taken back");
    cut_short(path, &bytes);
}

/// An image that ends early is refused, wherever it ends.
fn cut_short(path: &Path, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).expect("the image");
    for length in [0, 1, 1023, 1024, 1080, 1082, 2048, 8192, 9563, 9564, 9568, bytes.len() - 1] {
        file.set_len(length as u64).expect("a shorter file");
        assert_eq!(attempt(path), Fate::Refused, "{length} bytes");
        file.write_all_at(bytes, 0).expect("room");
    }
}

/// Ten thousand damaged images of ext2, ext4 and UFS1.
#[test]
fn damaged_images_are_read_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("tree");
    fs::create_dir(&root).expect("a directory");
    tree(&root);
    if have(&["mke2fs"]) {
        for (name, kib, options) in EXT_SHAPES {
            torment(name, &ext_image(folder.path(), &root, kib, options));
        }
    }
    if have(&["makefs"]) {
        for order in ["le", "be"] {
            torment(order, &ufs_image(folder.path(), &root, order));
        }
    }
}

/// What an older file system left in places that the new one does not use is not taken for it.
#[test]
fn remains_of_another_file_system_do_not_count() {
    if !have(&["mke2fs", "makefs"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("tree");
    fs::create_dir(&root).expect("a directory");
    tree(&root);
    let ufs = ufs_image(folder.path(), &root, "be");
    let (_, kib, options) = EXT_SHAPES[0];
    // Large enough for many reserved blocks.
    let ext = ext_image(folder.path(), &root, kib * 8, options);
    let superblock = |path: &Path, at: u64| {
        let mut bytes = [0; 1376];
        File::open(path).and_then(|file| file.read_exact_at(&mut bytes, at)).expect("an image");
        bytes
    };
    let kind = |path: &Path| {
        let snapshot = take_image(path, false, &mut |_| Ok(()));
        snapshot.unwrap_or_else(|error| panic!("{error}")).facts.kind
    };
    let (ext_superblock, ufs_superblock) = (superblock(&ext, 1024), superblock(&ufs, 8192));
    let write = |path: &Path, bytes: &[u8], at: u64| {
        let file = OpenOptions::new().write(true).open(path).expect("the image");
        file.write_all_at(bytes, at).expect("room");
    };
    write(&ufs, &ext_superblock[..1024], 1024);
    assert_eq!(kind(&ufs), "ufs1");
    // These are blocks that ext2 reserves for growing.
    write(&ext, &ufs_superblock, 8192);
    assert_eq!(kind(&ext), "ext2");
}

/// What is no file system that we read gets an answer that helps.
#[test]
fn other_things_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("thing");
    let answer = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("room");
        let error = take_image(&path, false, &mut |_| Ok(())).expect_err("no file system");
        assert!(matches!(error, SnapshotError::Input(_)), "{error}");
        error.to_string()
    };
    assert!(answer(b"").contains("ext2, ext3, ext4, UFS1"));
    assert!(answer(&vec![0; 100_000]).contains("ext2, ext3, ext4, UFS1"));
    assert!(answer(b"XFSB and more").contains("XFS"));
    let mut disk = vec![0; 4096];
    disk[510..512].copy_from_slice(&[0x55, 0xAA]);
    assert!(answer(&disk).contains("partition"));
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a pipe");
    let error = take_image(&pipe, false, &mut |_| Ok(())).expect_err("a pipe");
    assert!(error.to_string().contains("neither an image nor a block device"), "{error}");
    let gone = take_image(&folder.path().join("gone"), false, &mut |_| Ok(()));
    assert!(matches!(gone, Err(SnapshotError::Io { .. })));
}

/// Someone who stops the work gets that error, and no other.
#[test]
fn stops_when_asked() {
    if !have(&["mke2fs"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("tree");
    fs::create_dir(&root).expect("a directory");
    let image = ext_image(folder.path(), &root, 512, "-t ext2 -b 1024");
    let stopped = take_image(&image, false, &mut |_| Err(SnapshotError::Stopped));
    assert!(matches!(stopped, Err(SnapshotError::Stopped)));
}

/// Where the inode of `file` stands in the image at `path`, bytes.
fn inode_at(path: &Path, file: &str, block_bytes: u64) -> u64 {
    let request = format!("imap {file}");
    let printed = run("debugfs", &[Path::new("-R"), Path::new(&request), path]);
    let (_, place) = printed.split_once("located at block ").expect("debugfs tells it");
    let (block, offset) = place.trim().split_once(", offset 0x").expect("debugfs tells it");
    let offset = u64::from_str_radix(offset, 16).expect("an offset");
    block.parse::<u64>().expect("a block") * block_bytes + offset
}

/// Free blocks of a sound image.
fn free_blocks(path: &Path, count: u64, block_bytes: u64) -> Vec<u64> {
    let snapshot =
        take_image(path, false, &mut |_| Ok(())).unwrap_or_else(|error| panic!("{error}"));
    let blocks = snapshot.free.iter().flat_map(|free| {
        let first = free.physical_bytes / block_bytes;
        first..first + free.length_bytes / block_bytes
    });
    let blocks: Vec<u64> = blocks.take(count as usize).collect();
    assert_eq!(blocks.len() as u64, count, "the image is too full");
    blocks
}

/// Extent trees whose nodes name each other at random, in every depth, end.
#[test]
fn tangled_extent_trees_end() {
    const BLOCK_BYTES: u64 = 1024;
    const NODES: u64 = 12;
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("tree");
    fs::create_dir(&root).expect("a directory");
    tree(&root);
    let (_, kib, options) = EXT_SHAPES[1];
    let path = ext_image(folder.path(), &root, kib, options);
    let blocks = free_blocks(&path, NODES, BLOCK_BYTES);
    let inode = inode_at(&path, "/large", BLOCK_BYTES);
    let file = OpenOptions::new().write(true).open(&path).expect("the image");
    let mut draws = RandomStreams::new(12).stream("tests.images.tangle");
    let mut draw = |bound: u64| uniform_below(&mut draws, bound);
    let mut fates = [0; 3];
    for _ in 0..2000 {
        let mut node = |depth: u64, room: u64| {
            let entries = draw(room + 1);
            let mut bytes = Vec::new();
            for half in [0xF30A, entries as u16, room as u16, depth as u16, 0, 0] {
                bytes.extend_from_slice(&half.to_le_bytes());
            }
            // Keys mostly ascend, so that trees are followed deep before they fail.
            let mut key = draw(4) as u32;
            for _ in 0..entries {
                let target = blocks[draw(NODES) as usize] as u32;
                bytes.extend_from_slice(&key.to_le_bytes());
                if depth == 0 {
                    bytes.extend_from_slice(&[1, 0, 0, 0]);
                    bytes.extend_from_slice(&target.to_le_bytes());
                } else {
                    bytes.extend_from_slice(&target.to_le_bytes());
                    bytes.extend_from_slice(&[0; 4]);
                }
                key = key.wrapping_add([1, 1, 2, 50, 0][draw(5) as usize]);
            }
            bytes
        };
        let depth = 1 + blocks[0] % 2;
        file.write_all_at(&node(depth, 4), inode + 40).expect("room");
        for (index, &block) in blocks.iter().enumerate() {
            let depth = [0, 0, 0, 1, 1, 2, 3][index % 7];
            file.write_all_at(&node(depth, 84), block * BLOCK_BYTES).expect("room");
        }
        fates[attempt(&path) as usize] += 1;
    }
    assert!(fates[1] > 100 && fates[2] == 0, "{fates:?}");
}

/// An indirect block that names itself everywhere, three levels deep, ends by the bound on work.
#[test]
fn an_indirect_block_of_itself_ends() {
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("tree");
    fs::create_dir(&root).expect("a directory");
    tree(&root);
    let (_, kib, options) = EXT_SHAPES[0];
    let path = ext_image(folder.path(), &root, kib, options);
    let block = free_blocks(&path, 1, 1024)[0];
    let file = OpenOptions::new().write(true).open(&path).expect("the image");
    let pointers: Vec<u8> = (0..256).flat_map(|_| (block as u32).to_le_bytes()).collect();
    file.write_all_at(&pointers, block * 1024).expect("room");
    let inode = inode_at(&path, "/large", 1024);
    file.write_all_at(&(block as u32).to_le_bytes(), inode + 40 + 14 * 4).expect("room");
    let snapshot =
        take_image(&path, false, &mut |_| Ok(())).unwrap_or_else(|error| panic!("{error}"));
    check(&snapshot);
    let fault = &snapshot.facts.parameters["first_fault"];
    assert!(fault.contains("more blocks of metadata"), "{fault}");
}

/// Directories that name their own parents are listed once.
#[test]
fn directories_in_a_circle_are_listed_once() {
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("tree");
    fs::create_dir(&root).expect("a directory");
    tree(&root);
    let (_, kib, options) = EXT_SHAPES[1];
    let path = ext_image(folder.path(), &root, kib, options);
    let before = take_image(&path, true, &mut |_| Ok(())).unwrap_or_else(|error| panic!("{error}"));
    for request in ["link <2> /3/up", "link /3 /0/across", "link /0 /3/over"] {
        run("debugfs", &[Path::new("-w"), Path::new("-R"), Path::new(request), &path]);
    }
    let after = take_image(&path, true, &mut |_| Ok(())).unwrap_or_else(|error| panic!("{error}"));
    check(&after);
    assert_eq!(after.facts.unreadable, 0);
    let inodes = |snapshot: &Snapshot| -> Vec<u64> {
        snapshot.files.iter().map(|file| file.inode).collect()
    };
    assert_eq!(inodes(&before), inodes(&after));
}
