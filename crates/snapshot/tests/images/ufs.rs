//! UFS1 images made by `makefs` (4.4BSD's format, either byte order).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use agewell_core::{RandomStreams, uniform_below};
use agewell_snapshot::{ExtentFlags, FileKind, Snapshot};

use crate::tools::{have, run, take};

const BLOCK_BYTES: u64 = 8192;
const FRAGMENT_BYTES: u64 = 1024;

/// A tree with a file of every length around the borders of fragments, direct and indirect blocks.
fn tree(root: &Path) {
    let mut draws = RandomStreams::new(4).stream("tests.images.tree");
    let mut draw = |bound: u64| uniform_below(&mut draws, bound);
    let mut noise = vec![0_u8; 18 << 20];
    for byte in &mut noise {
        *byte = draw(256) as u8;
    }
    let borders = [1, 1024, 7 * 1024, 8192, 16384, 12 * 8192, 13 * 8192, (12 + 2048) * 8192];
    for (index, border) in borders.into_iter().enumerate() {
        let folder = root.join(format!("{index} around {border}"));
        fs::create_dir(&folder).expect("a directory");
        for length in [border - 1, border, border + 1, border + 1025] {
            let start = draw(1000) as usize;
            let bytes = &noise[start..start + length as usize];
            fs::write(folder.join(length.to_string()), bytes).expect("room");
        }
    }
    let many = root.join("many");
    fs::create_dir(&many).expect("a directory");
    for file in 0..600 {
        let name = format!("{file}{}", "x".repeat(draw(200) as usize));
        fs::write(many.join(name), &noise[..draw(5000) as usize]).expect("room");
    }
    // makefs writes holes as zeros; the map has no hole, but the content must be right.
    let mut holes = File::create(root.join("holes")).expect("a file");
    holes.seek(SeekFrom::Start(300_000)).expect("a seek");
    holes.write_all(b"behind the hole").expect("room");
    std::os::unix::fs::symlink("l".repeat(200), root.join("long link")).expect("a link");
    fs::hard_link(root.join("holes"), many.join("again")).expect("a link");
}

/// An image of `tree` in the byte order `order` (`le` or `be`).
fn make(folder: &Path, tree: &Path, order: &str) -> PathBuf {
    let image = folder.join(format!("{order}.img"));
    let options = "version=1,bsize=8192,fsize=1024,density=65536";
    let arguments = ["-t", "ffs", "-B", order, "-o", options, "-s", "128m", "-T", "1000000000"];
    let paths = [image.to_str().expect("a path"), tree.to_str().expect("a path")];
    run("makefs", &[&arguments[..], &paths].concat());
    image
}

/// Paths of a tree below `root`, without it.
fn paths(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut queue) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = queue.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.is_symlink() {
                queue.push(path.clone());
            }
            found.push(path.strip_prefix(root).expect("below it").to_owned());
        }
    }
    found
}

/// Paths of the files of a snapshot and their indices.
fn snapshot_paths(snapshot: &Snapshot) -> BTreeMap<PathBuf, usize> {
    let names = snapshot.names.as_ref().expect("they were asked for");
    let position = |inode: u64| {
        snapshot.files.binary_search_by_key(&inode, |file| file.inode).expect("a directory")
    };
    let path = |mut index: usize| {
        let mut parts = Vec::new();
        while snapshot.files[index].directory != snapshot.files[index].inode {
            parts.push(String::from_utf8(names[index].clone()).expect("a name of ours"));
            index = position(snapshot.files[index].directory);
        }
        parts.iter().rev().collect::<PathBuf>()
    };
    (0..snapshot.files.len()).map(|index| (path(index), index)).collect()
}

/// The content of a file, read from the image at the places that the snapshot names.
fn content(image: &File, snapshot: &Snapshot, index: usize) -> Vec<u8> {
    let file = &snapshot.files[index];
    let mut bytes = vec![0; file.size_bytes as usize];
    for extent in snapshot.extents_of(file) {
        let start = extent.logical_bytes as usize;
        let end = (start + extent.length_bytes as usize).min(bytes.len());
        image.read_exact_at(&mut bytes[start..end], extent.physical_bytes).expect("in the image");
    }
    bytes
}

/// The files of `image` are those of `tree`, and what lies where we say is what was put in.
fn check(image: &Path, tree: &Path) {
    let name = image.display();
    let snapshot = take(image).unwrap_or_else(|error| panic!("{name}: {error}"));
    let facts = &snapshot.facts;
    assert_eq!((facts.kind.as_str(), facts.total_bytes), ("ufs1", 128 << 20), "{name}");
    assert_eq!(u64::from(facts.block_bytes), BLOCK_BYTES);
    assert_eq!(u64::from(facts.fragment_bytes), FRAGMENT_BYTES);
    assert_eq!(facts.unreadable, 0, "{name}: {:?}", facts.parameters);
    assert!(!facts.parameters.contains_key("superblock_free_bytes"), "the two counts differ");
    let found = snapshot_paths(&snapshot);
    let bytes = File::open(image).expect("the image");
    let (mut tails, mut links) = (0, 0);
    let expected = paths(tree);
    for path in &expected {
        let metadata = tree.join(path).symlink_metadata().expect("it is there");
        let Some(&index) = found.get(path) else {
            // The other name of a file with two.
            assert_eq!(std::os::unix::fs::MetadataExt::nlink(&metadata), 2, "{}", path.display());
            links += 1;
            continue;
        };
        let file = &snapshot.files[index];
        let place = format!("{name}: {}", path.display());
        if metadata.is_dir() {
            assert_eq!(file.kind, FileKind::Directory, "{place}");
            continue;
        }
        assert_eq!(file.size_bytes, metadata.len(), "{place}");
        let ours = content(&bytes, &snapshot, index);
        if metadata.is_symlink() {
            assert_eq!(file.kind, FileKind::Link, "{place}");
            let target = fs::read_link(tree.join(path)).expect("a link");
            // A short one lies in the inode: it has no extent.
            let short = metadata.len() < 60 && facts.parameters["directory_format"] == "4.4BSD";
            assert_eq!(snapshot.extents_of(file).is_empty(), short, "{place}");
            assert!(short || ours == target.as_os_str().as_encoded_bytes(), "{place}");
            continue;
        }
        assert!(ours == fs::read(tree.join(path)).expect("a file"), "{place}");
        let extents = snapshot.extents_of(file);
        let length: u64 = extents.iter().map(|extent| extent.length_bytes).sum();
        let small = metadata.len() <= 12 * BLOCK_BYTES;
        let unit = if small { FRAGMENT_BYTES } else { BLOCK_BYTES };
        assert_eq!(length, metadata.len().next_multiple_of(unit), "{place}");
        let tail = extents.last().is_some_and(|last| last.flags.any(ExtentFlags::TAIL));
        assert_eq!(tail, small && !length.is_multiple_of(BLOCK_BYTES), "{place}");
        tails += usize::from(tail);
    }
    assert_eq!((links, found.len() + links), (1, expected.len() + 1), "{name}");
    assert!(tails > 100, "only {tails} files end in fragments");
    check_space(&snapshot);
}

