//! ext2, ext3 and ext4 in the shapes that mke2fs makes.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use agewell_core::{RandomStreams, uniform_below};
use agewell_snapshot::score::{ScoreOptions, score};
use agewell_snapshot::source::TakeOptions;
use agewell_snapshot::{Extent, ExtentFlags, FileKind, FreeExtent, Snapshot, SnapshotFile};

use crate::tools::{Mounted, have, run, take};

const MIB: u64 = 1 << 20;

/// Name, kind, MiB, options of mke2fs.
const SHAPES: [(&str, &str, u64, &str); 11] = [
    ("ext2 in small blocks", "ext2", 48, "-t ext2 -b 1024"),
    ("ext3", "ext3", 64, "-t ext3 -b 4096 -J size=4"),
    ("ext4", "ext4", 96, "-t ext4 -b 4096"),
    ("small blocks", "ext4", 96, "-t ext4 -b 1024 -I 128"),
    ("block maps", "ext4", 64, "-t ext4 -O ^extent,^64bit,^flex_bg -b 2048"),
    ("no flexible groups", "ext4", 160, "-t ext4 -b 1024 -O ^flex_bg,^resize_inode -g 4096"),
    ("meta groups", "ext4", 160, "-t ext4 -b 1024 -O meta_bg,^resize_inode -g 2048"),
    ("inline data", "ext4", 64, "-t ext4 -O inline_data -I 512"),
    ("clusters", "ext4", 96, "-t ext4 -O bigalloc -C 16384 -b 4096"),
    ("small clusters", "ext4", 96, "-t ext4 -O bigalloc -C 4096 -b 1024"),
    ("no index, two superblocks", "ext4", 64, "-t ext4 -O ^dir_index,sparse_super2,^metadata_csum"),
];

/// An empty image of a shape.
fn make(folder: &Path, mib: u64, options: &str) -> PathBuf {
    let path = folder.join("image");
    File::create(&path).and_then(|file| file.set_len(mib * MIB)).expect("a sparse file");
    let mut arguments: Vec<&str> = options.split(' ').collect();
    let text = path.to_str().expect("a temporary path").to_owned();
    arguments.extend(["-q", "-F", "-E", "lazy_itable_init=0", &text]);
    run("mke2fs", &arguments);
    path
}

/// How the directories of a shape are to be hashed: values of its superblock.
fn set_hash(name: &str, image: &Path) {
    let values: &[&str] = match name {
        "block maps" => &["def_hash_version tea", "flags 2"],
        "no flexible groups" => &["def_hash_version legacy", "flags 1"],
        "meta groups" => &["flags 2"],
        _ => &[],
    };
    for value in values {
        let request = format!("set_super_value {value}");
        run("debugfs", &[Path::new("-w"), Path::new("-R"), Path::new(&request), image]);
    }
}

/// Fills a tree with what file systems find hard: files that grow in turns, holes, reserved space,
/// links, long and foreign names, large directories, deletions.
fn fill(root: &Path, mib: u64) {
    let mut draws = RandomStreams::new(4).stream("tests.images.fill");
    let mut draw = |bound: u64| uniform_below(&mut draws, bound);
    let chunk = vec![0x5A_u8; 40_000];
    let mut grown = Vec::new();
    for directory in 0..6_u64 {
        let folder = root.join(format!("directory {directory} \u{e4}\u{4e2d}"));
        fs::create_dir(&folder).expect("a directory");
        for file in 0..[0, 3, 40, 200, 400, 900][directory as usize] {
            let name = "n".repeat(draw(60) as usize);
            let path = folder.join(format!("{name}-{file}-\u{fc}"));
            fs::write(&path, &chunk[..draw(9000) as usize]).expect("a small file");
            if draw(4) == 0 {
                grown.push(path);
            }
        }
    }
    for round in 0..5 {
        for path in grown.iter().skip(round).step_by(2) {
            let mut file = OpenOptions::new().append(true).open(path).expect("it is there");
            file.write_all(&chunk[..draw(14_000) as usize]).expect("room");
        }
        // What was written gets its places now, so that the next round is elsewhere.
        rustix::fs::syncfs(File::open(root).expect("a directory")).expect("a sync");
    }
    for path in grown.iter().step_by(3) {
        fs::remove_file(path).expect("it is there");
    }
    let mut large = File::create(root.join("large")).expect("a file");
    let mut beside = File::create(root.join("beside")).expect("a file");
    for _ in 0..mib * MIB / 4 / chunk.len() as u64 {
        large.write_all(&chunk).expect("room");
        beside.write_all(&chunk[..draw(3000) as usize]).expect("room");
        if draw(40) == 0 {
            beside.sync_all().expect("a sync");
            large.sync_all().expect("a sync");
        }
    }
    let mut holes = File::create(root.join("holes")).expect("a file");
    for _ in 0..500 {
        holes.seek(SeekFrom::Start(draw(300 * MIB))).expect("a seek");
        holes.write_all(&chunk[..100]).expect("room");
    }
    let reserved = File::create(root.join("reserved")).expect("a file");
    // ext2 and ext3 refuse it, which is as good.
    let _ = rustix::fs::fallocate(&reserved, rustix::fs::FallocateFlags::empty(), 0, 3 * MIB);
    fs::hard_link(root.join("large"), root.join("again")).expect("a link");
    std::os::unix::fs::symlink("short", root.join("short link")).expect("a link");
    std::os::unix::fs::symlink("l".repeat(300), root.join("long link")).expect("a link");
}

