//! Whole file systems, compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use agewell_snapshot::columns;
use agewell_snapshot::source::{Checkpoint, TakeOptions, take};
use agewell_snapshot::{Extent, ExtentFlags, FileKind, Snapshot, SnapshotError, SnapshotFile};

use crate::mounted::{Mounted, age, output};
use crate::oracle::{BtrfsTrees, e2freefrag, filefrag, files_below, xfs_spaceman};

/// Files that age a test file system: enough for trees of several levels, quick to make.
const FILES: u64 = 1500;

fn options() -> TakeOptions {
    TakeOptions { names: true, now_ns: 7, ..TakeOptions::default() }
}

fn taken(top: &Path) -> Snapshot {
    let snapshot = take(top, &options(), &mut |_| Ok(())).expect("a mounted tree");
    snapshot.check().expect("a snapshot keeps its invariants");
    snapshot
}

fn find(snapshot: &Snapshot, inode: u64) -> &SnapshotFile {
    let index = snapshot.files.binary_search_by_key(&inode, |file| file.inode);
    &snapshot.files[index.expect("every file of the tree is in the snapshot")]
}

fn printed_flags(extent: &Extent) -> BTreeSet<&'static str> {
    let names = [
        (ExtentFlags::INLINE, "inline"),
        (ExtentFlags::UNWRITTEN, "unwritten"),
        (ExtentFlags::SHARED, "shared"),
        (ExtentFlags::ENCODED, "encoded"),
        (ExtentFlags::UNKNOWN, "unknown_loc"),
        (ExtentFlags::TAIL, "tail"),
    ];
    names.iter().filter(|(flag, _)| extent.flags.any(*flag)).map(|(_, name)| *name).collect()
}

/// Every file has the extents that `filefrag` prints, in the same order with the same flags;
/// `place` turns its addresses into those of the device. The kernel may report to `filefrag` in pieces
/// what it reports to us in one, so what goes on in the file and on the device counts as one extent.
fn agrees_with_filefrag(top: &Path, snapshot: &Snapshot, place: impl Fn(u64) -> u64) {
    let Some(printed) = filefrag(top) else {
        println!("skipped: filefrag is missing");
        return;
    };
    let ours: BTreeSet<&str> =
        ["inline", "unwritten", "shared", "encoded", "unknown_loc", "tail"].into();
    let (mut extents, mut several) = (0, 0);
    for (path, printed) in printed {
        let file = find(snapshot, path.symlink_metadata().expect("a file").ino());
        let told: Vec<_> = snapshot
            .extents_of(file)
            .iter()
            .map(|extent| {
                let extent_end = extent.logical_bytes + extent.length_bytes;
                (extent.logical_bytes, extent.physical_bytes, extent_end, printed_flags(extent))
            })
            .collect();
        let expected = printed
            .iter()
            .map(|(logical, physical, length, flags)| {
                let flags: BTreeSet<&str> =
                    flags.split(',').filter(|flag| ours.contains(flag)).collect();
                let placeless = flags.contains("inline") || flags.contains("unknown_loc");
                let physical = if placeless { 0 } else { place(*physical) };
                (*logical, physical, logical + length, flags)
            })
            .fold(Vec::new(), joined);
        assert_eq!(told, expected, "{}", path.display());
        extents += told.len();
        several += usize::from(told.len() > 1);
    }
    assert!(extents > 1000 && several > 30, "{extents} extents, {several} files with several");
}

/// Start in the file, start on the device, end in the file, flags.
type Piece<'a> = (u64, u64, u64, BTreeSet<&'a str>);

fn joined<'a>(mut pieces: Vec<Piece<'a>>, piece: Piece<'a>) -> Vec<Piece<'a>> {
    let whole = !piece.3.contains("encoded") && !piece.3.contains("inline");
    if let Some(before) = pieces.last_mut().filter(|before| whole && before.3 == piece.3)
        && before.2 == piece.0
        && (piece.3.contains("unknown_loc") || before.1 + (before.2 - before.0) == piece.1)
    {
        before.2 = piece.2;
        return pieces;
    }
    pieces.push(piece);
    pieces
}