/// No two files lie on one fragment, nothing that is used is free.
fn check_space(snapshot: &Snapshot) {
    let mut spans: Vec<(u64, u64)> = snapshot
        .extents
        .iter()
        .filter(|extent| !extent.flags.any(ExtentFlags::INLINE))
        .map(|extent| (extent.physical_bytes, extent.physical_bytes + extent.length_bytes))
        .chain(
            snapshot
                .free
                .iter()
                .map(|free| (free.physical_bytes, free.physical_bytes + free.length_bytes)),
        )
        .collect();
    spans.sort_unstable();
    for pair in spans.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?} overlap");
    }
    assert!(spans.last().is_some_and(|last| last.1 <= snapshot.facts.total_bytes));
}

/// What makefs puts into an image is found there, byte for byte, in both byte orders.
#[test]
fn holds_what_makefs_put_in() {
    if !have(&["makefs"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("tree");
    fs::create_dir(&root).expect("a directory");
    tree(&root);
    for order in ["le", "be"] {
        // 4.2BSD has no links within inodes; makefs makes no other short ones.
        let image = make(folder.path(), &root, order);
        to_42bsd(&image, order == "le");
        check(&image, &root);
        // makefs keeps what it does not overwrite.
        fs::remove_file(image).expect("it is there");
        std::os::unix::fs::symlink("short", root.join("short link")).expect("a link");
        let image = make(folder.path(), &root, order);
        check(&image, &root);
        fs::remove_file(root.join("short link")).expect("it is there");
        fs::remove_file(image).expect("it is there");
    }
}

/// Rewrites the image into the forms that 4.2BSD gave cylinder groups and directories.
fn to_42bsd(path: &Path, little: bool) {
    let snapshot = take(path).unwrap_or_else(|error| panic!("{error}"));
    let mut image = fs::read(path).expect("the image");
    let get = |image: &[u8], at: usize| {
        let bytes = image[at..at + 4].try_into().expect("four bytes");
        (if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }) as usize
    };
    let word = |value: u32| if little { value.to_le_bytes() } else { value.to_be_bytes() };
    let half = |value: u16| if little { value.to_le_bytes() } else { value.to_be_bytes() };
    let field = |image: &[u8], place: usize| get(image, 8192 + place * 4);
    let (group_block, groups, per_group) = (field(&image, 3), field(&image, 11), field(&image, 47));
    assert!(field(&image, 46) <= 2048, "4.2BSD has room for 2048 inodes a group");
    for group in 0..groups {
        let start = (group * per_group + group_block) * FRAGMENT_BYTES as usize;
        let block = &mut image[start..start + BLOCK_BYTES as usize];
        let (used_at, free_at) = (get(block, 92), get(block, 96));
        let used = block[used_at..used_at + 256].to_vec();
        let free = block[free_at..free_at + per_group.div_ceil(8)].to_vec();
        block[4..8].fill(0);
        block[84..].fill(0);
        block[724..980].copy_from_slice(&used);
        block[980..984].copy_from_slice(&word(0x0009_0255));
        block[984..984 + free.len()].copy_from_slice(&free);
    }
    for file in snapshot.files.iter().filter(|file| file.kind == FileKind::Directory) {
        for extent in snapshot.extents_of(file) {
            let length = extent.length_bytes.min(file.size_bytes - extent.logical_bytes) as usize;
            let mut at = extent.physical_bytes as usize;
            let end = at + length;
            while at < end {
                let record = if little { [4, 5] } else { [5, 4] };
                let record = record.map(|byte| usize::from(image[at + byte]));
                let name_bytes = half(u16::from(image[at + 7]));
                image[at + 6..at + 8].copy_from_slice(&name_bytes);
                at += record[0] | record[1] << 8;
            }
        }
    }
    let format = word((-1_i32).cast_unsigned());
    // No short links, inodes and position tables of 4.2BSD.
    image[8192 + 1320..8192 + 1324].fill(0);
    image[8192 + 1324..8192 + 1328].copy_from_slice(&format);
    image[8192 + 1356..8192 + 1360].copy_from_slice(&format);
    fs::write(path, &image).expect("room");
    let facts = take(path).unwrap_or_else(|error| panic!("{error}")).facts;
    assert_eq!(facts.parameters["cylinder_group_format"], "4.2BSD");
    assert_eq!(facts.parameters["directory_format"], "4.2BSD");
}