/// Fills the image through a mount, or says why it cannot.
fn fill_mounted(image: &Path, mib: u64) -> Option<()> {
    let mounted = Mounted::new(image, "rw")?;
    fill(mounted.path(), mib);
    Some(())
}

/// Blocks of a file: logical number, physical number, how many, whether unwritten.
type Blocks = Vec<(u64, u64, u64, bool)>;

/// What `debugfs stat` says of each of `inodes`.
fn debugfs_blocks(image: &Path, folder: &Path, inodes: &[u64]) -> BTreeMap<u64, (u64, Blocks)> {
    let commands = folder.join("commands");
    let text: Vec<String> = inodes.iter().map(|inode| format!("stat <{inode}>\n")).collect();
    fs::write(&commands, text.concat()).expect("room");
    let printed = run("debugfs", &[Path::new("-f"), &commands, image]);
    let mut found = BTreeMap::new();
    let (mut inode, mut size) = (0, 0);
    let mut lines = printed.lines().peekable();
    let number = |line: &str, label: &str| -> Option<u64> {
        let rest = &line[line.find(label)? + label.len()..];
        rest.split_whitespace().next()?.parse().ok()
    };
    while let Some(line) = lines.next() {
        if let Some(next) = number(line, "Inode: ") {
            inode = next;
        }
        if let Some(next) =
            number(line, "Size: ").filter(|_| line.contains("User:") || line.contains("Group:"))
        {
            size = next;
            found.insert(inode, (size, Vec::new()));
        }
        if line == "EXTENTS:" || line == "BLOCKS:" {
            let text = lines.next().unwrap_or("");
            found.insert(inode, (size, parse_blocks(text)));
        }
    }
    found
}

/// `(0-11):500-511, (IND):512, (12[u]):600` ...
fn parse_blocks(text: &str) -> Blocks {
    let mut blocks = Vec::new();
    for piece in text.split(", ").filter(|piece| piece.starts_with('(')) {
        let (logical, physical) = piece[1..].split_once("):").expect("(logical):physical");
        if logical.ends_with("IND") || logical.starts_with("ETB") {
            continue;
        }
        let unwritten = logical.ends_with("[u]");
        let span = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let parse = |number: &str| number.trim().parse::<u64>().expect("a number");
            (parse(first), parse(last))
        };
        let (first, last) = span(logical.trim_end_matches("[u]"));
        let (physical, end) = span(physical);
        assert_eq!(last - first, end - physical, "{piece}");
        push(&mut blocks, (first, physical, last - first + 1, unwritten));
    }
    blocks
}

/// Appends a run of blocks, joined to the last where they are one.
fn push(blocks: &mut Blocks, next: (u64, u64, u64, bool)) {
    match blocks.last_mut() {
        Some(last) if (last.0 + last.2, last.1 + last.2, last.3) == (next.0, next.1, next.3) => {
            last.2 += next.2;
        }
        _ => blocks.push(next),
    }
}