/// What the device holds where the snapshot says that a file lies is what the file holds.
fn agrees_with_the_device(mounted: &Mounted, snapshot: &Snapshot) {
    let image = File::open(mounted.image()).expect("the image");
    let mut compared = 0;
    for path in files_below(&mounted.top()) {
        let content = std::fs::read(&path).expect("a file");
        let inode = path.symlink_metadata().expect("a file").ino();
        for extent in snapshot.extents_of(find(snapshot, inode)) {
            let elsewhere = [ExtentFlags::INLINE, ExtentFlags::UNKNOWN, ExtentFlags::ENCODED]
                .map(|flag| extent.flags.any(flag))
                .contains(&true);
            if elsewhere || extent.flags.any(ExtentFlags::UNWRITTEN) {
                continue;
            }
            let start = (extent.logical_bytes as usize).min(content.len());
            let end = ((extent.logical_bytes + extent.length_bytes) as usize).min(content.len());
            let mut bytes = vec![0; end - start];
            image.read_exact_at(&mut bytes, extent.physical_bytes).expect("within the image");
            assert!(bytes == content[start..end], "{} at {start}", path.display());
            compared += bytes.len();
        }
    }
    assert!(compared > 10 << 20, "only {compared} bytes compared");
}

/// No byte is both free and a file's.
fn free_is_free(snapshot: &Snapshot) {
    let free = &snapshot.free;
    let placeless = ExtentFlags::INLINE.with(ExtentFlags::UNKNOWN);
    for extent in &snapshot.extents {
        // Compressed data takes less of the device than its length says.
        if extent.flags.any(placeless.with(ExtentFlags::ENCODED)) {
            continue;
        }
        let end = extent.physical_bytes + extent.length_bytes;
        let behind = free.partition_point(|free| free.physical_bytes < end);
        if let Some(before) = behind.checked_sub(1).map(|index| free[index]) {
            assert!(before.physical_bytes + before.length_bytes <= extent.physical_bytes);
        }
    }
}

fn free_counts(snapshot: &Snapshot) -> (u64, u64) {
    let bytes: u64 = snapshot.free.iter().map(|extent| extent.length_bytes).sum();
    assert!(snapshot.facts.free_map);
    (snapshot.free.len() as u64, bytes / u64::from(snapshot.facts.block_bytes))
}

/// Whether the file `name` has extents, all of them with `flag`.
fn has_only(mounted: &Mounted, snapshot: &Snapshot, name: &str, flag: ExtentFlags) -> bool {
    let inode = mounted.top().join(name).symlink_metadata().expect("a file").ino();
    let extents = snapshot.extents_of(find(snapshot, inode));
    !extents.is_empty() && extents.iter().all(|extent| extent.flags.any(flag))
}

