//! Files a second out of an image of ext4, warm.
//!
//! The image holds 100,000 files in 1,000 directories, one in twelve of them with a hole. Each
//! measurement opens it again and takes the whole snapshot, and the benchmark prints what it found,
//! so that no change of behaviour passes for one of speed.
//!
//! Bound by: reading the inode tables (256 bytes a file, a copy out of the page cache), then by
//! sorting the directories by hash and by name.

#![allow(clippy::print_stderr, reason = "a benchmark prints what it measured")]

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use agewell_snapshot::source::image::take_image;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const DIRECTORIES: u64 = 1000;
const FILES: u64 = 100_000;

fn fill(root: &Path) {
    for directory in 0..DIRECTORIES {
        let folder = root.join(format!("directory-{directory}"));
        fs::create_dir(&folder).expect("a directory");
        for file in 0..FILES / DIRECTORIES {
            let path = folder.join(format!("file {file} of directory {directory}"));
            let number = directory * (FILES / DIRECTORIES) + file;
            let whole = File::create(path).expect("a file");
            whole.write_all_at(&[1; 3000], 0).expect("room");
            if number.is_multiple_of(12) {
                whole.write_all_at(&[2; 3000], 40_000).expect("room");
            }
        }
    }
}

fn snapshots(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("tree");
    fs::create_dir(&root).expect("a directory");
    fill(&root);
    let image = folder.path().join("image");
    let made = Command::new("/usr/sbin/mke2fs")
        .args(["-q", "-F", "-t", "ext4", "-b", "4096", "-N", "110000", "-d"])
        .args([&root, &image])
        .arg("1g")
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: mke2fs is not installed, or there is no room for an image");
        return;
    }
    fs::remove_dir_all(&root).expect("it is ours");
    let take = || take_image(&image, false, &mut |_| Ok(())).expect("a sound image");
    let snapshot = take();
    eprintln!(
        "{} files, {} extents, {} free extents",
        snapshot.files.len(),
        snapshot.extents.len(),
        snapshot.free.len()
    );
    let mut group = criterion.benchmark_group("images");
    group.throughput(Throughput::Elements(snapshot.files.len() as u64));
    group.sample_size(20);
    group.bench_function("ext4", |bencher| bencher.iter(|| black_box(take())));
    group.finish();
}

criterion_group!(benches, snapshots);
criterion_main!(benches);