/// The same of our extents, without inline ones.
fn our_blocks(extents: &[Extent], block_bytes: u64) -> Blocks {
    let mut blocks = Vec::new();
    for extent in extents.iter().filter(|extent| !extent.flags.any(ExtentFlags::INLINE)) {
        let unwritten = extent.flags.any(ExtentFlags::UNWRITTEN);
        let whole = |bytes: u64| {
            assert_eq!(bytes % block_bytes, 0);
            bytes / block_bytes
        };
        let next = (whole(extent.logical_bytes), whole(extent.physical_bytes));
        blocks.push((next.0, next.1, whole(extent.length_bytes), unwritten));
    }
    blocks
}

/// What `dumpe2fs` says is free, joined across groups.
///
/// It names the last cluster by its first block.
fn dumpe2fs_free(image: &Path, block_bytes: u64, cluster_bytes: u64) -> Vec<FreeExtent> {
    let mut free: Vec<FreeExtent> = Vec::new();
    let mut in_groups = false;
    for line in run("dumpe2fs", &[image]).lines() {
        in_groups |= line.starts_with("Group 0:");
        let Some(list) = line.trim().strip_prefix("Free blocks: ").filter(|_| in_groups) else {
            continue;
        };
        for piece in list.split(", ").filter(|piece| !piece.is_empty()) {
            let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
            let first: u64 = first.parse().expect("a number");
            let last: u64 = last.parse().expect("a number");
            let length_bytes = (last - first) * block_bytes + cluster_bytes;
            let physical_bytes = first * block_bytes;
            match free.last_mut() {
                Some(end) if end.physical_bytes + end.length_bytes == physical_bytes => {
                    end.length_bytes += length_bytes;
                }
                _ => free.push(FreeExtent { physical_bytes, length_bytes }),
            }
        }
    }
    free
}

/// Files, lengths, block lists and free extents equal those of `debugfs`, `dumpe2fs`, `e2freefrag`;
/// how many files are in pieces.
fn check_against_e2fsprogs(name: &str, image: &Path, folder: &Path, snapshot: &Snapshot) -> usize {
    let facts = &snapshot.facts;
    let block_bytes = u64::from(facts.block_bytes);
    let inodes: Vec<u64> = snapshot.files.iter().map(|file| file.inode).collect();
    let theirs = debugfs_blocks(image, folder, &inodes);
    for file in &snapshot.files {
        let (size, blocks) = &theirs[&file.inode];
        let extents = snapshot.extents_of(file);
        assert_eq!(file.size_bytes, *size, "{name}: inode {}", file.inode);
        assert_eq!(our_blocks(extents, block_bytes), *blocks, "{name}: inode {}", file.inode);
    }
    let cluster_bytes = facts.parameters.get("cluster_bytes");
    let cluster_bytes = cluster_bytes.map_or(block_bytes, |text| text.parse().expect("bytes"));
    let free = dumpe2fs_free(image, block_bytes, cluster_bytes);
    assert!(snapshot.free == free, "{name}: free extents differ");
    let free_bytes: u64 = free.iter().map(|extent| extent.length_bytes).sum();
    assert_eq!(facts.free_bytes, free_bytes, "{name}");
    let printed = run("e2freefrag", &[image]);
    let said = |label: &str| -> u64 {
        let line = printed.lines().find(|line| line.starts_with(label)).expect("a line");
        let number = line[label.len()..].split_whitespace().next().expect("a number");
        number.parse().expect("a number")
    };
    assert_eq!(said("Free blocks: "), free_bytes / block_bytes, "{name}");
    snapshot.files.iter().filter(|file| file.extents > 1).count()
}