/// Types, links, names and ranks are those that the tree has.
fn agrees_with_the_tree(top: &Path, snapshot: &Snapshot) {
    let names = snapshot.names.as_ref().expect("names were asked for");
    let inode = |path: &Path| path.symlink_metadata().expect("an entry").ino();
    let kinds = [
        ("link", FileKind::Link, 1),
        ("pipe", FileKind::Other, 1),
        ("none", FileKind::Regular, 1),
        ("another name", FileKind::Regular, 2),
    ];
    for (name, kind, links) in kinds {
        let file = find(snapshot, inode(&top.join(name)));
        assert_eq!((file.kind, file.links), (kind, links), "{name}");
    }
    let odd = snapshot.files.iter().zip(names).find(|(_, name)| name.ends_with(b"\xff\xfe"));
    assert_eq!(odd.expect("a name need not be text").0.size_bytes, 5);
    // Of the two links, the one in the directory with the lower inode.
    let linked = find(snapshot, inode(&top.join("another name")));
    let directories = [inode(top), inode(&top.join("nest/in/nest"))];
    assert_eq!(linked.directory, directories[0].min(directories[1]));
    let directory = inode(&top.join("d1"));
    let listed = std::fs::read_dir(top.join("d1")).expect("a directory");
    let listed: Vec<_> = listed.map(|entry| entry.expect("an entry")).collect();
    let mut sorted: Vec<_> = listed.iter().map(std::fs::DirEntry::file_name).collect();
    sorted.sort();
    for (rank, entry) in listed.iter().enumerate() {
        let metadata = entry.metadata().expect("a file");
        let file = find(snapshot, metadata.ino());
        assert_eq!((file.directory, file.readdir_rank as usize), (directory, rank));
        assert_eq!(sorted[file.name_rank as usize], entry.file_name());
        assert_eq!(file.size_bytes, metadata.len());
        let change_ns = metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec();
        let modify_ns = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
        assert_eq!((file.change_ns, file.modify_ns), (change_ns, modify_ns));
        assert!(file.birth_ns > 0);
    }
    let top_file = find(snapshot, inode(top));
    assert_eq!((top_file.directory, top_file.kind), (inode(top), FileKind::Directory));
}

/// Writing and reading gives the same snapshot, and the same bytes each time.
fn survives_a_file(mounted: &Mounted, snapshot: &Snapshot) {
    let paths = [mounted.beside("one.parquet"), mounted.beside("two.parquet")];
    for path in &paths {
        columns::write(snapshot, path).expect("there is room");
        assert!(columns::read(path).expect("a snapshot") == *snapshot);
    }
    let [one, two] = paths.map(|path| std::fs::read(path).expect("a file"));
    assert!(one == two);
}

/// ext4: extents as filefrag and the device have them, free space as e2freefrag counts it.
#[test]
fn ext4() {
    let Some(mounted) = Mounted::new("ext4", 160, &["-b", "4096", "-O", "inline_data"]) else {
        return;
    };
    age(&mounted, FILES);
    let snapshot = taken(&mounted.top());
    assert_eq!(snapshot.facts.kind, "ext4");
    assert_eq!(snapshot.facts.group_bytes, 128 << 20);
    assert_eq!(snapshot.facts.total_bytes, 160 << 20);
    assert!(!snapshot.facts.parameters.contains_key("subtree"));
    agrees_with_filefrag(&mounted.top(), &snapshot, |address| address);
    agrees_with_the_device(&mounted, &snapshot);
    agrees_with_the_tree(&mounted.top(), &snapshot);
    free_is_free(&snapshot);
    survives_a_file(&mounted, &snapshot);
    match e2freefrag(&mounted.device()) {
        Some(counts) => assert_eq!(free_counts(&snapshot), counts),
        None => println!("skipped: e2freefrag is missing"),
    }
    assert!(has_only(&mounted, &snapshot, "unwritten", ExtentFlags::UNWRITTEN));
    assert!(has_only(&mounted, &snapshot, "small", ExtentFlags::INLINE));
    let part = taken(&mounted.top().join("nest"));
    assert!(part.facts.parameters["subtree"].starts_with("inode "));
    let inside = part.files.iter().filter(|file| file.kind == FileKind::Regular).count();
    assert_eq!((part.files.len(), inside), (4, 1));
}

/// ext4 with 1 KiB blocks, whose groups begin behind the boot block, and without extents.
#[test]
fn ext4_small_blocks() {
    let features = ["-b", "1024", "-O", "^extent,^64bit,^flex_bg"];
    let Some(mounted) = Mounted::new("ext4", 100, &features) else { return };
    age(&mounted, FILES);
    let snapshot = taken(&mounted.top());
    assert_eq!((snapshot.facts.block_bytes, snapshot.facts.first_group_bytes), (1024, 1024));
    assert_eq!(snapshot.facts.group_bytes, 8 << 20);
    agrees_with_filefrag(&mounted.top(), &snapshot, |address| address);
    agrees_with_the_device(&mounted, &snapshot);
    free_is_free(&snapshot);
    match e2freefrag(&mounted.device()) {
        Some(counts) => assert_eq!(free_counts(&snapshot), counts),
        None => println!("skipped: e2freefrag is missing"),
    }
}

/// xfs: extents as filefrag and the device have them, free space as xfs_spaceman counts it.
#[test]
fn xfs() {
    let Some(mounted) = Mounted::new("xfs", 300, &[]) else { return };
    age(&mounted, FILES);
    let snapshot = taken(&mounted.top());
    assert_eq!(snapshot.facts.kind, "xfs");
    assert_eq!(snapshot.facts.group_bytes * 4, 300 << 20);
    agrees_with_filefrag(&mounted.top(), &snapshot, |address| address);
    agrees_with_the_device(&mounted, &snapshot);
    agrees_with_the_tree(&mounted.top(), &snapshot);
    free_is_free(&snapshot);
    survives_a_file(&mounted, &snapshot);
    assert!(has_only(&mounted, &snapshot, "twin", ExtentFlags::SHARED));
    match xfs_spaceman(&mounted.top()) {
        Some(counts) => assert_eq!(free_counts(&snapshot), counts),
        None => println!("skipped: xfs_spaceman is missing"),
    }
}

/// Which 4 KiB sectors of the device are free, sector by sector, from the trees as printed: those
/// that no chunk has and those of chunks that no extent covers, but none that is kept for the
/// superblock and its copy.
fn free_sectors(trees: &BtrfsTrees, device_bytes: u64) -> Vec<bool> {
    const SECTOR: u64 = 4096;
    let mut free = vec![true; (device_bytes / SECTOR) as usize];
    for (start, length) in &trees.used {
        for at in (*start..start + length).step_by(SECTOR as usize) {
            let chunk =
                trees.chunks.iter().find(|(from, length, _)| (*from..from + length).contains(&at));
            let (from, _, copies) = chunk.expect("every extent is in a chunk");
            for copy in copies {
                free[((copy + (at - from)) / SECTOR) as usize] = false;
            }
        }
    }
    for (start, length) in [(0, 1 << 20), (64 << 20, 64 << 10)] {
        free[start / SECTOR as usize..(start + length) / SECTOR as usize].fill(false);
    }
    free
}

fn btrfs_agrees(mounted: &Mounted) {
    let snapshot = taken(&mounted.top());
    let facts = &snapshot.facts;
    assert_eq!((facts.kind.as_str(), facts.parameters["devices"].as_str()), ("btrfs", "1"));
    agrees_with_the_device(mounted, &snapshot);
    agrees_with_the_tree(&mounted.top(), &snapshot);
    free_is_free(&snapshot);
    survives_a_file(mounted, &snapshot);
    let Some(trees) = BtrfsTrees::print(&mounted.device()) else {
        println!("skipped: btrfs inspect-internal is missing");
        return;
    };
    agrees_with_filefrag(&mounted.top(), &snapshot, |address| {
        trees.on_device(address).expect("every extent is in a chunk")
    });
    let mut agreed = tells_free_space(&snapshot, &trees);
    for _ in 1..COMMITS {
        if agreed.is_ok() {
            break;
        }
        let snapshot = taken(&mounted.top());
        let trees = BtrfsTrees::print(&mounted.device()).expect("it could be printed before");
        agreed = tells_free_space(&snapshot, &trees);
    }
    assert_eq!(agreed, Ok(()));
}

/// How often the free space of a snapshot is held against trees: what anyone's `sync` commits between the two
/// moves nodes.
const COMMITS: u32 = 5;