/// The tree, its order as listed, times and kinds equal what the kernel shows of the image.
fn check_against_the_kernel(name: &str, root: &Path, snapshot: &Snapshot) {
    let files: BTreeMap<u64, &SnapshotFile> =
        snapshot.files.iter().map(|file| (file.inode, file)).collect();
    let names = snapshot.names.as_ref().expect("they were asked for");
    let mut seen = 1;
    let mut queue = vec![(root.to_owned(), 2)];
    while let Some((path, directory)) = queue.pop() {
        let entries = fs::read_dir(&path).expect("a directory");
        let entries: Vec<_> = entries.map(|entry| entry.expect("an entry")).collect();
        let mut sorted: Vec<_> = entries.iter().map(fs::DirEntry::file_name).collect();
        sorted.sort();
        for (rank, entry) in entries.iter().enumerate() {
            let file = files[&entry.ino()];
            let place = format!("{name}: {}", entry.path().display());
            let metadata = entry.metadata().expect("an inode");
            assert_eq!(u64::from(file.links), metadata.nlink(), "{place}");
            assert_eq!(file.size_bytes, metadata.size(), "{place}");
            let modify = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
            let change = metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec();
            assert_eq!((file.modify_ns, file.change_ns), (modify, change), "{place}");
            if let Ok(birth) = metadata.created() {
                let birth = birth.duration_since(std::time::UNIX_EPOCH).expect("after 1970");
                assert_eq!(i128::from(file.birth_ns), birth.as_nanos() as i128, "{place}");
            }
            if file.kind == FileKind::Directory {
                queue.push((entry.path(), file.inode));
            }
            if file.links > 1 && file.kind == FileKind::Regular {
                continue;
            }
            seen += 1;
            assert_eq!(file.directory, directory, "{place}");
            assert_eq!(file.readdir_rank, rank as u32, "{place}");
            let by_name = sorted.binary_search(&entry.file_name()).expect("itself");
            assert_eq!(file.name_rank, by_name as u32, "{place}");
            let index = snapshot.files.binary_search_by_key(&file.inode, |file| file.inode);
            assert_eq!(names[index.expect("itself")], entry.file_name().as_bytes(), "{place}");
        }
    }
    // `large` and `again` are one file.
    assert_eq!(snapshot.files.len(), seen + 1, "{name}");
}

/// Extents, joined where they are one: the kernel reports each entry of a map.
fn joined(extents: &[Extent]) -> Vec<Extent> {
    let mut whole: Vec<Extent> = Vec::new();
    for next in extents {
        match whole.last_mut() {
            Some(last)
                if last.flags == next.flags
                    && last.logical_bytes + last.length_bytes == next.logical_bytes
                    && last.physical_bytes + last.length_bytes == next.physical_bytes =>
            {
                last.length_bytes += next.length_bytes;
            }
            _ => whole.push(*next),
        }
    }
    whole
}

/// A snapshot of the mounted file system is the same, but for what only one of them can know.
fn check_against_mounted(name: &str, root: &Path, ours: &Snapshot) {
    let options = TakeOptions { names: true, threads: Some(1), ..TakeOptions::default() };
    let mut theirs = agewell_snapshot::source::take(root, &options, &mut |_| Ok(()))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    theirs.facts.parameters.clone_from(&ours.facts.parameters);
    theirs.facts.taken_ns = ours.facts.taken_ns;
    assert_eq!(theirs.facts, ours.facts, "{name}");
    assert_eq!(theirs.files.len(), ours.files.len(), "{name}");
    let names = |snapshot: &Snapshot| snapshot.names.clone().expect("they were asked for");
    let (our_names, their_names) = (names(ours), names(&theirs));
    for (index, (their, our)) in theirs.files.iter().zip(&ours.files).enumerate() {
        let (first_extent, extents) = (our.first_extent, our.extents);
        assert_eq!(SnapshotFile { first_extent, extents, ..*their }, *our, "{name}");
        // The kernel does not report where a link lies.
        if our.kind != FileKind::Link {
            let extents = joined(theirs.extents_of(&theirs.files[index]));
            assert_eq!(extents, ours.extents_of(our), "{name}: {our:?}");
        }
        assert_eq!(their_names[index], our_names[index], "{name}");
    }
    assert!(theirs.free == ours.free, "{name}: free extents differ");
    let report = |snapshot: &Snapshot| {
        let report = score(snapshot, &ScoreOptions::default());
        let mut report = report.unwrap_or_else(|error| panic!("{name}: {error}"));
        // The one number that distinguishes joined extents from entries of a map.
        report.contents.extents = 0;
        serde_json::to_string_pretty(&report).expect("numbers")
    };
    let (their, our) = (report(&theirs), report(ours));
    let differ = their.lines().zip(our.lines()).find(|(their, our)| their != our);
    assert_eq!(differ, None, "{name}: the scores differ");
    assert_eq!(their.len(), our.len(), "{name}: the scores differ");
}