/// Whether the free sectors of `snapshot` are those that `trees` leave free.
fn tells_free_space(snapshot: &Snapshot, trees: &BtrfsTrees) -> Result<(), String> {
    let mut expected = free_sectors(trees, snapshot.facts.total_bytes);
    for extent in &snapshot.free {
        let sectors =
            extent.physical_bytes / 4096..(extent.physical_bytes + extent.length_bytes) / 4096;
        for sector in sectors {
            if !std::mem::take(&mut expected[sector as usize]) {
                return Err(format!("sector {sector} is not free"));
            }
        }
    }
    match expected.iter().position(|&free| free) {
        Some(sector) => Err(format!("sector {sector} is free, and not told")),
        None => Ok(()),
    }
}

/// btrfs: addresses as the chunk tree maps them, free space as the free-space tree has it.
#[test]
fn btrfs() {
    let Some(mounted) = Mounted::new("btrfs", 320, &[]) else { return };
    let below = mounted.top().join("subvolume");
    let arguments = ["subvolume".as_ref(), "create".as_ref(), below.as_os_str()];
    assert!(output("btrfs", &arguments).is_some());
    age(&mounted, FILES);
    btrfs_agrees(&mounted);
    let snapshot = taken(&mounted.top());
    assert_eq!(snapshot.facts.parameters["left_out_on_other_devices"], "1");
    assert!(has_only(&mounted, &snapshot, "twin", ExtentFlags::SHARED));
    assert!(has_only(&mounted, &snapshot, "compressed", ExtentFlags::ENCODED));
}

/// btrfs without a free-space tree: what no extent covers is free.
#[test]
fn btrfs_without_free_space_tree() {
    let Some(mounted) = Mounted::new("btrfs", 320, &["-R", "^free-space-tree"]) else { return };
    age(&mounted, FILES);
    btrfs_agrees(&mounted);
}

/// btrfs on two devices reports no addresses of devices, and says so.
#[test]
fn btrfs_on_two_devices() {
    let Some(mounted) = Mounted::new("btrfs", 320, &[]) else { return };
    let second = mounted.beside("second");
    File::create(&second).and_then(|file| file.set_len(320 << 20)).expect("a sparse file");
    let device = output("losetup", &["-f".as_ref(), "--show".as_ref(), second.as_ref()]);
    let device = device.expect("a loop device could be had before").trim().to_owned();
    let top = mounted.top();
    let added =
        output("btrfs", &["device".as_ref(), "add".as_ref(), device.as_ref(), top.as_ref()]);
    let snapshot = added.is_some().then(|| taken(&top));
    drop(mounted);
    output("losetup", &["-d".as_ref(), device.as_ref()]);
    let Some(snapshot) = snapshot else {
        println!("skipped: btrfs device add fails here");
        return;
    };
    assert_eq!(snapshot.facts.parameters["devices"], "2");
    assert!(snapshot.facts.parameters["addresses"].starts_with("logical"));
    assert!(!snapshot.facts.free_map && snapshot.free.is_empty());
}

/// A snapshot does not change a bit of what it reads, nor an access time.
#[test]
fn nothing_is_written() {
    for (kind, mebibytes) in [("ext4", 100), ("xfs", 300), ("btrfs", 256)] {
        let Some(mut mounted) = Mounted::new(kind, mebibytes, &[]) else { continue };
        age(&mounted, 200);
        let top = mounted.top();
        assert!(
            output("mount", &["-o".as_ref(), "remount,strictatime".as_ref(), top.as_ref()])
                .is_some()
        );
        let accessed = || {
            let times =
                files_below(&top).into_iter().chain(["d1", "nest"].map(|name| top.join(name)));
            times
                .map(|path| path.symlink_metadata().expect("a file").atime_nsec())
                .collect::<Vec<_>>()
        };
        // Listing the directories to ask has moved their access times before.
        let (_, before) = (accessed(), accessed_directly(&top));
        taken(&top);
        assert_eq!(accessed_directly(&top), before, "{kind}");
        mounted.unmount();
        assert!(mounted.mount("ro"));
        let sum = || {
            let flushed = output("blockdev", &["--flushbufs".as_ref(), mounted.device().as_ref()]);
            assert!(flushed.is_some());
            output("sha256sum", &[mounted.image().as_ref()]).expect("coreutils has sha256sum")
        };
        let before = sum();
        taken(&top);
        assert_eq!(sum(), before, "{kind}");
    }
}

fn accessed_directly(top: &Path) -> BTreeMap<&'static str, i64> {
    let names = ["", "d1", "d2", "nest", "nest/in", "nest/in/nest/holes", "unwritten"];
    let time = |name: &str| {
        let metadata = top.join(name).symlink_metadata().expect("a file");
        metadata.atime() * 1_000_000_000 + metadata.atime_nsec()
    };
    names.into_iter().map(|name| (name, time(name))).collect()
}

/// Data that waits in memory has no place; with `sync` it is written first and has one.
#[test]
fn delayed_data() {
    let Some(mounted) = Mounted::new("ext4", 100, &["-b", "4096"]) else { return };
    let unknown = |path: &Path, snapshot: &Snapshot| {
        let file = find(snapshot, path.symlink_metadata().expect("a file").ino());
        let extents = snapshot.extents_of(file);
        assert_eq!(extents.iter().map(|extent| extent.length_bytes).sum::<u64>(), 25 * 4096);
        extents.iter().all(|extent| extent.flags.any(ExtentFlags::UNKNOWN))
    };
    // The kernel writes when it likes, which on a busy machine may be at once: not every time.
    let waited = (0..50).map(|count| mounted.top().join(format!("late{count}"))).find(|path| {
        std::fs::write(path, vec![1; 100_000]).expect("there is room");
        unknown(path, &taken(&mounted.top()))
    });
    let path = waited.expect("one of 50 files waits in memory");
    let synced = TakeOptions { sync: true, ..options() };
    let synced = take(&mounted.top(), &synced, &mut |_| Ok(())).expect("a mounted tree");
    assert!(!unknown(&path, &synced));
}

/// What is mounted below, or bound from elsewhere, is left out and counted.
#[test]
fn one_device_only() {
    let Some(mounted) = Mounted::new("ext4", 100, &[]) else { return };
    age(&mounted, 50);
    let below = mounted.top().join("d1");
    let bound = mounted.top().join("nest");
    let arguments = ["--bind".as_ref(), bound.as_os_str(), below.as_os_str()];
    assert!(output("mount", &arguments).is_some());
    let snapshot = taken(&mounted.top());
    assert!(output("umount", &[below.as_os_str()]).is_some());
    assert_eq!(snapshot.facts.parameters["left_out_on_other_devices"], "1");
    let without = taken(&mounted.top()).files.len() - snapshot.files.len();
    let inside = std::fs::read_dir(&below).expect("a directory").count();
    assert_eq!(without, inside + 1);
}

/// The number of threads makes no difference.
#[test]
fn threads() {
    let Some(mounted) = Mounted::new("ext4", 160, &[]) else { return };
    age(&mounted, FILES);
    let by = |threads| {
        let options = TakeOptions { threads: Some(threads), ..options() };
        take(&mounted.top(), &options, &mut |_| Ok(())).expect("a mounted tree")
    };
    let one = by(1);
    for threads in [2, 3, 8] {
        assert!(by(threads) == one, "{threads} threads");
    }
}