/// File systems that the kernel filled are read as e2fsprogs and the kernel read them.
fn check_shapes(shapes: &[(&str, &str, u64, &str)]) {
    if !have(&["mke2fs", "debugfs", "dumpe2fs", "e2freefrag"]) {
        return;
    }
    for &(name, kind, mib, options) in shapes {
        let folder = tempfile::tempdir().expect("a folder");
        let image = make(folder.path(), mib, options);
        set_hash(name, &image);
        if fill_mounted(&image, mib).is_none() {
            continue;
        }
        let snapshot = take(&image).unwrap_or_else(|error| panic!("{name}: {error}"));
        let facts = &snapshot.facts;
        assert_eq!((facts.kind.as_str(), facts.total_bytes), (kind, mib * MIB), "{name}");
        assert_eq!(facts.unreadable, 0, "{name}: {:?}", facts.parameters);
        let split = check_against_e2fsprogs(name, &image, folder.path(), &snapshot);
        assert!(split > 20, "{name}: only {split} files in pieces prove little");
        if let Some(mounted) = Mounted::new(&image, "ro") {
            check_against_the_kernel(name, mounted.path(), &snapshot);
            check_against_mounted(name, mounted.path(), &snapshot);
        }
    }
}

/// What mke2fs fills without a mount, in blocks and with features that not every kernel mounts, is
/// read as debugfs reads it.
#[test]
fn shapes_without_a_mount_agree() {
    if !have(&["mke2fs", "debugfs", "dumpe2fs", "e2freefrag"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("tree");
    fs::create_dir(&root).expect("a directory");
    for file in 0..300_usize {
        fs::write(root.join(format!("{file}-{}", "y".repeat(file / 2))), vec![1; file * 700])
            .expect("room");
    }
    for options in [
        "-b 8192",
        "-b 65536",
        "-b 4096 -O quota,project,large_dir,ea_inode,verity,encrypt -I 256",
        "-b 1024 -O casefold,^metadata_csum,uninit_bg -E encoding=utf8",
        "-b 2048 -r 0 -O none",
    ] {
        let image = folder.path().join("image");
        let text = image.to_str().expect("a path").to_owned();
        let tree = root.to_str().expect("a path");
        let mut arguments = vec!["-q", "-F", "-t", "ext4", "-d", tree];
        arguments.extend(options.split(' '));
        arguments.extend([text.as_str(), "256m"]);
        run("mke2fs", &arguments);
        let snapshot = take(&image).unwrap_or_else(|error| panic!("{options}: {error}"));
        assert_eq!(snapshot.facts.unreadable, 0, "{options}: {:?}", snapshot.facts.parameters);
        // The root, lost+found and the files.
        assert_eq!(snapshot.files.len(), 302, "{options}");
        check_against_e2fsprogs(options, &image, folder.path(), &snapshot);
        fs::remove_file(&image).expect("it is there");
    }
}

/// A journal that was not replayed is reported, and so is what it takes.
#[test]
fn an_unreplayed_journal_is_told() {
    if !have(&["mke2fs"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let image = make(folder.path(), 64, "-t ext4 -b 4096 -J size=4");
    let told = |name: &str| {
        let snapshot = take(&image).unwrap_or_else(|error| panic!("{error}"));
        snapshot.facts.parameters.get(name).cloned()
    };
    assert_eq!(told("needs_recovery"), None);
    assert_eq!(told("not_unmounted"), None);
    assert_eq!(told("journal_bytes"), Some((4 * MIB).to_string()));
    let Some(mounted) = Mounted::new(&image, "rw") else { return };
    fs::write(mounted.path().join("file"), "content").expect("room");
    rustix::fs::syncfs(File::open(mounted.path()).expect("a directory")).expect("a sync");
    assert!(told("needs_recovery").is_some());
    drop(mounted);
    assert_eq!(told("needs_recovery"), None);
}

/// The first half of the shapes: ext2, ext3, ext4, small blocks, block maps.
#[test]
fn common_shapes_agree() {
    check_shapes(&SHAPES[..5]);
}

/// The second half: groups, inline data, clusters, no index.
#[test]
fn rare_shapes_agree() {
    check_shapes(&SHAPES[5..]);
}