/// Files come, go and grow all the while; every snapshot is whole, and what went missing is counted
/// instead of ending it.
#[test]
fn a_changing_tree() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let Some(mounted) = Mounted::new("ext4", 160, &[]) else { return };
    age(&mounted, FILES);
    let (top, done) = (mounted.top(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0_u64.. {
                let path = top.join(format!("d{}/g{}", round % 7, round % 500));
                match round % 3 {
                    0 => std::fs::write(&path, vec![1; (round % 50_000) as usize]),
                    1 => std::fs::rename(&path, top.join(format!("d0/h{}", round % 90))),
                    _ => std::fs::remove_file(top.join(format!("d0/h{}", round % 90))),
                }
                .unwrap_or_default();
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        for _ in 0..10 {
            let snapshot = taken(&top);
            assert!(snapshot.files.len() > 1000);
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Whatever part of its checkpoint a kill leaves, a snapshot that goes on with it ends like one that
/// was never stopped; also when files came and went in between.
#[test]
fn resumed_from_any_prefix() {
    let Some(mounted) = Mounted::new("ext4", 160, &[]) else { return };
    age(&mounted, FILES);
    let path = mounted.beside("snapshot.partial");
    let with = |resume| TakeOptions {
        checkpoint: Some(Checkpoint { path: path.clone(), resume, interval_files: 40 }),
        ..options()
    };
    let plain = taken(&mounted.top());
    let recorded = take(&mounted.top(), &with(false), &mut |_| Ok(())).expect("a mounted tree");
    assert!(recorded == plain);
    let log = std::fs::read(&path).expect("a checkpoint");
    let refused = take(&mounted.top(), &with(false), &mut |_| Ok(()));
    assert!(matches!(refused, Err(SnapshotError::Input(text)) if text.contains("--resume")));
    let header = 20 + u32::from_le_bytes(log[16..20].try_into().expect("four bytes")) as usize;
    let resumed = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("there is room");
        let mut snapshot = take(&mounted.top(), &with(true), &mut |_| Ok(())).expect("it goes on");
        assert_eq!(snapshot.facts.parameters.remove("resumed").as_deref(), Some("true"));
        snapshot
    };
    for part in 0..=20 {
        let end = header + (log.len() - header) * part / 20;
        assert!(resumed(&log[..end]) == plain, "{end} of {} bytes", log.len());
    }
    // A byte that the disk lost: what is behind it is not trusted.
    let mut damaged = log.clone();
    damaged[usize::midpoint(header, log.len())] ^= 0x55;
    assert!(resumed(&damaged) == plain);
    // Zeros that a power cut left in place of the last record.
    let mut zeros = log.clone();
    zeros[log.len() - 501..].fill(0);
    assert!(resumed(&zeros) == plain);
    std::fs::remove_file(mounted.top().join("d2/f2")).expect("it was made");
    std::fs::write(mounted.top().join("d4/new"), b"later").expect("there is room");
    mounted.sync();
    let mut plain = taken(&mounted.top());
    let mut later = resumed(&log);
    // The free blocks of the file system are counted at the end of each.
    later.facts.free_bytes = 0;
    plain.facts.free_bytes = 0;
    assert!(later == plain);
    for (bytes, words) in [(&log[..header / 2], "damaged"), (&b"else"[..], "no interrupted")] {
        std::fs::write(&path, bytes).expect("there is room");
        let refused = take(&mounted.top(), &with(true), &mut |_| Ok(()));
        assert!(matches!(refused, Err(SnapshotError::Input(text)) if text.contains(words)));
    }
    std::fs::write(&path, &log).expect("there is room");
    let other = take(&mounted.top().join("nest"), &with(true), &mut |_| Ok(()));
    assert!(matches!(other, Err(SnapshotError::Input(text)) if text.contains("another tree")));
}

/// Stopping ends the walk with the error of whoever stopped it.
#[test]
fn stopped() {
    let Some(mounted) = Mounted::new("ext4", 100, &[]) else { return };
    age(&mounted, 50);
    let result = take(&mounted.top(), &options(), &mut |_| Err(SnapshotError::Stopped));
    assert!(matches!(result, Err(SnapshotError::Stopped)));
}

/// File systems without extent maps give one line, not an empty snapshot.
#[test]
fn without_extent_maps() {
    let directory = tempfile::tempdir_in("/dev/shm");
    let Ok(directory) = directory else {
        println!("skipped: no /dev/shm here");
        return;
    };
    std::fs::write(directory.path().join("file"), b"in memory").expect("there is room");
    let result = take(directory.path(), &options(), &mut |_| Ok(()));
    assert!(matches!(result, Err(SnapshotError::Input(text)) if text.contains("no FIEMAP")));
}

/// Longer ago than what a walk takes for a change of this moment.
const SETTLED: std::time::Duration = std::time::Duration::from_millis(1200);

/// What inodes say of files that have not changed lately is what the kernel says of them: pieces,
/// holes, blocks that are reserved beyond the end, long attributes, several links, what is cut off,
/// punched out and written over, and also while the blocks of some wait for their places.
fn inodes_say_what_the_kernel_says(mkfs: &[&str], options: &str) {
    use agewell_core::RandomStreams;
    use rand_core::Rng;
    use rustix::fs::{FallocateFlags, XattrFlags, fallocate, setxattr};
    let Some(mut mounted) = Mounted::new("ext4", 160, mkfs) else { return };
    mounted.unmount();
    assert!(mounted.mount(options));
    age(&mounted, 600);
    let mut random = RandomStreams::new(5).stream("settled-tree");
    let mut draw = |below: u64| random.next_u64() % below;
    for round in 0..3 {
        for _ in 0..400 {
            let path = mounted.top().join(format!("d{}/g{}", draw(7), draw(150)));
            let (at, bytes) = (draw(60) * 4096, vec![1; draw(30_000) as usize]);
            let file = File::options().create(true).truncate(false).write(true).open(&path);
            let file = file.expect("there is room");
            let flags = FallocateFlags::KEEP_SIZE;
            match draw(9) {
                0..=2 => file.write_all_at(&bytes, at).expect("there is room"),
                3 => file.set_len(at).expect("a length"),
                4 => fallocate(&file, flags, at, 50_000).expect("there is room"),
                5 => fallocate(&file, flags | FallocateFlags::PUNCH_HOLE, at, 9000).expect("holes"),
                6 => setxattr(&path, "user.long", &[7; 900], XattrFlags::empty()).expect("room"),
                7 => drop(std::fs::hard_link(&path, mounted.top().join(format!("l{at}")))),
                _ => file.sync_all().expect("it can be written"),
            }
        }
        // Once with what waits in memory, twice with all of it on the device.
        if round > 0 {
            mounted.sync();
        }
        std::thread::sleep(SETTLED);
        let called = TakeOptions { calls_only: true, ..self::options() };
        let called = || take(&mounted.top(), &called, &mut |_| Ok(())).expect("a mounted tree");
        // What waits may be written between two walks; then neither is wrong.
        let agreed = (0..5).any(|_| taken(&mounted.top()) == called());
        assert!(agreed, "round {round}");
    }
}

/// As it comes, and with times and checksums kept in other ways.
#[test]
fn inodes_of_ext4() {
    for (mkfs, options) in [
        (&["-b", "4096"][..], "rw"),
        (&["-b", "1024", "-I", "256"], "rw"),
        (&["-b", "4096", "-I", "128"], "rw,nodelalloc"),
        (&["-O", "metadata_csum_seed,inline_data"], "rw"),
        (&["-O", "^metadata_csum"], "rw,lazytime"),
    ] {
        inodes_say_what_the_kernel_says(mkfs, options);
    }
}

/// What is mounted on a single file is not taken for what lies below it.
#[test]
fn a_mount_on_a_file() {
    let Some(mounted) = Mounted::new("ext4", 100, &[]) else { return };
    age(&mounted, 50);
    std::thread::sleep(SETTLED);
    let point = mounted.top().join("d1/f1");
    let whole = taken(&mounted.top()).files.len();
    let arguments = ["--bind".as_ref(), Path::new("/etc/passwd").as_os_str(), point.as_os_str()];
    assert!(output("mount", &arguments).is_some());
    let snapshot = taken(&mounted.top());
    assert!(output("umount", &[point.as_os_str()]).is_some());
    assert_eq!(snapshot.facts.parameters["left_out_on_other_devices"], "1");
    assert_eq!(snapshot.files.len() + 1, whole);
}
